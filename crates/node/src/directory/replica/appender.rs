//! A thread that carries one record at a time to the store.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tracing::warn;
use weft_control::directory::{Batch, Request};

use super::Failure;
use super::queue::{Next, Open};
use super::shared::{Shared, unknown};
use super::table::Verdicts;
use crate::store::StoreError;

pub(super) fn run(shared: &Shared) {
    while let Some((number, batch)) = next(shared) {
        if let Some(verdicts) = foreseen(shared, number, &batch) {
            foresee(shared, number, verdicts);
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
        queue = match queue.next(Instant::now(), &shared.settings) {
            Next::Append { number, batch } => {
                if queue.waits() {
                    shared.to_append.notify_one();
                }
                return Some((number, batch));
            }
            Next::Wait(None) => shared.to_append.wait(queue).unwrap_or_else(PoisonError::into_inner),
            Next::Wait(Some(window)) => {
                shared.to_append.wait_timeout(queue, window).unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

/// The verdicts on a record that would change nothing. Only where nobody else writes, and nothing else is on its way:
/// otherwise the table here may not be the latest. A refusal of a client with a number goes through the log all the same,
/// which remembers it: a late copy of the request must not be carried out after its client was told that it was not.
fn foreseen(shared: &Shared, number: u64, batch: &Batch) -> Option<Verdicts> {
    if !shared.store.sole_writer() || !shared.queue().alone(number) {
        return None;
    }
    shared.tables.reader().read(|table| {
        let verdict = |request: &Request| table.check(request).transpose();
        let refused = |request: &Request| request.client != 0 && matches!(verdict(request), Some(Err(_)));
        if batch.requests.iter().any(refused) {
            return None;
        }
        let verdicts = batch.requests.iter().map(verdict);
        verdicts.collect::<Option<Verdicts>>()
    })
}

fn foresee(shared: &Shared, number: u64, verdicts: Verdicts) {
    let open = shared.queue().close(number);
    shared.to_append.notify_all();
    if let Some(open) = open {
        shared.settle_record(0, open, Some(verdicts));
    }
}

fn appended(shared: &Shared, number: u64, revision: u64) {
    shared.counts().records.fetch_add(1, Ordering::Relaxed);
    Shared::note(&shared.append_error, None);
    let mut queue = shared.queue();
    let settled = queue.close(number).and_then(|open| queue.appended(revision, open, Instant::now()));
    drop(queue);
    shared.to_append.notify_all();
    if let Some((open, verdicts)) = settled {
        shared.settle_record(revision, open, verdicts);
    }
}

fn failed(shared: &Shared, number: u64, error: &StoreError) {
    if Shared::note(&shared.append_error, Some(error.clone())) {
        warn!(%error, "record not kept");
    }
    let mut queue = shared.queue();
    let Some(Open { batch, tickets }) = queue.close(number) else { return };
    let mut settled = Vec::new();
    if error.outcome_unknown() {
        // A client with a number may be asked for again: the log sees to it that it happens once.
        let mut again = Vec::new();
        for (request, ticket) in Arc::unwrap_or_clone(batch).requests.into_iter().zip(tickets) {
            if request.client != 0 && ticket.reply.is_some() {
                again.push((request, ticket));
            } else {
                settled.push((ticket, Err(unknown(error))));
            }
        }
        queue.push_back(again, Instant::now());
    } else {
        settled.extend(tickets.into_iter().map(|ticket| (ticket, Err(Failure::Store(error.to_string())))));
    }
    drop(queue);
    shared.to_append.notify_all();
    shared.settle(settled);
}
