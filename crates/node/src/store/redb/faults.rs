//! The file on a disk that loses what was not synced, tears what it was writing, cannot sync, or is full: at each of its
//! operations once. Afterwards what was acknowledged is there, or opening the file says in one line that it cannot be.

use std::io::{Error, ErrorKind};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::Rng;
use rand_pcg::Pcg64;
use redb::StorageBackend;
use weft_control::address::Locator;
use weft_control::directory::{Batch, Request, Table, Update};

use super::RedbStore;
use crate::store::{Store, StoreError, catch_up};

/// What a disk writes at once, or not at all.
const SECTOR: usize = 512;
/// Records that a life of the store writes, and after which of them it takes a snapshot.
const RECORDS: u8 = 8;
const SNAPSHOT_AT: u8 = 5;

/// What goes wrong, at the operation with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The power fails.
    Power {
        at: u64,
    },
    /// The next so many writes find no room.
    Full {
        at: u64,
        writes: u64,
    },
    /// A sync fails. What it was to write is never written, although it can be read.
    Sync {
        at: u64,
    },
}

#[derive(Debug)]
struct State {
    /// What stays when the power fails.
    kept: Vec<u8>,
    /// What is read.
    shown: Vec<u8>,
    /// Written since the last sync: where, and what.
    unsynced: Vec<(usize, Vec<u8>)>,
    fault: Fault,
    operations: u64,
}

#[derive(Clone, Debug)]
struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn new(kept: Vec<u8>, fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(State::new(kept, fault))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// What is found after the power has failed: of what was not synced anything may be there or not, sector by sector.
    fn after_power_failure(&self, rng: &mut Pcg64) -> Vec<u8> {
        let state = self.state();
        let mut kept = state.kept.clone();
        // A file that had grown has zeros there.
        kept.resize(kept.len().max(state.shown.len()), 0);
        for (offset, bytes) in &state.unsynced {
            let all = rng.next_u64() % 4;
            for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                if all == 0 || all == 1 && rng.next_u64().is_multiple_of(2) {
                    let start = offset + number * SECTOR;
                    kept[start..start + sector.len()].copy_from_slice(sector);
                }
            }
        }
        kept
    }
}

impl State {
    fn new(kept: Vec<u8>, fault: Fault) -> Self {
        Self { shown: kept.clone(), kept, unsynced: Vec::new(), fault, operations: 0 }
    }

    fn begin(&mut self, write: bool) -> Result<(), Error> {
        self.operations += 1;
        let now = self.operations;
        match self.fault {
            Fault::Power { at } if now >= at => Err(Error::other("the power has failed")),
            Fault::Full { at, writes } if write && (at..at + writes).contains(&now) => {
                Err(ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.state().shown.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let state = self.state();
        let start = offset as usize;
        let bytes = state.shown.get(start..start + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut state = self.state();
        let grows = len as usize > state.shown.len();
        state.begin(grows)?;
        state.shown.resize(len as usize, 0);
        state.unsynced.retain(|(offset, bytes)| offset + bytes.len() <= len as usize);
        // A shorter file is shorter at once: the worst of what may be.
        let kept = state.kept.len().min(len as usize);
        state.kept.truncate(kept);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        let mut state = self.state();
        state.begin(false)?;
        let unsynced = std::mem::take(&mut state.unsynced);
        if state.fault == (Fault::Sync { at: state.operations }) {
            return Err(Error::other("input/output error"));
        }
        let len = state.shown.len();
        state.kept.resize(len, 0);
        for (offset, bytes) in unsynced {
            state.kept[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let start = offset as usize;
        if let Err(error) = state.begin(true) {
            if matches!(state.fault, Fault::Power { at } if at == state.operations)
                && start + data.len() <= state.shown.len()
            {
                // It was being written.
                state.unsynced.push((start, data.to_vec()));
            }
            return Err(error);
        }
        let end = start + data.len();
        state.shown.get_mut(start..end).ok_or(ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        state.unsynced.push((start, data.to_vec()));
        Ok(())
    }
}

fn open(disk: &Disk) -> Result<RedbStore, StoreError> {
    let disk = disk.clone();
    RedbStore::open_by(PathBuf::from("disk"), move |builder| builder.create_with_backend(disk.clone()))
}

fn batch(k: u8) -> Batch {
    let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) };
    Batch::of(Request::once((0..40).map(|aa| Update::set(Ipv4Addr::new(20, 0, k, aa), locator)).collect()))
}

/// What became of records.
#[derive(Default)]
struct Told {
    acknowledged: Vec<u8>,
    /// Of these nothing was changed, so it was said.
    refused: Vec<u8>,
}

/// A store lives: it appends, takes a snapshot, and goes on after each error.
fn live(disk: &Disk) -> Told {
    let mut told = Told::default();
    let Ok(store) = open(disk) else { return told };
    for k in 0..RECORDS {
        match store.append(&batch(k)) {
            Ok(_) => told.acknowledged.push(k),
            Err(error) if error.outcome_unknown() => {}
            Err(_) => told.refused.push(k),
        }
        if k == SNAPSHOT_AT {
            // What fails here, fails later, or is tried again later.
            let _ = table(&store).and_then(|table| {
                store.snapshot(&table)?;
                store.compact(table.revision())
            });
        }
    }
    told
}

fn table(store: &RedbStore) -> Result<Table, StoreError> {
    let mut table = store.load()?;
    catch_up(store, &mut table)?;
    Ok(table)
}

/// The table is there with all that was acknowledged, each record whole, and nothing of what was refused; or it is said in one
/// line that it is not. Returns whether it is there.
fn assert_kept(disk: &Disk, told: &Told, fault: Fault) -> bool {
    let found = open(disk).and_then(|store| table(&store));
    let table = match found {
        Ok(table) => table,
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("store disk") && !text.contains('\n'), "{fault:?}: {text}");
            return false;
        }
    };
    for k in 0..RECORDS {
        let there = (0..40).filter(|aa| table.mapping(Ipv4Addr::new(20, 0, k, *aa)).is_some()).count();
        assert!(there == 0 || there == 40, "{fault:?}: {there} of 40 mappings of record {k}");
        assert!(there == 40 || !told.acknowledged.contains(&k), "{fault:?}: record {k} was acknowledged and is lost");
        assert!(there == 0 || !told.refused.contains(&k), "{fault:?}: record {k} was refused and is there");
    }
    true
}

/// How many operations a life without a fault takes.
fn operations() -> u64 {
    let disk = Disk::new(Vec::new(), Fault::Nothing);
    let told = live(&disk);
    assert_eq!(told.acknowledged.len(), RECORDS as usize);
    assert!(assert_kept(&disk, &told, Fault::Nothing));
    let operations = disk.state().operations;
    assert!(operations > 20, "{operations}");
    operations
}

#[test]
fn what_was_acknowledged_outlives_a_power_failure_at_every_operation() {
    let mut rng = Pcg64::new(1, 1);
    for at in 1..=operations() {
        let fault = Fault::Power { at };
        let disk = Disk::new(Vec::new(), fault);
        let told = live(&disk);
        for _ in 0..4 {
            let after = Disk::new(disk.after_power_failure(&mut rng), Fault::Nothing);
            let there = assert_kept(&after, &told, fault);
            assert!(there || told.acknowledged.is_empty(), "{fault:?}: what was acknowledged cannot be read");
        }
    }
}

#[test]
fn a_disk_that_is_full_at_any_write_loses_nothing_and_the_store_goes_on() {
    let mut rng = Pcg64::new(2, 1);
    for writes in [1, 3, 1000] {
        for at in 1..=operations() {
            let fault = Fault::Full { at, writes };
            let disk = Disk::new(Vec::new(), fault);
            let told = live(&disk);
            disk.state().fault = Fault::Nothing;
            let there = assert_kept(&disk, &told, fault);
            assert!(there || told.acknowledged.is_empty(), "{fault:?}: there is room again");
            let after = Disk::new(disk.after_power_failure(&mut rng), Fault::Nothing);
            let there = assert_kept(&after, &told, fault);
            assert!(there || told.acknowledged.is_empty(), "{fault:?}: what was acknowledged cannot be read");
        }
    }
}

#[test]
fn a_sync_that_fails_loses_nothing_in_silence() {
    let mut rng = Pcg64::new(3, 1);
    for at in 1..=operations() {
        let fault = Fault::Sync { at };
        let disk = Disk::new(Vec::new(), fault);
        let told = live(&disk);
        let after = Disk::new(disk.after_power_failure(&mut rng), Fault::Nothing);
        assert_kept(&after, &told, fault);
    }
}

#[test]
fn a_file_that_is_gone_is_not_begun_anew_by_a_server_that_runs() {
    let disk = Disk::new(Vec::new(), Fault::Nothing);
    let store = open(&disk).unwrap();
    store.append(&batch(0)).unwrap();
    let at = disk.state().operations + 1;
    disk.state().fault = Fault::Full { at, writes: 1000 };
    assert!(store.append(&batch(1)).is_err(), "it is opened anew for the next one");
    *disk.state() = State::new(Vec::new(), Fault::Nothing);
    let said = store.append(&batch(2)).unwrap_err().to_string();
    assert!(said.contains("it is empty, and was not"), "{said}");
}
