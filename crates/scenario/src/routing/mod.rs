//! Equal-cost shortest paths between switches: what OSPF with equal link costs and ECMP must arrive at; and the one tree
//! that bridges keep instead ([`SpanningTree`]).
//!
//! The lab compares the kernel's routes with this; the simulator forwards by it. Hosts forward nothing, so they are no
//! part of any path.

mod spanning_tree;

use std::collections::{BTreeSet, VecDeque};

use crate::id::{LinkId, NodeId};
use crate::topology::Fabric;

pub use spanning_tree::SpanningTree;

/// Distance of a switch that cannot be reached.
const UNREACHED: u16 = u16::MAX;

/// Shortest paths from every switch to every other, over the links that have not failed.
#[derive(Clone, Debug)]
pub struct EcmpRoutes {
    /// Each node's place among the switches; `None` for hosts.
    place: Vec<Option<usize>>,
    /// Each switch's links to other switches, with the place of the switch at the far end.
    neighbours: Vec<Vec<(LinkId, usize)>>,
    /// Hops from switch to switch, a row for each destination.
    hops: Vec<Vec<u16>>,
}

impl EcmpRoutes {
    /// Computes the paths of a fabric without its failed links. Every link costs the same.
    pub fn compute(fabric: &Fabric, failed: &BTreeSet<LinkId>) -> Self {
        let switches: Vec<NodeId> = fabric.switches().collect();
        let mut place = vec![None; fabric.nodes().len()];
        for (index, switch) in switches.iter().enumerate() {
            place[switch.index()] = Some(index);
        }
        let neighbours: Vec<Vec<(LinkId, usize)>> = switches
            .iter()
            .map(|switch| {
                let alive = fabric.links_of(*switch).iter().filter(|link| !failed.contains(link));
                alive
                    .filter_map(|link| Some((*link, place[fabric.link(*link).far_end(*switch)?.node.index()]?)))
                    .collect()
            })
            .collect();
        let hops = (0..switches.len()).map(|destination| hops_to(&neighbours, &[destination])).collect();
        Self { place, neighbours, hops }
    }

    /// The links over which `switch` may send what is for `destination`, in the order of the fabric's links. Empty if
    /// the two are the same, if there is no path, or if one of them is a host.
    pub fn next_hops(&self, switch: NodeId, destination: NodeId) -> Vec<LinkId> {
        match (self.place_of(switch), self.place_of(destination)) {
            (Some(from), Some(to)) => self.nearer(from, &self.hops[to]),
            _ => Vec::new(),
        }
    }

    /// The links over which `switch` may send what is for an address that all `owners` have (an anycast LA): those on
    /// shortest paths to the nearest owners. Empty if the switch is an owner itself or reaches none.
    pub fn anycast_next_hops(&self, switch: NodeId, owners: &[NodeId]) -> Vec<LinkId> {
        let owners: Vec<usize> = owners.iter().filter_map(|owner| self.place_of(*owner)).collect();
        match self.place_of(switch) {
            Some(from) => self.nearer(from, &hops_to(&self.neighbours, &owners)),
            None => Vec::new(),
        }
    }

    /// How many links a shortest path has. `None` if there is no path or one of the two is a host.
    pub fn distance(&self, switch: NodeId, destination: NodeId) -> Option<u32> {
        let hops = self.hops[self.place_of(destination)?][self.place_of(switch)?];
        (hops != UNREACHED).then_some(u32::from(hops))
    }

    fn place_of(&self, node: NodeId) -> Option<usize> {
        self.place.get(node.index()).copied().flatten()
    }

    fn nearer(&self, from: usize, hops: &[u16]) -> Vec<LinkId> {
        if hops[from] == UNREACHED {
            return Vec::new();
        }
        let neighbours = self.neighbours[from].iter();
        neighbours
            .filter(|(_, far)| u32::from(hops[*far]) + 1 == u32::from(hops[from]))
            .map(|(link, _)| *link)
            .collect()
    }
}

/// Breadth-first search from the destinations outward; a path of [`UNREACHED`] hops or more counts as none.
fn hops_to(neighbours: &[Vec<(LinkId, usize)>], destinations: &[usize]) -> Vec<u16> {
    let mut hops = vec![UNREACHED; neighbours.len()];
    let mut frontier: VecDeque<usize> = destinations.iter().copied().collect();
    for destination in destinations {
        hops[*destination] = 0;
    }
    while let Some(at) = frontier.pop_front() {
        let next = hops[at] + 1;
        for (_, far) in &neighbours[at] {
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
    use crate::topology::{ClosParams, LinkParams, Role, TestbedParams, vl2_clos, vl2_testbed};

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
