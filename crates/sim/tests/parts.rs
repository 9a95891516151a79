//! A network in parts, on one thread or several, does what it does as a whole, to the last bit.

use std::num::NonZeroU32;
use std::ops::ControlFlow;

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{CongestionControl, Overlay};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::random::{Purpose, Stream};
use weft_scenario::switching::{BufferPolicy, Forwarding, HostQueue, LoadBalance, Switching};
use weft_scenario::topology::{
    ClosParams, Fabric, FatTreeParams, LeafSpineParams, LinkParams, Role, fat_tree, leaf_spine, vl2_clos,
};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::services::DatagramStream;
use weft_scenario::workload::{FlowSpec, MixSpec};
use weft_sim::{
    DatagramFlow, Flow, Job, Observer, Outcome, PacketSizes, Progress, Settings, SimError, Source, Unobserved, Watch,
    run, tcp,
};

/// Runs that are compared.
const NETWORKS: u64 = 240;

struct Dice(Stream);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn any<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

fn links(dice: &mut Dice) -> LinkParams {
    let buffer = dice.any(&[6_000, 30_000, 150_000]);
    LinkParams {
        server_rate: BitsPerSec(dice.any(&[1, 10]) * 1_000_000_000),
        core_rate: BitsPerSec(dice.any(&[1, 10, 40]) * 1_000_000_000),
        server_buffer: Bytes(buffer),
        core_buffer: Bytes(dice.any(&[buffer, 9_000])),
        delay: Nanos(dice.any(&[600, 1_000, 1_337, 20_000])),
    }
}

fn network(dice: &mut Dice) -> (Fabric, Overlay) {
    let links = links(dice);
    let fabric = match dice.below(3) {
        0 => {
            let (spines, leaves) = (dice.below(4) as u32 + 1, dice.below(5) as u32 + 2);
            let servers_per_leaf = dice.below(4) as u32 + 1;
            let links_per_pair = dice.below(2) as u32 + 1;
            leaf_spine(&LeafSpineParams { spines, leaves, servers_per_leaf, links_per_pair, links })
        }
        1 => fat_tree(&FatTreeParams { k: 4, servers_per_tor: dice.below(3) as u32 + 1, links }),
        _ => vl2_clos(&ClosParams { links, servers_per_tor: dice.below(4) as u32 + 1, ..ClosParams::with_ports(4) }),
    };
    let fabric = fabric.expect("it is within the generators' limits");
    let is_clos = fabric.with_role(Role::Intermediate).next().is_some();
    let overlay = if is_clos && !dice.one_in(3) { Overlay::Vl2 } else { Overlay::Routed };
    (fabric, overlay)
}

fn switching(dice: &mut Dice) -> Switching {
    let mut switching = Switching {
        host_queue: dice.any(&[
            HostQueue::DropTail { limit: Bytes(20_000) },
            HostQueue::BackPressure { limit: Bytes(9_000) },
            HostQueue::BackPressure { limit: Bytes(60_000) },
        ]),
        forwarding: dice.any(&[Forwarding::StoreAndForward, Forwarding::CutThrough]),
        load_balance: dice.any(&[
            LoadBalance::FlowEcmp,
            LoadBalance::FlowEcmp,
            LoadBalance::PacketSpray,
            LoadBalance::Flowlet { gap: Nanos(20_000) },
            LoadBalance::Rehash { hold: Nanos(50_000), large: Bytes(20_000), only_timeouts: false },
        ]),
        reconvergence: Nanos(dice.any(&[0, 10_000, 333_333])),
        ..Switching::default()
    };
    if dice.one_in(3) {
        let size = Bytes(dice.any(&[40_000, 200_000]));
        switching.buffer = BufferPolicy::SharedPool {
            pool: size,
            tier_pools: Default::default(),
            dynamic_alpha_milli: dice.any(&[None, Some(1_000)]),
        };
    }
    switching.ecn_threshold = dice.one_in(3).then_some(Bytes(5_000));
    switching
}

fn source(dice: &mut Dice, servers: u64) -> Source {
    if dice.one_in(4) {
        return Source::Mix(MixSpec {
            duration: Nanos(300_000),
            offered_rate_per_server: dice.any(&[None, Some(BitsPerSec(500_000_000))]),
            size_divisor: 20_000,
        });
    }
    let flows = dice.below(4 * servers) + 1;
    let hot = dice.below(servers) as u32;
    let flow = |_| {
        let from = dice.below(servers) as u32;
        let away = if dice.one_in(2) && from != hot {
            hot
        } else {
            (from + 1 + dice.below(servers - 1) as u32) % servers as u32
        };
        let bytes = dice.any(&[1, 1_460, 20_000, 100_000]) + dice.below(3_000);
        Flow::from(FlowSpec::bulk(from, away, bytes, dice.any(&[0, 0, 5_000, 77_777])))
    };
    Source::Flows((0..flows).map(flow).collect())
}

fn faults(dice: &mut Dice, fabric: &Fabric) -> Vec<Fault> {
    let switches: Vec<String> = fabric.switches().map(|node| fabric.node(node).name.clone()).collect();
    let count = 2 * u64::from(dice.one_in(3) && switches.len() > 2);
    let first = dice.below(switches.len() as u64);
    let fault = |place: u64| {
        let node = switches[((first + place) % switches.len() as u64) as usize].clone();
        let kind = if dice.one_in(2) { FaultKind::SwitchDown { node } } else { FaultKind::SwitchSilent { node } };
        let lasts = Some(Nanos(dice.any(&[40_000, 100_000, 123_457])));
        Fault { at: Nanos(dice.below(200_000)), lasts, kind }
    };
    (0..count).map(fault).collect()
}

/// Anything that may be asked of a simulation.
fn job(seed: u64) -> Job {
    let mut dice = Dice(Stream::new(seed, Purpose::Failures, 0));
    let (fabric, overlay) = network(&mut dice);
    let servers = fabric.servers().count() as u64;
    let source = source(&mut dice, servers);
    let mut tcp = tcp::Config { rto_min_ps: 200_000_000, ..tcp::Config::default() };
    tcp.congestion_control = dice.any(&[CongestionControl::Cubic, CongestionControl::Reno, CongestionControl::Dctcp]);
    let is_mix = matches!(source, Source::Mix(_));
    let stream = |from: u32, to: u32| DatagramStream {
        from,
        to,
        rate: BitsPerSec(300_000_000),
        start_ns: 3_000,
        end_ns: 250_000,
        limit: None,
    };
    let datagrams: Vec<DatagramFlow> = if dice.one_in(4) {
        (1..servers as u32).map(|from| stream(from, from - 1).into()).collect()
    } else {
        Vec::new()
    };
    let stop = (is_mix || !datagrams.is_empty() || dice.one_in(3)).then_some(Nanos(300_000 + dice.below(1_000)));
    Job {
        addresses: Some(AddressPlan::new(&fabric, AddressingOptions::default()).expect("the blocks have room for it")),
        settings: Settings {
            overlay,
            switching: switching(&mut dice),
            tcp,
            sizes: PacketSizes::ethernet(true),
            seed: seed + 1,
        },
        source,
        datagrams,
        faults: faults(&mut dice, &fabric),
        stop: stop.or(Some(Nanos(2_000_000))),
        watch: Watch {
            sample_interval: dice.one_in(2).then_some(Nanos(50_000)),
            services: vec![("all".to_owned(), (0..servers as u32).collect())],
            tcp_interval: dice.one_in(3).then_some(Nanos(33_000)),
            replay: !is_mix && dice.one_in(3),
            queue_classes: vec![fabric.link_class(weft_scenario::id::LinkId(fabric.links().len() as u32 - 1))],
            ..Watch::default()
        },
        fabric,
        threads: NonZeroU32::MIN,
        parts: None,
    }
}

fn in_parts(job: &Job, parts: u32, threads: u32) -> Result<Outcome, SimError> {
    let job = Job { parts: NonZeroU32::new(parts), threads: NonZeroU32::new(threads).unwrap(), ..job.clone() };
    run(&job, &mut Unobserved)
}

#[test]
fn parts_do_what_the_whole_does_on_any_network() {
    let mut seen = (0, 0, 0, 0);
    for seed in 0..NETWORKS {
        let job = job(seed);
        let whole = in_parts(&job, 1, 1).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for (parts, threads) in [(2, 1), (5, 1 + seed as u32 % 5)] {
            let outcome = in_parts(&job, parts, threads);
            let outcome = outcome.unwrap_or_else(|error| panic!("seed {seed}, {parts} parts: {error}"));
            for (port, (ours, theirs)) in outcome.ports.iter().zip(&whole.ports).enumerate() {
                assert_eq!(ours, theirs, "seed {seed}, {parts} parts, port {port}");
            }
            assert_eq!(outcome, whole, "seed {seed}, {parts} parts, {threads} threads");
        }
        seen.0 += whole.totals.refused.packets;
        seen.1 += whole.totals.lost.packets;
        seen.2 += whole.totals.timeouts;
        seen.3 += whole.totals.flows_done;
    }
    let (refused, lost, timeouts, done) = seen;

    let happened = refused > 1_000 && lost > 1_000 && timeouts > 100 && done > 1_000;
    assert!(happened, "{refused} packets refused, {lost} lost, {timeouts} timeouts, {done} flows done");
}

/// Stops as soon as it is asked, and knows when that was.
#[derive(Default)]
struct Stops(Vec<u64>);

impl Observer for Stops {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.0.push(progress.packet_hops);
        ControlFlow::Break(())
    }
}

/// At the paper's size this takes a minute.
#[test]
fn traffic_that_is_under_way_from_the_beginning_can_be_stopped_while_it_is_made() {
    let mixes = (0..NETWORKS).map(job).filter(|job| matches!(job.source, Source::Mix(_)));
    for job in mixes.take(3) {
        // Samples are told, too.
        let job = Job { watch: Watch::default(), ..job };
        let mut stops = Stops::default();
        assert!(matches!(run(&job, &mut stops), Err(SimError::Interrupted)));
        assert_eq!(stops.0, [0], "before anything has moved");
    }
}
