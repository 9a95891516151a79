//! What a client was told is kept: a writer killed in the middle of a write, and a disk that fills up.
#![allow(unsafe_code)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use common::*;
use weft_control::address::Locator;
use weft_control::directory::{Batch, Request, Table, Update};
use weft_node::client::LookupClient;
use weft_node::store::{RedbStore, Store, StoreError, catch_up};
use weft_wire::directory::Status;

const CHILD: &str = "WEFT_TEST_WRITER";

fn batch(number: u64) -> Batch {
    let locator = Locator { tor_la: Ipv4Addr::from(0x0a01_0000 + number as u32), anycast_la: ANYCAST };
    let updates =
        (0..32).map(|k| Update::set(Ipv4Addr::from(0x1400_0000 + (number as u32 * 32 + k) % 4096), locator)).collect();
    Batch::of(Request::once(updates))
}

fn recovered(path: &Path) -> (RedbStore, Table) {
    let store = RedbStore::open(path).unwrap();
    let mut table = store.load().unwrap();
    catch_up(&store, &mut table).unwrap();
    (store, table)
}

/// Not a test of its own: the process that [`a_killed_writer_loses_no_acknowledged_update`] kills.
#[test]
fn writer() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let (store, mut table) = recovered(Path::new(&path));
    let mut out = std::io::stdout();
    loop {
        let next = batch(table.revision() + 1);
        let revision = store.append(&next).unwrap();
        table.apply(revision, &next);
        writeln!(out, "acknowledged {revision}").unwrap();
        out.flush().unwrap();
        if revision % 50 == 0 {
            store.snapshot(&table).unwrap();
            store.compact(revision).unwrap();
        }
    }
}

#[test]
fn a_killed_writer_loses_no_acknowledged_update() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let (store, began) = recovered(&path);
    drop(store);
    let mut acknowledged = began.revision();
    for round in 0..10 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines.map_while(Result::ok) {
            // The first may stand behind what the test harness prints.
            if let Some((_, revision)) = line.split_once("acknowledged ") {
                acknowledged = revision.parse().unwrap();
                seen += 1;
            }
            if seen == 20 + round * 13 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen > 0, "the writer wrote");
        let (_store, table) = recovered(&path);
        assert!(table.revision() >= acknowledged, "round {round}: {} < {acknowledged}", table.revision());
        let mut expected = Table::at(began.revision());
        for revision in began.revision() + 1..=table.revision() {
            expected.apply(revision, &batch(revision));
        }
        assert_eq!(table, expected, "round {round}: the table is that of the log");
    }
}

/// Gives the calling thread mounts of its own and a file system of this size. False without the right to.
fn small_disk(at: &Path, size: &str) -> bool {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    if !weft_needs::root() {
        return false;
    }
    // SAFETY: this thread shares no descriptors or memory maps in a way that the new mount namespace could break.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    let options = std::ffi::CString::new(format!("size={size}")).unwrap();
    mount("weft-test", at, "tmpfs", MountFlags::empty(), options.as_c_str()).unwrap();
    true
}

/// Takes what is left of the disk.
fn fill(at: &Path) {
    let mut file = std::fs::File::create(at.join("filler")).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}

#[test]
fn a_full_disk_is_a_clean_error_and_keeps_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    if !small_disk(dir.path(), "8m") {
        return;
    }
    let path = dir.path().join("store.redb");
    let (store, mut table) = recovered(&path);
    let append = |store: &RedbStore, table: &mut Table| -> Result<(), StoreError> {
        let next = batch(table.revision() + 1);
        table.apply(store.append(&next)?, &next);
        Ok(())
    };
    append(&store, &mut table).unwrap();
    fill(dir.path());
    let error = loop {
        if let Err(error) = append(&store, &mut table) {
            break error;
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("disk is full") && !error.to_string().contains('\n'), "{error}");
    for _ in 0..3 {
        assert!(append(&store, &mut table).is_err(), "still full");
    }
    std::fs::remove_file(dir.path().join("filler")).unwrap();
    catch_up(&store, &mut table).unwrap();
    append(&store, &mut table).expect("space is back");
    drop(store);
    assert_eq!(recovered(&path).1, table);
}

#[test]
fn a_directory_server_on_a_full_disk_answers_on_and_refuses_updates() {
    let dir = tempfile::tempdir().unwrap();
    if !small_disk(dir.path(), "8m") {
        return;
    }
    let (config, key) = (loopback_config(dir.path()), client_key(dir.path()));
    let (daemon, mut admin) = start(&config);
    let aa = Ipv4Addr::new(20, 0, 0, 1);
    let revision = admin.set(mapping(aa, 1)).unwrap();
    fill(dir.path());
    let many = |k: u32| (0..1000).map(|i| mapping(Ipv4Addr::from(0x1401_0000 + k * 1000 + i), 2)).collect();
    let mut acknowledged = 1;
    let error = loop {
        match admin.set_many(many(acknowledged as u32 / 1000)) {
            Ok(_) => acknowledged += 1000,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the disk is full"), "{error}");
    let mut lookup = LookupClient::new(admin.status().unwrap().listen, Some(&key), 0, 0).unwrap();
    let answer = lookup.ask(&[aa], PATIENCE).unwrap();
    assert_eq!((answer.entries[0].status, answer.entries[0].version), (Status::Ok, revision));
    assert!(admin.status().unwrap().updates["failed"] >= 1);
    std::fs::remove_file(dir.path().join("filler")).unwrap();
    admin.set(mapping(aa, 2)).expect("space is back");
    let rows = admin.list().unwrap();
    assert!(rows.len() >= acknowledged, "{} of {acknowledged}", rows.len());
    drop(admin);
    daemon.finish().unwrap();
    let (_daemon, mut admin) = start(&config);
    assert_eq!(admin.list().unwrap(), rows, "everything acknowledged is there after a restart");
}
