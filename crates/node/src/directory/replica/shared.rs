//! What the threads of a replica share, and how requests come in and answers go out.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use tracing::error;
use weft_control::directory::{Batch, Refusal, Request, Rules};

use super::queue::{Open, Queue, Settled, Ticket};
use super::table::{Tables, Verdicts};
use super::upkeep::Comparisons;
use super::{Committed, Failure, ReplicaSettings, ReplicaStatus, Reply, UpdateCounts};
use crate::stop::Stop;
use crate::store::{Store, StoreError};

/// Everything but the writing side of the table.
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: ReplicaSettings,
    pub(super) tables: Tables,
    pub(super) committed: broadcast::Sender<Arc<Committed>>,
    pub(super) rules: RwLock<Rules>,
    queue: Mutex<Queue>,
    /// There may be a record to append.
    pub(super) to_append: Condvar,
    /// There may be something with a deadline.
    pub(super) to_expire: Condvar,
    /// A snapshot may be due.
    pub(super) to_keep: Condvar,
    stopping: AtomicBool,
    /// Why a thread of the replica failed, and what is to end then.
    failure: OnceLock<String>,
    over: OnceLock<Stop>,
    counts: Counts,
    /// Why the follower, or an appender, cannot use the store.
    pub(super) follow_error: Mutex<Option<StoreError>>,
    pub(super) append_error: Mutex<Option<StoreError>>,
    /// What the store said when it was last checked.
    pub(super) check_error: Mutex<Option<StoreError>>,
    pub(super) comparisons: Comparisons,
    /// The follower is to load the table anew.
    pub(super) repair: AtomicBool,
    /// Since the last snapshot.
    pub(super) records_since: AtomicU64,
    pub(super) updates_since: AtomicU64,
}

#[derive(Default)]
pub(super) struct Counts {
    committed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) applied: AtomicU64,
}

impl Shared {
    pub(super) fn new(
        store: Arc<dyn Store>,
        rules: Rules,
        settings: ReplicaSettings,
        tables: Tables,
        records_since: u64,
    ) -> Self {
        let revision = tables.reader().read(weft_control::directory::Table::revision);
        Self {
            store,
            committed: broadcast::Sender::new(settings.subscriber_lag),
            settings,
            tables,
            rules: RwLock::new(rules),
            queue: Mutex::new(Queue::at(revision)),
            to_append: Condvar::new(),
            to_expire: Condvar::new(),
            to_keep: Condvar::new(),
            stopping: AtomicBool::new(false),
            failure: OnceLock::new(),
            over: OnceLock::new(),
            counts: Counts::default(),
            follow_error: Mutex::new(None),
            append_error: Mutex::new(None),
            check_error: Mutex::new(None),
            comparisons: Comparisons::default(),
            repair: AtomicBool::new(false),
            records_since: AtomicU64::new(records_since),
            updates_since: AtomicU64::new(0),
        }
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Sleeps, but not on when everything is to end.
    pub(super) fn pause(&self, pause: Duration) {
        let queue = self.queue();
        if !self.stopping() {
            // Spurious wake-ups only mean to try again sooner.
            let _woken = self.to_expire.wait_timeout(queue, pause);
        }
    }

    /// Takes a request in.
    pub(super) fn submit(&self, request: Request, deadline: Instant, reply: Reply) {
        let ticket = Ticket { deadline, reply: Some(reply) };
        if let Err(refusal) = self.rules.read().unwrap_or_else(PoisonError::into_inner).check(&request) {
            return self.settle([(ticket, Err(refusal.into()))]);
        }
        let now = Instant::now();
        let mut queue = self.queue();
        let earlier = queue.expiry();
        let refused = if self.stopping() {
            Err((ticket, Err(stops())))
        } else {
            queue.push(request, ticket, now, &self.settings)
        };
        let sooner = queue.expiry() != earlier;
        drop(queue);
        match refused {
            Ok(look) => {
                if look {
                    self.to_append.notify_one();
                }
                if sooner {
                    self.to_expire.notify_all();
                }
            }
            Err(settled) => self.settle([settled]),
        }
    }

    /// Answers.
    pub(super) fn settle(&self, settled: impl IntoIterator<Item = Settled>) {
        for (ticket, outcome) in settled {
            let Some(reply) = ticket.reply else { continue };
            let count = match &outcome {
                Ok(_) => &self.counts.committed,
                Err(Failure::Refused(_)) => &self.counts.refused,
                Err(_) => &self.counts.failed,
            };
            count.fetch_add(1, Ordering::Relaxed);
            reply(outcome);
        }
    }

    /// Answers everybody of a record that was applied at this revision.
    pub(super) fn settle_record(&self, revision: u64, open: Open, verdicts: Option<Verdicts>) {
        let verdicts = match verdicts {
            Some(verdicts) => verdicts.into_iter().map(|verdict| verdict.map_err(Failure::from)).collect(),
            None => self.recollect(revision, &open.batch),
        };
        self.settle(open.tickets.into_iter().zip(verdicts));
    }

    /// The verdicts on a record that the table took over with a snapshot: clients with a number are remembered there.
    fn recollect(&self, revision: u64, batch: &Batch) -> Vec<Result<u64, Failure>> {
        let known = |request: &Request| match self.tables.reader().read(|table| table.check(request)) {
            Ok(Some(before)) => Ok(before),
            Err(refusal @ Refusal::SequenceBack { .. }) => Err(refusal.into()),
            _ => Err(unknown(format!("the record of revision {revision} is known from a snapshot only"))),
        };
        batch.requests.iter().map(known).collect()
    }

    /// Ends everything.
    pub(super) fn stop(&self) {
        let mut queue = self.queue();
        self.stopping.store(true, Ordering::SeqCst);
        let tickets = queue.drain();
        drop(queue);
        for condition in [&self.to_append, &self.to_expire, &self.to_keep] {
            condition.notify_all();
        }
        self.settle(tickets.into_iter().map(|ticket| (ticket, Err(stops()))));
    }

    /// A thread has failed: nothing is done any more, and whoever runs the server is told.
    pub(super) fn fail(&self, thread: &str, said: &str) {
        let why = format!("the thread `{thread}` failed ({said}): a bug; restart the server, the store has everything");
        error!("{why}");
        // The first one is the cause.
        let _ = self.failure.set(why.replace('\n', " "));
        self.stop();
        if let Some(over) = self.over.get() {
            over.request();
        }
    }

    /// What ends when a thread fails.
    pub(super) fn on_failure(&self, over: Stop) {
        if self.over.set(over).is_ok()
            && self.failure.get().is_some()
            && let Some(over) = self.over.get()
        {
            over.request();
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    /// Keeps an error, or that there is none any more. Returns whether that is news.
    pub(super) fn note(place: &Mutex<Option<StoreError>>, error: Option<StoreError>) -> bool {
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let news = place.is_some() != error.is_some();
        *place = error;
        news
    }

    /// Why the store is of no use now, as far as that is known.
    pub(super) fn store_error(&self) -> Option<String> {
        let said = |place: &Mutex<Option<StoreError>>| {
            place.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ToString::to_string)
        };
        self.failure()
            .or_else(|| said(&self.append_error))
            .or_else(|| said(&self.check_error))
            .or_else(|| said(&self.follow_error))
    }

    pub(super) fn status(&self) -> ReplicaStatus {
        let (revision, mapped) = self.tables.reader().read(|table| (table.revision(), table.mapped()));
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ReplicaStatus {
            revision,
            mapped,
            counts: UpdateCounts {
                committed: count(&self.counts.committed),
                refused: count(&self.counts.refused),
                failed: count(&self.counts.failed),
                records: count(&self.counts.records),
            },
            applied: count(&self.counts.applied),
            waiting: self.queue().len(),
            store_error: self.store_error(),
            compared: count(&self.comparisons.compared),
            repaired: count(&self.comparisons.repaired),
            compared_revision: count(&self.comparisons.revision),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.failure().map_or(Ok(()), Err)?;
        let checked = self.check_error.lock().unwrap_or_else(PoisonError::into_inner);
        checked.as_ref().map_or(Ok(()), |error| Err(error.to_string()))?;
        let followed = self.follow_error.lock().unwrap_or_else(PoisonError::into_inner);
        followed.as_ref().map_or(Ok(()), |error| Err(format!("not caught up: {error}")))
    }
}

pub(super) fn stops() -> Failure {
    Failure::Store("the server stops; ask another one".to_owned())
}

pub(super) fn unknown(why: impl std::fmt::Display) -> Failure {
    Failure::Store(format!("whether the update was carried out is unknown: {why}; read the mapping, then decide"))
}
