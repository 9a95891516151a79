//! Restarts that Hellos tell of (RFC 8706, formerly RFC 5306).
//!
//! * A neighbour that asks (RR) keeps its adjacency, whatever else its Hello says. It is told at once that we know (RA), and for how long
//!   we hold on; then it gets the list of all LSPs, and all of them. On a shared link one of its neighbours sends these.
//! * A neighbour that starts (SA) is not told of until it wants paths.
//! * A restart of ours ([`restart`](super::restart)) asks every neighbour whose Hello shows that it knows the TLV. To one that does
//!   not, asking before it is heard would say that we do not hear it. On a shared link all of them have to answer, and one to list
//!   all LSPs.

use std::collections::BTreeMap;

use weft_wire::isis::hello::Restart as Signal;
use weft_wire::isis::{LspId, Tlv};

use super::RBridge;
use super::adjacency::Event as Happening;
use super::config::PortId;
use super::counters::Event;
use super::io::Output;
use super::port::{Adjacency, Peer, Port};
use crate::NS_PER_MS;
use crate::NS_PER_S;

/// T1: between two questions to a neighbour that has not answered.
const T1_NS: u64 = 3 * NS_PER_S;
/// So often it is asked.
const QUESTIONS: u8 = 3;
/// On a shared link answers come within this, so that not all come at once.
const SPREAD_NS: u64 = 30 * NS_PER_MS;

/// What a neighbour's restart TLV has said.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Whether its Hellos have the TLV at all.
    knows: bool,
    /// "Restart mode": its last Hello asked.
    restarts: bool,
    /// It wants no paths.
    pub(super) suppressed: bool,
    owed: Option<Owed>,
}

/// What a neighbour that asked still has to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    /// An answer: the adjacency began anew, and all else with it.
    Answer,
    /// And all LSPs.
    All,
}

/// A question of ours to the neighbours on a port.
#[derive(Debug)]
pub(super) struct Question {
    again_ns: u64,
    left: u8,
    /// Who of them has acknowledged it.
    acknowledged: BTreeMap<Peer, bool>,
    /// Up to here its lists of LSPs are whole; `None`: to the end.
    listed_to: Option<LspId>,
}

impl Question {
    pub(super) fn begin(now_ns: u64) -> Self {
        let (again_ns, acknowledged) = (now_ns + T1_NS, BTreeMap::new());
        Self { again_ns, left: QUESTIONS, acknowledged, listed_to: Some(LspId::FIRST) }
    }

    fn asks(&self, peer: Peer) -> bool {
        self.acknowledged.contains_key(&peer)
    }

    /// A neighbour is gone. Says whether another one is asked.
    pub(super) fn goes_on_without(&mut self, peer: Peer) -> bool {
        self.acknowledged.remove(&peer);
        !self.acknowledged.is_empty()
    }

    /// Whether the neighbours have done their part, or never will.
    pub(super) fn is_over(&self) -> bool {
        self.is_answered() || self.left == 0
    }

    fn is_answered(&self) -> bool {
        self.listed_to.is_none() && self.acknowledged.values().all(|has| *has)
    }

    pub(super) fn again_ns(&self) -> Option<u64> {
        (!self.is_over()).then_some(self.again_ns)
    }

    /// Time to ask again; false if it was asked for the last time.
    pub(super) fn ask_again(&mut self, now_ns: u64) -> bool {
        (self.again_ns, self.left) = (now_ns + T1_NS, self.left - 1);
        self.left > 0
    }

    fn note_list(&mut self, (start, end): (LspId, LspId)) {
        if self.listed_to.is_some_and(|to| start <= to) {
            let next = LspId(u64::from_be_bytes(end.0).saturating_add(1).to_be_bytes());
            self.listed_to = self.listed_to.map(|to| to.max(next)).filter(|_| end != LspId::LAST);
        }
    }
}

/// The restart TLV of a Hello.
pub(super) fn signal(tlvs: &[Tlv]) -> Option<Signal> {
    tlvs.iter().find_map(|tlv| if let Tlv::Restart(signal) = tlv { Some(*signal) } else { None })
}

impl Port {
    /// Whether a Hello with this TLV leaves the adjacency as it is.
    pub(super) fn keeps(&self, peer: Peer, signal: Option<Signal>) -> bool {
        let is_known = |with: &Adjacency| with.state.synchronizes();
        signal.is_some_and(|told| told.has(Signal::REQUEST)) && self.adjacencies.get(&peer).is_some_and(is_known)
    }

    /// Of a shared link: whether it is ours to send all LSPs to who restarts there, and not another neighbour's.
    fn leads_restarts(&self) -> bool {
        let Some(shared) = &self.shared else { return true };
        let knows = |with: &&Adjacency| with.state.synchronizes() && with.restart.knows && !with.restart.restarts;
        let others = self.adjacencies.values().filter(knows).map(|with| (with.priority(), with.mac)).max();
        others < Some((shared.config.priority, self.config.mac))
    }

    fn owes(&self) -> Option<(Peer, Owed)> {
        self.adjacencies.iter().find_map(|(peer, with)| Some((*peer, with.restart.owed?)))
    }
}

impl RBridge {
    /// A Hello with this TLV came. Says whether it says anew how long the neighbour is there: who asks again and again does not
    /// stay for ever.
    pub(super) fn note_signal(&mut self, now_ns: u64, index: usize, peer: Peer, signal: Option<Signal>) -> bool {
        let port = &mut self.ports[index];
        let is_kept = port.keeps(peer, signal);
        let Some(with) = port.adjacencies.get_mut(&peer) else { return true };
        // Ports of ours do not answer each other.
        let signal = signal.filter(|_| peer.system != self.config.system);
        let told = signal.unwrap_or_default();
        let asks = told.has(Signal::REQUEST);
        let is_again = is_kept && with.restart.restarts;
        let owed = asks.then_some(if is_kept { Owed::All } else { Owed::Answer });
        let suppressed = told.has(Signal::SUPPRESS);
        let changes = with.restart.suppressed != suppressed;
        with.restart = Told { knows: signal.is_some(), restarts: asks, suppressed, owed };
        if changes {
            self.describe_soon(now_ns);
            self.compute_soon(now_ns);
        }
        if asks && !is_again {
            self.counters.events.add(Event::NeighborRestart);
        }
        if let Some(signal) = signal {
            self.hear_of_own_restart(now_ns, index, peer, signal);
        }
        !is_again
    }

    fn hear_of_own_restart(&mut self, now_ns: u64, index: usize, peer: Peer, signal: Signal) {
        let (port, is_shared) = (self.ports[index].config.id, self.ports[index].shared.is_some());
        let Some(restart) = &mut self.restart else { return };
        let is_asked = restart.questions.get(&port).is_some_and(|question| question.asks(peer));
        if is_shared && !is_asked && !restart.waits_for_one(port, peer.mac) {
            return;
        }
        let question = restart.questions.entry(port).or_insert_with(|| Question::begin(now_ns));
        let has_acknowledged = question.acknowledged.entry(peer).or_default();
        if signal.has(Signal::ACKNOWLEDGEMENT) && signal.neighbor.is_none_or(|to| to == self.config.system) {
            *has_acknowledged = true;
            // T3: the neighbour that gives us up first.
            let until_ns = signal.remaining_s.map(|left_s| now_ns + u64::from(left_s) * NS_PER_S);
            restart.ends_by(until_ns);
        }
    }

    /// A list of LSPs has come that is whole from `range.0` to `range.1`.
    pub(super) fn restart_listed(&mut self, port: PortId, range: (LspId, LspId)) {
        let question = self.restart.as_mut().and_then(|restart| restart.questions.get_mut(&port));
        question.into_iter().for_each(|question| question.note_list(range));
    }

    /// Answers a neighbour that asked: on a point-to-point link at once.
    pub(super) fn answer_soon(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        if self.ports[index].owes().is_none() {
            return;
        }
        let at_ns = now_ns + self.random() % SPREAD_NS;
        match &mut self.ports[index].shared {
            Some(shared) => shared.list_at_ns = Some(shared.list_at_ns.map_or(at_ns, |before_ns| before_ns.min(at_ns))),
            None => self.send_hello(now_ns, index, outputs),
        }
    }

    /// What our next Hello on a port says of restarts. An answer is said once, a question in every VLAN: without it another Hello would
    /// take it back.
    pub(super) fn restart_tlv(&self, now_ns: u64, index: usize, answers: bool) -> Tlv {
        let port = &self.ports[index];
        let question = self.restart.as_ref().and_then(|restart| restart.questions.get(&port.config.id));
        let mut signal = Signal::default();
        if question.is_some_and(|question| !question.is_over()) {
            signal.flags |= Signal::REQUEST;
        }
        if let Some((peer, _)) = port.owes().filter(|_| answers) {
            let left_ns = port.adjacencies[&peer].until_ns.saturating_sub(now_ns);
            signal.flags |= Signal::ACKNOWLEDGEMENT;
            signal.remaining_s = Some(u16::try_from(left_ns / NS_PER_S).unwrap_or(u16::MAX));
            signal.neighbor = port.shared.is_some().then_some(peer.system);
        }
        Tlv::Restart(signal)
    }

    /// A Hello with [`Self::restart_tlv`] has left: one neighbour has its answer, and gets all LSPs.
    pub(super) fn answered(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let port = &mut self.ports[index];
        let Some((peer, owed)) = port.owes() else { return };
        port.adjacencies.get_mut(&peer).into_iter().for_each(|with| with.restart.owed = None);
        let is_last = port.owes().is_none();
        if owed == Owed::All && port.leads_restarts() {
            self.send_all(now_ns, index, outputs);
        }
        if !is_last {
            self.send_list_of_neighbors(now_ns, index, outputs);
        }
    }

    /// Lists all LSPs and sends them.
    fn send_all(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        if self.ports[index].shared.is_none() {
            return self.begin_flooding(now_ns, index, outputs);
        }
        self.send_list(now_ns, index, outputs);
        let flood = &mut self.ports[index].flood;
        self.lsdb.iter().for_each(|(id, _)| flood.send_now(id));
        self.touched.push(index);
    }

    /// Asks those again that have not answered. One that never does is done without.
    pub(super) fn ask_again(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let Some(restart) = &mut self.restart else { return };
        let is_due = |question: &Question| question.again_ns().is_some_and(|at_ns| at_ns <= now_ns);
        let due = restart.questions.iter_mut().filter(|(_, question)| is_due(question));
        let asked: Vec<PortId> =
            due.filter_map(|(port, question)| question.ask_again(now_ns).then_some(*port)).collect();
        for index in asked.into_iter().filter_map(|port| self.index(port)).collect::<Vec<_>>() {
            self.send_hello(now_ns, index, outputs);
        }
    }
}

/// What a Hello does to an adjacency that [`Port::keeps`]: nothing.
pub(super) const KEPT: Happening = Happening::Uncovered;
