//! Small jobs that several tests share.
#![allow(dead_code)]

use std::num::NonZeroU32;

use weft_scenario::engine::{CongestionControl, Overlay};
use weft_scenario::switching::{HostQueue, Switching};
use weft_scenario::topology::{Fabric, LeafSpineParams, Link, LinkParams, leaf_spine};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::FlowSpec;
use weft_sim::{Flow, Job, Outcome, PacketSizes, Settings, Source, Unobserved, Watch, run, tcp};

/// Picoseconds in a microsecond.
pub(crate) const US: u64 = 1_000_000;
pub(crate) const GBPS: u64 = 1_000_000_000;
/// Payload of one packet.
pub(crate) const PACKET: u64 = 1_460;

/// Leaves of `servers_per_leaf` hosts at 10 Gb/s; all links have 1 us and buffers of 10 MB.
pub(crate) fn fabric(spines: u32, leaves: u32, servers_per_leaf: u32, core_gbps: u64) -> Fabric {
    let links = LinkParams {
        server_rate: BitsPerSec(10 * GBPS),
        core_rate: BitsPerSec(core_gbps * GBPS),
        server_buffer: Bytes(10_000_000),
        core_buffer: Bytes(10_000_000),
        delay: Nanos(1_000),
    };
    leaf_spine(&LeafSpineParams { spines, leaves, servers_per_leaf, links, ..Default::default() }).unwrap()
}

/// The same fabric with other links.
pub(crate) fn with_links(fabric: &Fabric, change: impl Fn(&mut Link)) -> Fabric {
    let mut links = fabric.links().to_vec();
    links.iter_mut().for_each(change);
    Fabric::new(fabric.name(), fabric.nodes().to_vec(), links).unwrap()
}

/// Plain Reno with an acknowledgement for each segment.
pub(crate) fn reno() -> tcp::Config {
    tcp::Config { segments_per_ack: 1, congestion_control: CongestionControl::Reno, ..tcp::Config::rfc_reno() }
}

pub(crate) fn flow(from: u32, to: u32, bytes: u64, start_ns: u64) -> Flow {
    FlowSpec::bulk(from, to, bytes, start_ns).into()
}

/// Bare packets, plain Reno, network cards that never fill.
pub(crate) fn job(fabric: Fabric, flows: Vec<Flow>) -> Job {
    let switching = Switching { host_queue: HostQueue::DropTail { limit: Bytes(10_000_000) }, ..Switching::default() };
    Job {
        fabric,
        addresses: None,
        settings: Settings { overlay: Overlay::Routed, switching, tcp: reno(), sizes: PacketSizes::bare(), seed: 1 },
        source: Source::Flows(flows),
        datagrams: Vec::new(),
        faults: Vec::new(),
        stop: None,
        watch: Watch::default(),
        threads: NonZeroU32::MIN,
        parts: None,
    }
}

pub(crate) fn outcome(job: &Job) -> Outcome {
    run(job, &mut Unobserved).unwrap()
}
