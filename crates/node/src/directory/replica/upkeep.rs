//! What happens beside the updates: is the store there, snapshots and compaction, and the paper's periodic comparison
//! of the table with the store as a safety net (VL2 4.3.2).

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};
use weft_control::directory::Table;

use super::shared::Shared;
use crate::store::StoreError;

/// How often the store is checked, and looked whether something else is due.
const EVERY: Duration = Duration::from_secs(1);
/// A comparison may take this share of the time, as one in so many.
const COMPARE_SHARE: u32 = 100;
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
    let mut compare_at = Instant::now() + shared.settings.compare_every;
    while !shared.stopping() {
        let health = shared.store.check();
        Shared::note(&shared.check_error, health.err());
        if due(shared) {
            keep(shared);
        }
        if Instant::now() >= compare_at {
            let began = Instant::now();
            if let Err(error) = compare(shared) {
                warn!(%error, "the table could not be compared with the store");
            }
            compare_at = Instant::now() + shared.settings.compare_every.max(began.elapsed() * COMPARE_SHARE);
        }
        let queue = shared.queue();
        if !shared.stopping() && !due(shared) {
            let left = compare_at.saturating_duration_since(Instant::now()).min(EVERY);
            // Whoever wakes it, the loop looks again.
            let _woken = shared.to_keep.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn due(shared: &Shared) -> bool {
    shared.records_since.load(Ordering::Relaxed) >= shared.settings.snapshot_records
        || shared.updates_since.load(Ordering::Relaxed) >= shared.settings.snapshot_updates
}

/// Replaces the log by a snapshot.
fn keep(shared: &Shared) {
    shared.records_since.store(0, Ordering::Relaxed);
    shared.updates_since.store(0, Ordering::Relaxed);
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
    let mut rebuilt = shared.store.load()?;
    let Some((revision, hash)) = shown(shared, rebuilt.revision()) else { return Ok(()) };
    let mut follower = shared.store.follow(rebuilt.revision())?;
    'log: loop {
        let records = follower.next(Duration::ZERO)?;
        if records.is_empty() {
            break;
        }
        for (at, batch) in &records {
            if *at > revision {
                break 'log;
            }
            rebuilt.apply(*at, batch);
        }
    }
    let comparisons = &shared.comparisons;
    comparisons.compared.fetch_add(1, Ordering::Relaxed);
    comparisons.revision.store(revision, Ordering::Relaxed);
    if (rebuilt.revision(), rebuilt.hash()) != (revision, hash) {
        error!(revision, stored = rebuilt.revision(), "the table differs from the store and is loaded anew");
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
