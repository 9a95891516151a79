//! The one thread that changes the table: records of the store in, verdicts and events out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{info, warn};
use weft_control::directory::replica::{Committed, Done, Follow, Part, Todo, Verdicts, weight};
use weft_control::directory::{Batch, Table};

use super::shared::Shared;
use super::table::TableWriter;
use crate::store::{Follower, StoreError, catch_up};

/// How long to wait for records before looking whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long to wait before an unreachable store is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(shared: &Shared, writer: &mut TableWriter) {
    let mut following = Following { follow: Follow::default(), log: None };
    while !shared.stopping() {
        match following.step(shared, writer) {
            // What was loaded is not caught up before the log is followed from there.
            Ok(()) if following.log.is_none() => {}
            Ok(()) => {
                if shared.health().note(Part::Follow, None) {
                    info!("the store can be followed again");
                }
            }
            Err(error) => {
                if shared.health().note(Part::Follow, Some(error.to_string())) {
                    warn!(%error, "the store cannot be followed; look-ups go on");
                }
                shared.pause(PAUSE);
            }
        }
    }
}

/// What is decided, and the log that is followed.
struct Following {
    follow: Follow,
    log: Option<Box<dyn Follower>>,
}

impl Following {
    fn step(&mut self, shared: &Shared, writer: &mut TableWriter) -> Result<(), StoreError> {
        if shared.repair.swap(false, Ordering::SeqCst) {
            self.follow.repair();
        }
        let outcome = match self.follow.todo(writer.read(Table::revision)) {
            Todo::Load => return self.reload(shared, writer),
            Todo::Follow { after } => shared.store.follow(after).and_then(|mut log| {
                let records = log.next(Duration::ZERO);
                self.log = Some(log);
                self.follow.opened();
                records
            }),
            Todo::Read => self.log.as_mut().map_or(Ok(Vec::new()), |log| log.next(PATIENCE)),
        };
        match outcome {
            Ok(records) => {
                apply(shared, writer, records);
                Ok(())
            }
            Err(error @ StoreError::Compacted { .. }) => {
                info!(%error, "lagging behind a compaction");
                // Said before it is made good, which takes as long as the store does.
                shared.health().note(Part::Follow, Some(error.to_string()));
                self.follow.gone();
                self.reload(shared, writer)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes over what the store holds.
    fn reload(&mut self, shared: &Shared, writer: &mut TableWriter) -> Result<(), StoreError> {
        self.log = None;
        let mut table = shared.store.load()?;
        catch_up(shared.store.as_ref(), &mut table)?;
        let revision = table.revision();
        if !self.follow.loaded(revision, writer.read(Table::revision)) {
            return Err(StoreError::Behind { why: "what it holds has not reached us" });
        }
        writer.replace(table);
        if let Some(card) = shared.card() {
            writer.read(|table| card.show_all(table));
        }
        // There may be no subscriber.
        let _ = shared.committed.send(Arc::new(Committed::gap(revision)));
        let passed = shared.queue().jumped(revision);
        shared.settle_records(passed);
        Ok(())
    }
}

fn apply(shared: &Shared, writer: &mut TableWriter, records: Vec<(u64, Batch)>) {
    if records.is_empty() {
        return;
    }
    let records: Vec<(u64, Arc<Batch>)> =
        records.into_iter().map(|(revision, batch)| (revision, Arc::new(batch))).collect();
    let verdicts = writer.apply(&records);
    // Before anybody is told: then a look-up there finds at least what its asker has heard of.
    if let Some(card) = shared.card() {
        writer.read(|table| card.show(table, records.iter().map(|(_, batch)| batch.as_ref())));
    }
    publish(shared, writer, &records, &verdicts);
    let (mut queue, now_ns) = (shared.queue(), shared.clock.now_ns());
    let applied = records.iter().zip(verdicts);
    let done: Vec<Done<_>> =
        applied.filter_map(|((revision, _), verdicts)| queue.applied(*revision, verdicts, now_ns)).collect();
    let waits = queue.waits();
    drop(queue);
    if waits {
        shared.to_append.notify_one();
    }
    shared.settle_records(done);
    count(shared, &records);
}

/// Tells subscribers, if there are any.
fn publish(shared: &Shared, writer: &TableWriter, records: &[(u64, Arc<Batch>)], verdicts: &[Verdicts]) {
    if shared.committed.receiver_count() == 0 {
        return;
    }
    for ((revision, batch), verdicts) in records.iter().zip(verdicts) {
        let committed = writer.read(|table| Committed::of(table, *revision, batch, verdicts));
        if !committed.is_empty() {
            // The last subscriber may have left.
            let _ = shared.committed.send(Arc::new(committed));
        }
    }
}

fn count(shared: &Shared, records: &[(u64, Arc<Batch>)]) {
    let count = records.len() as u64;
    let updates: usize = records.iter().flat_map(|(_, batch)| &batch.requests).map(weight).sum();
    shared.counts().applied.fetch_add(count, Ordering::Relaxed);
    if shared.upkeep().applied(count, updates as u64) {
        shared.to_keep.notify_all();
    }
}
