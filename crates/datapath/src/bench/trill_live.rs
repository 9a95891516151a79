//! TRILL transit in place, beside the kernel's bridge: real frames, generator - switch - sink over veth, one CPU.

use libbpf_rs::Link;
use rustix::time::ClockId;
use serde::Serialize;
use weft_wire::ethernet::MacAddress;

use super::bed::{Namespace, connect, ip, ns, setup_failed};
use super::sender::{Sample, Sender, on_cpu};
use super::{Ceiling, LiveOptions, frames, median, trill};
use crate::error::DatapathError;
use crate::offload::{self, Offload};
use crate::trill::{Elision, PortConfig, PortKind, RBridgeDatapath};

/// How much more a hop through the kernel's bridge costs than TRILL transit, at least.
pub const BRIDGE_OVER_TRILL_MIN: f64 = 5.0;

/// The smallest frame of a station, bytes.
const FRAME_BYTES: usize = 64;
/// The bridge is slow: fewer frames are enough.
const CALLS_OF_BRIDGE: u32 = 1;

/// What [`trill_live`] found.
#[derive(Clone, Debug, Serialize)]
pub struct TrillLiveReport {
    /// CPU time per frame and hop of `kernel_bridge` and `trill_transit`, nanoseconds: without what the bed takes.
    pub hop_ns: [(&'static str, f64); 2],
    /// Frames that arrived, of those generated, by the same.
    pub arrived_ratio: [(&'static str, f64); 2],
    /// Frames that arrived by TRILL, millions per second of wall time, the whole bed on one core.
    pub trill_mpps: f64,
    /// Of TRILL's cost over the bridge's.
    #[serde(skip)]
    pub ceiling: Ceiling,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    None,
    Bridge,
    Trill,
}

/// CPU nanoseconds per packet and hop with real frames of 64 bytes, in namespaces `weft-bench-*` of its own.
///
/// # Errors
/// Any [`DatapathError`]; the namespaces are gone afterwards.
pub fn trill_live(options: &LiveOptions) -> Result<TrillLiveReport, DatapathError> {
    let options = *options;
    on_cpu(options.cpu, move || measure(&options))
}

fn measure(options: &LiveOptions) -> Result<TrillLiveReport, DatapathError> {
    let switches = [Switch::None, Switch::Bridge, Switch::Trill];
    let beds = switches.iter().map(|switch| Bed::new(*switch)).collect::<Result<Vec<Bed>, DatapathError>>()?;
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..options.rounds.max(1) {
        for (bed, samples) in beds.iter().zip(&mut samples) {
            let calls = if bed.switch == Switch::Bridge { CALLS_OF_BRIDGE } else { options.calls.max(1) };
            samples.push(bed.send(calls)?);
        }
    }
    let of = |place: usize, pick: fn(&Sample) -> f64| median(&samples[place].iter().map(pick).collect::<Vec<f64>>());
    let hop = |place: usize| of(place, |sample| sample.cpu_ns) - of(0, |sample| sample.cpu_ns);
    let id = "trill_transit_hop_over_kernel_bridge_64b".to_owned();
    Ok(TrillLiveReport {
        hop_ns: [("kernel_bridge", hop(1)), ("trill_transit", hop(2))],
        arrived_ratio: [
            ("kernel_bridge", of(1, |sample| sample.arrived_ratio)),
            ("trill_transit", of(2, |sample| sample.arrived_ratio)),
        ],
        trill_mpps: of(2, |sample| sample.mpps),
        ceiling: Ceiling { id, ours: hop(2) / hop(1), want_max: 1.0 / BRIDGE_OVER_TRILL_MIN },
    })
}

/// Three namespaces. Fields end in this order: programs, then namespaces.
struct Bed {
    switch: Switch,
    _links: Vec<Link>,
    _rbridge: Option<RBridgeDatapath>,
    sender: Sender,
    namespaces: [Namespace; 3],
}

impl Bed {
    fn new(switch: Switch) -> Result<Self, DatapathError> {
        let id = format!("{}-trill-{}", std::process::id(), switch as u8);
        let namespaces = ["gen", "switch", "sink"].map(|node| Namespace::new(&id, node));
        let [generator_ns, switch_ns, sink_ns] = &namespaces;
        for namespace in &namespaces {
            namespace.create()?;
        }
        connect((generator_ns, "g0"), (switch_ns, "s0"))?;
        connect((switch_ns, "s1"), (sink_ns, "k0"))?;
        let frame = match switch {
            Switch::Trill => trill::transit_frame(FRAME_BYTES),
            _ => frames::plain(FRAME_BYTES),
        };
        let mut sender = Sender::load(frame)?;
        let mut links = Vec::new();
        sink_ns.enter()?;
        links.push(sender.sink_at("k0")?);
        switch_ns.enter()?;
        let mut rbridge = None;
        match switch {
            Switch::None => links.push(sender.sink_at("s0")?),
            Switch::Bridge => bridge(switch_ns)?,
            Switch::Trill => rbridge = Some(transit_rbridge()?),
        }
        generator_ns.enter()?;
        sender.leave_by("g0")?;
        Ok(Self { switch, _links: links, _rbridge: rbridge, sender, namespaces })
    }

    fn send(&self, calls: u32) -> Result<Sample, DatapathError> {
        self.namespaces[0].enter()?;
        self.sender.send(calls, || ns(ClockId::ThreadCPUTime))
    }
}

/// The kernel's bridge, which knows where the sink is.
fn bridge(namespace: &Namespace) -> Result<(), DatapathError> {
    let name = &namespace.0;
    ip(&["-n", name, "link", "add", "br0", "type", "bridge"])?;
    for port in ["s0", "s1"] {
        ip(&["-n", name, "link", "set", "dev", port, "master", "br0"])?;
    }
    ip(&["-n", name, "link", "set", "dev", "br0", "up"])?;
    let mac = frames::SINK_MAC.map(|byte| format!("{byte:02x}")).join(":");
    let output = std::process::Command::new("bridge")
        .args(["-n", name, "fdb", "add", &mac, "dev", "s1", "master", "static"])
        .output()
        .map_err(|source| setup_failed("running `bridge`", source))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(setup_failed("running `bridge`", std::io::Error::other(why)));
    }
    // Or it does not poll, and live frames are not for it.
    offload::set("s0", Offload::Gro, true)
}

/// In at s0, out at s1, all of them.
fn transit_rbridge() -> Result<RBridgeDatapath, DatapathError> {
    let mut rbridge = trill::rbridge("s1", 1600, Elision::Off)?;
    let kind = PortKind::link_to(1, MacAddress(trill::NEIGHBOR_MAC));
    let port = PortConfig { interface: "s0".to_owned(), mac: MacAddress(trill::PORT_MAC), mtu: 1600, kind };
    // Routes lead by the other ports only.
    rbridge.change(|fib| {
        fib.routes.values_mut().for_each(|hops| hops.iter_mut().for_each(|hop| hop.port = hop.port.max(2)));
    })?;
    rbridge.add_port(trill::LINK, &port)?;
    Ok(rbridge)
}
