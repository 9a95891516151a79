//! One RBridge's port on a shared link, rule by rule: what Hellos do to it, and what its own say.

mod adjacency;
mod forwarder;
mod restart;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use weft_control::isis::{
    AdjacencyState, Bounds, Config, DropReason, Event, Former, Input, LinkKind, Output, PortConfig, PortState, RBridge,
    SharedConfig, SharedLink, Timing,
};
use weft_control::{Machine, NS_PER_S};
use weft_wire::bpdu::BridgeId;
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::{Appointment, NeighborRecord, Neighbors, PortSub, Restart, VlanBitmap, VlanFlags};
use weft_wire::isis::lsp::CapabilitySub;
use weft_wire::isis::pdu::{LanHello, Mtu};
use weft_wire::isis::{NodeId, Pdu, SystemId, Tlv};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;
use weft_wire::vlan::VlanSet;

use crate::peer::{self, ME, lsp, my_mac, system};
use crate::victim::{PORT, Victim};

/// Ours, in seconds: three Hellos of ten.
const HOLD_S: u64 = 30;

/// The sender is the forwarder of the VLAN.
const CLAIMS: VlanFlags = VlanFlags { forwarder: true, ..NO_FLAGS };

const NO_FLAGS: VlanFlags = VlanFlags {
    port_id: 0,
    nickname: 0,
    forwarder: false,
    access: false,
    vlan_mapping: false,
    bypass_pseudonode: false,
    outer_vlan: 0,
    trunk: false,
    designated_vlan: 0,
};

/// The longest frame payload of a Hello (RFC 6325 section 4.4.2: 1470 bytes with both addresses).
const HELLO_LEN_MAX: usize = 1470 - 12;

/// A neighbour's next Hello.
#[derive(Clone)]
struct Says {
    number: u16,
    mac: MacAddress,
    priority: u8,
    /// VLAN in which it comes, and that which it names.
    vlan: u16,
    named_vlan: u16,
    designated_vlan: u16,
    hold_s: u16,
    nickname: u16,
    /// How it calls the link; `None`: by a name of its own.
    lan_id: Option<NodeId>,
    flags: VlanFlags,
    hears: Option<Neighbors>,
    appoints: Option<Vec<Appointment>>,
    restart: Option<Restart>,
}

fn from(number: u16) -> Says {
    let [high, low] = number.to_be_bytes();
    Says {
        number,
        mac: MacAddress([2, 0, 0, 0, high, low]),
        priority: 1,
        vlan: 1,
        named_vlan: 1,
        designated_vlan: 1,
        hold_s: 30,
        nickname: 0x100 + number,
        lan_id: None,
        flags: NO_FLAGS,
        hears: None,
        appoints: None,
        restart: None,
    }
}

fn list(from_smallest: bool, to_largest: bool, addresses: &[MacAddress]) -> Neighbors {
    let record =
        |address: &MacAddress| NeighborRecord { mtu_failed: false, overload_service: false, mtu: 0, address: *address };
    Neighbors { from_smallest, to_largest, records: addresses.iter().map(record).collect() }
}

impl Says {
    fn hearing_us(self) -> Self {
        Self { hears: Some(list(true, true, &[my_mac(PORT)])), ..self }
    }

    fn system(&self) -> SystemId {
        let [high, low] = self.number.to_be_bytes();
        SystemId([0x0a, 0, 0, 1, high, low])
    }

    fn pdu(&self) -> Vec<u8> {
        let [a, b, c, d, e, f] = self.system().0;
        let flags = VlanFlags {
            port_id: 7,
            nickname: self.nickname,
            outer_vlan: self.named_vlan,
            designated_vlan: self.designated_vlan,
            ..self.flags
        };
        let mut subs = vec![PortSub::VlanFlags(flags)];
        subs.extend(VlanBitmap::of_set(&VlanSet::of_ranges(&[(1, 600)])).into_iter().map(PortSub::EnabledVlans));
        subs.extend(self.appoints.clone().map(PortSub::AppointedForwarders));
        let mut tlvs = vec![Tlv::Areas(vec![vec![0]]), Tlv::PortCapability { topology: 0, subs }];
        tlvs.extend(self.hears.clone().map(Tlv::TrillNeighbors));
        tlvs.extend(self.restart.map(Tlv::Restart));
        let (source, holding_time_s, priority) = (self.system(), self.hold_s, self.priority);
        let lan_id = self.lan_id.unwrap_or(NodeId([a, b, c, d, e, f, 1]));
        Pdu::LanHello(LanHello { circuit_type: 1, source, holding_time_s, priority, lan_id, tlvs }).emit().unwrap()
    }
}

/// Of priority 50, with VLANs 1 to 600; the only one on its link, and no longer inhibited as DRB.
fn alone() -> Victim {
    let mut victim = begun(VlanSet::of_ranges(&[(1, 600)]));
    victim.run(HOLD_S * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 600)]);
    victim
}

fn begun(vlans: VlanSet) -> Victim {
    up(RBridge::new(config(vlans, false), Pcg64::seed_from_u64(3)))
}

fn up(bridge: RBridge) -> Victim {
    let mut victim = Victim { bridge, now_ns: 0, outputs: Vec::new() };
    victim.put(Input::PortUp(PORT));
    victim
}

fn begun_as(vlans: VlanSet, mtu_test: bool) -> Victim {
    up(RBridge::new(config(vlans, mtu_test), Pcg64::seed_from_u64(3)))
}

fn config(vlans: VlanSet, mtu_test: bool) -> Config {
    let shared = SharedConfig { priority: 50, announcing: VlanSet::of_ranges(&[(1, 3)]), ..SharedConfig::of(vlans) };
    let port = PortConfig {
        id: PORT,
        mac: my_mac(PORT),
        cost: 10,
        link: LinkKind::Shared(shared),
        designated_vlan: 1,
        mtu_test,
        offers_elision: false,
    };
    Config { ports: vec![port], timing: Timing::default(), ..Victim::config() }
}

fn hear(victim: &mut Victim, says: &Says) {
    let (source, vlan, bytes) = (says.mac, says.vlan, says.pdu());
    victim.put(Input::Pdu { port: PORT, vlan, destination: ALL_IS_IS_RBRIDGES, source, bytes: &bytes });
}

/// A BPDU of bridges with this root.
fn root(victim: &mut Victim, priority: u8, bridge: u8) {
    let root = BridgeId([priority, 0, 2, 0, 0, 0, 0, bridge]);
    victim.put(Input::RootBridge { port: PORT, root, acknowledges_change: false });
}

fn link(victim: &Victim) -> SharedLink<'_> {
    victim.bridge.shared_link(PORT).expect("a shared port")
}

fn subs(pdu: &[u8]) -> Vec<PortSub> {
    let Ok(Pdu::LanHello(hello)) = Pdu::parse(pdu) else { panic!("a Hello") };
    let tlvs = hello.tlvs.into_iter();
    tlvs.flat_map(|tlv| if let Tlv::PortCapability { subs, .. } = tlv { subs } else { vec![] }).collect()
}

/// VLANs of our LSP: first, last, how often they were lost.
fn interests(victim: &Victim) -> Vec<(u16, u16, u32)> {
    let own = victim.bridge.lsdb().iter().filter(|(id, _)| id.node() == system(ME).node());
    let tlvs = own.flat_map(|(_, lsp)| match Pdu::parse(lsp.bytes()) {
        Ok(Pdu::Lsp(lsp)) => lsp.tlvs,
        _ => panic!("an LSP"),
    });
    let subs = tlvs.flat_map(|tlv| if let Tlv::Capability { subs, .. } = tlv { subs } else { vec![] });
    let mut interests: Vec<_> = subs
        .filter_map(|sub| match sub {
            CapabilitySub::InterestedVlans(vlans) => Some((vlans.start_vlan, vlans.end_vlan, vlans.forwarder_lost)),
            _ => None,
        })
        .collect();
    interests.sort_unstable();
    interests
}

fn flags(pdu: &[u8]) -> VlanFlags {
    let mut subs = subs(pdu).into_iter();
    subs.find_map(|sub| if let PortSub::VlanFlags(flags) = sub { Some(flags) } else { None }).expect("flags")
}

fn appointments(pdu: &[u8]) -> Vec<Appointment> {
    let subs = subs(pdu).into_iter();
    subs.flat_map(|sub| if let PortSub::AppointedForwarders(list) = sub { list } else { vec![] }).collect()
}

fn state_of(victim: &Victim, says: &Says) -> AdjacencyState {
    let mut all = victim.bridge.adjacencies();
    all.find(|(_, with)| with.mac == says.mac).map_or(AdjacencyState::Down, |(_, with)| with.state)
}

/// All PDUs that leave from now on within a time.
fn sent(victim: &mut Victim, time_ns: u64) -> Vec<Pdu> {
    let until_ns = victim.now_ns + time_ns;
    let mut sent = Vec::new();
    while let Some(at_ns) = victim.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
        victim.now_ns = at_ns.max(victim.now_ns);
        victim.put(Input::Deadline);
        let pdu = |output: &Output| if let Output::Send { pdu, .. } = output { Pdu::parse(pdu).ok() } else { None };
        sent.extend(victim.outputs.iter().filter_map(pdu));
    }
    victim.now_ns = until_ns;
    sent
}

/// What a Hello says of restarts.
fn signal(pdu: &Pdu) -> Option<Restart> {
    let Pdu::LanHello(hello) = pdu else { return None };
    hello.tlvs.iter().find_map(|tlv| if let Tlv::Restart(signal) = tlv { Some(*signal) } else { None })
}

/// The Hellos that leave from now on within a time.
fn hellos(victim: &mut Victim, time_ns: u64) -> Vec<(u16, Vec<u8>)> {
    let until_ns = victim.now_ns + time_ns;
    let mut sent = Vec::new();
    while let Some(at_ns) = victim.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
        victim.now_ns = at_ns.max(victim.now_ns);
        victim.put(Input::Deadline);
        sent.extend(victim.outputs.iter().filter_map(|output| match output {
            Output::Send { vlan, pdu, .. } if matches!(Pdu::parse(pdu), Ok(Pdu::LanHello(_))) => {
                Some((*vlan, pdu.to_vec()))
            }
            _ => None,
        }));
    }
    victim.now_ns = until_ns;
    sent
}
