//! What every run yields: tidy rows with the unit in the field's name, the same from every engine.

use serde::{Deserialize, Serialize};

use crate::workload::FlowClass;

/// One flow, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// Payload that was asked for; 0 for flows that send as much as they can.
    pub bytes_asked: u64,
    /// Payload that arrived at the receiving application.
    pub bytes_received: u64,
    /// When the connection was opened, from the start of the run.
    pub start_ns: u64,
    /// When the last byte arrived; `None` if the run ended before that.
    pub end_ns: Option<u64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// What kind of traffic it was part of.
    pub class: FlowClass,
    /// Number of the query that it answered.
    pub request: Option<u32>,
    /// How long it would have taken alone on the idle network; `None` where the engine does not know.
    pub ideal_ns: Option<u64>,
}

/// Payload that arrived at all servers so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressRow {
    /// Time since the start of the run.
    pub time_ns: u64,
    /// Payload received by all applications since the start.
    pub received_bytes: u64,
    /// Flows that have ended.
    pub flows_done: u64,
}

/// Counters of one direction of one link at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRow {
    /// Time since the start of the run.
    pub time_ns: u64,
    /// The sending node.
    pub node: String,
    /// The sending interface.
    pub interface: String,
    /// The node at the far end.
    pub peer: String,
    /// Class of the link, see [`crate::topology::Fabric::link_class`].
    pub class: String,
    /// Bytes sent since the start of the run, as the interface counts them.
    pub sent_bytes: u64,
    /// Frames dropped at this queue since the start of the run.
    pub dropped_frames: u64,
}

/// How long one queue had a length: a bin of the distribution over time of what waits at one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    /// The sending node.
    pub node: String,
    /// The sending interface.
    pub interface: String,
    /// The node at the far end.
    pub peer: String,
    /// Class of the link, see [`crate::topology::Fabric::link_class`].
    pub class: String,
    /// The queue was at most so long, and longer than the next smaller bin of the same interface.
    pub bytes_at_most: u64,
    /// How long it was so, in the whole run.
    pub time_ns: u64,
}

/// State of one TCP sender at one time (the paper's extended TCP statistics, VL2 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpRow {
    /// Time since the start of the run.
    pub time_ns: u64,
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Smoothed round-trip time.
    pub srtt_ns: u64,
    /// Segments sent again so far.
    pub retransmits: u32,
}

/// How busy one core of the machine was since the last row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuRow {
    /// Time since the start of the run.
    pub time_ns: u64,
    /// The core.
    pub core: u32,
    /// Share of the time it idled, 0 to 1.
    pub idle_ratio: f64,
    /// Share of the time it spent in soft interrupts, 0 to 1.
    pub softirq_ratio: f64,
}

/// Something that happened: a fault, a route change, an adjacency change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// Time since the start of the run.
    pub time_ns: u64,
    /// Which kind: `fault`, `repair`, `routes-restored`, `adjacency`.
    pub kind: String,
    /// What it happened to.
    pub subject: String,
}

/// CPU time that a run's traffic cost on the core it was pinned to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostRow {
    /// CPU time of the sending and receiving processes and of soft interrupts on their core.
    pub cpu_ns: u64,
    /// Payload carried in that time.
    pub payload_bytes: u64,
    /// Wall time it took.
    pub wall_ns: u64,
}

/// How many requests of a directory's load took how long: a bin of a distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRow {
    /// What was timed: `lookup` and `update` (from the moment it was due until its answer), `visible` (from the moment an
    /// update was due until a look-up answers with it), `pushed` (until a subscriber has it).
    pub kind: String,
    /// Number of the step, from 1.
    pub step: u32,
    /// The server that `visible` was seen at; `None` where any server may have answered.
    pub server: Option<String>,
    /// It took at most so long, and longer than the next smaller bin of the same distribution.
    pub latency_at_most_ns: u64,
    /// How many.
    pub requests: u64,
}

/// What one step of a directory's load offered and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectoryRow {
    /// `lookup` or `update`.
    pub kind: String,
    /// Number of the step, from 1.
    pub step: u32,
    /// Requests per second that were to be offered.
    pub offered_per_s: u64,
    /// How long they were offered.
    pub wall_ns: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Datagrams or update messages in which they were, repeated ones and copies to a second server included.
    pub messages: u64,
    /// Requests that were answered within the timeout.
    pub answered: u64,
    /// Requests refused or answered with something else than was asked for.
    pub wrong: u64,
    /// Requests without an answer within the timeout.
    pub unanswered: u64,
    /// Requests that were due and not sent, because too many others were outstanding.
    pub skipped: u64,
    /// The longest time without an acknowledged update within the step; 0 for look-ups.
    pub longest_gap_ns: u64,
    /// Acknowledged updates that a server did not have when the step was over.
    pub lost: u64,
    /// CPU time of the directory servers that were asked.
    pub server_cpu_ns: u64,
    /// Busy time of all cores that neither load nor directory nor store caused, over the time there was, 0 to 1.
    pub foreign_cpu_ratio: f64,
}

/// What became of an AA's move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationRow {
    /// When the server lost its old link, from the start of the run.
    pub left_ns: u64,
    /// When it was ready behind its new ToR.
    pub arrived_ns: u64,
    /// When the directory was told; it commits a little later.
    pub told_ns: u64,
    /// When the last packet reached the old ToR.
    pub last_stale_ns: u64,
    /// Packets for it that the old ToR dropped.
    pub stale_packets: u64,
    /// Those that came after the directory was told.
    pub lost_packets: u64,
    /// The longest time in which the receiver got nothing.
    pub silence_ns: u64,
}

/// Everything that one run yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Flows.
    pub flows: Vec<FlowRow>,
    /// Received payload over time.
    pub progress: Vec<ProgressRow>,
    /// Link counters over time.
    pub links: Vec<LinkRow>,
    /// Queue lengths.
    pub queues: Vec<QueueRow>,
    /// TCP senders over time.
    pub tcp: Vec<TcpRow>,
    /// Cores over time.
    pub cpu: Vec<CpuRow>,
    /// Events.
    pub events: Vec<EventRow>,
    /// Latencies of a directory's load.
    pub latencies: Vec<LatencyRow>,
    /// Steps of a directory's load.
    pub directory: Vec<DirectoryRow>,
    /// Moves of AAs.
    pub migrations: Vec<MigrationRow>,
    /// CPU cost of the run's traffic, where it was pinned and measured.
    pub cost: Option<CostRow>,
    /// Anything else worth keeping: name and value, for instance `link_selftest.server-tor.got_bps`.
    pub facts: Vec<(String, f64)>,
}
