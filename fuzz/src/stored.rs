//! Any bytes as what a store of the directory keeps: records of the log, pages of snapshots, and etcd's two small values.

use std::net::Ipv4Addr;

use weft_control::address::Locator;
use weft_control::directory::etcd::{Origin, Pointer};
use weft_control::directory::record::{decode_batch, decode_snapshot, encode_batch, encode_snapshot};
use weft_control::directory::{Authority, Batch, Change, PolicyChange, Request, Table, Update};

use crate::seeds::{Seed, changed};

/// Of the tables made here.
const REVISION: u64 = 100;
/// Bytes of what says how long a page is.
const LENGTH_LEN: usize = 2;

/// Any bytes as a record of the log, and as the values under etcd's keys: what is read comes back, and can be applied.
///
/// # Panics
/// When an invariant of a format is broken.
pub fn stored_record(bytes: &[u8]) {
    match decode_batch(bytes) {
        Ok(batch) => {
            let again = encode_batch(&batch);
            assert_eq!(decode_batch(&again).as_ref(), Ok(&batch), "written and read again");
            let mut table = Table::at(REVISION);
            table.apply(REVISION + 1, &batch);
            kept(&table);
        }
        Err(error) => one_line(&error.to_string()),
    }
    match Pointer::parse(bytes) {
        Ok(pointer) => assert_eq!(Pointer::parse(&pointer.value()), Ok(pointer)),
        Err(why) => one_line(&why),
    }
    if let Ok(origin) = Origin::parse(bytes, 7) {
        assert_eq!(origin.value(), bytes, "read and written again");
    }
}

/// Any bytes as the pages of a snapshot, each with its length in front: the table comes back.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn stored_snapshot(bytes: &[u8]) {
    match decode_snapshot(REVISION, pages(bytes)) {
        Ok(table) => kept(&table),
        Err(error) => one_line(&error.to_string()),
    }
}

/// A table comes back from its pages.
fn kept(table: &Table) {
    let pages = encode_snapshot(table);
    let again = decode_snapshot(table.revision(), pages.iter().map(Vec::as_slice));
    assert_eq!(again.as_ref(), Ok(table), "written and read again");
    let again = again.expect("it was just read");
    assert_eq!((again.hash(), again.mapped()), (table.hash(), table.mapped()));
}

/// The pages in `bytes`; the last one may be cut.
fn pages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_at_checked(LENGTH_LEN)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]])).min(rest.len());
        let (page, rest) = rest.split_at(length);
        bytes = rest;
        Some(page)
    })
}

fn one_line(text: &str) {
    assert!(!text.is_empty() && !text.contains('\n') && text.len() < 1000, "one line that can be read: {text}");
}

fn aa(k: u8) -> Ipv4Addr {
    Ipv4Addr::new(20, 0, 0, k)
}

fn set(k: u8, service: u32) -> Update {
    let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 0, 1) };
    let host_la = k.is_multiple_of(2).then_some(Ipv4Addr::new(10, 64, 0, k));
    Update { change: Change::Set { locator, service, host_la }, ..Update::set(aa(k), locator) }
}

fn batch() -> Batch {
    let by_service = Request {
        authority: Authority::Service(7),
        client: 5,
        sequence: 9,
        updates: vec![set(1, 7), set(2, 7), Update { if_version: Some(3), ..Update::delete(aa(3)) }],
        policy: Vec::new(),
    };
    let refused =
        Request { client: 6, sequence: 1, ..Request::once(vec![Update { if_version: Some(9), ..set(4, 0) }]) };
    let policy = vec![PolicyChange { from_service: 7, to_service: 8, allow: false }];
    Batch { requests: vec![by_service, refused, Request { policy, ..Request::once(Vec::new()) }] }
}

fn whole(pages: &[Vec<u8>]) -> Vec<u8> {
    let page = |page: &Vec<u8>| [&(page.len() as u16).to_be_bytes()[..], page].concat();
    pages.iter().flat_map(page).collect()
}

/// Records, pages and values of every format, good ones and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let in_target = |target| move |(name, bytes)| Seed { target, name, bytes };
    let records = records().into_iter().map(in_target("stored_record"));
    records.chain(snapshots().into_iter().map(in_target("stored_snapshot"))).collect()
}

fn records() -> Vec<(&'static str, Vec<u8>)> {
    let record = encode_batch(&batch());
    let pointer =
        br#"{"format":1,"revision":9,"pages":"weft/page/0000000000000009-01/","count":2,"previous":4}"#.to_vec();
    // Format 2 has no authorities: the first request's is behind format, kind and number of requests.
    let of_operator = encode_batch(&Batch::of(Request::once(vec![set(1, 0)])));
    let without_authority = [&[2][..], &of_operator[1..6], &of_operator[7..]].concat();
    vec![
        ("record", record.clone()),
        ("record-empty", encode_batch(&Batch::default())),
        ("record-of-an-operator", of_operator.clone()),
        ("record-format-2", without_authority.clone()),
        ("record-format-1", changed(&without_authority, 0, 1)),
        ("record-format-4", changed(&record, 0, 4)),
        ("record-cut", record[..record.len() - 1].to_vec()),
        ("record-and-a-byte", [&record[..], &[0]].concat()),
        ("record-unknown-authority", changed(&record, 6, 2)),
        ("record-of-a-thousand-million", changed(&of_operator, 2, 0x40)),
        ("snapshot-page", encode_snapshot(&table())[0].clone()),
        ("pointer", pointer.clone()),
        ("pointer-format-2", changed(&pointer, 10, b'2')),
        ("pointer-cut", pointer[..30].to_vec()),
        ("origin", vec![1, 0, 6, 0x4f, 0x12, 0x34, 0x56, 0x78, 0x9a]),
    ]
}

fn table() -> Table {
    let mut table = Table::at(REVISION);
    table.apply(REVISION + 1, &batch());
    table.apply(REVISION + 2, &Batch::of(Request::once(vec![Update::delete(aa(2))])));
    table
}

fn snapshots() -> Vec<(&'static str, Vec<u8>)> {
    let pages = encode_snapshot(&table());
    let good = whole(&pages);
    let twice = [&pages[..1], &pages[..1]].concat();
    let backwards: Vec<Vec<u8>> = pages.iter().rev().cloned().collect();
    vec![
        ("snapshot", good.clone()),
        ("empty", Vec::new()),
        ("a-page-twice", whole(&twice)),
        ("pages-backwards", whole(&backwards)),
        ("one-page", whole(&pages[..1])),
        ("cut", good[..good.len() - 1].to_vec()),
        ("page-of-no-bytes", vec![0, 0]),
        ("format-2", changed(&whole(&pages[..1]), LENGTH_LEN, 2)),
        ("record-in-a-snapshot", whole(&[encode_batch(&batch())])),
        ("kind-9", changed(&good, LENGTH_LEN + 1, 9)),
        ("forgotten", whole(&[vec![3, 5, 0, 0, 0, 0, 0, 0, 0, 77]])),
        ("unknown-flags", changed(&good, LENGTH_LEN + 6, 0xf0)),
    ]
}
