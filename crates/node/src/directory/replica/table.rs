//! The table twice, so that reading never waits (left-right): look-ups read one copy while the follower changes the
//! other; publishing swaps them.

use std::sync::{Arc, OnceLock};

use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};
use weft_control::directory::replica::Verdicts;
use weft_control::directory::{Batch, Table};

/// A change of both copies, one after the other.
pub(super) enum Change {
    /// A record of the log.
    Apply { revision: u64, batch: Arc<Batch>, verdicts: Arc<OnceLock<Verdicts>> },
    /// The state of a snapshot.
    Replace(Arc<Table>),
}

/// One copy.
#[derive(Clone)]
pub(super) struct Copy(Table);

impl Absorb<Change> for Copy {
    fn absorb_first(&mut self, change: &mut Change, _: &Self) {
        match change {
            Change::Apply { revision, batch, verdicts } => {
                // It is set here only.
                let _ = verdicts.set(self.0.apply(*revision, batch));
            }
            Change::Replace(table) => self.0 = Table::clone(table),
        }
    }

    fn absorb_second(&mut self, change: Change, _: &Self) {
        match change {
            Change::Apply { revision, batch, .. } => drop(self.0.apply(revision, &batch)),
            Change::Replace(table) => self.0 = Arc::unwrap_or_clone(table),
        }
    }

    fn sync_with(&mut self, first: &Self) {
        // Both are made from one table, and nothing changes before the first publishing.
        if self.0.revision() != first.0.revision() {
            self.0 = first.0.clone();
        }
    }
}

/// Makes the two copies.
pub(super) fn split(table: Table) -> (TableWriter, Tables) {
    let (mut writer, reader) = left_right::new_from_empty(Copy(table));
    writer.publish();
    (TableWriter(writer), Tables(reader.factory()))
}

/// The side of the follower.
pub(super) struct TableWriter(WriteHandle<Copy, Change>);

impl TableWriter {
    /// Applies records that follow each other and shows them all at once. Returns their verdicts.
    pub(super) fn apply(&mut self, records: &[(u64, Arc<Batch>)]) -> Vec<Verdicts> {
        let outcomes: Vec<_> = records
            .iter()
            .map(|(revision, batch)| {
                let verdicts = Arc::new(OnceLock::new());
                let theirs = Arc::clone(&verdicts);
                self.0.append(Change::Apply { revision: *revision, batch: Arc::clone(batch), verdicts: theirs });
                verdicts
            })
            .collect();
        self.0.publish();
        outcomes.iter().map(|verdicts| verdicts.get().cloned().unwrap_or_default()).collect()
    }

    /// Shows another table instead.
    pub(super) fn replace(&mut self, table: Table) {
        self.0.append(Change::Replace(Arc::new(table)));
        self.0.publish();
        // The second copy is replaced when it is next published; two copies are enough to keep.
        self.0.publish();
    }

    /// Reads what is shown.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        read(&self.0, look)
    }
}

/// Makes readers.
pub(super) struct Tables(ReadHandleFactory<Copy>);

impl Tables {
    pub(super) fn reader(&self) -> TableReader {
        TableReader(self.0.handle())
    }
}

/// Reads the table of a replica: each [`Self::read`] sees one revision, and never waits.
pub struct TableReader(ReadHandle<Copy>);

impl TableReader {
    /// Runs `look` on the table. It should be short: the writer waits for it before it shows the next revision but one.
    pub fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        read(&self.0, look)
    }
}

fn read<T>(handle: &ReadHandle<Copy>, look: impl FnOnce(&Table) -> T) -> T {
    match handle.enter() {
        Some(copy) => look(&copy.0),
        // Only after the end of the replica, of which a reader may be left.
        None => look(&Table::default()),
    }
}
