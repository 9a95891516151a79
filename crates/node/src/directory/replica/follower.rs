//! The one thread that changes the table: records of the store in, verdicts and events out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracing::{info, warn};
use weft_control::directory::{Batch, Table};

use super::Committed;
use super::queue::weight;
use super::shared::Shared;
use super::table::{TableWriter, Verdicts};
use crate::store::{Follower, StoreError, catch_up};

/// How long to wait for records before looking whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long to wait before an unreachable store is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(shared: &Shared, writer: &mut TableWriter) {
    let mut follower: Option<Box<dyn Follower>> = None;
    while !shared.stopping() {
        match step(shared, writer, &mut follower) {
            Ok(()) => {
                if Shared::note(&shared.follow_error, None) {
                    info!("the store can be followed again");
                }
            }
            Err(error) => {
                let text = error.to_string();
                if Shared::note(&shared.follow_error, Some(error)) {
                    warn!(error = text, "the store cannot be followed; look-ups go on");
                }
                shared.pause(PAUSE);
            }
        }
    }
}

fn step(shared: &Shared, writer: &mut TableWriter, follower: &mut Option<Box<dyn Follower>>) -> Result<(), StoreError> {
    if shared.repair.swap(false, Ordering::SeqCst) {
        *follower = None;
        return reload(shared, writer, true);
    }
    let outcome = match follower {
        Some(following) => following.next(PATIENCE),
        None => shared.store.follow(writer.read(Table::revision)).and_then(|mut following| {
            let records = following.next(Duration::ZERO);
            *follower = Some(following);
            records
        }),
    };
    match outcome {
        Ok(records) => {
            apply(shared, writer, records);
            Ok(())
        }
        Err(StoreError::Compacted { from, compacted }) => {
            *follower = None;
            info!(from, compacted, "lagging behind a compaction: loading the snapshot");
            reload(shared, writer, false)
        }
        Err(error) => Err(error),
    }
}

fn apply(shared: &Shared, writer: &mut TableWriter, records: Vec<(u64, Batch)>) {
    if records.is_empty() {
        return;
    }
    let records: Vec<(u64, Arc<Batch>)> =
        records.into_iter().map(|(revision, batch)| (revision, Arc::new(batch))).collect();
    let verdicts = writer.apply(&records);
    publish(shared, writer, &records, &verdicts);
    let (mut queue, now) = (shared.queue(), Instant::now());
    let mut settled = Vec::new();
    for ((revision, _), verdicts) in records.iter().zip(verdicts) {
        if let Some(open) = queue.applied(*revision, &verdicts, now) {
            settled.push((*revision, open, verdicts));
        }
    }
    let waits = queue.waits();
    drop(queue);
    if waits {
        shared.to_append.notify_one();
    }
    for (revision, open, verdicts) in settled {
        shared.settle_record(revision, open, Some(verdicts));
    }
    count(shared, &records);
}

/// Tells subscribers, if there are any.
fn publish(shared: &Shared, writer: &TableWriter, records: &[(u64, Arc<Batch>)], verdicts: &[Verdicts]) {
    if shared.committed.receiver_count() == 0 {
        return;
    }
    for ((revision, batch), verdicts) in records.iter().zip(verdicts) {
        let committed = writer.read(|table| committed(table, *revision, batch, verdicts));
        if !committed.changed.is_empty() || !committed.policy.is_empty() {
            // The last subscriber may have left.
            let _ = shared.committed.send(Arc::new(committed));
        }
    }
}

fn committed(table: &Table, revision: u64, batch: &Batch, verdicts: &Verdicts) -> Committed {
    let good = || batch.requests.iter().zip(verdicts).filter(|(_, verdict)| **verdict == Ok(revision));
    let aas = good().flat_map(|(request, _)| request.updates.iter().map(|update| update.aa));
    Committed {
        revision,
        changed: aas.filter_map(|aa| Some((aa, table.record(aa)?))).collect(),
        policy: good().flat_map(|(request, _)| request.policy.iter().copied()).collect(),
        gap: false,
    }
}

fn count(shared: &Shared, records: &[(u64, Arc<Batch>)]) {
    let count = records.len() as u64;
    let updates: usize = records.iter().flat_map(|(_, batch)| &batch.requests).map(weight).sum();
    shared.counts().applied.fetch_add(count, Ordering::Relaxed);
    let records = shared.records_since.fetch_add(count, Ordering::Relaxed) + count;
    let updates = shared.updates_since.fetch_add(updates as u64, Ordering::Relaxed) + updates as u64;
    if records >= shared.settings.snapshot_records || updates >= shared.settings.snapshot_updates {
        shared.to_keep.notify_all();
    }
}

/// Takes over what the store holds: the records up to its snapshot are gone, or the table is not to be trusted.
fn reload(shared: &Shared, writer: &mut TableWriter, repair: bool) -> Result<(), StoreError> {
    let mut table = shared.store.load()?;
    catch_up(shared.store.as_ref(), &mut table)?;
    let (revision, shown) = (table.revision(), writer.read(Table::revision));
    if revision < shown || (revision == shown && !repair) {
        // Whoever compacted has not finished; or what the store holds has not reached us yet.
        shared.repair.store(repair, Ordering::SeqCst);
        shared.pause(PAUSE);
        return Ok(());
    }
    writer.replace(table);
    // There may be no subscriber.
    let gap = Committed { revision, changed: Vec::new(), policy: Vec::new(), gap: true };
    let _ = shared.committed.send(Arc::new(gap));
    for (revision, open) in shared.queue().jumped(revision) {
        shared.settle_record(revision, open, None);
    }
    Ok(())
}
