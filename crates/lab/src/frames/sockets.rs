//! Frames that end in sockets of processes at servers, and may begin there: the VXLAN draft's VMs, behind the servers' own network
//! stacks (draft-liu-nvo3-ps-vxlan-perfomance-00, 2.4).

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weft_scenario::addressing::port_mac;
use weft_scenario::engine::Overlay;
use weft_scenario::id::NodeId;
use weft_scenario::record::{MemoryRow, Records};
use weft_scenario::workload::End;
use weft_wire::ethernet::MacAddress;

use super::Run;
use super::bed::Bed;
use super::cores::Cores;
use super::cost::Costs;
use super::rates::{Rates, all_pairs};
use super::steady;
use super::vm::Vm;
use super::vm::order::{FRAME_OVER_PAYLOAD, Order, PORT, Reply};
use crate::batch::Program;
use crate::error::LabError;
use crate::plan::iproute::Ip;
use crate::tester::TesterError;
use crate::tester::stream::{Cast, Receiver, Station, Stream};
use crate::tester::usage::{Enforced, KernelMemory, core_mhz, pss_bytes};
use crate::up::{LAB_MEMORY, Lab};

/// How long a spanning tree may take until the processes hear each other.
const CONVERGENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// UDP ports that the test centre's streams come from begin here.
const FIRST_SOURCE_PORT: u16 = 4_000;

/// The processes. Those at the sending servers are there even where the test centre's port sends, so that switches hear of both ends.
pub(super) struct Sockets {
    pub(super) senders: Vec<Vm>,
    pub(super) receivers: Vec<Vm>,
    pub(super) cores: Cores,
}

/// Where a process stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: NodeId,
    address: Ipv4Addr,
    station: Station,
}

/// Runs one trial whose frames end in sockets.
pub(super) fn run(run: &Run<'_>, bed: &mut Bed<'_>, records: &mut Records) -> Result<(), TesterError> {
    let mut sockets = Sockets::start(run, bed)?;
    sockets.meet(run)?;
    records.facts.push(("machine.core_mhz".to_owned(), core_mhz()));
    records.facts.extend(sockets.quota());
    records.memory.push(sockets.memory(run.lab, 0)?);
    if let Some(search) = &run.spec.search {
        Rates::open(run, bed, &mut sockets)?.all_sizes(search, records)?;
    }
    if run.spec.from == End::Socket && run.spec.trial.is_some() {
        all_pairs(run, &mut sockets, records)?;
    }
    if run.spec.steady.is_some() {
        steady::of_servers(run, bed, &mut sockets, records)?;
    }
    if run.spec.cost.is_some() {
        sockets.meet(run)?;
        Costs::open(run, bed, Some(&mut sockets))?.all_sizes(records)?;
    }
    Ok(())
}

impl Sockets {
    /// Starts them. The streams of `bed` are then from the sending server to the receiving processes.
    fn start(run: &Run<'_>, bed: &mut Bed<'_>) -> Result<Self, TesterError> {
        let cores = Cores::of_this_machine()?;
        let senders = senders(run, bed)?;
        let of = |nodes: &[NodeId]| nodes.iter().map(|node| Place::of(run.lab, *node)).collect::<Result<Vec<_>, _>>();
        let (senders, receivers) = (of(&senders)?, of(&bed.receivers)?);
        let all = [&senders[..], &receivers[..]].concat();
        all.iter().try_for_each(|place| place.know(run.lab, bed, &all))?;
        if let Overlay::Layer2 { .. } = run.lab.scenario.overlay {
            run.held.know(run.lab, &all.iter().map(|place| (place.station.mac.0, place.node)).collect::<Vec<_>>())?;
        }
        bed.streams = streams(run.spec.stations as u16, &senders[0], &receivers);
        let start = |places: &[Place]| places.iter().map(|place| place.start(run)).collect::<Result<Vec<_>, _>>();
        Ok(Self { senders: start(&senders)?, receivers: start(&receivers)?, cores })
    }

    /// Facts: whether each part of the draft's quota holds all of them.
    fn quota(&self) -> [(String, f64); 2] {
        let all = |holds: fn(Enforced) -> bool| {
            let mut vms = self.senders.iter().chain(&self.receivers);
            f64::from(u8::from(vms.all(|vm| holds(vm.enforced()))))
        };
        [("vm.quota.cpu", all(|vm| vm.cpu)), ("vm.quota.memory", all(|vm| vm.memory))]
            .map(|(name, holds)| (name.to_owned(), holds))
    }

    /// Until every receiving process hears a sending one. Both have spoken then, so switches that learn know where they are.
    pub(super) fn meet(&mut self, run: &Run<'_>) -> Result<(), TesterError> {
        let deadline = Instant::now() + CONVERGENCE;
        let payload_bytes = run.spec.frame_bytes[0] - FRAME_OVER_PAYLOAD;
        let one = |to| Order::Send { to, payload_bytes, frames: 1, per_s: 0, duration_ns: u64::MAX / 2, core: None };
        let count = self.senders.len();
        loop {
            let mut heard = true;
            for number in 0..self.receivers.len() {
                let (sender, receiver) = (&mut self.senders[number % count], &mut self.receivers[number]);
                receiver.run(&one(sender.socket()))?;
                sender.run(&one(receiver.socket()))?;
                heard &= receiver.run(&Order::Drain { core: self.cores.tester })?.frames > 0;
            }
            if heard {
                return self.senders.iter_mut().try_for_each(|vm| {
                    vm.run(&Order::Drain { core: self.cores.tester })?;
                    Ok(())
                });
            }
            if Instant::now() > deadline {
                let overlay = run.lab.scenario.overlay;
                return Err(TesterError::NoPath(format!("no datagram crosses `{overlay}`; please report it")));
            }
            std::thread::sleep(ASK_AGAIN);
            run.attend(0, run.spec.frame_bytes[0])?;
        }
    }

    /// The first process sends so many frames to the first receiver, on the core where everything is done in turns.
    pub(super) fn send(&mut self, frame_bytes: u32, frames: u64, limit: Duration) -> Result<Reply, LabError> {
        let order = Order::Send {
            to: self.receivers[0].socket(),
            payload_bytes: frame_bytes - FRAME_OVER_PAYLOAD,
            frames,
            per_s: 0,
            duration_ns: limit.as_nanos() as u64,
            core: Some(self.cores.tester),
        };
        self.senders[0].run(&order)
    }

    /// What has arrived at all receivers, taken on the same core.
    pub(super) fn take(&mut self) -> Result<Reply, LabError> {
        let mut all = Reply::default();
        for vm in &mut self.receivers {
            let reply = vm.run(&Order::Drain { core: self.cores.tester })?;
            all.frames += reply.frames;
            all.cpu_ns += reply.cpu_ns;
        }
        Ok(all)
    }

    /// Memory now, after frames of a size.
    pub(super) fn memory(&self, lab: &Lab, frame_bytes: u32) -> Result<MemoryRow, LabError> {
        let kernel = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        let daemons = lab.state.processes.iter().map(|process| pss_bytes(process.id.pid).unwrap_or(0));
        let lab_bytes = lab.facts.iter().find(|(name, _)| name == LAB_MEMORY).map_or(0.0, |(_, bytes)| *bytes);
        Ok(MemoryRow {
            frame_bytes,
            kernel_bytes: kernel.total_bytes(),
            lab_bytes: lab_bytes as u64,
            daemon_bytes: daemons.sum(),
            receiver_bytes: self.receivers.iter().map(Vm::memory_bytes).sum(),
        })
    }
}

impl Place {
    fn of(lab: &Lab, node: NodeId) -> Result<Self, TesterError> {
        let address =
            lab.server_addresses().into_iter().find(|(server, _)| *server == node).map(|(_, address)| address);
        let (address, (_, link)) = address.zip(lab.scenario.fabric.edge_of(node)).ok_or_else(|| {
            TesterError::Refused(format!("server `{}` has no address for a socket", lab.plan.node(node).name))
        })?;
        let mac = MacAddress(port_mac(&lab.scenario.fabric, link, node));
        Ok(Self { node, address, station: Station { mac, ip: address.into(), port: PORT } })
    }

    fn start(&self, run: &Run<'_>) -> Result<Vm, LabError> {
        Vm::start(run.weft_binary, &run.lab.plan.node(self.node).namespace, self.address)
    }

    /// All others as neighbours, so that nobody asks by ARP while something is measured.
    fn know(&self, lab: &Lab, bed: &Bed<'_>, all: &[Self]) -> Result<(), LabError> {
        let interface = bed.interface(self.node);
        let others = all.iter().filter(|other| other.node != self.node);
        let line = |Self { address, station, .. }: &Self| Ip::Neighbour {
            address: *address,
            mac: station.mac,
            device: interface.to_owned(),
        };
        lab.batch(self.node, Program::Ip, &others.map(line).collect::<Vec<_>>())
    }
}

/// The sending servers: the first, and as many beside it as receive.
fn senders(run: &Run<'_>, bed: &Bed<'_>) -> Result<Vec<NodeId>, TesterError> {
    let fabric = &run.lab.scenario.fabric;
    let edge = |server: NodeId| fabric.edge_of(server).map(|(edge, _)| edge);
    let wanted = if run.spec.from == End::Socket { run.spec.receivers as usize } else { 1 };
    let beside = fabric.servers().filter(|server| edge(*server) == edge(bed.sender));
    let found: Vec<NodeId> = beside.take(wanted).collect();
    match found.len() == wanted {
        true => Ok(found),
        false => {
            let name = fabric.name();
            Err(TesterError::Refused(format!(
                "fabric `{name}` has fewer than {wanted} servers behind its first switch"
            )))
        }
    }
}

/// Streams of the test centre's port to the processes, in turns.
fn streams(count: u16, sender: &Place, receivers: &[Place]) -> Vec<Stream> {
    let stream = |number: u16| Stream {
        number,
        source: Station { port: FIRST_SOURCE_PORT + number, ..sender.station },
        destination: receivers[usize::from(number) % receivers.len()].station,
        vlan: None,
        cast: Cast::Unicast,
        gateway: None,
        receiver: Receiver::First,
    };
    (0..count).map(stream).collect()
}
