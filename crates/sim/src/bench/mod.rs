//! The jobs of `weft bench sim`, as data: the reference job R1 of which other simulators' speed is known, its variants, a
//! network of 1600 hosts, and fat trees with sparse traffic.

mod fat_tree;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{CongestionControl, Overlay};
use weft_scenario::id::NodeId;
use weft_scenario::switching::{BufferPolicy, HostQueue, Switching};
use weft_scenario::topology::{ClosParams, Fabric, LeafSpineParams, LinkParams, Role, leaf_spine, vl2_clos};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::flow_file::PinnedFlow;
use weft_scenario::workload::{FlowSpec, r1};

use crate::job::{Flow, Job, PacketSizes, Settings, Source, Watch};
use crate::tcp;
use crate::time::{PS_PER_NS, PS_PER_S};

/// Names of all jobs, in the order in which they are reported.
pub const JOBS: [&str; 6] = ["r1a", "r1b", "r1w", "r1a_shared", "hosts1600", FAT_TREES[2]];

/// Names of the jobs of sparse traffic on fat trees, the smallest tree first.
pub const FAT_TREES: [&str; 3] = ["fat8", "fat16", "fat32"];

/// Names of the jobs at size, and of the job of [`JOBS`] that stands beside them.
pub const SCALE_JOBS: [&str; 6] = [REST, "vl2_1600", "vl2_20480", "vl2_20480_x2", "vl2_103680", "vl2_103680_x2"];
/// What the name of a job ends with that is run on two threads.
const TWO_THREADS: &str = "_x2";
/// The job of which paces at size are shares.
pub const SCALE_REFERENCE: &str = "r1a";
/// The network of 103,680 servers without traffic.
pub const REST: &str = "rest_103680";

/// Buffer of every port, network cards included, where ports have their own.
const PORT_BUFFER: Bytes = Bytes(400_000);
/// Buffer of every switch in `r1a_shared`.
const SHARED_BUFFER: Bytes = Bytes(10_000_000);
const HOST_RATE: BitsPerSec = BitsPerSec(10_000_000_000);
/// Rate of VL2's servers (VL2 4.1).
const SERVER_RATE: BitsPerSec = BitsPerSec(1_000_000_000);
const SPINE_RATE: BitsPerSec = BitsPerSec(40_000_000_000);
const LINK_DELAY: Nanos = Nanos(1_000);

/// The job of this name; `None` if there is none.
///
/// | name | flows |
/// | --- | --- |
/// | `r1a` | a permutation of 100 hosts, 14.6 MB each, spread evenly over the spines: no loss |
/// | `r1b` | the same, spines hashed: some are crowded |
/// | `r1w` | 1000 web-search flows at 60 % load |
/// | `r1a_shared` | `r1a` with one buffer of 10 MB for all ports of a switch |
/// | `hosts1600` | a permutation of 1600 hosts, 1.46 MB each, spread evenly over 10 spines |
/// | `fat8`, `fat16`, `fat32` | 1000 bytes a second from every second server of a fat tree of such switches to another pod, 1500 times |
/// | `rest_103680` | none; VL2's Clos of switches with 144 ports, 20 servers of 1 Gb/s at each ToR |
/// | `vl2_1600` | a permutation of 1,600 servers of VL2, TCP of today, 150 kB each: switches of 20 ports, 16 servers a ToR |
/// | `vl2_20480` | the same of 20,480: 64 ports, 20 servers |
/// | `vl2_103680` | the same of 103,680, 30 kB each: 144 ports, 20 servers |
/// | `..._x2` | on two threads |
pub fn job(name: &str) -> Option<Job> {
    if let Some(serial) = name.strip_suffix(TWO_THREADS) {
        return job(serial).map(|job| Job { threads: NonZeroU32::MIN.saturating_add(1), ..job });
    }
    let r1 = |flows: Vec<PinnedFlow>| pinned(fabric(r1::SPINES, r1::HOSTS, r1::HOSTS_PER_RACK), &flows);
    Some(match name {
        "r1a" => r1(r1::permutation(10_000)),
        "r1b" => r1(r1::hashed_permutation(10_000)),
        "r1w" => r1(r1::web_search(1_000)),
        "r1a_shared" => shared(r1(r1::permutation(10_000))),
        "hosts1600" => {
            let large = fabric(r1::LARGE_SPINES, r1::LARGE_HOSTS, r1::LARGE_HOSTS_PER_RACK);
            pinned(large, &r1::hosts1600(1_000))
        }
        REST => vl2(144, 20, None),
        "vl2_1600" => vl2(20, 16, Some(150_000)),
        "vl2_20480" => vl2(64, 20, Some(150_000)),
        "vl2_103680" => vl2(144, 20, Some(30_000)),
        _ => fat_tree::job(fat_tree::PORTS[FAT_TREES.iter().position(|tree| *tree == name)?]),
    })
}

/// The job with so many times fewer packets in each flow.
pub fn divided(mut job: Job, divisor: u32) -> Job {
    fat_tree::divide(&mut job.datagrams, divisor.max(1).into());
    if let Source::Flows(flows) = &mut job.source {
        flows.iter_mut().for_each(|flow| flow.spec.bytes /= u64::from(divisor.max(1)));
    }
    job
}

/// Mean flow completion time of the flows that completed, counted as R1 counts it: to the last byte acknowledged at the
/// sender. In nanoseconds.
pub fn mean_completion_ns(outcome: &crate::Outcome) -> u64 {
    mean_ns(outcome.flows.iter().filter_map(crate::FlowOutcome::acknowledged_completion_ps))
}

/// The same to the last byte at the receiver, as ns-3's driver counts.
pub fn mean_received_ns(outcome: &crate::Outcome) -> u64 {
    mean_ns(outcome.flows.iter().filter_map(crate::FlowOutcome::completion_ps))
}

fn mean_ns(times: impl Iterator<Item = u64>) -> u64 {
    let (count, sum_ps) = times.fold((0u128, 0u128), |(count, sum), time| (count + 1, sum + u128::from(time)));
    (sum_ps / count.max(1) / u128::from(PS_PER_NS)) as u64
}

/// Mean one-way delay of the datagrams that were received, in nanoseconds.
pub fn mean_delay_ns(outcome: &crate::Outcome) -> f64 {
    let (count, sum_ps) = outcome
        .datagrams
        .iter()
        .fold((0, 0), |(count, sum_ps), stream| (count + stream.received, sum_ps + stream.delay_sum_ps));
    sum_ps as f64 / count.max(1) as f64 / PS_PER_NS as f64
}

/// A leaf-spine fabric with R1's rates, delays and buffers.
fn fabric(spines: u32, hosts: u32, servers_per_leaf: u32) -> Fabric {
    let links = LinkParams {
        server_rate: HOST_RATE,
        core_rate: SPINE_RATE,
        server_buffer: PORT_BUFFER,
        core_buffer: PORT_BUFFER,
        delay: LINK_DELAY,
    };
    let leaves = hosts / servers_per_leaf;
    let params = LeafSpineParams { spines, leaves, servers_per_leaf, links_per_pair: 1, links };
    leaf_spine(&params).expect("R1's parameters are within the generator's limits")
}

/// R1's TCP: NewReno with SACK, an acknowledgement for each segment, a window of at most 175, 250 ms at least before a
/// retransmission timeout.
fn tcp() -> tcp::Config {
    tcp::Config {
        congestion_control: CongestionControl::Reno,
        initial_window: 10,
        window_cap: 175,
        segments_per_ack: 1,
        rto_min_ps: PS_PER_S / 4,
        rto_initial_ps: 3 * PS_PER_S,
        ..tcp::Config::rfc_reno()
    }
}

fn pinned(fabric: Fabric, flows: &[PinnedFlow]) -> Job {
    let spines: Vec<NodeId> = fabric.with_role(Role::Spine).collect();
    let flow = |flow: &PinnedFlow| Flow { spec: flow.spec(), through: spines.get(flow.spine as usize).copied() };
    Job { source: Source::Flows(flows.iter().map(flow).collect()), ..bare(fabric, settings(PORT_BUFFER)) }
}

/// Packets without anything around them, network cards that drop what is over this limit.
fn settings(limit: Bytes) -> Settings {
    let switching = Switching { host_queue: HostQueue::DropTail { limit }, ..Switching::default() };
    Settings { overlay: Overlay::Routed, switching, tcp: tcp(), sizes: PacketSizes::bare(), seed: 1 }
}

/// A job of nothing.
fn bare(fabric: Fabric, settings: Settings) -> Job {
    Job {
        fabric,
        addresses: None,
        settings,
        source: Source::Flows(Vec::new()),
        datagrams: Vec::new(),
        faults: Vec::new(),
        stop: None,
        watch: Watch::default(),
        threads: NonZeroU32::MIN,
        parts: None,
    }
}

/// A Clos of switches with so many ports, each server of which sends so much to one on the far side; `None`: none does.
fn vl2(ports: u32, servers_per_tor: u32, bytes: Option<u64>) -> Job {
    let links = LinkParams { delay: LINK_DELAY, ..LinkParams::for_server_rate(SERVER_RATE) };
    let params = ClosParams { servers_per_tor, links, ..ClosParams::with_ports(ports) };
    let fabric = vl2_clos(&params).expect("the parameters are within the generator's limits");
    let count = fabric.servers().count() as u32;
    // Half the network and some racks away.
    let flow = |from: u32, bytes| FlowSpec::bulk(from, (from + count / 2 + 7) % count, bytes, 0).into();
    let flows = bytes.map_or(Vec::new(), |bytes| (0..count).map(|from| flow(from, bytes)).collect());
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).expect("the blocks have room for it");
    let settings = Settings {
        overlay: Overlay::Vl2,
        switching: Switching::default(),
        tcp: tcp::Config::default(),
        sizes: PacketSizes::ethernet(true),
        seed: 1,
    };
    Job { addresses: Some(addresses), source: Source::Flows(flows), ..bare(fabric, settings) }
}

fn shared(mut job: Job) -> Job {
    job.settings.switching.buffer =
        BufferPolicy::SharedPool { pool: SHARED_BUFFER, dynamic_alpha_milli: None, tier_pools: BTreeMap::new() };
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_of_the_permutation_at_size_arrives() {
        let outcome = crate::run(&divided(vl2(20, 16, Some(150_000)), 100), &mut crate::Unobserved).expect("it runs");
        // A SYN, two segments, and what answers them, over 6 links each.
        assert_eq!((outcome.totals.flows_done, outcome.totals.packet_hops), (1_600, 1_600 * 6 * 2 * 3));
        assert_eq!(outcome.totals.drops(), 0);
    }

    #[test]
    fn a_tenth_of_r1a_has_a_tenth_of_its_hops() {
        let job = divided(job("r1a").expect("it is listed"), 10);
        let totals = crate::run(&job, &mut crate::Unobserved).expect("the job runs").totals;
        // 100 flows of 1000 packets and their ACKs over 4 links, and as much for SYN and SYN-ACK.
        assert_eq!((totals.packet_hops, totals.drops()), (100 * 4 * 2 * 1_001, 0));
    }
}
