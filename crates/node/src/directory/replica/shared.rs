//! What the threads of a replica share, and how requests come in and answers go out.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::broadcast;
use tracing::error;
use weft_control::directory::replica::{Committed, Done, Failure, Health, Queue, Settled, Upkeep};
use weft_control::directory::{Request, Rules, Table};

use super::table::Tables;
use super::upkeep::Comparisons;
use super::{ReplicaSettings, ReplicaStatus, Reply, UpdateCounts, ns};
use crate::directory::card::Card;
use crate::runner::Clock;
use crate::stop::Stop;
use crate::store::Store;

/// Everything but the writing side of the table.
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) tables: Tables,
    pub(super) committed: broadcast::Sender<Arc<Committed>>,
    pub(super) rules: RwLock<Rules>,
    queue: Mutex<Queue<Reply>>,
    upkeep: Mutex<Upkeep>,
    health: Mutex<Health>,
    /// There may be a record to append.
    pub(super) to_append: Condvar,
    /// There may be something with a deadline.
    pub(super) to_expire: Condvar,
    /// A snapshot may be due.
    pub(super) to_keep: Condvar,
    stopping: AtomicBool,
    /// What ends when a thread of the replica fails.
    over: OnceLock<Stop>,
    counts: Counts,
    pub(super) comparisons: Comparisons,
    /// Where else look-ups are answered.
    card: OnceLock<Arc<Card>>,
    /// The follower is to load the table anew.
    pub(super) repair: AtomicBool,
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
        settings: &ReplicaSettings,
        tables: Tables,
        records_since: u64,
    ) -> Self {
        let revision = tables.reader().read(Table::revision);
        let clock = Clock::start();
        Self {
            store,
            committed: broadcast::Sender::new(settings.subscriber_lag),
            queue: Mutex::new(Queue::at(revision, settings.bounds())),
            upkeep: Mutex::new(Upkeep::new(settings.upkeep(), records_since, clock.now_ns())),
            health: Mutex::default(),
            clock,
            tables,
            rules: RwLock::new(rules),
            to_append: Condvar::new(),
            to_expire: Condvar::new(),
            to_keep: Condvar::new(),
            stopping: AtomicBool::new(false),
            over: OnceLock::new(),
            counts: Counts::default(),
            comparisons: Comparisons::default(),
            card: OnceLock::new(),
            repair: AtomicBool::new(false),
        }
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue<Reply>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn upkeep(&self) -> MutexGuard<'_, Upkeep> {
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn card(&self) -> Option<&Card> {
        self.card.get().map(Arc::as_ref)
    }

    /// Shows the table there, too, from now on.
    pub(super) fn show_at(&self, card: Arc<Card>) {
        // What the follower applies from here on it shows there; what it has applied is in the table.
        let card = self.card.get_or_init(|| card);
        self.tables.reader().read(|table| card.show_all(table));
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
    pub(super) fn submit(&self, request: Request, timeout: Duration, reply: Reply) {
        if let Err(refusal) = self.rules.read().unwrap_or_else(PoisonError::into_inner).check(&request) {
            return self.settle([(reply, Err(refusal.into()))]);
        }
        let now_ns = self.clock.now_ns();
        let mut queue = self.queue();
        let earlier = queue.expiry_ns();
        let taken = if self.stopping() {
            Err((reply, Err(Failure::stops())))
        } else {
            queue.submit(request, reply, now_ns.saturating_add(ns(timeout)), now_ns)
        };
        let sooner = queue.expiry_ns() != earlier;
        drop(queue);
        match taken {
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
    pub(super) fn settle(&self, settled: impl IntoIterator<Item = Settled<Reply>>) {
        for (reply, outcome) in settled {
            let count = match &outcome {
                Ok(_) => &self.counts.committed,
                Err(Failure::Refused(_)) => &self.counts.refused,
                Err(_) => &self.counts.failed,
            };
            count.fetch_add(1, Ordering::Relaxed);
            reply(outcome);
        }
    }

    /// Answers everybody of records that were applied.
    pub(super) fn settle_records(&self, records: impl IntoIterator<Item = Done<Reply>>) {
        for done in records {
            self.settle(done.answers(|request| self.tables.reader().read(|table| table.check(request))));
        }
    }

    /// Ends everything.
    pub(super) fn stop(&self) {
        let mut queue = self.queue();
        self.stopping.store(true, Ordering::SeqCst);
        let waiting = queue.drain();
        drop(queue);
        for condition in [&self.to_append, &self.to_expire, &self.to_keep] {
            condition.notify_all();
        }
        self.settle(waiting);
    }

    /// A thread has failed: nothing is done any more, and whoever runs the server is told.
    pub(super) fn fail(&self, thread: &str, said: &str) {
        let why = format!("the thread `{thread}` failed ({said}): a bug; restart the server, the store has everything");
        error!("{why}");
        self.health().fail(why.replace('\n', " "));
        self.stop();
        if let Some(over) = self.over.get() {
            over.request();
        }
    }

    /// What ends when a thread fails.
    pub(super) fn on_failure(&self, over: Stop) {
        if self.over.set(over).is_ok()
            && self.failure().is_some()
            && let Some(over) = self.over.get()
        {
            over.request();
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.health().failure().map(str::to_owned)
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
            waiting: self.queue().requests(),
            store_error: self.health().store_error().map(str::to_owned),
            compared: count(&self.comparisons.compared),
            repaired: count(&self.comparisons.repaired),
            compared_revision: count(&self.comparisons.revision),
        }
    }
}
