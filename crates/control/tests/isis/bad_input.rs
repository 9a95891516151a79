//! What others may send: anything. Nothing panics, nothing grows beyond its bound, everything dropped is counted.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_control::isis::{AdjacencyState, Bounds, DropReason, Event, Input, Output, PortId, Timing};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::HandshakeState;
use weft_wire::isis::lsp::{CapabilitySub, NicknameRecord, Reach};
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::{LspId, NodeId, Pdu, SystemId, Tlv, View};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;

use super::peer::{ME, Says, csnp, hello, lsp, mac, my_mac, psnp, system};
use super::victim::{IntoBytes, PORT, Victim};

fn says() -> Says {
    Says {
        reach: vec![(ME, 10), (3, 10)],
        nicknames: vec![(0x22, 0x40, 0x8000)],
        vlans: Some((10, 20)),
        ..Says::default()
    }
}

fn entry(id: LspId, sequence: u32) -> LspEntry {
    LspEntry { lifetime_s: 100, id, sequence, checksum: 0x4242 }
}

fn one_of_each() -> Vec<Vec<u8>> {
    let up = hello(2, HandshakeState::Up, Some((ME, 1)), 30);
    let everything = (LspId::FIRST, LspId::LAST);
    vec![
        up.into_bytes(),
        lsp(system(2).lsp(0), 3, 1000, &says()).into_bytes(),
        lsp(system(2).lsp(0), 4, 0, &says()).into_bytes(),
        csnp(2, everything, vec![entry(system(2).lsp(0), 9), entry(system(5).lsp(0), 9)]).into_bytes(),
        psnp(2, vec![entry(system(ME).lsp(0), 1)]).into_bytes(),
        lsp(system(ME).lsp(0), 0xffff_ffff, 1000, &says()).into_bytes(),
        lsp(system(ME).lsp(7), 5, 1000, &says()).into_bytes(),
    ]
}

#[test]
fn a_pdu_cut_anywhere_is_counted_as_malformed() {
    let mut victim = Victim::new(Bounds::default());
    for pdu in one_of_each() {
        for len in 0..pdu.len() {
            let before = victim.dropped(DropReason::Malformed);
            victim.from(2, &pdu[..len]);
            assert_eq!(victim.dropped(DropReason::Malformed), before + 1, "{len} of {} bytes", pdu.len());
            assert!(victim.outputs.is_empty());
        }
    }
}

/// Any bytes from the neighbour itself, checksums repaired so that they get as far as they can.
#[test]
fn mutated_pdus_break_nothing() {
    let bounds = Bounds { lsps_max: 50, lsp_bytes_max: 20_000, requests_max: 20, ..Bounds::default() };
    let mut rng = Pcg64Mcg::seed_from_u64(0x1515);
    let mut victim = Victim::new(bounds);
    let originals = one_of_each();
    for round in 0..40_000 {
        let mut bytes = originals[rng.random_range(0..originals.len())].clone();
        for _ in 0..rng.random_range(0..4) {
            let at = rng.random_range(0..bytes.len());
            bytes[at] = if rng.random() { rng.random() } else { bytes[at] ^ (1 << rng.random_range(0..8)) };
        }
        repair(&mut bytes);
        victim.from(2, &bytes);
        if rng.random_range(0..20) == 0 {
            victim.run(rng.random_range(0..2 * NS_PER_S));
        }
        if victim.state() != AdjacencyState::Report && round % 10 == 0 {
            victim.from(2, &hello(2, HandshakeState::Initializing, Some((ME, 1)), 60).into_bytes());
        }
        let lsdb = victim.bridge.lsdb();
        // Our own LSP is ours to hold, whatever others fill the rest with.
        assert!(lsdb.len() <= bounds.lsps_max + 2 && lsdb.len_bytes() <= bounds.lsp_bytes_max + 2 * 1470);
    }
    let events = &victim.bridge.counters().events;
    assert!(events.get(Event::LspNewer) > 100 && events.get(Event::Computed) > 100, "they got far enough");
}

/// Puts the right checksum into an LSP.
fn repair(bytes: &mut [u8]) {
    let is_lsp = View::new(bytes).is_ok_and(|view| view.lsp().is_some_and(|header| header.lifetime_s > 0));
    if is_lsp {
        let len = View::new(bytes).unwrap().as_bytes().len();
        let check = weft_wire::isis::fletcher::check_bytes(&bytes[12..len], 12);
        bytes[24..26].copy_from_slice(&check);
    }
}

/// On port 1 there is a neighbour already; on port 2 the first of them seems to be one. Nothing is kept of the others.
#[test]
fn ten_thousand_stations_do_not_become_neighbours() {
    for port in [PORT, PortId(2)] {
        let mut victim = Victim::new(Bounds::default());
        let hello_of = |number: u32| {
            let [_, a, b, c] = number.to_be_bytes();
            let mut stranger = hello(9, HandshakeState::Down, None, 600);
            stranger.source = SystemId([0x0c, 0, 0, a, b, c]);
            (stranger.into_bytes(), MacAddress([2, 0, 1, a, b, c]))
        };
        let hear = |victim: &mut Victim, number| {
            let (bytes, source) = hello_of(number);
            victim.put(Input::Pdu { port, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source, bytes: &bytes });
        };
        hear(&mut victim, 0);
        let (neighbors, size) = (victim.bridge.adjacencies().count(), size(&victim));
        for number in 1..=10_000 {
            hear(&mut victim, number);
            assert!(victim.outputs.is_empty(), "a stranger is not answered");
        }
        let dropped = victim.dropped(DropReason::OtherNeighbor);
        assert_eq!(dropped, 10_000 + u64::from(port == PORT));
        assert_eq!((victim.bridge.adjacencies().count(), victim.state()), (neighbors, AdjacencyState::Report));
        assert!(self::size(&victim) < size + 100, "its state grows by the digits of a counter alone");
    }
}

/// How much an RBridge holds, as the length of its whole state in print.
fn size(victim: &Victim) -> usize {
    format!("{:?}", victim.bridge).len()
}

#[test]
fn a_full_database_says_so_by_the_overload_bit() {
    let mut victim = Victim::new(Bounds { lsps_max: 10, ..Bounds::default() });
    for number in 0..50_u8 {
        let id = NodeId([0x0c, 0, 0, 0, 0, number, 0]).lsp(0);
        victim.from(2, &lsp(id, 1, 1000, &Says::default()).into_bytes());
    }
    assert_eq!(victim.bridge.lsdb().len(), 10);
    assert_eq!(victim.dropped(DropReason::DatabaseFull), 41);
    let overloaded = |victim: &Victim| victim.bridge.lsdb().get(system(ME).lsp(0)).unwrap().flags().is_overloaded();
    victim.run(2 * NS_PER_S);
    assert!(overloaded(&victim) && victim.bridge.forwarding().overloaded);
    victim.from(2, &lsp(NodeId([0x0c, 0, 0, 0, 0, 3, 0]).lsp(0), 2, 1000, &says()).into_bytes());
    assert_eq!(victim.dropped(DropReason::DatabaseFull), 41, "what is held is still renewed");
    victim.run(61 * NS_PER_S);
    assert!(!overloaded(&victim) && !victim.bridge.forwarding().overloaded);
}

#[test]
fn requests_and_foreign_claims_are_bounded() {
    let mut victim = Victim::new(Bounds { lsps_max: 100, requests_max: 30, ..Bounds::default() });
    for number in 0..=255_u8 {
        let unknown = entry(NodeId([0x0c, 0, 0, 0, 0, number, 0]).lsp(0), 5);
        victim.from(2, &psnp(2, vec![unknown]).into_bytes());
        let mine = NodeId([0x0a, 0, 0, 0, 0, ME, 1]).lsp(number);
        victim.from(2, &lsp(mine, 5, 1000, &says()).into_bytes());
        let withdrawn = NodeId([0x0d, 0, 0, 0, 0, number, 1]).lsp(0);
        victim.from(2, &lsp(withdrawn, 5, 0, &says()).into_bytes());
    }
    assert_eq!(victim.bridge.lsdb().len(), 100);
    assert!(victim.dropped(DropReason::RequestsFull) >= 400);
    victim.run(300 * NS_PER_S);
    assert_eq!(victim.bridge.lsdb().len(), 1, "withdrawals are forgotten");
}

/// A system with our ID answers every version of our LSP by a newer one: we do not answer faster than once a second.
#[test]
fn a_double_of_ours_does_not_make_a_storm() {
    let mut victim = Victim::new(Bounds::default());
    let issued = |victim: &Victim| victim.bridge.counters().events.get(Event::LspIssued);
    let before = issued(&victim);
    for _ in 0..1000 {
        let sequence = victim.bridge.lsdb().get(system(ME).lsp(0)).unwrap().sequence() + 1;
        victim.from(2, &lsp(system(ME).lsp(0), sequence, 1000, &says()).into_bytes());
        victim.run(10 * NS_PER_MS);
    }
    assert!(issued(&victim) - before <= 11, "{} LSPs in ten seconds", issued(&victim) - before);
    assert_eq!(victim.bridge.counters().events.get(Event::OwnLspNewer), 1000);
}

#[test]
fn nicknames_that_nobody_may_hold() {
    let mut victim = Victim::new(Bounds::default());
    let nicknames = [0, 0xffc0, 0xffff, 0x22].map(|nickname| (nickname, 0x40, 0x8000)).to_vec();
    victim.from(2, &lsp(system(2).lsp(0), 3, 1000, &Says { nicknames, ..says() }).into_bytes());
    victim.run(NS_PER_S);
    assert_eq!(victim.dropped(DropReason::BadNickname), 3);
    assert_eq!(victim.bridge.forwarding().routes.keys().copied().collect::<Vec<_>>(), [0x22]);
}

/// Every nickname is claimed, ours by a stronger holder too. Those who claim them may be `reachable`.
fn all_nicknames_taken(reachable: bool) -> Victim {
    let mut victim = Victim::new(Bounds::default());
    let holder = |number: u8| NodeId([0x0b, 0, 0, 0, 0, number, 0]);
    let mut links = vec![Reach::plain(system(ME).node(), 10)];
    for number in 0..=255_u8 {
        let id = holder(number).lsp(0);
        let back = if reachable { vec![Reach::plain(system(2).node(), 10)] } else { vec![] };
        let Pdu::Lsp(mut all) = lsp(id, 1, 1000, &Says::default()) else { unreachable!() };
        all.tlvs.push(Tlv::Reach(back));
        // 256 nicknames need several TLVs; a neighbour may put so many into one fragment on a large link.
        let nicknames: Vec<u16> = (0..256).map(|at| u16::from(number) * 256 + at).collect();
        for chunk in nicknames.chunks(48) {
            let records =
                chunk.iter().map(|nickname| NicknameRecord { priority: 0xff, root_priority: 1, nickname: *nickname });
            let subs = vec![CapabilitySub::Nicknames(records.collect())];
            all.tlvs.push(Tlv::Capability { router_id: 1, flags: 0, subs });
        }
        victim.from(2, &Pdu::Lsp(all).into_bytes());
        links.push(Reach::plain(holder(number), 10));
    }
    // One that is reached holds ours, more strongly.
    let Pdu::Lsp(mut rival) = lsp(system(2).lsp(0), 9, 1000, &Says { nicknames: vec![(0x11, 0xff, 1)], ..says() })
    else {
        unreachable!()
    };
    rival.tlvs.extend(links.chunks(20).map(|chunk| Tlv::Reach(chunk.to_vec())));
    victim.from(2, &Pdu::Lsp(rival).into_bytes());
    victim.run(3 * NS_PER_S);
    victim
}

#[test]
fn when_no_nickname_is_free() {
    let victim = all_nicknames_taken(true);
    assert_eq!(victim.bridge.nickname(), None);
    assert!(victim.bridge.counters().events.get(Event::NicknamesExhausted) > 0);
}

/// RFC 7780 section 4, item 3: what only unreachable RBridges hold is available, though anything else is preferred.
#[test]
fn nicknames_of_the_unreachable_are_the_last_choice() {
    let victim = all_nicknames_taken(false);
    let nickname = victim.bridge.nickname().expect("one of theirs is taken");
    assert!(nickname != 0x11 && nickname <= 0xffbf);
    assert_eq!(victim.bridge.counters().events.get(Event::NicknamesExhausted), 0);
}

/// RFC 7780 section 4, item 4: also an LSP that finds no room tells that our nickname is held more strongly.
#[test]
fn a_rival_that_finds_no_room_is_heard() {
    let mut victim = Victim::new(Bounds { lsps_max: 1, ..Bounds::default() });
    let claim = |priority| Says { nicknames: vec![(0x11, priority, 0x8000)], ..says() };
    victim.from(2, &lsp(system(2).lsp(0), 1, 1000, &claim(0x40)).into_bytes());
    victim.run(2 * NS_PER_S);
    assert_eq!((victim.bridge.nickname(), victim.dropped(DropReason::DatabaseFull)), (Some(0x11), 1));
    victim.from(2, &lsp(system(2).lsp(0), 1, 1000, &claim(0xff)).into_bytes());
    victim.run(2 * NS_PER_S);
    assert!(victim.bridge.nickname().is_some_and(|nickname| nickname != 0x11));
    assert_eq!(victim.bridge.counters().events.get(Event::NicknameLost), 1);
}

/// RFC 7780 section 8.3: PDUs of unknown numbers are discarded and counted, and nobody is worse off for them.
#[test]
fn pdus_of_unknown_numbers() {
    let mut victim = Victim::new(Bounds::default());
    let known = [10, 15, 17, 18, 23, 24, 26, 28];
    for number in (0..32).filter(|number| !known.contains(number)) {
        let mut pdu = psnp(2, vec![]).into_bytes();
        pdu[4] = number;
        victim.from(2, &pdu);
        assert!(victim.outputs.is_empty());
    }
    assert_eq!(victim.dropped(DropReason::UnknownPdu), 24);
    assert_eq!((victim.dropped(DropReason::Malformed), victim.state()), (0, AdjacencyState::Report));
}

#[test]
fn only_the_neighbour_may_speak() {
    let mut victim = Victim::new(Bounds::default());
    let pdus = [lsp(system(2).lsp(0), 3, 1000, &says()), psnp(2, vec![]), csnp(2, (LspId::FIRST, LspId::LAST), vec![])];
    for pdu in pdus.map(IntoBytes::into_bytes) {
        victim.from(7, &pdu);
    }
    assert_eq!(victim.dropped(DropReason::NoAdjacency), 3);
    victim.from(2, &psnp(7, vec![]).into_bytes());
    assert_eq!(victim.dropped(DropReason::WrongSource), 1);
    victim.from(2, &csnp(2, (LspId::LAST, LspId::FIRST), vec![]).into_bytes());
    assert_eq!(victim.dropped(DropReason::BadEntries), 1, "a range that ends before it begins");
    victim.put(Input::Pdu { port: PortId(9), vlan: 1, destination: ALL_IS_IS_RBRIDGES, source: mac(2), bytes: &[] });
    assert_eq!(victim.dropped(DropReason::NoPort), 1);
    victim.put(Input::Pdu { port: PORT, vlan: 1, destination: mac(9), source: mac(2), bytes: &[] });
    assert_eq!(victim.dropped(DropReason::WrongDestination), 1);
    victim.put(Input::Pdu { port: PORT, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source: my_mac(PORT), bytes: &[] });
    assert_eq!(victim.dropped(DropReason::OwnAddress), 1);
}

/// RFC 7175 section 4: what comes back is an Echo of ours, by way of the neighbour alone, or nothing.
#[test]
fn echoes_of_others_are_not_ours() {
    let timing = Timing { echo_ns: NS_PER_S, ..Timing::default() };
    let mut victim = Victim::with_timing(Bounds::default(), timing);
    let echo = |output: &Output| if let Output::Echo { frame, .. } = output { Some(frame.to_vec()) } else { None };
    let sent = (0..50).find_map(|_| {
        victim.run(NS_PER_S / 10);
        victim.outputs.iter().find_map(echo)
    });
    let sent = sent.expect("one is sent each second");
    let (hop_count, data) = (15, sent.len() - 20);
    // As it comes back, with one byte that differs; the hop count differs from what was sent.
    let spoilt = |at: usize, by: u8| {
        let mut frame = sent.clone();
        (frame[hop_count], frame[at]) = (0x3e, frame[at] ^ by);
        frame
    };
    for at in data..sent.len() {
        victim.put(Input::Channel { frame: &spoilt(at, 1) });
    }
    assert_eq!(victim.dropped(DropReason::StrayEcho), 20, "another sender, port, session or number");
    for length in 0..sent.len() {
        victim.put(Input::Channel { frame: &sent[..length] });
    }
    assert_eq!(victim.dropped(DropReason::Malformed), sent.len() as u64);
    victim.put(Input::Channel { frame: &spoilt(data - 3, 1) });
    assert_eq!(victim.dropped(DropReason::UnknownPdu), 1, "BFD Control");
    for forwarded in [0, 2] {
        victim.put(Input::Channel { frame: &spoilt(hop_count, forwarded) });
    }
    assert_eq!(victim.dropped(DropReason::EchoDetour), 2);
    assert_eq!(victim.bridge.counters().events.get(Event::EchoReturned), 0);
    victim.run(20 * NS_PER_S);
    assert_eq!(victim.state(), AdjacencyState::Report, "who never returned one is not missed");
    victim.put(Input::Channel { frame: &spoilt(hop_count, 1) });
    assert_eq!(victim.bridge.counters().events.get(Event::EchoReturned), 1);
    victim.run(4 * NS_PER_S);
    assert_eq!((victim.state(), victim.bridge.counters().events.get(Event::EchoSilence)), (AdjacencyState::Down, 1));
}
