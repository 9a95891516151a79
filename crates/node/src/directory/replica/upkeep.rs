//! What happens beside the updates: is the store there, snapshots and compaction, and the paper's periodic comparison
//! of the table with the store as a safety net (VL2 4.3.2).

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};
use weft_control::directory::Table;
use weft_control::directory::replica::{Comparison, Part};

use super::shared::Shared;
use crate::store::StoreError;

/// How often the store is checked, and looked whether something else is due.
const EVERY: Duration = Duration::from_secs(1);
/// How long to wait for the table to reach what was loaded.
const REACH: Duration = Duration::from_secs(2);

/// What comparisons found.
#[derive(Default)]
pub(super) struct Comparisons {
    pub(super) compared: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) revision: AtomicU64,
}

/// Runs until everything ends.
pub(super) fn run(shared: &Shared) {
    while !shared.stopping() {
        let health = shared.store.check();
        shared.health().note(Part::Check, health.err().map(|error| error.to_string()));
        if shared.upkeep().snapshot_due() {
            keep(shared);
        }
        let began_ns = shared.clock.now_ns();
        if began_ns >= shared.upkeep().compare_at_ns() {
            if let Err(error) = compare(shared) {
                warn!(%error, "the table could not be compared with the store");
            }
            let now_ns = shared.clock.now_ns();
            shared.upkeep().compared(now_ns, now_ns - began_ns);
        }
        let queue = shared.queue();
        let (due, compare_at_ns) = {
            let upkeep = shared.upkeep();
            (upkeep.snapshot_due(), upkeep.compare_at_ns())
        };
        if !shared.stopping() && !due {
            let left = Duration::from_nanos(compare_at_ns.saturating_sub(shared.clock.now_ns())).min(EVERY);
            // Whoever wakes it, the loop looks again.
            let _woken = shared.to_keep.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Replaces the log by a snapshot.
fn keep(shared: &Shared) {
    shared.upkeep().begin_snapshot();
    match snapshot(shared) {
        Ok(revision) => info!(revision, "snapshot kept"),
        Err(error) => warn!(%error, "no snapshot; the log stays as it is"),
    }
}

fn snapshot(shared: &Shared) -> Result<u64, StoreError> {
    // A copy, so that the writer does not wait for the store.
    let table = shared.tables.reader().read(Table::clone);
    shared.store.snapshot(&table)?;
    shared.store.compact(table.revision())?;
    Ok(table.revision())
}

/// Builds the table anew from the store, up to the revision that is shown, and compares. The follower repairs.
fn compare(shared: &Shared) -> Result<(), StoreError> {
    let rebuilt = shared.store.load()?;
    let Some(shown) = shown(shared, rebuilt.revision()) else { return Ok(()) };
    let mut comparison = Comparison::new(rebuilt, shown);
    let mut follower = shared.store.follow(comparison.after())?;
    loop {
        let records = follower.next(Duration::ZERO)?;
        if records.is_empty() || !records.iter().all(|(at, batch)| comparison.take(*at, batch)) {
            break;
        }
    }
    let comparisons = &shared.comparisons;
    comparisons.compared.fetch_add(1, Ordering::Relaxed);
    comparisons.revision.store(shown.0, Ordering::Relaxed);
    if comparison.differs() {
        error!(revision = shown.0, stored = comparison.after(), "the table differs from the store and is loaded anew");
        comparisons.repaired.fetch_add(1, Ordering::Relaxed);
        shared.repair.store(true, Ordering::SeqCst);
    }
    Ok(())
}

/// Revision and hash of the table once it is at least at `revision`.
fn shown(shared: &Shared, revision: u64) -> Option<(u64, u64)> {
    let reader = shared.tables.reader();
    let deadline = Instant::now() + REACH;
    loop {
        let shown = reader.read(|table| (table.revision(), table.hash()));
        if shown.0 >= revision {
            return Some(shown);
        }
        if shared.stopping() || Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
