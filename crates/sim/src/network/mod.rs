//! Ports, buffers and the packets in them: everything that moves by itself once a packet has been sent.

pub(crate) mod histogram;
pub(crate) mod pool;
pub(crate) mod port;
mod ports;
mod ring;

use crate::events::{AHEAD, Events};
use crate::heap::{Keys, NO_EVENT};
use crate::packet::{OnLink, Packet};
use crate::prefetch::prefetch;
use crate::routes::{Hop, Routes};

use histogram::QueueHistogram;
use pool::{Arriving, Pool};
use port::{Drops, Kind, NO_POOL, Port, PortSetup, Special, Wire};
use ports::Ports;

/// Most ports of a network: what a hop can name.
pub(crate) const PORTS_MAX: usize = Hop::PORTS_MAX;

/// So many ports and their packets are near the processor.
const NEAR_PORTS: usize = 2_048;
/// The packet of an arrival is asked for so many arrivals before it, and its port as many before that.
const ARRIVALS_AHEAD: usize = 5;

/// What became of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is in the queue.
    Queued,
    /// The buffer was full.
    Refused,
    /// The link is down.
    Lost,
}

/// A packet that has arrived at the end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) packet: Packet,
    /// Its next hop; `None`: it is where it was sent to.
    pub(crate) next: Option<Hop>,
    /// The port that it came through.
    pub(crate) port: u32,
}

/// The network in motion.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now_ps: u64,
    pub(crate) ports: Ports,
    /// One for each port.
    pub(crate) drops: Vec<Drops>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) routes: Routes,
    /// One for each port, where asked for, which is at few of them.
    pub(crate) histograms: Vec<Option<Box<QueueHistogram>>>,
    /// By other part of the network, packets on their way there, each with the port that has sent it, in order.
    pub(crate) abroad: Vec<Vec<(u32, OnLink)>>,
    events: Events,
    /// Its ports and packets are more than the processor holds near it.
    is_far: bool,
    keys: Keys,
    /// Keys count time from here.
    epoch_ps: u64,
}

impl Network {
    /// A network at rest; ties between packets are broken by chance from the seed.
    pub(crate) fn new(setups: impl ExactSizeIterator<Item = PortSetup>, pools: Vec<Pool>, seed: u64) -> Self {
        let mut ports = Ports::with_room(setups.len());
        setups.for_each(|setup| ports.add(&setup));
        Self {
            now_ps: 0,
            histograms: std::iter::repeat_with(|| None).take(ports.len()).collect(),
            keys: Keys::new(ports.len(), seed),
            drops: vec![Drops::default(); ports.len()],
            pools,
            routes: Routes::default(),
            abroad: Vec::new(),
            events: Events::new(),
            is_far: ports.len() > NEAR_PORTS,
            ports,
            epoch_ps: 0,
        }
    }

    /// The next arrival if it comes before `until_ps`; time moves there.
    #[inline(always)]
    pub(crate) fn next_arrival(&mut self, until_key: u64) -> Option<Arrival> {
        let key = self.events.top();
        if key >= until_key {
            return None;
        }
        let number = self.keys.port(key);
        self.now_ps = self.epoch_ps + self.keys.time_ps(key);
        let port = &mut self.ports[number];
        let packet = port.packets.take().expect("a port in the heap has a packet");
        let (here, next) = self.routes.step(packet.route());
        port.carried_bytes += u64::from(packet.ip_bytes()) + here.extra_bytes();
        match port.packets.front() {
            Some(behind) => self.events.replace_top(self.keys.draw(behind.at_ps, self.epoch_ps, number, port.lots)),
            None => self.events.pop(),
        }
        if self.is_far && !self.looks_ahead() {
            self.prefetch_next();
        }
        Some(Arrival { packet, next, port: number })
    }

    /// Asks for the port of an arrival soon to come, and for the packet of a nearer one; where the order is not known, of the next.
    #[inline(always)]
    fn prefetch_next(&self) {
        if let Some(key) = self.events.soon(2 * ARRIVALS_AHEAD) {
            prefetch(&self.ports[self.keys.port(key)]);
        }
        let key = self.events.soon(ARRIVALS_AHEAD).unwrap_or(self.events.top());
        if key != NO_EVENT {
            self.ports[self.keys.port(key)].packets.prefetch_front();
        }
    }

    /// Whether there is so much under way that [`Self::ports_ahead`] should be asked after every [`AHEAD`] arrivals.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.events.hands_out()
    }

    /// The ports of arrivals that come some time after the next ones, if these are known and were not told of before.
    pub(crate) fn ports_ahead(&mut self) -> Option<[u32; AHEAD]> {
        let keys: &[u64; AHEAD] = self.events.ahead()?.try_into().ok()?;
        Some(keys.map(|key| self.keys.port(key)))
    }

    /// The key that no arrival before `time_ps` reaches.
    pub(crate) fn key_at(&self, time_ps: u64) -> u64 {
        self.keys.first_at(time_ps.saturating_sub(self.epoch_ps))
    }

    /// Sends a packet on its next hop.
    #[inline(always)]
    pub(crate) fn send(&mut self, hop: Hop, packet: Packet) -> Sent {
        let wire_bytes = u64::from(packet.ip_bytes()) + hop.extra_bytes();
        let (port, kind) = self.ports.with_kind(hop.port());
        let transmission_ps = kind.wire.transmission_ps(wire_bytes);
        let start_ps = port.free_ps(self.now_ps);
        if !kind.is_usual(start_ps + transmission_ps - self.now_ps) {
            return self.send_by_the_rules(hop, packet, wire_bytes, transmission_ps);
        }
        let at_ps = port.transmit(start_ps, transmission_ps, hop.is_cut_through(), &kind.wire);
        if port.packets.put(OnLink { at_ps, packet: packet.one_hop_on() }) {
            self.events.push(self.keys.draw(at_ps, self.epoch_ps, hop.port(), port.lots));
        }
        Sent::Queued
    }

    /// The same where the rules have something to say, of which most is that a shared buffer has room.
    #[inline(never)]
    fn send_by_the_rules(&mut self, hop: Hop, packet: Packet, wire_bytes: u64, transmission_ps: u64) -> Sent {
        let (port, Kind { wire, rules, .. }) = self.ports.with_kind(hop.port());
        let start_ps = port.free_ps(self.now_ps);
        let arriving = Arriving { backlog_ps: start_ps - self.now_ps, wire_bytes };
        let passes = rules.is_simple() && !rules.is_full(arriving.backlog_ps + transmission_ps);
        if !passes || self.pools.get_mut(rules.pool as usize).is_some_and(|pool| !pool.admit(wire, arriving)) {
            return self.send_carefully(hop, packet, wire_bytes, transmission_ps);
        }
        let packet = if rules.marks(arriving.backlog_ps) { packet.marked() } else { packet };
        let at_ps = port.transmit(start_ps, transmission_ps, hop.is_cut_through(), wire);
        if port.packets.put(OnLink { at_ps, packet: packet.one_hop_on() }) {
            self.events.push(self.keys.draw(at_ps, self.epoch_ps, hop.port(), port.lots));
        }
        Sent::Queued
    }

    /// The same where the port is special, its packets leave this part of the network, or a buffer may be full.
    #[inline(never)]
    fn send_carefully(&mut self, hop: Hop, packet: Packet, wire_bytes: u64, transmission_ps: u64) -> Sent {
        let number = hop.port();
        let (port, Kind { wire, rules, .. }) = self.ports.with_kind(number);
        let (wire, rules, start_ps) = (*wire, *rules, port.free_ps(self.now_ps));
        let arriving = Arriving { backlog_ps: start_ps - self.now_ps, wire_bytes };
        if !rules.special.says_nothing() && self.is_lost(number, wire_bytes) {
            return Sent::Lost;
        }
        let is_full = rules.is_full(arriving.backlog_ps + transmission_ps);
        if is_full || (rules.pool != NO_POOL && !self.has_room(rules.pool, &wire, arriving)) {
            self.drops[number as usize].refused.add(wire_bytes);
            return Sent::Refused;
        }
        let packet = if rules.marks(arriving.backlog_ps) { packet.marked() } else { packet };
        let at_ps = self.ports[number].transmit(start_ps, transmission_ps, hop.is_cut_through(), &wire);
        let on_link = OnLink { at_ps, packet: packet.one_hop_on() };
        match self.abroad.get_mut(rules.to as usize) {
            Some(abroad) => abroad.push((number, on_link)),
            None => self.receive(number, on_link),
        }
        Sent::Queued
    }

    /// Takes room for a packet in a shared buffer, whose ports are counted if it may have none; whether it had any.
    fn has_room(&mut self, pool: u32, wire: &Wire, packet: Arriving) -> bool {
        let pool = &mut self.pools[pool as usize];
        pool.admit(wire, packet) || {
            pool.count(self.now_ps, &self.ports);
            pool.admit(wire, packet)
        }
    }

    /// A packet is on its way behind all others of a port; it may have been sent in another part of the network.
    #[inline(always)]
    pub(crate) fn receive(&mut self, port: u32, on_link: OnLink) {
        let Port { packets, lots, .. } = &mut self.ports[port];
        if packets.put(on_link) {
            self.events.push(self.keys.draw(on_link.at_ps, self.epoch_ps, port, *lots));
        }
    }

    /// From now on what a port sends is handed over to another part, see [`Self::abroad`].
    pub(crate) fn set_abroad(&mut self, number: u32, to: u32) {
        self.ports.change(number, |rules| rules.to = to);
        self.abroad.resize(self.abroad.len().max(to as usize + 1), Vec::new());
    }

    /// When the next packet arrives; the end of time if none is under way.
    pub(crate) fn next_ps(&self) -> u64 {
        match self.events.top() {
            NO_EVENT => u64::MAX,
            key => self.epoch_ps + self.keys.time_ps(key),
        }
    }

    /// Whether a special port loses the packet; the time of its queue is counted.
    #[inline(never)]
    fn is_lost(&mut self, number: u32, wire_bytes: u64) -> bool {
        if let Some(histogram) = &mut self.histograms[number as usize] {
            histogram.count_until(self.now_ps, &self.ports[number], self.ports.wire(number));
        }
        let is_down = self.ports.with_kind(number).1.rules.special.has(Special::DOWN);
        if is_down {
            self.drops[number as usize].lost.add(wire_bytes);
        }
        is_down
    }

    /// Longest time from sending a packet to its arrival: half of what a key can hold, so that keys seldom need a new epoch.
    pub(crate) fn hop_max_ps(&self) -> u64 {
        self.keys.latest_ps() / 2
    }

    /// Moves the beginning of the keys' time to `at_ps`, before which nothing arrives any more. To be called at least every
    /// [`Self::hop_max_ps`] of virtual time.
    pub(crate) fn start_epoch(&mut self, at_ps: u64) {
        let shift = self.key_at(at_ps);
        self.events.rebuild(|key| Some(key - shift));
        self.epoch_ps = at_ps;
    }

    /// Bytes that are queued at a port.
    pub(crate) fn backlog_bytes(&self, port: u32) -> u64 {
        self.ports.backlog_bytes(port, self.now_ps)
    }

    /// When [`Self::start_epoch`] is due.
    pub(crate) fn epoch_ends_ps(&self) -> u64 {
        self.epoch_ps.saturating_add(self.hop_max_ps())
    }

    /// Takes a port down or up. What it loses by that is handed to `lost`.
    pub(crate) fn set_down(&mut self, number: u32, down: bool, mut lost: impl FnMut(Packet)) {
        let place = number as usize;
        if let Some(histogram) = &mut self.histograms[place] {
            histogram.count_until(self.now_ps, &self.ports[number], self.ports.wire(number));
        }
        self.ports.change(number, |rules| rules.special.set(Special::DOWN, down));
        if !down {
            return;
        }
        let lost_packets = self.ports.clear(number, self.now_ps);
        if lost_packets.is_empty() {
            return;
        }
        for packet in lost_packets {
            let (here, _) = self.routes.step(packet.route());
            self.drops[place].lost.add(u64::from(packet.ip_bytes()) + here.extra_bytes());
            lost(packet);
        }
        self.events.rebuild(|key| (self.keys.port(key) != number).then_some(key));
    }

    /// Records how long the queue of a port has which length.
    pub(crate) fn measure(&mut self, number: u32) {
        self.ports.change(number, |rules| rules.special.set(Special::MEASURED, true));
        self.histograms[number as usize] = Some(Box::default());
    }

    /// Counts the time up to now.
    pub(crate) fn finish_histograms(&mut self) {
        for (number, histogram) in (0..).zip(&mut self.histograms) {
            if let Some(histogram) = histogram {
                histogram.count_until(self.now_ps, &self.ports[number], self.ports.wire(number));
            }
        }
    }

    /// Bytes of a shared buffer that are over its size; 0 unless the engine is wrong.
    pub(crate) fn pool_excess_bytes(&self) -> u64 {
        let excess = |pool: &Pool| pool.used_bytes(self.now_ps, &self.ports).saturating_sub(pool.size_bytes());
        self.pools.iter().map(excess).max().unwrap_or(0)
    }
}
