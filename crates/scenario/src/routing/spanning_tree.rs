//! The spanning tree of bridged Ethernet, with every link at the same cost (IEEE 802.1D-2004 17.3): between any two
//! switches one path, and all other links idle.

use std::collections::BTreeSet;

use crate::id::{LinkId, NodeId};
use crate::topology::Fabric;

/// One path between any two switches that are connected. Where failures have split the fabric, each part has a tree.
#[derive(Clone, Debug)]
pub struct SpanningTree {
    /// Each node's place in its tree; `None` for hosts.
    places: Vec<Option<Place>>,
}

/// Where a switch is in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    root: NodeId,
    /// Hops to the root.
    depth: u32,
    /// The switch and link towards the root; `None` at the root.
    up: Option<(NodeId, LinkId)>,
}

impl SpanningTree {
    /// Computes the tree of a fabric without its failed links. The root is the switch with the lowest id. Every other
    /// switch reaches it by the fewest hops; of several ways it takes the neighbour with the lowest id, and of several
    /// links to that the lowest.
    pub fn compute(fabric: &Fabric, failed: &BTreeSet<LinkId>) -> Self {
        let mut tree = Self { places: vec![None; fabric.nodes().len()] };
        for root in fabric.switches() {
            if tree.place(root).is_none() {
                tree.grow(fabric, failed, root);
            }
        }
        tree
    }

    /// Level by level: every switch is reached by the first of its neighbours one level up, which are in order.
    fn grow(&mut self, fabric: &Fabric, failed: &BTreeSet<LinkId>, root: NodeId) {
        self.places[root.index()] = Some(Place { root, depth: 0, up: None });
        let mut level = BTreeSet::from([root]);
        for depth in 1.. {
            let mut below = BTreeSet::new();
            for at in &level {
                for link in fabric.links_of(*at).iter().filter(|link| !failed.contains(link)) {
                    let Some(far) = fabric.link(*link).far_end(*at).map(|port| port.node) else { continue };
                    if fabric.node(far).role.is_switch() && self.place(far).is_none() {
                        self.places[far.index()] = Some(Place { root, depth, up: Some((*at, *link)) });
                        below.insert(far);
                    }
                }
            }
            if below.is_empty() {
                return;
            }
            level = below;
        }
    }

    /// The link over which `switch` sends what is for `destination`. `None` if the two are the same, if there is no path,
    /// or if one of them is a host.
    pub fn next_hop(&self, switch: NodeId, destination: NodeId) -> Option<LinkId> {
        let (from, to) = (self.place(switch)?, self.place(destination)?);
        if switch == destination || from.root != to.root {
            return None;
        }
        match self.child_towards(switch, from.depth, destination) {
            Some(link) => Some(link),
            None => from.up.map(|(_, link)| link),
        }
    }

    /// Whether the tree has the link; the others are blocked.
    pub fn contains(&self, link: LinkId) -> bool {
        self.places.iter().flatten().any(|place| place.up.is_some_and(|(_, up)| up == link))
    }

    /// The link from `switch` down to the part of the tree that holds `destination`, if that is below it.
    fn child_towards(&self, switch: NodeId, depth: u32, destination: NodeId) -> Option<LinkId> {
        let mut place = self.place(destination)?;
        while place.depth > depth + 1 {
            place = self.place(place.up?.0)?;
        }
        place.up.filter(|(parent, _)| *parent == switch).map(|(_, link)| link)
    }

    fn place(&self, node: NodeId) -> Option<Place> {
        self.places.get(node.index()).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::routing::EcmpRoutes;
    use crate::topology::{ClosParams, LeafSpineParams, LinkParams, leaf_spine, vl2_clos};

    /// The switches on the way, both ends included; `None` if there is no path.
    fn path(fabric: &Fabric, tree: &SpanningTree, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        let mut way = vec![from];
        while *way.last()? != to {
            let at = *way.last()?;
            way.push(fabric.link(tree.next_hop(at, to)?).far_end(at)?.node);
            assert!(way.len() <= fabric.nodes().len(), "a loop: {way:?}");
        }
        Some(way)
    }

    fn links(fabric: &Fabric) -> impl Iterator<Item = LinkId> {
        (0..fabric.links().len() as u32).map(LinkId)
    }

    fn between_switches(fabric: &Fabric, link: LinkId) -> bool {
        let ends = [fabric.link(link).a.node, fabric.link(link).b.node];
        ends.iter().all(|node| fabric.node(*node).role.is_switch())
    }

    /// 4 leaves, 3 spines, two links between each: the first spine is the root, so only its first links carry anything.
    #[test]
    fn a_leaf_spine_is_left_with_one_spine() {
        let params = LeafSpineParams { spines: 3, leaves: 4, links_per_pair: 2, ..LeafSpineParams::default() };
        let fabric = leaf_spine(&params).unwrap();
        let tree = SpanningTree::compute(&fabric, &BTreeSet::new());
        let node = |name| fabric.find(name).unwrap();
        let kept: Vec<String> =
            links(&fabric).filter(|link| tree.contains(*link)).map(|link| fabric.link_name(link)).collect();
        // The other spines hang below the first leaf, but nothing goes through them.
        assert_eq!(
            kept,
            [
                "spine1:leaf1 - leaf1:spine1",
                "spine1:leaf2 - leaf2:spine1",
                "spine1:leaf3 - leaf3:spine1",
                "spine1:leaf4 - leaf4:spine1",
                "spine2:leaf1 - leaf1:spine2",
                "spine3:leaf1 - leaf1:spine3",
            ]
        );
        let way = path(&fabric, &tree, node("leaf2"), node("leaf4")).unwrap();
        assert_eq!(way, [node("leaf2"), node("spine1"), node("leaf4")]);
        let way = path(&fabric, &tree, node("spine3"), node("leaf2")).unwrap();
        assert_eq!(way, [node("spine3"), node("leaf1"), node("spine1"), node("leaf2")]);
    }

    #[test]
    fn another_tree_takes_over_when_the_root_is_cut_off() {
        let params = LeafSpineParams { spines: 2, leaves: 3, ..LeafSpineParams::default() };
        let fabric = leaf_spine(&params).unwrap();
        let node = |name| fabric.find(name).unwrap();
        let root_links: BTreeSet<LinkId> = fabric.links_of(node("spine1")).iter().copied().collect();
        let tree = SpanningTree::compute(&fabric, &root_links);
        let way = path(&fabric, &tree, node("leaf1"), node("leaf3")).unwrap();
        assert_eq!(way, [node("leaf1"), node("spine2"), node("leaf3")]);
        assert_eq!(tree.next_hop(node("spine1"), node("leaf1")), None);
        assert_eq!(tree.next_hop(node("leaf1"), node("spine1")), None);
    }

    #[test]
    fn hosts_and_strangers_have_no_next_hop() {
        let fabric = leaf_spine(&LeafSpineParams::default()).unwrap();
        let tree = SpanningTree::compute(&fabric, &BTreeSet::new());
        let (leaf, server) = (fabric.find("leaf1").unwrap(), fabric.find("s1").unwrap());
        for (from, to) in [(leaf, leaf), (leaf, server), (server, leaf), (NodeId(9999), leaf), (leaf, NodeId(9999))] {
            assert_eq!(tree.next_hop(from, to), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// Whatever fails: the kept links are one fewer than the switches of each part, so there is one path; it exists
        /// exactly where there is any; and it is the same back and forth.
        #[test]
        fn one_path_joins_whatever_is_connected(
            half in 1u32..4,
            d_i in 2u32..6,
            cut in proptest::collection::vec(0usize..200, 0..12),
        ) {
            prop_assume!(2 * half * d_i % 4 == 0);
            let params = ClosParams {
                aggregation_ports: 2 * half,
                intermediate_ports: d_i,
                servers_per_tor: 1,
                links: LinkParams::default(),
            };
            let fabric = vl2_clos(&params).unwrap();
            let failed: BTreeSet<LinkId> = cut.iter().map(|link| LinkId((link % fabric.links().len()) as u32)).collect();
            let tree = SpanningTree::compute(&fabric, &failed);
            let routes = EcmpRoutes::compute(&fabric, &failed);
            let kept: Vec<LinkId> = links(&fabric).filter(|link| tree.contains(*link)).collect();
            prop_assert!(kept.iter().all(|link| !failed.contains(link) && between_switches(&fabric, *link)));
            let roots = fabric.switches().filter(|switch| tree.place(*switch).unwrap().up.is_none()).count();
            prop_assert_eq!(kept.len() + roots, fabric.switches().count());
            for from in fabric.switches() {
                for to in fabric.switches() {
                    let way = path(&fabric, &tree, from, to);
                    prop_assert_eq!(way.is_some(), from == to || routes.distance(from, to).is_some());
                    let mut back = path(&fabric, &tree, to, from);
                    if let Some(back) = &mut back {
                        back.reverse();
                    }
                    prop_assert_eq!(way, back);
                }
            }
            for switch in fabric.switches() {
                let place = tree.place(switch).unwrap();
                prop_assert_eq!(Some(place.depth), routes.distance(switch, place.root), "the fewest hops to the root");
            }
        }
    }
}
