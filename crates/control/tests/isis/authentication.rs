//! Keys: digests that others computed, what is sent and what is believed, and campuses that get a key or change it.

use weft_control::isis::{
    AdjacencyState, Algorithm, Bounds, Config, DropReason, Event, Input, Key, KeyChain, MAX_AGE_S, Output, PortId,
    Timing,
};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_wire::isis::authentication::{Scheme, Signature};
use weft_wire::isis::hello::HandshakeState;
use weft_wire::isis::pdu::{Lsp, Mtu};
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::{LspFlags, with_lifetime};
use weft_wire::isis::{Kind, LspId, Pdu, SystemId, Tlv, View};

use super::net::Net;
use super::oracle::Oracle;
use super::peer::{ME, Says, csnp, hello, lsp, psnp, system};
use super::topology::Topology;
use super::victim::{IntoBytes, Victim};

/// Reasons for which PDUs are not authentic.
const REASONS: [DropReason; 5] =
    [DropReason::AuthMissing, DropReason::AuthType, DropReason::AuthKey, DropReason::AuthDigest, DropReason::PurgeBody];

fn key(id: u16, algorithm: Algorithm) -> Key {
    Key::new(id, algorithm, vec![id as u8; 16]).unwrap()
}

/// SHA-256 with keys of these IDs, of which the first signs.
pub(crate) fn chain(ids: &[u16]) -> KeyChain {
    KeyChain::new(ids.iter().map(|id| key(*id, Algorithm::HmacSha256)).collect()).unwrap()
}

fn check(keys: &KeyChain, bytes: &[u8]) -> Result<(), DropReason> {
    keys.check(&View::new(bytes).expect("it is a PDU"))
}

fn hexadecimal(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// `tests/isis/authentication.txt` says where they are from.
struct Vector {
    name: &'static str,
    keys: KeyChain,
    pdu: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    let lines = include_str!("authentication.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let vector = |line: &'static str| {
        let [name, algorithm, id, secret, pdu] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let algorithm = Algorithm::ALL.into_iter().find(|known| known.name() == algorithm).expect("it is known");
        let key = Key::new(id.parse().unwrap(), algorithm, hexadecimal(secret)).unwrap();
        Vector { name, keys: KeyChain::new(vec![key]).unwrap(), pdu: hexadecimal(pdu) }
    };
    lines.map(vector).collect()
}

#[test]
fn digests_of_others_are_right_and_ours_are_the_same() {
    let vectors = vectors();
    assert!(vectors.len() > 16 && vectors.iter().any(|vector| vector.name.starts_with("frr")));
    for Vector { name, keys, pdu } in vectors {
        assert_eq!(check(&keys, &pdu), Ok(()), "{name}");
        let mut value = Pdu::parse(&pdu).unwrap();
        for tlv in value.tlvs_mut().unwrap() {
            if let Tlv::Authentication { digest, .. } = tlv {
                digest.fill(0);
            }
        }
        let ours = keys.sign(value);
        // FRR says 0 for the maximum of areas, which TRILL forbids.
        if !name.starts_with("frr") {
            assert_eq!(ours, pdu, "{name}");
        }
        assert_eq!(check(&keys, &ours), Ok(()));
    }
}

#[test]
fn every_damaged_bit_is_seen() {
    for Vector { name, keys, pdu } in vectors() {
        let is_lsp = pdu[4] == Kind::Lsp as u8;
        for bit in 0..8 * pdu.len() {
            let at = bit / 8;
            let mut damaged = pdu.clone();
            damaged[at] ^= 1 << (bit % 8);
            let Ok(view) = View::new(&damaged) else { continue };
            let Ok(()) = keys.check(&view) else { continue };
            assert!(is_lsp && [10, 11, 24, 25].contains(&at), "{name}: bit {bit}");
        }
    }
}

#[test]
fn a_digest_of_a_wrong_length_is_wrong() {
    let keys = chain(&[1]);
    let pdu = psnp(2, vec![]);
    for len in (0..=64).filter(|len| *len != 32) {
        let mut short = pdu.clone();
        let digest = vec![0; len];
        short.tlvs_mut().unwrap().push(Tlv::Authentication { scheme: Scheme::Generic { key_id: 1 }, digest });
        assert_eq!(check(&keys, &short.into_bytes()), Err(DropReason::AuthDigest));
    }
}

fn says() -> Says {
    Says { reach: vec![(ME, 10)], nicknames: vec![(0x22, 0x40, 0x8000)], ..Says::default() }
}

fn entry(id: LspId, sequence: u32) -> LspEntry {
    LspEntry { lifetime_s: 100, id, sequence, checksum: 0x4242 }
}

/// PDUs of the neighbour that would all change something.
fn one_of_each() -> Vec<Pdu> {
    let everything = (LspId::FIRST, LspId::LAST);
    let probe_source = system(2);
    vec![
        lsp(system(2).lsp(0), 9, 1000, &says()),
        lsp(system(2).lsp(0), 9, 0, &says()),
        lsp(system(ME).lsp(0), u32::MAX, 1000, &says()),
        lsp(system(ME).lsp(0), 77, 0, &says()),
        csnp(2, everything, vec![entry(system(5).lsp(0), 9)]),
        psnp(2, vec![entry(system(ME).lsp(0), 0)]),
        Pdu::MtuProbe(Mtu { probe_id: [1; 6], probe_source, ack_source: SystemId::default(), tlvs: vec![] }),
        Pdu::P2pHello(hello(2, HandshakeState::Down, None, 30)),
    ]
}

/// All that could be changed by a PDU.
fn state(victim: &Victim) -> String {
    let bridge = &victim.bridge;
    let counters = bridge.counters();
    let events = [Event::LspNewer, Event::LspIssued, Event::PurgeReceived, Event::OwnLspNewer, Event::Hello];
    let events = events.map(|event| counters.events.get(event));
    let adjacencies: Vec<_> = bridge.adjacencies().collect();
    format!("{adjacencies:?} {:?} {:?} {events:?}", bridge.lsdb(), bridge.next_deadline_ns())
}

#[test]
fn what_is_not_authentic_changes_nothing_and_is_counted_by_its_reason() {
    let chain_of = |algorithm| KeyChain::new(vec![key(1, algorithm)]).unwrap();
    let wrong_secret = KeyChain::new(vec![Key::new(1, Algorithm::HmacSha256, vec![9; 16]).unwrap()]).unwrap();
    let with = |tlv: Tlv| {
        move |mut pdu: Pdu| {
            pdu.tlvs_mut().unwrap().push(tlv.clone());
            pdu.into_bytes()
        }
    };
    type Spoil = Box<dyn Fn(Pdu) -> Vec<u8>>;
    let spoils: Vec<(DropReason, Spoil)> = vec![
        (DropReason::AuthMissing, Box::new(IntoBytes::into_bytes)),
        (DropReason::AuthType, Box::new(with(Tlv::Other { code: 10, value: b"\x01letmein".to_vec() }))),
        (DropReason::AuthType, Box::new(with(Tlv::Other { code: 10, value: vec![] }))),
        (DropReason::AuthType, Box::new(move |pdu| chain_of(Algorithm::HmacMd5).sign(pdu))),
        (
            DropReason::AuthType,
            Box::new(move |pdu| {
                let Ok(signed) = Pdu::parse(&chain(&[1]).sign(pdu)) else { panic!("it is a PDU") };
                with(Tlv::Authentication { scheme: Scheme::Generic { key_id: 1 }, digest: vec![0; 32] })(signed)
            }),
        ),
        (DropReason::AuthKey, Box::new(|pdu| chain(&[2]).sign(pdu))),
        (DropReason::AuthDigest, Box::new(move |pdu| wrong_secret.sign(pdu))),
        (DropReason::AuthDigest, Box::new(move |pdu| chain_of(Algorithm::HmacSha512).sign(pdu))),
    ];
    for (place, (reason, spoil)) in spoils.iter().enumerate() {
        let mut victim = Victim::with_keys(chain(&[1]), Bounds::default());
        let before = state(&victim);
        for pdu in one_of_each() {
            victim.from(2, &spoil(pdu));
            assert!(victim.outputs.is_empty(), "{:?}", victim.outputs);
        }
        assert_eq!((state(&victim), victim.dropped(*reason)), (before, 8), "spoil {place}");
        let all: u64 = REASONS.map(|reason| victim.dropped(reason)).iter().sum();
        assert_eq!((all, victim.bridge.refused(PortId(1)), victim.bridge.refused(PortId(2))), (8, 8, 0));
        // The control: with the right key each of them does something.
        for pdu in one_of_each() {
            let before = state(&victim);
            victim.from(2, &chain(&[1]).sign(pdu.clone()));
            assert!(!victim.outputs.is_empty() || state(&victim) != before, "{pdu:?}");
        }
    }
}

#[test]
fn a_hello_that_is_said_again_is_not_believed() {
    let keys = chain(&[1]).numbered(7).checking_numbers();
    let mut victim = Victim::of(Config { keys: Some(keys), ..Victim::config() });
    assert_eq!((victim.state(), victim.dropped(DropReason::NoNumber)), (AdjacencyState::Down, 1));
    let said = |session, packet| {
        let mut hello = hello(2, HandshakeState::Initializing, Some((ME, 1)), 60_000);
        hello.tlvs.push(Tlv::ExtendedSequence { session, packet });
        chain(&[1]).sign(Pdu::P2pHello(hello))
    };
    for (session, packet, replayed) in [(5, 9, 0), (5, 9, 1), (5, 8, 2), (4, 10, 3), (5, 10, 3), (6, 0, 3), (5, 11, 4)]
    {
        victim.from(2, &said(session, packet));
        assert_eq!(victim.dropped(DropReason::Replayed), replayed, "{session} {packet}");
    }
    assert_eq!(victim.state(), AdjacencyState::Report);
    // Its own have one each, and every one is above the last.
    let mut last = None;
    for _ in 0..60 {
        victim.outputs.clear();
        victim.run(NS_PER_S);
        let hellos = victim.outputs.iter().filter_map(|output| match output {
            Output::Send { pdu, .. } => Some(Pdu::parse(pdu).expect("it can be read")),
            _ => None,
        });
        for pdu in hellos {
            let Pdu::P2pHello(hello) = pdu else { continue };
            let number = hello.tlvs.iter().find_map(|tlv| match tlv {
                Tlv::ExtendedSequence { session, packet } => Some((*session, *packet)),
                _ => None,
            });
            assert!(number > last && number.is_some_and(|(session, _)| session == 7), "{last:?} {number:?}");
            last = number;
        }
    }
    assert!(last.is_some());
}

/// A digest says nothing about the lifetime: who hears an LSP could make it expire everywhere, and all would withdraw it.
#[test]
fn an_lsp_with_a_second_to_live_lives() {
    let mut victim = Victim::with_keys(chain(&[1]), Bounds::default());
    victim.run(60 * NS_PER_S);
    let theirs = chain(&[1]).sign(lsp(system(2).lsp(0), 5, 1000, &says()));
    victim.from(2, &with_lifetime(&theirs, 1));
    victim.run(10 * NS_PER_S);
    let held = victim.bridge.lsdb().get(system(2).lsp(0)).expect("it is held");
    assert_eq!((held.is_purged(), held.remaining_s(victim.now_ns)), (false, MAX_AGE_S - 10));
}

/// A digest says nothing about the lifetime: who hears an LSP could make a withdrawal of it.
#[test]
fn an_lsp_made_a_withdrawal_is_none() {
    let mut victim = Victim::with_keys(chain(&[1]), Bounds::default());
    let theirs = chain(&[1]).sign(lsp(system(2).lsp(0), 5, 1000, &says()));
    victim.from(2, &theirs);
    victim.run(NS_PER_S);
    let route = |victim: &Victim| victim.bridge.forwarding().routes.contains_key(&0x22);
    assert!(route(&victim));
    victim.from(2, &with_lifetime(&theirs, 0));
    victim.run(NS_PER_S);
    assert!(route(&victim) && !victim.bridge.lsdb().get(system(2).lsp(0)).unwrap().is_purged());
    assert_eq!((victim.dropped(DropReason::PurgeBody), victim.bridge.refused(PortId(1))), (1, 1));
    victim.from(2, &chain(&[1]).sign(lsp(system(2).lsp(0), 5, 0, &says())));
    victim.run(NS_PER_S);
    assert!(!route(&victim), "a real one is one");
}

fn sent(victim: &Victim) -> Vec<Vec<u8>> {
    let pdu = |output: &Output| if let Output::Send { pdu, .. } = output { Some(pdu.to_vec()) } else { None };
    victim.outputs.iter().filter_map(pdu).collect()
}

/// Everything that is sent in a life, by all algorithms.
#[test]
fn all_that_is_sent_is_signed() {
    for algorithm in Algorithm::ALL {
        let keys = KeyChain::new(vec![key(1, algorithm)]).unwrap();
        let mut config = Config { keys: Some(keys.clone()), ..Victim::config() };
        config.ports[0].mtu_test = true;
        config.vlans = (0..300).map(|at| 2 + 2 * at).collect();
        let mut victim = Victim::of(config);
        let mut all = Vec::new();
        // After the last one, a Hello that ends the adjacency, it begins once more.
        for pdu in one_of_each().into_iter().chain([psnp(2, vec![])]) {
            victim.from(2, &keys.sign(Pdu::P2pHello(hello(2, HandshakeState::Up, Some((ME, 1)), 60_000))));
            all.extend(sent(&victim));
            victim.from(2, &keys.sign(pdu));
            all.extend(sent(&victim));
            for _ in 0..30 {
                victim.run(100 * NS_PER_MS);
                all.extend(sent(&victim));
            }
        }
        victim.put(Input::Leave);
        for _ in 0..30 {
            victim.run(100 * NS_PER_MS);
            all.extend(sent(&victim));
        }
        let mut kinds = Vec::new();
        for pdu in &all {
            assert_eq!(check(&keys, pdu), Ok(()), "{:?}", Pdu::parse(pdu));
            assert!(pdu.len() <= 1470);
            let view = View::new(pdu).unwrap();
            kinds.push((view.kind() as u8, view.lsp().is_some_and(|header| header.lifetime_s == 0)));
        }
        kinds.sort_unstable();
        kinds.dedup();
        let wanted = [Kind::P2pHello, Kind::Lsp, Kind::Lsp, Kind::MtuProbe, Kind::Csnp, Kind::Psnp, Kind::MtuAck];
        assert_eq!(kinds.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), wanted.map(|kind| kind as u8));
        let probes = all.iter().filter(|pdu| View::new(pdu).unwrap().kind() == Kind::MtuProbe);
        assert!(probes.into_iter().all(|probe| probe.len() == 1470), "the digest is part of the length under test");
    }
}

/// LSPs go on with their originator's digest, whichever key of the chain that is.
#[test]
fn what_is_passed_on_stays_as_it_is() {
    let mut victim = Victim::with_keys(chain(&[1, 2]), Bounds::default());
    victim.put(Input::PortUp(PortId(2)));
    let far = chain(&[2]).sign(lsp(system(5).lsp(0), 5, 1000, &says()));
    victim.from(2, &far);
    let held = victim.bridge.lsdb().get(system(5).lsp(0)).unwrap();
    assert_eq!((&held.bytes()[12..], held.bytes().len()), (&far[12..], far.len()));
    assert_eq!(check(&chain(&[2]), held.bytes()), Ok(()));
    let purge = chain(&[2]).sign(lsp(system(5).lsp(0), 6, 0, &says()));
    victim.from(2, &purge);
    assert_eq!(victim.bridge.lsdb().get(system(5).lsp(0)).unwrap().bytes(), purge);
}

/// RFC 6232 section 3: who gets it first names himself in a withdrawal that names nobody, and so has to sign it.
#[test]
fn a_withdrawal_that_names_nobody_is_signed_anew() {
    let mut victim = Victim::with_keys(chain(&[1, 2]), Bounds::default());
    victim.from(2, &chain(&[2]).sign(lsp(system(2).lsp(0), 5, 1000, &says())));
    victim.from(2, &chain(&[2]).sign(lsp(system(2).lsp(0), 5, 0, &Says { unsigned: true, ..says() })));
    let held = victim.bridge.lsdb().get(system(2).lsp(0)).unwrap();
    let view = View::new(held.bytes()).unwrap();
    assert_eq!(Signature::of(&view).unwrap().scheme(), Scheme::Generic { key_id: 1 });
    assert_eq!((held.is_purged(), chain(&[1]).check(&view)), (true, Ok(())));
    let named = Tlv::PurgeOriginator { originator: system(ME), received_from: Some(system(2)) };
    let Pdu::Lsp(purge) = Pdu::of_view(&view) else { panic!("an LSP") };
    assert_eq!(purge.tlvs.iter().filter(|tlv| **tlv == named).count(), 1);
}

/// While unsigned PDUs are accepted, a signed one still has to be right, and nothing unsigned gets a signature of ours.
#[test]
fn unsigned_ones_are_believed_while_a_campus_gets_a_key() {
    let mut victim = Victim::with_keys(chain(&[1]).accepting_unsigned(), Bounds::default());
    victim.from(2, &lsp(system(2).lsp(0), 5, 1000, &says()).into_bytes());
    victim.run(NS_PER_S);
    assert!(victim.bridge.forwarding().routes.contains_key(&0x22));
    victim.from(2, &chain(&[2]).sign(lsp(system(2).lsp(0), 6, 1000, &says())));
    assert_eq!(victim.dropped(DropReason::AuthKey), 1);
    let signed = chain(&[1]).sign(lsp(system(2).lsp(0), 7, 1000, &says()));
    victim.from(2, &with_lifetime(&signed, 0));
    assert_eq!(victim.dropped(DropReason::PurgeBody), 1);
    let purge = lsp(system(2).lsp(0), 8, 0, &Says { unsigned: true, ..says() }).into_bytes();
    victim.from(2, &purge);
    assert_eq!(victim.bridge.lsdb().get(system(2).lsp(0)).unwrap().bytes(), purge);
}

fn fast() -> Timing {
    Timing { hello_ns: NS_PER_S, holding_multiplier: 3, ..Timing::default() }
}

/// The paper's campus with these keys at each, after it has settled.
fn campus(keys: &Option<KeyChain>) -> Net {
    let mut net = Net::new(&Topology::paper(), 61, fast());
    for node in 0..6 {
        net.nodes[node].keys.clone_from(keys);
        net.boot(node, false);
    }
    net.run_to(10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    net
}

/// Every RBridge is started anew with other keys while its data plane works on; nobody's routes move.
fn hand_round(net: &mut Net, keys: &Option<KeyChain>) {
    for node in 0..net.nodes.len() {
        let changes = |net: &Net| -> Vec<u64> { net.nodes.iter().map(|node| node.changes).collect() };
        let before = changes(net);
        net.nodes[node].keys.clone_from(keys);
        net.restart(node);
        net.run_to(net.now_ns + 8 * NS_PER_S);
        let mut after = changes(net);
        after[node] = before[node];
        assert_eq!(after, before, "nobody notices that rb{node} has other keys");
        Oracle::new(net).judge().unwrap_or_else(|what| panic!("rb{node} has other keys: {what}"));
    }
}

fn refused(net: &Net) -> u64 {
    let bridges = net.nodes.iter().filter_map(|node| node.bridge.as_ref());
    bridges.map(|bridge| REASONS.map(|reason| bridge.counters().dropped.get(reason)).iter().sum::<u64>()).sum()
}

#[test]
fn a_key_is_changed_without_outage() {
    let mut net = campus(&Some(chain(&[1])));
    for ids in [&[1, 2][..], &[2, 1], &[2]] {
        hand_round(&mut net, &Some(chain(ids)));
        assert_eq!(refused(&net), 0);
    }
}

#[test]
fn a_key_is_changed_while_all_run() {
    let mut net = campus(&Some(chain(&[1])));
    let changes = |net: &Net| -> Vec<u64> { net.nodes.iter().map(|node| node.changes).collect() };
    let before = changes(&net);
    for ids in [&[1, 2][..], &[2, 1], &[2]] {
        for node in 0..net.nodes.len() {
            net.configure(node, fast(), Some(chain(ids)));
            net.run_to(net.now_ns + 2 * NS_PER_S);
        }
        assert_eq!(refused(&net), 0, "LSPs are signed anew before the old key goes");
    }
    assert_eq!(changes(&net), before, "nobody's routes move");
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
}

/// A neighbour that believes Hellos for a second must hear at once that they come more seldom from now on.
#[test]
fn timers_are_changed_while_all_run() {
    let mut net = campus(&None);
    let changes = |net: &Net| -> Vec<u64> { net.nodes.iter().map(|node| node.changes).collect() };
    let before = changes(&net);
    for hello_ns in [NS_PER_S / 10, 20 * NS_PER_S, NS_PER_S] {
        for node in 0..net.nodes.len() {
            let echo_ns = if hello_ns > NS_PER_S { NS_PER_S } else { 0 };
            net.configure(node, Timing { hello_ns, echo_ns, ..fast() }, None);
        }
        net.run_to(net.now_ns + 60 * NS_PER_S);
        let echoes = net.nodes.iter().filter_map(|node| node.bridge.as_ref());
        let returned = echoes.flat_map(|bridge| bridge.adjacencies()).all(|(_, adjacency)| adjacency.returns_echoes());
        assert_eq!(returned, hello_ns > NS_PER_S, "Echoes begin and end");
    }
    assert_eq!(changes(&net), before, "nobody's routes move");
}

#[test]
fn a_campus_gets_a_key_without_outage() {
    let mut net = campus(&None);
    for keys in [chain(&[1]).accepting_unsigned(), chain(&[1])] {
        hand_round(&mut net, &Some(keys));
        assert_eq!(refused(&net), 0);
    }
}

/// RFC 5304 section 2.1: neighbours hold LSPs of a former life, signed with a key that is gone. They are not believed, but who
/// lists them is, so what is said now gets above them, and what is no longer said is withdrawn.
#[test]
fn a_former_life_with_another_key_is_overcome() {
    let mut net = Net::new(&Topology::paper(), 63, fast());
    net.nodes[0].vlans = (0..500).map(|at| 2 + 2 * at).collect();
    for node in 0..6 {
        net.nodes[node].keys = Some(if node == 0 { chain(&[1, 2]) } else { chain(&[2, 1]) });
        net.boot(node, false);
    }
    net.run_to(10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    assert!(net.nodes[1].bridge.as_ref().unwrap().lsdb().len() > 6, "it has several fragments");
    net.kill(0);
    net.nodes[0].keys = Some(chain(&[2]));
    net.nodes[0].vlans = [7].into_iter().collect();
    net.boot(0, true);
    net.run_to(net.now_ns + 10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("with another key: {what}"));
    net.run_to(net.now_ns + 70 * NS_PER_S);
    assert!(net.nodes.iter().all(|node| node.bridge.as_ref().unwrap().lsdb().len() == 6));
}

#[test]
fn who_has_another_key_stays_outside() {
    let mut net = Net::new(&Topology::paper(), 62, fast());
    for node in 0..6 {
        let other = Key::new(1, Algorithm::HmacSha256, vec![0x66; 16]).unwrap();
        let keys = if node == 5 { KeyChain::new(vec![other]).unwrap() } else { chain(&[1]) };
        net.nodes[node].keys = Some(keys);
        net.boot(node, false);
    }
    net.run_to(20 * NS_PER_S);
    let bridge = |node: usize| net.nodes[node].bridge.as_ref().unwrap();
    assert_eq!(bridge(5).adjacencies().count(), 0);
    assert!((0..5).all(|node| bridge(node).lsdb().len() == 5 && bridge(node).forwarding().routes.len() == 4));
    assert!(bridge(0).counters().dropped.get(DropReason::AuthDigest) > 10);
    assert_eq!(bridge(5).lsdb().len(), 1);
}

/// Somebody on a link, without a key: withdrawals of everybody's LSPs, and Hellos that would end the adjacency.
#[test]
fn without_a_key_nothing_is_withdrawn_and_nobody_is_cut_off() {
    let mut net = campus(&Some(chain(&[1])));
    let snapshot = |net: &Net| -> Vec<(u64, Vec<(LspId, u32)>)> {
        let of = |node: &super::net::Node| {
            let lsdb = node.bridge.as_ref().unwrap().lsdb().iter().map(|(id, entry)| (id, entry.sequence()));
            (node.changes, lsdb.collect())
        };
        net.nodes.iter().map(of).collect()
    };
    let before = snapshot(&net);
    for (id, sequence) in before[0].1.clone() {
        for sequence in [sequence, sequence + 1, u32::MAX] {
            let flags = LspFlags::LEVEL_1;
            let purge = Pdu::Lsp(Lsp { lifetime_s: 0, id, sequence, flags, tlvs: vec![] }).into_bytes();
            (0..2).for_each(|end| net.forge(0, end, &purge));
        }
    }
    for end in 0..2 {
        let mut down = hello(9, HandshakeState::Down, None, 0);
        down.source = net.nodes[net.links[0].ends[end].0].system;
        net.forge(0, end, &down.into_bytes());
    }
    net.run_to(net.now_ns + 10 * NS_PER_S);
    assert_eq!((snapshot(&net), refused(&net)), (before, 6 * 6 + 2));
    let reported = |(_, adjacency): (PortId, &weft_control::isis::Adjacency)| adjacency.state == AdjacencyState::Report;
    assert!(net.nodes.iter().all(|node| node.bridge.as_ref().unwrap().adjacencies().all(reported)));
}
