//! What a run yields.

use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::record::Moment;
use weft_scenario::workload::FlowSpec;
use weft_scenario::workload::services::DatagramStream;

use crate::job::LAYER_1_BYTES;
use crate::routes::Header;
use crate::time::ps;

/// Everything that a run yields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Flows in the order of their list; those of the data-centre mix in the order of their start.
    pub flows: Vec<FlowOutcome>,
    /// Streams of datagrams in the order of their list.
    pub datagrams: Vec<DatagramOutcome>,
    /// Sums over the whole run.
    pub totals: Totals,
    /// One row for each direction of each link, at the end of the run.
    pub ports: Vec<PortOutcome>,
    /// Progress and link counters at each interval, where asked for.
    pub samples: Vec<Sample>,
    /// Ports at times that are the same distance apart, in the order of `ports`, where asked for.
    pub replay: Vec<Moment>,
    /// Ways of a few flows from the time on at which they take them, where a replay was asked for.
    pub ways: Vec<FlowWay>,
    /// TCP senders at each interval, where asked for.
    pub tcp: Vec<TcpSample>,
    /// Faults, repairs and reconvergences.
    pub events: Vec<FabricEvent>,
    /// When the run ended, in picoseconds.
    pub end_ps: u64,
}

/// Sums over a run. Bytes are those of IP packets without outer headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that were serialised onto a link and reached its end.
    pub packet_hops: u64,
    /// Packets and bytes that hosts sent.
    pub sent: Volume,
    /// Packets and bytes that reached the host they were for.
    pub delivered: Volume,
    /// What full buffers refused.
    pub refused: Volume,
    /// What was lost on links that were down, or had no route.
    pub lost: Volume,
    /// What was queued or on a wire when the run ended.
    pub in_flight: Volume,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Packets that reached their receiver with an ECN mark.
    pub marked: u64,
    /// Payload that reached applications.
    pub received_bytes: u64,
    /// Flows whose last byte has been acknowledged.
    pub flows_done: u64,
}

impl Totals {
    /// The sums of two parts of a network, beside hops.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            packet_hops: 0,
            sent: self.sent.and(other.sent),
            delivered: self.delivered.and(other.delivered),
            refused: self.refused.and(other.refused),
            lost: self.lost.and(other.lost),
            in_flight: self.in_flight.and(other.in_flight),
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            marked: self.marked + other.marked,
            received_bytes: self.received_bytes + other.received_bytes,
            flows_done: self.flows_done + other.flows_done,
        }
    }

    /// Packets that did not arrive.
    pub fn drops(&self) -> u64 {
        self.refused.packets + self.lost.packets
    }
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub packets: u64,
    pub bytes: u64,
}

impl Volume {
    pub(crate) fn and(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: u16) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// One flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// What was asked for.
    pub spec: FlowSpec,
    /// When its last byte reached the receiver.
    pub received_ps: Option<u64>,
    /// When the sender knew that.
    pub acknowledged_ps: Option<u64>,
    /// Payload that reached the receiving application in order.
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmits: u32,
}

impl FlowOutcome {
    pub(crate) fn not_started(spec: FlowSpec) -> Self {
        Self { spec, received_ps: None, acknowledged_ps: None, received_bytes: 0, retransmits: 0 }
    }

    /// Flow completion time to the last byte at the receiver, in picoseconds.
    pub fn completion_ps(&self) -> Option<u64> {
        self.received_ps.map(|end_ps| end_ps.saturating_sub(ps(self.spec.start_ns)))
    }

    /// Flow completion time to the last byte acknowledged at the sender, in picoseconds.
    pub fn acknowledged_completion_ps(&self) -> Option<u64> {
        self.acknowledged_ps.map(|end_ps| end_ps.saturating_sub(ps(self.spec.start_ns)))
    }
}

/// One stream of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramOutcome {
    /// What was asked for.
    pub spec: DatagramStream,
    /// Datagrams that its host let out.
    pub sent: u64,
    pub received: u64,
    /// Times of those that were received from host to host, its card's queue included, all together.
    pub delay_sum_ps: u128,
    pub delay_max_ps: u64,
}

impl DatagramOutcome {
    pub(crate) fn not_started(spec: DatagramStream) -> Self {
        Self { spec, sent: 0, received: 0, delay_sum_ps: 0, delay_max_ps: 0 }
    }

    /// Adds what is known at the other end.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.delay_sum_ps += other.delay_sum_ps;
        self.delay_max_ps = self.delay_max_ps.max(other.delay_max_ps);
    }

    /// Mean one-way delay in picoseconds; `None` if nothing was received.
    pub fn mean_delay_ps(&self) -> Option<u64> {
        u64::try_from(self.delay_sum_ps.checked_div(self.received.into())?).ok()
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOutcome {
    pub link: LinkId,
    /// The node that sends.
    pub node: NodeId,
    /// What was carried and dropped.
    pub counters: PortCounters,
    /// How long the queue had which length: the most bytes of a bin and the time in it in picoseconds. Empty where it
    /// was not recorded.
    pub queue: Vec<(u64, u64)>,
}

/// Counters of one direction of a link. Bytes are those on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets that reached the far end.
    pub packets: u64,
    pub bytes: u64,
    /// Packets dropped here: refused by a full buffer or lost on a link that was down.
    pub drops: u64,
}

impl PortCounters {
    /// Bytes as an interface counts them: without what Ethernet puts around a frame.
    pub fn interface_bytes(&self) -> u64 {
        self.bytes - u64::from(LAYER_1_BYTES) * self.packets
    }
}

/// Progress and link counters at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Simulated time in picoseconds.
    pub time_ps: u64,
    /// Payload that reached applications.
    pub received_bytes: u64,
    pub flows_done: u64,
    /// Payload that reached the servers of each service, in the order of [`crate::Watch::services`].
    pub services: Vec<u64>,
    /// In the order of [`Outcome::ports`].
    pub ports: Vec<PortCounters>,
}

/// The way of a flow's data from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowWay {
    /// Simulated time in picoseconds.
    pub time_ps: u64,
    /// Its place in [`Outcome::flows`].
    pub flow: u32,
    /// Numbers of its servers.
    pub from: u32,
    pub to: u32,
    /// From the sending host on; none where there is no way.
    pub hops: Vec<WayHop>,
}

/// A link of a way, and why it is the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayHop {
    pub link: LinkId,
    /// The node that sends.
    pub node: NodeId,
    /// Between the link's framing and the IP packet of the flow, the outermost first.
    pub headers: Vec<Header>,
    pub toward: Toward,
    /// `None`: there was nothing to choose.
    pub choice: Option<WayChoice>,
}

/// Where the sender of a hop looked up the way to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    AnyIntermediate,
    Switch(NodeId),
    /// The flow is told to go through the far end.
    Pinned,
    /// It sends on the one link there is.
    FarEnd,
}

/// One of several equal next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayChoice {
    pub next_hops: u32,
    /// From 1.
    pub chosen: u32,
    /// What the switch hashed; its upper half chooses.
    pub hash: u64,
}

/// One TCP sender at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSample {
    /// Simulated time in picoseconds.
    pub time_ps: u64,
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Smoothed round-trip time in picoseconds; 0 before the first measurement.
    pub srtt_ps: u64,
    /// Segments sent again so far.
    pub retransmits: u32,
}

/// Something that happened to the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricEvent {
    /// Simulated time in picoseconds.
    pub time_ps: u64,
    /// Number of the fault in [`crate::Job::faults`].
    pub fault: usize,
    /// What happened.
    pub kind: FabricEventKind,
}

/// What can happen to a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FabricEventKind {
    /// Links are mended.
    Repair,
    /// Links go down.
    Fault,
    /// Routes follow the last fault or repair.
    Reconverged,
}
