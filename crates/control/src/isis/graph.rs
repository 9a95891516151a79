//! The campus as a graph, and shortest paths over it (RFC 6325 section 4.2, ISO 10589 annex C).
//!
//! A link counts when both ends tell of it. A node that is overloaded is reached but not crossed; a link of the largest metric
//! carries LSPs and no paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_wire::isis::{METRIC_UNUSABLE, NodeId};

/// Nodes by their place in the order of their IDs.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) ids: Vec<NodeId>,
    pub(super) overloaded: Vec<bool>,
    /// For each node its neighbours in order, each once, with the least cost of sending to it.
    edges: Vec<Vec<(u32, u32)>>,
}

/// Distances from one node; nodes in the order in which they were settled.
#[derive(Debug)]
pub(super) struct Distances {
    to: Vec<u64>,
    pub(super) order: Vec<u32>,
}

/// What a node tells of itself: who it is, whether it is overloaded, its neighbours with their costs.
pub(super) type Told = (NodeId, bool, Vec<(NodeId, u32)>);

/// Distance of what cannot be reached.
const UNREACHED: u64 = u64::MAX;
/// Metrics are counted in steps of this, so that a step of metric 0 still leads away from the root. Only the way from
/// a shared link to its members is free.
const UNIT: u64 = 1 << 16;

/// A distance as the sum of metrics that it stands for.
pub(super) const fn metric(distance: u64) -> u64 {
    distance / UNIT
}

impl Graph {
    /// `told` are the nodes in order, with their neighbours and costs as they tell them.
    pub(super) fn new(told: Vec<Told>) -> Self {
        let ids: Vec<NodeId> = told.iter().map(|(id, ..)| *id).collect();
        let overloaded = told.iter().map(|(_, overloaded, _)| *overloaded).collect();
        let place = |id: &NodeId| ids.binary_search(id).ok().map(|at| at as u32);
        let one_way: Vec<Vec<(u32, u32)>> = told
            .iter()
            .map(|(_, _, neighbors)| {
                let known = neighbors.iter().filter_map(|(id, cost)| Some((place(id)?, *cost)));
                let mut known: Vec<_> = known.collect();
                known.sort_unstable();
                known.dedup_by_key(|(to, _)| *to);
                known
            })
            .collect();
        let tells = |from: u32, to: u32| one_way[from as usize].binary_search_by_key(&to, |(to, _)| *to).is_ok();
        let edges = one_way.iter().enumerate().map(|(from, list)| {
            let from = from as u32;
            list.iter().copied().filter(|(to, _)| *to != from && tells(*to, from)).collect()
        });
        let edges = edges.collect();
        Self { edges, ids, overloaded }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges[node].iter().map(|(to, _)| *to as usize)
    }

    /// Nodes that LSPs reach: also those that are overloaded, and over links that shortest paths do not use (RFC 7780
    /// section 2.1).
    pub(super) fn connected_to(&self, root: usize) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        let mut open = vec![root];
        seen[root] = true;
        while let Some(node) = open.pop() {
            for next in self.neighbors(node) {
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        seen
    }

    /// Shortest paths from `root` outwards (costs from root to node: RFC 7780 section 3.5).
    pub(super) fn distances(&self, root: usize) -> Distances {
        let mut to = vec![UNREACHED; self.len()];
        let mut order = Vec::with_capacity(self.len());
        let mut settled = vec![false; self.len()];
        let mut open = BinaryHeap::from([Reverse((0, false, root as u32))]);
        to[root] = 0;
        while let Some(Reverse((distance, _, node))) = open.pop() {
            let at = node as usize;
            if std::mem::replace(&mut settled[at], true) {
                continue;
            }
            order.push(node);
            if !self.is_crossed(at, root) {
                continue;
            }
            for (next, cost) in self.usable_edges(at) {
                let length = distance + self.length(at, *cost);
                if length < to[*next as usize] {
                    to[*next as usize] = length;
                    // Of nodes equally far, shared links come first: their members may be no farther.
                    let is_system = !self.ids[*next as usize].is_pseudonode();
                    open.push(Reverse((length, is_system, *next)));
                }
            }
        }
        Distances { to, order }
    }

    fn usable_edges(&self, from: usize) -> impl Iterator<Item = &(u32, u32)> {
        self.edges[from].iter().filter(|(_, cost)| *cost < METRIC_UNUSABLE)
    }

    fn is_crossed(&self, node: usize, root: usize) -> bool {
        node == root || !self.overloaded[node]
    }

    fn length(&self, from: usize, cost: u32) -> u64 {
        if cost == 0 && !self.ids[from].is_pseudonode() { 1 } else { u64::from(cost) * UNIT }
    }

    /// The nodes that `from` leads to on shortest paths from `root`.
    pub(super) fn steps<'a>(
        &'a self,
        root: usize,
        distances: &'a Distances,
        from: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let crossed = self.is_crossed(from, root) && distances.reaches(from);
        let leads =
            move |(to, cost): &&(u32, u32)| distances.to[from] + self.length(from, *cost) == distances.to[*to as usize];
        self.usable_edges(from).filter(move |_| crossed).filter(leads).map(|(to, _)| *to as usize)
    }

    /// The parent of every node on tree `number` of `root`: parent (number - 1) mod p of its p, in the order of their
    /// IDs (RFC 7780 section 3.4).
    pub(super) fn tree(&self, root: usize, number: u16) -> Vec<Option<u32>> {
        let distances = self.distances(root);
        let mut parents = vec![0_usize; self.len()];
        for node in 0..self.len() {
            self.steps(root, &distances, node).for_each(|child| parents[child] += 1);
        }
        // How many more of its parents each child lets pass; nodes come in the order of their IDs.
        let mut skip: Vec<usize> =
            parents.iter().map(|count| usize::from(number.max(1) - 1) % (*count).max(1)).collect();
        let mut chosen = vec![None; self.len()];
        for node in 0..self.len() {
            for child in self.steps(root, &distances, node).filter(|child| *child != root) {
                if skip[child] == 0 && chosen[child].is_none() {
                    chosen[child] = Some(node as u32);
                }
                skip[child] = skip[child].saturating_sub(1);
            }
        }
        chosen
    }
}

impl Distances {
    pub(super) fn reaches(&self, node: usize) -> bool {
        self.to[node] != UNREACHED
    }

    /// How far; only to be compared.
    pub(super) fn to(&self, node: usize) -> u64 {
        self.to[node]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> NodeId {
        NodeId([0, 0, 0, 0, 0, number, 0])
    }

    /// Undirected links of one cost.
    fn graph(nodes: u8, links: &[(u8, u8)], overloaded: &[u8]) -> Graph {
        let neighbors = |me: u8| {
            let ends = links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
            ends.filter(move |(a, _)| *a == me).map(|(_, b)| (id(b), 10)).collect()
        };
        Graph::new((1..=nodes).map(|node| (id(node), overloaded.contains(&node), neighbors(node))).collect())
    }

    fn leads(graph: &Graph, distances: &Distances, from: usize, to: usize) -> bool {
        graph.steps(0, distances, from).any(|next| next == to)
    }

    fn parents(graph: &Graph, root: u8, number: u16) -> Vec<u8> {
        let tree = graph.tree(graph.ids.binary_search(&id(root)).unwrap(), number);
        tree.iter().map(|parent| parent.map_or(0, |parent| graph.ids[parent as usize].0[5])).collect()
    }

    /// S1 and S2 each linked to S3, S4, S5, S6: the topology of the overhead paper. Vectors computed beforehand with
    /// another program from RFC 7780's text.
    #[test]
    fn trees_of_the_paper() {
        let links: Vec<(u8, u8)> = (3..=6).flat_map(|middle| [(1, middle), (2, middle)]).collect();
        let campus = graph(6, &links, &[]);
        assert_eq!(parents(&campus, 6, 1), [6, 6, 1, 1, 1, 0]);
        assert_eq!(parents(&campus, 5, 2), [5, 5, 2, 2, 0, 2]);
        assert_eq!(parents(&campus, 1, 1), [0, 3, 1, 1, 1, 1]);
        assert_eq!(parents(&campus, 1, 2), [0, 4, 1, 1, 1, 1]);
        assert_eq!(parents(&campus, 2, 1), [3, 0, 2, 2, 2, 2]);
        assert_eq!(parents(&campus, 2, 2), [4, 0, 2, 2, 2, 2]);
    }

    #[test]
    fn an_overloaded_node_is_a_leaf() {
        let square = [(1, 2), (2, 4), (1, 3), (3, 4)];
        assert_eq!(parents(&graph(4, &square, &[2]), 1, 1), [0, 1, 1, 3]);
        assert_eq!(parents(&graph(4, &square, &[2, 3]), 1, 1), [0, 1, 1, 0], "nobody leads to 4");
        assert_eq!(parents(&graph(4, &square, &[1]), 1, 1), [0, 1, 1, 2], "a root may always send");
        assert!(graph(4, &square, &[2, 3]).connected_to(0)[3], "but LSPs reach it");
    }

    #[test]
    fn a_link_needs_both_ends_and_a_usable_metric() {
        let told = |back: Vec<(NodeId, u32)>, cost| {
            let graph = Graph::new(vec![(id(1), false, vec![(id(2), cost), (id(9), 1)]), (id(2), false, back)]);
            graph.distances(0).reaches(1)
        };
        assert!(told(vec![(id(1), 5)], 5));
        assert!(!told(vec![], 5));
        assert!(!told(vec![(id(1), 5)], METRIC_UNUSABLE));
        assert!(told(vec![(id(1), METRIC_UNUSABLE)], 5), "the way back may be closed");
    }

    /// RFC 7780 section 2.1: data unreachable, but its LSPs come and its nickname counts.
    #[test]
    fn lsps_cross_links_that_shortest_paths_do_not() {
        let graph = |back: Vec<(NodeId, u32)>| {
            Graph::new(vec![(id(1), false, vec![(id(2), METRIC_UNUSABLE)]), (id(2), false, back)])
        };
        let closed = graph(vec![(id(1), METRIC_UNUSABLE)]);
        assert_eq!((closed.connected_to(0), closed.distances(0).reaches(1)), (vec![true, true], false));
        assert_eq!(graph(vec![]).connected_to(0), [true, false], "both ends have to tell of it");
    }

    /// Costs from the root outwards decide (RFC 7780 section 3.5); by those towards the root, 4's parent were 3.
    #[test]
    fn a_tree_goes_by_the_costs_away_from_its_root() {
        let told = |number, neighbors: &[(u8, u32)]| {
            (id(number), false, neighbors.iter().map(|(to, cost)| (id(*to), *cost)).collect())
        };
        let campus = Graph::new(vec![
            told(1, &[(2, 10), (3, 10)]),
            told(2, &[(1, 30), (4, 10)]),
            told(3, &[(1, 10), (4, 20)]),
            told(4, &[(2, 10), (3, 10)]),
        ]);
        assert_eq!(parents(&campus, 1, 1), [0, 1, 1, 2]);
        assert_eq!(parents(&campus, 4, 1), [3, 4, 4, 0]);
    }

    #[test]
    fn parallel_links_count_once_and_the_cheapest_of_them() {
        let links = vec![(id(2), 30), (id(2), 10), (id(3), 5)];
        let back = |cost| vec![(id(1), cost)];
        let graph = Graph::new(vec![
            (id(1), false, links),
            (id(2), false, [back(10), vec![(id(3), 5)]].concat()),
            (id(3), false, [back(5), vec![(id(2), 5)]].concat()),
        ]);
        let distances = graph.distances(0);
        assert_eq!(distances.to(1), 10 * UNIT);
        assert!(leads(&graph, &distances, 0, 1) && leads(&graph, &distances, 2, 1));
    }

    /// A shared link between 1, 2 and 3, told of by its pseudonode, beside a point-to-point link of the same cost.
    #[test]
    fn a_shared_link_costs_nothing_inward() {
        let shared = NodeId([0, 0, 0, 0, 0, 3, 1]);
        let graph = Graph::new(vec![
            (id(1), false, vec![(id(2), 10), (shared, 10)]),
            (id(2), false, vec![(id(1), 10), (shared, 10)]),
            (id(3), false, vec![(shared, 10)]),
            (shared, false, vec![(id(1), 0), (id(2), 0), (id(3), 0)]),
        ]);
        let distances = graph.distances(0);
        assert_eq!(distances.to(2), 10 * UNIT);
        assert!(leads(&graph, &distances, 0, 1) && leads(&graph, &distances, 3, 1), "both ways to 2 are equal");
    }

    #[test]
    fn metric_zero_between_systems_makes_no_circle() {
        let graph = Graph::new(vec![
            (id(1), false, vec![(id(2), 0), (id(3), 0)]),
            (id(2), false, vec![(id(1), 0), (id(3), 0)]),
            (id(3), false, vec![(id(1), 0), (id(2), 0)]),
        ]);
        assert_eq!(parents(&graph, 1, 1), [0, 1, 1]);
    }
}
