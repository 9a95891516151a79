//! What a run takes of the machine's memory, told before anything is made.
//!
//! While it runs there are ports and flows; behind it, in their place, rows. Weights are sizes of what is kept, rounded up to what
//! was measured: `weft bench sim` holds each estimate against the kernel's count.

use weft_scenario::engine::Trial;
use weft_scenario::topology::FabricSize;
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::mix::mean_concurrency;
use weft_scenario::workload::{MixSpec, Servers, SizeDistribution, TrafficSpec, Workload};

use crate::job::{Job, PacketSizes, Source};
use crate::outcome::{FlowOutcome, PortCounters, TcpSample};
use crate::run;

/// The program, its libraries and the bins of events; right after the program was written the kernel counted some 1.5 MB more.
const BASE_BYTES: u64 = 14_000_000;
/// A link with its nodes, names and routes, and what looks for mistakes in them before they run.
const LINK_BYTES: u64 = 860;
/// What a port keeps for packets once one has waited at it.
const QUEUE_BYTES: u64 = 650;
/// Ports that a flow's packets and acknowledgements come by.
const PORTS_OF_FLOW: u64 = 12;
/// Both ends of a connection, its timers, routes and outcome.
const FLOW_BYTES: u64 = 960;
/// What a part of the network more takes: all ports, hosts and routes to be at rest or to be known there, and of a flow what is
/// kept at both of its ends and on the way between them.
const PART_LINK_BYTES: u64 = 540;
const PART_FLOW_BYTES: u64 = 1_500;
/// A segment on its way: at its sender, and in some queue.
const SEGMENT_BYTES: u64 = 19;
/// A row of a link, and of a replay, with the names of its ends.
const LINK_ROW_BYTES: u64 = 250;
/// A row of a flow.
const FLOW_ROW_BYTES: u64 = 112;
/// Rows of the queue of a port between switches.
const QUEUE_ROWS_BYTES: u64 = 4_000;

/// Segments that a flow is taken to have outstanding at most.
const WINDOW_SEGMENTS: u64 = 128;
/// Flows that traffic at a load keeps open, for each server: some way above what is seen below the capacity.
const OPEN_PER_SERVER: u64 = 32;
/// Longer than bulk flows would take if servers' links were all that holds them back.
const SLOWER_THAN_IDEAL: u64 = 2;

/// How much there is of everything that takes memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub hosts: u64,
    pub links: u64,
    /// Flows that are open at the same time.
    pub flows_at_once: u64,
    /// Segments that one of them has outstanding.
    pub window_segments: u64,
    /// Flows of the whole run, of which each has a row.
    pub flow_rows: u64,
    /// Times at which all ports are read.
    pub samples: u64,
    /// Rows of TCP senders.
    pub tcp_rows: u64,
    /// Times that a replay keeps of all ports.
    pub moments: u64,
    /// Whether queues between switches are recorded, and what is kept becomes rows.
    pub has_rows: bool,
    /// Parts that the network is cut into; 0 is one.
    pub parts: u64,
}

/// The most memory that a run of this extent takes at once.
pub fn estimate(extent: &Extent) -> Bytes {
    let ports = extent.links.saturating_mul(2);
    let kept = ports
        .saturating_mul(extent.samples.saturating_add(extent.moments))
        .saturating_mul(size::<PortCounters>())
        .saturating_add(extent.tcp_rows.saturating_mul(size::<TcpSample>()));
    let fabric = BASE_BYTES.saturating_add(extent.links.saturating_mul(LINK_BYTES));
    let fabric = fabric.saturating_add(kept);
    Bytes(fabric.saturating_add(running(extent, ports).max(rows(extent, ports))))
}

/// What there is while packets move, beside the network and what is kept of it.
fn running(extent: &Extent, ports: u64) -> u64 {
    let flow = FLOW_BYTES.saturating_add(extent.window_segments.saturating_mul(SEGMENT_BYTES));
    let ended = extent.flow_rows.saturating_sub(extent.flows_at_once);
    let flows = extent.flows_at_once.saturating_mul(flow).saturating_add(ended.saturating_mul(size::<FlowOutcome>()));
    let used = ports.min(extent.flows_at_once.saturating_mul(PORTS_OF_FLOW));
    let part = extent.links.saturating_mul(PART_LINK_BYTES);
    let part = part.saturating_add(extent.flows_at_once.saturating_mul(PART_FLOW_BYTES));
    let parts = part.saturating_mul(extent.parts.saturating_sub(1));
    flows.saturating_add(used.saturating_mul(QUEUE_BYTES)).saturating_add(parts)
}

/// What there is once it has become rows.
fn rows(extent: &Extent, ports: u64) -> u64 {
    if !extent.has_rows {
        return 0;
    }
    let of_ports = ports.saturating_mul(extent.samples.saturating_add(extent.moments)).saturating_mul(LINK_ROW_BYTES);
    let of_flows = extent.flow_rows.saturating_mul(size::<FlowOutcome>() + FLOW_ROW_BYTES);
    let between_switches = ports.saturating_sub(extent.hosts.saturating_mul(2));
    let of_queues = between_switches.saturating_mul(QUEUE_ROWS_BYTES);
    let of_tcp = extent.tcp_rows.saturating_mul(size::<TcpSample>());
    [of_ports, of_flows, of_queues, of_tcp].into_iter().fold(0, u64::saturating_add)
}

const fn size<T>() -> u64 {
    size_of::<T>() as u64
}

/// What a workload comes to.
#[derive(Clone, Copy)]
struct Flows {
    at_once: u64,
    all: u64,
    window_segments: u64,
    /// How long the run lasts.
    lasts: Nanos,
}

impl Extent {
    /// That of a trial on a network of this size.
    pub fn of(size: &FabricSize, trial: &Trial) -> Self {
        let flows = flows_of(size, trial);
        let lasts_ns = flows.lasts.0.min(trial.time_limit.0);
        let times = |interval: Nanos| (lasts_ns / interval.0.max(1)).saturating_add(2);
        let moments = if trial.replay { run::moments_most(2 * size.links as usize) as u64 + 2 } else { 0 };
        Self {
            hosts: size.servers,
            links: size.links,
            flows_at_once: flows.at_once,
            window_segments: flows.window_segments,
            flow_rows: flows.all.max(flows.at_once),
            samples: times(trial.sample_interval),
            tcp_rows: trial.tcp_interval.map_or(0, |interval| times(interval).saturating_mul(flows.at_once)),
            moments,
            has_rows: true,
            parts: 1,
        }
    }

    /// That of a job of listed flows of which no rows are made.
    pub fn of_job(job: &Job) -> Self {
        let Source::Flows(flows) = &job.source else { return Self::default() };
        let longest = flows.iter().map(|flow| flow.spec.bytes).max().unwrap_or(0);
        let size = FabricSize::of(&job.fabric);
        Self {
            hosts: size.servers,
            links: size.links,
            flows_at_once: (flows.len() as u64).min(OPEN_PER_SERVER * size.servers) + job.datagrams.len() as u64,
            window_segments: segments(longest),
            flow_rows: flows.len() as u64,
            parts: job.parts().into(),
            ..Self::default()
        }
    }
}

fn flows_of(size: &FabricSize, trial: &Trial) -> Flows {
    let servers = size.servers;
    let bulk = |flows: u64, bytes: u64, of_server: u64| Flows {
        at_once: flows,
        all: flows,
        window_segments: segments(bytes),
        lasts: time_of(of_server.saturating_mul(SLOWER_THAN_IDEAL), size.server_bps),
    };
    let listed = |flows: u64, bytes, lasts| Flows {
        at_once: flows.min(servers.saturating_mul(OPEN_PER_SERVER)),
        all: flows,
        window_segments: segments(bytes),
        lasts,
    };
    match &trial.workload {
        Workload::Shuffle { bytes_per_flow: Bytes(bytes) } => {
            let others = servers.saturating_sub(1);
            bulk(servers.saturating_mul(others), *bytes, bytes.saturating_mul(others))
        }
        Workload::Permutation { bytes_per_flow: Bytes(bytes), .. } => bulk(servers, *bytes, *bytes),
        Workload::OneToOne { flows, duration, .. } => {
            Flows { lasts: *duration, ..bulk(u64::from(*flows), u64::MAX, 0) }
        }
        Workload::Mix(spec) => mix(size, spec),
        Workload::Traffic(spec) => {
            listed(traffic(size, spec), u64::MAX, Nanos(spec.duration.0.saturating_mul(SLOWER_THAN_IDEAL)))
        }
        Workload::Flows { flows } => {
            let sum = flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(flow.bytes));
            let last_ns = flows.iter().map(|flow| flow.start_ns).max().unwrap_or(0);
            let sending = time_of(sum.saturating_mul(SLOWER_THAN_IDEAL) / servers.max(1), size.server_bps);
            listed(flows.len() as u64, u64::MAX, Nanos(sending.0.saturating_add(last_ns)))
        }
        Workload::Services(spec) => {
            let servers = u32::try_from(servers).unwrap_or(u32::MAX);
            let flows = trial.workload.initial_flows(servers, trial.seed).map_or(0, |flows| flows.len() as u64);
            listed(flows, u64::MAX, spec.duration)
        }
        // No other workload is the simulator's.
        _ => Flows { at_once: 0, all: 0, window_segments: 0, lasts: Nanos(0) },
    }
}

/// Each server has its flows all the time; those that end are as many as their bytes allow.
fn mix(size: &FabricSize, spec: &MixSpec) -> Flows {
    let at_once = (size.servers as f64 * mean_concurrency()) as u64;
    let mean_bytes = (SizeDistribution::Vl2Mix.mean_bytes() / u64::from(spec.size_divisor.max(1))).max(1);
    let rate_bps = spec.offered_rate_per_server.map_or(size.server_bps, |rate| rate.0.min(size.server_bps));
    let sent_bytes = u128::from(size.servers) * u128::from(rate_bps) * u128::from(spec.duration.0) / 8_000_000_000;
    let ended = u64::try_from(sent_bytes / u128::from(mean_bytes)).unwrap_or(u64::MAX);
    // A flow that is paced waits for its turn with little under way.
    let window_segments = if spec.offered_rate_per_server.is_some() { 0 } else { WINDOW_SEGMENTS };
    Flows { at_once, all: at_once.saturating_add(ended), window_segments, lasts: spec.duration }
}

fn traffic(size: &FabricSize, spec: &TrafficSpec) -> u64 {
    const PER_RACK: u32 = 20;
    let servers = u32::try_from(size.servers).unwrap_or(u32::MAX);
    spec.expected_flows(&Servers::alike(servers, BitsPerSec(size.server_bps), PER_RACK))
}

/// How long a link of this rate takes for so many bytes.
fn time_of(bytes: u64, rate_bps: u64) -> Nanos {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

fn segments(bytes: u64) -> u64 {
    bytes.div_ceil(PacketSizes::ethernet(true).segment_bytes.into()).min(WINDOW_SEGMENTS)
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{ClosParams, FabricSpec, LinkParams};

    use super::*;
    use crate::bench;

    /// A network of VL2 with switches of so many ports and the data-centre mix of `plans/vl2/scale.toml`.
    fn mix(ports: u32, duration_ms: u64, interval_ms: u64) -> Extent {
        let links = LinkParams::for_server_rate(BitsPerSec(1_000_000_000));
        let spec = FabricSpec::Vl2Clos(ClosParams { links, ..ClosParams::with_ports(ports) });
        let size = spec.size().expect("it is within the limits").expect("a generator knows");
        let rate = Some(BitsPerSec(200_000_000));
        let workload =
            MixSpec { duration: Nanos(duration_ms * 1_000_000), offered_rate_per_server: rate, size_divisor: 100 };
        Extent::of(&size, &trial(Workload::Mix(workload), interval_ms))
    }

    fn trial(workload: Workload, interval_ms: u64) -> Trial {
        Trial {
            workload,
            faults: Vec::new(),
            seed: 1,
            sample_interval: Nanos(interval_ms * 1_000_000),
            tcp_interval: None,
            time_limit: Nanos(10_000_000_000),
            pin_and_measure_cost: false,
            replay: false,
            probes: None,
        }
    }

    fn of_job(name: &str) -> Extent {
        Extent::of_job(&bench::job(name).expect("it is listed"))
    }

    #[test]
    fn estimates_are_what_the_kernel_counted_or_a_little_more() {
        // Largest resident sizes (VmHWM) of `weft internal sim-job` and `weft sim`, release builds on x86-64.
        for (extent, counted) in [
            (of_job(bench::REST), 116_080_640),
            (of_job("vl2_1600"), 18_759_680),
            (of_job("vl2_20480"), 121_012_224),
            (of_job("vl2_20480_x2"), 165_367_808),
            (of_job("vl2_103680"), 417_300_480),
            (of_job("vl2_103680_x2"), 550_989_824),
            (mix(24, 10, 1), 68_325_376),
            (mix(46, 1, 1), 206_843_904),
            (mix(46, 10, 10), 226_988_032),
            (mix(46, 10, 1), 231_886_848),
        ] {
            let ratio = estimate(&extent).0 as f64 / f64::from(counted);
            assert!((1.0..=1.3).contains(&ratio), "{ratio} of {counted}: {extent:?}");
        }
    }

    #[test]
    fn everything_that_takes_memory_makes_the_estimate_larger() {
        let small = Extent {
            hosts: 100,
            links: 1_000,
            flows_at_once: 10_000,
            window_segments: 10,
            flow_rows: 10_000,
            samples: 100_000,
            tcp_rows: 100,
            moments: 100,
            has_rows: true,
            parts: 1,
        };
        let less = estimate(&small);
        let moving = |parts| estimate(&Extent { parts, has_rows: false, ..small });
        assert!(moving(2) > moving(1), "rows come when parts are no more");
        for more in [
            Extent { links: 2_000, ..small },
            Extent { samples: 200_000, ..small },
            Extent { tcp_rows: 10_000_000, ..small },
            Extent { moments: 10_000, ..small },
            Extent { flow_rows: 1_000_000, ..small },
            Extent { flows_at_once: 100_000_000, ..small },
        ] {
            assert!(estimate(&more) > less, "{more:?}");
        }
        let bare = Extent { samples: 0, moments: 0, ..small };
        assert!(estimate(&Extent { window_segments: 100, ..bare }) > estimate(&bare));
        let most = u64::MAX;
        let absurd = Extent { links: most, samples: most, flows_at_once: most, window_segments: most, ..small };
        assert_eq!(estimate(&absurd), Bytes(most), "it saturates");
    }

    #[test]
    fn a_run_that_ends_early_is_not_charged_for_its_time_limit() {
        let spec = FabricSpec::Vl2Clos(ClosParams::with_ports(8));
        let size = spec.size().expect("it is within the limits").expect("a generator knows");
        let bulk = Workload::Permutation { bytes_per_flow: Bytes(25_000), shift: 1 };
        // 25 kB take 10 ms at 20 Mb/s.
        assert_eq!(Extent::of(&size, &trial(bulk, 1)).samples, 20 + 2);
    }
}
