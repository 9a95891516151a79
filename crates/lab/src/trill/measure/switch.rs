//! A switch of each kind that is compared: our RBridge in the driver or in the stack, a plain switch at the XDP hook, the
//! kernel's bridge.

use weft_datapath::DatapathError;
use weft_datapath::bed::BedPrograms;
use weft_datapath::offload::{self, Offload};
use weft_datapath::trill::abi::STATIC;
use weft_datapath::trill::{
    Elision, Hop, HostRoute, Place, PortConfig, PortKind, RBridgeConfig, RBridgeDatapath, RBridgeMaps, Station, XdpMode,
};
use weft_scenario::workload::trill::{Network, Way};
use weft_wire::ethernet::MacAddress;

use crate::batch::{self, Program};
use crate::tester::TesterError;
use crate::tester::bed::BED_MTU;
use crate::tester::stream::Stream;

/// VLAN of the sending stations, and of the receiving ones unless the way is between VLANs.
const VLAN: u16 = 10;
/// VLAN of the receiving stations on ways between VLANs.
const OTHER_VLAN: u16 = 20;
/// Number of the port at the test centre; those at switches have the numbers of these.
const TESTER_PORT: u8 = 10;
/// What TRILL adds: the native port's MTU is so much below the links'.
const TRILL_BYTES: u32 = 32;
/// Nickname of the first RBridge beyond the middle switch, where work is spread by nicknames.
const FIRST_BEYOND: u16 = 0x1000;
/// Where hashes of next hops begin; every RBridge has another seed.
const HASH_SEED: u32 = 0x9e37_79b9;

/// The gateway of stations on ways between VLANs.
pub(super) const GATEWAY: MacAddress = MacAddress([0x02, 0x57, 0x54, 0xff, 0, 1]);

/// Interface towards the test centre.
pub(super) const TESTER_INTERFACE: &str = "p0";

/// Interface towards another switch.
pub(super) fn interface_to(switch: u8) -> String {
    format!("p{switch}")
}

/// The switch that the spanning tree keeps between S1 and S2.
pub(super) const ON_TREE: u8 = 3;

/// Neighbours of a switch; switches count from 1.
pub(super) fn neighbours(network: Network, switch: u8) -> Vec<u8> {
    match switch {
        1 | 2 => middles(network).collect(),
        _ => vec![1, 2],
    }
}

/// The switches between S1 and S2.
pub(super) fn middles(network: Network) -> impl Iterator<Item = u8> {
    ON_TREE..ON_TREE + network.paths() as u8
}

/// What runs as long as the switch is there.
#[allow(dead_code)] // Held for their links.
pub(super) enum Running {
    RBridge(Box<RBridgeDatapath>),
    Plain(BedPrograms),
    Bridge,
}

/// How the work of middle switches is spread over CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    /// Receiving stations are behind so many RBridges, in turn, all of them beyond the middle switch; 0: behind S2.
    pub(super) nicknames: u16,
    /// So many CPUs, from the first; 0: each frame is worked on where it comes in.
    pub(super) cpus: u32,
}

/// A switch to be.
#[derive(Clone, Copy)]
pub(super) struct Switch<'a> {
    pub(super) number: u8,
    pub(super) network: Network,
    pub(super) way: Way,
    pub(super) spread: Spread,
    /// Who sends at S1, and to whom at S2.
    pub(super) streams: &'a [Stream],
}

impl Switch<'_> {
    /// In the switch's namespace.
    pub(super) fn set_up(&self, namespace: &str) -> Result<Running, TesterError> {
        if matches!(self.way, Way::Stp | Way::TrillGeneric) && self.number == 1 {
            // Or the interface does not poll, and live frames are not for it.
            offload::set(TESTER_INTERFACE, Offload::Gro, true)?;
        }
        match self.way {
            Way::Trill | Way::TrillElided | Way::TrillRouted => {
                Ok(Running::RBridge(Box::new(self.rbridge(XdpMode::Native)?)))
            }
            Way::TrillGeneric => Ok(Running::RBridge(Box::new(self.rbridge(XdpMode::Generic)?))),
            Way::Layer2 => Ok(Running::Plain(self.plain()?)),
            Way::Stp => self.bridge(namespace).map(|()| Running::Bridge),
            Way::TrillRouter => {
                let why = "the way `trill-router` needs a campus with daemons; take the experiment `crossing`";
                Err(TesterError::Refused(why.to_owned()))
            }
        }
    }

    fn is_edge(&self) -> bool {
        self.number <= 2
    }

    /// VLAN of the stations behind an edge switch.
    fn vlan_at(&self, edge: u8) -> u16 {
        if edge == 2 && self.way.is_between_vlans() { OTHER_VLAN } else { VLAN }
    }

    fn rbridge(&self, mode: XdpMode) -> Result<RBridgeDatapath, DatapathError> {
        let hash_seed = HASH_SEED.wrapping_mul(u32::from(self.number));
        let spread = if self.is_edge() { Vec::new() } else { (0..self.spread.cpus).collect() };
        let config = RBridgeConfig { hash_seed, mode, spread, ..RBridgeConfig::default() };
        let mut rbridge = RBridgeDatapath::load(&config)?;
        for neighbour in neighbours(self.network, self.number) {
            let kind = PortKind::Link {
                designated_vlan: 1,
                neighbor: Some(port_mac(neighbour, self.number)),
                elision: if self.way == Way::TrillElided { Elision::Agreed } else { Elision::Off },
            };
            let (interface, mac) = (interface_to(neighbour), port_mac(self.number, neighbour));
            rbridge.add_port(neighbour, &PortConfig { interface, mac, mtu: BED_MTU, kind })?;
        }
        if self.is_edge() {
            let kind = PortKind::access(self.vlan_at(self.number));
            let (interface, mac) = (TESTER_INTERFACE.to_owned(), port_mac(self.number, TESTER_PORT));
            rbridge.add_port(TESTER_PORT, &PortConfig { interface, mac, mtu: BED_MTU - TRILL_BYTES, kind })?;
        }
        rbridge.change(|fib| {
            fib.nickname = Some(nickname(self.number));
            fib.routes = self.routes();
        })?;
        self.tell_stations(&rbridge)?;
        rbridge.maps().tick(1)?;
        Ok(rbridge)
    }

    /// All shortest paths.
    fn routes(&self) -> std::collections::BTreeMap<u16, Vec<Hop>> {
        let switches = 2 + self.network.paths() as u8;
        let hop = |neighbour: u8| Hop { port: neighbour, mac: port_mac(neighbour, self.number) };
        let towards = |to: u8| match neighbours(self.network, self.number) {
            direct if direct.contains(&to) => vec![hop(to)],
            others => others.into_iter().map(hop).collect(),
        };
        let beyond = (0..self.spread.nicknames).map(|place| (FIRST_BEYOND + place, towards(2)));
        (1..=switches).filter(|to| *to != self.number).map(|to| (nickname(to), towards(to))).chain(beyond).collect()
    }

    fn tell_stations(&self, rbridge: &RBridgeDatapath) -> Result<(), DatapathError> {
        let maps = rbridge.maps();
        let tell = |mac, vlan, place| maps.set_station(&Station { mac, vlan, place, confidence: STATIC, seen_s: 0 });
        let behind = |switch: u8, port: u8| match switch == self.number {
            true => Place::Port(port),
            false => Place::RBridge(nickname(switch)),
        };
        for (place, stream) in self.streams.iter().enumerate() {
            let beyond = place.checked_rem(self.spread.nicknames.into());
            let receiver =
                beyond.map_or_else(|| behind(2, TESTER_PORT), |beyond| Place::RBridge(FIRST_BEYOND + beyond as u16));
            tell(stream.source.mac, self.vlan_at(1), behind(1, TESTER_PORT))?;
            tell(stream.destination.mac, self.vlan_at(2), receiver)?;
        }
        if self.way == Way::TrillRouted && self.number == 1 {
            tell(GATEWAY, VLAN, Place::Gateway)?;
            route_hosts(maps, self.streams, GATEWAY)?;
        }
        Ok(())
    }

    /// Interfaces along the spanning tree, each with the stations behind it; empty for a switch that is not on it.
    fn on_tree(&self) -> Vec<(String, Vec<[u8; 6]>)> {
        let side = |sending: bool| {
            let station = |stream: &Stream| if sending { stream.source.mac.0 } else { stream.destination.mac.0 };
            self.streams.iter().map(station).collect::<Vec<_>>()
        };
        let tester = TESTER_INTERFACE.to_owned();
        match self.number {
            1 => vec![(tester, side(true)), (interface_to(ON_TREE), side(false))],
            2 => vec![(interface_to(ON_TREE), side(true)), (tester, side(false))],
            ON_TREE => vec![(interface_to(1), side(true)), (interface_to(2), side(false))],
            _ => Vec::new(),
        }
    }

    fn plain(&self) -> Result<BedPrograms, DatapathError> {
        let mut programs = BedPrograms::load()?;
        for (interface, stations) in self.on_tree() {
            let port = programs.add_xdp_port(&interface)?;
            stations.into_iter().try_for_each(|mac| programs.set_mac(mac, port))?;
        }
        Ok(programs)
    }

    /// Along the tree that 802.1D would find; stations are told.
    fn bridge(&self, namespace: &str) -> Result<(), TesterError> {
        let tree = self.on_tree();
        let mut lines = vec!["link add dev br0 type bridge mcast_snooping 0".to_owned()];
        lines.extend(tree.iter().map(|(port, _)| format!("link set dev {port} master br0")));
        lines.push("link set dev br0 up".to_owned());
        batch::run(Program::Ip, namespace, &lines)?;
        let known = tree.iter().flat_map(|(port, macs)| macs.iter().map(move |mac| (port, MacAddress(*mac))));
        let lines: Vec<String> =
            known.map(|(port, mac)| format!("fdb replace {mac} dev {port} master static")).collect();
        batch::run(Program::Bridge, namespace, &lines)?;
        Ok(())
    }
}

/// Tells an RBridge that is a gateway where the receiving stations are.
pub(super) fn route_hosts(maps: &RBridgeMaps, streams: &[Stream], gateway: MacAddress) -> Result<(), DatapathError> {
    streams.iter().map(|stream| stream.destination).try_for_each(|host| {
        maps.set_host_route(host.ip, &HostRoute { mac: Some(host.mac), gateway, vlan: OTHER_VLAN })
    })
}

/// Tells it behind which RBridge they are, in their own VLAN.
pub(super) fn place_hosts(maps: &RBridgeMaps, streams: &[Stream], egress: u16) -> Result<(), DatapathError> {
    streams.iter().map(|stream| stream.destination.mac).try_for_each(|mac| {
        let place = Place::RBridge(egress);
        maps.set_station(&Station { mac, vlan: OTHER_VLAN, place, confidence: STATIC, seen_s: 0 })
    })
}

fn nickname(switch: u8) -> u16 {
    0x0100 + u16::from(switch)
}

/// Of a switch's port towards a neighbour, or towards the test centre.
fn port_mac(switch: u8, towards: u8) -> MacAddress {
    MacAddress([0x02, 0x51, 0, 0, switch, towards])
}
