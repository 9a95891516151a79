//! Programs in place: real frames, generator - switch - sink, three namespaces over veth, one CPU for everything.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramInput, ProgramMut};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::frames::{self, FRAME_BYTES};
use super::median;
use super::program_run::load_wrappers;
use crate::error::DatapathError;
use crate::xdp::{XdpDatapath, XdpProgram};
use crate::{interface, object};

/// `BPF_F_TEST_XDP_LIVE_FRAMES` of `linux/bpf.h`.
const LIVE_FRAMES: u32 = 1 << 1;

/// Frames in one call. Each call has a fixed cost of some 20 ms, so fewer would measure that instead.
const FRAMES_PER_CALL: u32 = 1 << 19;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct LiveOptions {
    /// Calls of half a million frames for each row and round.
    pub calls: u32,
    /// Rounds; medians are taken over them.
    pub rounds: u32,
    /// The CPU that everything runs on.
    pub cpu: usize,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { calls: 2, rounds: 5, cpu: 0 }
    }
}

/// What [`live`] found.
#[derive(Clone, Debug, Serialize)]
pub struct LiveReport {
    /// One row for each program and frame size.
    pub rows: Vec<LiveRow>,
}

/// One program at one frame size.
#[derive(Clone, Debug, Serialize)]
pub struct LiveRow {
    /// The program on the switch's port; `drop_first` is the bed without a switch.
    pub name: &'static str,
    /// The server's frame, before encapsulation, bytes.
    pub frame_bytes: usize,
    /// CPU time per frame, generator to sink.
    pub cpu_ns_per_packet: f64,
    /// The same without what `drop_first` takes: program, one more veth and its polling.
    pub hop_ns: f64,
    /// [`Self::hop_ns`] over that of `l2_forward`.
    pub hop_ratio_to_l2: f64,
    /// Frames that arrived, millions per second of wall time.
    pub mpps: f64,
    /// Frames that arrived, of those generated.
    pub arrived_ratio: f64,
}

/// CPU nanoseconds per packet and hop with real frames, in namespaces `weft-bench-*` of its own.
///
/// # Errors
/// Any [`DatapathError`]; the namespaces are gone afterwards.
pub fn live(options: &LiveOptions) -> Result<LiveReport, DatapathError> {
    // A thread of its own, because it changes its namespace and its CPU.
    let thread = std::thread::spawn({
        let options = *options;
        move || measure_all(&options)
    });
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

const SWITCHES: [Option<XdpProgram>; 4] =
    [None, Some(XdpProgram::L2Forward), Some(XdpProgram::Encap), Some(XdpProgram::Decap)];

fn measure_all(options: &LiveOptions) -> Result<LiveReport, DatapathError> {
    let mut cpus = CpuSet::new();
    cpus.set(options.cpu);
    sched_setaffinity(None, &cpus).map_err(|errno| setup_failed("choosing the CPU", errno.into()))?;
    let mut rows = Vec::new();
    for frame_bytes in FRAME_BYTES {
        // Encapsulation must not exceed what a veth of MTU 1600 takes; all other rows have room to spare.
        let beds =
            SWITCHES.iter().map(|switch| Bed::new(*switch, frame_bytes)).collect::<Result<Vec<_>, DatapathError>>()?;
        let mut samples = vec![Vec::new(); SWITCHES.len()];
        for _ in 0..options.rounds.max(1) {
            for (bed, samples) in beds.iter().zip(&mut samples) {
                samples.push(bed.send(options.calls.max(1))?);
            }
        }
        let cost = |place: usize, of: fn(&Sample) -> f64| median(&samples[place].iter().map(of).collect::<Vec<f64>>());
        let hop = |place: usize| cost(place, |sample| sample.cpu_ns) - cost(0, |sample| sample.cpu_ns);
        rows.extend(SWITCHES.iter().enumerate().map(|(place, switch)| LiveRow {
            name: switch.map_or("drop_first", XdpProgram::name),
            frame_bytes,
            cpu_ns_per_packet: cost(place, |sample| sample.cpu_ns),
            hop_ns: hop(place),
            hop_ratio_to_l2: hop(place) / hop(1),
            mpps: cost(place, |sample| sample.mpps),
            arrived_ratio: cost(place, |sample| sample.arrived_ratio),
        }));
    }
    Ok(LiveReport { rows })
}

#[derive(Clone)]
struct Sample {
    cpu_ns: f64,
    mpps: f64,
    arrived_ratio: f64,
}

/// Three namespaces with one program on the switch. Fields end in this order: programs, then namespaces.
struct Bed {
    _links: Vec<Link>,
    _shipped: Option<XdpDatapath>,
    sink: Object,
    generator: Object,
    frame: Vec<u8>,
    ifindex: u32,
    namespaces: [Namespace; 3],
}

impl Bed {
    fn new(switch: Option<XdpProgram>, frame_bytes: usize) -> Result<Self, DatapathError> {
        let id = format!("{}-{}-{frame_bytes}", std::process::id(), switch.map_or("drop", XdpProgram::name));
        let namespaces = ["gen", "switch", "sink"].map(|node| Namespace::new(&id, node));
        let [generator_ns, switch_ns, sink_ns] = &namespaces;
        for namespace in &namespaces {
            namespace.create()?;
        }
        connect((generator_ns, "g0"), (switch_ns, "s0"))?;
        connect((switch_ns, "s1"), (sink_ns, "k0"))?;

        let frame = match switch {
            Some(XdpProgram::Decap) => frames::encapsulated(frame_bytes),
            _ => frames::plain(frame_bytes),
        };
        let (generator, sink) = (load_wrappers(&frame)?, load_wrappers(&frame)?);
        let mut links = Vec::new();
        sink_ns.enter()?;
        links.push(attach(&object::program(&sink, "bench_sink"), "k0")?);
        switch_ns.enter()?;
        let shipped = switch.map(|_| frames::loaded(interface::index_of("s1")?)).transpose()?;
        links.push(match (&shipped, switch) {
            (Some(shipped), Some(program)) => attach(&shipped.program(program), "s0")?,
            _ => attach(&object::program(&sink, "bench_sink"), "s0")?,
        });
        generator_ns.enter()?;
        let ifindex = interface::index_of("g0")?;
        object::map_handle(&generator, "generator_port")?
            .update(&0u32.to_ne_bytes(), &ifindex.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| DatapathError::Map { map: "generator_port", what: "setting the port", source })?;
        Ok(Self { _links: links, _shipped: shipped, sink, generator, frame, ifindex, namespaces })
    }

    fn send(&self, calls: u32) -> Result<Sample, DatapathError> {
        self.namespaces[0].enter()?;
        let sent = f64::from(calls) * f64::from(FRAMES_PER_CALL);
        let before = self.sunk()?;
        let (wall, cpu) = (ns(ClockId::Monotonic), ns(ClockId::ThreadCPUTime));
        for _ in 0..calls {
            self.send_once()?;
        }
        let (wall, cpu) = (ns(ClockId::Monotonic) - wall, ns(ClockId::ThreadCPUTime) - cpu);
        let arrived = (self.sunk()? - before) as f64;
        Ok(Sample { cpu_ns: cpu / arrived.max(1.0), mpps: arrived * 1e3 / wall, arrived_ratio: arrived / sent })
    }

    fn send_once(&self) -> Result<(), DatapathError> {
        let mut context = XdpContext::new(self.frame.len() as u32, self.ifindex);
        let input = ProgramInput {
            data_in: Some(&self.frame),
            context_in: Some(&mut context.0),
            repeat: FRAMES_PER_CALL,
            flags: LIVE_FRAMES,
            ..ProgramInput::default()
        };
        let generator = object::program(&self.generator, "bench_generate");
        generator.test_run(input).map_err(|source| DatapathError::from_kernel("sending live frames", source))?;
        Ok(())
    }

    fn sunk(&self) -> Result<u64, DatapathError> {
        let value = object::map_handle(&self.sink, ".data.sunk")?
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| DatapathError::Map { map: ".data.sunk", what: "reading", source })?;
        Ok(value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }
}

/// `struct xdp_md` of `linux/bpf.h`: the frame's end and the interface it claims to have come from.
struct XdpContext([u8; 24]);

impl XdpContext {
    fn new(length: u32, ingress_ifindex: u32) -> Self {
        let mut context = [0; 24];
        context[4..8].copy_from_slice(&length.to_ne_bytes());
        context[12..16].copy_from_slice(&ingress_ifindex.to_ne_bytes());
        Self(context)
    }
}

fn attach(program: &ProgramMut<'_>, interface: &str) -> Result<Link, DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    program
        .attach_xdp(index)
        .map_err(|source| DatapathError::from_kernel(format!("attaching XDP to `{interface}`"), source))
}

fn ns(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// A namespace of the benchmark; it ends with this value.
struct Namespace(String);

impl Namespace {
    fn new(id: &str, node: &str) -> Self {
        Self(format!("weft-bench-{id}-{node}"))
    }

    fn create(&self) -> Result<(), DatapathError> {
        ip(&["netns", "add", &self.0])?;
        // No IPv6: its router solicitations would be frames that nobody generated.
        self.enter()?;
        for scope in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            if std::fs::exists(&path).unwrap_or(false) {
                std::fs::write(&path, "1").map_err(|source| setup_failed("turning IPv6 off in a namespace", source))?;
            }
        }
        Ok(())
    }

    fn enter(&self) -> Result<(), DatapathError> {
        let file = File::open(format!("/run/netns/{}", self.0))
            .map_err(|source| setup_failed("opening a network namespace", source))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|errno| setup_failed("entering a network namespace", errno.into()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the next run has another name.
        let _gone = ip(&["netns", "del", &self.0]);
    }
}

fn connect(a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<(), DatapathError> {
    let (ns_a, ns_b) = (&a.0.0, &b.0.0);
    ip(&["-n", ns_a, "link", "add", "dev", a.1, "mtu", "1600", "type", "veth"]
        .into_iter()
        .chain(["peer", "name", b.1, "mtu", "1600", "netns", ns_b])
        .collect::<Vec<&str>>())?;
    ip(&["-n", ns_a, "link", "set", "dev", a.1, "up"])?;
    ip(&["-n", ns_b, "link", "set", "dev", b.1, "up"])
}

fn ip(arguments: &[&str]) -> Result<(), DatapathError> {
    let output = Command::new("ip").args(arguments).output().map_err(|source| setup_failed("running `ip`", source))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(setup_failed("running `ip`", std::io::Error::other(why)))
}

fn setup_failed(what: &'static str, source: std::io::Error) -> DatapathError {
    if source.kind() == std::io::ErrorKind::PermissionDenied {
        return DatapathError::NoRights { what: format!("{what} for the live benchmark") };
    }
    DatapathError::Bench { what, source }
}
