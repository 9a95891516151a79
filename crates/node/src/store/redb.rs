//! The embedded store: one redb file, one durable commit per batch.
//!
//! Tables: `log` (revision -> record), `snapshot` (page number -> page), `numbers` (name -> number).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, WriteTransaction};
use weft_control::directory::record::{decode_batch, decode_snapshot, encode_batch, encode_snapshot};
use weft_control::directory::{Batch, Table};

use super::{Store, StoreError};

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const SNAPSHOT: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("snapshot");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Revision of the last record, of the snapshot, and up to which records are gone.
const LAST: &str = "last_revision";
const SNAPSHOT_AT: &str = "snapshot_revision";
const COMPACTED: &str = "compacted_revision";

/// Pages of the file kept in memory, bytes. The table itself is in memory anyway.
const CACHE_BYTES: usize = 16 << 20;

/// A log in one redb file.
pub struct RedbStore {
    path: PathBuf,
    /// `None` after a failure, until the file could be opened again.
    database: Option<Database>,
}

impl RedbStore {
    /// Opens the file, or makes it. A new log begins at a revision made from the time, so that agents which knew an
    /// earlier, lost store believe the new one.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX / 2);
        let mut store = Self { path, database: None };
        store.reopen(first)?;
        Ok(store)
    }

    fn reopen(&mut self, first: u64) -> Result<&Database, StoreError> {
        if self.database.is_none() {
            let database = Database::builder()
                .set_cache_size(CACHE_BYTES)
                .create(&self.path)
                .map_err(|error| self.opening(error))?;
            let new = is_new(&database);
            self.database = Some(database);
            if new {
                self.set_up(first)?;
            }
        }
        Ok(self.database.as_ref().expect("it was opened just now"))
    }

    fn set_up(&mut self, first: u64) -> Result<(), StoreError> {
        self.write("setting up", |transaction| {
            transaction.open_table(LOG)?;
            transaction.open_table(SNAPSHOT)?;
            let mut numbers = transaction.open_table(NUMBERS)?;
            numbers.insert(LAST, first)?;
            numbers.insert(COMPACTED, first)?;
            Ok(())
        })
    }

    fn opening(&self, error: DatabaseError) -> StoreError {
        let why = match error {
            DatabaseError::DatabaseAlreadyOpen => {
                "another process has it open; stop that process or choose another file".to_owned()
            }
            DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::StorageFull => {
                return StoreError::Full { path: self.path.clone() };
            }
            DatabaseError::Storage(StorageError::Io(error)) => match error.kind() {
                ErrorKind::NotFound => "its directory does not exist; create it first".to_owned(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::IsADirectory => {
                    format!("{error}; choose a file in a directory that this user may write to")
                }
                ErrorKind::InvalidData => format!("not a store ({error}); move the file away or name another"),
                _ => error.to_string(),
            },
            other => format!("{other}; move the file away or restore it from a copy"),
        };
        StoreError::Open { path: self.path.clone(), why }
    }

    /// One durable transaction: all of `work` or nothing.
    fn write<T>(
        &mut self,
        what: &'static str,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let outcome = self.try_write(work);
        outcome.map_err(|error| {
            // After a failed write redb wants the file opened anew.
            self.database = None;
            self.failure(what, error)
        })
    }

    fn try_write<T>(&self, work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>) -> Result<T, redb::Error> {
        let database = self.database.as_ref().ok_or(redb::Error::PreviousIo)?;
        let transaction = database.begin_write()?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    fn read<T>(
        &mut self,
        what: &'static str,
        work: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let database = self.reopen(0)?;
        let outcome = database.begin_read().map_err(redb::Error::from).and_then(|transaction| work(&transaction));
        outcome.map_err(|error| self.failure(what, error))
    }

    fn failure(&self, what: &'static str, error: redb::Error) -> StoreError {
        match error {
            redb::Error::Io(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                StoreError::Full { path: self.path.clone() }
            }
            error => StoreError::Io { path: self.path.clone(), what, why: error.to_string() },
        }
    }
}

/// Whether the file lacks our tables. One that has them is not written to, so that it opens on a full disk too.
fn is_new(database: &Database) -> bool {
    database
        .begin_read()
        .is_ok_and(|transaction| matches!(transaction.open_table(NUMBERS), Err(redb::TableError::TableDoesNotExist(_))))
}

fn number(table: &impl ReadableTable<&'static str, u64>, name: &'static str) -> Result<Option<u64>, redb::Error> {
    Ok(table.get(name)?.map(|value| value.value()))
}

impl Store for RedbStore {
    fn append(&mut self, batch: &Batch) -> Result<u64, StoreError> {
        self.reopen(0)?;
        let record = encode_batch(batch);
        self.write("appending", |transaction| {
            let mut numbers = transaction.open_table(NUMBERS)?;
            let revision = number(&numbers, LAST)?.unwrap_or(0) + 1;
            numbers.insert(LAST, revision)?;
            transaction.open_table(LOG)?.insert(revision, record.as_slice())?;
            Ok(revision)
        })
    }

    fn load(&mut self) -> Result<Table, StoreError> {
        let (revision, pages) = self.read("reading the snapshot", |transaction| {
            let numbers = transaction.open_table(NUMBERS)?;
            let began = number(&numbers, COMPACTED)?.unwrap_or(0);
            let revision = number(&numbers, SNAPSHOT_AT)?.unwrap_or(began);
            let mut pages = Vec::new();
            for page in transaction.open_table(SNAPSHOT)?.iter()? {
                pages.push(page?.1.value().to_vec());
            }
            Ok((revision, pages))
        })?;
        decode_snapshot(revision, pages.iter().map(Vec::as_slice)).map_err(|source| StoreError::Corrupt {
            path: self.path.clone(),
            revision,
            source,
        })
    }

    fn subscribe(&mut self, from: u64) -> Result<Vec<(u64, Batch)>, StoreError> {
        let (compacted, records) = self.read("reading the log", |transaction| {
            let compacted = number(&transaction.open_table(NUMBERS)?, COMPACTED)?.unwrap_or(0);
            let mut records = Vec::new();
            for record in transaction.open_table(LOG)?.range(from.saturating_add(1)..)? {
                let (revision, bytes) = record?;
                records.push((revision.value(), bytes.value().to_vec()));
            }
            Ok((compacted, records))
        })?;
        if from < compacted {
            return Err(StoreError::Compacted { from, compacted });
        }
        let decode = |(revision, bytes): (u64, Vec<u8>)| match decode_batch(&bytes) {
            Ok(batch) => Ok((revision, batch)),
            Err(source) => Err(StoreError::Corrupt { path: self.path.clone(), revision, source }),
        };
        records.into_iter().map(decode).collect()
    }

    fn snapshot(&mut self, table: &Table) -> Result<(), StoreError> {
        self.reopen(0)?;
        let pages = encode_snapshot(table);
        self.write("writing a snapshot", |transaction| {
            transaction.delete_table(SNAPSHOT)?;
            let mut snapshot = transaction.open_table(SNAPSHOT)?;
            for (index, page) in (0u32..).zip(&pages) {
                snapshot.insert(index, page.as_slice())?;
            }
            transaction.open_table(NUMBERS)?.insert(SNAPSHOT_AT, table.revision())?;
            Ok(())
        })
    }

    fn compact(&mut self, to: u64) -> Result<(), StoreError> {
        self.reopen(0)?;
        self.write("compacting", |transaction| {
            transaction.open_table(LOG)?.retain_in(..=to, |_, _| false)?;
            let mut numbers = transaction.open_table(NUMBERS)?;
            let before = number(&numbers, COMPACTED)?.unwrap_or(0);
            numbers.insert(COMPACTED, before.max(to))?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weft_control::address::Locator;
    use weft_control::directory::{Request, Update};

    use super::*;
    use crate::store::catch_up;

    fn batch(k: u8) -> Batch {
        let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) };
        Batch::of(Request::once(vec![Update::set(Ipv4Addr::new(20, 0, 0, k), locator)]))
    }

    fn recover(path: &Path) -> Table {
        let mut store = RedbStore::open(path).unwrap();
        let mut table = store.load().unwrap();
        catch_up(&mut store, &mut table).unwrap();
        table
    }

    #[test]
    fn what_was_appended_is_there_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let mut table = recover(&path);
        assert!(table.revision() > 1 << 50, "a new log begins at a revision made from the time");
        let mut store = RedbStore::open(&path).unwrap();
        for k in 1..=3 {
            let revision = store.append(&batch(k)).unwrap();
            assert_eq!(revision, table.revision() + 1);
            table.apply(revision, &batch(k));
        }
        drop(store);
        assert_eq!(recover(&path), table);
    }

    #[test]
    fn a_snapshot_and_compaction_keep_the_table_and_refuse_what_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let mut store = RedbStore::open(&path).unwrap();
        let mut table = store.load().unwrap();
        let began = table.revision();
        for k in 1..=5 {
            table.apply(store.append(&batch(k)).unwrap(), &batch(k));
        }
        store.snapshot(&table).unwrap();
        store.compact(table.revision()).unwrap();
        assert!(matches!(store.subscribe(began), Err(StoreError::Compacted { .. })));
        for k in 6..=7 {
            table.apply(store.append(&batch(k)).unwrap(), &batch(k));
        }
        assert_eq!(store.subscribe(table.revision() - 1).unwrap(), [(table.revision(), batch(7))]);
        drop(store);
        assert_eq!(recover(&path), table);
    }

    #[test]
    fn a_file_in_use_a_foreign_file_and_a_missing_directory_are_refused_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let refused = |path: &Path| RedbStore::open(path).err().expect("refused").to_string();
        let _first = RedbStore::open(&path).unwrap();
        assert!(refused(&path).contains("another process has it open"));
        let foreign = dir.path().join("foreign");
        std::fs::write(&foreign, vec![b'x'; 10_000]).unwrap();
        assert!(refused(&foreign).contains("move the file away"), "{}", refused(&foreign));
        assert!(refused(&dir.path().join("none/store")).contains("does not exist"));
        assert!(refused(dir.path()).contains("may write to"), "{}", refused(dir.path()));
    }
}
