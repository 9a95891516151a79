//! What the data plane needs: next hops, tree branches, reverse-path checks.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::isis::{NodeId, SystemId};
use weft_wire::listener::Listeners;
use weft_wire::vlan::VlanSet;

use super::campus::{Campus, TreeRoot};
use super::config::PortId;
use super::graph::{Graph, metric};
use super::io::{Hop, TreePort};

/// A link to a neighbour whose adjacency is in Report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) hop: Hop,
    pub(super) neighbor: SystemId,
    /// What our LSP tells of: the neighbour, or the shared link that leads to it.
    pub(super) via: NodeId,
    pub(super) cost: u32,
    /// Our extended circuit ID and the neighbour's.
    pub(super) circuits: (u32, u32),
    /// The DRB's name for a shared link, also where no LSP tells of it.
    pub(super) lan_id: Option<NodeId>,
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
    /// The trees of frames that we bring in, by their roots: those of least cost from us, as soon as our LSP has announced them.
    pub own_trees: BTreeSet<u16>,
    /// VLANs in which stations are behind each nickname of others.
    pub served: BTreeMap<u16, Vec<Served>>,
    /// We are overloaded: what is known here of trees may be wrong (RFC 7780 section 2.3.2).
    pub overloaded: bool,
    /// Then, neighbours that are not: they may know what has no route here (RFC 7780 sections 2.3.1, 2.4.1).
    pub relays: Vec<Hop>,
}

/// VLANs in which an RBridge has stations, as its LSP says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub first: u16,
    pub last: u16,
    /// How often it has ceased to be the forwarder of one of them.
    pub lost: u32,
}

impl Served {
    /// Whether a station that was behind an RBridge need not be there any more: the RBridge serves its VLAN no longer, or has
    /// ceased to do so meanwhile (RFC 6325 section 4.8.3).
    pub fn has_lost(before: &[Self], now: &[Self], vlan: u16) -> bool {
        let said = |all: &[Self]| {
            let mut ranges = all.iter().filter(|range| (range.first..=range.last).contains(&vlan));
            ranges.next().map(|range| range.lost)
        };
        said(before).is_some() && said(before) != said(now)
    }
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
    pub(super) fn compute(campus: &Campus<'_>, links: &[Link], roots: &[TreeRoot]) -> Self {
        let trees: BTreeMap<u16, TreeState> =
            roots.iter().map(|root| (root.nickname, tree(campus, links, *root))).collect();
        let mut own_trees: BTreeSet<u16> = campus.announced_trees().filter(|root| trees.contains_key(root)).collect();
        if own_trees.is_empty() {
            own_trees = campus.nearest_trees(roots, 1);
        }
        let overloaded = campus.graph.overloaded[campus.me];
        let mut forwarding = Self { trees, own_trees, served: campus.served(), overloaded, ..Self::default() };
        forwarding.set_routes(campus, links);
        if overloaded {
            let relays: BTreeSet<Hop> =
                links.iter().filter(|link| campus.may_cross(link.neighbor.node())).map(|link| link.hop).collect();
            forwarding.relays = relays.into_iter().collect();
        }
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

/// The cheapest links that lead to a neighbour by `via`, which is itself or a shared link: all of them are equally good
/// first hops.
fn cheapest(links: &[Link], via: NodeId, neighbor: SystemId) -> impl Iterator<Item = (usize, &Link)> {
    let least = links.iter().filter(|link| link.via == via).map(|link| link.cost).min().unwrap_or(0);
    let is_one = move |link: &Link| link.via == via && link.neighbor == neighbor && link.cost == least;
    links.iter().enumerate().filter(move |(_, link)| is_one(link))
}

/// For each node one bit for each link that begins a shortest path to it.
struct FirstHops {
    words: usize,
    bits: Vec<u64>,
}

fn first_hops(campus: &Campus<'_>, links: &[Link]) -> FirstHops {
    let (graph, me, words) = (&campus.graph, campus.me, links.len().div_ceil(64));
    let mut bits = vec![0_u64; graph.len() * words];
    let own: Vec<usize> = graph.steps(me, &campus.from_me, me).collect();
    for node in campus.from_me.order.iter().map(|node| *node as usize) {
        for next in graph.steps(me, &campus.from_me, node) {
            for word in 0..words {
                let inherited = bits[node * words + word];
                bits[next * words + word] |= inherited;
            }
            // A shared link of ours is no hop: its members are.
            let is_next_hop = !graph.ids[next].is_pseudonode() && (node == me || is_pseudonode_of(graph, &own, node));
            let via = if node == me { graph.ids[next] } else { graph.ids[node] };
            for (index, _) in cheapest(links, via, graph.ids[next].system()).filter(|_| is_next_hop) {
                bits[next * words + index / 64] |= 1 << (index % 64);
            }
        }
    }
    FirstHops { words, bits }
}

/// Whether `node` stands for a shared link, and our shortest way to it is direct.
fn is_pseudonode_of(graph: &Graph, own: &[usize], node: usize) -> bool {
    graph.ids[node].is_pseudonode() && own.contains(&node)
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
    let mut ports: BTreeMap<PortId, (VlanSet, Listeners)> = BTreeMap::new();
    // Nobody is behind a shared link that is a leaf.
    let is_leaf = |node: usize| graph.ids[node].is_pseudonode() && on_tree[node].len() == 1;
    for &first in on_tree[me].iter().filter(|first| !is_leaf(**first)) {
        let Some(port) = tree_link(campus, links, graph.ids[first]) else { continue };
        // Several neighbours on one shared link get one copy.
        let wanted = ports.entry(port).or_default();
        let mut open = vec![(first, me, 0)];
        while let Some((node, from, depth)) = open.pop() {
            let depth = depth + u16::from(!graph.ids[node].is_pseudonode());
            state.depth = state.depth.max(depth);
            behind[node] = Some(port);
            campus.add_interest(node, wanted);
            open.extend(on_tree[node].iter().filter(|next| **next != from).map(|next| (*next, node, depth)));
        }
    }
    let branches = ports.into_iter();
    state.ports = branches.map(|(port, (vlans, listeners))| TreePort { port, vlans, listeners }).collect();
    let owners = campus.holders.keys().filter_map(|nickname| Some((*nickname, campus.owner(*nickname)?.node)));
    state.rpf = owners.filter_map(|(nickname, node)| Some((nickname, behind[node]?))).collect();
    state
}

/// Of parallel links, the one that carries trees, whatever they cost (RFC 6325 section 4.5.2, "parallel link check"):
/// point-to-point links before shared ones; of those the highest circuit ID as assigned by the end with the higher system
/// ID, of these the highest name; of several ports of ours on one link the highest. Both ends come to the same one.
fn tree_link(campus: &Campus<'_>, links: &[Link], via: NodeId) -> Option<PortId> {
    let mine_counts = campus.graph.ids[campus.me] > via;
    let circuit = |link: &Link| match link.lan_id {
        Some(_) => 0,
        None if mine_counts => link.circuits.0,
        None => link.circuits.1,
    };
    let rank = |link: &&Link| (link.lan_id.is_none(), circuit(link), link.lan_id, link.hop.port);
    links.iter().filter(|link| link.via == via).max_by_key(rank).map(|link| link.hop.port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_is_lost_where_it_is_listed_no_more_or_its_counter_is_another() {
        let ranges = |all: &[(u16, u16, u32)]| -> Vec<Served> {
            all.iter().map(|(first, last, lost)| Served { first: *first, last: *last, lost: *lost }).collect()
        };
        let before = ranges(&[(1, 9, 0), (20, 30, 7)]);
        for (now, lost) in [
            (ranges(&[(1, 9, 0), (20, 30, 7)]), vec![]),
            (ranges(&[(1, 4, 0), (5, 9, 0), (15, 30, 7)]), vec![]),
            (ranges(&[(1, 8, 0), (20, 30, 7)]), vec![9]),
            (ranges(&[(1, 9, 0), (20, 24, 7), (25, 30, 8)]), (25..=30).collect()),
            (Vec::new(), (1..=9).chain(20..=30).collect()),
        ] {
            let found: Vec<u16> = (0..4096).filter(|vlan| Served::has_lost(&before, &now, *vlan)).collect();
            assert_eq!(found, lost, "{now:?}");
        }
        assert!(!Served::has_lost(&[], &before, 5), "nobody can be known there");
    }
}
