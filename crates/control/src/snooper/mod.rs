//! Which IP multicast groups the stations behind an RBridge's ports listen to, by what they say (RFC 6325 section 4.7, RFC 4541).
//!
//! A port is pruned only once its stations had the time to answer a question, its own or one that came by the campus; until
//! then, when nobody asks any more, and where a multicast router is, it gets all groups. So does a port with more groups than
//! are kept. Times follow from the interval between questions (RFC 3376 section 8, RFC 3810 section 9).

mod seat;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use weft_wire::listener::{Change, Family, Listeners, Message};
use weft_wire::vlan::VlanSet;

use crate::tally::Tally;
use crate::{Machine, NS_PER_MS, NS_PER_S, counted};
use seat::Seat;

/// Of questions and reports; any but the last may be lost.
const ROBUSTNESS: u64 = 2;
/// When a station leaves, the others of its port are asked to answer within that (RFC 3376 section 8.8), and no more often.
const LEFT_NS: u64 = NS_PER_S;
/// For stations that answer at the last moment.
const MARGIN_NS: u64 = NS_PER_S;
/// Groups kept of one port, and of all.
const PORT_GROUPS_MAX: usize = 512;
const GROUPS_MAX: usize = 4096;
/// Changes are gathered for so long, so that a storm of them costs no more than so many a second.
const GATHER_NS: u64 = 20 * NS_PER_MS;

counted! {
    /// What is counted of stations' and routers' messages.
    pub enum Snooped {
        /// Questions, of routers, bridges and other RBridges.
        Query = "query",
        /// Multicast routers that announced themselves.
        Router = "router",
        /// Groups that somebody listens to.
        Join = "join",
        /// Groups that somebody listens to no more.
        Leave = "leave",
        /// A group that was not kept: the port has as many as it may, or all ports together; it gets all groups meanwhile.
        Full = "full",
        /// A message in a VLAN that the port is not in.
        OtherVlan = "other_vlan",
    }
}

/// When things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether stations are asked; else a router or a bridge has to.
    pub asks: bool,
    /// Between two questions, ours or others'.
    pub interval_ns: u64,
    /// Stations answer ours within that.
    pub response_ns: u64,
}

impl Config {
    /// Who has not said so again in that time does not listen any more.
    fn member_ns(self) -> u64 {
        ROBUSTNESS * self.interval_ns + self.response_ns
    }

    /// Who has not asked again in that time is not there any more.
    fn querier_ns(self) -> u64 {
        ROBUSTNESS * self.interval_ns + self.response_ns / 2
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { asks: true, interval_ns: 125 * NS_PER_S, response_ns: 10 * NS_PER_S }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A port carries frames of end stations.
    PortUp(u8),
    /// It does not any more.
    PortDown(u8),
    /// A message came by a port.
    Heard {
        port: u8,
        vlan: u16,
        /// Another RBridge sent it on.
        is_from_tree: bool,
        family: Family,
        message: &'a Message,
    },
    /// The time of [`Machine::next_deadline_ns`] has come.
    Deadline,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a general query to the stations of a port, which have so long to answer.
    Ask { port: u8, vlan: u16, family: Family, response_ns: u64 },
    /// [`Snooper::by_port`] is another now.
    Changed,
}

type Place = (u8, u16, Family);

/// All ports to end stations.
#[derive(Debug)]
pub struct Snooper {
    config: Config,
    seats: BTreeMap<Place, Seat>,
    told: BTreeMap<u8, Listeners>,
    /// When what has changed is told: what comes until then is told with it.
    tell_at_ns: Option<u64>,
    next_ns: Option<u64>,
    counters: Tally<Snooped>,
}

impl Snooper {
    /// Ports by number, with their VLANs; all are down.
    pub fn new(config: Config, ports: &BTreeMap<u8, VlanSet>) -> Self {
        let places = ports.iter().flat_map(|(port, vlans)| vlans.iter().map(|vlan| (*port, vlan)));
        let seats = places.flat_map(|(port, vlan)| Family::ALL.map(|family| ((port, vlan, family), Seat::default())));
        let mut snooper = Self {
            config,
            seats: seats.collect(),
            told: BTreeMap::new(),
            tell_at_ns: None,
            next_ns: None,
            counters: Tally::default(),
        };
        snooper.told = snooper.listened(0);
        snooper
    }

    /// What the stations of each port listen to.
    pub fn by_port(&self) -> &BTreeMap<u8, Listeners> {
        &self.told
    }

    /// What the stations of any port listen to.
    pub fn all(&self) -> Listeners {
        let mut all = Listeners::default();
        self.told.values().for_each(|listeners| all.add(listeners));
        all
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &Tally<Snooped> {
        &self.counters
    }

    fn listened(&self, now_ns: u64) -> BTreeMap<u8, Listeners> {
        let mut by_port: BTreeMap<u8, Listeners> = BTreeMap::new();
        for ((port, vlan, family), seat) in &self.seats {
            let listeners = by_port.entry(*port).or_default();
            if seat.wants_all(now_ns) {
                listeners.all_mut(*family).add_range(*vlan, *vlan);
            } else {
                listeners.groups.extend(seat.groups(*vlan));
            }
        }
        by_port
    }

    fn heard(&mut self, now_ns: u64, place: Place, is_from_tree: bool, message: &Message) {
        let (_, vlan, family) = place;
        match message {
            Message::Query { group: None, response_ms, is_router } => {
                self.counters.add(Snooped::Query);
                let answered_ns = now_ns + u64::from(*response_ms) * NS_PER_MS + MARGIN_NS;
                let until_ns = now_ns + self.config.querier_ns();
                // A question goes to all ports of the VLAN.
                let asked = |(other, seat): &(&Place, &mut Seat)| (other.1, other.2) == (vlan, family) && seat.is_up;
                self.seats.iter_mut().filter(asked).for_each(|(_, seat)| seat.asked(answered_ns, until_ns));
                if *is_router && !is_from_tree {
                    self.found_router(now_ns, place);
                }
            }
            Message::Query { group: Some(_), .. } => self.counters.add(Snooped::Query),
            Message::Router if is_from_tree => {}
            Message::Router => {
                self.counters.add(Snooped::Router);
                self.found_router(now_ns, place);
            }
            Message::Report(changes) if !is_from_tree && self.seats.contains_key(&place) => {
                self.changed(now_ns, place, changes);
            }
            Message::Report(_) => self.counters.add(Snooped::OtherVlan),
        }
    }

    fn found_router(&mut self, now_ns: u64, place: Place) {
        let until_ns = now_ns + self.config.querier_ns();
        match self.seats.get_mut(&place) {
            Some(seat) => seat.all_until_ns = seat.all_until_ns.max(Some(until_ns)),
            None => self.counters.add(Snooped::OtherVlan),
        }
    }

    /// A station's report.
    fn changed(&mut self, now_ns: u64, place: Place, changes: &[Change]) {
        let asks = self.config.asks;
        let held: usize = self.seats.values().map(Seat::len).sum();
        let of_port: usize = self.seats.range(of_port(place.0)).map(|(_, seat)| seat.len()).sum();
        let mut room = (GROUPS_MAX - held).min(PORT_GROUPS_MAX - of_port);
        let until_ns = now_ns + self.config.member_ns();
        let Some(seat) = self.seats.get_mut(&place) else { return };
        for Change { group, listens } in
            changes.iter().filter(|change| Family::of_pruned(change.group) == Some(place.2))
        {
            self.counters.add(if *listens { Snooped::Join } else { Snooped::Leave });
            if !listens {
                seat.left(*group, now_ns, asks);
            } else if !seat.stays(*group, until_ns) && room > 0 {
                room -= 1;
                seat.joined(*group, until_ns);
            } else if !seat.stays(*group, until_ns) {
                seat.all_until_ns = seat.all_until_ns.max(Some(until_ns));
                self.counters.add(Snooped::Full);
            }
        }
    }

    fn port_up(&mut self, now_ns: u64, port: u8) {
        let ask_at_ns = self.config.asks.then_some(now_ns);
        let down = self.seats.range_mut(of_port(port)).map(|(_, seat)| seat).filter(|seat| !seat.is_up);
        down.for_each(|seat| (seat.is_up, seat.ask_at_ns) = (true, ask_at_ns));
    }

    /// What is due by now.
    fn advance(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let config = self.config;
        let mut differs = false;
        for ((port, vlan, family), seat) in &mut self.seats {
            seat.expire(now_ns);
            if seat.ask_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                let response_ns = seat.ask(now_ns, config);
                outputs.push(Output::Ask { port: *port, vlan: *vlan, family: *family, response_ns });
            }
            differs |= seat.differs(now_ns);
        }
        if differs {
            self.tell_at_ns.get_or_insert(now_ns + GATHER_NS);
        }
        if self.tell_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.tell_at_ns = None;
            self.tell(now_ns, outputs);
        }
        self.next_ns = self.seats.values().filter_map(|seat| seat.next_ns(now_ns)).chain(self.tell_at_ns).min();
    }

    fn tell(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        self.seats.values_mut().for_each(|seat| seat.tell(now_ns));
        let told = self.listened(now_ns);
        if told != self.told {
            self.told = told;
            outputs.push(Output::Changed);
        }
    }
}

fn of_port(port: u8) -> std::ops::RangeInclusive<Place> {
    (port, 0, Family::Ipv4)..=(port, u16::MAX, Family::Ipv6)
}

impl Machine for Snooper {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now_ns: u64, input: Input<'_>, outputs: &mut Vec<Output>) {
        match input {
            Input::PortUp(port) => self.port_up(now_ns, port),
            Input::PortDown(port) => self.seats.range_mut(of_port(port)).for_each(|(_, seat)| seat.end()),
            Input::Heard { port, vlan, is_from_tree, family, message } => {
                self.heard(now_ns, (port, vlan, family), is_from_tree, message);
            }
            Input::Deadline => {}
        }
        self.advance(now_ns, outputs);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.next_ns
    }
}
