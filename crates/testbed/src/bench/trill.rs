//! The TRILL programs: alone, one buffer and many runs, beside the layer-2 program in the same rounds.

use libbpf_rs::{Object, ProgramMut};
use weft_datapath::DatapathError;
use weft_datapath::object;
use weft_datapath::trill::{Elision, Hop, Place, PortConfig, PortKind, RBridgeConfig, RBridgeDatapath, Station};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanSet;

use super::frames::{self, FRAME_BYTES, SINK_MAC};
use super::program_run::{raw, set_target, time};
use super::{BenchOptions, BenchReport, Ceiling, ProgramCost, median};
use crate::files;

/// Highest ratio of TRILL transit to the layer-2 program.
pub const TRANSIT_RATIO_MAX: f64 = 0.9;
/// Highest ratio of TRILL ingress to the layer-2 program.
pub const INGRESS_RATIO_MAX: f64 = 2.8;
/// Highest ratio of TRILL egress to the layer-2 program.
pub const EGRESS_RATIO_MAX: f64 = 1.6;
/// Transit programs that one core runs in a second at least, millions, at 64 bytes.
pub const TRANSIT_MFRAMES_MIN: f64 = 30.0;

const XDP_DROP: u32 = 1;
const XDP_REDIRECT: u32 = 4;

const OWN: u16 = 1;
/// Of the RBridge that transit frames go to, and that ingress frames are for.
const AWAY: u16 = 300;
const VLAN: u16 = 10;
const LINK: u8 = 1;
const ACCESS: u8 = 9;
const LINKS: u8 = 8;
const RBRIDGES: u16 = 500;
const STATIONS: u32 = 10_000;
const PORT_MAC: [u8; 6] = [0x02, 0xaa, 0, 0, 0, 1];
const NEIGHBOR_MAC: [u8; 6] = [0x02, 0xbb, 0, 0, 0, 1];
const LOCAL_STATION: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0c];
const PUSHED: usize = 24;

/// An RBridge of a campus of 500 with four next hops to each and 10,000 stations; all ports are one interface.
fn rbridge(interface: &str, frame_mtu: u32, elision: Elision) -> Result<RBridgeDatapath, DatapathError> {
    let mut rbridge = RBridgeDatapath::load(&RBridgeConfig { hash_seed: 0x5eed, ..RBridgeConfig::default() })?;
    let port = |number: u8, kind| PortConfig {
        interface: interface.to_owned(),
        mac: MacAddress([0x02, 0xaa, 0, 0, 0, number]),
        mtu: frame_mtu,
        kind,
    };
    rbridge.set_port(ACCESS, &port(ACCESS, PortKind::access(VLAN)))?;
    for number in 1..=LINKS {
        let neighbor = Some(MacAddress([0x02, 0xbb, 0, 0, 0, number]));
        rbridge.set_port(number, &port(number, PortKind::Link { designated_vlan: 1, neighbor, elision }))?;
    }
    let hop = |port: u8| Hop { port, mac: MacAddress([0x02, 0xbb, 0, 0, 0, port]) };
    rbridge.change(|fib| {
        fib.nickname = Some(OWN);
        let hops = |nickname: u16| (0..4).map(|n| hop(1 + ((nickname + n) % u16::from(LINKS)) as u8)).collect();
        fib.routes = (OWN + 1..=RBRIDGES).map(|nickname| (nickname, hops(nickname))).collect();
        fib.ports.get_mut(&ACCESS).expect("it was set").kind =
            PortKind::Native { untagged: Some(VLAN), tagged: VlanSet::default() };
    })?;
    let place = |mac, place| Station { mac: MacAddress(mac), vlan: VLAN, place, confidence: 0xff, seen_s: 0 };
    for n in 0..STATIONS {
        let [_, a, b, c] = n.to_be_bytes();
        rbridge.maps().set_station(&place([0x06, 0, 0, a, b, c], Place::RBridge(2 + (n % 400) as u16)))?;
    }
    rbridge.maps().set_station(&place(SINK_MAC, Place::RBridge(AWAY)))?;
    rbridge.maps().set_station(&place(LOCAL_STATION, Place::Port(ACCESS)))?;
    rbridge.maps().tick(1)?;
    Ok(rbridge)
}

/// A server's frame inside TRILL, as it comes from the neighbour; its first station is `destination`.
fn inside(plain: &[u8], egress: u16, destination: [u8; 6]) -> Vec<u8> {
    let header = [[0, 20], egress.to_be_bytes(), AWAY.to_be_bytes()].concat();
    let tag = [0x81, 0, 0, VLAN as u8];
    let outer = [&PORT_MAC[..], &NEIGHBOR_MAC, &[0x22, 0xf3], &header].concat();
    [&outer[..], &destination, &plain[6..12], &tag, &plain[12..]].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loop {
    Empty,
    L2Forward,
    Pair,
    RestoreTransit,
    RestoreIngress,
    RestoreEgress,
    Transit,
    TransitElided,
    Ingress,
    Egress,
}

const LOOPS: [Loop; 10] = [
    Loop::Empty,
    Loop::L2Forward,
    Loop::Pair,
    Loop::RestoreTransit,
    Loop::RestoreIngress,
    Loop::RestoreEgress,
    Loop::Transit,
    Loop::TransitElided,
    Loop::Ingress,
    Loop::Egress,
];

/// What is reported, with its floor. The empty loop and the layer-2 program are reported by the others' benchmark.
const SHIPPED: [(Loop, f64); 4] = [
    (Loop::Ingress, INGRESS_RATIO_MAX),
    (Loop::Transit, TRANSIT_RATIO_MAX),
    (Loop::TransitElided, TRANSIT_RATIO_MAX),
    (Loop::Egress, EGRESS_RATIO_MAX),
];

impl Loop {
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "trill_empty_loop",
            Self::L2Forward => "trill_l2_forward",
            Self::Pair => "push_and_pop_24",
            Self::RestoreTransit => "restore_only_trill_transit",
            Self::RestoreIngress => "restore_only_trill_ingress",
            Self::RestoreEgress => "restore_only_trill_egress",
            Self::Transit => "trill_transit",
            Self::TransitElided => "trill_transit_elided",
            Self::Ingress => "trill_ingress",
            Self::Egress => "trill_egress",
        }
    }
}

type Round = [f64; LOOPS.len()];

/// Adds the TRILL programs to a report.
pub(super) fn add(report: &mut BenchReport, options: &BenchOptions) -> Result<(), DatapathError> {
    for frame_bytes in FRAME_BYTES {
        let mut rounds: Vec<Round> = Vec::new();
        for _ in 0..options.rounds.max(1) {
            rounds.push(round(frame_bytes, options.repeat.max(1))?);
        }
        let each = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<f64>>();
        for which in LOOPS {
            report.raw.push(raw(which.name(), frame_bytes, &each(&|round| round[which as usize])));
        }
        for (which, want_max) in SHIPPED {
            let cost = ProgramCost {
                name: which.name(),
                frame_bytes,
                ns_per_packet: median(&each(&|round| net_ns(which, round))),
                ratio_to_l2: median(&each(&|round| net_ns(which, round) / net_ns(Loop::L2Forward, round))),
            };
            let id = format!("{}_over_l2_forward_{frame_bytes}b", cost.name);
            report.ceilings.push(Ceiling { id, ours: cost.ratio_to_l2, want_max });
            if which == Loop::Transit && frame_bytes == FRAME_BYTES[0] {
                let want_max = 1e3 / TRANSIT_MFRAMES_MIN;
                let id = format!("trill_transit_ns_{frame_bytes}b");
                report.ceilings.push(Ceiling { id, ours: cost.ns_per_packet, want_max });
            }
            report.programs.push(cost);
        }
    }
    Ok(())
}

/// Without the loop and without the wrapper; half of a push and a pop is the program's own.
fn net_ns(which: Loop, round: &Round) -> f64 {
    let over_empty = |which: Loop| round[which as usize] - round[Loop::Empty as usize];
    let without = |restore: Loop| over_empty(which) - over_empty(restore);
    match which {
        // The wrapper's work is the same for both.
        Loop::Transit | Loop::TransitElided => without(Loop::RestoreTransit),
        Loop::Ingress => without(Loop::RestoreIngress) + over_empty(Loop::Pair) / 2.0,
        Loop::Egress => without(Loop::RestoreEgress) + over_empty(Loop::Pair) / 2.0,
        other => over_empty(other),
    }
}

/// Everything anew in each round, for the seeds of the hash maps.
fn round(frame_bytes: usize, repeat: u32) -> Result<Round, DatapathError> {
    let l2 = frames::plain_switch(LOOPBACK)?;
    let (mut rbridge, mut eliding) = (rbridge("lo", 1600, Elision::Off)?, rbridge("lo", 1600, Elision::Agreed)?);
    let plain = frames::plain(frame_bytes);
    let (transit, egress) = (inside(&plain, AWAY, SINK_MAC), inside(&plain, OWN, LOCAL_STATION));
    let elided = weft_wire::trill::elided::emit(&transit).ok().flatten().expect("a plain frame has a short form");
    let (as_transit, as_ingress, as_egress) = (wrappers(&transit)?, wrappers(&plain)?, wrappers(&egress)?);
    let as_elided = wrappers(&elided)?;
    // What the wrappers begin with: a run that has not been is undone.
    let pushed = [&[0; PUSHED], &plain[..]].concat();
    let popped = &egress[PUSHED..];
    let mut round = [0.0; LOOPS.len()];
    for (ns, which) in round.iter_mut().zip(LOOPS) {
        let helper = |object, name| object::program(object, name);
        *ns = match which {
            Loop::Empty => time(&helper(&as_transit, "bench_trill_nothing"), &plain, repeat, XDP_DROP)?,
            Loop::Pair => time(&helper(&as_transit, "bench_trill_pair"), &plain, repeat, XDP_DROP)?,
            Loop::L2Forward => time(&l2.program(), &plain, repeat, XDP_REDIRECT)?,
            Loop::RestoreTransit => {
                set_target(&as_transit, &helper(&as_transit, "bench_trill_nothing"))?;
                time(&helper(&as_transit, "bench_trill_transit"), &transit, repeat, XDP_DROP)?
            }
            Loop::RestoreIngress => {
                set_target(&as_ingress, &helper(&as_ingress, "bench_trill_push"))?;
                time(&helper(&as_ingress, "bench_trill_ingress"), &pushed, repeat, XDP_DROP)?
            }
            Loop::RestoreEgress => {
                set_target(&as_egress, &helper(&as_egress, "bench_trill_pop"))?;
                time(&helper(&as_egress, "bench_trill_egress"), popped, repeat, XDP_DROP)?
            }
            Loop::Transit => {
                let wrapper = (&as_transit, "bench_trill_transit");
                shipped(&mut rbridge, LINK, wrapper, |of| time(of, &transit, repeat, XDP_REDIRECT))?
            }
            Loop::TransitElided => {
                let wrapper = (&as_elided, "bench_trill_transit");
                shipped(&mut eliding, LINK, wrapper, |of| time(of, &elided, repeat, XDP_REDIRECT))?
            }
            Loop::Ingress => {
                let wrapper = (&as_ingress, "bench_trill_ingress");
                shipped(&mut rbridge, ACCESS, wrapper, |of| time(of, &pushed, repeat, XDP_REDIRECT))?
            }
            Loop::Egress => {
                let wrapper = (&as_egress, "bench_trill_egress");
                shipped(&mut rbridge, LINK, wrapper, |of| time(of, popped, repeat, XDP_REDIRECT))?
            }
        };
    }
    Ok(round)
}

/// The shipped program for frames of `port`, behind its wrapper.
fn shipped(
    rbridge: &mut RBridgeDatapath,
    port: u8,
    (wrappers, wrapper): (&Object, &str),
    time: impl FnOnce(&ProgramMut<'_>) -> Result<f64, DatapathError>,
) -> Result<f64, DatapathError> {
    let kind = rbridge.arrive_by(port)?;
    set_target(wrappers, &rbridge.program(&kind))?;
    time(&object::program(wrappers, wrapper))
}

const LOOPBACK: u32 = 1;

fn wrappers(frame: &[u8]) -> Result<Object, DatapathError> {
    let mut open = files::BENCH_TRILL.open()?;
    object::set_constants(&mut open, ".rodata.start", &frames::start_of(frame));
    files::BENCH_TRILL.load(open)
}
