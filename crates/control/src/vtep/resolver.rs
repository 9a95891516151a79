//! Directory-driven forwarding: where stations are comes from the directory, and no frame is flooded to find them.
//!
//! ```text
//! station --ARP for IP--> VTEP --(service = VNI, AA = IP)--> directory --LA--> VTEP: MAC behind the VTEP with address LA,
//!         <-----------------------------------------------------------------  the ARP request is answered here
//! ```
//!
//! Each segment has an [`Agent`] of its own, which coalesces, repeats, believes and ages as for VL2: what is written there
//! holds here, with the VNI as the service and the address of a VTEP as the ToR's LA. A segment has its own key, so a VTEP
//! learns nothing of segments that it is not in, and an answer for one segment never enters another.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_wire::directory::{Key, View};
use weft_wire::ethernet::MacAddress;

use super::mac::mac_of;
use super::vni::Vni;
use crate::Machine;
use crate::address::{Locator, Mapping};
use crate::agent::{self, Agent, Bounds, Counters, DropReason, Held, Summary, Timing};
use weft_wire::block::Block;

/// Room that a question without anything held takes among what waits.
const QUESTION_BYTES: usize = 256;

/// Whom a VTEP asks, and as whom.
#[derive(Clone, Debug)]
pub struct ResolverConfig {
    /// Our address as a VTEP, and the port that questions come from.
    pub local: SocketAddrV4,
    /// Directory servers, at least one.
    pub servers: Vec<SocketAddrV4>,
    /// Which secret the segments' keys were derived from.
    pub key_id: u32,
    /// When things happen.
    pub timing: Timing,
    /// How much is held for each segment.
    pub bounds: Bounds,
}

/// A question that nothing waits for takes room as well, so that a flood of
/// them stays bounded.
impl<H> Held for Option<H> {
    fn held_bytes(&self) -> usize {
        self.as_ref().map_or(QUESTION_BYTES, |_| size_of::<H>())
    }
}

/// What happens to a resolver.
#[derive(Debug)]
pub enum Input<'a, H> {
    /// A station of this segment needs this address.
    Ask {
        /// The segment.
        vni: Vni,
        /// The address.
        ip: Ipv4Addr,
        /// What waits for it; never looked at.
        held: Option<H>,
    },
    /// A datagram arrived.
    Datagram {
        /// Its sender.
        from: SocketAddrV4,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// The data path has this from an earlier run.
    Adopt {
        /// The segment.
        vni: Vni,
        /// The address.
        ip: Ipv4Addr,
        /// The VTEP that it is behind.
        vtep: Ipv4Addr,
    },
    /// The time of [`Machine::next_deadline_ns`] has come.
    Deadline,
}

/// What a resolver wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Output<H> {
    /// Send this datagram.
    Send {
        /// To this server.
        to: SocketAddrV4,
        /// Tagged and complete.
        datagram: Vec<u8>,
    },
    /// Forward to the station and answer ARP for it, before any answer that follows.
    Install {
        /// Its segment.
        vni: Vni,
        /// Its address.
        ip: Ipv4Addr,
        mac: MacAddress,
        /// The VTEP that it is behind; `None`: this one, where its port is learned.
        vtep: Option<Ipv4Addr>,
    },
    /// Forget the station.
    Remove {
        /// Its segment.
        vni: Vni,
        /// Its address.
        ip: Ipv4Addr,
        mac: MacAddress,
    },
    /// The address is installed: what waited for it can go on.
    Found {
        /// The segment.
        vni: Vni,
        /// The address.
        ip: Ipv4Addr,
        /// As it came.
        held: H,
    },
    /// What waited was dropped and counted.
    Drop {
        /// The segment.
        vni: Vni,
        /// The address.
        ip: Ipv4Addr,
        reason: DropReason,
    },
}

/// The directory-driven segments of a VTEP.
#[derive(Debug)]
pub struct Resolver<H> {
    config: ResolverConfig,
    segments: BTreeMap<Vni, Agent<Option<H>>>,
    deadlines: BTreeSet<(u64, Vni)>,
    deadline_of: BTreeMap<Vni, u64>,
    rng: Pcg64,
    /// What segments that are gone counted.
    past: Counters,
    /// Datagrams for no segment of ours.
    strange: u64,
    /// Datagrams of servers with a right tag.
    heard: u64,
}

impl<H> Machine for Resolver<H> {
    type Input<'a> = Input<'a, H>;
    type Output = Output<H>;

    fn handle(&mut self, now_ns: u64, input: Input<'_, H>, outputs: &mut Vec<Output<H>>) {
        match input {
            Input::Ask { vni, ip, held } => {
                self.feed(now_ns, vni, agent::Input::Miss { aa: ip, packet_bytes: 0, held }, outputs);
            }
            Input::Datagram { from, bytes } => {
                let service = View::new(bytes).ok().and_then(|view| Vni::new(view.service()).ok());
                match service.filter(|vni| self.segments.contains_key(vni)) {
                    Some(vni) => self.feed(now_ns, vni, agent::Input::Datagram { from, bytes }, outputs),
                    None => self.strange += 1,
                }
            }
            Input::Adopt { vni, ip, vtep } => {
                let locator = Locator { tor_la: vtep, anycast_la: vtep };
                let mapping = Mapping { locator, version: 0 };
                self.feed(now_ns, vni, agent::Input::Adopt { aa: ip, mapping }, outputs);
            }
            Input::Deadline => {
                while let Some((_, vni)) = self.deadlines.first().copied().filter(|(at_ns, _)| *at_ns <= now_ns) {
                    self.feed(now_ns, vni, agent::Input::Deadline, outputs);
                }
            }
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(at_ns, _)| *at_ns)
    }
}

impl<H> Resolver<H> {
    /// A resolver without segments. `rng` seeds the segments' own.
    pub fn new(config: ResolverConfig, rng: Pcg64) -> Self {
        Self {
            config,
            segments: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            deadline_of: BTreeMap::new(),
            rng,
            past: Counters::default(),
            strange: 0,
            heard: 0,
        }
    }

    /// Begins to resolve in a segment, with the key of its service. One that is there already stays as it is.
    pub fn add(&mut self, vni: Vni, key: Key) {
        if self.segments.contains_key(&vni) {
            return;
        }
        let everything = Block::of(Ipv4Addr::UNSPECIFIED, 0);
        let config = agent::Config {
            // No station has this address, and none is ours alone: each VM asks for others on the same VTEP as well.
            aa: Ipv4Addr::UNSPECIFIED,
            aa_block: everything,
            local: self.config.local,
            servers: self.config.servers.clone(),
            key,
            key_id: self.config.key_id,
            service: vni.get(),
            path_mtu: u16::MAX,
            timing: self.config.timing,
            bounds: self.config.bounds,
        };
        let rng = Pcg64::new(u128::from(self.rng.next_u64()), u128::from(vni.get()));
        self.segments.insert(vni, Agent::new(config, rng));
    }

    /// Ends resolving in a segment; what it installed is for the caller to forget.
    pub fn remove(&mut self, vni: Vni) {
        if let Some(agent) = self.segments.remove(&vni) {
            merge(&mut self.past, agent.counters());
        }
        if let Some(at_ns) = self.deadline_of.remove(&vni) {
            self.deadlines.remove(&(at_ns, vni));
        }
    }

    /// Whether it resolves in this segment.
    pub fn knows(&self, vni: Vni) -> bool {
        self.segments.contains_key(&vni)
    }

    /// The segments.
    pub fn vnis(&self) -> impl Iterator<Item = Vni> + '_ {
        self.segments.keys().copied()
    }

    /// The stations known: segment, address, VTEP and version.
    pub fn stations(&self) -> impl Iterator<Item = (Vni, Ipv4Addr, Mapping)> + '_ {
        self.segments.iter().flat_map(|(vni, agent)| agent.mappings().map(|(ip, mapping)| (*vni, ip, mapping)))
    }

    /// A segment in numbers.
    pub fn summary(&self, vni: Vni) -> Option<Summary> {
        self.segments.get(&vni).map(Agent::summary)
    }

    /// Everything counted, of segments that are gone as well.
    pub fn counters(&self) -> Counters {
        let mut sum = self.past.clone();
        self.segments.values().for_each(|agent| merge(&mut sum, agent.counters()));
        sum
    }

    /// Datagrams that were for no segment of ours, or no datagrams.
    pub fn strange(&self) -> u64 {
        self.strange
    }

    /// Datagrams of servers that came with a right tag.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    fn feed(&mut self, now_ns: u64, vni: Vni, input: agent::Input<'_, Option<H>>, outputs: &mut Vec<Output<H>>) {
        let Some(agent) = self.segments.get_mut(&vni) else { return };
        let mut wanted = Vec::new();
        let heard_before = agent.counters().events.get(agent::Event::Heard);
        agent.handle(now_ns, input, &mut wanted);
        self.heard += agent.counters().events.get(agent::Event::Heard) - heard_before;
        let next = agent.next_deadline_ns();
        if let Some(before_ns) = self.deadline_of.remove(&vni) {
            self.deadlines.remove(&(before_ns, vni));
        }
        if let Some(at_ns) = next {
            self.deadlines.insert((at_ns, vni));
            self.deadline_of.insert(vni, at_ns);
        }
        outputs.extend(wanted.into_iter().filter_map(|output| self.translated(vni, output)));
    }

    fn translated(&self, vni: Vni, output: agent::Output<Option<H>>) -> Option<Output<H>> {
        Some(match output {
            agent::Output::Send { to, datagram } => Output::Send { to, datagram },
            agent::Output::Install { aa, mapping } => {
                let vtep = Some(mapping.locator.tor_la).filter(|vtep| vtep != self.config.local.ip());
                Output::Install { vni, ip: aa, mac: mac_of(aa), vtep }
            }
            // What is refused is not forwarded either; the agent itself remembers not to ask.
            agent::Output::Remove { aa } | agent::Output::Refuse { aa } => {
                Output::Remove { vni, ip: aa, mac: mac_of(aa) }
            }
            agent::Output::Release { aa, held } => Output::Found { vni, ip: aa, held: held? },
            agent::Output::Drop { aa, reason } => Output::Drop { vni, ip: aa, reason },
            // ARP requests are never too long.
            agent::Output::IcmpTooBig { .. } => return None,
        })
    }
}

fn merge(sum: &mut Counters, more: &Counters) {
    sum.dropped.merge(&more.dropped);
    sum.ignored.merge(&more.ignored);
    sum.events.merge(&more.events);
}
