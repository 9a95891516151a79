//! One directory server's copy of the replicated state, and the way of an update through the store into it
//! (VL2 4.3.2).
//!
//! ```text
//! submit ──> queue ──> appenders ──> store ──> follower ──> table (left-right) ──> look-ups
//!              ^           |                       |
//!              |           └──> open records <─────┤ verdicts ──> replies
//!           deadlines                              └──> subscribers
//! ```
//!
//! Requests share records. Every replica applies every record, its own like those of others, in the order of their
//! revisions: an own record does not jump the queue. A request is answered once its record is in the store *and*
//! applied here, so whoever was told a revision reads at least that revision from this server.
//!
//! What to do is decided by [`weft_control::directory::replica`]; the threads here carry.
//!
//! * [`shared`]: the queue, under one lock, and the way of requests in and of answers out
//! * [`appender`]: threads that carry records to the store, several at a time
//! * [`follower`]: the one thread that changes the table
//! * [`table`]: wait-free reads while it does
//! * [`deadlines`]: answers those whose time is over
//! * [`upkeep`]: snapshots, compaction, the comparison with the store

mod appender;
mod deadlines;
mod follower;
mod shared;
mod table;
#[cfg(test)]
pub(super) mod tests;
mod upkeep;

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::broadcast;
use tracing::info;
use weft_control::directory::replica::{Bounds, UpkeepBounds};
pub use weft_control::directory::replica::{Committed, Failure};
use weft_control::directory::{Request, Rules, Table};

use super::card::Card;
use crate::error::NodeError;
use crate::stop::Stop;
use crate::store::{Store, catch_up};
use crate::threads::said;
use shared::Shared;
pub use table::TableReader;

/// How a replica batches, bounds and keeps up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSettings {
    /// How long a request waits for others to share its record, while another record is on its way or was just
    /// answered. Alone it does not wait.
    pub window: Duration,
    /// Updates after which a record is full.
    pub record_updates: usize,
    /// Records on their way to the store at a time.
    pub records_open: usize,
    /// Requests that may wait; more are refused. Services leave an eighth to operators.
    pub requests_waiting: usize,
    /// Updates that may wait; more are refused. The same.
    pub updates_waiting: usize,
    /// Records after which a snapshot replaces the log.
    pub snapshot_records: u64,
    /// Updates after which a snapshot replaces the log.
    pub snapshot_updates: u64,
    /// Committed records that a subscriber may lag behind.
    pub subscriber_lag: usize,
    /// How often the table is compared with what the store holds (VL2 4.3.2). Less often if that takes long.
    pub compare_every: Duration,
}

impl Default for ReplicaSettings {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(2),
            record_updates: 1024,
            records_open: 4,
            requests_waiting: 65_536,
            updates_waiting: 1 << 20,
            snapshot_records: 8192,
            snapshot_updates: 1 << 20,
            subscriber_lag: 256,
            compare_every: Duration::from_secs(30),
        }
    }
}

impl ReplicaSettings {
    fn bounds(&self) -> Bounds {
        Bounds {
            window_ns: ns(self.window),
            record_updates: self.record_updates,
            records_open: self.records_open,
            requests_waiting: self.requests_waiting,
            updates_waiting: self.updates_waiting,
        }
    }

    fn upkeep(&self) -> UpkeepBounds {
        UpkeepBounds {
            snapshot_records: self.snapshot_records,
            snapshot_updates: self.snapshot_updates,
            compare_every_ns: ns(self.compare_every),
        }
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What became of the requests submitted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateCounts {
    /// Carried out, requests.
    pub committed: u64,
    /// Refused for what they ask, requests.
    pub refused: u64,
    /// Failed for the store, or for too much load, requests.
    pub failed: u64,
    /// Records appended to the log.
    pub records: u64,
}

/// How a replica is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Revision of the table.
    pub revision: u64,
    /// AAs that have a mapping.
    pub mapped: usize,
    /// Requests submitted here.
    pub counts: UpdateCounts,
    /// Records applied, whoever appended them.
    pub applied: u64,
    /// Requests that wait now, or whose record is on its way.
    pub waiting: usize,
    /// Why the store could not be followed or written to when that was last tried.
    pub store_error: Option<String>,
    /// Comparisons of the table with the store.
    pub compared: u64,
    /// Those that found a difference, after which the table was loaded anew.
    pub repaired: u64,
    /// Revision of the last comparison; 0 before the first.
    pub compared_revision: u64,
}

/// Takes the outcome of a request: its revision, or why it was not carried out. Called once, by a thread of the
/// replica that others wait for: it must not block.
pub type Reply = Box<dyn FnOnce(Result<u64, Failure>) + Send>;

/// A replica. Clones are the same one; it ends with the last of them.
#[derive(Clone)]
pub struct Replica(Arc<Running>);

/// The threads. Dropping it ends them.
struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Replica {
    /// Loads what the store holds, and follows it from then on.
    ///
    /// # Errors
    /// [`NodeError::Store`]: the store cannot be read.
    pub fn start(store: Arc<dyn Store>, rules: Rules, settings: ReplicaSettings) -> Result<Self, NodeError> {
        let mut table = store.load()?;
        let records = catch_up(store.as_ref(), &mut table)?;
        info!(revision = table.revision(), mappings = table.mapped(), records, "directory loaded");
        let rules = Rules { updates_max: rules.updates_max.min(store.updates_max()), ..rules };
        let records_open = settings.records_open;
        let (writer, tables) = table::split(table);
        let shared = Arc::new(Shared::new(store, rules, &settings, tables, records as u64));
        let mut running = Running { shared, threads: Vec::new() };
        running.spawn("follower", move |shared| {
            // After a panic it stays, and with it the table that look-ups see until the server has ended.
            let mut writer = ManuallyDrop::new(writer);
            follower::run(shared, &mut writer);
            drop(ManuallyDrop::into_inner(writer));
        })?;
        for _ in 0..records_open.max(1) {
            running.spawn("appender", appender::run)?;
        }
        running.spawn("deadlines", deadlines::run)?;
        running.spawn("upkeep", upkeep::run)?;
        Ok(Self(Arc::new(running)))
    }

    /// Ends `over` if a thread of the replica fails: what is shown then is the last that was known, and falls behind.
    pub fn on_failure(&self, over: Stop) {
        self.0.shared.on_failure(over);
    }

    /// Why it has failed, if it has.
    pub fn failure(&self) -> Option<String> {
        self.0.shared.failure()
    }

    /// Shows the table at a card, too, from now on: its look-ups see a revision before anybody is told of it.
    pub(super) fn show_at(&self, card: Arc<Card>) {
        self.0.shared.show_at(card);
    }

    /// Judges requests by other rules from now on.
    pub fn set_rules(&self, rules: Rules) {
        let shared = &self.0.shared;
        let rules = Rules { updates_max: rules.updates_max.min(shared.store.updates_max()), ..rules };
        *shared.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Has the store read its secrets again.
    ///
    /// # Errors
    /// [`NodeError::Store`]: it goes on with those that it had.
    pub fn renew_store(&self) -> Result<(), NodeError> {
        self.0.shared.store.renew().map_err(NodeError::from)
    }

    /// Reads the table without waiting for the writer. One for each thread.
    pub fn reader(&self) -> TableReader {
        self.0.shared.tables.reader()
    }

    /// Runs `look` on the table: for a single look; a thread that looks often keeps a [`Self::reader`].
    pub fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        self.reader().read(look)
    }

    /// Carries out a request and calls `reply` with its outcome, within about `timeout`. Requests of one authority that are
    /// of one client, or name the same AA, are applied in the order in which they were submitted here.
    ///
    /// A request that the store may have taken without our knowing ends in [`Failure::Store`], which says so. A client
    /// with a number can then ask again, here or elsewhere, with the same sequence.
    pub fn submit(&self, request: Request, timeout: Duration, reply: Reply) {
        self.0.shared.submit(request, timeout, reply);
    }

    /// [`Self::submit`], waiting for the outcome.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn commit(&self, request: Request, timeout: Duration) -> Result<u64, Failure> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = move |outcome| {
            // The receiver waits below.
            let _ = sender.send(outcome);
        };
        self.submit(request, timeout, Box::new(reply));
        receiver.recv().unwrap_or_else(|_| Err(Failure::Store("the server stops".to_owned())))
    }

    /// What is committed from now on, whoever committed it. A subscriber that lags too far is told `Lagged` and must
    /// read the table again.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.0.shared.committed.subscribe()
    }

    /// How it is doing.
    pub fn status(&self) -> ReplicaStatus {
        self.0.shared.status()
    }

    /// Revision and hash of the table. Equal revisions of one log have equal hashes on every server.
    pub fn table_hash(&self) -> (u64, u64) {
        self.read(|table| (table.revision(), table.hash()))
    }

    /// Whether updates would be kept now, as of at most a few seconds ago. Does not wait.
    ///
    /// # Errors
    /// Why not, in one line.
    pub fn check(&self) -> Result<(), String> {
        self.0.shared.health().check()
    }
}

impl Running {
    fn spawn(&mut self, name: &'static str, run: impl FnOnce(&Shared) + Send + 'static) -> Result<(), NodeError> {
        let shared = Arc::clone(&self.shared);
        let guarded = move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&shared))) {
                shared.fail(name, said(panic.as_ref()));
            }
        };
        let thread = std::thread::Builder::new().name(format!("weft-{name}")).spawn(guarded);
        self.threads.push(thread.map_err(NodeError::system("starting a thread"))?);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop();
        let own = std::thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            // It takes note of its own panics.
            let _ = thread.join();
        }
    }
}
