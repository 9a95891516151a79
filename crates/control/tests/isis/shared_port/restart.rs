//! Restarts on a shared link: of a neighbour, and our own (RFC 8706).

use super::*;

/// The same after a restart: neighbours 8 and 9 were there, and it carries VLANs 1 to 9.
fn begun_again() -> Victim {
    begun_again_in(1)
}

/// With what the Designated VLAN was.
fn begun_again_in(designated_vlan: u16) -> Victim {
    let neighbors = [8, 9].map(|number| from(number).mac).into();
    let former = Former { port: PORT, neighbors, carried: VlanSet::of_ranges(&[(1, 9)]), designated_vlan };
    let config = config(VlanSet::of_ranges(&[(1, 600)]), false);
    up(RBridge::restarted(config, Pcg64::seed_from_u64(3), [former]))
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

/// The others talk in the Designated VLAN of before, whatever we want it to be: what they say there counts.
#[test]
fn a_restart_goes_on_in_the_designated_vlan_of_before() {
    let mut victim = begun_again_in(3);
    let member = Says { lan_id: Some(our_link()), vlan: 3, named_vlan: 3, ..from(8).hearing_us() };
    hear(&mut victim, &member);
    assert_eq!((link(&victim).designated_vlan, state_of(&victim, &member)), (3, AdjacencyState::Report));
    let lists = |(_, hello): &(u16, Vec<u8>)| hello.windows(6).any(|part| part == from(8).mac.0);
    let said: Vec<u16> =
        hellos(&mut victim, NS_PER_S / 10).iter().filter(|hello| lists(hello)).map(|(vlan, _)| *vlan).collect();
    assert_eq!(said, [3], "there we say whom we hear");
    assert_eq!(link(&begun_again_in(700)).designated_vlan, 1, "it is not enabled any more");
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
