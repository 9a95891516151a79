//! Who sends, and who receives: stations in the order in which they become receivers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};

use super::Run;
use super::trunks::Trunks;
use crate::plan::{access, interfaces};
use crate::tester::TesterError;
use crate::tester::port::Port;
use crate::trill::rbridges::prunes_groups;
use crate::up::Lab;

/// The sender, and everybody whom its frames may reach.
pub(super) struct Bed<'a> {
    pub(super) lab: &'a Lab,
    pub(super) sender: Station,
    /// All others of its VLAN; the first so many receive.
    pub(super) stations: Vec<Station>,
    pub(super) trunks: Trunks,
}

/// A server with the test centre's port in its place.
pub(super) struct Station {
    pub(super) node: NodeId,
    pub(super) address: Ipv4Addr,
    /// Its switch, and their link.
    pub(super) edge: NodeId,
    pub(super) link: LinkId,
    pub(super) port: Port,
}

impl<'a> Bed<'a> {
    pub(super) fn new(run: &Run<'a>) -> Result<Self, TesterError> {
        let lab = run.lab;
        check_switches(run)?;
        let edges = servers_with_edges(lab);
        let most = run.spec.receivers.iter().copied().max().unwrap_or(0) as usize;
        let name = lab.scenario.fabric.name();
        let Some((sender, others)) = edges.split_first().filter(|(_, others)| others.len() >= most) else {
            let others = edges.len().saturating_sub(1);
            return Err(TesterError::Refused(format!(
                "`receivers` is {most}, and fabric `{name}` has {others} servers beside the first in its VLAN"
            )));
        };
        let stations = in_turns(sender.1, others).into_iter().map(|server| Station::of(lab, server));
        Ok(Self {
            lab,
            sender: Station::of(lab, sender.0)?,
            stations: stations.collect::<Result<_, _>>()?,
            trunks: Trunks::of(lab)?,
        })
    }

    /// The receivers, of so many.
    pub(super) fn receivers(&self, count: u32) -> &[Station] {
        &self.stations[..(count as usize).min(self.stations.len())]
    }

    pub(super) fn name(&self, node: NodeId) -> &str {
        &self.lab.plan.node(node).name
    }
}

impl Station {
    fn of(lab: &Lab, node: NodeId) -> Result<Self, TesterError> {
        let address = lab.server_addresses().into_iter().find(|(server, _)| *server == node);
        let edge = lab.scenario.fabric.edge_of(node);
        let ((_, address), (edge, link)) = address.zip(edge).ok_or_else(|| {
            TesterError::Refused(format!("server `{}` has no address to join a group with", lab.plan.node(node).name))
        })?;
        let interface = interfaces(&lab.scenario, link, node).swap_remove(0).interface;
        let port = Port::open(&format!("{}:{interface}", lab.plan.node(node).namespace))?;
        Ok(Self { node, address, edge, link, port })
    }
}

/// Whether all switches hear who listens, or at least learn where stations are.
fn check_switches(run: &Run<'_>) -> Result<(), TesterError> {
    let scenario = &run.lab.scenario;
    let learns = |overlay: &Overlay| matches!(overlay, Overlay::RBridge { .. } | Overlay::Bridge { .. });
    let snoops = |overlay: Overlay| matches!(overlay, Overlay::Bridge { .. }) && prunes_groups(scenario);
    let overlays = scenario.overlays();
    if run.spec.link_down_at.is_some() && overlays.iter().any(|overlay| snoops(*overlay)) {
        let why = "`link_down_at` needs bridges that do not snoop: after a change of the tree they hear of groups when the next question \
                   is answered, two minutes later; leave `groups` of `switching` out";
        return Err(TesterError::Refused(why.to_owned()));
    }
    match overlays.into_iter().find(|overlay| !learns(overlay)) {
        Some(other) => Err(TesterError::Refused(format!(
            "a workload of kind `multicast` needs RBridges or bridges; fabric `{}` has switches of `{other}`",
            scenario.fabric.name()
        ))),
        None => Ok(()),
    }
}

/// Servers of the first one's VLAN with their edge switches.
fn servers_with_edges(lab: &Lab) -> Vec<(NodeId, NodeId)> {
    let fabric = &lab.scenario.fabric;
    let vlan = |link| access(&lab.scenario, link).map(|access| access.vlan);
    let all: Vec<_> = fabric.servers().filter_map(|server| Some((server, fabric.edge_of(server)?))).collect();
    let first = all.first().and_then(|(_, (_, link))| vlan(*link));
    all.into_iter().filter(|(_, (_, link))| vlan(*link) == first).map(|(server, (edge, _))| (server, edge)).collect()
}

/// Servers in the order in which they become receivers: in turns from behind every edge switch, first those that the sender is not
/// behind, and from the last of more than two switches only when the others have no more.
fn in_turns(sender_edge: NodeId, others: &[(NodeId, NodeId)]) -> Vec<NodeId> {
    let mut behind: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (server, edge) in others {
        behind.entry(*edge).or_default().push(*server);
    }
    let own = behind.remove(&sender_edge);
    let mut edges: Vec<Vec<NodeId>> = behind.into_values().collect();
    let last = if edges.len() > 1 { edges.pop() } else { None };
    edges.extend(own);
    let most = edges.iter().map(Vec::len).max().unwrap_or(0);
    let round = |turn: usize| edges.iter().filter_map(move |servers| servers.get(turn).copied()).collect::<Vec<_>>();
    (0..most).flat_map(round).chain(last.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_spread_and_one_switch_has_none_as_long_as_others_have_some() {
        let at = |server: u32, edge: u32| (NodeId(server), NodeId(edge));
        let order = |others: &[(NodeId, NodeId)]| -> Vec<u32> {
            in_turns(NodeId(1), others).into_iter().map(|server| server.0).collect()
        };
        // The sender is the fourth behind its switch.
        let four = [at(10, 1), at(11, 1), at(12, 1), at(20, 2), at(21, 2), at(30, 3), at(31, 3), at(40, 4), at(41, 4)];
        assert_eq!(order(&four), [20, 30, 10, 21, 31, 11, 12, 40, 41]);
        assert_eq!(order(&four[..5]), [20, 10, 21, 11, 12], "of two switches both have some");
        assert_eq!(order(&four[..3]), [10, 11, 12]);
        assert_eq!(order(&[]), [] as [u32; 0]);
    }
}
