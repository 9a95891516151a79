//! Servers, the switch between them, VMs and the test centre's ports: one bed for each way that frames can take.
//!
//! ```text
//! tc1  VM 1.1 .. VM 1.n          VM 2.1 .. VM 2.n  tc2
//!   \   |          |                |         |     /
//!    server1: virtual switch       server2: virtual switch
//!            |u0                           u0|
//!            +---------- ToR ----------------+          (model A: the test centre's tc1 in place of ToR and server2)
//! ```

use std::net::Ipv4Addr;
use std::path::Path as FilePath;

use weft_datapath::bed::{BedPrograms, Cut};
use weft_scenario::workload::vxlan::Path;
use weft_wire::ethernet::MacAddress;

use super::switching::{Switch, SwitchPrograms};
use super::vm::Vm;
use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::bed::{Namespaces, make_namespaces, wire};
use crate::tester::path::Path as TesterPath;
use crate::tester::port::Port;
use crate::tester::rate::FrameSize;
use crate::tester::stream::{Cast, Receiver, Station, Stream, StreamPlan};

/// What is between the virtual switches, and how many VMs there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// How frames travel.
    pub(super) path: Path,
    /// Whether server2 is there; without it the test centre is at the uplink of server1.
    pub(super) two_servers: bool,
    /// Whether a switch is between the servers.
    pub(super) tor: bool,
    /// VMs of each server.
    pub(super) vms: u32,
}

/// A place where frames come in, and where a chain can end.
#[derive(Clone, Debug)]
pub(super) struct Place {
    namespace: String,
    interface: String,
}

/// The bed. Fields end in this order.
pub(super) struct Bed {
    pub(super) shape: Shape,
    vms: Vec<Vec<Vm>>,
    switches: Vec<SwitchPrograms>,
    cuts: BedPrograms,
    names: Names,
    _namespaces: Namespaces,
}

/// Names of the namespaces.
struct Names {
    test_centres: Vec<String>,
    servers: Vec<String>,
    tor: Option<String>,
    vms: Vec<Vec<String>>,
}

const VM_PREFIX_BITS: u8 = 16;
/// MTU of a virtual switch's ports.
const PORT_MTU: u32 = 9000;

/// Address of a VM; servers and VMs count from 1, VM 0 is the test centre's port at that server.
pub(super) fn vm_address(server: u8, vm: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 99, server, vm + 1)
}

/// Hardware address of a VM.
pub(super) fn vm_mac(server: u8, vm: u8) -> [u8; 6] {
    [0x02, 0x57, 0x56, 0, server, vm]
}

/// Hardware address of the test centre's port that takes the place of server2.
const OUTSIDE: u8 = 9;

impl Bed {
    /// Makes everything and starts the VMs. `plan`: stations of the test centre's ports, for tables that nobody learns.
    pub(super) fn new(shape: Shape, plan: &StreamPlan, weft_binary: &FilePath) -> Result<Self, TesterError> {
        let server_count = if shape.two_servers { 2 } else { 1 };
        let (namespaces, names) = make_names(shape, server_count)?;
        let cuts = BedPrograms::load()?;
        connect(&names)?;
        let streams = plan.streams().map_err(TesterError::Refused)?;
        let mut switches = Vec::new();
        for (place, namespace) in names.servers.iter().enumerate() {
            let switch = switch_of(shape, place as u8 + 1, &streams);
            switches.push(netns::in_namespace(&namespace_path(namespace), || switch.set_up(namespace, weft_binary))??);
        }
        let mut vms = Vec::new();
        for (place, namespaces) in names.vms.iter().enumerate() {
            let mut of_server = Vec::new();
            for (number, namespace) in namespaces.iter().enumerate() {
                let (server, vm) = (place as u8 + 1, number as u8 + 1);
                address_vm(namespace, server, vm, &names)?;
                of_server.push(Vm::start(weft_binary, namespace, vm_address(server, vm))?);
            }
            vms.push(of_server);
        }
        Ok(Self { shape, vms, switches, cuts, names, _namespaces: namespaces })
    }

    /// A VM; server from 1, VM from 1.
    pub(super) fn vm(&mut self, server: u8, vm: u8) -> &mut Vm {
        &mut self.vms[usize::from(server) - 1][usize::from(vm) - 1]
    }

    /// Memory of a server's VMs, bytes.
    pub(super) fn vm_memory_bytes(&self, server: u8) -> u64 {
        self.vms[usize::from(server) - 1].iter().map(Vm::memory_bytes).sum()
    }

    /// Memory of what a server's virtual switch runs beside the kernel, bytes.
    pub(super) fn switch_memory_bytes(&self, server: u8) -> u64 {
        self.switches[usize::from(server) - 1].memory_bytes()
    }

    /// The uplink of a server.
    pub(super) fn uplink(&self, server: u8) -> Place {
        Place { namespace: self.names.servers[usize::from(server) - 1].clone(), interface: "u0".into() }
    }

    /// The port of a server that a VM is at.
    pub(super) fn port_of(&self, server: u8, vm: u8) -> Place {
        Place { namespace: self.names.servers[usize::from(server) - 1].clone(), interface: port_name(vm) }
    }

    /// A VM's own interface.
    pub(super) fn in_vm(&self, server: u8, vm: u8) -> Place {
        let namespace = self.names.vms[usize::from(server) - 1][usize::from(vm) - 1].clone();
        Place { namespace, interface: "eth0".into() }
    }

    /// The switch's port towards server1.
    pub(super) fn tor_port(&self) -> Option<Place> {
        Some(Place { namespace: self.names.tor.clone()?, interface: "t1".into() })
    }

    /// Ends the chain at a place until the result is dropped.
    pub(super) fn cut(&self, place: &Place) -> Result<Cut, TesterError> {
        place.inside(|| self.cuts.cut(&place.interface))
    }

    /// Adds a known cost at a place until the result is dropped.
    pub(super) fn burn(&self, place: &Place, burn_ns: u64) -> Result<Cut, TesterError> {
        place.inside(|| self.cuts.burn(&place.interface, burn_ns))
    }

    /// The test centre's port at a server, `g0` in a namespace of its own.
    pub(super) fn test_centre(&self, server: u8) -> &str {
        &self.names.test_centres[usize::from(server) - 1]
    }

    /// The test centre's path from its port at server1 to the one at server2.
    pub(super) fn path(&self, plan: &StreamPlan, frame_bytes: u32) -> Result<TesterPath, TesterError> {
        let port = |server| Port::open(&format!("{}:g0", self.test_centre(server)));
        TesterPath::open(&port(1)?, &[port(2)?], plan, frame_bytes)
    }

    /// Whose frames the VMs of a server take: one stream for each, from the test centre's port.
    pub(super) fn streams_to_vms(&self, from: u8, server: u8, vms: u8) -> Vec<Stream> {
        let station =
            |server, vm, port| Station { mac: MacAddress(vm_mac(server, vm)), ip: vm_address(server, vm), port };
        let stream = |vm: u8| Stream {
            number: u16::from(vm) - 1,
            source: station(from, 0, 4000 + u16::from(vm)),
            destination: station(server, vm, super::vm::order::PORT),
            vlan: None,
            cast: Cast::Unicast,
            gateway: None,
            receiver: Receiver::First,
        };
        (1..=vms).map(stream).collect()
    }

    /// Where the test centre's frames come from when it stands outside.
    pub(super) fn sender(&self) -> u8 {
        if self.shape.two_servers { 1 } else { OUTSIDE }
    }
}

/// A size that VMs send.
pub(super) fn frame_size(bytes: u32) -> Result<FrameSize, TesterError> {
    FrameSize::new(bytes, 1500, false).map_err(TesterError::Refused)
}

impl Place {
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, weft_datapath::DatapathError> + Send,
    ) -> Result<T, TesterError> {
        Ok(netns::in_namespace(&namespace_path(&self.namespace), work)??)
    }
}

pub(super) fn port_name(vm: u8) -> String {
    format!("p{vm}")
}

fn make_names(shape: Shape, servers: u8) -> Result<(Namespaces, Names), TesterError> {
    let mut nodes: Vec<String> = (1..=servers).map(|server| format!("tc{server}")).collect();
    nodes.extend((1..=servers).map(|server| format!("server{server}")));
    for server in 1..=servers {
        nodes.extend((1..=shape.vms).map(|vm| format!("vm{server}.{vm}")));
    }
    if shape.tor {
        nodes.push("tor".to_owned());
    }
    let namespaces = make_namespaces(&nodes)?;
    let mut rest = namespaces.names().iter().cloned();
    let mut take = |count: usize| rest.by_ref().take(count).collect::<Vec<String>>();
    let count = usize::from(servers);
    let (test_centres, of_servers) = (take(count), take(count));
    let vms = (0..count).map(|_| take(shape.vms as usize)).collect();
    let tor = take(1).pop();
    Ok((namespaces, Names { test_centres, servers: of_servers, tor, vms }))
}

/// Wires everything.
fn connect(names: &Names) -> Result<(), TesterError> {
    let (first, second) = (&names.servers[0], names.servers.get(1));
    match (second, &names.tor) {
        (None, _) => wire(&names.test_centres[0], "g0", first, "u0")?,
        (Some(second), None) => wire(first, "u0", second, "u0")?,
        (Some(second), Some(tor)) => {
            wire(first, "u0", tor, "t1")?;
            wire(second, "u0", tor, "t2")?;
            let lines = [
                "link add dev br0 type bridge mcast_snooping 0",
                "link set dev t1 master br0",
                "link set dev t2 master br0",
                "link set dev br0 up",
            ];
            ip(tor, &lines.map(str::to_owned))?;
        }
    }
    for (place, server) in names.servers.iter().enumerate() {
        if second.is_some() {
            wire(&names.test_centres[place], "g0", server, &port_name(0))?;
        }
        for (vm, namespace) in names.vms[place].iter().enumerate() {
            wire(namespace, "eth0", server, &port_name(vm as u8 + 1))?;
        }
    }
    // Room for a tunnel's headers at the uplinks; on all ways, so that they are alike.
    for (place, server) in names.servers.iter().enumerate() {
        let first = if second.is_some() { 0 } else { 1 };
        let ports =
            (first..=names.vms[place].len()).map(|vm| format!("link set dev {} mtu {PORT_MTU}", port_name(vm as u8)));
        ip(server, &ports.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// What a virtual switch has to know: its own ports, and who is behind its uplink.
fn switch_of(shape: Shape, server: u8, streams: &[Stream]) -> Switch {
    let vms = shape.vms as u8;
    let mut ports: Vec<(String, Vec<[u8; 6]>)> =
        (1..=vms).map(|vm| (port_name(vm), vec![vm_mac(server, vm)])).collect();
    let mut others = Vec::new();
    if shape.two_servers {
        let other = 3 - server;
        others.extend((0..=vms).map(|vm| vm_mac(other, vm)));
        // The test centre sends at server1 and receives at server2.
        let (senders, receivers): (Vec<_>, Vec<_>) =
            streams.iter().map(|stream| (stream.source.mac.0, stream.destination.mac.0)).unzip();
        let (own, far) = if server == 1 { (senders, receivers) } else { (receivers, senders) };
        ports.insert(0, (port_name(0), [vec![vm_mac(server, 0)], own].concat()));
        others.extend(far);
    } else {
        others.push(vm_mac(OUTSIDE, 0));
    }
    Switch { path: shape.path, number: server, ports, others, live_uplink: !shape.two_servers }
}

/// Address, route and neighbours of a VM: all others, so that nobody asks by ARP.
fn address_vm(namespace: &str, server: u8, vm: u8, names: &Names) -> Result<(), LabError> {
    let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    let mut lines = vec![
        format!("link set dev eth0 address {}", mac(vm_mac(server, vm))),
        format!("address add {}/{VM_PREFIX_BITS} dev eth0", vm_address(server, vm)),
        "link set dev lo up".to_owned(),
    ];
    for (place, vms) in names.vms.iter().enumerate() {
        for number in 0..=vms.len() {
            let (of, other) = (place as u8 + 1, number as u8);
            if (of, other) != (server, vm) {
                let (address, mac) = (vm_address(of, other), mac(vm_mac(of, other)));
                lines.push(format!("neigh replace {address} lladdr {mac} dev eth0 nud permanent"));
            }
        }
    }
    ip(namespace, &lines)
}

pub(super) fn ip(namespace: &str, lines: &[String]) -> Result<(), LabError> {
    netns::in_namespace(&namespace_path(namespace), || batch::run(Program::Ip, namespace, lines))?
}
