//! What the data plane needs: next hops, tree branches, reverse-path checks.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::isis::SystemId;
use weft_wire::vlan::VlanSet;

use super::campus::{Campus, TreeRoot};
use super::config::PortId;
use super::graph::metric;
use super::io::{Hop, TreePort};

/// A link to a neighbour whose adjacency is in Report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) hop: Hop,
    pub(super) neighbor: SystemId,
    pub(super) cost: u32,
    /// Our extended circuit ID and the neighbour's.
    pub(super) circuits: (u32, u32),
}

/// Unicast routes and distribution trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// Equally good next hops in the order of their ports, by egress nickname; own nicknames have none.
    pub routes: BTreeMap<u16, Vec<Hop>>,
    /// What the way to each egress of `routes` costs: the sum of its links' metrics.
    pub costs: BTreeMap<u16, u64>,
    /// Trees by the nickname of their root.
    pub trees: BTreeMap<u16, TreeState>,
}

/// One distribution tree from where we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeState {
    /// Its number in the campus, from 1.
    pub number: u16,
    /// Hops to the farthest RBridge: the least hop count of an ingress (RFC 6325 section 3.6).
    pub depth: u16,
    /// Where copies go.
    pub ports: Vec<TreePort>,
    /// Where frames of each ingress nickname must come from.
    pub rpf: BTreeMap<u16, PortId>,
}

impl Forwarding {
    pub(super) fn compute(campus: &Campus<'_>, links: &[Link], trees_max: u16) -> Self {
        let trees = campus.trees(trees_max).into_iter();
        let trees = trees.map(|root| (root.nickname, tree(campus, links, root))).collect();
        let mut forwarding = Self { trees, ..Self::default() };
        forwarding.set_routes(campus, links);
        forwarding
    }

    /// Every equal-cost first hop to every nickname. A nickname that two hold meanwhile leads to the nearest of them
    /// (RFC 6325 section 4.2.6 attaches it to both).
    fn set_routes(&mut self, campus: &Campus<'_>, links: &[Link]) {
        let hops = first_hops(campus, links);
        for (nickname, holders) in &campus.holders {
            let reached = || holders.iter().map(|holder| holder.node).filter(|node| campus.from_me.reaches(*node));
            let Some(nearest) = reached().map(|node| campus.from_me.to(node)).min() else { continue };
            let mut set = BTreeSet::new();
            for node in reached().filter(|node| campus.from_me.to(*node) == nearest) {
                let at = |index: &usize| hops.bits[node * hops.words + index / 64] & (1 << (index % 64)) != 0;
                set.extend((0..links.len()).filter(at).map(|index| links[index].hop));
            }
            if !set.is_empty() {
                self.routes.insert(*nickname, set.into_iter().collect());
                self.costs.insert(*nickname, metric(nearest));
            }
        }
    }
}

/// The cheapest links to each neighbour: all of them are equally good first hops.
fn cheapest(links: &[Link], neighbor: SystemId) -> impl Iterator<Item = (usize, &Link)> {
    let to = move |link: &&Link| link.neighbor == neighbor;
    let least = links.iter().filter(to).map(|link| link.cost).min().unwrap_or(0);
    links.iter().enumerate().filter(move |(_, link)| link.neighbor == neighbor && link.cost == least)
}

/// For each node one bit for each link that begins a shortest path to it.
struct FirstHops {
    words: usize,
    bits: Vec<u64>,
}

fn first_hops(campus: &Campus<'_>, links: &[Link]) -> FirstHops {
    let (graph, me, words) = (&campus.graph, campus.me, links.len().div_ceil(64));
    let mut bits = vec![0_u64; graph.len() * words];
    for node in campus.from_me.order.iter().map(|node| *node as usize) {
        for next in graph.steps(me, &campus.from_me, node) {
            if node == me {
                for (index, _) in cheapest(links, graph.ids[next].system()) {
                    bits[next * words + index / 64] |= 1 << (index % 64);
                }
            } else {
                for word in 0..words {
                    let inherited = bits[node * words + word];
                    bits[next * words + word] |= inherited;
                }
            }
        }
    }
    FirstHops { words, bits }
}

/// One tree as we see it: every branch begins at a port of ours; what a branch holds comes in there and is wanted there.
fn tree(campus: &Campus<'_>, links: &[Link], root: TreeRoot) -> TreeState {
    let (graph, me) = (&campus.graph, campus.me);
    let parents = graph.tree(root.node, root.number);
    let mut state = TreeState { number: root.number, ..TreeState::default() };
    if me != root.node && parents[me].is_none() {
        return state;
    }
    let mut on_tree: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent.map(|parent| parent as usize) {
            on_tree[node].push(parent);
            on_tree[parent].push(node);
        }
    }
    let mut behind: Vec<Option<PortId>> = vec![None; graph.len()];
    for &first in &on_tree[me] {
        let Some(port) = tree_link(campus, links, graph.ids[first].system()) else { continue };
        let (mut vlans, mut ring, mut depth) = (VlanSet::default(), vec![(first, me)], 0);
        while !ring.is_empty() {
            depth += 1;
            let mut next_ring = Vec::new();
            for (node, from) in ring {
                behind[node] = Some(port);
                campus.add_vlans(node, &mut vlans);
                next_ring.extend(on_tree[node].iter().filter(|next| **next != from).map(|next| (*next, node)));
            }
            ring = next_ring;
        }
        state.depth = state.depth.max(depth);
        state.ports.push(TreePort { port, vlans });
    }
    state.ports.sort_by_key(|branch| branch.port);
    let owners = campus.holders.keys().filter_map(|nickname| Some((*nickname, campus.owner(*nickname)?.node)));
    state.rpf = owners.filter_map(|(nickname, node)| Some((nickname, behind[node]?))).collect();
    state
}

/// Of parallel links, the one that carries trees: the highest circuit ID as assigned by the end with the higher system
/// ID, whatever the links cost (RFC 6325 section 4.5.2, "parallel link check"). Both ends come to the same one.
fn tree_link(campus: &Campus<'_>, links: &[Link], neighbor: SystemId) -> Option<PortId> {
    let mine_counts = campus.graph.ids[campus.me].system() > neighbor;
    let circuit = |link: &Link| if mine_counts { link.circuits.0 } else { link.circuits.1 };
    let parallel = links.iter().filter(|link| link.neighbor == neighbor);
    parallel.max_by_key(|link| (circuit(link), link.hop.port)).map(|link| link.hop.port)
}
