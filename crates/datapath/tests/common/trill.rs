//! An RBridge with a static table, frames for it written byte by byte, and what became of them.

use std::net::Ipv4Addr;

use weft_datapath::frame::{FrameOutput, Verdict};
use weft_datapath::trill::{
    Elision, Fib, Hop, HostRoute, OwnTrees, Place, PortConfig, PortKind, RBridgeConfig, RBridgeDatapath, Station, Tap,
    Tree,
};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanSet;

use super::{Ipv4, available, ethernet};

/// Our nickname, and those of the other RBridges.
pub const OWN: u16 = 0x0011;
/// Other nicknames of ours, where there are any.
pub const OTHERS: [u16; 2] = [0x0012, 0x0700];
pub const NEAR: u16 = 0x0022;
pub const FAR: u16 = 0x0033;
pub const WIDE: u16 = 0x0044;
pub const UNKNOWN: u16 = 0x0055;

pub const LINK_A: u8 = 1;
pub const LINK_B: u8 = 2;
/// Access ports of VLAN 10, one of 20, and one with tags of 10, 20 and 30 whose untagged frames are in 30.
pub const ACCESS_10: u8 = 3;
pub const OTHER_10: u8 = 4;
pub const ACCESS_20: u8 = 5;
pub const TRUNK: u8 = 6;

pub const DESIGNATED_VLAN: u16 = 7;
pub const SEED: u32 = 0x5eed_cafe;
pub const HOP_COUNT: u8 = 20;
pub const TREE_HOP_COUNT: u8 = 9;

pub const ALL_RBRIDGES: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x40];
pub const ALL_EGRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x42];

/// Stations: behind our access port, behind other RBridges, nowhere; and the gateway.
pub const NEAR_STATION: [u8; 6] = [0x02, 0, 0, 0, 0x10, 0x01];
pub const SECOND_STATION: [u8; 6] = [0x02, 0, 0, 0, 0x10, 0x02];
pub const FAR_STATION: [u8; 6] = [0x02, 0, 0, 0, 0x20, 0x01];
pub const LOST_STATION: [u8; 6] = [0x02, 0, 0, 0, 0x20, 0x02];
pub const NOBODY: [u8; 6] = [0x02, 0, 0, 0, 0x30, 0x01];
pub const GATEWAY: [u8; 6] = [0x02, 0, 0, 0, 0x40, 0x01];
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// IP multicast groups, two that are pruned and two that never are.
pub const GROUP_4: [u8; 6] = [0x01, 0x00, 0x5e, 0x01, 0x02, 0x03];
pub const GROUP_6: [u8; 6] = [0x33, 0x33, 0x00, 0x01, 0x00, 0x03];
pub const ALL_SYSTEMS: [u8; 6] = [0x01, 0x00, 0x5e, 0x00, 0x00, 0x01];
pub const SOLICITED: [u8; 6] = [0x33, 0x33, 0xff, 0x00, 0x00, 0x03];

pub const GATEWAY_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 10, 1);
pub const FAR_HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 20, 2);
pub const NEAR_HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 20, 3);

pub fn port_mac(number: u8) -> [u8; 6] {
    [0x02, 0xaa, 0, 0, 0, number]
}

pub fn neighbor_mac(number: u8) -> [u8; 6] {
    [0x02, 0xbb, 0, 0, 0, number]
}

pub fn port(number: u8, kind: PortKind) -> PortConfig {
    let mtu = if matches!(kind, PortKind::Link { .. }) { 1600 } else { 1500 };
    PortConfig { interface: "lo".to_owned(), mac: MacAddress(port_mac(number)), mtu, kind }
}

pub fn hop(port: u8, mac: [u8; 6]) -> Hop {
    Hop { port, mac: MacAddress(mac) }
}

/// The link of a port, to its neighbour.
pub fn link(number: u8, elision: Elision) -> PortKind {
    let neighbor = Some(MacAddress(neighbor_mac(number)));
    PortKind::Link { designated_vlan: DESIGNATED_VLAN, neighbor, elision }
}

/// `WIDE` has four next hops, `NEAR` one and `FAR` two. The tree of `NEAR` leads to VLAN 10 by both links, to 20 and 30 by
/// the first alone.
pub fn edit(fib: &mut Fib) {
    for number in [LINK_A, LINK_B] {
        fib.ports.get_mut(&number).unwrap().kind = link(number, Elision::Off);
    }
    fib.nickname = Some(OWN);
    (fib.hop_count, fib.hash_seed) = (HOP_COUNT, SEED);
    let to_a = hop(LINK_A, neighbor_mac(LINK_A));
    let to_b = hop(LINK_B, neighbor_mac(LINK_B));
    let wide = (0..4).map(|n| hop(1 + n % 2, [0x02, 0xcc, 0, 0, 0, n])).collect();
    fib.routes = [(NEAR, vec![to_a]), (FAR, vec![to_a, to_b]), (WIDE, wide)].into();
    let tree = Tree {
        hop_count: TREE_HOP_COUNT,
        branches: [(LINK_A, VlanSet::of_ranges(&[(10, 30)])), (LINK_B, VlanSet::of_ranges(&[(10, 10)]))].into(),
        rpf: [(NEAR, LINK_A), (FAR, LINK_A), (WIDE, LINK_B)].into(),
        ..Tree::default()
    };
    fib.trees =
        [(NEAR, tree), (WIDE, Tree { hop_count: 1, branches: [(LINK_B, VlanSet::all())].into(), ..Tree::default() })]
            .into();
    fib.own_trees = OwnTrees::of([NEAR]);
}

pub fn station(mac: [u8; 6], vlan: u16, place: Place) -> Station {
    Station { mac: MacAddress(mac), vlan, place, confidence: 0xff, seen_s: 0 }
}

pub fn stations() -> [Station; 7] {
    [
        station(NEAR_STATION, 10, Place::Port(ACCESS_10)),
        station(SECOND_STATION, 10, Place::Port(TRUNK)),
        station(FAR_STATION, 10, Place::RBridge(FAR)),
        station(FAR_STATION, 20, Place::RBridge(FAR)),
        station(LOST_STATION, 10, Place::RBridge(UNKNOWN)),
        station(GATEWAY, 10, Place::Gateway),
        station(NEAR_STATION, 20, Place::Port(ACCESS_20)),
    ]
}

pub fn host_routes() -> [(Ipv4Addr, HostRoute); 3] {
    let gateway = MacAddress(GATEWAY);
    [
        (GATEWAY_IP, HostRoute { mac: None, gateway, vlan: 10 }),
        (FAR_HOST, HostRoute { mac: Some(MacAddress(FAR_STATION)), gateway, vlan: 20 }),
        (NEAR_HOST, HostRoute { mac: Some(MacAddress(NEAR_STATION)), gateway, vlan: 20 }),
    ]
}

/// The RBridge of these tests with all its ports on loopback, and its tap.
pub struct RBridge {
    pub datapath: RBridgeDatapath,
    tap: Tap,
}

/// Its ports.
pub fn kinds() -> [(u8, PortKind); 6] {
    [
        (LINK_A, PortKind::link(DESIGNATED_VLAN)),
        (LINK_B, PortKind::link(DESIGNATED_VLAN)),
        (ACCESS_10, PortKind::access(10)),
        (OTHER_10, PortKind::access(10)),
        (ACCESS_20, PortKind::access(20)),
        (TRUNK, PortKind::Native { untagged: Some(30), tagged: [10, 20].into_iter().collect() }),
    ]
}

pub fn rbridge() -> Option<RBridge> {
    rbridge_with(&RBridgeConfig::default())
}

pub fn rbridge_with(config: &RBridgeConfig) -> Option<RBridge> {
    let mut datapath = available(RBridgeDatapath::load(config))?;
    for (number, kind) in kinds() {
        datapath.set_port(number, &port(number, kind)).unwrap();
    }
    datapath.change(edit).unwrap();
    for station in stations() {
        datapath.maps().set_station(&station).unwrap();
    }
    for (host, route) in host_routes() {
        datapath.maps().set_host_route(host, &route).unwrap();
    }
    datapath.maps().tick(100).unwrap();
    let tap = datapath.tap(1).unwrap();
    Some(RBridge { datapath, tap })
}

impl RBridge {
    /// What became of a frame that came by a port.
    pub fn run(&mut self, port: u8, frame: &[u8]) -> (&'static str, FrameOutput) {
        let output = self.datapath.run(port, frame).unwrap();
        let [tapped] = &self.tap.take().unwrap()[..] else { panic!("one record for one frame") };
        assert_eq!(tapped.port, port);
        assert_eq!(tapped.length as usize, output.bytes.len());
        let kept = tapped.bytes.len();
        assert_eq!(tapped.bytes, output.bytes[..kept]);
        (tapped.outcome, output)
    }

    /// Dropped, for this reason.
    #[track_caller]
    pub fn drops(&mut self, port: u8, frame: &[u8], why: &str) {
        let (outcome, output) = self.run(port, frame);
        assert_eq!((outcome, output.verdict), (why, Verdict::Drop));
    }

    /// Handed to the stack as it came, for this reason.
    #[track_caller]
    pub fn passes(&mut self, port: u8, frame: &[u8], why: &str) {
        let (outcome, output) = self.run(port, frame);
        assert_eq!((outcome, output.verdict), (why, Verdict::Next));
        super::assert_frame(&output.bytes, frame);
    }

    /// Sent, as these bytes.
    #[track_caller]
    pub fn sends(&mut self, port: u8, frame: &[u8], how: &str, expected: &[u8]) {
        let (outcome, output) = self.run(port, frame);
        assert_eq!((outcome, output.verdict), (how, Verdict::Redirect));
        super::assert_frame(&output.bytes, expected);
    }

    pub fn count(&self, port: u8, name: &str) -> u64 {
        let ports = self.datapath.maps().counters().unwrap();
        let port = ports.into_iter().find(|counters| counters.port == port).unwrap();
        port.counts.iter().find(|(other, _)| *other == name).unwrap().1
    }

    pub fn place_of(&self, mac: [u8; 6], vlan: u16) -> Option<Place> {
        let stations = self.datapath.maps().stations().unwrap();
        stations.into_iter().find(|station| station.mac.0 == mac && station.vlan == vlan).map(|station| station.place)
    }
}

/// A TRILL frame to be.
#[derive(Clone, Debug)]
pub struct Frame {
    pub destination: [u8; 6],
    pub source: [u8; 6],
    /// Version 2 bits, A, C, M, RESV 4 bits, F, hop count 6 bits.
    pub flags: u16,
    pub egress: u16,
    pub ingress: u16,
    pub flags_word: Option<u32>,
    pub inner_destination: [u8; 6],
    pub inner_source: [u8; 6],
    pub label: u16,
    pub control: u16,
    pub kind: u16,
    pub payload: Vec<u8>,
}

pub const MULTI: u16 = 0x0800;
pub const FLAGS: u16 = 0x0040;

/// A unicast frame from the neighbour behind `port`, from `FAR_STATION` to `NEAR_STATION` in VLAN 10.
pub fn unicast(port: u8, ingress: u16, egress: u16) -> Frame {
    Frame {
        destination: port_mac(port),
        source: neighbor_mac(port),
        flags: 5,
        egress,
        ingress,
        flags_word: None,
        inner_destination: NEAR_STATION,
        inner_source: FAR_STATION,
        label: 0x8100,
        control: 10,
        kind: 0x0800,
        payload: Ipv4::default().bytes(),
    }
}

/// A broadcast on the tree of `root`.
pub fn multicast(port: u8, ingress: u16, root: u16) -> Frame {
    Frame { destination: ALL_RBRIDGES, flags: MULTI | 5, inner_destination: BROADCAST, ..unicast(port, ingress, root) }
}

impl Frame {
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// As it is handed on to be copied, for ports whose set has no devmap yet, by where it came in.
    pub fn marked(self, port: u8) -> Self {
        let is_native = [ACCESS_10, OTHER_10, ACCESS_20, TRUNK].contains(&port);
        self.with(|frame| frame.source = [1 | u8::from(is_native) << 2, port, 255, 0, 0, 0])
    }

    pub fn bytes(&self) -> Vec<u8> {
        let flags = self.flags | if self.flags_word.is_some() { FLAGS } else { 0 };
        let mut header = [flags, self.egress, self.ingress].map(u16::to_be_bytes).concat();
        header.extend(self.flags_word.iter().flat_map(|word| word.to_be_bytes()));
        ethernet(self.destination, self.source, 0x22f3, &[header, self.inner()].concat())
    }

    /// The frame without its outer header, whatever it should keep; a flags word is left out.
    pub fn elided(&self) -> Vec<u8> {
        let head = [0x88b5, self.flags, self.egress, self.ingress, self.control, self.kind].map(u16::to_be_bytes);
        [&self.inner_destination[..], &self.inner_source, &head.concat(), &self.payload].concat()
    }

    /// What is inside, with its tag.
    pub fn inner(&self) -> Vec<u8> {
        let tag = [self.label, self.control, self.kind].map(u16::to_be_bytes).concat();
        [&self.inner_destination[..], &self.inner_source, &tag, &self.payload].concat()
    }

    /// What is inside, without its tag.
    pub fn untagged(&self) -> Vec<u8> {
        ethernet(self.inner_destination, self.inner_source, self.kind, &self.payload)
    }
}

/// A message of IGMP in its packet.
pub fn igmp(kind: u8, group: [u8; 4]) -> Vec<u8> {
    let payload = [&[kind, 0, 0, 0][..], &group].concat();
    Ipv4 { destination: group.into(), protocol: 2, ttl: 1, options: vec![0x94, 4, 0, 0], payload, ..Ipv4::default() }
        .bytes()
}

/// A message of MLD in its packet, behind its router alert.
pub fn mld(kind: u8) -> Vec<u8> {
    let header = [&[0x60, 0, 0, 0, 0, 32, 0, 1][..], &[0xfe; 32]].concat();
    [&header[..], &[58, 0, 5, 2, 0, 0, 1, 0], &[kind; 1], &[0; 23]].concat()
}

/// A native frame with a tag.
pub fn tagged(destination: [u8; 6], source: [u8; 6], control: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let tag = [&control.to_be_bytes()[..], &kind.to_be_bytes()].concat();
    ethernet(destination, source, 0x8100, &[&tag[..], payload].concat())
}
