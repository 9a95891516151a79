//! Where the directory's log lives (VL2 4.3.2: the write-optimised tier behind the directory servers).
//!
//! A store keeps records, not mappings: one durable write carries a whole batch. The table is what
//! [`Table::apply`](weft_control::directory::Table::apply) makes of the latest snapshot and the records after it, so
//! every store gives every server the same table.

mod redb;

use std::path::PathBuf;

use weft_control::directory::record::RecordError;
use weft_control::directory::{Batch, Table};

pub use self::redb::RedbStore;

/// A log of batches with snapshots. Revisions rise with every record.
pub trait Store: Send {
    /// Appends a record. When this returns, the record survives a crash. On an error it may or may not be in the log:
    /// ask [`Store::subscribe`] before anything else is appended.
    ///
    /// # Errors
    /// [`StoreError`].
    fn append(&mut self, batch: &Batch) -> Result<u64, StoreError>;

    /// The table of the latest snapshot; an empty one at the revision where the log began, if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load(&mut self) -> Result<Table, StoreError>;

    /// The records above revision `from`, in order.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] if some of them are gone: load the snapshot instead.
    fn subscribe(&mut self, from: u64) -> Result<Vec<(u64, Batch)>, StoreError>;

    /// Keeps `table` as the latest snapshot.
    ///
    /// # Errors
    /// [`StoreError`]; then the earlier snapshot is still there.
    fn snapshot(&mut self, table: &Table) -> Result<(), StoreError>;

    /// Forgets the records up to and including revision `to`, which a snapshot must cover.
    ///
    /// # Errors
    /// [`StoreError`].
    fn compact(&mut self, to: u64) -> Result<(), StoreError>;
}

/// Brings a table to the end of the log. Returns how many records were applied.
///
/// # Errors
/// [`StoreError`].
pub fn catch_up(store: &mut dyn Store, table: &mut Table) -> Result<usize, StoreError> {
    let records = store.subscribe(table.revision())?;
    for (revision, batch) in &records {
        table.apply(*revision, batch);
    }
    Ok(records.len())
}

/// What a store could not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("store {path}: {why}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// There is no room left.
    #[error("store {path}: the disk is full, nothing was changed; free space and try again")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("store {path}: {what} failed: {why}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The answer.
        why: String,
    },
    /// A stored record does not follow its format.
    #[error("store {path}, revision {revision}: {source}; restore the file from a copy")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in the log, or of which snapshot.
        revision: u64,
        /// What is wrong.
        source: RecordError,
    },
    /// Records that were asked for are gone.
    #[error("records above revision {from} were asked for, but those up to {compacted} are gone; load the snapshot")]
    Compacted {
        /// What was asked for.
        from: u64,
        /// What is gone.
        compacted: u64,
    },
}
