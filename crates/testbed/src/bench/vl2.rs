//! VL2's programs as agents and switches load them, at TC, with the kernel's routes: a frame that is new to the program each time.
//!
//! A run is timed by the kernel's clock, between two looks at it that the empty program has to pay for as well. The middle half
//! of many runs counts: what interrupts made longer does not.

#![allow(unsafe_code)]

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use libbpf_rs::{Object, ProgramMut};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use weft_datapath::DatapathError;
use weft_datapath::frame::{FrameInput, Verdict, time_tc};
use weft_datapath::host::{HostConfig, HostDatapath, MAP_ENTRIES_DEFAULT, Mapping, OwnAddresses};
use weft_datapath::spread::Spread;
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};
use weft_datapath::{interface, object};
use weft_wire::block::Block;
use weft_wire::{ipv4, vl2};

use super::frames::{self, FRAME_BYTES};
use super::program_run::raw;
use super::{BenchOptions, BenchReport, Ceiling, ProgramCost, median};
use crate::files;
use crate::l2::PlainSwitch;

/// Highest ratio of a server's program (own source, ECN, flow hash, both headers) to the layer-2 program.
pub const HOST_RATIO_MAX: f64 = 4.0;
/// Highest ratio of the Intermediate's program (one header off, the kernel's route, one TTL).
pub const INTERMEDIATE_RATIO_MAX: f64 = 5.0;
/// Highest ratio of the ToR's program for what comes from the fabric (one header off, the server's route).
pub const TOR_DOWN_RATIO_MAX: f64 = 5.0;
/// Highest ratio of the ToR's program for what its servers send (the source's route back, the kernel's route, one TTL).
pub const TOR_UP_RATIO_MAX: f64 = 3.0;

/// Runs of one program in a round for so many that one buffer would get: a new frame costs a hundred times as much.
const REPEATS_PER_RUN: u32 = 100;

/// A data centre of VL2's size: ToRs, Intermediates and servers.
const TORS: u32 = 200;
const ANYCAST_GROUPS: u32 = 4;
const UPLINKS: u8 = 3;
const HOST_PORTS: u8 = 20;
const AAS: u32 = 4_000;
/// Different frames that take turns, so that no look-up is always the same.
const FLOWS: u32 = 16;
const FABRIC_MTU: u32 = 1600;

const SENDER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
const OWN_LA: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const OWN_TOR: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 1);
const OTHER_MAC: [u8; 6] = [0x02, 0, 0, 0, 9, 9];

fn tor(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 1, 0, 1)) + n % TORS)
}

fn anycast(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 255, 255, 1)) + n % ANYCAST_GROUPS)
}

fn aa(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(20, 0, 1, 0)) + n % AAS)
}

/// Of one of our ToR's own servers.
fn local_aa(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(20, 9, 0, 1)) + n % u32::from(HOST_PORTS))
}

fn port_mac(kind: u8, n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, kind, n]
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Empty,
    L2Forward,
    Host,
    Intermediate,
    TorUp,
    TorDown,
}

const PROGRAMS: [Program; 6] =
    [Program::Empty, Program::L2Forward, Program::Host, Program::Intermediate, Program::TorUp, Program::TorDown];

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty_tc",
            Self::L2Forward => "l2_forward_tc",
            Self::Host => "vl2_host",
            Self::Intermediate => "vl2_intermediate",
            Self::TorUp => "vl2_tor_up",
            Self::TorDown => "vl2_tor_down",
        }
    }

    fn expected(self) -> Verdict {
        match self {
            Self::Empty => Verdict::Drop,
            Self::Host => Verdict::Next,
            _ => Verdict::Redirect,
        }
    }

    /// Interface that its frames are on, and its MAC.
    fn port(self) -> (&'static str, [u8; 6]) {
        match self {
            Self::TorUp => ("host1", port_mac(HOST, 1)),
            _ => ("up1", port_mac(UP, 1)),
        }
    }

    fn ratio_max(self) -> Option<f64> {
        match self {
            Self::Empty | Self::L2Forward => None,
            Self::Host => Some(HOST_RATIO_MAX),
            Self::Intermediate => Some(INTERMEDIATE_RATIO_MAX),
            Self::TorUp => Some(TOR_UP_RATIO_MAX),
            Self::TorDown => Some(TOR_DOWN_RATIO_MAX),
        }
    }

    /// The frame of flow `n`, of which the server's part has `bytes` bytes.
    fn frame(self, n: u32, bytes: usize) -> Vec<u8> {
        let (_, mac) = self.port();
        match self {
            Self::Empty | Self::L2Forward => {
                let [_, a, b, c] = n.to_be_bytes();
                ethernet([0x06, 0, 0, a, b, c], &packet(aa(n), bytes))
            }
            Self::Host => ethernet(OTHER_MAC, &packet(aa(n), bytes)),
            Self::Intermediate | Self::TorUp => ethernet(mac, &encapsulated(&packet(aa(n), bytes), tor(n), anycast(n))),
            Self::TorDown => {
                let sent = encapsulated(&packet(local_aa(n), bytes), OWN_TOR, anycast(n));
                ethernet(mac, &vl2::decapsulate_one(&sent).expect("our own packet is well-formed"))
            }
        }
    }
}

const UP: u8 = 1;
const HOST: u8 = 2;

type Round = [f64; PROGRAMS.len()];

/// Adds VL2's programs to a report.
pub(super) fn add(report: &mut BenchReport, options: &BenchOptions) -> Result<(), DatapathError> {
    let rounds = std::thread::scope(|scope| scope.spawn(|| rounds(options)).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    for (place, frame_bytes) in FRAME_BYTES.into_iter().enumerate() {
        let each = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(|sizes| of(&sizes[place])).collect::<Vec<f64>>();
        for which in PROGRAMS {
            report.raw.push(raw(which.name(), frame_bytes, &each(&|round| round[which as usize])));
        }
        for which in PROGRAMS.into_iter().filter(|which| *which != Program::Empty) {
            let cost = ProgramCost {
                name: which.name(),
                frame_bytes,
                ns_per_packet: median(&each(&|round| net_ns(which, round))),
                ratio_to_l2: median(&each(&|round| net_ns(which, round) / net_ns(Program::L2Forward, round))),
            };
            if let Some(want_max) = which.ratio_max() {
                let id = format!("{}_over_l2_forward_tc_{frame_bytes}b", cost.name);
                report.ceilings.push(Ceiling { id, ours: cost.ratio_to_l2, want_max });
            }
            report.programs.push(cost);
        }
    }
    Ok(())
}

fn net_ns(which: Program, round: &Round) -> f64 {
    round[which as usize] - round[Program::Empty as usize]
}

/// Nanoseconds by round and frame size. On a thread of its own, whose namespace ends with it.
fn rounds(options: &BenchOptions) -> Result<Vec<[Round; FRAME_BYTES.len()]>, DatapathError> {
    // SAFETY: only the network namespace is unshared, no file table, and the thread ends after this.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| failed("a network namespace", error.into()))?;
    build_network()?;
    let runs = (options.repeat / REPEATS_PER_RUN).max(100);
    (0..options.rounds.max(1))
        .map(|_| {
            let loaded = Loaded::new()?;
            let mut sizes = [[0.0; PROGRAMS.len()]; FRAME_BYTES.len()];
            for (round, frame_bytes) in sizes.iter_mut().zip(FRAME_BYTES) {
                for which in PROGRAMS {
                    round[which as usize] = loaded.measure(which, frame_bytes, runs)?;
                }
            }
            Ok(sizes)
        })
        .collect()
}

/// All programs with full tables, loaded anew for each round for the seeds of the hash maps.
struct Loaded {
    empty: Object,
    l2: PlainSwitch,
    host: HostDatapath,
    intermediate: SwitchDatapath,
    tor: SwitchDatapath,
}

impl Loaded {
    fn new() -> Result<Self, DatapathError> {
        let host = HostDatapath::load(&host_config())?;
        // Those that are looked up come last: a map nearly as large as its bound may leave out others meanwhile.
        for n in (0..AAS).rev() {
            let mapping = Mapping { tor_la: tor(n), anycast_la: anycast(n), refused: false, version: 1 };
            host.set(aa(n), &mapping)?;
        }
        let ports = |kind: &str, count: u8| (1..=count).map(|n| format!("{kind}{n}")).collect::<Vec<_>>();
        let switch = |tier, host_ports, own_las| {
            SwitchDatapath::load(&SwitchConfig {
                ports: ports("up", UPLINKS),
                host_ports,
                own_las,
                tier,
                pin_dir: None,
            })
        };
        Ok(Self {
            empty: files::BENCH.load(files::BENCH.open()?)?,
            l2: frames::plain_switch(1)?,
            host,
            intermediate: switch(Tier::Intermediate, Vec::new(), (0..ANYCAST_GROUPS).map(anycast).collect())?,
            tor: switch(Tier::Tor, ports("host", HOST_PORTS), vec![OWN_TOR])?,
        })
    }

    fn program(&self, which: Program, ifindex: u32) -> ProgramMut<'_> {
        match which {
            Program::Empty => object::program(&self.empty, "bench_empty_tc"),
            Program::L2Forward => self.l2.tc_program(),
            Program::Host => self.host.program(),
            Program::Intermediate => self.intermediate.program_at(ifindex),
            Program::TorUp | Program::TorDown => self.tor.program_at(ifindex),
        }
    }

    /// Mean of the middle half, nanoseconds.
    fn measure(&self, which: Program, frame_bytes: usize, runs: u32) -> Result<f64, DatapathError> {
        let ifindex = interface::index_of(which.port().0)?;
        let program = self.program(which, ifindex);
        let frames: Vec<Vec<u8>> = (0..FLOWS).map(|n| which.frame(n, frame_bytes)).collect();
        let mut ns: Vec<u128> = Vec::new();
        for (_, bytes) in (0..runs).zip(frames.iter().cycle()) {
            let (verdict, took) = time_tc(&program, &FrameInput { bytes, ifindex, ..FrameInput::default() })?;
            if verdict != which.expected() {
                return Err(DatapathError::Diverted { name: which.name(), verdict, expected: which.expected() });
            }
            ns.push(took.as_nanos());
        }
        ns.sort_unstable();
        let middle = &ns[ns.len() / 4..ns.len() - ns.len() / 4];
        Ok(middle.iter().sum::<u128>() as f64 / middle.len() as f64)
    }
}

/// As an agent's settings make it.
fn host_config() -> HostConfig {
    HostConfig {
        interface: "up1".to_owned(),
        miss_interface: "up2".to_owned(),
        aa_block: Block::of(Ipv4Addr::new(20, 0, 0, 0), 8),
        gateway_mac: OTHER_MAC,
        underlay_mtu: FABRIC_MTU,
        own_tor_la: OWN_TOR,
        rack_direct: false,
        rate_limit: None,
        map_entries: MAP_ENTRIES_DEFAULT,
        spread: Spread::Never,
        broadcast: None,
        own: Some(OwnAddresses { aa: SENDER, la: OWN_LA, public_la: None }),
        pin_dir: None,
    }
}

/// Uplinks to three switches, server ports, and a route for each LA and AA that a switch has, over all uplinks where they are
/// equal.
fn build_network() -> Result<(), DatapathError> {
    for (key, value) in [("ip_forward", "1"), ("fib_multipath_hash_policy", "0")] {
        let path = format!("/proc/sys/net/ipv4/{key}");
        std::fs::write(&path, value).map_err(|source| failed(&path, source))?;
    }
    let mut lines = vec!["link set lo up".to_owned()];
    for (name, kind, count) in [("up", UP, UPLINKS), ("host", HOST, HOST_PORTS)] {
        for n in 1..=count {
            let [.., kind, last] = port_mac(kind, n);
            lines.push(format!(
                "link add {name}{n} address 02:00:00:00:{kind:02x}:{last:02x} mtu {FABRIC_MTU} type veth peer name far-{name}{n}"
            ));
            lines.push(format!("link set {name}{n} up"));
            lines.push(format!("link set far-{name}{n} up"));
        }
    }
    lines.extend((1..=UPLINKS).map(|n| format!("address add 10.0.{n}.1/30 dev up{n}")));
    let hops: String = (1..=UPLINKS).map(|n| format!(" nexthop via 10.0.{n}.2")).collect();
    lines.extend(
        (0..TORS).map(tor).chain((0..ANYCAST_GROUPS).map(anycast)).map(|la| format!("route add {la}/32{hops}")),
    );
    lines.extend((1..=HOST_PORTS).map(|n| format!("route add {}/32 dev host{n}", local_aa(u32::from(n) - 1))));
    lines.push(format!("route add {SENDER}/32 dev {}", Program::TorUp.port().0));
    ip(&lines.join("\n"))
}

/// Commands for `ip -batch`, in the calling thread's namespace.
fn ip(lines: &str) -> Result<(), DatapathError> {
    let failed = |source| failed("`ip -batch`", source);
    let mut command = Command::new("ip");
    let mut child = command.args(["-batch", "-"]).stdin(Stdio::piped()).process_group(0).spawn().map_err(failed)?;
    child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(lines.as_bytes())).map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(std::io::Error::other(status.to_string()))),
    }
}

fn failed(what: &str, source: std::io::Error) -> DatapathError {
    DatapathError::from_kernel(format!("making the benchmark's network: {what}"), source.into())
}

fn packet(destination: Ipv4Addr, frame_bytes: usize) -> Vec<u8> {
    let payload = frame_bytes - 14 - ipv4::HEADER_LEN;
    let mut packet = vec![0; ipv4::HEADER_LEN + payload];
    ipv4::Header::new(SENDER, destination, ipv4::protocol::UDP, payload as u16).emit_into(&mut packet);
    let ports = [0x30, 0x39, 0x00, 0x50];
    packet[20..24].copy_from_slice(&ports);
    packet[24..26].copy_from_slice(&(payload as u16).to_be_bytes());
    packet
}

fn encapsulated(packet: &[u8], tor_la: Ipv4Addr, anycast_la: Ipv4Addr) -> Vec<u8> {
    let stack = vl2::Stack::for_packet(packet, tor_la, anycast_la).expect("our own packet is well-formed");
    vl2::encapsulate(packet, &stack).expect("our own packet is small enough")
}

fn ethernet(destination: [u8; 6], packet: &[u8]) -> Vec<u8> {
    [&destination[..], &port_mac(UP, 0x77), &[0x08, 0x00], packet].concat()
}
