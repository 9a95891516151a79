//! Programs in place: real frames, generator - switch - sink, three namespaces over veth, one CPU for everything.

use serde::Serialize;

use super::bed::{Namespace, SoftirqThreads, connect, kernel_vtep, vtep_between};
use super::frames::{self, FRAME_BYTES};
use super::sender::{Sample, Sender, attach, on_cpu};
use super::{Ceiling, VXLAN_OVER_KERNEL_MAX, median};
use crate::error::DatapathError;
use crate::hook::Attached;
use crate::interface;
use crate::vxlan::Vtep;
use crate::xdp::{XdpDatapath, XdpProgram};

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
    /// Of our VTEP's cost.
    #[serde(skip)]
    pub ceilings: Vec<Ceiling>,
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
    let options = *options;
    on_cpu(options.cpu, move || measure_all(&options))
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
    let ceilings = vec![vxlan_ceiling(&rows)];
    Ok(LiveReport { rows, ceilings })
}

/// Our VTEP's CPU time for the smallest frame over that of the kernel's bridge and vxlan device, in the same bed.
fn vxlan_ceiling(rows: &[LiveRow]) -> Ceiling {
    let of = |name: &str| rows.iter().find(|row| row.name == name).map_or(f64::NAN, |row| row.cpu_ns_per_packet);
    let ours = of(Switch::VtepEncap.name()) / of(Switch::KernelEncap.name());
    let id = format!("vxlan_encap_over_kernel_vxlan_live_{}b", FRAME_BYTES[0]);
    Ceiling { id, ours, want_max: VXLAN_OVER_KERNEL_MAX }
}

/// Three namespaces with one program on the switch. Fields end in this order: programs, then namespaces.
struct Bed {
    _links: Vec<Attached>,
    _shipped: Option<XdpDatapath>,
    _vtep: Option<Vtep>,
    sender: Sender,
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

        let mut sender = Sender::load(switch.frame(frame_bytes))?;
        let mut links = Vec::new();
        sink_ns.enter()?;
        links.push(match switch {
            Switch::KernelEncap => sender.sink_skbs_at("k0")?,
            _ => sender.sink_at("k0")?.into(),
        });
        switch_ns.enter()?;
        let (mut shipped, mut vtep) = (None, None);
        match switch {
            Switch::None => links.push(sender.sink_at("s0")?.into()),
            Switch::Xdp(program) => {
                let datapath = frames::loaded(interface::index_of("s1")?)?;
                links.push(attach(&datapath.program(program), "s0")?.into());
                shipped = Some(datapath);
            }
            Switch::VtepEncap => vtep = Some(vtep_between(switch_ns, "s0", "s1")?),
            Switch::VtepDecap => vtep = Some(vtep_between(switch_ns, "s1", "s0")?),
            Switch::KernelEncap => {
                kernel_vtep(switch_ns)?;
                links.push(sender.poll_at("s0")?.into());
            }
        }
        let softirqs = SoftirqThreads::find(Some(cpu));
        generator_ns.enter()?;
        sender.leave_by("g0")?;
        Ok(Self { _links: links, _shipped: shipped, _vtep: vtep, sender, softirqs, namespaces })
    }

    fn send(&self, calls: u32) -> Result<Sample, DatapathError> {
        self.namespaces[0].enter()?;
        self.sender.send(calls, || self.softirqs.cpu_ns())
    }
}
