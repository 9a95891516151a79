//! Directory servers in a namespace of their own, which agents of another one reach over a veth pair: where a card stands between
//! the two, as between a server and its network.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_wire::block::Block;

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::{namespace_name, namespace_path};
use crate::netns;
use crate::owner::Owner;

/// The interface of both ends.
pub(super) const INTERFACE: &str = "eth0";
/// The server's address, and the agents' router.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 63, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 63, 0, 2);
/// LAs of agents: all of them are the agents' namespace's own.
const AGENTS: Block = Block::of(Ipv4Addr::new(10, 64, 0, 0), 10);
/// The first of them.
pub(super) const FIRST_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);

/// How the servers of a bed are apart from who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart {
    /// Mappings that the card has room for, which answers before the server; `None`: the server answers alone.
    pub(super) card_mappings: Option<u32>,
}

/// Namespace of a bed's servers.
pub(super) fn servers(lab: &str) -> PathBuf {
    namespace_path(&namespace_name(lab, "servers"))
}

/// Namespace of its agents.
pub(super) fn agents(lab: &str) -> PathBuf {
    namespace_path(&namespace_name(lab, "agents"))
}

/// Makes both; they end with the lab.
pub(super) fn make(lab: &str) -> Result<(), LabError> {
    let [servers, agents] = ["servers", "agents"].map(|node| namespace_name(lab, node));
    netns::create_for(&Owner::Lab(lab.to_owned()), &[servers.clone(), agents.clone()], |_| Ok(()))?;
    let here = [
        "link set dev lo up".to_owned(),
        format!("link add dev {INTERFACE} type veth peer name {INTERFACE} netns {agents}"),
        format!("link set dev {INTERFACE} up"),
        format!("address add {SERVER}/24 dev {INTERFACE}"),
        format!("route add {AGENTS} via {ROUTER}"),
    ];
    let there = [
        "link set dev lo up".to_owned(),
        format!("link set dev {INTERFACE} up"),
        format!("address add {ROUTER}/24 dev {INTERFACE}"),
        format!("route add local {AGENTS} dev lo"),
    ];
    let set_up = |name: &str, lines: &[String]| {
        netns::in_namespace(&namespace_path(name), || batch::run(Program::Ip, name, lines))?
    };
    set_up(&servers, &here)?;
    set_up(&agents, &there)
}
