//! The campus as this RBridge sees it: its graph, who holds which nickname, which trees there are.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::isis::lsp::NicknameRecord;
use weft_wire::isis::{LspId, NodeId, PDU_LEN_MIN};
use weft_wire::listener::Listeners;
use weft_wire::vlan::VlanSet;

use super::digest::{Digest, Range};
use super::forwarding::Served;
use super::graph::{Distances, Graph, Told};
use super::lsdb::Database;

/// A node that holds a nickname, and how strongly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) node: usize,
    pub(super) record: NicknameRecord,
}

/// A tree of the campus: its number and its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeRoot {
    pub(super) number: u16,
    pub(super) nickname: u16,
    pub(super) node: usize,
}

#[derive(Debug)]
pub(super) struct Campus<'a> {
    pub(super) graph: Graph,
    pub(super) me: usize,
    pub(super) from_me: Distances,
    /// Nicknames of nodes that LSPs reach.
    pub(super) holders: BTreeMap<u16, Vec<Holder>>,
    digests: Vec<Vec<&'a Digest>>,
    connected: Vec<bool>,
}

impl<'a> Campus<'a> {
    /// Reads the database. Our own neighbours are `neighbors`, which know more than our last LSP.
    pub(super) fn new(lsdb: &'a Database, me: NodeId, neighbors: Vec<(NodeId, u32)>) -> Self {
        let (mut told, mut digests) = nodes(lsdb);
        let place = told.binary_search_by_key(&me, |(id, ..)| *id);
        let place = place.unwrap_or_else(|at| {
            told.insert(at, (me, false, Vec::new()));
            digests.insert(at, Vec::new());
            at
        });
        told[place].2 = neighbors;
        let graph = Graph::new(told);
        let (from_me, connected) = (graph.distances(place), graph.connected_to(place));
        let mut campus = Self { graph, me: place, from_me, holders: BTreeMap::new(), digests, connected };
        campus.holders = campus.find_holders();
        campus
    }

    fn find_holders(&self) -> BTreeMap<u16, Vec<Holder>> {
        let mut holders: BTreeMap<u16, Vec<Holder>> = BTreeMap::new();
        for node in (0..self.graph.len()).filter(|node| self.connected[*node]) {
            for record in self.digests[node].iter().flat_map(|digest| &digest.nicknames) {
                holders.entry(record.nickname).or_default().push(Holder { node, record: *record });
            }
        }
        holders
    }

    /// The holder that keeps a nickname: the higher priority, then the higher ID (RFC 7780 section 4).
    pub(super) fn owner(&self, nickname: u16) -> Option<Holder> {
        let holders = self.holders.get(&nickname)?;
        holders.iter().copied().max_by_key(|holder| (holder.record.priority, self.graph.ids[holder.node]))
    }

    /// Whether a node is not overloaded, as far as its LSP is here.
    pub(super) fn may_cross(&self, node: NodeId) -> bool {
        self.graph.ids.binary_search(&node).map_or(true, |at| !self.graph.overloaded[at])
    }

    /// Nicknames that others hold, in order.
    pub(super) fn taken(&self) -> Vec<u16> {
        let by_others = |(_, holders): &(&u16, &Vec<Holder>)| holders.iter().any(|holder| holder.node != self.me);
        self.holders.iter().filter(by_others).map(|(nickname, _)| *nickname).collect()
    }

    /// What somebody behind the node wants: which VLANs, and which IP multicast groups.
    pub(super) fn add_interest(&self, node: usize, (vlans, listeners): &mut (VlanSet, Listeners)) {
        for digest in &self.digests[node] {
            for range in &digest.vlans {
                let add = |to: &mut VlanSet| to.add_range(range.first, range.last);
                add(vlans);
                if range.all_groups.0 {
                    add(&mut listeners.all_ipv4);
                }
                if range.all_groups.1 {
                    add(&mut listeners.all_ipv6);
                }
            }
            listeners.groups.extend(&digest.groups);
        }
    }

    /// VLANs of the stations behind each nickname of others.
    pub(super) fn served(&self) -> BTreeMap<u16, Vec<Served>> {
        let of_node = |holder: &Holder| self.digests[holder.node].iter().flat_map(|digest| &digest.vlans);
        let served = |range: &Range| Served { first: range.first, last: range.last, lost: range.forwarder_lost };
        let others = self.holders.iter().map(|(nickname, holders)| {
            let others = holders.iter().filter(|holder| holder.node != self.me);
            (*nickname, others.flat_map(of_node).map(served).collect())
        });
        others.filter(|(_, served): &(u16, Vec<Served>)| !served.is_empty()).collect()
    }

    /// The trees that we have announced to bring frames onto.
    pub(super) fn announced_trees(&self) -> impl Iterator<Item = u16> + '_ {
        self.digests[self.me].iter().flat_map(|digest| &digest.trees_used).copied()
    }

    /// Of several trees so many whose roots are least cost from us, of equals the first (RFC 6325 section 4.5).
    pub(super) fn nearest_trees(&self, trees: &[TreeRoot], count: u16) -> BTreeSet<u16> {
        let mut nearest: Vec<&TreeRoot> = trees.iter().collect();
        nearest.sort_by_key(|tree| (self.from_me.to(tree.node), tree.number));
        nearest.into_iter().take(count.max(1).into()).map(|tree| tree.nickname).collect()
    }

    /// The trees, at most `most` of them (RFC 6325 section 4.5 as corrected by RFC 7780 section 3).
    pub(super) fn trees(&self, most: u16) -> Vec<TreeRoot> {
        let candidates = self.candidates();
        let Some(first) = candidates.first() else { return Vec::new() };
        let wanted = self.digests[first.node].iter().find_map(|digest| digest.trees).map_or(1, |trees| trees.compute);
        let count = wanted.max(1).min(self.trees_possible()).min(most.max(1));
        let by_name: BTreeMap<u16, &Holder> =
            candidates.iter().map(|holder| (holder.record.nickname, holder)).collect();
        let listed = self.listed_roots(first.node).into_iter();
        let known = listed.filter(|listed| listed.is_none_or(|nickname| by_name.contains_key(&nickname)));
        // Priority 0 is a root only by a list; if all have it, the first of them is one nevertheless.
        let prior = candidates.iter().skip(1).take_while(|holder| holder.record.root_priority > 0);
        let by_priority = std::iter::once(first).chain(prior).map(|holder| Some(holder.record.nickname));
        let mut seen = BTreeSet::new();
        let ordered = known.chain(by_priority).filter(|root| root.is_none_or(|nickname| seen.insert(nickname)));
        let numbered = (1..=count).zip(ordered);
        numbered
            .filter_map(|(number, root)| Some((number, by_name[&root?])))
            .map(|(number, holder)| TreeRoot { number, nickname: holder.record.nickname, node: holder.node })
            .collect()
    }

    /// The roots that a node lists, in the order of their trees' numbers. `None`: its lists contradict each other about
    /// a number, whose tree is not computed meanwhile (RFC 7176 section 2.3.4).
    fn listed_roots(&self, node: usize) -> Vec<Option<u16>> {
        let mut listed: BTreeMap<u32, Option<u16>> = BTreeMap::new();
        for list in self.digests[node].iter().flat_map(|digest| &digest.roots) {
            for (number, root) in (u32::from(list.start)..).zip(&list.roots) {
                let told = listed.entry(number).or_insert(Some(*root));
                *told = told.filter(|before| before == root);
            }
        }
        listed.into_values().collect()
    }

    /// Holders of nicknames that may be roots, the best first.
    fn candidates(&self) -> Vec<Holder> {
        let usable = |holder: &Holder| !self.graph.overloaded[holder.node] && self.from_me.reaches(holder.node);
        let owners = self.holders.keys().filter_map(|nickname| self.owner(*nickname));
        let mut candidates: Vec<Holder> = owners.filter(usable).collect();
        let rank = |holder: &Holder| (holder.record.root_priority, self.graph.ids[holder.node], holder.record.nickname);
        candidates.sort_by_key(|holder| std::cmp::Reverse(rank(holder)));
        candidates
    }

    /// What the weakest other RBridge of the campus can compute; 0, or not to say it, counts as 1.
    fn trees_possible(&self) -> u16 {
        let most = self.others(&self.connected).map(|node| self.digests[node].iter().find_map(|digest| digest.trees));
        most.map(|trees| trees.map_or(1, |trees| trees.max.max(1))).min().unwrap_or(u16::MAX)
    }

    /// Other RBridges that are `among` the nodes.
    fn others<'b>(&'b self, among: &'b [bool]) -> impl Iterator<Item = usize> + use<'a, 'b> {
        let is_other = |node: &usize| *node != self.me && !self.graph.ids[*node].is_pseudonode();
        (0..self.graph.len()).filter(|node| among[*node]).filter(is_other)
    }

    /// Sz: the longest LSP that everybody takes whom ours get to, bytes; not to say it counts as the least (RFC 6325 section
    /// 4.3.1, RFC 7780 section 5). Ours get also to `neighbors` that no link leads to until a test of it has passed.
    pub(super) fn sz_bytes(&self, own_bytes: u16, neighbors: impl Iterator<Item = NodeId>) -> u16 {
        if own_bytes <= PDU_LEN_MIN {
            return PDU_LEN_MIN;
        }
        let mut reached = self.connected.clone();
        for node in neighbors.filter_map(|id| self.graph.ids.binary_search(&id).ok()) {
            if !reached[node] {
                let beyond = self.graph.connected_to(node);
                reached.iter_mut().zip(beyond).for_each(|(reached, beyond)| *reached |= beyond);
            }
        }
        let told = self.others(&reached).map(|node| self.lsp_buffer_bytes(node));
        told.fold(own_bytes, u16::min).max(PDU_LEN_MIN)
    }

    /// What fragment 0 of the node says.
    fn lsp_buffer_bytes(&self, node: usize) -> u16 {
        self.digests[node].first().and_then(|digest| digest.lsp_buffer_bytes).unwrap_or(PDU_LEN_MIN)
    }
}

/// Every node whose fragment 0 is held (ISO 10589 section 7.2.8), in order, with what its fragments say.
fn nodes(lsdb: &Database) -> (Vec<Told>, Vec<Vec<&Digest>>) {
    let (mut told, mut digests): (Vec<Told>, Vec<Vec<&Digest>>) = (Vec::new(), Vec::new());
    for (id, entry) in lsdb.iter().filter(|(_, entry)| !entry.is_purged()) {
        let digest = &entry.digest;
        if id.fragment() == 0 {
            told.push((id.node(), entry.flags().is_overloaded(), digest.neighbors.clone()));
            digests.push(vec![digest]);
        } else if let (Some(node), Some(list)) = (told.last_mut(), digests.last_mut())
            && node.0 == id.node()
        {
            node.2.extend_from_slice(&digest.neighbors);
            list.push(digest);
        }
    }
    (told, digests)
}

/// Every nickname that somebody else's LSP claims, reachable or not.
pub(super) fn claimed(lsdb: &Database, me: NodeId) -> Vec<u16> {
    let others = lsdb.iter().filter(|(id, _): &(LspId, _)| id.node() != me);
    let mut claimed: Vec<u16> =
        others.flat_map(|(_, entry)| entry.digest.nicknames.iter().map(|record| record.nickname)).collect();
    claimed.sort_unstable();
    claimed.dedup();
    claimed
}
