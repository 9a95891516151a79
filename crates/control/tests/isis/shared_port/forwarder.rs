//! For which VLANs of end stations a port is the forwarder, and when it is inhibited (RFC 8139).

use super::*;

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
