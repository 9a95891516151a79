//! A VTEP of ours in a namespace, stations behind its access ports, and the underlay at its uplink.

use std::net::Ipv4Addr;

use weft_datapath::vxlan::{self, AccessRule, Flood, Vni, VniSettings, Vtep, VtepOptions};
use weft_testbed::tester::EmulatedLinks;

use super::available;
use super::netns::{Namespace, link};

pub const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
pub const UNDERLAY_MTU: u32 = 1600;

pub fn vni(number: u32) -> Vni {
    Vni::new(number).expect("a valid number")
}

/// Of [`PEER`] once [`Node::silence`] was called.
pub const FAR_MAC: &str = "02:00:00:00:00:99";

/// Without IPv6, whose router solicitations would be frames that nobody sent.
pub fn quiet(test: &str, node: &str) -> Namespace {
    let namespace = Namespace::new(test, node);
    for scope in ["all", "default"] {
        namespace.sysctl(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "1");
    }
    namespace
}

/// Floods to [`PEER`].
pub fn settings() -> VniSettings {
    VniSettings { flood: Flood::HeadEnd(vec![PEER]), ..VniSettings::default() }
}

/// A node with an uplink `up` (10.0.0.1/24) to a namespace that has the address of [`PEER`] at its own `up`.
pub struct Node {
    pub node: Namespace,
    pub far: Namespace,
}

impl Node {
    pub fn new(test: &str) -> Self {
        let (node, far) = (quiet(test, "node"), quiet(test, "far"));
        link((&node, "up"), (&far, "up"), UNDERLAY_MTU);
        node.ip(&format!("addr add {LOCAL}/24 dev up"));
        far.ip(&format!("addr add {PEER}/24 dev up"));
        Self { node, far }
    }

    /// Nothing answers at the far end, and nothing is asked for there.
    pub fn silence(&self) {
        self.far.ip("addr flush dev up");
        self.node.ip(&format!("neigh replace {PEER} lladdr {FAR_MAC} dev up"));
    }

    /// A station at the far end of an access port of this name, with an address of the overlay.
    pub fn station(&self, test: &str, port: &str, address: &str) -> Namespace {
        let station = quiet(test, port);
        link((&self.node, port), (&station, "eth0"), 1500);
        station.ip(&format!("addr add {address} dev eth0"));
        station
    }

    /// The kernel's own VTEP at the far end: its device is a station with this address. `extra`: more arguments.
    pub fn kernel_peer(&self, number: u32, address: &str, extra: &str) {
        self.far.ip(&format!("link add vx0 type vxlan id {number} dstport 4789 local {PEER} dev up {extra}"));
        self.far.ip("link set dev vx0 mtu 1500 up");
        self.far.ip(&format!("addr add {address} dev vx0"));
        if !extra.contains("group") {
            let (name, local) = (&self.far.name, LOCAL.to_string());
            let all = "00:00:00:00:00:00";
            super::netns::run(&["bridge", "-n", name, "fdb", "append", all, "dev", "vx0", "dst", &local]);
        }
    }

    /// A VTEP with its uplink attached. `None`: eBPF is not available.
    pub fn vtep(&self, options: &VtepOptions) -> Option<Vtep> {
        available(self.node.enter_with(|| {
            let mut vtep = Vtep::load(options)?;
            vtep.attach_uplink(vxlan::interface_index("up")?)?;
            Ok(vtep)
        }))
    }

    pub fn attach(&self, vtep: &mut Vtep, port: &str, number: u32, rule: AccessRule) -> u32 {
        self.node.enter_with(|| {
            let ifindex = vxlan::interface_index(port).expect("the interface exists");
            vtep.attach_access(ifindex, vni(number), rule).expect("it attaches");
            ifindex
        })
    }
}

/// Makes an end of a veth pair poll: only then its other end takes frames from XDP.
pub fn hold(namespace: &Namespace, interface: &str) -> EmulatedLinks {
    namespace.enter_with(|| {
        let mut links = EmulatedLinks::load().expect("it loads");
        links.hold(interface).expect("it attaches");
        links
    })
}

/// An outer packet around an inner frame, as a test wants it; [`Outer::frame`] writes it byte by byte.
#[derive(Clone, Debug)]
pub struct Outer {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub tos: u8,
    pub fragment: u16,
    pub source_port: u16,
    pub port: u16,
    /// Added to the right length.
    pub udp_length_error: i32,
    /// `None`: zero.
    pub udp_checksum: Option<UdpChecksum>,
    pub flags: [u8; 4],
    pub vni: u32,
    pub last: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    Right,
    Wrong,
}

/// From [`PEER`] to [`LOCAL`] in segment 42.
pub fn arriving() -> Outer {
    Outer {
        source: PEER,
        destination: LOCAL,
        tos: 0,
        fragment: 0x4000,
        source_port: 50_000,
        port: 4789,
        udp_length_error: 0,
        udp_checksum: None,
        flags: [8, 0, 0, 0],
        vni: 42,
        last: 0,
    }
}

/// From [`LOCAL`] to [`PEER`] in segment 42, of the flow with this hash.
pub fn leaving(hash: u32, tos: u8) -> Outer {
    Outer { source: LOCAL, destination: PEER, tos, source_port: weft_wire::vxlan::source_port(hash), ..arriving() }
}

impl Outer {
    /// The IPv4 packet.
    pub fn packet(&self, inner: &[u8]) -> Vec<u8> {
        let vni = self.vni.to_be_bytes();
        let header = [&self.flags[..], &vni[1..], &[self.last]].concat();
        let length = i32::try_from(8 + 8 + inner.len()).expect("a small frame");
        let length = u16::try_from(length + self.udp_length_error).expect("a small error");
        let mut udp = [self.source_port, self.port, length, 0].map(u16::to_be_bytes).concat();
        udp.extend([&header[..], inner].concat());
        if let Some(kind) = self.udp_checksum {
            let pseudo =
                [&self.source.octets()[..], &self.destination.octets(), &[0, 17], &length.to_be_bytes()].concat();
            let wrong = u16::from(kind == UdpChecksum::Wrong);
            let sum = sum_of(&[&pseudo[..], &udp].concat()).wrapping_add(wrong);
            udp[6..8].copy_from_slice(&sum.to_be_bytes());
        }
        let packet = super::Ipv4 {
            tos: self.tos,
            id: 0,
            fragment: self.fragment,
            ttl: 64,
            protocol: 17,
            source: self.source,
            destination: self.destination,
            options: Vec::new(),
            payload: udp,
        };
        packet.bytes()
    }

    /// The packet in an Ethernet frame without addresses, as programs leave it and take it.
    pub fn frame(&self, inner: &[u8]) -> Vec<u8> {
        super::ethernet([0; 6], [0; 6], 0x0800, &self.packet(inner))
    }
}

/// RFC 1071.
fn sum_of(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
