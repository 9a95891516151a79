//! A host's network card: where TCP is held back, flows wait in a row and take turns, one segment each.

use std::collections::VecDeque;

use weft_scenario::id::NodeId;

use super::flow::Phase;
use super::part::Part;
use super::timers::Timer;
use crate::network::port::{Port, Wire};

/// One server.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Host {
    pub(super) node: NodeId,
    /// The port that its packets leave through.
    pub(super) nic: u32,
    /// Longest queue that data may join, in picoseconds of transmission; `u64::MAX` where the queue drops instead.
    limit_ps: u64,
    /// Flows are woken when the queue has drained to this length.
    refill_ps: u64,
    /// Flows that want to send, in the order of their turns.
    pub(super) waiting: VecDeque<u32>,
    /// Whether its timer is set.
    pub(super) armed: bool,
}

impl Host {
    /// A host with a card that holds at most `limit_bytes` of data, of which each packet has up to `packet_bytes`;
    /// `None`: the card takes everything and drops what it has no room for.
    pub(super) fn new(node: NodeId, nic: u32, limit_bytes: Option<u64>, wire: &Wire, packet_bytes: u64) -> Self {
        // One packet more is let in than the queue may hold when it is empty, so that tiny limits do not stop it.
        let limit = limit_bytes.map(|bytes| wire.transmission_ps(bytes.saturating_sub(packet_bytes)));
        let limit_ps = limit.unwrap_or(u64::MAX);
        Self { node, nic, limit_ps, refill_ps: limit_ps / 2, waiting: VecDeque::new(), armed: false }
    }

    /// Whether another segment may join the queue of the card.
    #[inline(always)]
    pub(super) fn has_room(&self, port: &Port, now_ps: u64) -> bool {
        port.backlog_ps(now_ps) <= self.limit_ps
    }

    /// When the card's queue will have drained far enough to wake the flows that wait.
    pub(super) fn refill_at_ps(&self, port: &Port, now_ps: u64) -> u64 {
        now_ps + port.backlog_ps(now_ps).saturating_sub(self.refill_ps)
    }
}

impl Part<'_> {
    /// Sends what window and card allow. A flow that finds no room waits for its turn.
    #[inline]
    pub(super) fn pump(&mut self, place: u32) {
        while !self.senders[place as usize].waiting {
            let number = self.senders[place as usize].who.from;
            let host = &self.hosts[number as usize];
            let has_room = host.has_room(&self.network.ports[host.nic], self.network.now_ps);
            if !has_room || !host.waiting.is_empty() {
                self.wait(place, number);
                break;
            }
            if !self.send_next(place) {
                break;
            }
        }
        self.arm_sender(place);
    }

    fn wait(&mut self, place: u32, host: u32) {
        self.senders[place as usize].waiting = true;
        self.hosts[host as usize].waiting.push_back(place);
        self.arm_host(host);
    }

    fn arm_host(&mut self, number: u32) {
        let host = &mut self.hosts[number as usize];
        if !host.armed {
            host.armed = true;
            let at_ps = host.refill_at_ps(&self.network.ports[host.nic], self.network.now_ps);
            self.arm(at_ps, Timer::Host(number));
        }
    }

    /// Flows that wait send a segment each in turn until the card is full.
    pub(super) fn take_turns(&mut self, number: u32) {
        self.hosts[number as usize].armed = false;
        loop {
            let host = &mut self.hosts[number as usize];
            if !host.has_room(&self.network.ports[host.nic], self.network.now_ps) {
                break;
            }
            let Some(place) = host.waiting.pop_front() else { return };
            self.senders[place as usize].waiting = false;
            if self.senders[place as usize].phase == Phase::Ended {
                self.sender_may_go(place);
                continue;
            }
            if self.send_next(place) {
                self.senders[place as usize].waiting = true;
                self.hosts[number as usize].waiting.push_back(place);
            }
            self.arm_sender(place);
        }
        if !self.hosts[number as usize].waiting.is_empty() {
            self.arm_host(number);
        }
    }
}
