//! The embedded store: one redb file, one durable commit per batch.
//!
//! Tables: `log` (revision -> record), `snapshot` (page number -> page), `numbers` (name -> number).

#[cfg(test)]
mod faults;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
    WriteTransaction,
};
use weft_control::directory::record::{decode_batch, decode_snapshot, encode_batch, encode_snapshot};
use weft_control::directory::{Batch, Table};

use super::{Follower, Store, StoreError};

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const SNAPSHOT: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("snapshot");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Revision of the last record, of the snapshot, and up to which records are gone.
const LAST: &str = "last_revision";
const SNAPSHOT_AT: &str = "snapshot_revision";
const COMPACTED: &str = "compacted_revision";

/// Pages of the file kept in memory, bytes. The table itself is in memory anyway.
const CACHE_BYTES: usize = 16 << 20;
/// Records that a follower takes at a time.
const FOLLOW_AT_ONCE: usize = 256;
/// Updates in one record.
const UPDATES_MAX: usize = 65_536;

/// A log in one redb file.
pub struct RedbStore(Arc<File>);

impl RedbStore {
    /// Opens the file, or makes it. A new log begins at a revision made from the time, so that agents which knew an
    /// earlier, lost store believe the new one.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let file = path.clone();
        Self::open_by(path, move |builder| builder.create(&file))
    }

    /// Opens what `open` opens, now and whenever that must be done anew. `path` is what it is called.
    fn open_by(
        path: PathBuf,
        open: impl Fn(&Builder) -> Result<Database, DatabaseError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX / 2);
        let open = Box::new(open);
        let file = File { path, open, database: RwLock::new(None), appended: Mutex::new(0), more: Condvar::new() };
        file.reopen(Some(first))?;
        Ok(Self(Arc::new(file)))
    }
}

/// Opens what the log is in.
type Open = dyn Fn(&Builder) -> Result<Database, DatabaseError> + Send + Sync;

/// The file, shared by the store and its followers.
struct File {
    path: PathBuf,
    open: Box<Open>,
    /// `None` after a failure, until the file could be opened again. Transactions hold it shared, so that nothing uses
    /// the file any more when it is closed.
    database: RwLock<Option<Database>>,
    /// How often something was appended, to wake followers.
    appended: Mutex<u64>,
    more: Condvar,
}

impl File {
    /// Opens the file unless it is open. A new one begins at revision `first`; without that there must be one: a server that
    /// runs must not take an empty file for what it had.
    fn reopen(&self, first: Option<u64>) -> Result<(), StoreError> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if database.is_some() {
            return Ok(());
        }
        let opened = sound(|| (self.open)(Database::builder().set_cache_size(CACHE_BYTES)))
            .map_err(|error| self.opening(error))?;
        if is_new(&opened) {
            let Some(first) = first else {
                let why = "it is empty, and was not; restore it from a copy and restart this server".to_owned();
                return Err(StoreError::Open { path: self.path.clone(), why });
            };
            set_up(&opened, first).map_err(|error| self.failure("setting up", error))?;
        }
        *database = Some(opened);
        Ok(())
    }

    /// Runs one transaction on the open file. After a failed write redb wants the file opened anew, and what others had
    /// begun fails too: that is tried again.
    fn transact<T>(
        &self,
        what: &'static str,
        work: impl Fn(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let mut again = true;
        loop {
            self.reopen(None)?;
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            let outcome = database.as_ref().map_or(Err(redb::Error::PreviousIo), |open| sound(|| work(open)));
            drop(database);
            match outcome {
                Ok(value) => return Ok(value),
                Err(redb::Error::PreviousIo) if again => again = false,
                Err(error) => {
                    self.close();
                    return Err(self.failure(what, error));
                }
            }
            self.close();
        }
    }

    fn close(&self) {
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// One durable transaction: all of `work` or nothing.
    fn write<T>(
        &self,
        what: &'static str,
        work: impl Fn(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.transact(what, |database| {
            let transaction = database.begin_write()?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }

    fn read<T>(
        &self,
        what: &'static str,
        work: impl Fn(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.transact(what, |database| work(&database.begin_read()?))
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

    fn failure(&self, what: &'static str, error: redb::Error) -> StoreError {
        match error {
            redb::Error::Io(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                StoreError::Full { path: self.path.clone() }
            }
            error => StoreError::Io { path: self.path.clone(), what, why: error.to_string() },
        }
    }

    fn corrupt(&self, revision: u64) -> impl FnOnce(weft_control::directory::record::RecordError) -> StoreError {
        let path = self.path.clone();
        move |source| StoreError::Corrupt { path, revision, source }
    }

    /// Records above `from`, and up to which records are gone.
    fn log_after(&self, from: u64) -> Result<Vec<(u64, Batch)>, StoreError> {
        let (compacted, records) = self.read("reading the log", |transaction| {
            let compacted = number(&transaction.open_table(NUMBERS)?, COMPACTED)?.unwrap_or(0);
            let mut records = Vec::new();
            for record in transaction.open_table(LOG)?.range(from.saturating_add(1)..)?.take(FOLLOW_AT_ONCE) {
                let (revision, bytes) = record?;
                records.push((revision.value(), bytes.value().to_vec()));
            }
            Ok((compacted, records))
        })?;
        if from < compacted {
            return Err(StoreError::Compacted { from, compacted });
        }
        let decode = |(revision, bytes): (u64, Vec<u8>)| {
            decode_batch(&bytes).map(|batch| (revision, batch)).map_err(self.corrupt(revision))
        };
        records.into_iter().map(decode).collect()
    }
}

/// Runs `work` of redb, which panics when it meets pages that cannot be: a disk has lost what it said it had.
fn sound<T, E: From<StorageError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let damaged = |_| StorageError::Corrupted("it is damaged; restore it from a copy".to_owned()).into();
    catch_unwind(AssertUnwindSafe(work)).map_err(damaged).flatten()
}

fn set_up(database: &Database, first: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(LOG)?;
    transaction.open_table(SNAPSHOT)?;
    {
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(LAST, first)?;
        numbers.insert(COMPACTED, first)?;
    }
    transaction.commit()?;
    Ok(())
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
    fn append(&self, batch: &Batch) -> Result<u64, StoreError> {
        let record = encode_batch(batch);
        let revision = self.0.write("appending", |transaction| {
            let mut numbers = transaction.open_table(NUMBERS)?;
            let revision = number(&numbers, LAST)?.unwrap_or(0) + 1;
            numbers.insert(LAST, revision)?;
            transaction.open_table(LOG)?.insert(revision, record.as_slice())?;
            Ok(revision)
        })?;
        *self.0.appended.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.more.notify_all();
        Ok(revision)
    }

    fn load(&self) -> Result<Table, StoreError> {
        let (revision, pages) = self.0.read("reading the snapshot", |transaction| {
            let numbers = transaction.open_table(NUMBERS)?;
            let began = number(&numbers, COMPACTED)?.unwrap_or(0);
            let revision = number(&numbers, SNAPSHOT_AT)?.unwrap_or(began);
            let mut pages = Vec::new();
            for page in transaction.open_table(SNAPSHOT)?.iter()? {
                pages.push(page?.1.value().to_vec());
            }
            Ok((revision, pages))
        })?;
        decode_snapshot(revision, pages.iter().map(Vec::as_slice)).map_err(self.0.corrupt(revision))
    }

    fn follow(&self, from: u64) -> Result<Box<dyn Follower>, StoreError> {
        let compacted = self.0.read("reading the log", |transaction| {
            Ok(number(&transaction.open_table(NUMBERS)?, COMPACTED)?.unwrap_or(0))
        })?;
        if from < compacted {
            return Err(StoreError::Compacted { from, compacted });
        }
        Ok(Box::new(RedbFollower { file: Arc::clone(&self.0), after: from }))
    }

    fn snapshot(&self, table: &Table) -> Result<(), StoreError> {
        let pages = encode_snapshot(table);
        self.0.write("writing a snapshot", |transaction| {
            let mut numbers = transaction.open_table(NUMBERS)?;
            if number(&numbers, SNAPSHOT_AT)?.is_some_and(|later| later >= table.revision()) {
                return Ok(());
            }
            numbers.insert(SNAPSHOT_AT, table.revision())?;
            transaction.delete_table(SNAPSHOT)?;
            let mut snapshot = transaction.open_table(SNAPSHOT)?;
            for (index, page) in (0u32..).zip(&pages) {
                snapshot.insert(index, page.as_slice())?;
            }
            Ok(())
        })
    }

    fn compact(&self, to: u64) -> Result<(), StoreError> {
        self.0.write("compacting", |transaction| {
            transaction.open_table(LOG)?.retain_in(..=to, |_, _| false)?;
            let mut numbers = transaction.open_table(NUMBERS)?;
            let before = number(&numbers, COMPACTED)?.unwrap_or(0);
            numbers.insert(COMPACTED, before.max(to))?;
            Ok(())
        })
    }

    fn check(&self) -> Result<(), StoreError> {
        self.0.read("reading the log", |transaction| {
            transaction.open_table(NUMBERS)?;
            Ok(())
        })
    }

    fn sole_writer(&self) -> bool {
        true
    }

    fn updates_max(&self) -> usize {
        UPDATES_MAX
    }
}

/// Reads the file again whenever this process has appended, and now and then: a failed append may be there too.
struct RedbFollower {
    file: Arc<File>,
    after: u64,
}

impl Follower for RedbFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<(u64, Batch)>, StoreError> {
        let deadline = Instant::now() + timeout;
        loop {
            let seen = *self.file.appended.lock().unwrap_or_else(PoisonError::into_inner);
            let records = self.file.log_after(self.after)?;
            if let Some((last, _)) = records.last() {
                self.after = *last;
                return Ok(records);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(records);
            }
            let appended = self.file.appended.lock().unwrap_or_else(PoisonError::into_inner);
            let _woken = self.file.more.wait_timeout_while(appended, left, |appended| *appended == seen);
        }
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
        let store = RedbStore::open(path).unwrap();
        let mut table = store.load().unwrap();
        catch_up(&store, &mut table).unwrap();
        table
    }

    #[test]
    fn what_was_appended_is_there_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let mut table = recover(&path);
        assert!(table.revision() > 1 << 50, "a new log begins at a revision made from the time");
        let store = RedbStore::open(&path).unwrap();
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
        let store = RedbStore::open(&path).unwrap();
        let mut table = store.load().unwrap();
        let began = table.revision();
        for k in 1..=5 {
            table.apply(store.append(&batch(k)).unwrap(), &batch(k));
        }
        store.snapshot(&table).unwrap();
        store.compact(table.revision()).unwrap();
        assert!(matches!(store.follow(began), Err(StoreError::Compacted { .. })));
        for k in 6..=7 {
            table.apply(store.append(&batch(k)).unwrap(), &batch(k));
        }
        let mut follower = store.follow(table.revision() - 1).unwrap();
        assert_eq!(follower.next(Duration::ZERO).unwrap(), [(table.revision(), batch(7))]);
        drop((follower, store));
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
