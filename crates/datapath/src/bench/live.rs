//! Programs in place: real frames, generator - switch - sink, three namespaces over veth, one CPU for everything.

use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramInput, ProgramMut};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::ClockId;
use serde::Serialize;

use super::bed::{Namespace, SoftirqThreads, connect, kernel_vtep, ns, setup_failed, vtep_between};
use super::frames::{self, FRAME_BYTES};
use super::program_run::load_wrappers;
use super::{Check, VXLAN_OVER_KERNEL_MAX, median};
use crate::error::DatapathError;
use crate::vxlan::Vtep;
use crate::xdp::{XdpDatapath, XdpProgram};
use crate::{interface, link, object};

/// `BPF_F_TEST_XDP_LIVE_FRAMES` of `linux/bpf.h`.
pub(super) const LIVE_FRAMES: u32 = 1 << 1;

/// Frames in one call. Each call has a fixed cost of some 20 ms, so fewer would measure that instead.
pub(super) const FRAMES_PER_CALL: u32 = 1 << 19;

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
    /// Whether the floors hold.
    pub checks: Vec<Check>,
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

/// What is between generator and sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    /// Nothing: the first port is the sink.
    None,
    Xdp(XdpProgram),
    /// Our VTEP, from a port into the underlay.
    VtepEncap,
    /// Our VTEP, from the underlay to a port.
    VtepDecap,
    /// The kernel's bridge and vxlan device, from a port into the underlay.
    KernelEncap,
}

const SWITCHES: [Switch; 7] = [
    Switch::None,
    Switch::Xdp(XdpProgram::L2Forward),
    Switch::Xdp(XdpProgram::Encap),
    Switch::Xdp(XdpProgram::Decap),
    Switch::VtepEncap,
    Switch::VtepDecap,
    Switch::KernelEncap,
];

impl Switch {
    fn name(self) -> &'static str {
        match self {
            Self::None => "drop_first",
            Self::Xdp(program) => program.name(),
            Self::VtepEncap => "vxlan_encap",
            Self::VtepDecap => "vxlan_decap",
            Self::KernelEncap => "kernel_vxlan_encap",
        }
    }

    fn frame(self, bytes: usize) -> Vec<u8> {
        match self {
            Self::Xdp(XdpProgram::Decap) => frames::encapsulated(bytes),
            Self::VtepDecap => frames::tunnelled(bytes),
            _ => frames::plain(bytes),
        }
    }
}

fn measure_all(options: &LiveOptions) -> Result<LiveReport, DatapathError> {
    let mut cpus = CpuSet::new();
    cpus.set(options.cpu);
    sched_setaffinity(None, &cpus).map_err(|errno| setup_failed("choosing the CPU", errno.into()))?;
    let mut rows = Vec::new();
    for frame_bytes in FRAME_BYTES {
        // Encapsulation must not exceed what a veth of MTU 1600 takes; all other rows have room to spare.
        let beds = SWITCHES
            .iter()
            .map(|switch| Bed::new(*switch, frame_bytes, options.cpu))
            .collect::<Result<Vec<_>, DatapathError>>()?;
        let mut samples = vec![Vec::new(); SWITCHES.len()];
        for _ in 0..options.rounds.max(1) {
            for (bed, samples) in beds.iter().zip(&mut samples) {
                samples.push(bed.send(options.calls.max(1))?);
            }
        }
        let cost = |place: usize, of: fn(&Sample) -> f64| median(&samples[place].iter().map(of).collect::<Vec<f64>>());
        let hop = |place: usize| cost(place, |sample| sample.cpu_ns) - cost(0, |sample| sample.cpu_ns);
        rows.extend(SWITCHES.iter().enumerate().map(|(place, switch)| LiveRow {
            name: switch.name(),
            frame_bytes,
            cpu_ns_per_packet: cost(place, |sample| sample.cpu_ns),
            hop_ns: hop(place),
            hop_ratio_to_l2: hop(place) / hop(1),
            mpps: cost(place, |sample| sample.mpps),
            arrived_ratio: cost(place, |sample| sample.arrived_ratio),
        }));
    }
    let checks = vec![vxlan_check(&rows)];
    Ok(LiveReport { rows, checks })
}

/// Our VTEP's CPU time for the smallest frame over that of the kernel's bridge and vxlan device, in the same bed.
fn vxlan_check(rows: &[LiveRow]) -> Check {
    let of = |name: &str| rows.iter().find(|row| row.name == name).map_or(f64::NAN, |row| row.cpu_ns_per_packet);
    let ours = of(Switch::VtepEncap.name()) / of(Switch::KernelEncap.name());
    let id = format!("vxlan_encap_over_kernel_vxlan_live_{}b", FRAME_BYTES[0]);
    Check { id, ours, want_max: VXLAN_OVER_KERNEL_MAX, pass: ours <= VXLAN_OVER_KERNEL_MAX }
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
    _vtep: Option<Vtep>,
    sink: Object,
    generator: Object,
    frame: Vec<u8>,
    ifindex: u32,
    softirqs: SoftirqThreads,
    namespaces: [Namespace; 3],
}

impl Bed {
    fn new(switch: Switch, frame_bytes: usize, cpu: usize) -> Result<Self, DatapathError> {
        let id = format!("{}-{}-{frame_bytes}", std::process::id(), switch.name());
        let namespaces = ["gen", "switch", "sink"].map(|node| Namespace::new(&id, node));
        let [generator_ns, switch_ns, sink_ns] = &namespaces;
        for namespace in &namespaces {
            namespace.create()?;
        }
        connect((generator_ns, "g0"), (switch_ns, "s0"))?;
        connect((switch_ns, "s1"), (sink_ns, "k0"))?;

        let frame = switch.frame(frame_bytes);
        let (generator, sink) = (load_wrappers(&frame)?, load_wrappers(&frame)?);
        let mut links = Vec::new();
        sink_ns.enter()?;
        // What comes as an skb is counted as one: making an XDP frame of it would be the sink's cost, not the switch's.
        links.push(match switch {
            Switch::KernelEncap => {
                let program = object::program(&sink, "bench_sink_tc");
                link::attach(&program, interface::index_of("k0")?, "k0")?
            }
            _ => attach(&object::program(&sink, "bench_sink"), "k0")?,
        });
        switch_ns.enter()?;
        let (mut shipped, mut vtep) = (None, None);
        match switch {
            Switch::None => links.push(attach(&object::program(&sink, "bench_sink"), "s0")?),
            Switch::Xdp(program) => {
                let datapath = frames::loaded(interface::index_of("s1")?)?;
                links.push(attach(&datapath.program(program), "s0")?);
                shipped = Some(datapath);
            }
            Switch::VtepEncap => vtep = Some(vtep_between(switch_ns, "s0", "s1")?),
            Switch::VtepDecap => vtep = Some(vtep_between(switch_ns, "s1", "s0")?),
            Switch::KernelEncap => {
                kernel_vtep(switch_ns)?;
                links.push(attach(&object::program(&sink, "bench_pass"), "s0")?);
            }
        }
        let softirqs = SoftirqThreads::find(Some(cpu));
        generator_ns.enter()?;
        let ifindex = interface::index_of("g0")?;
        object::map_handle(&generator, "generator_port")?
            .update(&0u32.to_ne_bytes(), &ifindex.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| DatapathError::Map { map: "generator_port", what: "setting the port", source })?;
        Ok(Self {
            _links: links,
            _shipped: shipped,
            _vtep: vtep,
            sink,
            generator,
            frame,
            ifindex,
            softirqs,
            namespaces,
        })
    }

    fn send(&self, calls: u32) -> Result<Sample, DatapathError> {
        self.namespaces[0].enter()?;
        let sent = f64::from(calls) * f64::from(FRAMES_PER_CALL);
        let before = self.sunk()?;
        let (wall, cpu) = (ns(ClockId::Monotonic), self.softirqs.cpu_ns());
        for _ in 0..calls {
            self.send_once()?;
        }
        let (wall, cpu) = (ns(ClockId::Monotonic) - wall, self.softirqs.cpu_ns() - cpu);
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
pub(super) struct XdpContext(pub(super) [u8; 24]);

impl XdpContext {
    pub(super) fn new(length: u32, ingress_ifindex: u32) -> Self {
        let mut context = [0; 24];
        context[4..8].copy_from_slice(&length.to_ne_bytes());
        context[12..16].copy_from_slice(&ingress_ifindex.to_ne_bytes());
        Self(context)
    }
}

pub(super) fn attach(program: &ProgramMut<'_>, interface: &str) -> Result<Link, DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    program
        .attach_xdp(index)
        .map_err(|source| DatapathError::from_kernel(format!("attaching XDP to `{interface}`"), source))
}
