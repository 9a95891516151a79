//! A path over virtual switches with one encapsulation: tester - switch - (wire) - switch - tester, in namespaces of its own.
//! The wire is a veth pair, or two of the user's own ports.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weft_datapath::abi::NextHop;
use weft_datapath::host::Mapping;
use weft_datapath::switch::Tier;
use weft_datapath::tester::EmulatedLinks;
use weft_datapath::trill::abi::STATIC;
use weft_datapath::trill::{Hop, Place, PortConfig, PortKind, RBridgeConfig, RBridgeDatapath, Station};
use weft_datapath::vxlan::{self, AccessRule, Flood, Hook, To, Vni, VniSettings, Vtep, VtepOptions};
use weft_datapath::xdp::{XdpConfig, XdpDatapath, XdpProgram};
use weft_wire::ethernet::MacAddress;

use super::encapsulation::Encapsulation;
use super::nic::{BorrowedPort, Wire};
use crate::batch::{self, Program};
use crate::home::namespace_path;
use crate::netns;
use crate::tester::bed::{self, BED_MTU, Namespaces};
use crate::tester::error::TesterError;
use crate::tester::path::{Path, TrialOrder};
use crate::tester::port::Port;
use crate::tester::stream::{Stream, StreamPlan};

const VNI: u32 = 42;
const UNDERLAY: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
const ANYCAST_LA: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);
const TOR_LA: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// What stations' addresses are of (RFC 2544 appendix C).
const AA_BLOCK: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);
/// The MAC that switches use between each other.
const SWITCH_MAC: [u8; 6] = [0x02, 0x57, 0x53, 0, 0, 1];
const OUT: u32 = 1;
/// VLAN of all stations on TRILL's access ports.
const VLAN: u16 = 10;
/// How long a new path may take until frames cross it.
const READY: Duration = Duration::from_secs(5);
const FIRST_FRAMES: u64 = 64;
const FIRST_PPS: f64 = 50_000.0;

/// The path; it goes when this is dropped, and the user's ports are where they were.
#[derive(Debug)]
pub struct OverlayBed {
    ports: [Port; 2],
    /// Programs on the switches' interfaces.
    _programs: Vec<Programs>,
    /// Before the namespaces that they are in.
    _borrowed: Vec<BorrowedPort>,
    _namespaces: Namespaces,
}

#[derive(Debug)]
enum Programs {
    /// Held for its links.
    Kernel { _held: EmulatedLinks },
    /// Likewise.
    Xdp { _datapath: XdpDatapath },
    /// Likewise.
    Vtep { _vtep: Box<Vtep>, _held: EmulatedLinks },
    /// Likewise.
    RBridge { _datapath: Box<RBridgeDatapath> },
}

/// One virtual switch: its namespace, and the interfaces that frames come in at and leave by.
struct Switch<'a> {
    place: usize,
    last: usize,
    namespace: &'a str,
    way_in: String,
    way_out: String,
}

impl OverlayBed {
    /// Makes it. `plan` says which stations there are, for tables that nobody learns.
    ///
    /// # Errors
    /// Any [`TesterError`]; nothing is left behind.
    pub fn new(encapsulation: Encapsulation, wire: &Wire, plan: &StreamPlan) -> Result<Self, TesterError> {
        let streams = plan.streams().map_err(TesterError::Refused)?;
        let count = encapsulation.switches();
        let nodes: Vec<String> =
            ["a".to_owned(), "b".to_owned()].into_iter().chain((0..count).map(|n| format!("s{n}"))).collect();
        let namespaces = bed::make_namespaces(&nodes)?;
        let [a, b, switches @ ..] = namespaces.names() else { unreachable!("there are at least two") };
        bed::wire(a, "g0", &switches[0], "a0")?;
        bed::wire(b, "k0", &switches[count - 1], "a1")?;
        let mut borrowed = Vec::new();
        let mut ends: Vec<(String, String)> = Vec::new();
        for (place, pair) in switches.windows(2).enumerate() {
            match wire {
                Wire::Ports(ports) if place == 0 => {
                    let [left, right] = &**ports;
                    borrowed.push(BorrowedPort::take(left, &pair[0], encapsulation.header_bytes())?);
                    borrowed.push(BorrowedPort::take(right, &pair[1], encapsulation.header_bytes())?);
                    ends.push((left.interface().to_owned(), right.interface().to_owned()));
                }
                _ => {
                    bed::wire(&pair[0], "u1", &pair[1], "u0")?;
                    ends.push(("u1".to_owned(), "u0".to_owned()));
                }
            }
        }
        let mut programs = Vec::new();
        for (place, namespace) in switches.iter().enumerate() {
            let way_in = if place == 0 { "a0".to_owned() } else { ends[place - 1].1.clone() };
            let way_out = if place + 1 == count { "a1".to_owned() } else { ends[place].0.clone() };
            let switch = Switch { place, last: count - 1, namespace, way_in, way_out };
            programs.push(netns::in_namespace(&namespace_path(namespace), || switch.set_up(encapsulation, &streams))??);
        }
        let ports = [Port::open(&format!("{a}:g0"))?, Port::open(&format!("{b}:k0"))?];
        Ok(Self { ports, _programs: programs, _borrowed: borrowed, _namespaces: namespaces })
    }

    /// Opens a path over it and waits until frames cross it: ports of a bridge forward a little after they are made.
    ///
    /// # Errors
    /// As [`Path::open`]; [`TesterError::NoPath`] if nothing crosses.
    pub fn path(&self, plan: &StreamPlan, frame_bytes: u32) -> Result<Path, TesterError> {
        let mut path = Path::open(&self.ports[0], &self.ports[1..], plan, frame_bytes)?;
        let few = TrialOrder { frames: Some(FIRST_FRAMES), ..TrialOrder::paced(FIRST_PPS, READY) };
        let deadline = Instant::now() + READY;
        while path.trial(&few, &|| false)?.account.counts.received == 0 {
            if Instant::now() > deadline {
                let what = path.ports_text();
                return Err(TesterError::NoPath(format!("no frame crosses from {what}; are the two ports connected?")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // The first ones may have come too early.
        path.teach()?;
        Ok(path)
    }
}

impl Switch<'_> {
    /// In the switch's namespace.
    fn set_up(&self, encapsulation: Encapsulation, streams: &[Stream]) -> Result<Programs, TesterError> {
        match encapsulation {
            Encapsulation::Bridge => self.bridge(&[]),
            Encapsulation::KernelVxlan => self.bridge(&self.vxlan_lines()),
            Encapsulation::L2Tc => self.l2_tc(streams),
            Encapsulation::WeftVxlanTc => self.vtep(Hook::Tc, streams),
            Encapsulation::WeftVxlanXdp => self.vtep(Hook::Xdp, streams),
            Encapsulation::L2Xdp | Encapsulation::L2XdpThree => self.l2_xdp(streams),
            Encapsulation::Vl2Xdp => self.vl2_xdp(streams),
            Encapsulation::TrillXdp => self.rbridge(streams),
        }
    }

    /// The kernel's bridge over both ways, or over the access port and what `tunnel` makes.
    fn bridge(&self, tunnel: &[String]) -> Result<Programs, TesterError> {
        let (access, other) = match (tunnel.is_empty(), self.place) {
            (true, _) => (&self.way_in, self.way_out.as_str()),
            (false, 0) => (&self.way_in, "vx0"),
            (false, _) => (&self.way_out, "vx0"),
        };
        let mut lines = vec![format!("link add dev br0 mtu {BED_MTU} type bridge mcast_snooping 0")];
        lines.extend_from_slice(tunnel);
        lines.extend([access, other].map(|port| format!("link set dev {port} master br0")));
        lines.push("link set dev br0 up".to_owned());
        self.ip(&lines)?;
        let mut held = EmulatedLinks::load()?;
        if self.place == 0 {
            // A veth end takes live frames only if its peer polls, which any XDP program makes it do.
            held.hold(&self.way_in)?;
        }
        Ok(Programs::Kernel { _held: held })
    }

    /// As the kernel does it at its best: no UDP checksum, which is zero here anyway with RFC 7348's advice.
    fn vxlan_lines(&self) -> Vec<String> {
        let underlay = if self.place == 0 { &self.way_out } else { &self.way_in };
        let (own, other) = (UNDERLAY[self.place.min(1)], UNDERLAY[1 - self.place.min(1)]);
        vec![
            format!("address add {own}/24 dev {underlay}"),
            format!(
                "link add dev vx0 type vxlan id {VNI} dstport 4789 local {own} remote {other} dev {underlay} noudpcsum"
            ),
            "link set dev vx0 up".to_owned(),
        ]
    }

    fn l2_tc(&self, streams: &[Stream]) -> Result<Programs, TesterError> {
        let mut held = EmulatedLinks::load()?;
        let stations: Vec<[u8; 6]> = streams.iter().map(|stream| stream.destination.mac.0).collect();
        held.switch(&self.way_in, &stations, &self.way_out)?;
        if self.place == 0 {
            held.hold(&self.way_in)?;
        }
        Ok(Programs::Kernel { _held: held })
    }

    /// Weft's own tunnel end point. It learns senders as the kernel's does; receivers are where a directory would say.
    fn vtep(&self, hook: Hook, streams: &[Stream]) -> Result<Programs, TesterError> {
        let (underlay, access) = match self.place {
            0 => (&self.way_out, &self.way_in),
            _ => (&self.way_in, &self.way_out),
        };
        let (own, other) = (UNDERLAY[self.place.min(1)], UNDERLAY[1 - self.place.min(1)]);
        self.ip(&[format!("address add {own}/24 dev {underlay}")])?;
        let mut vtep = Vtep::load(&VtepOptions { hook, ..VtepOptions::new(own) })?;
        let vni = Vni::new(VNI).expect("42 is a VNI");
        vtep.attach_uplink(vxlan::interface_index(underlay)?)?;
        vtep.add_vni(vni, &VniSettings { flood: Flood::HeadEnd(vec![other]), ..VniSettings::default() })?;
        let port = vxlan::interface_index(access)?;
        vtep.attach_access(port, vni, AccessRule::default())?;
        let to = if self.place == 0 { To::Remote(other) } else { To::Port(port) };
        for stream in streams {
            vtep.static_entry(vni, stream.destination.mac.0, to)?;
        }
        let mut held = EmulatedLinks::load()?;
        if self.place == 0 && hook == Hook::Tc {
            held.hold(&self.way_in)?;
        }
        Ok(Programs::Vtep { _vtep: Box::new(vtep), _held: held })
    }

    fn l2_xdp(&self, streams: &[Stream]) -> Result<Programs, TesterError> {
        let mut datapath = self.xdp(Tier::Intermediate)?;
        for stream in streams {
            datapath.set_mac(stream.destination.mac.0, OUT)?;
        }
        datapath.attach(XdpProgram::L2Forward, &self.way_in)?;
        Ok(Programs::Xdp { _datapath: datapath })
    }

    /// A server that encapsulates, an Intermediate, a ToR.
    fn vl2_xdp(&self, streams: &[Stream]) -> Result<Programs, TesterError> {
        let next = |destination| NextHop { destination, source: SWITCH_MAC, port: OUT };
        let is_tor = self.place == self.last;
        let mut datapath = self.xdp(if is_tor { Tier::Tor } else { Tier::Intermediate })?;
        if self.place == 0 {
            let mapping = Mapping { tor_la: TOR_LA, anycast_la: ANYCAST_LA, refused: false, version: 1 };
            for stream in streams {
                datapath.set_mapping(stream.destination.ip, &mapping)?;
            }
            datapath.set_route(ANYCAST_LA, &next(SWITCH_MAC))?;
            datapath.attach(XdpProgram::Encap, &self.way_in)?;
        } else if is_tor {
            datapath.set_own_las(&[TOR_LA])?;
            for stream in streams {
                datapath.set_route(stream.destination.ip, &next(stream.destination.mac.0))?;
            }
            datapath.attach(XdpProgram::Decap, &self.way_in)?;
        } else {
            datapath.set_own_las(&[ANYCAST_LA])?;
            datapath.set_route(TOR_LA, &next(SWITCH_MAC))?;
            datapath.attach(XdpProgram::Decap, &self.way_in)?;
        }
        Ok(Programs::Xdp { _datapath: datapath })
    }

    /// An RBridge on its way in a row of them; their nicknames count from 1. Senders it learns, receivers it was told of.
    fn rbridge(&self, streams: &[Stream]) -> Result<Programs, TesterError> {
        const IN: u8 = 1;
        const AWAY: u8 = 2;
        let mac = |place: usize, port: u8| MacAddress([0x02, 0x57, 0x54, 0, place as u8, port]);
        let nickname = |place: usize| place as u16 + 1;
        let link = |neighbor| PortKind::link_to(1, neighbor);
        let port = |interface: &str, number, kind| PortConfig {
            interface: interface.to_owned(),
            mac: mac(self.place, number),
            mtu: BED_MTU,
            kind,
        };
        let mut datapath = RBridgeDatapath::load(&RBridgeConfig::default())?;
        let way_in = match self.place {
            0 => PortKind::access(VLAN),
            place => link(mac(place - 1, AWAY)),
        };
        datapath.add_port(IN, &port(&self.way_in, IN, way_in))?;
        let next = mac(self.place + 1, IN);
        let is_last = self.place == self.last;
        let way_out = if is_last { PortKind::access(VLAN) } else { link(next) };
        datapath.add_port(AWAY, &port(&self.way_out, AWAY, way_out))?;
        datapath.change(|fib| {
            fib.nickname = Some(nickname(self.place));
            if !is_last {
                fib.routes.insert(nickname(self.last), vec![Hop { port: AWAY, mac: next }]);
            }
        })?;
        let place = if is_last { Place::Port(AWAY) } else { Place::RBridge(nickname(self.last)) };
        for stream in streams {
            let mac = stream.destination.mac;
            datapath.maps().set_station(&Station { mac, vlan: VLAN, place, confidence: STATIC, seen_s: 0 })?;
        }
        Ok(Programs::RBridge { _datapath: Box::new(datapath) })
    }

    fn xdp(&self, tier: Tier) -> Result<XdpDatapath, TesterError> {
        let datapath = XdpDatapath::load(&XdpConfig { aa_block: AA_BLOCK, underlay_mtu: BED_MTU, tier })?;
        datapath.set_port(OUT, vxlan::interface_index(&self.way_out)?)?;
        Ok(datapath)
    }

    fn ip(&self, lines: &[String]) -> Result<(), TesterError> {
        Ok(batch::run(Program::Ip, self.namespace, lines)?)
    }
}
