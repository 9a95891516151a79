//! The agents of a lab: `weft node agent` on every server.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_node::agent::{AGENT_PORT, AgentConfig, status};
use weft_scenario::addressing::VIRTUAL_MAC;
use weft_scenario::id::NodeId;

use super::directory::{self, KEY_ID};
use crate::daemons::{Launcher, json_files, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::plan::mac_text;
use crate::up::Lab;

/// Unix socket on which a server's agent tells its state.
pub fn status_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.status"))
}

/// Starts the agents and waits until their data paths are at work.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>) -> Result<(), LabError> {
    let servers: Vec<NodeId> = lab.scenario.fabric.servers().collect();
    let mut configs: Vec<(NodeId, AgentConfig)> =
        servers.into_iter().filter_map(|server| Some((server, config(lab, server)?))).collect();
    for (server, config) in &mut configs {
        config.key_file = Some(directory::write_key(lab, *server, config.tenant)?);
    }
    start_all(lab, launcher, "agent", &json_files(&configs), |lab, node| {
        status::read(status_socket(&lab.state.lab, &lab.plan.node(node).name)).is_ok()
    })
}

/// Starts the agent of a server that has come to another rack, or home, and waits until its data path is at work.
pub(crate) fn start_at(
    lab: &mut Lab,
    launcher: &Launcher<'_>,
    server: NodeId,
    edge: NodeId,
    la: Ipv4Addr,
) -> Result<(), LabError> {
    let none = || LabError::DirectoryLoad(format!("`{}` has no agent", lab.plan.node(server).name));
    let planned = config(lab, server).ok_or_else(none)?;
    let key_file = Some(directory::write_key_at(lab, server, planned.tenant, la)?);
    let config = AgentConfig { la, own_tor_la: lab.scenario.addresses.la(edge), key_file, ..planned };
    start_all(lab, launcher, "agent", &json_files(&[(server, config)]), |lab, node| {
        status::read(status_socket(&lab.state.lab, &lab.plan.node(node).name)).is_ok()
    })
}

fn config(lab: &Lab, server: NodeId) -> Option<AgentConfig> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let (edge, link) = fabric.edge_of(server)?;
    let name = &lab.plan.node(server).name;
    Some(AgentConfig {
        interface: fabric.link(link).end_at(server)?.interface.clone(),
        aa: addresses.aa(server)?,
        aa_block: addresses.aa_block().to_string(),
        la: addresses.la(server),
        port: AGENT_PORT,
        own_tor_la: addresses.la(edge),
        gateway_mac: mac_text(VIRTUAL_MAC),
        underlay_mtu: fabric.links().iter().map(|link| link.spec.mtu_bytes).min()?,
        // Fabrics with narrow links somewhere: what servers send must fit everywhere.
        clamp_mtu: true,
        directory_servers: directory::servers(lab),
        key_file: None,
        key_id: KEY_ID,
        tenant: 0,
        pin_dir: Some(lab.pins(name)),
        rack_direct: false,
        status_socket: Some(status_socket(&lab.state.lab, name)),
        ..AgentConfig::example()
    })
}
