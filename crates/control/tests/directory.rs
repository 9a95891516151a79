//! The directory's state: updates, exactly-once, versions, stored bytes, datagrams.

use std::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;
use weft_control::address::{Locator, Mapping};
use weft_control::directory::policy::RULES_MAX;
use weft_control::directory::record::{RecordError, decode_batch, decode_snapshot, encode_batch, encode_snapshot};
use weft_control::directory::{
    Authority, Batch, Change, Ignored, KeyRing, PolicyChange, Reason, Received, Refusal, Report, Request, Responder,
    Stale, Table, Update,
};
use weft_wire::directory::{Entry, Key, Kind, Message, Path, Secret, Status};

const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 5);

fn locator(k: u8) -> Locator {
    Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) }
}

fn once(update: Update) -> Batch {
    Batch::of(Request::once(vec![update]))
}

fn refusal(reason: Reason) -> Refusal {
    Refusal::Update { number: 1, aa: AA, reason }
}

#[test]
fn a_mapping_is_set_replaced_and_deleted_with_rising_versions() {
    let mut table = Table::default();
    assert_eq!(table.apply(7, &once(Update::set(AA, locator(1)))), [Ok(7)]);
    assert_eq!(table.mapping(AA), Some(Mapping { locator: locator(1), version: 7 }));
    assert_eq!(table.apply(8, &once(Update::set(AA, locator(2)))), [Ok(8)]);
    assert_eq!(table.mapping(AA), Some(Mapping { locator: locator(2), version: 8 }));
    assert_eq!(table.apply(9, &once(Update::delete(AA))), [Ok(9)]);
    assert_eq!((table.mapping(AA), table.mapped()), (None, 0));
    assert_eq!(table.record(AA).unwrap().version, 9, "the version outlives the mapping");
    assert_eq!(table.apply(10, &once(Update::delete(AA))), [Err(refusal(Reason::NotFound))]);
    assert_eq!(table.revision(), 10, "a refused request is a record like any other");
}

#[test]
fn rows_of_deleted_mappings_go_in_the_end_and_versions_never_go_back() {
    let mut table = Table::default();
    let aas = |revision: u64| Ipv4Addr::from(0x1400_0000 + revision as u32);
    let mut revision = 0;
    for _ in 0..50_000 {
        revision += 1;
        table.apply(revision, &once(Update::set(aas(revision), locator(1))));
        revision += 1;
        table.apply(revision, &once(Update::delete(aas(revision - 1))));
    }
    assert!(table.records().len() < 10_000, "{} rows of nothing", table.records().len());
    assert_eq!((table.mapped(), table.record(aas(1))), (0, None));
    // What is set again after all that is newer than whatever anybody remembers of it.
    let back = Update { version: Some(2), ..Update::set(aas(1), locator(2)) };
    assert!(table.apply(revision + 1, &once(back))[0].is_err(), "it had this version already");
    table.apply(revision + 2, &once(Update::set(aas(1), locator(2))));
    assert_eq!(table.record(aas(1)).unwrap().version, revision + 2);
    // A table that was loaded goes on as the one that was kept, byte for byte.
    let pages = encode_snapshot(&table);
    let mut loaded = decode_snapshot(table.revision(), pages.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(loaded, table);
    for table in [&mut table, &mut loaded] {
        table.apply(revision + 3, &once(Update::delete(aas(1))));
    }
    assert_eq!((loaded.hash(), &loaded), (table.hash(), &table));
}

#[test]
fn an_explicit_version_must_rise_and_a_compared_one_must_fit() {
    let mut table = Table::default();
    table.apply(1, &once(Update { version: Some(100), ..Update::set(AA, locator(1)) }));
    let back = Update { version: Some(100), ..Update::set(AA, locator(2)) };
    assert_eq!(table.apply(2, &once(back)), [Err(refusal(Reason::VersionBack { version: 100, current: 100 }))]);
    let stale = Update { if_version: Some(99), ..Update::set(AA, locator(2)) };
    let mismatch = Reason::VersionMismatch { expected: 99, current: 100 };
    assert_eq!(table.apply(3, &once(stale)), [Err(refusal(mismatch))]);
    assert_eq!(table.mapping(AA).unwrap().locator, locator(1), "refused updates change nothing");
    let fits = Update { if_version: Some(100), ..Update::set(AA, locator(3)) };
    assert_eq!(table.apply(4, &once(fits)), [Ok(4)]);
    assert_eq!(table.mapping(AA), Some(Mapping { locator: locator(3), version: 101 }));
    let new = Update { if_version: Some(0), ..Update::set(Ipv4Addr::new(20, 0, 0, 6), locator(3)) };
    assert_eq!(table.apply(5, &once(new)), [Ok(5)]);
}

#[test]
fn a_request_is_all_or_nothing() {
    let mut table = Table::default();
    let request = Request::once(vec![Update::set(AA, locator(1)), Update::delete(Ipv4Addr::new(20, 0, 0, 6))]);
    let verdict = table.apply(1, &Batch::of(request)).remove(0);
    assert!(matches!(verdict, Err(Refusal::Update { number: 2, reason: Reason::NotFound, .. })), "{verdict:?}");
    assert_eq!(table.mapping(AA), None);
}

#[test]
fn a_repeated_request_is_applied_once_and_an_older_one_never() {
    let mut table = Table::default();
    let first = Request { client: 9, sequence: 1, ..Request::once(vec![Update::set(AA, locator(1))]) };
    let second = Request { client: 9, sequence: 2, ..Request::once(vec![Update::set(AA, locator(2))]) };
    assert_eq!(table.apply(1, &Batch::of(first.clone())), [Ok(1)]);
    assert_eq!(table.apply(2, &Batch::of(second.clone())), [Ok(2)]);
    assert_eq!(table.apply(3, &Batch::of(second)), [Ok(2)], "the first verdict comes again");
    let back = Refusal::SequenceBack { client: 9, sequence: 1, last: 2 };
    assert_eq!(table.apply(4, &Batch::of(first)), [Err(back)]);
    assert_eq!(table.mapping(AA), Some(Mapping { locator: locator(2), version: 2 }));
}

#[test]
fn a_refused_request_stays_refused_when_a_copy_of_it_comes_late() {
    let mut table = Table::default();
    let delete = Request { client: 9, sequence: 1, ..Request::once(vec![Update::delete(AA)]) };
    assert_eq!(table.apply(1, &Batch::of(delete.clone())), [Err(refusal(Reason::NotFound))]);
    table.apply(2, &once(Update::set(AA, locator(1))));
    assert_eq!(table.check(&delete), Err(refusal(Reason::NotFound)));
    let pages = encode_snapshot(&table);
    let mut restored = decode_snapshot(2, pages.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(table.apply(3, &Batch::of(delete.clone())), [Err(refusal(Reason::NotFound))]);
    assert_eq!(restored.apply(3, &Batch::of(delete.clone())), [Err(refusal(Reason::NotFound))]);
    assert_eq!((table.hash(), table.mapped()), (restored.hash(), 1));
    let next = Request { sequence: 2, ..delete };
    assert_eq!(table.apply(4, &Batch::of(next)), [Ok(4)]);
}

#[test]
fn remembered_clients_are_bounded_and_the_longest_silent_goes_first() {
    let mut table = Table::default();
    let ask = |client: u64, sequence| {
        let request = Request::once(vec![Update::set(AA, locator(client as u8))]);
        Batch::of(Request { client, sequence, ..request })
    };
    for client in 1..=4096 {
        table.apply(client, &ask(client, 1));
    }
    table.apply(5000, &ask(1, 2));
    table.apply(5001, &ask(5000, 1));
    assert_eq!(table.apply(5002, &ask(1, 2)), [Ok(5000)], "client 1 spoke lately and is remembered");
    assert_eq!(table.apply(5003, &ask(2, 1)), [Ok(5003)], "client 2 was silent longest and is forgotten");
}

#[test]
fn only_aas_with_a_mapping_are_listed() {
    let mut table = Table::default();
    let aa = |k| Ipv4Addr::new(20, 0, 0, k);
    for (revision, k) in (1..).zip([5, 1, 9, 3, 7, 4]) {
        table.apply(revision, &once(Update::set(aa(k), locator(k))));
    }
    table.apply(10, &once(Update::delete(aa(4))));
    let mut mapped = table.mapped_aas(|_| true);
    mapped.sort_unstable();
    assert_eq!(mapped, [1, 3, 5, 7, 9].map(aa));
}

fn question(version: u64) -> Entry {
    Entry::question(AA, version)
}

#[test]
fn answers_know_unknown_behind_and_ok() {
    let mut table = Table::default();
    assert_eq!(table.answer(question(0), 0, 0).status, Status::Unknown);
    assert_eq!(table.answer(question(0), 1, 0).status, Status::Behind);
    table.apply(5, &once(Update::set(AA, locator(1))));
    let Locator { tor_la, anycast_la } = locator(1);
    let ok = Entry { aa: AA, tor_la, anycast_la, status: Status::Ok, version: 5 };
    assert_eq!(table.answer(question(0), 5, 0), ok);
    assert_eq!(table.answer(question(5), 0, 0), ok);
    let behind = Entry { status: Status::Behind, ..question(6) };
    assert_eq!(table.answer(question(6), 0, 0), behind, "the asker knows a newer version");
    assert_eq!(table.answer(question(0), 6, 0), Entry { status: Status::Behind, ..question(0) });
    table.apply(6, &once(Update::delete(AA)));
    assert_eq!(table.answer(question(5), 0, 0), Entry { status: Status::Unknown, ..question(6) });
}

const SECRET: Secret = Secret::from_bytes([7; 16]);

fn responder() -> Responder {
    Responder { keys: KeyRing::new([(1, SECRET)]) }
}

/// The key of the asker at the path's source, of service 3.
fn key() -> Key {
    SECRET.derive(3, *path().source.ip())
}

fn answered(questions: usize) -> Result<Received, Ignored> {
    Ok(Received::Answered { questions })
}

fn path() -> Path {
    let end = |k, port| SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, k), port);
    Path { source: end(2, 40000), destination: end(9, 5300) }
}

fn ask(entries: Vec<Entry>) -> Message {
    Message { kind: Kind::Ask, service: 3, request_id: 77, revision: 0, key_id: 1, entries }
}

#[test]
fn a_question_becomes_its_answer_of_the_same_length() {
    let mut table = Table::default();
    table.apply(5, &once(Update::set(AA, locator(1))));
    let other = Ipv4Addr::new(20, 9, 9, 9);
    let mut datagram = ask(vec![question(0), Entry::question(other, 0)]).emit(&key(), &path());
    let length = datagram.len();
    assert_eq!(responder().respond(&table, &path(), &mut datagram), answered(2));
    assert_eq!(datagram.len(), length);
    let Locator { tor_la, anycast_la } = locator(1);
    let known = Entry { aa: AA, tor_la, anycast_la, status: Status::Ok, version: 5 };
    let unknown = Entry { status: Status::Unknown, ..Entry::question(other, 0) };
    let expected = Message { kind: Kind::Answer, revision: 5, ..ask(vec![known, unknown]) };
    assert_eq!(datagram, expected.emit(&key(), &path().reversed()));
}

#[test]
fn a_ping_is_answered_with_the_revision() {
    let ping = Message { kind: Kind::Ping, ..ask(Vec::new()) };
    let mut datagram = ping.emit(&key(), &path());
    assert_eq!(responder().respond(&Table::at(12), &path(), &mut datagram), answered(0));
    let pong = Message::parse(&datagram).unwrap();
    assert_eq!((pong.kind, pong.revision, pong.request_id), (Kind::Pong, 12, 77));
}

#[test]
fn what_must_not_be_answered_is_ignored_for_its_reason() {
    let respond = |message: &Message, key: &Key, path_used: &Path| {
        let mut datagram = message.emit(key, path_used);
        responder().respond(&Table::default(), &path(), &mut datagram)
    };
    let good = ask(vec![question(0)]);
    let key = key();
    assert_eq!(respond(&good, &key, &path()), answered(1));
    assert_eq!(respond(&good, &Key::from_bytes([8; 16]), &path()), Err(Ignored::Tag));
    assert_eq!(respond(&good, &Key::OPEN, &path()), Err(Ignored::Tag));
    assert_eq!(respond(&good, &key, &path().reversed()), Err(Ignored::Tag), "replayed from elsewhere");
    assert_eq!(respond(&Message { key_id: 2, ..good.clone() }, &key, &path()), Err(Ignored::KeyId));
    assert_eq!(respond(&Message { service: 4, ..good.clone() }, &key, &path()), Err(Ignored::Tag), "not its service");
    let of_another = SECRET.derive(3, Ipv4Addr::new(10, 64, 0, 3));
    assert_eq!(respond(&good, &of_another, &path()), Err(Ignored::Tag), "not its address");
    assert_eq!(respond(&Message { kind: Kind::Answer, ..good.clone() }, &key, &path()), Err(Ignored::Kind));
    let report = Message { kind: Kind::ReportStale, ..good.clone() };
    assert_eq!(respond(&report, &key, &path()), Err(Ignored::Service), "a service's, not a switch's");
    for cut in 0..good.buffer_len() {
        let mut datagram = good.emit(&key, &path());
        datagram.truncate(cut);
        assert_eq!(responder().respond(&Table::default(), &path(), &mut datagram), Err(Ignored::Length), "{cut}");
    }
    for bit in 0..good.buffer_len() * 8 {
        let mut datagram = good.emit(&key, &path());
        datagram[bit / 8] ^= 1 << (bit % 8);
        assert!(responder().respond(&Table::default(), &path(), &mut datagram).is_err(), "bit {bit}");
    }
}

fn any_locator() -> impl Strategy<Value = Locator> {
    (any::<u32>(), any::<u32>()).prop_map(|(tor, any)| Locator { tor_la: tor.into(), anycast_la: any.into() })
}

fn any_update() -> impl Strategy<Value = Update> {
    let change = prop_oneof![
        (any_locator(), any::<u32>(), any::<Option<u32>>()).prop_map(|(locator, service, host)| Change::Set {
            locator,
            service,
            host_la: host.map(Ipv4Addr::from),
        }),
        Just(Change::Delete)
    ];
    (0u32..64, change, any::<Option<u64>>(), proptest::option::of(0u64..1000)).prop_map(
        |(aa, change, if_version, version)| Update { aa: (0x1400_0000 + aa).into(), change, if_version, version },
    )
}

fn any_batch() -> impl Strategy<Value = Batch> {
    let rule = (0u32..4, 0u32..4, any::<bool>()).prop_map(|(from_service, to_service, allow)| PolicyChange {
        from_service,
        to_service,
        allow,
    });
    let policy = proptest::collection::vec(rule, 0..3);
    let authority = prop_oneof![Just(Authority::Operator), (0u32..3).prop_map(Authority::Service)];
    let request = (authority, 0u64..8, 0u64..20, proptest::collection::vec(any_update(), 0..6), policy).prop_map(
        |(authority, client, sequence, updates, policy)| Request { authority, client, sequence, updates, policy },
    );
    proptest::collection::vec(request, 0..6).prop_map(|requests| Batch { requests })
}

proptest! {
    #[test]
    fn a_record_reads_back_as_it_was_written(batch in any_batch()) {
        let bytes = encode_batch(&batch);
        prop_assert_eq!(decode_batch(&bytes), Ok(batch));
        for cut in 0..bytes.len() {
            prop_assert!(decode_batch(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn a_snapshot_replaces_the_log_before_it(batches in proptest::collection::vec(any_batch(), 1..20), cut in 0usize..20) {
        let mut whole = Table::default();
        let mut resumed = None;
        for (index, batch) in batches.iter().enumerate() {
            let revision = index as u64 + 1;
            whole.apply(revision, batch);
            if let Some(table) = &mut resumed {
                Table::apply(table, revision, batch);
            } else if index >= cut {
                let pages = encode_snapshot(&whole);
                resumed = Some(decode_snapshot(revision, pages.iter().map(Vec::as_slice)).unwrap());
            }
        }
        if let Some(resumed) = resumed {
            prop_assert_eq!(resumed.mapped(), resumed.records().iter().filter(|(_, r)| r.locator.is_some()).count());
            prop_assert_eq!(resumed.hash(), whole.hash());
            prop_assert_eq!(resumed, whole);
        }
    }

    #[test]
    fn versions_never_go_back(batches in proptest::collection::vec(any_batch(), 1..30)) {
        let mut table = Table::default();
        for (index, batch) in batches.iter().enumerate() {
            let before = table.records();
            table.apply(index as u64 + 1, batch);
            for (aa, old) in before {
                let new = table.record(aa).unwrap();
                prop_assert!(new.version > old.version || new == old, "{aa}: {old:?} -> {new:?}");
            }
        }
    }

    #[test]
    fn random_bytes_are_no_question_and_no_record(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
        prop_assert!(responder().respond(&Table::default(), &path(), &mut bytes.clone()).is_err());
        let _ = decode_batch(&bytes);
        let _ = decode_snapshot(1, [bytes.as_slice()].into_iter());
    }
}

#[test]
fn records_of_another_format_are_refused() {
    let mut bytes = encode_batch(&Batch::default());
    bytes.push(0);
    assert_eq!(decode_batch(&bytes), Err(RecordError::Long(1)));
    bytes[0] = 4;
    assert_eq!(decode_batch(&bytes), Err(RecordError::Format { format: 4, kind: 1 }));
    bytes[0] = 0;
    assert_eq!(decode_batch(&bytes), Err(RecordError::Format { format: 0, kind: 1 }));
    bytes[..2].copy_from_slice(&[2, 2]);
    assert_eq!(decode_batch(&bytes), Err(RecordError::Format { format: 2, kind: 2 }));
}

/// As the version before policy and hosts wrote them.
#[test]
fn records_and_pages_of_format_1_are_read() {
    let mut batch = vec![1, 1, 0, 0, 0, 1];
    batch.extend([0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2]); // client 9, sequence 2
    batch.extend([0, 0, 0, 1, 1, 20, 0, 0, 5, 10, 1, 0, 7, 10, 255, 255, 1, 0, 0, 0, 3]); // one update: set
    let change = Change::Set { locator: locator(7), service: 3, host_la: None };
    let update = Update { change, ..Update::delete(AA) };
    let expected = Request { client: 9, sequence: 2, ..Request::once(vec![update]) };
    assert_eq!(decode_batch(&batch), Ok(Batch::of(expected.clone())));
    let mut with_host = batch.clone();
    with_host[26] = 9;
    assert_eq!(decode_batch(&with_host), Err(RecordError::Flags(9)), "format 1 knew no hosts");

    let mut records = vec![1, 2, 0, 0, 0, 1, 1, 20, 0, 0, 5, 10, 1, 0, 7, 10, 255, 255, 1, 0, 0, 0, 3];
    records.extend([0, 0, 0, 0, 0, 0, 0, 8]); // version
    let clients =
        [&[1, 3, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2], &[0, 0, 0, 0, 0, 0, 0, 8]]
            .concat();
    let mut table = Table::at(7);
    table.apply(8, &Batch::of(expected));
    assert_eq!(decode_snapshot(8, [records.as_slice(), &clients].into_iter()), Ok(table));
    let policy = [1, 4, 0, 0, 0, 0];
    let error = RecordError::Format { format: 1, kind: 4 };
    assert_eq!(decode_snapshot(8, [policy.as_slice()].into_iter()), Err(error), "nor policy");
}

/// As the version before authorities wrote them.
#[test]
fn records_and_pages_of_format_2_are_read() {
    let client = [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2]; // client 9, sequence 2
    let deletes = [0, 0, 0, 1, 0, 20, 0, 0, 5, 0, 0, 0, 0]; // one update
    let rule = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 1];
    let batch = [&[2, 1, 0, 0, 0, 1][..], &client, &deletes, &rule].concat();
    let policy = vec![PolicyChange { from_service: 1, to_service: 2, allow: true }];
    let expected = Request { client: 9, sequence: 2, policy, ..Request::once(vec![Update::delete(AA)]) };
    assert_eq!(decode_batch(&batch), Ok(Batch::of(expected.clone())));

    let record = [&[2, 2, 0, 0, 0, 1, 0, 20, 0, 0, 5, 0, 0, 0, 3][..], &[0, 0, 0, 0, 0, 0, 0, 8]].concat();
    let refused = [&[3, 0, 0, 0, 1][..], &AA.octets(), &[0; 16]].concat(); // its first update: nothing to delete
    let clients = [&[2, 3, 0, 0, 0, 1][..], &client, &[0, 0, 0, 0, 0, 0, 0, 9], &refused].concat();
    let mut table = decode_snapshot(9, [record.as_slice(), &clients].into_iter()).unwrap();
    assert_eq!(table.record(AA).unwrap().version, 8);
    assert_eq!((table.rows(3), table.rows(0)), (1, 0));
    assert_eq!(table.apply(10, &Batch::of(expected)), [Err(refusal(Reason::NotFound))], "its client is known");
    assert_eq!(
        decode_snapshot(9, [[2, 5, 0, 0, 0, 0, 0, 0, 0, 1].as_slice()].into_iter()).unwrap_err(),
        RecordError::Format { format: 2, kind: 5 }
    );
}

/// It would be kept as version 1, and hashed as 0: servers would take their tables for different ones.
#[test]
fn a_row_of_version_0_is_refused() {
    let page =
        |version| [&[3, 2, 0, 0, 0, 1, 0, 20, 0, 0, 5, 0, 0, 0, 3][..], &[0, 0, 0, 0, 0, 0, 0, version]].concat();
    assert!(decode_snapshot(9, [page(1).as_slice()].into_iter()).is_ok());
    assert_eq!(decode_snapshot(9, [page(0).as_slice()].into_iter()).unwrap_err(), RecordError::Version);
}

#[test]
fn clients_of_one_authority_are_not_those_of_another() {
    let mut table = Table::default();
    let request = |service: u32, sequence: u64| Request {
        authority: Authority::Service(service),
        client: 9,
        sequence,
        ..Request::once(vec![set_of(Ipv4Addr::from(0x1400_0000 + service), service)])
    };
    assert_eq!(table.apply(1, &Batch::of(request(7, u64::MAX))), [Ok(1)]);
    assert_eq!(table.apply(2, &Batch::of(request(8, 1))), [Ok(2)]);
    assert_eq!(table.apply(3, &Batch::of(request(8, 1))), [Ok(2)], "once");
    for client in 100..10_000 {
        table.apply(client, &Batch::of(Request { client, ..request(7, 1) }));
    }
    assert_eq!(table.apply(10_000, &Batch::of(request(8, 1))), [Ok(2)], "another's clients crowd nobody out");
    let pages = encode_snapshot(&table);
    assert_eq!(decode_snapshot(10_000, pages.iter().map(Vec::as_slice)), Ok(table));
}

fn set_of(aa: Ipv4Addr, service: u32) -> Update {
    let change = Change::Set { locator: locator(1), service, host_la: None };
    Update { change, ..Update::delete(aa) }
}

fn rule(from_service: u32, to_service: u32, allow: bool) -> Batch {
    Batch::of(Request::rules(vec![PolicyChange { from_service, to_service, allow }]))
}

#[test]
fn what_an_asker_may_not_reach_looks_in_every_byte_like_what_never_was() {
    let (theirs, deleted, never) = (AA, Ipv4Addr::new(20, 0, 0, 6), Ipv4Addr::new(20, 0, 0, 7));
    let mut table = Table::default();
    table.apply(5, &Batch::of(Request::once(vec![set_of(theirs, 4), set_of(deleted, 4)])));
    table.apply(6, &once(Update::delete(deleted)));
    let ask = |table: &Table, aa, version, revision| {
        let mut datagram = Message { revision, ..ask(vec![Entry::question(aa, version)]) }.emit(&key(), &path());
        assert_eq!(responder().respond(table, &path(), &mut datagram), answered(1));
        // The AA that was asked for, and the tag that covers it.
        datagram[32..36].fill(0);
        datagram.truncate(datagram.len() - 16);
        datagram
    };
    for (version, revision) in [(0, 0), (0, 6), (0, 7), (3, 0), (5, 0), (5, 6), (9, 0), (9, 9)] {
        let nothing = ask(&table, never, version, revision);
        assert_eq!(ask(&table, theirs, version, revision), nothing, "version {version}, revision {revision}");
        assert_eq!(ask(&table, deleted, version, revision), nothing, "version {version}, revision {revision}");
    }
    assert_eq!(table.answer(question(0), 0, 4).status, Status::Ok, "its own service");
    assert_eq!(table.answer(question(0), 0, 0).status, Status::Ok, "the common service");
    table.apply(7, &rule(3, 4, true));
    assert_eq!(table.answer(question(0), 0, 3), table.answer(question(0), 0, 4));
    table.apply(8, &rule(3, 4, false));
    assert_eq!(table.answer(question(7), 0, 3), Entry { status: Status::Unknown, ..question(0) }, "taken back");
    table.apply(9, &rule(0, 4, false));
    assert_eq!(table.answer(question(0), 0, 0).status, Status::Unknown);
}

#[test]
fn the_policy_is_bounded() {
    let mut table = Table::default();
    let rules = |from: u32, to: std::ops::Range<u32>| {
        Batch::of(Request::rules(
            to.map(|to| PolicyChange { from_service: from, to_service: to, allow: true }).collect(),
        ))
    };
    let half = RULES_MAX as u32 / 2;
    assert_eq!(table.apply(1, &rules(1, 10..10 + half)), [Ok(1)]);
    assert_eq!(table.apply(2, &rules(2, 10..11 + half)), [Err(Refusal::PolicyFull { max: RULES_MAX })]);
    assert_eq!(table.apply(3, &rules(2, 10..10 + half)), [Ok(3)]);
    assert_eq!(table.apply(4, &rules(1, 10..20)), [Ok(4)], "nothing new");
    assert_eq!(table.apply(5, &rule(3, 4, true)), [Err(Refusal::PolicyFull { max: RULES_MAX })]);
    assert_eq!(table.apply(6, &rule(1, 10, false)), [Ok(6)]);
    assert_eq!(table.apply(7, &rule(3, 4, true)), [Ok(7)]);
    assert_eq!(table.policy().len(), RULES_MAX);
}

#[test]
fn a_report_is_for_the_corrector_and_gets_no_answer() {
    let stale = Stale { aa: AA, source_aa: Ipv4Addr::new(20, 0, 0, 9) };
    let entry = Entry { anycast_la: stale.source_aa, ..question(0) };
    let message = Message { kind: Kind::ReportStale, service: 0, ..ask(vec![entry, entry]) };
    let tor_la = *path().source.ip();
    let mut datagram = message.emit(&SECRET.derive(0, tor_la), &path());
    let report = Report { tor_la, stale: vec![stale, stale] };
    assert_eq!(responder().respond(&Table::default(), &path(), &mut datagram), Ok(Received::Report(report)));
}

#[test]
fn an_open_server_believes_everybody_and_a_closed_one_several_secrets() {
    let respond = |keys: KeyRing, key: Key, key_id| {
        let mut datagram = Message { key_id, ..ask(vec![question(0)]) }.emit(&key, &path());
        Responder { keys }.respond(&Table::default(), &path(), &mut datagram)
    };
    assert_eq!(respond(KeyRing::open(), Key::OPEN, 1), answered(1));
    assert_eq!(respond(KeyRing::open(), key(), 1), Err(Ignored::Tag));
    let new = Secret::from_bytes([8; 16]);
    let both = KeyRing::new([(2, new.clone()), (1, SECRET)]);
    assert_eq!(respond(both.clone(), key(), 1), answered(1));
    assert_eq!(respond(both.clone(), new.derive(3, *path().source.ip()), 2), answered(1));
    assert_eq!(respond(both.clone(), key(), 2), Err(Ignored::Tag));
    assert_eq!(respond(both, key(), 3), Err(Ignored::KeyId));
}

#[test]
fn equal_tables_have_equal_hashes_and_different_ones_different_hashes() {
    let mut seen = std::collections::BTreeSet::new();
    let base = Request::once(vec![set_of(AA, 1)]);
    let with = |change: Change| Request { updates: vec![Update { change, ..Update::delete(AA) }], ..base.clone() };
    let requests = [
        base.clone(),
        Request::once(vec![set_of(Ipv4Addr::new(20, 0, 0, 6), 1)]),
        with(Change::Set { locator: locator(2), service: 1, host_la: None }),
        with(Change::Set { locator: locator(1), service: 2, host_la: None }),
        with(Change::Set { locator: locator(1), service: 1, host_la: Some(Ipv4Addr::new(10, 64, 0, 2)) }),
        Request { updates: vec![Update { version: Some(9), ..set_of(AA, 1) }], ..base.clone() },
        Request { client: 1, sequence: 1, ..base.clone() },
        Request { client: 1, sequence: 2, ..base.clone() },
        Request { policy: vec![PolicyChange { from_service: 1, to_service: 2, allow: true }], ..base.clone() },
        Request { policy: vec![PolicyChange { from_service: 2, to_service: 1, allow: true }], ..base.clone() },
    ];
    for request in requests {
        let mut table = Table::default();
        table.apply(1, &Batch::of(request));
        assert!(seen.insert(table.hash()));
    }
    let (mut one, mut two) = (Table::default(), Table::default());
    one.apply(1, &Batch::of(base.clone()));
    two.apply(2, &Batch::of(base.clone()));
    assert_ne!(one.hash(), two.hash(), "another revision");
    let order = [set_of(AA, 1), set_of(Ipv4Addr::new(20, 0, 0, 6), 2)];
    let (mut one, mut two) = (Table::default(), Table::default());
    one.apply(1, &Batch::of(Request::once(order.to_vec())));
    two.apply(1, &Batch::of(Request::once(vec![order[1], order[0]])));
    assert_eq!(one.hash(), two.hash());
}
