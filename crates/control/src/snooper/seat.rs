//! The stations of one port in one VLAN, as far as groups of one family go.

use std::collections::BTreeMap;

use weft_wire::ethernet::MacAddress;
use weft_wire::listener::Group;

use super::{Config, LEFT_NS, MARGIN_NS};

#[derive(Clone, Debug, Default)]
pub(super) struct Seat {
    pub(super) is_up: bool,
    /// When its stations will have answered the first question; `None`: nobody has asked them, or for too long.
    pub(super) settled_at_ns: Option<u64>,
    /// Somebody asks, until then.
    asked_until_ns: u64,
    /// A router is there, or more groups than are kept, until then.
    pub(super) all_until_ns: Option<u64>,
    /// When we ask next.
    pub(super) ask_at_ns: Option<u64>,
    last_asked_ns: u64,
    /// We do because a station has left a group.
    asks_soon: bool,
    /// Groups that somebody listens to, until then.
    members: BTreeMap<MacAddress, u64>,
    /// How often the set of groups has changed.
    changes: u64,
    /// What was told: whether it wants all, and after how many changes.
    told: Option<(bool, u64)>,
}

impl Seat {
    /// The port is down: nothing is known of it any more.
    pub(super) fn end(&mut self) {
        *self = Self { changes: self.changes + 1, told: self.told, ..Self::default() };
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether what was told last is no longer so.
    pub(super) fn differs(&self, now_ns: u64) -> bool {
        self.told.unwrap_or((true, 0)) != (self.wants_all(now_ns), self.changes)
    }

    pub(super) fn tell(&mut self, now_ns: u64) {
        self.told = Some((self.wants_all(now_ns), self.changes));
    }

    pub(super) fn asked(&mut self, answered_ns: u64, until_ns: u64) {
        self.settled_at_ns.get_or_insert(answered_ns);
        self.asked_until_ns = self.asked_until_ns.max(until_ns);
    }

    /// A station says again that it listens to a group. Returns whether the group was known.
    pub(super) fn stays(&mut self, group: MacAddress, until_ns: u64) -> bool {
        self.members.get_mut(&group).map(|until| *until = until_ns).is_some()
    }

    pub(super) fn joined(&mut self, group: MacAddress, until_ns: u64) {
        self.members.insert(group, until_ns);
        self.changes += 1;
    }

    /// A station has left a group: whoever is left at the port and says nothing does not listen either.
    pub(super) fn left(&mut self, group: MacAddress, now_ns: u64, asks: bool) {
        let Some(until_ns) = self.members.get_mut(&group) else { return };
        *until_ns = (now_ns + 2 * LEFT_NS + MARGIN_NS).min(*until_ns);
        if asks && !self.asks_soon {
            self.ask_at_ns = Some(now_ns.max(self.last_asked_ns + LEFT_NS));
            self.asks_soon = true;
        }
    }

    /// Stations are asked now. Returns how long they have to answer.
    pub(super) fn ask(&mut self, now_ns: u64, config: Config) -> u64 {
        let response_ns = if self.asks_soon { LEFT_NS } else { config.response_ns };
        // The second soon after the first, for one may be lost (RFC 3376 section 8.6).
        let is_first = self.settled_at_ns.is_none();
        let pause_ns = if is_first { config.interval_ns / 4 } else { config.interval_ns };
        (self.ask_at_ns, self.last_asked_ns, self.asks_soon) = (Some(now_ns + pause_ns), now_ns, false);
        self.asked(now_ns + response_ns + MARGIN_NS, now_ns + config.querier_ns());
        response_ns
    }

    pub(super) fn wants_all(&self, now_ns: u64) -> bool {
        self.all_until_ns.is_some() || self.settled_at_ns.is_none_or(|at_ns| now_ns < at_ns)
    }

    pub(super) fn groups(&self, vlan: u16) -> impl Iterator<Item = Group> {
        self.members.keys().map(move |mac| Group { vlan, mac: *mac })
    }

    pub(super) fn expire(&mut self, now_ns: u64) {
        let before = self.members.len();
        self.members.retain(|_, until_ns| now_ns < *until_ns);
        self.changes += u64::from(self.members.len() < before);
        self.all_until_ns = self.all_until_ns.filter(|until_ns| now_ns < *until_ns);
        if self.asked_until_ns <= now_ns {
            self.settled_at_ns = None;
        }
    }

    /// When something is due after now.
    pub(super) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let settled = self.settled_at_ns.filter(|at_ns| now_ns < *at_ns);
        let asked = self.settled_at_ns.map(|_| self.asked_until_ns);
        let members = self.members.values().copied();
        [settled, asked, self.all_until_ns, self.ask_at_ns].into_iter().flatten().chain(members).min()
    }
}
