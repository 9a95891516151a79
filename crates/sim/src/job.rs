//! What a run is made of: a network, its settings, flows, faults and what to look at.

use std::num::NonZeroU32;

use weft_scenario::addressing::AddressPlan;
use weft_scenario::engine::Overlay;
use weft_scenario::fault::Fault;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::switching::Switching;
use weft_scenario::topology::Fabric;
use weft_scenario::units::Nanos;
use weft_scenario::workload::services::{DATAGRAM_PAYLOAD_BYTES, DatagramStream};
use weft_scenario::workload::{FlowSpec, MixSpec};

use crate::tcp;

/// One run, complete: the same job gives the same outcome on every machine.
#[derive(Clone, Debug)]
pub struct Job {
    /// Nodes and links. A link's delay is its propagation; its buffer holds for ports without a shared pool.
    pub fabric: Fabric,
    /// Anycast groups; needed for [`Overlay::Vl2`] only.
    pub addresses: Option<AddressPlan>,
    /// How packets are made and moved.
    pub settings: Settings,
    /// Who sends what.
    pub source: Source,
    /// Datagrams at steady rates beside that, which no congestion slows down. A run with datagrams ends at `stop`.
    pub datagrams: Vec<DatagramFlow>,
    /// What breaks when.
    pub faults: Vec<Fault>,
    /// The run is cut at this time; `None`: it ends with its last flow.
    pub stop: Option<Nanos>,
    /// What to record beside the flows.
    pub watch: Watch,
    /// Threads of a run, and parts that the network is cut into if not as many. The outcome is the same.
    pub threads: NonZeroU32,
    pub parts: Option<NonZeroU32>,
}

impl Job {
    /// Parts to cut the network into.
    pub(crate) fn parts(&self) -> u32 {
        if self.stays_whole() { 1 } else { self.parts.unwrap_or(self.threads).get() }
    }

    /// Whether the network stays in one part, so that one thread does all: where it is told what single packets do, or which of
    /// the flows that nobody knows before are the first.
    pub fn stays_whole(&self) -> bool {
        let (watch, is_mix) = (&self.watch, matches!(self.source, Source::Mix(_)));
        watch.trace_flow.is_some() || watch.capture.is_some() || (watch.replay && is_mix)
    }
}

/// How packets are made and moved.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which outer headers packets carry and where they bounce.
    pub overlay: Overlay,
    /// Queues, marks, load balancing, reconvergence.
    pub switching: Switching,
    /// TCP at both ends.
    pub tcp: tcp::Config,
    /// Lengths of packets.
    pub sizes: PacketSizes,
    /// Seed of all hashes.
    pub seed: u64,
}

/// Lengths of packets. Options that come and go with a segment, such as SACK blocks, are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload of a full segment, in bytes.
    pub segment_bytes: u32,
    /// TCP and IP headers of every packet; an acknowledgement, a SYN and a SYN-ACK consist of nothing else.
    pub header_bytes: u32,
    /// Bytes around every IP packet on every wire.
    pub framing_bytes: u32,
}

/// Ethernet around an IP packet: 14 of header, 4 of FCS, 8 of preamble and delimiter, 12 of gap (IEEE 802.3 clauses 3, 4).
pub const ETHERNET_FRAMING_BYTES: u32 = 38;
/// The part of it that is on the wire but in no interface's byte counter: FCS, preamble and delimiter, gap.
pub const LAYER_1_BYTES: u32 = 24;

impl PacketSizes {
    /// IP packets of 1500 bytes with or without TCP timestamps, in Ethernet frames.
    pub fn ethernet(timestamps: bool) -> Self {
        let header_bytes = if timestamps { 52 } else { 40 };
        Self { segment_bytes: 1500 - header_bytes, header_bytes, framing_bytes: ETHERNET_FRAMING_BYTES }
    }

    /// 1500-byte packets, 40-byte acknowledgements and nothing around them, as packet simulators usually count.
    pub fn bare() -> Self {
        Self { segment_bytes: 1460, header_bytes: 40, framing_bytes: 0 }
    }
}

/// Who sends what.
#[derive(Clone, Debug)]
pub enum Source {
    /// Flows known before the run; each sends as fast as TCP lets it.
    Flows(Vec<Flow>),
    /// The data-centre mix: each server keeps a number of flows going at a steady rate.
    Mix(MixSpec),
}

impl Source {
    /// The flows that are known before the run.
    pub(crate) fn flows(&self) -> &[Flow] {
        match self {
            Self::Flows(flows) => flows,
            Self::Mix(_) => &[],
        }
    }
}

/// One flow to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sends how much to whom, and when.
    pub spec: FlowSpec,
    /// A switch that both directions take wherever it is an equal-cost next hop, instead of the hash's choice.
    pub through: Option<NodeId>,
}

impl From<FlowSpec> for Flow {
    fn from(spec: FlowSpec) -> Self {
        Self { spec, through: None }
    }
}

/// Datagrams of one length that one server sends to another at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFlow {
    /// Who sends how fast to whom, and when.
    pub spec: DatagramStream,
    /// Payload of each datagram, of which the rate is the sum.
    pub payload_bytes: u32,
}

impl From<DatagramStream> for DatagramFlow {
    fn from(spec: DatagramStream) -> Self {
        Self { spec, payload_bytes: DATAGRAM_PAYLOAD_BYTES }
    }
}

/// CPU time of the calling thread, in nanoseconds.
pub type CpuClock = fn() -> u64;

/// What to record beside the flows.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Distance between samples of progress and of link counters.
    pub sample_interval: Option<Nanos>,
    /// Names of services with the numbers of their servers, whose received payload is sampled service by service.
    pub services: Vec<(String, Vec<u32>)>,
    /// Distance between samples of all TCP senders.
    pub tcp_interval: Option<Nanos>,
    /// Classes of links ([`Fabric::link_class`]) whose queues' lengths are recorded.
    pub queue_classes: Vec<String>,
    /// Record links and queues at a few hundred times, whatever the run's length ([`weft_scenario::record::Moment`]).
    pub replay: bool,
    /// Number of the flow whose packets and state are told to the observer.
    pub trace_flow: Option<u32>,
    /// The direction of a link whose packets are shown to the observer as bytes: the link and the sending node.
    pub capture: Option<(LinkId, NodeId)>,
    /// Tells the observer at the end how busy threads were ([`crate::WindowTimes`]).
    pub cpu_clock: Option<CpuClock>,
}
