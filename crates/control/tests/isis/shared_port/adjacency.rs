//! Who is heard on a shared link, who is DRB, and what its Hellos hold.

use super::*;

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

#[test]
fn what_comes_in_a_vlan_that_is_not_enabled_is_not_heard() {
    let mut victim = begun(VlanSet::of_ranges(&[(1, 600)]));
    let higher = Says { priority: 60, ..from(9).hearing_us() };
    for vlan in [601, 4095, 0] {
        hear(&mut victim, &Says { vlan, named_vlan: vlan, ..higher.clone() });
    }
    assert_eq!((victim.dropped(DropReason::VlanNotEnabled), victim.bridge.adjacencies().count()), (3, 0));
    hear(&mut victim, &Says { vlan: 600, named_vlan: 600, ..higher.clone() });
    assert_eq!(link(&victim).drb, higher.system(), "in one that is enabled");
}

/// Hellos of the other kind, on both kinds of port (RFC 7177 section 8.3), and those that keep no rule.
#[test]
fn hellos_of_the_other_kind_are_dropped() {
    let mut victim = alone();
    let p2p = peer::hello(9, weft_wire::isis::hello::HandshakeState::Down, None, 30);
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
