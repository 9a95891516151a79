//! Takes a server from one edge switch to another. Its namespace and sockets stay, as the memory of a virtual machine
//! does; its link, its LA and its agent are those of the new place.

use std::net::Ipv4Addr;

use weft_scenario::engine::{Progress, Scenario};
use weft_scenario::id::NodeId;
use weft_wire::ethernet::MacAddress;

use crate::batch::Program;
use crate::daemons::Launcher;
use crate::error::LabError;
use crate::options::LabOptions;
use crate::overlay;
use crate::plan::iproute::Ip;
use crate::plan::moved_host;
use crate::process::kill_all;
use crate::state::MovedServer;
use crate::up::Lab;

/// Where a server can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The edge switch.
    pub(super) edge: NodeId,
    /// The server's LA there.
    pub(super) la: Ipv4Addr,
}

impl Place {
    /// Where the fabric has it.
    pub(super) fn of(lab: &Lab, server: NodeId) -> Result<Self, LabError> {
        let none = || LabError::Migration(format!("`{}` is no server", lab.plan.node(server).name));
        let (edge, _) = lab.scenario.fabric.edge_of(server).ok_or_else(none)?;
        Ok(Self { edge, la: lab.scenario.addresses.la(server) })
    }

    /// Where it is now.
    pub(super) fn now(lab: &Lab, server: NodeId) -> Result<Self, LabError> {
        let name = &lab.plan.node(server).name;
        let moved = lab.state.moved.iter().find(|moved| moved.server == *name);
        let place = moved.and_then(|moved| Some(Self { edge: lab.scenario.fabric.find(&moved.edge)?, la: moved.la }));
        place.map_or_else(|| Self::of(lab, server), Ok)
    }

    /// Below the edge switch of another server.
    pub(super) fn beside(lab: &Lab, server: NodeId, neighbour: NodeId) -> Result<Self, LabError> {
        let Self { edge, .. } = Self::of(lab, neighbour)?;
        let name = |node| lab.plan.node(node).name.clone();
        if edge == Self::of(lab, server)?.edge {
            let text = format!("`{}` and `{}` are in one rack; nothing would move", name(server), name(neighbour));
            return Err(LabError::Migration(text));
        }
        Self::at(lab, server, edge)
    }

    /// Below an edge switch: home, or with the last address of its rack that nobody has.
    pub(super) fn at(lab: &Lab, server: NodeId, edge: NodeId) -> Result<Self, LabError> {
        let home = Self::of(lab, server)?;
        if home.edge == edge {
            return Ok(home);
        }
        let name = &lab.plan.node(edge).name;
        let rack = lab.scenario.addresses.rack(edge);
        let rack = rack.ok_or_else(|| LabError::Migration(format!("`{name}` has no rack")))?;
        let is_taken = |la: &Ipv4Addr| {
            lab.scenario.fabric.ids().any(|node| lab.scenario.addresses.la(node) == *la)
                || lab.state.moved.iter().any(|moved| moved.la == *la)
        };
        let mut free = (u32::from(rack.network()) + 1..u32::from(rack.last())).rev().map(Ipv4Addr::from);
        let la = free.find(|la| !is_taken(la));
        la.map(|la| Self { edge, la }).ok_or_else(|| LabError::Migration(format!("the rack of `{name}` is full")))
    }
}

/// Writes down where it is and with which LA; one that is home is not away.
fn note(lab: &mut Lab, server: NodeId, to: &Place, port: &str) {
    let (server_name, edge) = (lab.plan.node(server).name.clone(), lab.plan.node(to.edge).name.clone());
    lab.state.moved.retain(|moved| moved.server != server_name);
    lab.state.nodes.iter_mut().filter(|node| node.name == server_name).for_each(|node| node.la = Some(to.la));
    if lab.scenario.fabric.edge_of(server).is_some_and(|(home, _)| home != to.edge) {
        lab.state.moved.push(MovedServer { server: server_name, edge, port: port.to_owned(), la: to.la });
    }
}

/// Cuts the server's link at one place, makes one at the other and starts the agent there. What the server sent or
/// received until then stays with it.
pub(super) fn take(
    lab: &mut Lab,
    options: &LabOptions,
    progress: &dyn Progress,
    server: NodeId,
    from: &Place,
    to: &Place,
) -> Result<(), LabError> {
    let link = lab.scenario.fabric.edge_of(server).expect("a place was found for it").1;
    let ends = lab.scenario.fabric.link(link);
    let (Some(own), Some(far)) = (ends.end_at(server), ends.far_end(server)) else {
        return Err(LabError::Migration("a server's link ends at the server and at its switch".to_owned()));
    };
    let (own, port) = (own.interface.clone(), far.interface.clone());
    let home = far.node;
    let agent = lab.state.processes.iter().find(|one| one.daemon == "agent" && one.node == lab.plan.node(server).name);
    kill_all(&agent.map(|agent| agent.id).into_iter().collect::<Vec<_>>());
    lab.batch(server, Program::Ip, &[format!("link del dev {own}")])?;
    let switch = lab.plan.node(home);
    let made = switch.creates.iter().find(|made| made.end.device == port);
    lab.batch(to.edge, Program::Ip, &[made.expect("the plan of a switch makes the links to its servers")])?;
    let Scenario { fabric, addresses, .. } = &lab.scenario;
    let mac = MacAddress(addresses.mac(fabric, link, server));
    let own_addresses = [Some(to.la), addresses.aa(server)].into_iter().flatten();
    let hosts = own_addresses.flat_map(|address| Ip::host(address, mac, &port));
    lab.batch(to.edge, Program::Ip, &std::iter::once(Ip::up(&port)).chain(hosts).collect::<Vec<_>>())?;
    lab.batch(server, Program::Ip, &moved_host(&lab.scenario, server, to.edge, to.la))?;
    // Those of the old link: the far end's are planned for the old switch.
    for (node, plan, device) in [(to.edge, switch, &port), (server, lab.plan.node(server), &own)] {
        let queues: Vec<_> = plan.queues.iter().filter(|queue| queue.device == *device).collect();
        lab.batch(node, Program::Tc, &queues)?;
    }
    note(lab, server, to, &port);
    overlay::serve_ports(lab, to.edge)?;
    if from.edge != home {
        overlay::serve_ports(lab, from.edge)?;
    }
    // What starts a daemon saves the lab's state, and with it where the server is.
    overlay::start_agent_at(lab, &Launcher { options, progress }, server, to.edge, to.la)
}
