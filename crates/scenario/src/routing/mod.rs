//! Equal-cost shortest paths between switches: what OSPF with equal link costs and ECMP must arrive at; and the one tree
//! that bridges keep instead ([`SpanningTree`]).
//!
//! The lab compares the kernel's routes with this; the simulator forwards by it. Hosts forward nothing, so they are no
//! part of any path.

mod families;
mod spanning_tree;

use std::collections::{BTreeSet, VecDeque};

use crate::id::{LinkId, NodeId};
use crate::topology::Fabric;

use families::Families;

pub use spanning_tree::SpanningTree;

/// Distance of a switch that cannot be reached.
const UNREACHED: u16 = u16::MAX;
/// Place of a node that is no switch.
const NO_PLACE: u32 = u32::MAX;

/// Shortest paths from every switch to every other, over the links that have not failed.
///
/// Distances are kept for *families*, whose switches have the same neighbours: to all others these are alike. The paper's
/// largest network has 5,400 switches and 145 families, so that its distances take 42 kB and no 58 MB.
#[derive(Clone, Debug)]
pub struct EcmpRoutes {
    /// Each node's place among the switches; [`NO_PLACE`] for hosts.
    place: Vec<u32>,
    /// Each switch's links to other switches, with the place of the switch at the far end.
    neighbours: Vec<Vec<(LinkId, usize)>>,
    families: Families,
    /// Hops from family to another family, a row for each destination.
    hops: Vec<Vec<u16>>,
}

impl EcmpRoutes {
    /// Computes the paths of a fabric without its failed links. Every link costs the same.
    pub fn compute(fabric: &Fabric, failed: &BTreeSet<LinkId>) -> Self {
        let switches: Vec<NodeId> = fabric.switches().collect();
        let mut place = vec![NO_PLACE; fabric.nodes().len()];
        for (index, switch) in (0..).zip(&switches) {
            place[switch.index()] = index;
        }
        let neighbour = |switch: NodeId, link: LinkId| {
            let far = place[fabric.link(link).far_end(switch)?.node.index()];
            (far != NO_PLACE).then_some((link, far as usize))
        };
        let neighbours: Vec<Vec<(LinkId, usize)>> = switches
            .iter()
            .map(|switch| {
                let alive = fabric.links_of(*switch).iter().filter(|link| !failed.contains(link));
                alive.filter_map(|link| neighbour(*switch, *link)).collect()
            })
            .collect();
        let families = Families::of(&switches, &neighbours);
        let between = families.neighbours(&neighbours);
        let hops = (0..between.len()).map(|destination| hops_to(&between, destination)).collect();
        Self { place, neighbours, families, hops }
    }

    /// The links over which `switch` may send what is for `destination`, in the order of the fabric's links. Empty if
    /// the two are the same, if there is no path, or if one of them is a host.
    pub fn next_hops(&self, switch: NodeId, destination: NodeId) -> Vec<LinkId> {
        match (self.place_of(switch), self.place_of(destination)) {
            (Some(from), Some(to)) => self.nearer(from, |at| self.hops_between(at, to)),
            _ => Vec::new(),
        }
    }

    /// The links over which `switch` may send what is for an address that all `owners` have (an anycast LA): those on
    /// shortest paths to the nearest owners. Empty if the switch is an owner itself or reaches none.
    pub fn anycast_next_hops(&self, switch: NodeId, owners: &[NodeId]) -> Vec<LinkId> {
        let owners: Vec<usize> = owners.iter().filter_map(|owner| self.place_of(*owner)).collect();
        let hops_to_any = |at| owners.iter().map(|owner| self.hops_between(at, *owner)).min().unwrap_or(UNREACHED);
        match self.place_of(switch) {
            Some(from) => self.nearer(from, hops_to_any),
            None => Vec::new(),
        }
    }

    /// How many links a shortest path has. `None` if there is no path or one of the two is a host.
    pub fn distance(&self, switch: NodeId, destination: NodeId) -> Option<u32> {
        let hops = self.hops_between(self.place_of(switch)?, self.place_of(destination)?);
        (hops != UNREACHED).then_some(u32::from(hops))
    }

    /// How many families of switches with the same neighbours there are.
    pub fn families(&self) -> usize {
        self.families.count()
    }

    /// The family of a switch, and the place of the switch in it. `None` for hosts.
    ///
    /// A switch that is not a neighbour of a family has the same next hops to all members but itself.
    pub fn family_of(&self, switch: NodeId) -> Option<(usize, usize)> {
        self.place_of(switch).map(|place| self.families.member(place))
    }

    /// The members of a family, by their places in it.
    pub fn members(&self, family: usize) -> &[NodeId] {
        self.families.members(family)
    }

    fn place_of(&self, node: NodeId) -> Option<usize> {
        self.place.get(node.index()).filter(|place| **place != NO_PLACE).map(|place| *place as usize)
    }

    /// Hops between switches by their places.
    fn hops_between(&self, from: usize, to: usize) -> u16 {
        let [(near, _), (far, _)] = [from, to].map(|place| self.families.member(place));
        match near == far {
            _ if from == to => 0,
            // Members of a family are never linked; they reach each other over any neighbour.
            true if self.neighbours[from].is_empty() => UNREACHED,
            true => 2,
            false => self.hops[far][near],
        }
    }

    /// The links of a switch to those that are one hop nearer to a destination to which there are so many hops.
    fn nearer(&self, from: usize, hops: impl Fn(usize) -> u16) -> Vec<LinkId> {
        let own = hops(from);
        if own == UNREACHED {
            return Vec::new();
        }
        let neighbours = self.neighbours[from].iter();
        neighbours.filter(|(_, far)| u32::from(hops(*far)) + 1 == u32::from(own)).map(|(link, _)| *link).collect()
    }
}

/// Breadth-first search from the destination outward; a path of [`UNREACHED`] hops or more counts as none.
fn hops_to(neighbours: &[Vec<usize>], destination: usize) -> Vec<u16> {
    let mut hops = vec![UNREACHED; neighbours.len()];
    let mut frontier = VecDeque::from([destination]);
    hops[destination] = 0;
    while let Some(at) = frontier.pop_front() {
        let next = hops[at] + 1;
        for far in &neighbours[at] {
            if hops[*far] == UNREACHED && next < UNREACHED {
                hops[*far] = next;
                frontier.push_back(*far);
            }
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology::{
        ClosParams, Link, LinkParams, LinkSpec, Node, Port, Role, TestbedParams, vl2_clos, vl2_testbed,
    };

    fn bed() -> Fabric {
        vl2_testbed(&TestbedParams::default()).unwrap()
    }

    fn node(fabric: &Fabric, name: &str) -> NodeId {
        fabric.find(name).unwrap()
    }

    /// The nodes that a switch may send to next, by name.
    fn via(fabric: &Fabric, switch: &str, links: Vec<LinkId>) -> Vec<String> {
        let far = |link| fabric.link(link).far_end(node(fabric, switch)).unwrap().node;
        links.into_iter().map(|link| fabric.node(far(link)).name.clone()).collect()
    }

    fn links_of(fabric: &Fabric, name: &str) -> BTreeSet<LinkId> {
        fabric.links_of(node(fabric, name)).iter().copied().collect()
    }

    #[test]
    fn the_test_bed_spreads_as_the_paper_draws_it() {
        let fabric = bed();
        let routes = EcmpRoutes::compute(&fabric, &BTreeSet::new());
        let next = |from: &str, to: &str| via(&fabric, from, routes.next_hops(node(&fabric, from), node(&fabric, to)));
        assert_eq!(next("tor1", "int2"), ["agg1", "agg2"]);
        assert_eq!(next("agg3", "int2"), ["int2"]);
        assert_eq!(next("int1", "tor3"), ["agg1", "agg3"]);
        assert_eq!(next("tor1", "tor2"), ["agg2"], "the one Aggregation that both have");
        assert_eq!(next("tor1", "agg3"), ["agg1", "agg2"]);
        assert_eq!(next("agg1", "agg2"), ["int1", "int2", "int3", "tor1", "tor4"]);
        assert_eq!(next("tor1", "tor1"), [""; 0]);
        assert_eq!(next("s1", "int1"), [""; 0]);
        assert_eq!(routes.next_hops(node(&fabric, "tor1"), node(&fabric, "s1")), []);
        assert_eq!(routes.distance(node(&fabric, "tor1"), node(&fabric, "int3")), Some(2));
        assert_eq!(routes.distance(node(&fabric, "tor1"), node(&fabric, "s1")), None);
        assert_eq!(routes.next_hops(NodeId(9999), NodeId(0)), []);
    }

    #[test]
    fn the_anycast_address_is_two_hops_from_every_tor_over_both_uplinks() {
        let fabric = bed();
        let routes = EcmpRoutes::compute(&fabric, &BTreeSet::new());
        let owners: Vec<NodeId> = fabric.with_role(Role::Intermediate).collect();
        let next = |from: &str| via(&fabric, from, routes.anycast_next_hops(node(&fabric, from), &owners));
        assert_eq!(next("tor3"), ["agg3", "agg1"]);
        assert_eq!(next("agg2"), ["int1", "int2", "int3"]);
        assert_eq!((next("int1"), next("s1")), (vec![], vec![]));
        assert_eq!(routes.anycast_next_hops(node(&fabric, "tor1"), &[]), []);
        assert_eq!(
            via(&fabric, "agg2", routes.anycast_next_hops(node(&fabric, "agg2"), &owners[1..])),
            ["int2", "int3"]
        );
    }

    #[test]
    fn failed_links_are_avoided_and_cut_off_switches_have_no_route() {
        let fabric = bed();
        let next = |failed: &BTreeSet<LinkId>, from: &str, to: &str| {
            let routes = EcmpRoutes::compute(&fabric, failed);
            via(&fabric, from, routes.next_hops(node(&fabric, from), node(&fabric, to)))
        };
        let without_int1 = links_of(&fabric, "int1");
        assert_eq!(next(&without_int1, "agg1", "agg3"), ["int2", "int3", "tor3"]);
        assert_eq!(next(&without_int1, "agg1", "int1"), [""; 0]);
        let without_agg2 = links_of(&fabric, "agg2");
        assert_eq!(next(&without_agg2, "tor1", "int1"), ["agg1"]);
        assert_eq!(next(&without_agg2, "tor1", "tor2"), ["agg1"], "over an Intermediate or tor3 now");
        let routes = EcmpRoutes::compute(&fabric, &without_agg2);
        assert_eq!(routes.distance(node(&fabric, "tor1"), node(&fabric, "tor2")), Some(4));
    }

    #[test]
    fn the_papers_largest_network_is_computed() {
        let params = ClosParams { servers_per_tor: 1, ..ClosParams::with_ports(72) };
        let fabric = vl2_clos(&params).unwrap();
        let routes = EcmpRoutes::compute(&fabric, &BTreeSet::new());
        let ends = [node(&fabric, "tor1"), node(&fabric, "tor1296")];
        assert_eq!(routes.distance(ends[0], ends[1]), Some(4));
        assert_eq!(routes.next_hops(ends[0], ends[1]).len(), 2);
        assert_eq!(routes.next_hops(node(&fabric, "agg1"), ends[1]).len(), 36);
    }

    /// A network of RBridges: each but the first is linked to the earlier one that `parents` names, with more links between
    /// those that `more` names. The last `copies` are linked as the first that has none of them as its child.
    fn network(parents: &[usize], more: &[(usize, usize)], copies: usize) -> Fabric {
        let mut pairs: Vec<(usize, usize)> =
            parents.iter().zip(1..).map(|(parent, node)| (parent % node, node)).collect();
        let count = parents.len() + 1;
        pairs.extend(more.iter().map(|(a, b)| (a % count, b % count)).filter(|(a, b)| a != b));
        for copy in count..count + copies {
            let of_last = pairs.iter().filter(|(a, b)| *a == count - 1 || *b == count - 1);
            let far: Vec<usize> = of_last.map(|(a, b)| a + b - (count - 1)).filter(|far| *far < count).collect();
            pairs.extend(far.into_iter().map(|far| (far, copy)));
        }
        let node = |number| Node { name: format!("rb{number}"), role: Role::Rbridge };
        let nodes = (0..count + copies).map(node).collect();
        let port = |node: usize, link: usize| Port { node: NodeId(node as u32), interface: format!("p{link}") };
        let LinkParams { core_rate: rate, core_buffer: buffer, delay, .. } = LinkParams::default();
        let spec = LinkSpec { rate, buffer, mtu_bytes: 1_500, delay };
        let link = |(link, (a, b)): (usize, &(usize, usize))| Link {
            a: port(*a, link),
            b: port(*b, link),
            spec: spec.clone(),
        };
        Fabric::new("net", nodes, pairs.iter().enumerate().map(link).collect()).unwrap()
    }

    /// Hops from every node to the nearest owner by rounds of relaxation: knows nothing of families or searches.
    fn rounds(fabric: &Fabric, failed: &BTreeSet<LinkId>, owners: &[NodeId]) -> Vec<Option<u32>> {
        let mut hops: Vec<Option<u32>> = fabric.ids().map(|node| owners.contains(&node).then_some(0)).collect();
        for _ in fabric.nodes() {
            for (number, link) in (0..).zip(fabric.links()) {
                if failed.contains(&LinkId(number)) {
                    continue;
                }
                for [near, far] in [[&link.a, &link.b], [&link.b, &link.a]].map(|ends| ends.map(|end| end.node.index()))
                {
                    let over = hops[far].map(|hops| hops + 1);
                    hops[near] = [hops[near], over].into_iter().flatten().min();
                }
            }
        }
        hops
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

        /// On random networks with random faults, next hops to switches and to groups are those that lead one hop nearer.
        #[test]
        fn families_change_no_route(
            parents in proptest::collection::vec(0usize..20, 1..9),
            more in proptest::collection::vec((0usize..20, 0usize..20), 0..12),
            copies in 0usize..4,
            cut in proptest::collection::vec(0usize..200, 0..5),
            group in proptest::collection::vec(0usize..20, 0..4),
        ) {
            let fabric = network(&parents, &more, copies);
            let failed: BTreeSet<LinkId> = cut.iter().map(|link| LinkId((link % fabric.links().len()) as u32)).collect();
            let routes = EcmpRoutes::compute(&fabric, &failed);
            let group: Vec<NodeId> = group.iter().map(|node| NodeId((node % fabric.nodes().len()) as u32)).collect();
            let targets = fabric.ids().map(|node| vec![node]).chain([group]);
            for owners in targets {
                let hops = rounds(&fabric, &failed, &owners);
                for from in fabric.ids() {
                    let nearer = |link: &LinkId| {
                        let far = fabric.link(*link).far_end(from).unwrap().node;
                        hops[far.index()].is_some_and(|far| Some(far + 1) == hops[from.index()])
                    };
                    let alive = fabric.links_of(from).iter().filter(|link| !failed.contains(link));
                    let expected: Vec<LinkId> = alive.filter(|link| nearer(link)).copied().collect();
                    prop_assert_eq!(routes.anycast_next_hops(from, &owners), expected.clone());
                    if let [to] = owners[..] {
                        prop_assert_eq!(routes.next_hops(from, to), expected);
                        prop_assert_eq!(routes.distance(from, to), hops[from.index()]);
                    }
                }
            }
            prop_assert!(routes.families() <= fabric.nodes().len());
        }
    }

    #[test]
    fn the_papers_largest_network_has_few_families_and_a_fault_adds_two() {
        let fabric = vl2_clos(&ClosParams { servers_per_tor: 1, ..ClosParams::with_ports(144) }).unwrap();
        let routes = EcmpRoutes::compute(&fabric, &BTreeSet::new());
        assert_eq!(routes.families(), 72 + 72 + 1, "ToRs, pairs of Aggregations, Intermediates");
        let tor = node(&fabric, "tor1");
        let failed = BTreeSet::from([fabric.links_of(tor)[0]]);
        let routes = EcmpRoutes::compute(&fabric, &failed);
        assert_eq!(routes.families(), 145 + 2, "the ToR and its Aggregation stand for themselves");
        assert_eq!(via(&fabric, "tor1", routes.next_hops(tor, node(&fabric, "tor2"))), ["agg2"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// Whatever fails: following any next hop brings a packet one hop nearer, and every nearer neighbour is used.
        #[test]
        fn every_next_hop_is_one_nearer(half in 1u32..5, d_i in 2u32..7, cut in proptest::collection::vec(0usize..200, 0..12)) {
            prop_assume!(2 * half * d_i % 4 == 0);
            let params = ClosParams {
                aggregation_ports: 2 * half,
                intermediate_ports: d_i,
                servers_per_tor: 1,
                links: LinkParams::default(),
            };
            let fabric = vl2_clos(&params).unwrap();
            let failed: BTreeSet<LinkId> = cut.iter().map(|link| LinkId((link % fabric.links().len()) as u32)).collect();
            let routes = EcmpRoutes::compute(&fabric, &failed);
            for from in fabric.switches() {
                for to in fabric.switches() {
                    let next = routes.next_hops(from, to);
                    prop_assert!(next.iter().all(|link| !failed.contains(link)));
                    prop_assert_eq!(next.is_empty(), from == to || routes.distance(from, to).is_none());
                    let far = |link: &LinkId| fabric.link(*link).far_end(from).unwrap().node;
                    let nearer = |link: &LinkId| {
                        routes.distance(far(link), to).is_some_and(|far| Some(far + 1) == routes.distance(from, to))
                    };
                    let expected: Vec<LinkId> =
                        fabric.links_of(from).iter().filter(|link| !failed.contains(link) && nearer(link)).copied().collect();
                    prop_assert_eq!(next, expected);
                    prop_assert_eq!(routes.distance(from, to), routes.distance(to, from));
                }
            }
        }
    }
}
