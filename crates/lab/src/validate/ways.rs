//! Next hops of every switch to every other one, as the kernels or RBridges have them, beside those that the fabric's shortest paths
//! give.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use weft_scenario::engine::{Overlay, Progress};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::EcmpRoutes;
use weft_scenario::topology::Fabric;

use super::Finding;
use super::wanted::{Wanted, find_switch};
use crate::error::LabError;
use crate::up::Lab;
use crate::{routes, trill};

const POLL: Duration = Duration::from_millis(20);

/// Links by which a switch sends to another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways(BTreeMap<(NodeId, NodeId), BTreeSet<LinkId>>);

/// Everything about ways.
pub(super) fn check(
    lab: &Lab,
    broken: &BTreeSet<LinkId>,
    wanted: &Wanted,
    progress: &dyn Progress,
) -> Result<Vec<Finding>, LabError> {
    let fabric = &lab.scenario.fabric;
    let Some(mut ways) = Ways::read(lab)? else {
        let why = "its switches have no routes of their own".to_owned();
        return Ok(vec![Finding { check: "ways", subject: "all switches".into(), passed: None, found: why }]);
    };
    let expected = Ways::expected(fabric, broken);
    let start = Instant::now();
    let suffices = what_suffices(lab);
    let mut missing = expected.missing_in(&ways, fabric, suffices);
    while missing.is_some() && start.elapsed() < wanted.within() && !progress.interrupted() {
        std::thread::sleep(POLL);
        ways = Ways::read(lab)?.unwrap_or_default();
        missing = expected.missing_in(&ways, fabric, suffices);
    }
    let took = format!("{:.2} s of {} s", start.elapsed().as_secs_f64(), wanted.within_s);
    let pairs = format!("{} pairs of switches, all shortest ways", expected.0.len());
    let mut findings = vec![
        Finding::of("ways", "all switches", missing.is_none(), missing.clone().unwrap_or(pairs)),
        Finding::of("converged", "all switches", missing.is_none(), took),
        ways.loops(fabric),
    ];
    for width in &wanted.width {
        let (from, to) = (find_switch(lab, &width.from)?, find_switch(lab, &width.to)?);
        let found = ways.0.get(&(from, to)).map_or(0, BTreeSet::len);
        let subject = format!("{} to {}", width.from, width.to);
        findings.push(Finding::of("width", subject, found >= width.least, format!("{found} of {}", width.least)));
    }
    for path in &wanted.path {
        findings.push(ways.path(lab, path)?);
    }
    Ok(findings)
}

/// Whether the links that a switch uses are those that it has to a destination.
type Suffices = fn(used: &BTreeSet<LinkId>, shortest: &BTreeSet<LinkId>) -> bool;

fn all(used: &BTreeSet<LinkId>, shortest: &BTreeSet<LinkId>) -> bool {
    used == shortest
}

fn any(used: &BTreeSet<LinkId>, _: &BTreeSet<LinkId>) -> bool {
    !used.is_empty()
}

fn what_suffices(lab: &Lab) -> Suffices {
    match lab.scenario.overlay {
        _ if !counts_links(lab) => any,
        Overlay::RBridge { .. } => trill::uses_all,
        _ => all,
    }
}

/// Whether shortest means fewest links: costs of RBridges go by rates, and bridges between them are one link.
fn counts_links(lab: &Lab) -> bool {
    let fabric = &lab.scenario.fabric;
    let is_trunk = |link: &&weft_scenario::topology::Link| {
        [&link.a, &link.b].into_iter().all(|port| fabric.node(port.node).role.is_switch())
    };
    let rates: BTreeSet<u64> = fabric.links().iter().filter(is_trunk).map(|link| link.spec.rate.0).collect();
    let has_bridges = || !fabric.bridge_islands(lab.scenario.overlay).is_empty();
    !lab.scenario.overlay.forwards_frames() || (rates.len() <= 1 && !has_bridges())
}

impl Ways {
    /// As they are now; `None` where switches have none.
    fn read(lab: &Lab) -> Result<Option<Self>, LabError> {
        match lab.scenario.overlay {
            Overlay::RBridge { .. } => trill::ways(lab).map(|ways| Some(Self(ways))),
            overlay if overlay.forwards_frames() => Ok(None),
            _ => Self::routed(lab).map(Some),
        }
    }

    fn routed(lab: &Lab) -> Result<Self, LabError> {
        let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
        let mut ways = BTreeMap::new();
        for from in fabric.switches() {
            let table = routes::kernel_table(&lab.plan.node(from).namespace)?;
            let by_interface = |name: &String| {
                let mut links = fabric.links_of(from).iter();
                links.find(|link| fabric.link(**link).end_at(from).is_some_and(|port| port.interface == *name)).copied()
            };
            for to in fabric.switches().filter(|to| *to != from) {
                let interfaces = table.get(&addresses.la(to).to_string()).into_iter().flatten();
                let links: BTreeSet<LinkId> = interfaces.filter_map(by_interface).collect();
                if !links.is_empty() {
                    ways.insert((from, to), links);
                }
            }
        }
        Ok(Self(ways))
    }

    fn expected(fabric: &Fabric, broken: &BTreeSet<LinkId>) -> Self {
        let paths = EcmpRoutes::compute(fabric, broken);
        let pairs = fabric.switches().flat_map(|from| fabric.switches().map(move |to| (from, to)));
        let hops = pairs.filter(|(from, to)| from != to).map(|(from, to)| {
            let links: BTreeSet<LinkId> = paths.next_hops(from, to).into_iter().collect();
            ((from, to), links)
        });
        Self(hops.filter(|(_, links)| !links.is_empty()).collect())
    }

    /// What others do not have of these, in words.
    fn missing_in(&self, others: &Self, fabric: &Fabric, suffices: Suffices) -> Option<String> {
        let (name, none) = (|node: NodeId| &fabric.node(node).name, BTreeSet::new());
        self.0.iter().find_map(|((from, to), links)| {
            let found = others.0.get(&(*from, *to)).unwrap_or(&none);
            let said = || format!("{} has {} of {} next hops to {}", name(*from), found.len(), links.len(), name(*to));
            (!suffices(found, links)).then(said)
        })
    }

    /// Follows all next hops to each switch.
    fn loops(&self, fabric: &Fabric) -> Finding {
        let name = |node: &NodeId| fabric.node(*node).name.clone();
        let found = fabric.switches().find_map(|to| fabric.switches().find_map(|from| self.circle(fabric, from, to)));
        let said = found.as_ref().map(|circle| circle.iter().map(name).collect::<Vec<_>>().join(" -> "));
        Finding::of("loops", "all switches", found.is_none(), said.unwrap_or_else(|| "none".to_owned()))
    }

    /// A circle that a packet to a switch may go, if there is one.
    fn circle(&self, fabric: &Fabric, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        let mut cleared = BTreeSet::new();
        self.search(fabric, to, &mut vec![from], &mut cleared)
    }

    fn search(
        &self,
        fabric: &Fabric,
        to: NodeId,
        way: &mut Vec<NodeId>,
        cleared: &mut BTreeSet<NodeId>,
    ) -> Option<Vec<NodeId>> {
        let at = *way.last()?;
        if at == to || cleared.contains(&at) {
            return None;
        }
        for next in self.neighbours(fabric, at, to) {
            if let Some(place) = way.iter().position(|node| *node == next) {
                return Some(way[place..].iter().copied().chain([next]).collect());
            }
            way.push(next);
            let found = self.search(fabric, to, way, cleared);
            way.pop();
            if found.is_some() {
                return found;
            }
        }
        cleared.insert(at);
        None
    }

    fn neighbours(&self, fabric: &Fabric, at: NodeId, to: NodeId) -> BTreeSet<NodeId> {
        let links = self.0.get(&(at, to)).into_iter().flatten();
        links.filter_map(|link| fabric.link(*link).far_end(at)).map(|port| port.node).collect()
    }

    fn path(&self, lab: &Lab, wanted: &super::wanted::Path) -> Result<Finding, LabError> {
        let fabric = &lab.scenario.fabric;
        let (from, to) = (find_switch(lab, &wanted.from)?, find_switch(lab, &wanted.to)?);
        let subject = format!("{} to {}", wanted.from, wanted.to);
        let Some((nodes, hops)) = self.all_ways(fabric, from, to) else {
            return Ok(Finding::of("path", subject, false, "no way that ends"));
        };
        let named = |names: &[String]| names.iter().map(|name| find_switch(lab, name)).collect::<Result<Vec<_>, _>>();
        let (avoids, through) = (named(&wanted.avoids)?, named(&wanted.through)?);
        let is_short = wanted.most_hops.is_none_or(|most| hops <= most);
        let passed = is_short
            && avoids.iter().all(|node| !nodes.contains(node))
            && through.iter().all(|node| nodes.contains(node));
        let names: Vec<&str> = nodes.iter().map(|node| &*fabric.node(*node).name).collect();
        Ok(Finding::of("path", subject, passed, format!("{hops} hops over {}", names.join(", "))))
    }

    /// Switches on any way between two, and the links of the longest; `None`: it does not get there, or goes in circles.
    fn all_ways(&self, fabric: &Fabric, from: NodeId, to: NodeId) -> Option<(BTreeSet<NodeId>, usize)> {
        if self.circle(fabric, from, to).is_some() {
            return None;
        }
        let mut nodes = BTreeSet::from([from]);
        let (mut reached, mut hops) = (BTreeSet::from([from]), 0);
        while reached.iter().any(|node| *node != to) {
            let leaving: Vec<NodeId> = reached.iter().copied().filter(|node| *node != to).collect();
            reached = leaving.iter().flat_map(|node| self.neighbours(fabric, *node, to)).collect();
            if reached.is_empty() {
                return None;
            }
            nodes.extend(&reached);
            hops += 1;
        }
        Some((nodes, hops))
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{LeafSpineParams, leaf_spine};

    use super::*;

    fn bed() -> (Fabric, Ways) {
        let fabric = leaf_spine(&LeafSpineParams { spines: 2, leaves: 3, servers_per_leaf: 1, ..Default::default() });
        let fabric = fabric.unwrap();
        let ways = Ways::expected(&fabric, &BTreeSet::new());
        (fabric, ways)
    }

    fn switches(fabric: &Fabric) -> (Vec<NodeId>, Vec<NodeId>) {
        fabric.switches().partition(|node| fabric.node(*node).role == weft_scenario::topology::Role::Spine)
    }

    #[test]
    fn a_missing_and_a_surplus_way_are_named() {
        let (fabric, expected) = bed();
        let (spines, leaves) = switches(&fabric);
        assert_eq!(expected.missing_in(&expected.clone(), &fabric, all), None);
        let mut less = expected.clone();
        less.0.get_mut(&(leaves[0], leaves[1])).unwrap().pop_first();
        let said = expected.missing_in(&less, &fabric, all).unwrap();
        assert!(said.contains("has 1 of 2 next hops to"), "{said}");
        assert_eq!(expected.missing_in(&less, &fabric, any), None);
        let mut more = expected.clone();
        let over = |link: &&LinkId| fabric.link(**link).far_end(leaves[0]).unwrap().node == spines[1];
        let detour = fabric.links_of(leaves[0]).iter().copied().find(|link| over(&link)).unwrap();
        more.0.get_mut(&(leaves[0], spines[0])).unwrap().insert(detour);
        assert!(expected.missing_in(&more, &fabric, all).is_some());
    }

    #[test]
    fn a_circle_is_found_and_shown() {
        let (fabric, mut ways) = bed();
        assert_eq!(ways.loops(&fabric).passed, Some(true));
        let (spines, leaves) = switches(&fabric);
        // A spine that sends what is for one leaf to another, which has it from there.
        let back = *fabric
            .links_of(spines[0])
            .iter()
            .find(|link| fabric.link(**link).far_end(spines[0]).unwrap().node == leaves[1])
            .unwrap();
        ways.0.insert((spines[0], leaves[0]), BTreeSet::from([back]));
        let finding = ways.loops(&fabric);
        assert!(finding.passed == Some(false) && finding.found.contains(" -> "), "{finding:?}");
        assert_eq!(ways.all_ways(&fabric, leaves[1], leaves[0]), None);
    }

    #[test]
    fn all_ways_between_two_leaves_go_over_every_spine() {
        let (fabric, ways) = bed();
        let (spines, leaves) = switches(&fabric);
        let (nodes, hops) = ways.all_ways(&fabric, leaves[0], leaves[1]).unwrap();
        assert_eq!(hops, 2);
        assert!(spines.iter().all(|spine| nodes.contains(spine)) && !nodes.contains(&leaves[2]));
        let broken: BTreeSet<LinkId> = fabric.links_of(leaves[1]).iter().copied().collect();
        assert_eq!(Ways::expected(&fabric, &broken).all_ways(&fabric, leaves[0], leaves[1]), None);
    }
}
