//! Sz: how long an LSP all RBridges of a campus take (RFC 6325 sections 4.3.1 and 4.3.2, RFC 7780 section 5), and the tests of
//! links that depend on it (RFC 7177 section 5).

use weft_control::isis::AdjacencyState::{Report, TwoWay};
use weft_control::isis::{AdjacencyState, Config, DropReason, Event, Input, Output};
use weft_control::{Machine, NS_PER_S};
use weft_wire::isis::hello::HandshakeState;
use weft_wire::isis::pdu::Mtu;
use weft_wire::isis::tlv::code;
use weft_wire::isis::{LspId, Pdu, Tlv};

use super::campus::{cable, fast};
use super::net::Net;
use super::oracle::Oracle;
use super::peer::{ME, Says, hello, lsp, system};
use super::topology::Topology;
use super::victim::{IntoBytes, Victim};

const OURS: u16 = 5000;

/// The LSP of a node, with this TLV instead of what else would say how long an LSP it takes.
fn said(id: LspId, sequence: u32, reach: &[(u8, u32)], tlv: Option<Tlv>) -> Vec<u8> {
    let Pdu::Lsp(mut lsp) = lsp(id, sequence, 1000, &Says { reach: reach.to_vec(), ..Says::default() }) else {
        panic!("an LSP")
    };
    lsp.tlvs.extend(tlv);
    Pdu::Lsp(lsp).into_bytes()
}

/// The neighbour, which has a link to node 3, takes LSPs of this length; the probes of the second after it says so.
fn neighbor_takes(victim: &mut Victim, sequence: u32, bytes: u16) -> Vec<(usize, Mtu)> {
    let tlv = Some(Tlv::LspBufferSize(bytes));
    victim.from(2, &said(system(2).lsp(0), sequence, &[(ME, 10), (3, 10)], tlv));
    probes(victim, 1)
}

fn with_sz(mtu_test: bool) -> Victim {
    let mut config = Config { lsp_buffer_bytes: OURS, ..Victim::config() };
    config.ports[0].mtu_test = mtu_test;
    Victim::of(config)
}

#[test]
fn sz_is_the_least_that_anybody_takes_whom_lsps_get_to() {
    let mut victim = with_sz(false);
    assert_eq!(victim.bridge.sz_bytes(), OURS, "nobody else is known");
    neighbor_takes(&mut victim, 1, 4000);
    assert_eq!(victim.bridge.sz_bytes(), 4000);
    let other = |code, value: &[u8]| Some(Tlv::Other { code, value: value.to_vec() });
    let size = |bytes| Some(Tlv::LspBufferSize(bytes));
    let cases = [
        (size(3000), 3000),
        (None, 1470),
        (size(1471), 1471),
        (size(1470), 1470),
        (size(1469), 1470),
        (size(0), 1470),
        (size(u16::MAX), 4000),
        (other(code::LSP_BUFFER_SIZE, &[]), 1470),
        (other(code::LSP_BUFFER_SIZE, &[0x0b]), 1470),
        (size(3500), 3500),
        (other(code::LSP_BUFFER_SIZE, &[0x0b, 0xb8, 0]), 1470),
        (size(3600), 3600),
    ];
    let mut sequence = 0;
    for (tlv, sz_bytes) in cases {
        sequence += 1;
        victim.from(2, &said(system(3).lsp(0), sequence, &[(2, 10)], tlv.clone()));
        victim.run(NS_PER_S);
        assert_eq!(victim.bridge.sz_bytes(), sz_bytes, "{tlv:?}");
    }
    // Fragment 0 alone says it, and who is not reached does not count.
    victim.from(2, &said(system(3).lsp(1), 1, &[], size(2000)));
    victim.from(2, &said(system(7).lsp(0), 1, &[(8, 10)], size(2000)));
    victim.from(2, &said(system(8).lsp(0), 1, &[(7, 10)], None));
    victim.run(NS_PER_S);
    assert_eq!(victim.bridge.sz_bytes(), 3600);
    victim.from(2, &said(system(3).lsp(0), 100, &[(2, 10)], None));
    victim.run(NS_PER_S);
    assert_eq!(victim.bridge.sz_bytes(), 1470);
    // Of two that one LSP says, the lesser counts, wherever it stands.
    for (sequence, numbers, sz_bytes) in [(101, [3300, 3200], 3200), (102, [3100, 3400], 3100)] {
        let Ok(Pdu::Lsp(mut twice)) = Pdu::parse(&said(system(3).lsp(0), sequence, &[(2, 10)], None)) else { panic!() };
        twice.tlvs.extend(numbers.map(Tlv::LspBufferSize));
        victim.from(2, &Pdu::Lsp(twice).into_bytes());
        victim.run(NS_PER_S);
        assert_eq!(victim.bridge.sz_bytes(), sz_bytes);
    }
    // The link to node 3 goes.
    victim.from(2, &said(system(2).lsp(0), 2, &[(ME, 10)], size(u16::MAX)));
    victim.run(NS_PER_S);
    assert_eq!(victim.bridge.sz_bytes(), OURS);
    assert!(told(&victim).contains(&Tlv::LspBufferSize(OURS)));
}

fn told(victim: &Victim) -> Vec<Tlv> {
    let Ok(Pdu::Lsp(lsp)) = Pdu::parse(victim.bridge.lsdb().get(system(ME).lsp(0)).unwrap().bytes()) else {
        panic!("an LSP")
    };
    lsp.tlvs
}

#[test]
fn who_takes_less_than_everybody_must_takes_that() {
    for ours in [0, 1469, 1470] {
        let mut victim = Victim::of(Config { lsp_buffer_bytes: ours, ..Victim::config() });
        neighbor_takes(&mut victim, 1, 4000);
        assert_eq!(victim.bridge.sz_bytes(), 1470);
        assert!(told(&victim).contains(&Tlv::LspBufferSize(1470)));
    }
}

/// The probes that leave within a time.
fn probes(victim: &mut Victim, time_s: u64) -> Vec<(usize, Mtu)> {
    let until_ns = victim.now_ns + time_s * NS_PER_S;
    let mut probes = Vec::new();
    while let Some(at_ns) = victim.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
        victim.now_ns = at_ns.max(victim.now_ns);
        victim.put(Input::Deadline);
        probes.extend(probes_of(&victim.outputs));
    }
    victim.now_ns = until_ns;
    probes
}

fn probes_of(outputs: &[Output]) -> Vec<(usize, Mtu)> {
    let probe = |output: &Output| {
        let Output::Send { pdu, .. } = output else { return None };
        if let Ok(Pdu::MtuProbe(probe)) = Pdu::parse(pdu) { Some((pdu.len(), probe)) } else { None }
    };
    outputs.iter().filter_map(probe).collect()
}

fn lengths(probes: &[(usize, Mtu)]) -> Vec<usize> {
    probes.iter().map(|(len_bytes, _)| *len_bytes).collect()
}

fn answer(victim: &mut Victim, probe: &Mtu) {
    victim.from(2, &Pdu::MtuAck(Mtu { ack_source: system(2), ..probe.clone() }).into_bytes());
}

/// How far the adjacency is, and what has passed.
fn link(victim: &Victim) -> (AdjacencyState, u16) {
    (victim.state(), victim.bridge.adjacencies().next().map_or(0, |(_, with)| with.tested_bytes))
}

/// One whose neighbour takes 4000 bytes, all of which the link carries.
fn tested() -> Victim {
    let mut victim = with_sz(true);
    let first = neighbor_takes(&mut victim, 1, 4000);
    assert_eq!(lengths(&first), [4000], "one with what it takes itself has ended");
    answer(&mut victim, &first[0].1);
    assert_eq!(link(&victim), (Report, 4000));
    assert!(probes(&mut victim, 30).is_empty());
    victim
}

#[test]
fn a_link_is_tested_anew_when_sz_grows_and_stays_meanwhile() {
    let mut victim = tested();
    for (sequence, sz_bytes) in [(2, 2000), (3, 3000), (4, 4000)] {
        let at_once = neighbor_takes(&mut victim, sequence, sz_bytes);
        assert_eq!(victim.bridge.sz_bytes(), sz_bytes);
        assert!(at_once.is_empty() && probes(&mut victim, 20).is_empty(), "it carries that");
    }
    let longer = neighbor_takes(&mut victim, 5, 4500);
    assert_eq!((lengths(&longer), link(&victim)), (vec![4500], (Report, 4000)));
    answer(&mut victim, &longer[0].1);
    assert_eq!(link(&victim), (Report, 4500));
    assert_eq!(victim.bridge.counters().events.get(Event::AdjacencyDown), 0);
    assert!(probes(&mut victim, 30).is_empty());
}

#[test]
fn a_test_that_sz_falls_below_ends() {
    let mut victim = tested();
    let longer = neighbor_takes(&mut victim, 2, 4500);
    let shorter = neighbor_takes(&mut victim, 3, 4400);
    assert_eq!(lengths(&longer), [4500]);
    assert_eq!(lengths(&shorter).last(), Some(&4400));
    answer(&mut victim, &longer[0].1);
    assert_eq!(link(&victim), (Report, 4000));
    assert_eq!(victim.dropped(DropReason::StrayAck), 1, "of a test that has ended");
    neighbor_takes(&mut victim, 4, 4000);
    assert!(probes(&mut victim, 30).is_empty(), "that has passed before");
    assert_eq!(link(&victim), (Report, 4000));
}

#[test]
fn a_link_that_does_not_carry_sz_leaves_report_until_it_does() {
    let mut victim = tested();
    let mut all = neighbor_takes(&mut victim, 2, 4500);
    all.extend(probes(&mut victim, 1));
    assert_eq!(link(&victim), (Report, 4000));
    all.extend(probes(&mut victim, 2));
    assert_eq!((link(&victim), lengths(&all)), ((TwoWay, 4000), vec![4500; 3]));
    answer(&mut victim, &all[2].1);
    assert_eq!(link(&victim), (TwoWay, 4000), "too late");
    assert_eq!(lengths(&probes(&mut victim, 14)), [4500; 3], "again after a while");
    assert!(neighbor_takes(&mut victim, 9, 4600).is_empty());
    assert_eq!(lengths(&probes(&mut victim, 13)), [4600; 3], "and with what is Sz then");
    // Sz falls to what passes, which is tested at once: the neighbour counts though no link leads to it.
    let fitting = neighbor_takes(&mut victim, 10, 4000);
    assert_eq!((victim.bridge.sz_bytes(), lengths(&fitting)), (4000, vec![4000]));
    answer(&mut victim, &fitting[0].1);
    assert_eq!(link(&victim), (Report, 4000));
    assert_eq!(victim.bridge.counters().events.get(Event::AdjacencyDown), 1);
}

/// A neighbour that does not hear us counts no more, and no link to it is tested; when it does again, what it said counts as
/// before, and what passed before does not.
#[test]
fn who_is_heard_anew_is_tested_anew() {
    let mut victim = tested();
    victim.from(2, &hello(2, HandshakeState::Down, None, 60_000).into_bytes());
    let none = probes(&mut victim, 3);
    assert_eq!((none.len(), victim.state(), victim.bridge.sz_bytes()), (0, AdjacencyState::Detect, OURS));
    victim.from(2, &hello(2, HandshakeState::Initializing, Some((ME, 1)), 60_000).into_bytes());
    assert_eq!(link(&victim), (TwoWay, 0));
    let anew = probes(&mut victim, 1);
    assert_eq!((victim.bridge.sz_bytes(), lengths(&anew).pop()), (4000, Some(4000)));
    answer(&mut victim, &anew.last().unwrap().1);
    assert_eq!(link(&victim), (Report, 4000));
}

#[test]
fn without_the_setting_nothing_is_tested() {
    let mut victim = with_sz(false);
    for (sequence, bytes) in [(1, 2000), (2, 4000), (3, 1470), (4, 4500)] {
        let at_once = neighbor_takes(&mut victim, sequence, bytes);
        assert!(at_once.is_empty() && probes(&mut victim, 20).is_empty());
    }
    assert_eq!(link(&victim), (Report, 0));
}

/// Four in a row, of which the first takes no long LSPs. When it goes, the last link, which does not carry them, goes as well, and
/// nobody has lost anything else.
#[test]
fn sz_grows_when_who_took_least_has_gone() {
    let topology = Topology { nodes: 4, cables: (1..4).map(|node| cable(node - 1, node)).collect(), lans: vec![] };
    let mut net = Net::new(&topology, 5, fast());
    net.mtu_test = true;
    net.links[2].mtu_bytes = 2000;
    (1..4).for_each(|node| net.nodes[node].lsp_buffer_bytes = 4000);
    (0..4).for_each(|node| net.boot(node, false));
    net.run_to(20 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    net.kill(0);
    net.set_link(0, false);
    net.run_to(net.now_ns + 20 * NS_PER_S);
    let links = |node: usize| {
        let bridge = net.nodes[node].bridge.as_ref().unwrap();
        (bridge.sz_bytes(), bridge.adjacencies().map(|(_, with)| (with.state, with.tested_bytes)).collect::<Vec<_>>())
    };
    let (whole, narrow) = ((Report, 4000), (TwoWay, 1470));
    assert_eq!([1, 2, 3].map(links), [vec![whole], vec![whole, narrow], vec![narrow]].map(|links| (4000, links)));
    let lost =
        [1, 2, 3].map(|node| net.nodes[node].bridge.as_ref().unwrap().counters().events.get(Event::AdjacencyDown));
    assert_eq!(lost, [1, 1, 1]);
}
