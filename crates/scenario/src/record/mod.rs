//! What every run yields: tidy rows with the unit in the column's name, the same from every engine.
//!
//! `rows!` declares a kind of rows once: struct, file, columns, reader, writer and the page `docs/records.md` follow from it.
//! A new kind is a new entry here, and a line in `docs/records.md` by `cargo run -p xtask -- records`.

#[macro_use]
mod kind;
mod cell;
mod reel;

use crate::workload::FlowClass;
use cell::Cell;

pub use kind::{Cells, Column, RowKind};
pub use reel::{Moment, PortMoment, PortName, Reel, WindowMoment, replay_rows, window_rows};

rows! {
    /// One flow, from its start to its end.
    flows: FlowRow {
        /// Number of the sending server.
        from: u32,
        /// Number of the receiving server.
        to: u32,
        /// Payload that was asked for; 0 for flows that send as much as they can.
        bytes_asked: u64,
        /// Payload that arrived at the receiving application.
        bytes_received: u64,
        /// When the connection was opened, from the start of the run.
        start_ns: u64,
        /// When the last byte arrived; empty if the run ended before that.
        end_ns: Option<u64>,
        /// Segments sent again.
        retransmits: u64,
        /// What kind of traffic it was part of.
        class: FlowClass,
        /// Number of the query that it answered.
        request: Option<u32>,
        /// How long it would have taken alone on the idle network; empty where the engine does not know.
        ideal_ns: Option<u64>,
    }

    /// Payload that arrived at all servers so far.
    progress: ProgressRow: Copy {
        /// Time since the start of the run.
        time_ns: u64,
        /// Payload received by all applications since the start.
        received_bytes: u64,
        /// Flows that have ended.
        flows_done: u64,
    }

    /// Payload that arrived at a service's servers so far.
    services: ServiceRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// Name of the service.
        service: String,
        /// Payload received by its servers since the start, of flows and of datagrams.
        received_bytes: u64,
    }

    /// Counters of one direction of one link at one time.
    links: LinkRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// The sending node.
        node: String,
        /// The sending interface.
        interface: String,
        /// The node at the far end.
        peer: String,
        /// Class of the link: the roles at its ends, the upper one first, for instance `aggregation-tor`.
        class: String,
        /// Bytes sent since the start of the run, as the interface counts them.
        sent_bytes: u64,
        /// Frames dropped at this queue since the start of the run.
        dropped_frames: u64,
    }

    /// How long one queue had a length: a bin of the distribution over time of what waits at one interface.
    queues: QueueRow {
        /// The sending node.
        node: String,
        /// The sending interface.
        interface: String,
        /// The node at the far end.
        peer: String,
        /// Class of the link: the roles at its ends, the upper one first, for instance `aggregation-tor`.
        class: String,
        /// The queue was at most so long, and longer than the next smaller bin of the same interface.
        bytes_at_most: u64,
        /// How long it was so, in the whole run.
        time_ns: u64,
    }

    /// What one direction of a link had carried, dropped and queued at one of the few hundred times that a replay shows; only where
    /// something changed since the time before.
    replay: ReplayRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// The sending node.
        node: String,
        /// The sending interface.
        interface: String,
        /// The node at the far end.
        peer: String,
        /// Bytes sent since the start of the run, as the interface counts them.
        sent_bytes: u64,
        /// Frames dropped at this queue since the start of the run.
        dropped_frames: u64,
        /// Bytes that wait at this moment.
        queued_bytes: u64,
    }

    /// One link of the way that a flow's data takes from a time on; of some flows, for a replay, and with the next row of the flow's
    /// first hop the way is another one.
    ways: WayRow {
        /// When the way was chosen, from the start of the run.
        time_ns: u64,
        /// The flow: its row in `flows.csv` among those of the trial, from 0.
        flow: u64,
        /// Number of the sending server.
        from: u32,
        /// Number of the receiving server.
        to: u32,
        /// Which link of the way it is, from 1.
        hop: u32,
        /// The node that sends on it.
        node: String,
        /// The sending interface.
        interface: String,
        /// The node at the far end.
        peer: String,
        /// Headers of the overlay between the link's own and the flow's IP header, the outermost first, with ` / ` between them.
        headers: String,
        /// Their length.
        header_bytes: u64,
        /// Where the sending node looked the way up to.
        toward: String,
        /// Equal next hops that it had; 1: nothing was chosen.
        next_hops: u32,
        /// Which of them it was, from 1.
        chosen: u32,
        /// What the node hashed for the choice, in hexadecimal; empty where there was none.
        hash: String,
    }

    /// State of the TCP sender of a flow that `ways` is about, at the times of `replay` at which it is open.
    windows: WindowRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// The flow: its row in `flows.csv` among those of the trial, from 0.
        flow: u64,
        /// Congestion window in segments.
        cwnd_segments: u32,
        /// Smoothed round-trip time; 0: none is known yet.
        srtt_ns: u64,
    }

    /// What the daemons of one node have used of a core since the row before, once a second; only where `replay` is recorded in a lab.
    daemons: DaemonRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// Their node.
        node: String,
        /// CPU time of all of them over the time there was: 1 is one core.
        cpu_ratio: f64,
    }

    /// State of one TCP sender at one time (the paper's extended TCP statistics, VL2 5).
    tcp: TcpRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// Number of the sending server.
        from: u32,
        /// Number of the receiving server.
        to: u32,
        /// Congestion window in segments.
        cwnd_segments: u32,
        /// Smoothed round-trip time.
        srtt_ns: u64,
        /// Segments sent again so far.
        retransmits: u32,
    }

    /// How busy one core of the machine was since the last row.
    cpu: CpuRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// Number of the core.
        core: u32,
        /// Share of the time it idled, 0 to 1.
        idle_ratio: f64,
        /// Share of the time it spent in soft interrupts, 0 to 1.
        softirq_ratio: f64,
    }

    /// How long programs of the run, and the kernel's threads that forward for it, had to wait for a core since the last row; only
    /// in labs whose kernel says so (`/proc/PID/schedstat`).
    core_waits: WaitRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// Who: `traffic` (programs that send and receive), `daemons`, `softirq` (the kernel's `ksoftirqd`, which takes over what
        /// soft interrupts leave).
        who: String,
        /// Length of the time that the row is about.
        wall_ns: u64,
        /// CPU time that all of them had.
        ran_ns: u64,
        /// How long they were ready and had no core, all of them together.
        waited_ns: u64,
        /// How often one of them got a core.
        turns: u64,
    }

    /// Who else used the CPU of the machine during a trial; only in labs, and only who used at least a hundredth of a core.
    others: OtherRow {
        /// Name of the process; `hypervisor`: what other virtual machines took.
        process: String,
        /// Its number; 0 where it has none.
        pid: u32,
        /// CPU time that it had.
        cpu_ns: u64,
        /// How long it was looked at.
        wall_ns: u64,
        /// Cores that the machine has.
        cores: u32,
    }

    /// Something that happened: a fault, a route change, an adjacency change.
    events: EventRow {
        /// Time since the start of the run.
        time_ns: u64,
        /// Which kind: `fault`, `repair`, `routes-restored`, `adjacency`; `ready`: what was repaired takes part again.
        kind: String,
        /// What it happened to.
        subject: String,
    }

    /// How many requests of a directory's load took how long: a bin of a distribution.
    latencies: LatencyRow {
        /// What was timed: `lookup` and `update` (from the moment it was due until its answer), `visible` (from the moment an
        /// update was due until a look-up answers with it), `pushed` (until a subscriber has it).
        kind: String,
        /// Number of the step, from 1.
        step: u32,
        /// The server that `visible` was seen at; empty where any server may have answered.
        server: Option<String>,
        /// It took at most so long, and longer than the next smaller bin of the same distribution.
        latency_at_most_ns: u64,
        /// Requests that took so long.
        requests: u64,
    }

    /// What one step of a directory's load offered and what came of it.
    directory: DirectoryRow {
        /// `lookup` or `update`.
        kind: String,
        /// Number of the step, from 1.
        step: u32,
        /// Requests per second that were to be offered.
        offered_per_s: u64,
        /// How long they were offered.
        wall_ns: u64,
        /// Requests that were sent.
        sent: u64,
        /// Datagrams or update messages in which they were, repeated ones and copies to a second server included.
        messages: u64,
        /// Requests that were answered within the timeout.
        answered: u64,
        /// Requests refused or answered with something else than was asked for.
        wrong: u64,
        /// Requests without an answer within the timeout.
        unanswered: u64,
        /// Requests that were due and never sent: too many others were outstanding, or the load had no time for them.
        skipped: u64,
        /// The longest time without an acknowledged update, one that lasts to the end of the step included; 0 for look-ups.
        longest_gap_ns: u64,
        /// Acknowledged updates that a server did not have when the step was over.
        lost: u64,
        /// CPU time of the directory servers that were asked.
        server_cpu_ns: u64,
        /// CPU time of the one of them that used most.
        busiest_server_cpu_ns: u64,
        /// CPU time of the store's nodes.
        store_cpu_ns: u64,
        /// Busy time of all cores that neither load nor directory nor store caused, over the time there was, 0 to 1.
        foreign_cpu_ratio: f64,
        /// 99th percentile of the time in which a bare socket sends datagrams back, just before the step or just after it, the longer
        /// one; 0 where that was not looked at.
        echo_p99_ns: u64,
    }

    /// A tenth of a second of a step of a directory's load.
    directory_ticks: DirectoryTickRow {
        /// `lookup` or `update`.
        kind: String,
        /// Number of the step, from 1.
        step: u32,
        /// When it began, from the start of the run.
        time_ns: u64,
        /// Requests that became due in it and were sent.
        sent: u64,
        /// Requests that were answered in it.
        answered: u64,
        /// Requests that were given up in it.
        failed: u64,
        /// The longest that one of those answered in it took.
        worst_ns: u64,
    }

    /// What became of an AA's move.
    migrations: MigrationRow: Copy {
        /// When the server lost its old link, from the start of the run.
        left_ns: u64,
        /// When it was ready behind its new ToR.
        arrived_ns: u64,
        /// When the directory was told; it commits a little later.
        told_ns: u64,
        /// When the last packet reached the old ToR.
        last_stale_ns: u64,
        /// Packets for it that the old ToR dropped.
        stale_packets: u64,
        /// Those that came after the directory was told.
        lost_packets: u64,
        /// The longest time in which the receiver got nothing.
        silence_ns: u64,
    }

    /// What a lab whose frames end in sockets holds of the machine's memory.
    memory: MemoryRow: Copy {
        /// Size of the frames that were sent just before, bytes with FCS; 0: none so far.
        frame_bytes: u32,
        /// What the kernel of the machine holds for everything on it, without caches of files.
        kernel_bytes: u64,
        /// What this grew by while the lab was made.
        lab_bytes: u64,
        /// What the lab's daemons hold.
        daemon_bytes: u64,
        /// What the processes at the receiving servers hold.
        receiver_bytes: u64,
    }

    /// What a number of segments takes.
    segments: SegmentRow {
        /// What holds them, as in the plan: `kernel-devices`, `map` ...
        store: String,
        /// Number of segments.
        segments: u32,
        /// How many of them carry traffic, in turns.
        active_segments: u32,
        /// Time to set all of them up on one server.
        setup_ns: u64,
        /// Time to remove all of them again; 0: not measured.
        removal_ns: u64,
        /// Memory that they take on one server.
        memory_bytes: u64,
        /// Size of frames with FCS, bytes.
        frame_bytes: u32,
        /// CPU time per frame of the test centre and everything between its ports, least of all runs.
        chain_ns_per_frame: f64,
        /// Frames sent.
        sent_frames: u64,
        /// Frames that arrived.
        received_frames: u64,
        /// One-way latency, median.
        latency_p50_ns: u64,
        /// 99th percentile of the same latency.
        latency_p99_ns: u64,
    }

    /// What became of frames that crossed a network from one server to another, at one rate.
    crossings: CrossingRow {
        /// Why this rate: `given` by the workload, `search` for the highest that sockets take, `share` of the one found, or as many as
        /// sockets can `send`.
        kind: String,
        /// Size of frames with FCS, bytes.
        frame_bytes: u32,
        /// The rate in percent of one path, or of the rate found; 0: it was given in frames per second.
        load_percent: u32,
        /// The rate that was asked for, frames per second; 0: as many as can be sent.
        asked_per_s: f64,
        /// Streams, of 100, that went to another VLAN; 100 where the workload does not mix.
        crossing_percent: u32,
        /// How long it was sent.
        wall_ns: u64,
        /// Frames sent.
        sent_frames: u64,
        /// Frames that arrived at their station.
        received_frames: u64,
        /// Frames that arrived after a later one of their stream.
        reordered_frames: u64,
        /// Streams.
        streams: u32,
        /// Streams that lost frames.
        hit_streams: u32,
        /// Time of the frames that the worst stream lost.
        outage_ns: u64,
        /// One-way latency from the first byte sent to the last byte received, mean.
        latency_mean_ns: f64,
        /// Median of the same latency.
        latency_p50_ns: u64,
        /// 99th percentile of the same latency.
        latency_p99_ns: u64,
        /// Mean that the test centre alone reads at this size and rate.
        floor_mean_ns: f64,
        /// Median of the same.
        floor_p50_ns: u64,
        /// CPU time of the receiving processes meanwhile; 0 for ports of the test centre.
        receiver_cpu_ns: u64,
        /// Whether the machine was quiet before and after, where that was looked at: 1, or 0.
        quiet: u32,
    }

    /// What became of a stream to many receivers.
    deliveries: DeliveryRow {
        /// Who made the copies: `tree` (switches) or `ingress` (whoever sent).
        copies: String,
        /// Stations that were to have each frame.
        receivers: u32,
        /// Groups that they had joined, each with a stream; 1 for copies by the ingress.
        groups: u32,
        /// Size of frames with FCS, bytes.
        frame_bytes: u32,
        /// The rate that was asked for, frames per second; with copies by the ingress so many to each receiver.
        asked_per_s: f64,
        /// How long they were sent.
        wall_ns: u64,
        /// Frames that left the sender; with copies by the ingress as many for each frame of the stream as there are receivers.
        sender_frames: u64,
        /// Copies that had to arrive.
        wanted_copies: u64,
        /// Copies of these that arrived, each counted once.
        received_copies: u64,
        /// Share of the stream that the receiver has which lost most, 0 to 1.
        worst_ratio: f64,
        /// Copies that came once more.
        duplicated_copies: u64,
        /// Stations of the same VLAN that had not asked for it.
        strangers: u32,
        /// Copies that came to these.
        stray_copies: u64,
        /// The link that went down meanwhile, as `leaf1-spine1`; empty: none.
        link_down: String,
        /// Receivers that lost frames.
        hit_receivers: u32,
        /// Time of the frames that the worst receiver lost of a stream.
        outage_ns: u64,
    }

    /// How many frames of a stream to many receivers one direction of a link between switches carried.
    link_copies: LinkCopyRow {
        /// Who made the copies: `tree` or `ingress`.
        copies: String,
        /// Receivers.
        receivers: u32,
        /// Groups, each with a stream.
        groups: u32,
        /// Frames that left the sender.
        sender_frames: u64,
        /// The switch that sends on the link.
        node: String,
        /// The switch at the far end.
        peer: String,
        /// Frames that came there, less as many as come by themselves in the time.
        frames: f64,
    }

    /// What a frame costs that goes nowhere, to one station, or to many: CPU time of the least disturbed run.
    copy_costs: CopyCostRow {
        /// `none` (the test centre alone), `unicast` (to the first receiver's own address) or `tree` (to a group).
        way: String,
        /// Receivers of the tree that it was measured beside, in turns.
        receivers: u32,
        /// Size of frames with FCS, bytes.
        frame_bytes: u32,
        /// Copies that switches sent of each frame, to each other and to stations; of a frame to one station one for each switch on its way.
        copies_per_frame: f64,
        /// CPU time per frame of the test centre and everything behind it, least of all runs.
        chain_ns_per_frame: f64,
        /// Lower quartile of the same over the runs.
        chain_quartile_ns_per_frame: f64,
        /// Number of runs.
        runs: u32,
    }

    /// How many frames of a crossing came by one of the switches behind the first.
    path_shares: PathShareRow {
        /// Size of frames with FCS, bytes.
        frame_bytes: u32,
        /// The rate in percent of one path; 0: it was given in frames per second.
        load_percent: u32,
        /// Streams, of 100, that went to another VLAN; 100 where the workload does not mix.
        crossing_percent: u32,
        /// The switch.
        switch: String,
        /// Frames that it took from the first one, less as many as come by themselves in the time.
        frames: u64,
        /// Bytes of these, as the kernel counts them: without FCS.
        bytes: u64,
    }

    /// What a frame costs up to a switch behind which the chain ends: CPU time of the least disturbed run.
    chains: ChainRow {
        /// The last switches that still forward: `leaf1`, `spine1-spine4`; the receiving servers where frames end in sockets; empty where
        /// none is cut off, and for whoever sends.
        until: String,
        /// How many switches, and servers, a frame has passed by then; 0 for whoever sends.
        hops: u32,
        /// Streams, of 100, that went to another VLAN; 100 where the workload does not mix.
        crossing_percent: u32,
        /// Size of frames with FCS, bytes.
        frame_bytes: u32,
        /// CPU time per frame of the test centre and everything so far, least of all runs.
        chain_ns_per_frame: f64,
        /// Lower quartile of the same over the runs.
        chain_quartile_ns_per_frame: f64,
        /// Most frames per second of wall time that came so far, all on one core; 0 where it was not measured.
        most_per_s: f64,
        /// Number of runs.
        runs: u32,
        /// Frames that were sent and did not come so far.
        lost_frames: u64,
    }

    /// What a switch, or a server with its processes, used while frames came at a steady rate, or none came.
    usage: UsageRow {
        /// Who: the switch, or the first and the last of those that frames pass side by side; a server by its edge switch.
        node: String,
        /// How many switches frames have passed by then, this one included.
        hops: u32,
        /// Size of the frames, bytes with FCS; 0: none were sent.
        frame_bytes: u32,
        /// The rate that was asked for, frames per second.
        asked_per_s: f64,
        /// How long they were sent.
        wall_ns: u64,
        /// Frames sent.
        sent_frames: u64,
        /// Frames that arrived where the chain ends: at the receivers, or, where a sending server is looked at, behind it.
        received_frames: u64,
        /// CPU time: of a switch what its ports' kernel threads and its daemons ran, of a server what its core did not idle.
        cpu_ns: u64,
        /// CPU time of the processes in it: daemons of a switch, VMs of a server with the soft interrupts that came over them.
        process_cpu_ns: u64,
        /// How long the core idled on which all of it ran.
        idle_ns: u64,
        /// What these processes hold.
        process_bytes: u64,
        /// What the kernel of the machine holds for everything on it, without caches of files.
        kernel_bytes: u64,
    }

    /// One large flow of a turn.
    elephants: ElephantRow {
        /// How it was sent: `tcp`, `mptcp` or `striped`.
        split: String,
        /// The turn, from 0.
        round: u32,
        /// Which of those at once, from 0.
        elephant: u32,
        /// TCP connections of it that were established: subflows, or stripes.
        connections: u32,
        /// Bytes that arrived.
        received_bytes: u64,
        /// How long they were sent.
        wall_ns: u64,
    }

    /// What a network costs.
    networks: NetworkRow {
        /// `vl2`, `conventional` (with ToRs as VL2's), `conventional-spare` (each of a pair carries all) or `present` (section
        /// 2's ToRs, with 1:5 of uplinks of 1 Gb/s).
        design: String,
        /// Servers that were asked for.
        servers: u32,
        /// Oversubscription that was asked for, 1 for none.
        oversubscription: u32,
        /// Oversubscription that it has.
        actual_oversubscription: f64,
        /// Most servers that switches of this kind connect so; 0 where nothing says so.
        servers_most: u64,
        /// Ports of its switches.
        switch_ports: u32,
        /// Number of ToRs.
        tors: u64,
        /// Number of Aggregations.
        aggregations: u64,
        /// Switches above the Aggregations.
        upper_switches: u64,
        /// Ports that are paid for, ToRs not counted.
        ports: u64,
        /// Links to servers.
        server_links: u64,
        /// Cables between switches.
        cables: u64,
        /// All switches but the ToRs, dollars.
        switches_usd: f64,
        /// ToRs and cables, dollars.
        tors_and_cables_usd: f64,
    }

    /// How loaded one direction of one link is under a routing.
    link_uses: LinkUseRow {
        /// `vlb`, `vlb-flows`, `adaptive` or `oblivious`.
        routing: String,
        /// The sending node.
        node: String,
        /// The node at the far end.
        peer: String,
        /// Most of its rate that was used in any interval.
        use_ratio: f64,
    }

    /// How loaded the most loaded link is in one interval under a routing.
    routed_matrices: RoutedMatrixRow {
        /// `vlb`, `vlb-flows`, `adaptive` or `oblivious`.
        routing: String,
        /// When the interval begins.
        time_ns: u64,
        /// All traffic between racks.
        offered_bps: f64,
        /// Use of the most loaded link.
        use_ratio: f64,
    }

    /// What a network can carry from one time until the next row's.
    availability: AvailabilityRow {
        /// Since when.
        time_ns: u64,
        /// For how long.
        lasts_ns: u64,
        /// Switches that are down.
        down: u32,
        /// Servers whose ToR works, over all.
        servers_ratio: f64,
        /// What servers ask of each other whose ToRs work, over what all ask.
        demand_ratio: f64,
        /// What servers can send across the top of the network, each at its fair share, over all their rates.
        capacity_ratio: f64,
        /// Pairs of working racks without a way between them, over all pairs of working racks.
        cut_ratio: f64,
    }

    /// Switches that failed together.
    failures: FailureRow {
        /// When they failed.
        time_ns: u64,
        /// For how long.
        lasts_ns: u64,
        /// Switches that failed.
        switches: u32,
        /// 1 if it took two members of a redundant group.
        takes_group: u32,
    }

    /// Flows of a log by size: a bin of the distribution of flows and of bytes.
    flow_sizes: FlowSizeRow {
        /// The flows were at most so large, and larger than the next smaller bin.
        bytes_at_most: u64,
        /// Flows of this size.
        flows: u64,
        /// What they carried together.
        bytes: u64,
    }

    /// How long servers had a number of flows open, their own and those of others together.
    concurrency: ConcurrencyRow {
        /// So many flows at once.
        flows: u32,
        /// For how long, in seconds, summed over all servers.
        server_s: f64,
    }

    /// The traffic between racks in one interval of a flow log.
    matrices: MatrixRow {
        /// Number of the interval, from 0.
        interval: u32,
        /// What all racks and the outside sent.
        bytes: u64,
        /// Pairs of racks of which the first sent to the second.
        pairs: u32,
        /// Which of the best clusters it is in, numbered in the order of their first matrices; empty: not clustered.
        cluster: Option<u32>,
    }

    /// How well a number of representative matrices stands for all matrices of a flow log.
    fitting: FittingRow: Copy {
        /// Number of representatives.
        clusters: u32,
        /// Of what the representatives hold, the share that the matrices which they stand for do not.
        error_ratio: f64,
        /// The same difference over what the matrices hold.
        excess_ratio: f64,
    }

    /// Datagrams of one paced flow that were lost one after another.
    gaps: GapRow {
        /// Number of the sending server.
        from: u32,
        /// Number of the receiving server.
        to: u32,
        /// When the first of them was sent, from the start of the run.
        time_ns: u64,
        /// Datagrams lost.
        lost: u32,
        /// From then until the next was sent that arrived.
        outage_ns: u64,
    }

    /// How long the datagrams of a flow were under way from socket to socket, one at a time.
    trips: TripRow {
        /// Number of the sending server.
        from: u32,
        /// Number of the receiving server.
        to: u32,
        /// Datagrams that came within a millisecond.
        datagrams: u32,
        /// Mean time under way.
        mean_ns: f64,
        /// Median of the same.
        p50_ns: u64,
        /// 99th percentile of the same.
        p99_ns: u64,
    }

    /// CPU time that a run's traffic cost on the core it was pinned to.
    cost: CostRow: Copy {
        /// CPU time of the sending and receiving processes and of soft interrupts on their core.
        cpu_ns: u64,
        /// Payload carried in that time.
        payload_bytes: u64,
        /// Wall time it took.
        wall_ns: u64,
    }
}

/// Facts are pairs, and so have no struct.
const FACTS: RowKind = RowKind {
    name: "facts",
    about: "Anything else worth keeping of a run.",
    columns: &[
        Column {
            name: "name",
            holds: String::HOLDS,
            about: "What it is, for instance `link_selftest.server-tor.got_bps`.",
        },
        Column { name: "value", holds: f64::HOLDS, about: "Its value, in the unit that the name ends with." },
    ],
    cells: |records| Box::new(records.facts.iter().map(|(name, value)| vec![name.clone(), value.write()])),
    push: |records, cells| {
        let [name, value] = cells else { return None };
        records.facts.push(((*name).to_owned(), Cell::read(value)?));
        Some(())
    },
    clear: |records| records.facts = Vec::new(),
};

impl Records {
    /// The value of a fact.
    pub fn fact(&self, name: &str) -> Option<f64> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

impl EventRow {
    /// Time since the start of the run, seconds.
    pub fn time_s(&self) -> f64 {
        self.time_ns as f64 / 1e9
    }
}
