//! Shared links (RFC 6325 section 4.2.4): bridges among RBridges that join more than two of them, or have stations.

use weft_node::rbridge::protocol::{Answer, Request, SharedRow, Shown, What};
use weft_node::rbridge::{PortTable, ask};
use weft_scenario::engine::Scenario;
use weft_scenario::id::NodeId;
use weft_scenario::topology::Island;

use super::{bridge_timers, rbridge_socket};
use crate::plan::{VLAN_DEFAULT, access};
use crate::up::Lab;

/// A link of several RBridges and end stations.
#[derive(Debug)]
pub(super) struct SharedLink {
    island: Island,
    /// VLAN of its frames without a tag, and of its stations.
    pub(super) vlan: u16,
}

/// Those of a network with RBridges.
pub(super) fn links(scenario: &Scenario) -> Vec<SharedLink> {
    let islands = scenario.fabric.bridge_islands(scenario.overlay).into_iter();
    let shared = islands.filter(|island| !island.switches.is_empty() && island.is_shared());
    let of_hosts = |island: &Island| island.hosts.iter().find_map(|(_, link)| access(scenario, *link));
    shared
        .map(|island| SharedLink { vlan: of_hosts(&island).map_or(VLAN_DEFAULT, |access| access.vlan), island })
        .collect()
}

/// How long nobody begins to serve stations after the bridges have another root: until their ports forward.
pub(super) fn root_change_s(lab: &Lab) -> Option<u32> {
    bridge_timers(lab).map(|timers| 2 * timers.forward_delay_s() as u32)
}

impl SharedLink {
    /// Whether a bridge is part of it.
    pub(super) fn joins(&self, bridge: NodeId) -> bool {
        self.island.bridges.contains(&bridge)
    }

    pub(super) fn has_stations(&self) -> bool {
        !self.island.hosts.is_empty()
    }

    /// An RBridge's port on it.
    pub(super) fn port(&self, interface: &str) -> PortTable {
        PortTable { stations: (!self.has_stations()).then_some(false), ..PortTable::shared(interface, self.vlan) }
    }

    /// Its first bridge, for messages.
    pub(super) fn name(&self, lab: &Lab) -> String {
        self.island.bridges.iter().take(1).map(|bridge| format!("`{}`", lab.plan.node(*bridge).name)).collect()
    }

    /// Who serves its stations; `None` while nobody does, or somebody else still might.
    pub(super) fn forwarder(&self, lab: &Lab) -> Option<NodeId> {
        let rows = self.island.switches.iter().map(|(node, link)| {
            let interface = &lab.scenario.fabric.link(*link).end_at(*node)?.interface;
            Some((*node, said(lab, *node)?.into_iter().find(|row| row.interface == *interface)?))
        });
        let rows: Vec<(NodeId, SharedRow)> = rows.collect::<Option<_>>()?;
        let mut serving = rows.iter().filter(|(_, row)| !row.carried.is_empty()).map(|(node, _)| *node);
        let is_settled = rows.iter().all(|(_, row)| row.inhibited.is_empty());
        serving.next().filter(|_| is_settled && serving.next().is_none())
    }
}

/// What an RBridge says of its shared links, once it answers.
fn said(lab: &Lab, node: NodeId) -> Option<Vec<SharedRow>> {
    let socket = rbridge_socket(&lab.state.lab, &lab.plan.node(node).name);
    match ask(&socket, &Request::Show(What::Shared)) {
        Ok(Answer::Shown(Shown::SharedLinks(rows))) => Some(rows),
        _ => None,
    }
}
