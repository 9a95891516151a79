//! Reports of ToRs: who is corrected, with what, and why nobody is.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_control::NS_PER_MS;
use weft_control::address::Locator;
use weft_control::directory::{
    Batch, Change, Correction, CorrectionLimits, Corrector, CorrectorConfig, KeyRing, PolicyChange, Report, Reported,
    Request, Stale, Table, Update,
};
use weft_wire::directory::{Entry, Kind, Message, Path, Secret, Status, View};

const SECRET: Secret = Secret::from_bytes([7; 16]);
const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, 2), 5300);
const ANYCAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);
/// Of service 5, at host 10.64.0.2 behind ToR 1.
const SENDER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
/// Of service 5, moved from ToR 2 to ToR 3.
const MOVED: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 2);

fn tor(k: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, k)
}

fn host(k: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 64, 0, k)
}

fn set(aa: Ipv4Addr, at: u8, service: u32, host_la: Option<Ipv4Addr>) -> Update {
    let locator = Locator { tor_la: tor(at), anycast_la: ANYCAST };
    Update { change: Change::Set { locator, service, host_la }, ..Update::delete(aa) }
}

fn table() -> Table {
    let mut table = Table::default();
    let updates = vec![set(SENDER, 1, 5, Some(host(2))), set(MOVED, 2, 5, Some(host(3)))];
    table.apply(1, &Batch::of(Request::once(updates)));
    table.apply(2, &Batch::of(Request::once(vec![set(MOVED, 3, 5, Some(host(4)))])));
    table
}

fn config() -> CorrectorConfig {
    CorrectorConfig {
        local: LOCAL,
        agent_port: 5301,
        tor_las: Some((1..=9).map(tor).collect()),
        keys: KeyRing::new([(1, SECRET)]),
        limits: CorrectionLimits::default(),
    }
}

fn report(from: Ipv4Addr, stale: &[(Ipv4Addr, Ipv4Addr)]) -> Report {
    let stale = stale.iter().map(|(aa, source_aa)| Stale { aa: *aa, source_aa: *source_aa }).collect();
    Report { tor_la: from, stale }
}

fn corrections(corrector: &mut Corrector, now_ns: u64, table: &Table, report: &Report) -> Vec<Correction> {
    let mut corrections = Vec::new();
    corrector.report(now_ns, table, report, &mut corrections);
    corrections
}

/// The message of a correction to the agent of this service, its tag verified.
fn read(correction: &Correction, service: u32) -> Message {
    let view = View::new(&correction.datagram).unwrap();
    let key = SECRET.derive(service, *correction.to.ip());
    view.verify(&key, &Path { source: LOCAL, destination: correction.to }).unwrap();
    view.to_message()
}

fn only(count: Reported, of: &Corrector, number: u64) {
    assert_eq!((of.counts().get(count), of.counts().total()), (number, number), "{count:?}");
}

#[test]
fn the_agent_that_uses_a_stale_mapping_is_told_where_the_aa_is() {
    let mut corrector = Corrector::new(config());
    let sent = corrections(&mut corrector, 0, &table(), &report(tor(2), &[(MOVED, SENDER)]));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].to, SocketAddrV4::new(host(2), 5301));
    let entry = Entry { aa: MOVED, tor_la: tor(3), anycast_la: ANYCAST, status: Status::Ok, version: 2 };
    let expected =
        Message { kind: Kind::Correct, service: 5, request_id: 0, revision: 2, key_id: 1, entries: vec![entry] };
    assert_eq!(read(&sent[0], 5), expected);
    only(Reported::Corrected, &corrector, 1);
}

#[test]
fn a_deleted_aa_is_taken_away_and_one_out_of_reach_looks_like_none() {
    let mut table = table();
    let mut entry_told = |request: Request| {
        table.apply(table.revision() + 1, &Batch::of(request));
        let mut corrector = Corrector::new(config());
        read(&corrections(&mut corrector, 0, &table, &report(tor(2), &[(MOVED, SENDER)]))[0], 5).entries[0]
    };
    let foreign = entry_told(Request::once(vec![set(MOVED, 3, 6, None)]));
    assert_eq!(foreign, Entry { status: Status::Unknown, ..Entry::question(MOVED, 0) });
    let allowed = entry_told(Request::rules(vec![PolicyChange { from_service: 5, to_service: 6, allow: true }]));
    assert_eq!((allowed.status, allowed.tor_la, allowed.version), (Status::Ok, tor(3), 3));
    let deleted = entry_told(Request::once(vec![Update::delete(MOVED)]));
    assert_eq!(deleted, Entry { status: Status::Unknown, ..Entry::question(MOVED, 5) });
}

#[test]
fn claims_that_do_not_check_out_correct_nobody() {
    let mut table = table();
    let gone = Ipv4Addr::new(20, 0, 0, 8);
    let hostless = Ipv4Addr::new(20, 0, 0, 9);
    let updates = vec![set(gone, 1, 5, Some(host(2))), set(hostless, 1, 5, None)];
    table.apply(3, &Batch::of(Request::once(updates)));
    table.apply(4, &Batch::of(Request::once(vec![Update::delete(gone)])));
    let never = Ipv4Addr::new(20, 9, 9, 9);
    for (from, stale, reason) in [
        (Ipv4Addr::new(10, 64, 0, 77), (MOVED, SENDER), Reported::UnknownReporter),
        (tor(3), (MOVED, SENDER), Reported::StillThere),
        (tor(2), (never, SENDER), Reported::UnknownAa),
        (tor(2), (MOVED, never), Reported::UnknownSource),
        (tor(2), (MOVED, gone), Reported::UnknownSource),
        (tor(2), (MOVED, hostless), Reported::NoAgent),
    ] {
        let mut corrector = Corrector::new(config());
        assert_eq!(corrections(&mut corrector, 0, &table, &report(from, &[stale])), [], "{reason:?}");
        only(reason, &corrector, 1);
    }
    let anybody = CorrectorConfig { tor_las: None, ..config() };
    let from = Ipv4Addr::new(10, 64, 0, 77);
    assert_eq!(corrections(&mut Corrector::new(anybody), 0, &table, &report(from, &[(MOVED, SENDER)])).len(), 1);
}

#[test]
fn entries_for_one_agent_share_a_datagram_and_others_get_their_own() {
    let mut table = table();
    let second = Ipv4Addr::new(20, 0, 0, 3);
    let third = Ipv4Addr::new(20, 0, 0, 4);
    table.apply(3, &Batch::of(Request::once(vec![set(second, 1, 0, Some(host(5))), set(third, 3, 5, None)])));
    let stale = [(MOVED, SENDER), (MOVED, second), (third, SENDER), (third, second)];
    let sent = corrections(&mut Corrector::new(config()), 0, &table, &report(tor(2), &stale));
    let told: Vec<_> = sent
        .iter()
        .zip([5, 0])
        .map(|(correction, service)| (correction.to, read(correction, service).entries.iter().map(|e| e.aa).collect()))
        .collect::<Vec<(SocketAddrV4, Vec<Ipv4Addr>)>>();
    let at = |k| SocketAddrV4::new(host(k), 5301);
    assert_eq!(told, [(at(2), vec![MOVED, third]), (at(5), vec![MOVED, third])]);
}

#[test]
fn while_secrets_are_replaced_an_agent_is_told_with_either_key() {
    let new = Secret::from_bytes([8; 16]);
    let keys = KeyRing::new([(2, new.clone()), (1, SECRET)]);
    let mut corrector = Corrector::new(CorrectorConfig { keys, ..config() });
    let sent = corrections(&mut corrector, 0, &table(), &report(tor(2), &[(MOVED, SENDER)]));
    assert_eq!(sent.len(), 2);
    let verifies = |correction: &Correction, secret: &Secret| {
        let path = Path { source: LOCAL, destination: correction.to };
        View::new(&correction.datagram).unwrap().verify(&secret.derive(5, host(2)), &path).is_ok()
    };
    assert!(verifies(&sent[0], &new) && verifies(&sent[1], &SECRET));
    only(Reported::Corrected, &corrector, 1);
}

#[test]
fn one_agent_hears_about_one_aa_once_in_20_ms() {
    let mut corrector = Corrector::new(config());
    let (table, report) = (table(), report(tor(2), &[(MOVED, SENDER), (MOVED, SENDER)]));
    for (at_ms, told) in [(0, 1), (19, 0), (20, 1), (21, 0), (39, 0), (40, 1)] {
        let sent = corrections(&mut corrector, at_ms * NS_PER_MS, &table, &report);
        assert_eq!(sent.len(), told, "at {at_ms} ms");
    }
    assert_eq!(corrector.counts().get(Reported::Limited), 9);
}

#[test]
fn a_flood_is_bounded_for_one_agent_and_in_all() {
    let limits = CorrectionLimits { per_agent_max: 3, total_max: 5, ..CorrectionLimits::default() };
    let mut corrector = Corrector::new(CorrectorConfig { limits, ..config() });
    let mut table = table();
    let aa = |k| Ipv4Addr::new(20, 0, 1, k);
    let updates = (0..40).map(|k| set(aa(k), 4, 5, Some(host(100 + k)))).collect();
    table.apply(3, &Batch::of(Request::once(updates)));
    let to_one: Vec<_> = (0..40).map(|k| (aa(k), SENDER)).collect();
    let to_many: Vec<_> = (0..40).map(|k| (MOVED, aa(k))).collect();
    let mut told = |now_ns: u64, stale: &[_]| {
        let sent = corrections(&mut corrector, now_ns, &table, &report(tor(2), stale));
        sent.iter().map(|correction| read(correction, 5).entries.len()).sum::<usize>()
    };
    assert_eq!(told(0, &to_one), 3, "one agent");
    assert_eq!(told(1, &to_many), 2, "all agents");
    assert_eq!(told(99 * NS_PER_MS, &to_many), 0);
    assert_eq!(told(101 * NS_PER_MS, &to_many), 5, "in the next window again");
}
