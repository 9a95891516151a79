//! The ToR reporters of a lab: `weft node tor` on every edge switch, so that stale agents are corrected (VL2 4.3.2).

use std::path::PathBuf;

use weft_node::DaemonKind;
use weft_node::tor::{REPORTER_PORT, TorConfig, read};
use weft_scenario::engine::Scenario;
use weft_scenario::id::NodeId;

use super::directory::{self, KEY_ID};
use crate::daemons::{Launcher, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::up::Lab;

/// Unix socket on which an edge switch's reporter tells its state.
pub fn reporter_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.tor"))
}

/// Starts the reporters of those of the nodes that are edge switches and waits until they read samples.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>, nodes: &[NodeId]) -> Result<(), LabError> {
    let Scenario { fabric, addresses, .. } = &lab.scenario;
    let is_edge = |node: &&NodeId| fabric.node(**node).role.is_switch() && addresses.rack(**node).is_some();
    let edges: Vec<NodeId> = nodes.iter().filter(is_edge).copied().collect();
    let configs: Vec<(NodeId, TorConfig)> =
        edges.into_iter().map(|edge| Ok((edge, config(lab, edge)?))).collect::<Result<_, LabError>>()?;
    start_all(lab, launcher, DaemonKind::Tor, &configs, |lab, node| {
        read(reporter_socket(&lab.state.lab, &lab.plan.node(node).name)).is_ok()
    })
}

fn config(lab: &Lab, edge: NodeId) -> Result<TorConfig, LabError> {
    let name = &lab.plan.node(edge).name;
    Ok(TorConfig {
        la: lab.scenario.addresses.la(edge),
        port: REPORTER_PORT,
        directory_servers: directory::servers(lab),
        key_file: Some(directory::write_key(lab, edge, 0)?),
        key_id: KEY_ID,
        pin_dir: lab.pins(name),
        socket: reporter_socket(&lab.state.lab, name),
        http_listen: None,
    })
}
