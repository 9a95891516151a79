//! A restart while the data plane works on.
//!
//! Neighbours shall not notice a restart: each of them holds our adjacency as up, and our last LSP. So nothing is said that
//! would contradict, until everything that forwarding depends on is known again. That is what RFC 8706 has a
//! restarting router do. An adjacency is taken up where the neighbour's Hello still names us, and our list of LSPs, empty at first,
//! makes it send what it holds. Who knows the restart TLV is asked for that, too ([`graceful`](super::graceful)). On a shared link
//! all former neighbours are waited for, and who was DRB stays so (`shared::recall`). If that does
//! not lead to a whole picture in time, all adjacencies begin anew, as after any other start.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::{LspId, NodeId, View};

use super::adjacency::Event as Happening;
use super::config::{Config, PortId};
use super::digest::Digest;
use super::graceful::Question;
use super::io::Output;
use super::lsdb::ZERO_AGE_S;
use super::port::{Peer, Port};
use super::shared::Shared;
use super::{AdjacencyState, RBridge};
use crate::NS_PER_S;

/// How long a restart may take at most, whatever neighbours believe.
const LONGEST_NS: u64 = 30 * NS_PER_S;

/// Between two lists of what is held while a restart lasts; one may be lost.
const LIST_NS: u64 = NS_PER_S;

/// When neighbours are told the next time what is held.
///
/// Who has not heard a list after a restart believes that we know what we have forgotten, such as a withdrawal that is still to
/// reach it. Nothing acknowledges a list: it is said again after the restart, ever more seldom, for as long as others keep what was
/// withdrawn meanwhile.
#[derive(Debug)]
pub(super) struct Lists {
    at_ns: u64,
    step_ns: u64,
}

impl Lists {
    fn after(now_ns: u64, step_ns: u64) -> Option<Self> {
        (step_ns <= u64::from(ZERO_AGE_S) * NS_PER_S).then_some(Self { at_ns: now_ns + step_ns, step_ns })
    }
}

/// What a restart waits for.
#[derive(Debug, Default)]
pub(super) struct Restart {
    /// Ports with a neighbour that has not been heard yet, and on shared links whose.
    waiting: BTreeMap<PortId, BTreeSet<MacAddress>>,
    /// When it is over, whatever is missing; set when time begins.
    until_ns: Option<u64>,
    /// When the last new LSP came, or the last adjacency.
    changed_ns: u64,
    /// What neighbours were asked for.
    pub(super) questions: BTreeMap<PortId, Question>,
    /// Our former LSPs as neighbours hold them.
    former: BTreeMap<LspId, LspEntry>,
    /// How often these say that we have ceased to be the forwarder of VLANs.
    lost: BTreeMap<u16, u32>,
}

impl Restart {
    pub(super) fn waits_for(&mut self, port: PortId, neighbors: Vec<MacAddress>) {
        self.waiting.insert(port, neighbors.into_iter().collect());
    }

    pub(super) fn note_former(&mut self, entry: LspEntry) {
        self.former.insert(entry.id, entry);
    }

    /// Our former LSPs that neighbours still believe.
    pub(super) fn into_former(self) -> impl Iterator<Item = LspEntry> {
        self.former.into_values().filter(|entry| entry.lifetime_s > 0)
    }

    /// It is over then at the latest.
    pub(super) fn ends_by(&mut self, until_ns: Option<u64>) {
        self.until_ns = self.until_ns.into_iter().chain(until_ns).min();
    }

    /// Something came that others may follow.
    pub(super) fn note_change(&mut self, now_ns: u64) {
        self.changed_ns = now_ns;
    }

    /// Whether the neighbour with this address on a shared link has not been heard yet.
    pub(super) fn waits_for_one(&self, port: PortId, mac: MacAddress) -> bool {
        self.waiting.get(&port).is_some_and(|open| open.contains(&mac))
    }

    /// The neighbour with this address was heard, or will not be; on a point-to-point link there is no other.
    fn no_longer_waits_for(&mut self, port: PortId, mac: MacAddress, is_shared: bool) {
        let waiting = self.waiting.get_mut(&port);
        let is_last = waiting.is_some_and(|open| {
            open.remove(&mac);
            open.is_empty() || !is_shared
        });
        if is_last {
            self.waiting.remove(&port);
        }
    }
}

/// How long the database has to be quiet before it counts as complete: longer than the pause between two bursts.
fn quiet_ns(config: &Config) -> u64 {
    4 * config.bounds.burst_ns + config.timing.spf_delay_ns
}

impl RBridge {
    /// Whether it is still finding out what it knew before. Until it has, what the data plane goes by shall stay.
    pub fn is_restarting(&self) -> bool {
        self.restart.is_some()
    }

    /// Whether a neighbour on this port has not been heard since a restart, which a Hello must not contradict.
    pub(super) fn waits_on(&self, port: PortId) -> bool {
        self.restart.as_ref().is_some_and(|restart| restart.waiting.contains_key(&port))
    }

    pub(super) fn begin_restart(&mut self, now_ns: u64) {
        let wait_ns = (u64::from(self.config.timing.holding_s()) * NS_PER_S).min(LONGEST_NS);
        if let Some(restart) = &mut self.restart {
            (restart.until_ns, restart.changed_ns) = (Some(now_ns + wait_ns), now_ns);
            self.lists = Lists::after(now_ns, LIST_NS);
        }
    }

    pub(super) fn restart_deadline_ns(&self) -> Option<u64> {
        let list_at_ns = self.lists.as_ref().map(|lists| lists.at_ns);
        let questions = self.restart.iter().flat_map(|restart| restart.questions.values());
        let asks_ns = questions.filter_map(Question::again_ns);
        self.restart_ends_ns().into_iter().chain(list_at_ns).chain(asks_ns).min()
    }

    fn restart_ends_ns(&self) -> Option<u64> {
        let restart = self.restart.as_ref()?;
        let quiet_ns = restart.changed_ns + quiet_ns(&self.config);
        let is_answered = restart.questions.values().all(Question::is_over);
        if restart.waiting.is_empty() && is_answered && self.knows_all_neighbors() {
            restart.until_ns.map(|until_ns| until_ns.min(quiet_ns))
        } else {
            restart.until_ns
        }
    }

    fn list_again(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let Some(lists) = self.lists.as_ref().filter(|lists| lists.at_ns <= now_ns) else { return };
        let step_ns = if self.is_restarting() { LIST_NS } else { 2 * lists.step_ns };
        self.lists = Lists::after(now_ns, step_ns);
        for index in 0..self.ports.len() {
            if self.lists_on(&self.ports[index]) {
                self.send_list(now_ns, index, outputs);
            }
        }
    }

    /// On a shared link lists are the DRB's affair, and who was that before a restart goes on with it. They also make neighbours
    /// say what they hold that know of no restarts.
    fn lists_on(&self, port: &Port) -> bool {
        let is_asking = self.restart.as_ref().is_some_and(|restart| restart.questions.contains_key(&port.config.id));
        let is_ours = |shared: &Shared| {
            shared.leads() || (shared.is_drb() && shared.was_drb()) || (self.is_restarting() && !is_asking)
        };
        port.synchronizes() && port.shared.as_ref().is_none_or(|shared| !shared.is_silent() && is_ours(shared))
    }

    /// Ends the restart when its time has come: now is said what is to be said, and routes are computed.
    pub(super) fn restart_due(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        self.list_again(now_ns, outputs);
        self.ask_again(now_ns, outputs);
        if self.restart_ends_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        let is_whole = self.knows_all_neighbors();
        let Some(restart) = self.restart.take() else { return };
        for index in 0..self.ports.len() {
            let (is_up, id) = (self.ports[index].is_up, self.ports[index].config.id);
            let is_recalling = self.ports[index].shared.as_ref().is_some_and(Shared::is_recalling);
            if let (false, Some((peer, _))) = (is_whole, self.ports[index].neighbor()) {
                self.adjacency_event(now_ns, index, peer, Happening::Expired, outputs);
            }
            if self.ports[index].shared.is_some() && !(is_whole && is_up) {
                self.end_shared(now_ns, index, outputs);
                if is_up {
                    self.begin_shared(now_ns, index, outputs);
                }
            } else if is_recalling {
                self.end_recall(now_ns, index, outputs);
            } else if is_up && restart.waiting.contains_key(&id) {
                self.send_hello(now_ns, index, outputs);
            }
        }
        // LSPs tell the sum of all ports.
        if let Some(shared) = self.ports.iter_mut().find_map(|port| port.shared.as_mut()) {
            shared.has_lost_before(&restart.lost);
        }
        self.sz_bytes = self.sz_of(&self.campus(&self.links()));
        self.describe(now_ns);
        for entry in restart.into_former() {
            if self.lsdb.get(entry.id).is_none() {
                self.withdraw(now_ns, entry.id, entry.sequence);
            }
        }
        self.compute_at_once(now_ns);
        self.touched.extend(0..self.ports.len());
    }

    /// A former LSP of ours came: what was counted goes on from there.
    pub(super) fn recall_losses(&mut self, view: &View<'_>) {
        let Some(restart) = &mut self.restart else { return };
        for range in Digest::of(view).vlans.iter().filter(|range| range.forwarder_lost > 0) {
            restart.lost.extend((range.first..=range.last).map(|vlan| (vlan, range.forwarder_lost)));
        }
    }

    /// Whether the LSPs of all are here that can be reached over neighbours, as far as LSPs tell.
    fn knows_all_neighbors(&self) -> bool {
        let me = self.config.system;
        let adjacent = self.ports.iter().filter_map(Port::neighbor);
        let on_shared = self.ports.iter().filter(|port| port.shared.is_some()).flat_map(Port::reported);
        let mut open: Vec<NodeId> = adjacent.chain(on_shared).map(|(peer, _)| peer.system.node()).collect();
        let mut seen: BTreeSet<NodeId> = open.iter().copied().collect();
        while let Some(node) = open.pop() {
            if self.lsdb.get(node.lsp(0)).is_none_or(|entry| entry.is_purged()) {
                return false;
            }
            for (_, entry) in self.lsdb.range(node.lsp(0)..=node.lsp(u8::MAX)) {
                let next = entry.digest.neighbors.iter().map(|(next, _)| *next);
                open.extend(next.filter(|next| next.system() != me && seen.insert(*next)));
            }
        }
        true
    }

    /// An adjacency was taken up, or will not be.
    pub(super) fn restart_heard(&mut self, now_ns: u64, index: usize, peer: Peer, state: AdjacencyState) {
        let (port, is_shared) = (self.ports[index].config.id, self.ports[index].shared.is_some());
        if let Some(restart) = &mut self.restart
            && matches!(state, AdjacencyState::Report | AdjacencyState::Down)
        {
            if state == AdjacencyState::Down {
                restart.questions.retain(|at, question| *at != port || question.goes_on_without(peer));
            }
            restart.no_longer_waits_for(port, peer.mac, is_shared);
            restart.note_change(now_ns);
        }
    }

    /// A port has gone down: nobody is waited for there.
    pub(super) fn restart_ends_on(&mut self, now_ns: u64, port: PortId) {
        if let Some(restart) = &mut self.restart {
            restart.questions.remove(&port);
            restart.waiting.remove(&port);
            restart.note_change(now_ns);
        }
    }
}
