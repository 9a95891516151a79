//! The replicated store: a log in an etcd cluster (3.4 or newer), shared by all directory servers of a fabric.
//!
//! An etcd put that carries a batch costs as much as one that carries a mapping, so a record is one key. The order of
//! records is that of etcd's revisions; every server reads it from a watch. Record keys outlive etcd's own compaction,
//! which anybody may run: only we delete them, and only once two snapshots have been taken since.
//!
//! * [`layout`]: keys and values
//! * [`link`]: endpoints, and calls that outlive the loss of any of them
//! * [`append`]: a record is in the log once, however often it was sent
//! * [`follower`]: the records in order, over any endpoint
//! * [`snapshot`]: pages, a pointer to them, compaction

mod append;
mod follower;
mod layout;
mod link;
mod settings;
mod snapshot;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, Compare, CompareOp, Txn, TxnOp};
use tokio::runtime::Runtime;
use weft_control::directory::{Batch, Table};

use super::{Follower, Store, StoreError};
use follower::EtcdFollower;
use layout::Layout;
pub use layout::{Origin, Pointer};
use link::Link;
pub use settings::{EtcdSettings, EtcdTls};

/// Threads that carry bytes to and from the cluster.
const IO_THREADS: usize = 1;
/// How long a check may take.
const CHECK: Duration = Duration::from_secs(1);
/// Asking for alarms makes the nodes write, so it is done at one check in so many.
const CHECKS_PER_ALARM: u64 = 4;
/// Updates in one record: far below etcd's limit of 1.5 MiB.
const UPDATES_MAX: usize = 16_384;

/// A log in an etcd cluster. Its operations wait, so none may be called from an async task.
pub struct EtcdStore {
    log: Arc<Log>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

/// What appenders, followers and snapshots share.
struct Log {
    link: Link,
    layout: Layout,
    origin: Origin,
    /// What [`append`] knows of the snapshot pointer: its etcd revision, which is the epoch of new records.
    epoch: AtomicU64,
    /// Makes keys of records unique: random for this process, then counted.
    writer: u64,
    records: AtomicU64,
    /// How often it was checked, and whether the cluster had no space when that was last asked.
    checks: AtomicU64,
    full: AtomicBool,
    /// The latest record that an append is known to have made, and when: a watch must show it soon.
    appended: Mutex<(u64, Instant)>,
}

impl EtcdStore {
    /// Connects to the cluster, and begins a log under the prefix if there is none.
    ///
    /// # Errors
    /// [`StoreError::Settings`] for settings that cannot work, [`StoreError::Unreachable`] when no endpoint answers.
    pub fn open(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .thread_name("weft-etcd")
            .enable_all()
            .build()
            .map_err(|error| settings.fault(format!("no threads for it: {error}")))?;
        let layout = Layout::new(&settings.prefix);
        let log = runtime.block_on(async {
            let link = Link::new(settings)?;
            let origin = begin(&link, &layout).await?;
            let writer = crate::sys::random_u128().map_err(|error| settings.fault(error.to_string()))? as u64;
            Ok::<_, StoreError>(Log {
                link,
                layout,
                origin,
                epoch: AtomicU64::new(0),
                writer,
                records: AtomicU64::new(0),
                checks: AtomicU64::new(0),
                full: AtomicBool::new(false),
                appended: Mutex::new((0, Instant::now())),
            })
        })?;
        Ok(Self { log: Arc::new(log), runtime: Some(runtime) })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken only when the store is dropped")
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads is not allowed everywhere; nothing of them matters any more.
            runtime.shutdown_background();
        }
    }
}

/// Reads where the log began, or begins it. Revisions are those of etcd above a number made from the time, so that
/// agents which knew an earlier, lost store believe the new one.
async fn begin(link: &Link, layout: &Layout) -> Result<Origin, StoreError> {
    let deadline = Instant::now() + link.timeout;
    let key = layout.origin();
    let fresh = Origin::now();
    loop {
        let found = link.call(deadline, |mut client| async move { client.get(key, None).await }).await?;
        if let Some(pair) = found.kvs().first() {
            let began = pair.create_revision() as u64;
            return Origin::parse(pair.value(), began).map_err(|why| link.foreign(key, why));
        }
        let made = || {
            let absent = Compare::create_revision(key, CompareOp::Equal, 0);
            Txn::new().when([absent]).and_then([TxnOp::put(key, fresh.value(), None)])
        };
        link.call(deadline, |mut client| async move { client.txn(made()).await }).await?;
    }
}

impl Log {
    fn deadline(&self) -> Instant {
        Instant::now() + self.link.timeout
    }

    fn note_appended(&self, etcd_revision: u64) {
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        if etcd_revision > appended.0 {
            *appended = (etcd_revision, Instant::now());
        }
    }

    /// Since when the record after `seen` is known to be in the log.
    fn behind_since(&self, seen: u64) -> Option<Instant> {
        let appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        (appended.0 > seen).then_some(appended.1)
    }

    async fn check(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + CHECK.min(self.link.timeout);
        let key = self.layout.origin();
        self.link.call(deadline, |mut client| async move { client.get(key, None).await }).await?;
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECKS_PER_ALARM) {
            self.full.store(self.alarmed(deadline).await?, Ordering::Relaxed);
        }
        if self.full.load(Ordering::Relaxed) { Err(self.link.full()) } else { Ok(()) }
    }

    /// Whether the cluster has no space.
    async fn alarmed(&self, deadline: Instant) -> Result<bool, StoreError> {
        let alarms = |mut client: etcd_client::Client| async move {
            client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await
        };
        match self.link.call(deadline, alarms).await {
            Ok(answer) => Ok(answer.alarms().iter().any(|alarm| alarm.alarm() == AlarmType::Nospace)),
            // A user who may not ask for alarms learns of them from updates.
            Err(StoreError::Denied { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Store for EtcdStore {
    fn append(&self, batch: &Batch) -> Result<u64, StoreError> {
        self.runtime().block_on(append::append(&self.log, batch))
    }

    fn load(&self) -> Result<Table, StoreError> {
        self.runtime().block_on(snapshot::load(&self.log))
    }

    fn follow(&self, from: u64) -> Result<Box<dyn Follower>, StoreError> {
        let handle = self.runtime().handle().clone();
        let after = self.log.origin.theirs(from);
        let mut follower = EtcdFollower::new(Arc::clone(&self.log), handle, after);
        self.runtime().block_on(follower.read_log())?;
        Ok(Box::new(follower))
    }

    fn snapshot(&self, table: &Table) -> Result<(), StoreError> {
        self.runtime().block_on(snapshot::snapshot(&self.log, table))
    }

    fn compact(&self, to: u64) -> Result<(), StoreError> {
        self.runtime().block_on(snapshot::compact(&self.log, self.log.origin.theirs(to)))
    }

    fn check(&self) -> Result<(), StoreError> {
        self.runtime().block_on(self.log.check())
    }

    fn sole_writer(&self) -> bool {
        false
    }

    fn updates_max(&self) -> usize {
        UPDATES_MAX
    }
}

impl Log {
    /// The epoch that appends use.
    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    fn next_record(&self) -> (u64, u64) {
        (self.writer, self.records.fetch_add(1, Ordering::Relaxed))
    }
}
