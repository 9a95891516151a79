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

/// Payload that arrived at a service's servers so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    /// Time since the start of the run.
    pub time_ns: u64,
    /// Name of the service.
    pub service: String,
    /// Payload received by its servers since the start, of flows and of datagrams.
    pub received_bytes: u64,
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

/// Datagrams of one paced flow that were lost one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRow {
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// When the first of them was sent, from the start of the run.
    pub time_ns: u64,
    /// How many.
    pub lost: u32,
    /// From then until the next was sent that arrived.
    pub outage_ns: u64,
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

impl EventRow {
    /// Time since the start of the run, seconds.
    pub fn time_s(&self) -> f64 {
        self.time_ns as f64 / 1e9
    }
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
    /// Requests that were due and never sent: too many others were outstanding, or the load had no time for them.
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

/// What one server of the VXLAN draft's experiments spends at one size of frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerRow {
    /// How frames travelled: a [`crate::workload::vxlan::Path`].
    pub path: String,
    /// `server1`, whose VMs send in traffic model B, or `server2`.
    pub server: String,
    /// Size of frames with FCS, bytes; 0: nothing is sent.
    pub frame_bytes: u32,
    /// The rate that the CPU columns are for, frames per second.
    pub frames_per_s: f64,
    /// CPU time of the whole server per frame: its VMs and its virtual switch.
    pub server_ns_per_frame: f64,
    /// CPU time of its VMs per frame, their own network stacks included.
    pub vm_ns_per_frame: f64,
    /// Cores that the server is busy with at that rate.
    pub server_cores: f64,
    /// Cores that its VMs are busy with at that rate.
    pub vm_cores: f64,
    /// Frequency of a core, MHz: what the draft's unit needs.
    pub core_mhz: f64,
    /// Memory of the server: what the kernel holds on the machine and the VMs' own.
    pub server_memory_bytes: u64,
    /// Memory of its VMs' processes.
    pub vm_memory_bytes: u64,
}

/// What became of one rate of frames that was offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedRow {
    /// What it was for: `search`, `offered`, `pairs`, `latency`.
    pub kind: String,
    /// How frames travelled.
    pub path: String,
    /// The receiving server.
    pub server: String,
    /// Pairs of VMs that took part.
    pub vm_pairs: u32,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// The rate that was asked for in percent of the benchmark; 0: as fast as possible.
    pub offered_percent: u32,
    /// The rate that was asked for, frames per second; 0: as fast as possible.
    pub asked_per_s: f64,
    /// How long it was offered.
    pub wall_ns: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames that arrived at the VMs, or at the test centre's port.
    pub received_frames: u64,
    /// CPU time of the receiving VMs meanwhile; 0 where the test centre's port receives.
    pub vm_cpu_ns: u64,
    /// One-way latency, median; 0 where it was not measured.
    pub latency_p50_ns: u64,
    /// The same, 99th percentile.
    pub latency_p99_ns: u64,
    /// Median that the test centre alone reads at this rate.
    pub floor_p50_ns: u64,
}

/// What a frame costs on one way between two virtual switches: CPU time of the least disturbed run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathCostRow {
    /// How frames travelled.
    pub path: String,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// CPU time per frame of the test centre and everything between its ports, least of all runs.
    pub chain_ns_per_frame: f64,
    /// The same, lower quartile of the runs.
    pub chain_quartile_ns_per_frame: f64,
    /// CPU time per frame of the test centre alone, least of all runs.
    pub tester_ns_per_frame: f64,
    /// Number of runs.
    pub runs: u32,
    /// Frames that were sent and did not arrive.
    pub lost_frames: u64,
}

/// What a number of segments takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SegmentRow {
    /// What holds them: a [`crate::workload::vxlan::SegmentStore`].
    pub store: String,
    /// How many.
    pub segments: u32,
    /// How many of them carry traffic, in turns.
    pub active_segments: u32,
    /// Time to set all of them up on one server.
    pub setup_ns: u64,
    /// Time to remove all of them again; 0: not measured.
    pub removal_ns: u64,
    /// Memory that they take on one server.
    pub memory_bytes: u64,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// CPU time per frame of the test centre and everything between its ports, least of all runs.
    pub chain_ns_per_frame: f64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames that arrived.
    pub received_frames: u64,
    /// One-way latency, median.
    pub latency_p50_ns: u64,
    /// The same, 99th percentile.
    pub latency_p99_ns: u64,
}

/// What became of frames that crossed switches from one port of the test centre to another, at one rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossingRow {
    /// How the switches forwarded: a [`crate::workload::trill::Way`].
    pub way: String,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// The rate in percent of one path; 0: it was given in frames per second.
    pub load_percent: u32,
    /// The rate that was asked for, frames per second.
    pub asked_per_s: f64,
    /// How long it was sent.
    pub wall_ns: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames that arrived at their station.
    pub received_frames: u64,
    /// Frames that arrived after a later one of their flow.
    pub reordered_frames: u64,
    /// One-way latency from the first byte sent to the last byte received, mean.
    pub latency_mean_ns: f64,
    /// The same, median.
    pub latency_p50_ns: u64,
    /// The same, 99th percentile.
    pub latency_p99_ns: u64,
    /// Mean that the test centre alone reads at this size and rate.
    pub floor_mean_ns: f64,
    /// Median of the same.
    pub floor_p50_ns: u64,
}

/// How many frames of a crossing came by one of the middle switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathShareRow {
    /// How the switches forwarded.
    pub way: String,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// As in [`CrossingRow`].
    pub load_percent: u32,
    /// The middle switch.
    pub switch: String,
    /// Frames that it took from S1.
    pub frames: u64,
    /// Bytes of these, as the kernel counts them: without FCS.
    pub bytes: u64,
}

/// What one round of a mix did: frames of which a share crosses VLANs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VlanMixRow {
    /// How frames got from VLAN to VLAN: a [`crate::workload::trill::Way`].
    pub way: String,
    /// Streams, of 100, that go to the other VLAN.
    pub crossing_percent: u32,
    /// The round, from 0.
    pub round: u32,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// Rate that was sent, frames per second.
    pub offered_per_s: f64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames that arrived at their station.
    pub received_frames: u64,
    /// One-way latency from the first byte sent to the last byte received, mean of all frames.
    pub latency_mean_ns: f64,
    /// The same, median.
    pub latency_p50_ns: u64,
    /// The same, 99th percentile.
    pub latency_p99_ns: u64,
    /// Mean that the test centre alone reads at this size and rate.
    pub floor_mean_ns: f64,
    /// Median of the same.
    pub floor_p50_ns: u64,
    /// Whether the machine was quiet before and after: 1, or 0.
    pub quiet: u32,
    /// CPU time per frame of generator, campus and analysers, the least of the turn's runs.
    pub chain_ns_per_frame: f64,
    /// The same of generator and analyser alone.
    pub tester_ns_per_frame: f64,
}

/// One large flow of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElephantRow {
    /// How it was sent: a [`crate::workload::trill::Split`].
    pub split: String,
    /// The turn, from 0.
    pub round: u32,
    /// Which of those at once, from 0.
    pub elephant: u32,
    /// TCP connections of it that were established: subflows, or stripes.
    pub connections: u32,
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// How long they were sent.
    pub wall_ns: u64,
}

/// What the loss of a middle switch did to flows that cross.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SwitchLossRow {
    /// How the switches forwarded.
    pub way: String,
    /// How it was lost: a [`crate::workload::trill::SwitchLoss`].
    pub loss: String,
    /// The switch.
    pub switch: String,
    /// Flows that crossed.
    pub flows: u32,
    /// Flows that lost frames.
    pub hit_flows: u32,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames that did not arrive.
    pub lost_frames: u64,
    /// Time of the frames that the worst flow lost.
    pub outage_ns: u64,
    /// What the timers of a spanning tree add up to; 0: there is none.
    pub recovery_s: u64,
}

/// What a frame costs up to a place on its way, where the chain ends: CPU time of the least disturbed run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainRow {
    /// How the switches forward; empty for the test centre alone.
    pub way: String,
    /// The last switch that still forwards: `s1`, `middle`, `s2`; empty for the test centre alone.
    pub until: String,
    /// Size of frames with FCS, bytes.
    pub frame_bytes: u32,
    /// CPU time per frame of the test centre and all switches so far, least of all runs.
    pub chain_ns_per_frame: f64,
    /// The same, lower quartile of the runs.
    pub chain_quartile_ns_per_frame: f64,
    /// Most frames per second of wall time that came so far, all on one core.
    pub most_per_s: f64,
    /// Number of runs.
    pub runs: u32,
    /// Frames that were sent and did not come so far.
    pub lost_frames: u64,
}

/// What a network costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkRow {
    /// `vl2`, `conventional` (with ToRs as VL2's), `conventional-spare` (each of a pair carries all) or `present` (section
    /// 2's ToRs, with 1:5 of uplinks of 1 Gb/s).
    pub design: String,
    /// Servers that were asked for.
    pub servers: u32,
    /// Oversubscription that was asked for, 1 for none.
    pub oversubscription: u32,
    /// Oversubscription that it has.
    pub actual_oversubscription: f64,
    /// Most servers that switches of this kind connect so; 0 where nothing says so.
    pub servers_most: u64,
    /// Ports of its switches.
    pub switch_ports: u32,
    /// ToRs.
    pub tors: u64,
    /// Aggregations.
    pub aggregations: u64,
    /// Switches above the Aggregations.
    pub upper_switches: u64,
    /// Ports that are paid for, ToRs not counted.
    pub ports: u64,
    /// Links to servers.
    pub server_links: u64,
    /// Cables between switches.
    pub cables: u64,
    /// All switches but the ToRs, dollars.
    pub switches_usd: f64,
    /// ToRs and cables, dollars.
    pub tors_and_cables_usd: f64,
}

/// How loaded one direction of one link is under a routing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUseRow {
    /// `vlb`, `vlb-flows`, `adaptive` or `oblivious`.
    pub routing: String,
    /// The sending node.
    pub node: String,
    /// The node at the far end.
    pub peer: String,
    /// Most of its rate that was used in any interval.
    pub use_ratio: f64,
}

/// How loaded the most loaded link is in one interval under a routing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoutedMatrixRow {
    /// As in [`LinkUseRow`].
    pub routing: String,
    /// When the interval begins.
    pub time_ns: u64,
    /// All traffic between racks.
    pub offered_bps: f64,
    /// Use of the most loaded link.
    pub use_ratio: f64,
}

/// What a network can carry from one time until the next row's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AvailabilityRow {
    /// Since when.
    pub time_ns: u64,
    /// For how long.
    pub lasts_ns: u64,
    /// Switches that are down.
    pub down: u32,
    /// Servers whose ToR works, over all.
    pub servers_ratio: f64,
    /// What servers ask of each other whose ToRs work, over what all ask.
    pub demand_ratio: f64,
    /// What servers can send across the top of the network, each at its fair share, over all their rates.
    pub capacity_ratio: f64,
    /// Pairs of working racks without a way between them, over all pairs of working racks.
    pub cut_ratio: f64,
}

/// Switches that failed together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureRow {
    /// When.
    pub time_ns: u64,
    /// For how long.
    pub lasts_ns: u64,
    /// How many.
    pub switches: u32,
    /// 1 if it took two members of a redundant group.
    pub takes_group: u32,
}

/// Flows of a log by size: a bin of the distribution of flows and of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSizeRow {
    /// The flows were at most so large, and larger than the next smaller bin.
    pub bytes_at_most: u64,
    /// How many.
    pub flows: u64,
    /// What they carried together.
    pub bytes: u64,
}

/// How long servers had a number of flows open, their own and those of others together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyRow {
    /// So many flows at once.
    pub flows: u32,
    /// For how long, in seconds, summed over all servers.
    pub server_s: f64,
}

/// The traffic between racks in one interval of a flow log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Number of the interval, from 0.
    pub interval: u32,
    /// What all racks and the outside sent.
    pub bytes: u64,
    /// Pairs of racks of which the first sent to the second.
    pub pairs: u32,
    /// Which of the best clusters it is in, numbered in the order of their first matrices; `None`: not clustered.
    pub cluster: Option<u32>,
}

/// How well a number of representative matrices stands for all matrices of a flow log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FittingRow {
    /// How many representatives.
    pub clusters: u32,
    /// Of what the representatives hold, the share that the matrices which they stand for do not.
    pub error_ratio: f64,
    /// The same difference over what the matrices hold.
    pub excess_ratio: f64,
}

/// Everything that one run yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Flows.
    pub flows: Vec<FlowRow>,
    /// Received payload over time.
    pub progress: Vec<ProgressRow>,
    /// Received payload of each service over time, where the workload has services.
    pub services: Vec<ServiceRow>,
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
    /// Servers of the VXLAN draft.
    pub servers: Vec<ServerRow>,
    /// Rates that were offered to them.
    pub offered: Vec<OfferedRow>,
    /// What frames cost on ways between virtual switches.
    pub path_costs: Vec<PathCostRow>,
    /// What numbers of segments take.
    pub segments: Vec<SegmentRow>,
    /// Crossings of switches.
    pub crossings: Vec<CrossingRow>,
    /// By which middle switches.
    pub path_shares: Vec<PathShareRow>,
    /// What frames cost up to a place on their way.
    pub chains: Vec<ChainRow>,
    /// Losses of switches.
    pub switch_losses: Vec<SwitchLossRow>,
    /// Rounds of mixes of traffic within and between VLANs.
    pub vlan_mixes: Vec<VlanMixRow>,
    /// Large flows by the TCP of real kernels.
    pub elephants: Vec<ElephantRow>,
    /// Networks with their cost.
    pub networks: Vec<NetworkRow>,
    /// Use of links by routing.
    pub link_uses: Vec<LinkUseRow>,
    /// Traffic matrices by routing.
    pub routed_matrices: Vec<RoutedMatrixRow>,
    /// What a network can carry over time.
    pub availability: Vec<AvailabilityRow>,
    /// What failed.
    pub failures: Vec<FailureRow>,
    /// Flows of a log by size.
    pub flow_sizes: Vec<FlowSizeRow>,
    /// Flows that servers of a log had at once.
    pub concurrency: Vec<ConcurrencyRow>,
    /// Traffic between racks of a log, interval by interval.
    pub matrices: Vec<MatrixRow>,
    /// How well representatives stand for it.
    pub fitting: Vec<FittingRow>,
    /// Gaps in paced flows.
    pub gaps: Vec<GapRow>,
    /// CPU cost of the run's traffic, where it was pinned and measured.
    pub cost: Option<CostRow>,
    /// Anything else worth keeping: name and value, for instance `link_selftest.server-tor.got_bps`.
    pub facts: Vec<(String, f64)>,
}
