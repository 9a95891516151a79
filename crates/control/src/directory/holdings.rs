//! What each service has in the table, and which rows of its deleted mappings go when they are too many.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::net::Ipv4Addr;

use super::hash::NumberHasher;
use super::table::Record;

/// Deleted mappings of a service whose rows are kept. A row keeps the AA its service's, and its version in order; after so
/// many others nobody who could care is left: the oldest goes.
pub const DELETED_MAX: usize = 4096;

/// Of every service that has a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    of: HashMap<u32, Holding, BuildHasherDefault<NumberHasher>>,
    /// Services with more than [`DELETED_MAX`].
    over: BTreeSet<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Holding {
    rows: usize,
    /// Deleted ones, those with the lowest version first.
    deleted: BTreeSet<(u64, Ipv4Addr)>,
}

impl Holdings {
    /// Rows of a service.
    pub(super) fn rows(&self, service: u32) -> usize {
        self.of.get(&service).map_or(0, |holding| holding.rows)
    }

    /// A row is there, in the place of the one before.
    pub(super) fn note(&mut self, aa: Ipv4Addr, before: Option<&Record>, record: &Record) {
        let lives = |record: &Record| record.locator.is_some();
        if before.is_some_and(|before| before.service == record.service && lives(before) && lives(record)) {
            return;
        }
        if let Some(before) = before {
            self.drop(aa, before);
        }
        let holding = self.of.entry(record.service).or_default();
        holding.rows += 1;
        if !lives(record) {
            holding.deleted.insert((record.version, aa));
            if holding.deleted.len() > DELETED_MAX {
                self.over.insert(record.service);
            }
        }
    }

    /// A row is no longer there.
    pub(super) fn drop(&mut self, aa: Ipv4Addr, record: &Record) {
        let Some(holding) = self.of.get_mut(&record.service) else { return };
        holding.rows -= 1;
        holding.deleted.remove(&(record.version, aa));
        if holding.deleted.len() <= DELETED_MAX {
            self.over.remove(&record.service);
        }
        if holding.rows == 0 {
            self.of.remove(&record.service);
        }
    }

    /// A deleted mapping whose row should go: the oldest of a service that has too many, if its version is no higher than
    /// `revision`. One that is would leave behind versions to come.
    pub(super) fn surplus(&self, revision: u64) -> Option<(u64, Ipv4Addr)> {
        let oldest = |service: &u32| self.of.get(service)?.deleted.first().copied();
        self.over.iter().filter_map(oldest).find(|(version, _)| *version <= revision)
    }
}
