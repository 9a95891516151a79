//! A thread that carries one record at a time to the store.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tracing::warn;
use weft_control::directory::Batch;
use weft_control::directory::replica::{Next, Part, Verdicts, foresee};

use super::shared::Shared;
use crate::store::StoreError;

pub(super) fn run(shared: &Shared) {
    while let Some((number, batch)) = next(shared) {
        if let Some(verdicts) = foreseen(shared, number, &batch) {
            let done = shared.queue().foreseen(number, verdicts);
            shared.to_append.notify_all();
            shared.settle_records(done);
            continue;
        }
        match shared.store.append(&batch) {
            Ok(revision) => appended(shared, number, revision),
            Err(error) => failed(shared, number, &error),
        }
    }
}

/// Waits for the next record.
fn next(shared: &Shared) -> Option<(u64, Arc<Batch>)> {
    let mut queue = shared.queue();
    loop {
        if shared.stopping() {
            return None;
        }
        queue = match queue.next(shared.clock.now_ns()) {
            Next::Append { number, batch } => {
                if queue.waits() {
                    shared.to_append.notify_one();
                }
                return Some((number, batch));
            }
            Next::Wait(None) => shared.to_append.wait(queue).unwrap_or_else(PoisonError::into_inner),
            Next::Wait(Some(ns)) => {
                let window = Duration::from_nanos(ns);
                shared.to_append.wait_timeout(queue, window).unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

/// The verdicts on a record that need not be appended.
fn foreseen(shared: &Shared, number: u64, batch: &Batch) -> Option<Verdicts> {
    if !shared.store.sole_writer() || !shared.queue().alone(number) {
        return None;
    }
    shared.tables.reader().read(|table| foresee(table, batch))
}

fn appended(shared: &Shared, number: u64, revision: u64) {
    shared.counts().records.fetch_add(1, Ordering::Relaxed);
    shared.health().note(Part::Append, None);
    let done = shared.queue().appended(number, revision, shared.clock.now_ns());
    shared.to_append.notify_all();
    shared.settle_records(done);
}

fn failed(shared: &Shared, number: u64, error: &StoreError) {
    if shared.health().note(Part::Append, Some(error.to_string())) {
        warn!(%error, "record not kept");
    }
    let settled = shared.queue().failed(number, error, error.outcome_unknown(), shared.clock.now_ns());
    shared.to_append.notify_all();
    shared.settle(settled);
}
