//! The replicated store: a log in an etcd cluster (3.4 or newer), shared by all directory servers of a fabric.
//!
//! An etcd put that carries a batch costs as much as one that carries a mapping, so a record is one key. The order of
//! records is that of etcd's revisions; every server reads it from a watch. Record keys outlive etcd's own compaction,
//! which anybody may run: only we delete them, and only once two snapshots have been taken since.
//!
//! What is asked of the cluster, and what its answers mean, is decided by [`weft_control::directory::etcd`].
//!
//! * [`carry`]: its calls, by etcd's client
//! * [`link`]: endpoints, and calls that outlive the loss of any of them
//! * [`follower`]: the records in order, over any endpoint

mod carry;
mod follower;
mod link;
mod settings;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use etcd_client::{AlarmAction, AlarmType};
use tokio::runtime::Runtime;
use weft_control::directory::etcd::{Append, Begin, Call, Claim, Claimed, Compact, Layout, Load, Origin, Write};
use weft_control::directory::record::encode_batch;
use weft_control::directory::{Batch, Table};

use super::{EtcdSettings, Follower, Store, StoreError};
use crate::runner::Clock;
use follower::EtcdFollower;
use link::Link;

/// Threads that carry bytes to and from the cluster.
const IO_THREADS: usize = 1;
/// How long a check may take.
const CHECK: Duration = Duration::from_secs(1);
/// Asking for alarms makes the nodes write, so it is done at one check in so many.
const CHECKS_PER_ALARM: u64 = 4;
/// A snapshot of a million mappings must be written in it.
const WRITING: Duration = Duration::from_secs(25);
/// Updates in one record: far below etcd's limit of 1.5 MiB.
const UPDATES_MAX: usize = 16_384;

/// A log in an etcd cluster. Its operations wait, so none may be called from an async task.
pub struct EtcdStore {
    log: Arc<Log>,
    settings: EtcdSettings,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

/// What appenders, followers and snapshots share.
struct Log {
    link: Link,
    layout: Arc<Layout>,
    origin: Origin,
    clock: Clock,
    /// What appends know of the snapshot pointer: its etcd revision, which is the epoch of new records.
    epoch: AtomicU64,
    /// Makes keys of records unique: random for this process, then counted.
    writer: u64,
    records: AtomicU64,
    /// How often it was checked, and whether the cluster had no space when that was last asked.
    checks: AtomicU64,
    full: AtomicBool,
    /// The latest record that an append is known to have made, and when in nanoseconds: a watch must show it soon.
    appended: Mutex<(u64, u64)>,
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
        let layout = Arc::new(Layout::new(&settings.prefix));
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let fresh = Origin::at(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX / 2));
        let log = runtime.block_on(async {
            let link = Link::new(settings)?;
            let deadline = Instant::now() + link.timeout;
            let mut begin = Begin::new(Arc::clone(&layout), fresh);
            let origin = carry::carry(&link, &mut begin, || deadline, |revision| revision).await?;
            let writer = crate::sys::random_u128().map_err(|error| settings.fault(error.to_string()))? as u64;
            Ok::<_, StoreError>(Log {
                link,
                layout,
                origin,
                clock: Clock::start(),
                epoch: AtomicU64::new(0),
                writer,
                records: AtomicU64::new(0),
                checks: AtomicU64::new(0),
                full: AtomicBool::new(false),
                appended: Mutex::new((0, 0)),
            })
        })?;
        Ok(Self { log: Arc::new(log), settings: settings.clone(), runtime: Some(runtime) })
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

impl Log {
    fn deadline(&self) -> Instant {
        Instant::now() + self.link.timeout
    }

    async fn append(&self, batch: &Batch) -> Result<u64, StoreError> {
        let name = (self.writer, self.records.fetch_add(1, Ordering::Relaxed));
        let epoch = self.epoch.load(Ordering::SeqCst);
        let mut append = Append::new(Arc::clone(&self.layout), name, encode_batch(batch), epoch);
        let deadline = self.deadline();
        let outcome = self.carry(&mut append, || deadline).await;
        if append.epoch() != epoch {
            self.epoch.store(append.epoch(), Ordering::SeqCst);
        }
        let revision = outcome?;
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        if revision > appended.0 {
            *appended = (revision, self.clock.now_ns());
        }
        Ok(self.origin.ours(revision))
    }

    /// Since when the record after `seen` is known to be in the log.
    fn behind_since_ns(&self, seen: u64) -> Option<u64> {
        let appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        (appended.0 > seen).then_some(appended.1)
    }

    async fn snapshot(&self, table: &Table) -> Result<(), StoreError> {
        let (layout, revision) = (|| Arc::clone(&self.layout), self.origin.theirs(table.revision()));
        let mut claim = Claim::new(layout(), self.writer, revision);
        let (lease, outcome) = match self.carry(&mut claim, || self.deadline()).await? {
            Claimed::Needless => return Ok(()),
            Claimed::Other { lease } => (lease, Ok(())),
            Claimed::Ours { lease, turn } => {
                let mut write = Write::new(layout(), self.writer, table, revision, turn);
                let deadline = Instant::now() + WRITING;
                (lease, self.carry(&mut write, || deadline).await)
            }
        };
        // The claim goes by itself otherwise.
        let _ = self.link.carry(&Call::Revoke { lease }, self.deadline()).await;
        outcome
    }

    async fn compact(&self, to: u64) -> Result<(), StoreError> {
        let mut compact = Compact::new(Arc::clone(&self.layout), to);
        let deadline = self.deadline();
        match self.carry(&mut compact, || deadline).await {
            // It is the cluster's operator who lets etcd forget then.
            Err(StoreError::Denied { .. }) if compact.deleted() => Ok(()),
            outcome => outcome,
        }
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
        self.runtime().block_on(self.log.append(batch))
    }

    fn load(&self) -> Result<Table, StoreError> {
        let mut load = Load::new(Arc::clone(&self.log.layout), self.log.origin);
        self.runtime().block_on(self.log.carry(&mut load, || self.log.deadline()))
    }

    fn follow(&self, from: u64) -> Result<Box<dyn Follower>, StoreError> {
        let handle = self.runtime().handle().clone();
        let after = self.log.origin.theirs(from);
        let mut follower = EtcdFollower::new(Arc::clone(&self.log), handle, after);
        self.runtime().block_on(follower.read_log())?;
        Ok(Box::new(follower))
    }

    fn snapshot(&self, table: &Table) -> Result<(), StoreError> {
        self.runtime().block_on(self.log.snapshot(table))
    }

    fn compact(&self, to: u64) -> Result<(), StoreError> {
        self.runtime().block_on(self.log.compact(self.log.origin.theirs(to)))
    }

    fn check(&self) -> Result<(), StoreError> {
        self.runtime().block_on(self.log.check())
    }

    fn renew(&self) -> Result<(), StoreError> {
        let has_secrets = self.settings.tls.is_some() || self.settings.user.is_some();
        if has_secrets { self.log.link.renew(&self.settings) } else { Ok(()) }
    }

    fn sole_writer(&self) -> bool {
        false
    }

    fn updates_max(&self) -> usize {
        UPDATES_MAX
    }
}
