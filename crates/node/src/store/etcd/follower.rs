//! The records in order: first what is in the log, then a watch that moves to another endpoint when it falls silent.
//!
//! A watch over a connection that is dead, to a node that is paused or cut off, says nothing at all. So it is asked for
//! a sign of life whenever it is silent, and given up when none comes, when the node has no leader, or when it does
//! not show a record that an own append is known to have made.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_client::{Client, Error, GetOptions, KeyValue, WatchFilterType, WatchOptions, WatchResponse, WatchStream};
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::time::timeout;
use weft_control::directory::Batch;
use weft_control::directory::record::decode_batch;

use super::Log;
use super::link::{reader, said};
use super::snapshot::gone;
use crate::store::{Follower, StoreError};

/// Silence after which the watch is asked for a sign of life.
const SILENT: Duration = Duration::from_millis(200);
/// Silence after which it is given up.
const DEAD: Duration = Duration::from_millis(600);
/// How long it may fail to show a record that is known to be in the log.
const BEHIND: Duration = Duration::from_millis(400);
/// How long an endpoint has to begin a watch.
const BEGIN: Duration = Duration::from_millis(400);
/// How long to wait after a failure before the next endpoint is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for a message before the clock is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Silence of all endpoints that is reported as an error.
const REPORT: Duration = Duration::from_millis(1500);
/// Records returned at a time.
const AT_ONCE: usize = 256;
/// Records read from the log at a time.
const READ_AT_ONCE: i64 = 64;

/// Records as stored, by etcd revision.
type Raw = (u64, Vec<u8>);

pub(super) struct EtcdFollower {
    log: Arc<Log>,
    handle: Handle,
    /// The last etcd revision taken over.
    after: u64,
    /// Read already.
    backlog: VecDeque<Raw>,
    watch: Option<Watch>,
    node: usize,
    /// Since when no endpoint has been heard, and what the last one said.
    mute_since: Option<Instant>,
    last_error: String,
}

struct Watch {
    stream: WatchStream,
    begun: Instant,
    heard: Instant,
    asked: Instant,
}

impl Follower for EtcdFollower {
    fn next(&mut self, patience: Duration) -> Result<Vec<(u64, Batch)>, StoreError> {
        if self.backlog.is_empty() {
            let handle = self.handle.clone();
            handle.block_on(self.listen(patience))?;
        }
        let count = self.backlog.len().min(AT_ONCE);
        let raw: Vec<Raw> = self.backlog.drain(..count).collect();
        raw.iter().map(|(revision, bytes)| self.decode(*revision, bytes)).collect()
    }
}

impl EtcdFollower {
    pub(super) fn new(log: Arc<Log>, handle: Handle, after: u64) -> Self {
        let node = log.link.current();
        let (backlog, last_error) = (VecDeque::new(), String::new());
        Self { log, handle, after, backlog, watch: None, node, mute_since: None, last_error }
    }

    fn decode(&self, revision: u64, bytes: &[u8]) -> Result<(u64, Batch), StoreError> {
        let revision = self.log.origin.ours(revision);
        decode_batch(bytes).map(|batch| (revision, batch)).map_err(|source| {
            let path = self.log.link.name().into();
            StoreError::Corrupt { path, revision, source }
        })
    }

    /// Reads every record after [`Self::after`] that is in the log now.
    pub(super) async fn read_log(&mut self) -> Result<(), StoreError> {
        loop {
            match self.try_read_log().await {
                // etcd forgot the revision that was being read: begin again with the latest.
                Err(StoreError::Compacted { from: 0, .. }) => {}
                outcome => return outcome,
            }
        }
    }

    async fn try_read_log(&mut self) -> Result<(), StoreError> {
        let log = Arc::clone(&self.log);
        let (gone, now) = gone(&log, log.deadline()).await?;
        let ours = |revision| log.origin.ours(revision);
        if self.after < gone {
            return Err(StoreError::Compacted { from: ours(self.after), compacted: ours(gone) });
        }
        if now < self.after {
            let why = format!(
                "its log ends at {}, before {} which was seen; it was restored from an older copy: restart",
                ours(now),
                ours(self.after)
            );
            return Err(log.link.unreachable(why));
        }
        let mut range = log.layout.log();
        let mut records: Vec<Raw> = Vec::new();
        loop {
            let options = GetOptions::new()
                .with_range(range.end.as_str())
                .with_limit(READ_AT_ONCE)
                .with_revision(now as i64)
                .with_min_mod_revision(self.after as i64 + 1);
            let start = range.start.as_str();
            let read = |client: Client| {
                let options = options.clone();
                async move { reader(&client).get(start, Some(options)).await }
            };
            let found = log.link.call(log.deadline(), read).await?;
            records.extend(found.kvs().iter().filter(|pair| pair.mod_revision() as u64 > self.after).map(raw));
            match found.kvs().last().filter(|_| found.more()) {
                Some(last) => range.start = String::from_utf8_lossy(last.key()).into_owned() + "\0",
                None => break,
            }
        }
        records.sort_unstable_by_key(|(revision, _)| *revision);
        self.backlog.extend(records);
        self.after = now;
        self.watch = None;
        Ok(())
    }

    /// Waits for records, at most this long.
    async fn listen(&mut self, patience: Duration) -> Result<(), StoreError> {
        let until = Instant::now() + patience;
        loop {
            if let Err(why) = self.step(until).await? {
                self.give_up(why);
            }
            if !self.backlog.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            if now < until {
                if self.watch.is_none() {
                    tokio::time::sleep(PAUSE.min(until - now)).await;
                }
                continue;
            }
            return match self.mute_since {
                Some(since) if now - since >= REPORT => Err(self.log.link.unreachable(self.last_error.clone())),
                _ => Ok(()),
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
            Err(_) => return Ok(self.still_alive().await),
            Ok(message) => message,
        };
        // Everything that is there already belongs together.
        loop {
            match message {
                Ok(Some(message)) => {
                    if let Err(why) = self.take(&message) {
                        self.watch = None;
                        return match message.compact_revision() {
                            0 => Ok(Err(why)),
                            _ => self.read_log().await.map(Ok),
                        };
                    }
                }
                Ok(None) => return Ok(Err("the watch ended".to_owned())),
                Err(error) => return Ok(Err(said(&error))),
            }
            let Some(watch) = self.watch.as_mut().filter(|_| self.backlog.len() < AT_ONCE) else { return Ok(Ok(())) };
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
            .with_start_revision(self.after as i64 + 1)
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
        let now = Instant::now();
        Ok(Watch { stream, begun: now, heard: now, asked: now })
    }

    /// Takes a message over. The error is why the watch ended.
    fn take(&mut self, message: &WatchResponse) -> Result<(), String> {
        if let Some(watch) = &mut self.watch {
            watch.heard = Instant::now();
        }
        if message.canceled() {
            return Err(format!("the watch was ended: {}", message.cancel_reason()));
        }
        self.mute_since = None;
        for pair in message.events().iter().filter_map(etcd_client::Event::kv) {
            // A record is made once and never changed; deletions have version 0.
            let revision = pair.mod_revision() as u64;
            if pair.version() == 1 && revision > self.after {
                self.after = revision;
                self.backlog.push_back(raw(pair));
            }
        }
        Ok(())
    }

    /// Looks after a silent watch.
    async fn still_alive(&mut self) -> Result<(), String> {
        let now = Instant::now();
        let behind = self.log.behind_since(self.after).is_some_and(|since| now - since > BEHIND);
        let Some(watch) = &mut self.watch else { return Ok(()) };
        if behind && now - watch.begun > BEHIND {
            return Err("it does not show a record that is in the log".to_owned());
        }
        if now - watch.heard > DEAD {
            return Err(format!("no sign of life for {} ms", DEAD.as_millis()));
        }
        if now - watch.heard > SILENT && now - watch.asked > SILENT {
            watch.asked = now;
            let asked: Result<Result<(), Error>, _> = timeout(SILENT, watch.stream.request_progress()).await;
            if !matches!(asked, Ok(Ok(()))) {
                return Err("it takes no questions".to_owned());
            }
        }
        Ok(())
    }

    fn give_up(&mut self, why: String) {
        self.watch = None;
        self.node = self.log.link.after(self.node);
        self.mute_since.get_or_insert_with(Instant::now);
        self.last_error = why;
    }
}

fn raw(pair: &KeyValue) -> Raw {
    (pair.mod_revision() as u64, pair.value().to_vec())
}
