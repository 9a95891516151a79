//! The records in order: first what is in the log, then a watch that moves to another endpoint when it falls silent.
//!
//! A watch over a connection that is dead, to a node that is paused or cut off, says nothing at all. So it is asked for
//! a sign of life whenever it is silent, and given up when none comes, when the node has no leader, or when it does
//! not show a record that an own append is known to have made.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_client::{Error, WatchFilterType, WatchOptions, WatchResponse, WatchStream};
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::time::timeout;
use weft_control::directory::Batch;
use weft_control::directory::etcd::{Mute, Raw, ReadLog, Sign, Tail, Vigil};
use weft_control::directory::record::decode_batch;

use super::Log;
use super::link::said;
use crate::store::{Follower, StoreError};

/// How long the watch has to take a question.
const ASK: Duration = Duration::from_millis(200);
/// How long an endpoint has to begin a watch.
const BEGIN: Duration = Duration::from_millis(400);
/// How long to wait after a failure before the next endpoint is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for a message before the clock is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Why the watch is not what tells us.
const PASSED_BY: &str = "etcd was compacted before it was shown, the log is read";
/// Records returned at a time.
const AT_ONCE: usize = 256;

pub(super) struct EtcdFollower {
    log: Arc<Log>,
    handle: Handle,
    tail: Tail,
    watch: Option<Watch>,
    /// A watch would begin with what etcd has forgotten: the log is to be read.
    passed_by: bool,
    node: usize,
    mute: Mute,
}

struct Watch {
    stream: WatchStream,
    vigil: Vigil,
}

impl Follower for EtcdFollower {
    fn next(&mut self, patience: Duration) -> Result<Vec<(u64, Batch)>, StoreError> {
        if self.tail.is_empty() {
            let handle = self.handle.clone();
            handle.block_on(self.listen(patience))?;
        }
        let raw: Vec<Raw> = self.tail.take(AT_ONCE);
        raw.iter().map(|(revision, bytes)| self.decode(*revision, bytes)).collect()
    }
}

impl EtcdFollower {
    pub(super) fn new(log: Arc<Log>, handle: Handle, after: u64) -> Self {
        let node = log.link.current();
        Self { log, handle, tail: Tail::new(after), watch: None, passed_by: false, node, mute: Mute::default() }
    }

    fn decode(&self, revision: u64, bytes: &[u8]) -> Result<(u64, Batch), StoreError> {
        let revision = self.log.origin.ours(revision);
        decode_batch(bytes).map(|batch| (revision, batch)).map_err(|source| {
            let path = self.log.link.name().into();
            StoreError::Corrupt { path, revision, source }
        })
    }

    /// Reads every record that is in the log now and was not read.
    pub(super) async fn read_log(&mut self) -> Result<(), StoreError> {
        let log = Arc::clone(&self.log);
        let mut read = ReadLog::new(Arc::clone(&log.layout), self.tail.after());
        let (records, now) = log.carry(&mut read, || log.deadline()).await?;
        self.tail.read(records, now);
        (self.watch, self.passed_by) = (None, false);
        Ok(())
    }

    /// Waits for records, at most this long.
    async fn listen(&mut self, patience: Duration) -> Result<(), StoreError> {
        let until = Instant::now() + patience;
        // It was said before: reading takes as long as the cluster does.
        if self.passed_by {
            self.read_log().await?;
        }
        loop {
            if let Err(why) = self.step(until).await? {
                self.give_up(why);
            }
            if !self.tail.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            if now < until {
                if self.watch.is_none() {
                    tokio::time::sleep(PAUSE.min(until - now)).await;
                }
                continue;
            }
            return match self.mute.report(self.log.clock.now_ns()) {
                Some(why) => Err(self.log.link.unreachable(why)),
                None => Ok(()),
            };
        }
    }

    /// One message, or none. The inner error is why this watch is of no more use.
    async fn step(&mut self, until: Instant) -> Result<Result<(), String>, StoreError> {
        if self.watch.is_none() {
            match self.begin().await {
                Ok(watch) => self.watch = Some(watch),
                Err(why) => return Ok(Err(why)),
            }
        }
        let left = until.saturating_duration_since(Instant::now()).min(LOOK);
        let Some(watch) = &mut self.watch else { return Ok(Ok(())) };
        let mut message = match timeout(left, watch.stream.message()).await {
            Err(_) => return Ok(self.look_after().await),
            Ok(message) => message,
        };
        // Everything that is there already belongs together.
        loop {
            match message {
                Ok(Some(message)) => {
                    if let Err(why) = self.take(&message) {
                        self.watch = None;
                        self.passed_by = message.compact_revision() != 0;
                        return if self.passed_by { Err(StoreError::Behind { why: PASSED_BY }) } else { Ok(Err(why)) };
                    }
                }
                Ok(None) => return Ok(Err("the watch ended".to_owned())),
                Err(error) => return Ok(Err(said(&error))),
            }
            let Some(watch) = self.watch.as_mut().filter(|_| self.tail.len() < AT_ONCE) else { return Ok(Ok(())) };
            match watch.stream.message().now_or_never() {
                Some(next) => message = next,
                None => return Ok(Ok(())),
            }
        }
    }

    async fn begin(&mut self) -> Result<Watch, String> {
        let range = self.log.layout.log();
        let options = WatchOptions::new()
            .with_range(range.end)
            .with_start_revision(self.tail.after() as i64 + 1)
            .with_filters([WatchFilterType::NoDelete])
            .with_fragment();
        let begun = async {
            let client = self.log.link.client(self.node).await?;
            let mut watcher = client.watch_client().max_decoding_message_size(64 << 20);
            watcher.watch(range.start, Some(options)).await
        };
        let stream = match timeout(BEGIN, begun).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(said(&error)),
            Err(_) => return Err("no answer".to_owned()),
        };
        Ok(Watch { stream, vigil: Vigil::new(self.log.clock.now_ns()) })
    }

    /// Takes a message over. The error is why the watch ended.
    fn take(&mut self, message: &WatchResponse) -> Result<(), String> {
        if let Some(watch) = &mut self.watch {
            watch.vigil.heard(self.log.clock.now_ns());
        }
        if message.canceled() {
            return Err(format!("the watch was ended: {}", message.cancel_reason()));
        }
        self.mute.heard(message.created());
        for pair in message.events().iter().filter_map(etcd_client::Event::kv) {
            self.tail.event(pair.mod_revision() as u64, pair.version() as u64, pair.value());
        }
        Ok(())
    }

    /// Looks after a silent watch.
    async fn look_after(&mut self) -> Result<(), String> {
        let behind_since_ns = self.log.behind_since_ns(self.tail.after());
        let Some(watch) = &mut self.watch else { return Ok(()) };
        match watch.vigil.look(self.log.clock.now_ns(), behind_since_ns) {
            Sign::Wait => Ok(()),
            Sign::GiveUp(why) => Err(why),
            Sign::Ask => {
                let asked: Result<Result<(), Error>, _> = timeout(ASK, watch.stream.request_progress()).await;
                if matches!(asked, Ok(Ok(()))) { Ok(()) } else { Err("it takes no questions".to_owned()) }
            }
        }
    }

    fn give_up(&mut self, why: String) {
        self.watch = None;
        self.node = self.log.link.after(self.node);
        self.mute.gave_up(self.log.clock.now_ns(), why);
    }
}
