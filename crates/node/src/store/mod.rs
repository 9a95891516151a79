//! Where the directory's log lives (VL2 4.3.2: the write-optimised tier behind the directory servers).
//!
//! A store keeps records, not mappings: one durable write carries a whole batch. The table is what
//! [`Table::apply`](weft_control::directory::Table::apply) makes of the latest snapshot and the records after it, so
//! every store gives every server the same table.

mod error;
#[cfg(feature = "etcd")]
mod etcd;
mod etcd_settings;
mod redb;

use std::time::Duration;

use weft_control::directory::{Batch, Table};

pub use self::error::StoreError;
#[cfg(feature = "etcd")]
pub use self::etcd::EtcdStore;
pub use self::etcd_settings::{EtcdSettings, EtcdTls};
pub use self::redb::RedbStore;

/// A log of batches with snapshots. Revisions rise with every record.
///
/// All of it may be called from several threads at once: appenders and a follower use one store together.
pub trait Store: Send + Sync {
    /// Appends a record and returns its revision. When this returns, the record survives a crash. Records that several
    /// threads append at once come into some order.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::outcome_unknown`] says whether the record may be in the log all the same.
    fn append(&self, batch: &Batch) -> Result<u64, StoreError>;

    /// The table of the latest snapshot; an empty one at the revision where the log began, if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load(&self) -> Result<Table, StoreError>;

    /// The records above revision `from`, whoever appended them. What is in the log when this is called comes first
    /// and without waiting.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] if some of them are gone: load the snapshot instead.
    fn follow(&self, from: u64) -> Result<Box<dyn Follower>, StoreError>;

    /// Keeps `table` as the latest snapshot, unless there is a later one.
    ///
    /// # Errors
    /// [`StoreError`]; then the earlier snapshot is still there.
    fn snapshot(&self, table: &Table) -> Result<(), StoreError>;

    /// Forgets records up to and including revision `to`, which a snapshot must cover. A store that others follow keeps
    /// the latest of them for followers that lag.
    ///
    /// # Errors
    /// [`StoreError`].
    fn compact(&self, to: u64) -> Result<(), StoreError>;

    /// Whether updates could be kept now: reachable, with a leader, writable.
    ///
    /// # Errors
    /// [`StoreError`]: why not.
    fn check(&self) -> Result<(), StoreError>;

    /// Reads again whatever it shows who it is by: certificate, key, password.
    ///
    /// # Errors
    /// [`StoreError`]; then it goes on with those that it had.
    fn renew(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether nobody but this process appends.
    fn sole_writer(&self) -> bool;

    /// Updates that fit into one record, in any case.
    fn updates_max(&self) -> usize;
}

/// Reads a log from some revision on.
pub trait Follower: Send {
    /// The next records, in order of their revisions, each once; none if none came within `timeout`.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] if this follower lags so far that records are gone: it is of no more use. After any
    /// other error it may be asked again.
    fn next(&mut self, timeout: Duration) -> Result<Vec<(u64, Batch)>, StoreError>;
}

/// Brings a table to the end of the log. Returns how many records were applied.
///
/// # Errors
/// [`StoreError`].
pub fn catch_up(store: &dyn Store, table: &mut Table) -> Result<usize, StoreError> {
    let mut follower = store.follow(table.revision())?;
    let mut count = 0;
    loop {
        let records = match follower.next(Duration::ZERO) {
            // The next time that is made good.
            Err(StoreError::Behind { .. }) => continue,
            records => records?,
        };
        if records.is_empty() {
            return Ok(count);
        }
        count += records.len();
        for (revision, batch) in &records {
            table.apply(*revision, batch);
        }
    }
}
