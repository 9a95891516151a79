//! The simulated store: a log that is agreed on, whose leader comes and goes, and whose beginning is cut off.

use weft_control::directory::record::{decode_batch, encode_snapshot};

use super::{Event, Mutation, Origin, World};

/// A record of the log.
pub(super) struct Record {
    pub(super) revision: u64,
    pub(super) origin: Option<Origin>,
    pub(super) bytes: Vec<u8>,
}

/// The log.
#[derive(Default)]
pub(super) struct Store {
    /// All of it, from the beginning; servers cannot read what is compacted.
    pub(super) records: Vec<Record>,
    /// Revision and pages of the latest snapshot.
    pub(super) snapshot: Option<(u64, Vec<Vec<u8>>)>,
    /// Records up to this revision are gone.
    pub(super) compacted: u64,
    /// No leader until then: what arrives is lost.
    pub(super) down_until_ns: u64,
}

impl World {
    /// A record arrives. Nobody is told: servers see it in the log.
    pub(super) fn append(&mut self, origin: Origin, bytes: Vec<u8>) {
        if self.now_ns >= self.store.down_until_ns {
            self.commit(Some(origin), bytes);
        }
    }

    /// Adds a record to the log; servers hear of it a while later.
    pub(super) fn commit(&mut self, origin: Option<Origin>, bytes: Vec<u8>) {
        let revision = self.truth.table.revision() + 1 + self.below(3);
        let batch = decode_batch(&bytes).expect("a server wrote it");
        self.truth.commit(revision, &batch);
        self.store.records.push(Record { revision, origin, bytes });
        for server in 0..self.servers.len() {
            let lag_ns = self.below(self.faults.lag_max_ns);
            self.after(lag_ns, Event::Follow { server });
        }
    }

    /// The leader is lost, and with it what is on its way to it. What was agreed on stays.
    pub(super) fn leader_down(&mut self, lasts_ns: u64) {
        self.store.down_until_ns = self.now_ns + lasts_ns;
        if self.plan.mutation == Mutation::LoseLastRecord && self.store.records.len() > 1 {
            self.store.records.pop();
        }
    }

    /// A snapshot replaces the beginning of the log.
    pub(super) fn compact(&mut self) {
        let table = &self.truth.table;
        self.store.snapshot = Some((table.revision(), encode_snapshot(table)));
        self.store.compacted = table.revision();
    }
}
