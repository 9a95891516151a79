//! One RBridge's port on a shared link, rule by rule: what Hellos do to it, and what its own say.

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

use super::peer::{self, ME, lsp, my_mac, system};
use super::victim::{PORT, Victim};

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

/// The same after a restart: neighbours 8 and 9 were there, and it carries VLANs 1 to 9.
fn begun_again() -> Victim {
    let neighbors = [8, 9].map(|number| from(number).mac).into();
    let former = Former { port: PORT, neighbors, carried: VlanSet::of_ranges(&[(1, 9)]) };
    let config = config(VlanSet::of_ranges(&[(1, 600)]), false);
    up(RBridge::restarted(config, Pcg64::seed_from_u64(3), [former]))
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

/// Events A1 to A5 of RFC 7177 section 3.3.
#[test]
fn what_hellos_do_to_an_adjacency() {
    use AdjacencyState::{Detect, Down, Report};
    let mut victim = alone();
    let (low, high) = (MacAddress([0; 6]), MacAddress([0xfe; 6]));
    let elsewhere = Says { vlan: 2, named_vlan: 2, ..from(9).hearing_us() };
    let other = list(false, false, &[high]);
    let steps = [
        (elsewhere.clone(), Detect, "A2: not in the Designated VLAN, whatever it lists"),
        (Says { hears: Some(other.clone()), ..from(9) }, Detect, "A2: another range"),
        (from(9).hearing_us(), Report, "A1: it hears us, and no test is enabled"),
        (Says { hears: Some(other), ..from(9) }, Report, "A2 takes nothing back"),
        (from(9), Report, "A2: no list at all"),
        (elsewhere.clone(), Report, "A2: in another VLAN"),
        (Says { hears: Some(list(false, false, &[low, high])), ..from(9) }, Detect, "A3: our range without us"),
        (from(9).hearing_us(), Report, "A1 again"),
        (Says { hears: Some(list(true, true, &[])), ..from(9) }, Detect, "A3: it hears nobody"),
    ];
    for (says, expected, why) in steps {
        hear(&mut victim, &says);
        assert_eq!(state_of(&victim, &says), expected, "{why}");
    }
    hear(&mut victim, &Says { hold_s: 5, ..from(9).hearing_us() });
    hear(&mut victim, &elsewhere);
    victim.run(6 * NS_PER_S);
    assert_eq!(state_of(&victim, &elsewhere), Detect, "A5: only heard elsewhere");
    victim.run(25 * NS_PER_S);
    assert_eq!(state_of(&victim, &elsewhere), Down, "A4");
}

/// RFC 7177 section 4.2.1, RFC 6325 section 4.4.1: the claim counts, not whether it hears us. Its VLAN is the link's then.
#[test]
fn the_highest_claim_is_drb() {
    let mut victim = alone();
    hear(&mut victim, &from(9).hearing_us());
    assert_eq!((link(&victim).state, link(&victim).designated_vlan), (PortState::Drb, 1));
    let higher = Says { priority: 51, designated_vlan: 2, ..from(10) };
    hear(&mut victim, &higher);
    let now = link(&victim);
    assert_eq!((now.state, now.drb, now.designated_vlan), (PortState::NotDrb, higher.system(), 2));
    assert_eq!(now.lan_id.system(), higher.system());
    assert!(now.carried.is_empty(), "what we were as DRB is over");
    assert_eq!(state_of(&victim, &from(9)), AdjacencyState::Detect, "everybody has to be heard in the new VLAN");
    let vlans: Vec<u16> = hellos(&mut victim, NS_PER_S).into_iter().map(|(vlan, _)| vlan).collect();
    assert!(!vlans.is_empty() && vlans.iter().all(|vlan| *vlan == 2), "no forwarder any more: {vlans:?}");
    hear(&mut victim, &Says { hold_s: 0, vlan: 2, ..higher });
    victim.run(31 * NS_PER_S);
    assert_eq!((link(&victim).state, link(&victim).designated_vlan), (PortState::Drb, 1));
    assert!(link(&victim).carried.is_empty(), "a new DRB is inhibited for its holding time");
    victim.run(31 * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 600)]);
    for (vlan, priority) in [(1, 49), (1, 50)] {
        hear(&mut victim, &Says { vlan, priority, ..from(11) });
        let ours = my_mac(PORT) > from(11).mac || priority < 50;
        assert_eq!(link(&victim).state == PortState::Drb, ours, "of equal priority the higher address");
    }
}

/// RFC 7177 section 4.2.3: with another Designated VLAN both holding times become one, the longer of them.
#[test]
fn another_designated_vlan_keeps_the_longer_holding_time() {
    for (designated_s, elsewhere_s) in [(20, 40), (40, 20)] {
        let mut victim = alone();
        let other = Says { hold_s: designated_s, ..from(9).hearing_us() };
        hear(&mut victim, &other);
        hear(&mut victim, &Says { vlan: 2, named_vlan: 2, hold_s: elsewhere_s, ..other.clone() });
        assert_eq!(state_of(&victim, &other), AdjacencyState::Report);
        hear(&mut victim, &Says { priority: 60, designated_vlan: 3, hold_s: 1000, ..from(10) });
        assert_eq!((link(&victim).designated_vlan, state_of(&victim, &other)), (3, AdjacencyState::Detect));
        victim.run(39 * NS_PER_S);
        assert_eq!(state_of(&victim, &other), AdjacencyState::Detect, "of {designated_s} and {elsewhere_s} s");
        victim.run(2 * NS_PER_S);
        assert_eq!(state_of(&victim, &other), AdjacencyState::Down, "of {designated_s} and {elsewhere_s} s");
    }
}

/// RFC 7177 section 7: a DRB bypasses its pseudonode until it has had two neighbours at once, and not again after that.
#[test]
fn a_pseudonode_stays_once_there_were_two_neighbours() {
    let mut victim = alone();
    let is_bypassed = |victim: &mut Victim| {
        let sent = hellos(victim, 11 * NS_PER_S);
        let said: Vec<bool> = sent.iter().map(|(_, pdu)| flags(pdu).bypass_pseudonode).collect();
        assert!(!said.is_empty() && said.iter().all(|bypass| *bypass == link(victim).bypass));
        link(victim).bypass
    };
    hear(&mut victim, &from(9).hearing_us());
    assert!(is_bypassed(&mut victim), "one neighbour");
    victim.run(31 * NS_PER_S);
    hear(&mut victim, &Says { hold_s: 1000, ..from(10).hearing_us() });
    assert!(is_bypassed(&mut victim), "two, but not at once");
    hear(&mut victim, &from(9));
    assert!(is_bypassed(&mut victim), "two, but one does not hear us");
    hear(&mut victim, &from(9).hearing_us());
    assert!(!is_bypassed(&mut victim));
    victim.run(31 * NS_PER_S);
    assert_eq!(victim.bridge.adjacencies().count(), 1);
    assert!(!is_bypassed(&mut victim), "one again");
    victim.put(Input::PortDown(PORT));
    victim.put(Input::PortUp(PORT));
    assert!(!is_bypassed(&mut victim), "only a restart forgets it");
}

/// RFC 7177 sections 3.3 (A0) and 4.3.
#[test]
fn of_two_ports_with_one_address_the_lower_claim_is_suspended() {
    let mut victim = alone();
    let double = Says { mac: my_mac(PORT), ..from(9) };
    hear(&mut victim, &double);
    assert_eq!((link(&victim).state, victim.dropped(DropReason::OwnAddress)), (PortState::Drb, 1));
    hear(&mut victim, &from(10).hearing_us());
    hear(&mut victim, &Says { priority: 51, hold_s: 5, ..double.clone() });
    assert_eq!(link(&victim).state, PortState::Suspended);
    assert_eq!(victim.bridge.adjacencies().count(), 0, "its adjacencies are gone");
    assert!(link(&victim).carried.is_empty());
    hear(&mut victim, &from(10).hearing_us());
    assert_eq!(victim.dropped(DropReason::Suspended), 1);
    hear(&mut victim, &Says { priority: 51, hold_s: 2, ..double.clone() });
    assert_eq!(hellos(&mut victim, 4 * NS_PER_S), [], "it is silent, for the longer of both times");
    victim.run(2 * NS_PER_S);
    assert_eq!(link(&victim).state, PortState::Drb, "nobody has its address any more");
    assert_eq!(victim.bridge.counters().events.get(Event::PortSuspended), 1);
}

/// Not even between two outputs of one input.
#[test]
fn a_port_that_is_suspended_carries_nothing() {
    let mut victim = alone();
    let ours = Appointment { nickname: 0x11, start_vlan: 1, end_vlan: 9 };
    hear(&mut victim, &Says { priority: 60, appoints: Some(vec![ours]), ..from(9).hearing_us() });
    assert_eq!(link(&victim).carried.ranges(), [(1, 9)]);
    hear(&mut victim, &Says { mac: my_mac(PORT), priority: 70, ..from(10) });
    let access = |output: &&Output| matches!(output, Output::Access { .. });
    let said: Vec<&Output> = victim.outputs.iter().filter(access).collect();
    assert_eq!(said, [&Output::Access { port: PORT, vlans: VlanSet::default() }]);
    assert_eq!(link(&victim).state, PortState::Suspended);
    victim.put(Input::PortDown(PORT));
    victim.run(31 * NS_PER_S);
    assert_eq!(link(&victim).state, PortState::Down, "its suspension does not wake it");
    assert!(link(&victim).carried.is_empty());
}

/// RFC 7177 section 3.6: there is an end to it, and who may be DRB stays.
#[test]
fn ten_thousand_stations_do_not_fill_a_shared_port() {
    let mut victim = alone();
    for number in 100..10_100 {
        hear(&mut victim, &Says { priority: 2, ..from(number) });
    }
    assert_eq!(victim.bridge.adjacencies().count(), Bounds::NEIGHBORS_MAX);
    assert!(victim.dropped(DropReason::NeighborsFull) + victim.bridge.counters().events.get(Event::Hello) == 10_000);
    let (weak, strong) = (Says { priority: 1, ..from(50) }, Says { priority: 90, ..from(51) });
    hear(&mut victim, &weak);
    assert_eq!(state_of(&victim, &weak), AdjacencyState::Down);
    assert_eq!(link(&victim).carried.ranges(), [(1, 600)]);
    hear(&mut victim, &Says { flags: CLAIMS, ..weak });
    assert_eq!(link(&victim).carried.ranges(), [(2, 600)], "for whom there is no room may still forward");
    hear(&mut victim, &strong);
    assert_eq!(link(&victim).drb, strong.system());
    assert_eq!(victim.bridge.adjacencies().count(), Bounds::NEIGHBORS_MAX);
}

/// All VLANs, 64 neighbours, most appointments: one Hello holds it (RFC 6325 section 4.4.2), and what it lists is whom it hears.
#[test]
fn the_largest_hello_fits() {
    let mut victim = begun(VlanSet::all());
    for number in 100..164 {
        hear(&mut victim, &Says { hold_s: 1000, ..from(number).hearing_us() });
    }
    let sent = hellos(&mut victim, 31 * NS_PER_S);
    assert!(sent.len() > 5 && !link(&victim).appointments.is_empty());
    for (vlan, pdu) in &sent {
        // Room for a digest, a number, and as many ranges as there may be.
        assert!(pdu.len() + 85 + 24 * 6 <= HELLO_LEN_MAX, "{} bytes", pdu.len());
        let Ok(Pdu::LanHello(hello)) = Pdu::parse(pdu) else { panic!("a Hello") };
        let lists: Vec<&Neighbors> = hello
            .tlvs
            .iter()
            .filter_map(|tlv| if let Tlv::TrillNeighbors(list) = tlv { Some(list) } else { None })
            .collect();
        assert_eq!(lists.is_empty(), *vlan != 1, "neighbours are listed in the Designated VLAN alone");
        let hears = |number: u16| lists.iter().any(|list| list.hears(from(number).mac) == Some(true));
        assert!(lists.is_empty() || ((100..164).all(hears) && !hears(164)));
    }
}

/// RFC 7176 section 2.5: whether what every link must carry has passed, and how much has.
#[test]
fn what_was_tested_is_told() {
    let mut victim = begun_as(VlanSet::of_ranges(&[(1, 3)]), true);
    let says = Says { hold_s: 1000, ..from(9).hearing_us() };
    hear(&mut victim, &says);
    let record = |pdus: &[Pdu]| {
        let hellos = pdus.iter().filter_map(|pdu| if let Pdu::LanHello(hello) = pdu { Some(hello) } else { None });
        let lists = hellos.flat_map(|hello| &hello.tlvs);
        let mut lists =
            lists.filter_map(|tlv| if let Tlv::TrillNeighbors(list) = tlv { list.records.first() } else { None });
        lists.next_back().map(|record| (record.mtu_failed, record.mtu))
    };
    let pdus = sent(&mut victim, 12 * NS_PER_S);
    assert_eq!((record(&pdus), state_of(&victim, &says)), (Some((true, 0)), AdjacencyState::TwoWay));
    let pdus = sent(&mut victim, 2 * NS_PER_S);
    let probe = pdus.iter().rev().find_map(|pdu| if let Pdu::MtuProbe(probe) = pdu { Some(probe) } else { None });
    let ack = Pdu::MtuAck(Mtu { ack_source: says.system(), ..probe.expect("it is tested again").clone() }).emit();
    let destination = my_mac(PORT);
    victim.put(Input::Pdu { port: PORT, vlan: 1, destination, source: says.mac, bytes: &ack.unwrap() });
    assert_eq!(state_of(&victim, &says), AdjacencyState::Report);
    assert_eq!(record(&sent(&mut victim, 31 * NS_PER_S)), Some((false, 1470)));
}

/// RFC 6325 section 4.4.5, RFC 8139 section 2: one forwarder while VLANs are mapped.
#[test]
fn mapped_vlans_have_one_forwarder() {
    let mut victim = alone();
    hear(&mut victim, &Says { hold_s: 1000, ..from(9).hearing_us() });
    assert!(!link(&victim).appointments.is_empty(), "the neighbour gets its share");
    let shared: Vec<(u16, u16)> = link(&victim).carried.ranges();
    assert_ne!(shared, [(1, 600)]);
    hear(&mut victim, &Says { hold_s: 1000, named_vlan: 3, ..from(9).hearing_us() });
    assert_eq!((link(&victim).appointments, link(&victim).carried.ranges()), (&[][..], vec![(1, 600)]));
    victim.run(2 * HOLD_S * NS_PER_S + 1);
    assert_eq!(link(&victim).carried.ranges(), shared, "two holding times later it is shared again");
}

/// RFC 8139 sections 2 and 3: appointed by the DRB's Hellos alone; inhibited while others claim the VLAN, and when the bridges'
/// root has changed.
#[test]
fn appointments_and_inhibitions() {
    let mut victim = alone();
    let drb = Says { priority: 60, hold_s: 1000, ..from(9).hearing_us() };
    let range = |start_vlan, end_vlan| Appointment { nickname: 0x11, start_vlan, end_vlan };
    let appoints = |says: &Says, list: &[Appointment]| Says { appoints: Some(list.to_vec()), ..says.clone() };
    hear(&mut victim, &drb);
    assert!(link(&victim).appointed.is_empty());
    hear(&mut victim, &appoints(&Says { hold_s: 1000, ..from(8).hearing_us() }, &[range(1, 600)]));
    assert!(link(&victim).appointed.is_empty(), "it is not the DRB's to say");
    hear(&mut victim, &appoints(&drb, &[range(0, 2), range(590, 4095), Appointment { nickname: 0x12, ..range(5, 9) }]));
    assert_eq!(link(&victim).carried.ranges(), [(1, 2), (590, 600)], "as far as the VLANs are enabled");
    hear(&mut victim, &drb);
    assert_eq!(link(&victim).carried.ranges(), [(1, 2), (590, 600)], "without appointments all goes on");
    hear(&mut victim, &Says { vlan: 2, named_vlan: 2, hold_s: 5, flags: CLAIMS, ..from(8) });
    hear(&mut victim, &Says { vlan: 2, named_vlan: 2, hold_s: 3, flags: CLAIMS, ..from(8) });
    assert_eq!(link(&victim).carried.ranges(), [(1, 1), (590, 600)], "somebody else claims VLAN 2");
    assert_eq!(link(&victim).appointed.ranges(), [(1, 2), (590, 600)]);
    victim.run(4 * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 1), (590, 600)], "the longer of both times");
    victim.run(2 * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 2), (590, 600)]);
    root(&mut victim, 0x80, 5);
    assert_eq!(victim.outputs, [], "the first root that is heard of is no other");
    root(&mut victim, 0x90, 5);
    assert_eq!(victim.outputs, [], "it has another priority");
    root(&mut victim, 0x80, 6);
    assert_eq!(victim.outputs, [Output::Access { port: PORT, vlans: VlanSet::default() }]);
    victim.run(29 * NS_PER_S);
    root(&mut victim, 0x80, 6);
    assert!(link(&victim).carried.is_empty());
    victim.run(NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 2), (590, 600)]);
    hear(&mut victim, &Says { vlan: 2, named_vlan: 2, flags: CLAIMS, ..drb.clone() });
    assert_eq!(link(&victim).appointed.ranges(), [(1, 2), (590, 600)], "an appointment is taken back by another alone");
    assert_eq!(link(&victim).carried.ranges(), [(1, 1), (590, 600)], "but the DRB claims VLAN 2 itself");
    hear(&mut victim, &appoints(&drb, &[Appointment { nickname: 0x109, ..range(1, 1) }]));
    assert!(link(&victim).appointed.is_empty(), "the DRB appoints itself, and so nobody else");
    hear(&mut victim, &appoints(&drb, &[range(7, 7)]));
    victim.put(Input::PortDown(PORT));
    assert!(victim.outputs.contains(&Output::Access { port: PORT, vlans: VlanSet::default() }));
}

/// RFC 6325 section 4.9.3.3: who is no forwarder any more tells the bridges so, as long as these send BPDUs and none of them acknowledges
/// it. So does who has become one, since a forwarder that died tells nobody.
#[test]
fn bridges_are_told_that_stations_are_elsewhere() {
    let ours = |end_vlan| Appointment { nickname: 0x11, start_vlan: 1, end_vlan };
    let appoints = |list: &[Appointment]| Says {
        priority: 60,
        hold_s: 1000,
        appoints: Some(list.to_vec()),
        ..from(9).hearing_us()
    };
    let told = |victim: &Victim| {
        victim.outputs.iter().filter(|output| matches!(output, Output::TopologyChange { .. })).count()
    };
    let acknowledge = |victim: &mut Victim| {
        let root = BridgeId([0x80, 0, 2, 0, 0, 0, 0, 5]);
        victim.put(Input::RootBridge { port: PORT, root, acknowledges_change: true });
    };
    let mut victim = alone();
    hear(&mut victim, &appoints(&[ours(9)]));
    assert_eq!((link(&victim).carried.ranges(), told(&victim)), (vec![(1, 9)], 0), "nobody there has a spanning tree");
    root(&mut victim, 0x80, 5);
    assert_eq!(told(&victim), 0, "bridges that came later have not learned anything yet");
    // It loses a VLAN.
    hear(&mut victim, &appoints(&[ours(8)]));
    let Some(Output::TopologyChange { port: PORT, frame }) =
        victim.outputs.iter().find(|output| matches!(output, Output::TopologyChange { .. }))
    else {
        panic!("{:?}", victim.outputs)
    };
    let mut wanted = vec![0x01, 0x80, 0xc2, 0, 0, 0];
    wanted.extend(my_mac(PORT).0);
    wanted.extend([0, 7, 0x42, 0x42, 0x03, 0, 0, 0, 0x80]);
    wanted.resize(60, 0);
    assert_eq!(frame[..], wanted);
    root(&mut victim, 0x80, 5);
    assert_eq!(told(&victim), 0, "once in a second");
    for tries in 0..12 {
        victim.run(NS_PER_S);
        root(&mut victim, 0x80, 5);
        assert_eq!(told(&victim), usize::from(tries < 9), "ten times in all, where nobody acknowledges it");
    }
    // It gets it back, and is inhibited and serves again.
    hear(&mut victim, &appoints(&[ours(9)]));
    assert_eq!(told(&victim), 1);
    acknowledge(&mut victim);
    root(&mut victim, 0x80, 6);
    assert_eq!(told(&victim), 0, "bridges know of their own change");
    victim.put(Input::PortDown(PORT));
    assert_eq!(told(&victim), 0, "there is nobody to tell");
}

/// A nickname may be held twice on a link: by RBridges of campuses that have just met, or by an access port, which hears of no LSP.
/// The DRB appoints none but those with which it is adjacent, and means itself by its own nickname. Else two claim one VLAN, and
/// each inhibits the other for ever.
#[test]
fn another_holder_of_our_nickname_may_be_meant() {
    let mut victim = alone();
    let ours = Appointment { nickname: 0x11, start_vlan: 1, end_vlan: 9 };
    let drb = Says { priority: 60, hold_s: 1000, appoints: Some(vec![ours]), ..from(9) };
    let hears_nobody = Says { hears: Some(list(true, true, &[])), ..drb.clone() };
    hear(&mut victim, &Says { nickname: 0x11, ..drb.clone().hearing_us() });
    assert!(link(&victim).appointed.is_empty(), "the DRB appoints itself");
    hear(&mut victim, &hears_nobody);
    assert!(link(&victim).appointed.is_empty(), "it does not know us");
    hear(&mut victim, &drb.clone().hearing_us());
    assert_eq!(link(&victim).carried.ranges(), [(1, 9)]);
    hear(&mut victim, &hears_nobody);
    assert!(link(&victim).appointed.is_empty(), "it knows us no more");
}

/// RFC 8139 section 2.2, case 3: what a DRB appointed us to ends with it, and the next one's first Hello appoints us anew.
#[test]
fn what_a_drb_appoints_ends_with_it() {
    let mut victim = alone();
    let ours = Appointment { nickname: 0x11, start_vlan: 1, end_vlan: 9 };
    let drb = Says { priority: 60, hold_s: 1000, appoints: Some(vec![ours]), ..from(9).hearing_us() };
    hear(&mut victim, &drb);
    assert_eq!(link(&victim).carried.ranges(), [(1, 9)]);
    let next = Says { priority: 61, appoints: None, ..drb.clone() };
    for (why, other) in [("another system", Says { number: 10, ..next.clone() }), ("another port", next)] {
        let other = Says { mac: from(11).mac, ..other };
        hear(&mut victim, &other);
        assert_eq!(link(&victim).drb, other.system());
        assert!(link(&victim).appointed.is_empty(), "{why}");
        hear(&mut victim, &Says { appoints: Some(vec![Appointment { end_vlan: 5, ..ours }]), ..other.clone() });
        assert_eq!(link(&victim).carried.ranges(), [(1, 5)], "{why}");
        hear(&mut victim, &Says { hold_s: 0, ..other });
        assert_eq!(link(&victim).drb, drb.system());
        assert!(link(&victim).appointed.is_empty(), "{why} is gone");
        hear(&mut victim, &drb);
    }
}

/// RFC 8139 appendix C, 6: a new DRB appoints others at once. What it does not give away nobody claims until it may carry it.
#[test]
fn a_new_drb_appoints_before_it_forwards() {
    let mut victim = begun(VlanSet::of_ranges(&[(1, 600)]));
    let (other, higher) = (Says { hold_s: 1000, ..from(9).hearing_us() }, Says { priority: 60, ..from(10) });
    hear(&mut victim, &higher);
    hear(&mut victim, &other);
    hear(&mut victim, &Says { hold_s: 0, ..higher });
    assert_eq!(link(&victim).state, PortState::Drb);
    let first = hellos(&mut victim, NS_PER_S);
    let given: Vec<Appointment> = first.iter().flat_map(|(_, pdu)| appointments(pdu)).collect();
    assert!(!given.is_empty() && given.iter().all(|range| range.nickname == 0x109), "{given:?}");
    assert!(link(&victim).appointed.is_empty());
    let later = hellos(&mut victim, 28 * NS_PER_S);
    assert!(later.iter().chain(&first).all(|(_, pdu)| !flags(pdu).forwarder), "nothing is claimed yet");
    let last = hellos(&mut victim, 2 * NS_PER_S);
    let claimed: Vec<u16> = last.iter().filter(|(_, pdu)| flags(pdu).forwarder).map(|(vlan, _)| *vlan).collect();
    assert_eq!(claimed, link(&victim).carried.iter().filter(|vlan| *vlan <= 3).collect::<Vec<_>>());
    assert!(!link(&victim).carried.is_empty());
}

/// RFC 8706 section 3.2.1 on a shared link: who restarts keeps its adjacency, and if it is DRB that, its link's name and what it
/// appointed, whatever else its Hellos say. It is told so, then one neighbour lists all LSPs and sends them.
#[test]
fn who_restarts_on_a_shared_link_stays_what_it_was() {
    let asks = Some(Restart { flags: Restart::REQUEST, ..Restart::default() });
    let ours = Appointment { nickname: 0x11, start_vlan: 1, end_vlan: 9 };
    let knows = Some(Restart::default());
    let drb = Says { priority: 60, appoints: Some(vec![ours]), restart: knows, ..from(9).hearing_us() };
    let forgets = Says { appoints: Some(vec![]), hears: Some(list(true, true, &[])), restart: asks, ..drb.clone() };
    let mut victim = alone();
    hear(&mut victim, &drb);
    let name = link(&victim).lan_id;
    victim.run(NS_PER_S);
    hear(&mut victim, &Says { priority: 1, ..forgets.clone() });
    assert_eq!(state_of(&victim, &drb), AdjacencyState::Report);
    assert_eq!((link(&victim).drb, link(&victim).lan_id), (drb.system(), name));
    assert_eq!(link(&victim).carried.ranges(), [(1, 9)]);
    let told = sent(&mut victim, NS_PER_S / 10);
    let answer = Restart { flags: Restart::ACKNOWLEDGEMENT, remaining_s: Some(29), neighbor: Some(drb.system()) };
    assert_eq!(told.first().and_then(signal), Some(answer), "at once, and before all else");
    assert!(matches!(told[1], Pdu::Csnp(_)) && matches!(told[2], Pdu::Lsp(_)), "{told:?}");

    // Again, while another neighbour with a higher claim knows the TLV: it is that one's to send all LSPs.
    victim.run(10 * NS_PER_S);
    hear(&mut victim, &Says { priority: 55, restart: knows, hold_s: 1000, ..from(8).hearing_us() });
    victim.run(NS_PER_S);
    hear(&mut victim, &forgets);
    let told = sent(&mut victim, NS_PER_S / 10);
    assert_eq!(told.iter().filter_map(signal).next().and_then(|answer| answer.remaining_s), Some(18), "not anew");
    assert!(!told.iter().any(|pdu| matches!(pdu, Pdu::Csnp(_) | Pdu::Lsp(_))), "{told:?}");
    // It is back, with its claim of before.
    hear(&mut victim, &drb);
    victim.run(29 * NS_PER_S);
    assert_eq!(state_of(&victim, &drb), AdjacencyState::Report);
    hear(&mut victim, &Says { appoints: None, ..drb.clone() });
    // One that neither claims nor hears us, but asks, begins anew, with an answer.
    let other = Says { priority: 2, ..from(7) };
    hear(&mut victim, &Says { restart: asks, ..other.clone() });
    assert_eq!(state_of(&victim, &other), AdjacencyState::Detect);
    let answers: Vec<Restart> = sent(&mut victim, NS_PER_S / 10).iter().filter_map(signal).collect();
    assert_eq!(answers[0].neighbor, Some(other.system()));
}

fn our_link() -> NodeId {
    let [a, b, c, d, e, f] = system(ME).0;
    NodeId([a, b, c, d, e, f, 1])
}

/// RFC 8706 section 3.3 on a shared link: nothing is said before a former neighbour is heard, and then nothing that those who are
/// still to be heard would have to take as news, whether they know the TLV or not.
#[test]
fn a_restart_of_ours_contradicts_nobody() {
    let knows = Some(Restart::default());
    let mut victim = begun_again();
    assert!(sent(&mut victim, 10 * NS_PER_S).is_empty());
    hear(&mut victim, &Says { restart: knows, ..from(7).hearing_us() });
    assert!(sent(&mut victim, NS_PER_S).is_empty(), "a newcomer does not know what we were");
    assert!(!victim.bridge.speaks_on_shared_links());

    let member = Says { lan_id: Some(our_link()), restart: knows, ..from(8).hearing_us() };
    hear(&mut victim, &member);
    assert!(victim.bridge.speaks_on_shared_links());
    let said = sent(&mut victim, NS_PER_S / 10);
    let Some(Pdu::LanHello(hello)) = said.first() else { panic!("a Hello first: {said:?}") };
    let bytes = said[0].emit().unwrap();
    assert_eq!((hello.lan_id, hello.priority), (our_link(), 50));
    assert!(!flags(&bytes).bypass_pseudonode && flags(&bytes).forwarder, "what the neighbour told, what we carry");
    assert!(
        !subs(&bytes).iter().any(|sub| matches!(sub, PortSub::AppointedForwarders(_))),
        "none replaces those of before"
    );
    assert_eq!(signal(&said[0]).map(|signal| signal.flags), Some(Restart::REQUEST));
    let hears = |pdu: &Pdu, number| {
        let Pdu::LanHello(hello) = pdu else { panic!("a Hello") };
        let lists = hello.tlvs.iter();
        lists
            .filter_map(|tlv| if let Tlv::TrillNeighbors(list) = tlv { list.hears(from(number).mac) } else { None })
            .max()
    };
    assert_eq!([7, 8, 9].map(|number| hears(&said[0], number)), [Some(true), Some(true), None]);
    assert_eq!(hears(&said[0], 6), None, "who else is heard is left open");

    let answer = Restart { flags: Restart::ACKNOWLEDGEMENT, remaining_s: Some(29), neighbor: Some(system(ME)) };
    hear(&mut victim, &Says { lan_id: Some(our_link()), restart: Some(answer), ..from(9).hearing_us() });
    let said = sent(&mut victim, NS_PER_S / 10);
    assert_eq!([6, 7, 8, 9].map(|number| hears(&said[0], number)), [Some(false), Some(true), Some(true), Some(true)]);
    let asks = |victim: &mut Victim| {
        let said = sent(victim, 9 * NS_PER_S);
        said.iter().filter_map(signal).next_back().is_some_and(|signal| signal.has(Restart::REQUEST))
    };
    assert!(victim.bridge.is_restarting() && link(&victim).carried.ranges() == [(1, 9)]);
    assert!(asks(&mut victim), "one of two has answered");
}

/// Whose Hello it is, the Hello, what is still carried.
type Doubt = (&'static str, Says, &'static [(u16, u16)]);

/// What we carried before a restart ends at once where a Hello shows that somebody else has it, or that others have given us up.
#[test]
fn what_a_restart_goes_on_with_ends_with_the_first_doubt() {
    let theirs = |end_vlan| Some(vec![Appointment { nickname: 0x11, start_vlan: 1, end_vlan }]);
    let member = Says { lan_id: Some(our_link()), ..from(8).hearing_us() };
    let drb = Says { priority: 60, ..from(9).hearing_us() };
    let cases: [Doubt; 8] = [
        ("a member", member.clone(), &[(1, 9)]),
        ("a forwarder of VLAN 5", Says { flags: CLAIMS, vlan: 5, named_vlan: 5, ..member.clone() }, &[(1, 4), (6, 9)]),
        ("a member that does not hear us", Says { hears: Some(list(true, true, &[])), ..member.clone() }, &[]),
        ("a lower one that is DRB", Says { lan_id: None, appoints: Some(vec![]), ..member }, &[]),
        ("a higher one that is not DRB", Says { lan_id: Some(our_link()), ..drb.clone() }, &[(1, 9)]),
        ("the DRB", Says { appoints: theirs(9), ..drb.clone() }, &[(1, 9)]),
        ("the DRB, with less for us", Says { appoints: theirs(5), ..drb.clone() }, &[(1, 5)]),
        ("the DRB, with more for us", Says { appoints: theirs(20), ..drb.clone() }, &[(1, 9)]),
    ];
    for (what, says, left) in cases {
        let mut victim = begun_again();
        let told = |victim: &Victim| victim.outputs.iter().any(|output| matches!(output, Output::Access { .. }));
        assert!(!told(&victim));
        hear(&mut victim, &says);
        assert_eq!(link(&victim).carried.ranges(), left, "{what}");
        assert_eq!(told(&victim), left != [(1, 9)], "{what}");
    }
    let mut victim = begun_again();
    hear(&mut victim, &Says { flags: CLAIMS, vlan: 5, named_vlan: 5, hold_s: 1, ..from(8) });
    victim.run(2 * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 4), (6, 9)], "also when nobody claims it any more");
    let mut victim = begun_again();
    hear(&mut victim, &Says { appoints: theirs(20), hold_s: 1000, ..drb });
    victim.run((HOLD_S - 1) * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 9)], "what was not carried before is inhibited");
    let mut victim = begun_again();
    victim.run((HOLD_S + 1) * NS_PER_S);
    assert!(!victim.bridge.is_restarting() && link(&victim).carried.is_empty(), "nobody is there: it begins");
    victim.run(HOLD_S * NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), [(1, 600)]);
}

/// RFC 6325 section 4.8.3, RFC 7780 section 11: the LSP says of each VLAN how often we have ceased to be its forwarder.
#[test]
fn what_is_lost_is_counted() {
    let mut victim = alone();
    let drb = Says { priority: 60, hold_s: 1000, ..from(9).hearing_us() };
    let appoint = |victim: &mut Victim, end_vlan| {
        let ours = Appointment { nickname: 0x11, start_vlan: 1, end_vlan };
        hear(victim, &Says { appoints: Some(vec![ours]), ..drb.clone() });
        victim.run(2 * NS_PER_S);
    };
    victim.run(2 * NS_PER_S);
    assert_eq!(interests(&victim), [(1, 600, 0)]);
    appoint(&mut victim, 9);
    assert_eq!(interests(&victim), [(1, 9, 1)], "what we were as DRB is over");
    appoint(&mut victim, 5);
    appoint(&mut victim, 9);
    assert_eq!(interests(&victim), [(1, 5, 1), (6, 9, 2)]);
    [5, 6].into_iter().for_each(|bridge| root(&mut victim, 0x80, bridge));
    victim.run(40 * NS_PER_S);
    assert_eq!(interests(&victim), [(1, 5, 1), (6, 9, 2)], "an inhibited forwarder is one");
    victim.put(Input::PortDown(PORT));
    victim.run(2 * NS_PER_S);
    assert_eq!(interests(&victim), []);
    victim.put(Input::PortUp(PORT));
    victim.run(2 * NS_PER_S);
    appoint(&mut victim, 9);
    assert_eq!(interests(&victim), [(1, 5, 2), (6, 9, 3)], "the port went down");
}

/// RFC 8139 section 2.1: who appoints nobody appoints itself, for only a Hello with appointments takes back former ones.
#[test]
fn who_appoints_nobody_appoints_itself() {
    let mut victim = alone();
    let sent = hellos(&mut victim, 11 * NS_PER_S);
    assert!(!sent.is_empty());
    for (_, pdu) in &sent {
        assert_eq!(appointments(pdu), [Appointment { nickname: 0x11, start_vlan: 1, end_vlan: 1 }]);
    }
}

/// RFC 8139 section 2.4: who is overloaded is appointed only where nobody else can.
#[test]
fn who_is_overloaded_forwards_last() {
    let mut victim = alone();
    let other = Says { hold_s: 1000, ..from(9).hearing_us() };
    let says = |victim: &mut Victim, sequence, overloaded| {
        let id = other.system().lsp(0);
        let lsp = lsp(id, sequence, 1000, &peer::Says { overloaded, ..peer::Says::default() });
        let (source, bytes) = (other.mac, lsp.emit().unwrap());
        victim.put(Input::Pdu { port: PORT, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source, bytes: &bytes });
        victim.run(NS_PER_S);
    };
    hear(&mut victim, &other);
    says(&mut victim, 1, false);
    let shared = link(&victim).carried.ranges();
    assert_ne!(shared, [(1, 600)]);
    says(&mut victim, 2, true);
    assert_eq!(link(&victim).carried.ranges(), [(1, 600)], "all that it had comes back");
    victim.put(Input::Overload(true));
    victim.run(NS_PER_S);
    assert_eq!(link(&victim).carried.ranges(), shared, "both are");
    says(&mut victim, 3, false);
    assert!(link(&victim).carried.is_empty(), "it alone can forward for all");
}

/// Hellos of the other kind, on both kinds of port (RFC 7177 section 8.3), and those that keep no rule.
#[test]
fn hellos_of_the_other_kind_are_dropped() {
    let mut victim = alone();
    let p2p = super::peer::hello(9, weft_wire::isis::hello::HandshakeState::Down, None, 30);
    let (source, bytes) = (from(9).mac, Pdu::P2pHello(p2p).emit().unwrap());
    victim.put(Input::Pdu { port: PORT, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source, bytes: &bytes });
    assert_eq!((victim.dropped(DropReason::Unsupported), victim.bridge.adjacencies().count()), (1, 0));
    let good = from(9).pdu();
    for (at, value, reason) in [(8, 2, DropReason::CircuitType), (29, 9, DropReason::WrongArea)] {
        let mut bad = good.clone();
        bad[at] = value;
        victim.put(Input::Pdu { port: PORT, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source, bytes: &bad });
        assert!(victim.dropped(reason) + victim.dropped(DropReason::Malformed) > 0, "{reason:?}");
    }
    for len in 0..good.len() {
        victim.put(Input::Pdu { port: PORT, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source, bytes: &good[..len] });
    }
    assert_eq!(victim.bridge.adjacencies().count(), 0);
    let mut p2p_victim = Victim::new(Bounds::default());
    let before = p2p_victim.dropped(DropReason::Unsupported);
    hear(&mut p2p_victim, &from(9));
    assert_eq!(p2p_victim.dropped(DropReason::Unsupported), before + 1);
}
