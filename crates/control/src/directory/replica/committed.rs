//! What subscribers are told of a record.

use std::net::Ipv4Addr;

use super::super::{Batch, PolicyChange, Record, Table};
use super::Verdicts;

/// What one record changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The record's revision.
    pub revision: u64,
    /// The AAs it touched, as they are after it; an AA may come twice.
    pub changed: Vec<(Ipv4Addr, Record)>,
    /// The changes of the policy in it, in their order.
    pub policy: Vec<PolicyChange>,
    /// Records up to this revision were skipped over: whoever follows must read the table again.
    pub gap: bool,
}

impl Committed {
    /// A record that `table` has applied, with these verdicts.
    pub fn of(table: &Table, revision: u64, batch: &Batch, verdicts: &Verdicts) -> Self {
        let good = || batch.requests.iter().zip(verdicts).filter(|(_, verdict)| **verdict == Ok(revision));
        let aas = good().flat_map(|(request, _)| request.updates.iter().map(|update| update.aa));
        Self {
            revision,
            changed: aas.filter_map(|aa| Some((aa, table.record(aa)?))).collect(),
            policy: good().flat_map(|(request, _)| request.policy.iter().copied()).collect(),
            gap: false,
        }
    }

    /// The table was taken over from a snapshot.
    pub fn gap(revision: u64) -> Self {
        Self { revision, changed: Vec::new(), policy: Vec::new(), gap: true }
    }

    /// Whether there is anything to tell.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.policy.is_empty() && !self.gap
    }
}
