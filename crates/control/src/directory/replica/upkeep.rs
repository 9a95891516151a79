//! What is due beside the updates: snapshots, and the paper's comparison of the table with the store (VL2 4.3.2).

use super::super::{Batch, Table};

/// A comparison may take this share of the time, as one in so many.
const COMPARE_SHARE: u64 = 100;

/// When what is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpkeepBounds {
    /// Records after which a snapshot replaces the log.
    pub snapshot_records: u64,
    /// Updates after which a snapshot replaces the log.
    pub snapshot_updates: u64,
    /// How often the table is compared with the store. Less often if that takes long.
    pub compare_every_ns: u64,
}

/// What came since it was last done.
#[derive(Clone, Debug)]
pub struct Upkeep {
    bounds: UpkeepBounds,
    records: u64,
    updates: u64,
    compare_at_ns: u64,
}

impl Upkeep {
    /// Of a server that has applied so many records after the snapshot.
    pub fn new(bounds: UpkeepBounds, records: u64, now_ns: u64) -> Self {
        let compare_at_ns = now_ns.saturating_add(bounds.compare_every_ns);
        Self { bounds, records, updates: 0, compare_at_ns }
    }

    /// More was applied. Returns whether a snapshot is due.
    pub fn applied(&mut self, records: u64, updates: u64) -> bool {
        self.records += records;
        self.updates += updates;
        self.snapshot_due()
    }

    /// Whether a snapshot is due.
    pub fn snapshot_due(&self) -> bool {
        self.records >= self.bounds.snapshot_records || self.updates >= self.bounds.snapshot_updates
    }

    /// A snapshot is begun. If it fails, the next one is due when as much came again.
    pub fn begin_snapshot(&mut self) {
        (self.records, self.updates) = (0, 0);
    }

    /// When the table is to be compared next.
    pub fn compare_at_ns(&self) -> u64 {
        self.compare_at_ns
    }

    /// It was, and that took so long.
    pub fn compared(&mut self, now_ns: u64, took_ns: u64) {
        let pause_ns = self.bounds.compare_every_ns.max(took_ns.saturating_mul(COMPARE_SHARE));
        self.compare_at_ns = now_ns.saturating_add(pause_ns);
    }
}

/// A table that is built anew from the store, to be compared with the one that was shown at some time.
pub struct Comparison {
    rebuilt: Table,
    /// Revision and hash of the other.
    shown: (u64, u64),
}

impl Comparison {
    /// Begins with a snapshot that is not younger than what was shown.
    pub fn new(snapshot: Table, shown: (u64, u64)) -> Self {
        Self { rebuilt: snapshot, shown }
    }

    /// Where to read on in the log.
    pub fn after(&self) -> u64 {
        self.rebuilt.revision()
    }

    /// Takes the next record. Returns whether more are wanted.
    pub fn take(&mut self, revision: u64, batch: &Batch) -> bool {
        let wanted = revision <= self.shown.0;
        if wanted {
            self.rebuilt.apply(revision, batch);
        }
        wanted
    }

    /// Whether the table is another than what the store holds, after all records that were wanted.
    pub fn differs(&self) -> bool {
        (self.rebuilt.revision(), self.rebuilt.hash()) != self.shown
    }
}
