//! Thousands of segments between two edge switches of a lab (VXLAN draft, 3.2): frames of many stations, each in one of the segments.
//!
//! The number of stations is the same at every step, so that what changes is the number of segments alone. Which segment a
//! station is in is looked up by the same program for everything that holds segments: it puts frames into a trunk with the tag
//! of the segment's VLAN, into the segment's own port, or out of the segment's own device. Tunnels go between the switches' LAs, by the
//! lab's own routes.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weft_datapath::vxlan::{
    AccessRule, Capacities, Flood, To, Trunk, Vni, VniSettings, Vtep, VtepOptions, interface_index,
};
use weft_scenario::engine::Progress;
use weft_scenario::id::NodeId;
use weft_scenario::record::{Records, SegmentRow};
use weft_scenario::workload::{SegmentStore, SegmentsSpec};
use weft_testbed::bed::{BedPrograms, SegmentTarget, TunnelVlan};
use weft_wire::vlan::{VLAN_MAX, VlanId};

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::plan::interfaces;
use crate::sys;
use crate::sysctls::HurriedWaits;
use crate::tester::TesterError;
use crate::tester::cost::ChainCost;
use crate::tester::experiment::{facts_of, order_of};
use crate::tester::path::{Path, TrialOrder};
use crate::tester::port::Port;
use crate::tester::reference::{Reference, Stop};
use crate::tester::stream::{Stream, StreamPlan};
use crate::tester::usage::KernelMemory;
use crate::up::Lab;

/// Latency is read at this rate, frames per second.
const LATENCY_PPS: f64 = 100_000.0;
const LATENCY_TIME: Duration = Duration::from_millis(80);
/// Interface indexes of what a segment has of its own begin here.
const FIRST_INDEX: u32 = 100_000;
/// Those of trunks.
const FIRST_TRUNK: u32 = 90_000;
/// The kernel removes devices of a group together: those that hold segments, and ports.
const GROUP: u32 = 7348;
const PORT_GROUP: u32 = 7349;
/// Every port of the VTEP keeps a file open.
const FILES: u64 = 16_000;

/// Runs every step between the first server's edge switch and the next one that has servers.
pub(crate) fn run(lab: &Lab, spec: &SegmentsSpec, progress: &dyn Progress) -> Result<Records, TesterError> {
    // Each program that is attached and each start of the generator waits for the kernel; frames cost the same.
    let _quick = HurriedWaits::begin()?;
    // Where it may not be raised, attaching the ports says so.
    sys::raise_file_limit(FILES);
    let most = spec.segments.iter().copied().max().unwrap_or(1);
    let plan = StreamPlan { unicast: most as u16, ..StreamPlan::default() };
    let streams = plan.streams().map_err(TesterError::Refused)?;
    let ends = ends_of(lab)?;
    let stop = || progress.interrupted();
    let mut records = Records::default();
    let steps = spec.stores.len() * spec.segments.len();
    for (number, count) in spec.segments.iter().enumerate() {
        for (turn, store) in spec.stores.iter().enumerate() {
            let done = (number * spec.stores.len() + turn) as f64 / steps as f64;
            progress.advance(done, &format!("{count} segments: {}", store.name()));
            if stop() {
                return Err(TesterError::Interrupted);
            }
            let mut step = Step::new(*store, *count, &ends, &streams)?;
            let row = step.measure(spec, &plan, &stop)?;
            records.segments.push(SegmentRow { removal_ns: step.remove()?.as_nanos() as u64, ..row });
        }
    }
    let calibration = Reference::open(&StreamPlan::default(), spec.frame_bytes, &stop)?.calibration(&stop)?;
    records.facts.extend(facts_of(&calibration));
    Ok(records)
}

/// An edge switch where tunnels end, and the server below it in whose place the test centre stands.
#[derive(Clone, Debug)]
struct TunnelEnd {
    namespace: String,
    la: Ipv4Addr,
    remote: Ipv4Addr,
    /// Its interfaces to the server and into the fabric.
    access: String,
    uplink: String,
    tester: String,
}

fn ends_of(lab: &Lab) -> Result<[TunnelEnd; 2], TesterError> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let edges = || fabric.servers().filter_map(|server| Some((server, fabric.edge_of(server)?)));
    let first = edges().next();
    let second = edges().find(|(_, (edge, _))| first.is_some_and(|(_, (other, _))| *edge != other));
    let refused = || TesterError::Refused(format!("fabric `{}` has no two edge switches with servers", fabric.name()));
    let [first, second] = [first.ok_or_else(refused)?, second.ok_or_else(refused)?];
    let end = |(server, (edge, link)), (_, (far, _)): (NodeId, (NodeId, _))| {
        let interface = |link, node| interfaces(&lab.scenario, link, node).swap_remove(0).interface;
        let links = fabric.links_of(edge).iter().copied();
        let mut up = links.filter(|link| {
            fabric.link(*link).far_end(edge).is_some_and(|port| fabric.node(port.node).role.is_switch())
        });
        Ok::<_, TesterError>(TunnelEnd {
            namespace: lab.plan.node(edge).namespace.clone(),
            la: addresses.la(edge),
            remote: addresses.la(far),
            access: interface(link, edge),
            uplink: interface(up.next().ok_or_else(refused)?, edge),
            tester: format!("{}:{}", lab.plan.node(server).namespace, interface(link, server)),
        })
    };
    Ok([end(first, second)?, end(second, first)?])
}

/// Segments between both ends. Fields end in this order.
struct Step<'a> {
    store: SegmentStore,
    count: u32,
    setup: Duration,
    memory_bytes: u64,
    vteps: Vec<Vtep>,
    programs: Vec<BedPrograms>,
    ends: &'a [TunnelEnd; 2],
}

/// One of the switches while it is set up.
struct Server<'a> {
    end: &'a TunnelEnd,
    is_first: bool,
    count: u32,
    streams: &'a [Stream],
}

impl<'a> Step<'a> {
    fn new(store: SegmentStore, count: u32, ends: &'a [TunnelEnd; 2], streams: &[Stream]) -> Result<Self, TesterError> {
        let (setup, memory_bytes) = (Duration::ZERO, 0);
        let mut step = Self { store, count, setup, memory_bytes, vteps: Vec::new(), programs: Vec::new(), ends };
        for (place, end) in ends.iter().enumerate() {
            let server = Server { end, is_first: place == 0, count, streams };
            let made = netns::in_namespace(&namespace_path(&end.namespace), || server.set_up(store))??;
            if server.is_first {
                (step.setup, step.memory_bytes) = (made.setup, made.memory_bytes);
            }
            step.programs.push(made.programs);
            step.vteps.extend(made.vtep);
        }
        Ok(step)
    }

    /// Time to remove all segments of the first switch. Ports that are interfaces of their own are the VMs', and stay.
    fn remove(&mut self) -> Result<Duration, TesterError> {
        let (store, count) = (self.store, self.count);
        let namespace = &self.ends[0].namespace;
        let vtep = self.vteps.first_mut();
        netns::in_namespace(&namespace_path(namespace), || {
            let begin = Instant::now();
            match (store, vtep) {
                (SegmentStore::Map, Some(vtep)) => {
                    vtep.remove_vnis(&(1..=count).map(vni_of).collect())?;
                }
                (SegmentStore::KernelDevices, _) => {
                    batch::run(Program::Ip, namespace, &[format!("link delete group {GROUP}")])?;
                }
                (SegmentStore::KernelMetadata, _) => {
                    batch::run(Program::Bridge, namespace, &[format!("vni delete dev vx0 vni {}", range(count))])?;
                }
                _ => return Ok(Duration::ZERO),
            }
            Ok(begin.elapsed())
        })?
    }

    fn measure(&mut self, spec: &SegmentsSpec, plan: &StreamPlan, stop: Stop<'_>) -> Result<SegmentRow, TesterError> {
        let [near, far] = self.ends;
        let mut path = Path::open(&Port::open(&near.tester)?, &[Port::open(&far.tester)?], plan, spec.frame_bytes)?;
        let order = order_of(spec.cost);
        let (mut runs, mut sent, mut received) = (Vec::new(), 0, 0);
        for _ in 0..spec.cost.count {
            let trial = path.trial(&order, stop)?;
            runs.extend(trial.cpu_ns_per_frame());
            sent += trial.account.expected;
            received += trial.account.expected - trial.account.lost;
        }
        let cost = ChainCost::of(&runs).ok_or_else(|| {
            let text = format!("no frame crosses {} segments held by `{}`", self.count, self.store.name());
            TesterError::NoPath(format!("{text}; please report it"))
        })?;
        let latency = path.trial(&TrialOrder::paced(LATENCY_PPS, LATENCY_TIME), stop)?.latency.summary();
        Ok(SegmentRow {
            store: self.store.name().to_owned(),
            segments: self.count,
            active_segments: self.count,
            setup_ns: self.setup.as_nanos() as u64,
            removal_ns: 0,
            memory_bytes: self.memory_bytes,
            frame_bytes: spec.frame_bytes,
            chain_ns_per_frame: cost.min_ns,
            sent_frames: sent,
            received_frames: received,
            latency_p50_ns: latency.p50,
            latency_p99_ns: latency.p99,
        })
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.vteps.clear();
        self.programs.clear();
        for TunnelEnd { namespace, .. } in self.ends {
            for group in [GROUP, PORT_GROUP] {
                // A group may be empty, and what is left goes with the lab.
                let lines = [format!("link delete group {group}")];
                let _ = netns::in_namespace(&namespace_path(namespace), || batch::run(Program::Ip, namespace, &lines));
            }
        }
    }
}

/// A circuit of a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Circuit {
    trunk: u32,
    vlan: VlanId,
}

impl Circuit {
    /// That of a VNI: a trunk is full before the next one begins.
    fn of(vni: u32) -> Self {
        let (trunk, place) = ((vni - 1) / u32::from(VLAN_MAX), (vni - 1) % u32::from(VLAN_MAX));
        Self { trunk, vlan: VlanId::new(place as u16 + 1).expect("a place below the largest VLAN ID") }
    }

    fn ifindex(self) -> u32 {
        FIRST_TRUNK + self.trunk
    }
}

/// What setting a switch up has made.
struct Made {
    setup: Duration,
    memory_bytes: u64,
    programs: BedPrograms,
    vtep: Option<Vtep>,
}

impl Server<'_> {
    /// In the switch's namespace.
    fn set_up(&self, store: SegmentStore) -> Result<Made, TesterError> {
        let mut programs = BedPrograms::load()?;
        programs.poll(&self.end.access)?;
        programs.deliver_to(&self.end.access)?;
        programs.fan_out(&self.end.access)?;
        // Ports stand in for the VMs' network cards: whatever holds the segments needs them, so they are not part of it.
        match store {
            SegmentStore::MapPorts => self.make_ports((1..=self.count).map(|n| FIRST_INDEX + n))?,
            SegmentStore::Map | SegmentStore::KernelMetadata => self.make_ports(self.trunks())?,
            SegmentStore::KernelDevices => {}
        }
        let before = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        let begin = Instant::now();
        let mut vtep = match store {
            SegmentStore::KernelDevices => self.devices().map(|()| None)?,
            SegmentStore::KernelMetadata => self.one_device().map(|()| None)?,
            SegmentStore::Map => Some(self.vtep_with_trunks()?),
            SegmentStore::MapPorts => Some(self.vtep()?),
        };
        let setup = begin.elapsed();
        let after = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        match (store, &mut vtep) {
            (SegmentStore::MapPorts, Some(vtep)) => self.attach_ports(vtep)?,
            (SegmentStore::Map, Some(vtep)) => {
                self.tell_stations(vtep, |vni| To::Vlan(Circuit::of(vni).ifindex(), Circuit::of(vni).vlan))?;
            }
            _ => {}
        }
        self.join(store, &programs)?;
        Ok(Made { setup, memory_bytes: after.grown_since(&before).max(0) as u64, programs, vtep })
    }

    fn vni_of(&self, stream: usize) -> u32 {
        stream as u32 % self.count + 1
    }

    fn devices(&self) -> Result<(), LabError> {
        let line = |vni: u32| {
            let (index, TunnelEnd { la, remote, .. }) = (FIRST_INDEX + vni, self.end);
            [
                format!(
                    "link add name vx{vni} index {index} group {GROUP} type vxlan id {vni} dstport 4789 local {la} remote {remote} \
                     nolearning noudpcsum"
                ),
                format!("link set dev vx{vni} up"),
            ]
        };
        batch::run(Program::Ip, &self.end.namespace, &(1..=self.count).flat_map(line).collect::<Vec<_>>())
    }

    fn one_device(&self) -> Result<(), LabError> {
        let lines = [
            format!(
                "link add name vx0 index {FIRST_INDEX} group {GROUP} type vxlan external vnifilter dstport 4789 nolearning noudpcsum"
            ),
            "link set dev vx0 up".to_owned(),
        ];
        batch::run(Program::Ip, &self.end.namespace, &lines)?;
        batch::run(Program::Bridge, &self.end.namespace, &[format!("vni add dev vx0 vni {}", range(self.count))])
    }

    fn vtep(&self) -> Result<Vtep, TesterError> {
        let capacities = Capacities {
            macs: (self.streams.len() as u32 * 2).max(1024),
            vnis: self.count.max(1),
            ports: self.count + 2,
            trunks: self.trunks().count() as u32,
            ..Capacities::default()
        };
        let mut vtep = Vtep::load(&VtepOptions { capacities, ..VtepOptions::new(self.end.la) })?;
        vtep.attach_uplink(interface_index(&self.end.uplink)?)?;
        let settings = VniSettings { flood: Flood::HeadEnd(vec![self.end.remote]), ..VniSettings::default() };
        vtep.add_vnis(&(1..=self.count).map(vni_of).collect(), &settings)?;
        Ok(vtep)
    }

    /// With the VLANs of all segments on its trunks.
    fn vtep_with_trunks(&self) -> Result<Vtep, TesterError> {
        let mut vtep = self.vtep()?;
        for ifindex in self.trunks() {
            let here = (1..=self.count).filter(|vni| Circuit::of(*vni).ifindex() == ifindex);
            let vlans = here.map(|vni| (Circuit::of(vni).vlan, vni_of(vni))).collect();
            vtep.attach_trunk(ifindex, &Trunk { untagged: None, vlans })?;
        }
        Ok(vtep)
    }

    /// Interface indexes of as many trunks as all segments need.
    fn trunks(&self) -> std::ops::RangeInclusive<u32> {
        FIRST_TRUNK..=Circuit::of(self.count).ifindex()
    }

    /// Interfaces that end in nothing, which frames are put into.
    fn make_ports(&self, indexes: impl Iterator<Item = u32>) -> Result<(), LabError> {
        let line = |index: u32| {
            [
                format!("link add name q{index} index {index} group {PORT_GROUP} type ifb"),
                format!("link set dev q{index} up"),
            ]
        };
        batch::run(Program::Ip, &self.end.namespace, &indexes.flat_map(line).collect::<Vec<_>>())
    }

    /// A port for each segment, and every station where it is.
    fn attach_ports(&self, vtep: &mut Vtep) -> Result<(), TesterError> {
        for vni in 1..=self.count {
            vtep.attach_access(FIRST_INDEX + vni, vni_of(vni), AccessRule::default())?;
        }
        self.tell_stations(vtep, |vni| To::Port(FIRST_INDEX + vni))
    }

    fn tell_stations(&self, vtep: &mut Vtep, port_of: impl Fn(u32) -> To) -> Result<(), TesterError> {
        for (number, stream) in self.streams.iter().enumerate() {
            let vni = self.vni_of(number);
            let (here, there) = self.sides(stream);
            vtep.static_entry(vni_of(vni), here, port_of(vni))?;
            vtep.static_entry(vni_of(vni), there, To::Remote(self.end.remote))?;
        }
        Ok(())
    }

    /// The station of a stream that is at this switch, and the one that is not.
    fn sides(&self, stream: &Stream) -> ([u8; 6], [u8; 6]) {
        match self.is_first {
            true => (stream.source.mac.0, stream.destination.mac.0),
            false => (stream.destination.mac.0, stream.source.mac.0),
        }
    }

    /// Frames of the test centre's port into their segments, and those of all segments out of it.
    fn join(&self, store: SegmentStore, programs: &BedPrograms) -> Result<(), TesterError> {
        for (number, stream) in self.streams.iter().enumerate() {
            let vni = self.vni_of(number);
            let target = match store {
                SegmentStore::KernelDevices => SegmentTarget::Device { ifindex: FIRST_INDEX + vni },
                SegmentStore::KernelMetadata | SegmentStore::Map => {
                    let circuit = Circuit::of(vni);
                    SegmentTarget::Trunk { ifindex: circuit.ifindex(), vlan: circuit.vlan.get() }
                }
                SegmentStore::MapPorts => SegmentTarget::Port { ifindex: FIRST_INDEX + vni },
            };
            let [.., high, low] = stream.destination.mac.0;
            programs.set_segment(u16::from_be_bytes([high, low]), target)?;
        }
        match store {
            SegmentStore::KernelMetadata => {
                self.join_tunnel(programs)?;
                self.trunks().try_for_each(|ifindex| programs.fan_in_egress(ifindex))?;
            }
            SegmentStore::Map => self.trunks().try_for_each(|ifindex| programs.fan_in_egress(ifindex))?,
            SegmentStore::KernelDevices => {
                (1..=self.count).try_for_each(|vni| programs.fan_in(FIRST_INDEX + vni))?;
            }
            SegmentStore::MapPorts => {
                (1..=self.count).try_for_each(|vni| programs.fan_in_egress(FIRST_INDEX + vni))?;
            }
        }
        Ok(())
    }

    /// The trunks' VLANs as VNIs of the kernel's one device.
    fn join_tunnel(&self, programs: &BedPrograms) -> Result<(), TesterError> {
        programs.join_tunnel(FIRST_INDEX, FIRST_TRUNK, self.trunks().count() as u32)?;
        for vni in 1..=self.count {
            let Circuit { trunk, vlan } = Circuit::of(vni);
            let of = TunnelVlan { trunk, vlan: vlan.get(), vni, remote: self.end.remote };
            programs.set_tunnel_vlan(FIRST_TRUNK, of)?;
        }
        Ok(())
    }
}

/// VNIs from the first one on.
fn range(count: u32) -> String {
    if count == 1 { "1".to_owned() } else { format!("1-{count}") }
}

fn vni_of(number: u32) -> Vni {
    Vni::new(number).expect("segments count from 1 to 5,000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vni_has_a_circuit_of_its_own() {
        let ends = [1, 4094, 4095, 5000].map(|vni| (Circuit::of(vni).trunk, Circuit::of(vni).vlan.get()));
        assert_eq!(ends, [(0, 1), (0, 4094), (1, 1), (1, 906)]);
    }
}
