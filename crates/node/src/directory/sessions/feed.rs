//! What was committed lately, so that a watch can go on where an earlier one ended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use weft_control::directory::Table;

use crate::directory::replica::{Committed, Replica};

/// Records kept.
const RECORDS_MAX: usize = 8192;
/// Changes in them.
const CHANGES_MAX: usize = 1 << 18;

/// The latest records, shared by all watches.
pub(super) struct Feed {
    recent: Mutex<Recent>,
    /// Marked whenever there is something new.
    news: watch::Sender<()>,
}

struct Recent {
    records: VecDeque<Arc<Committed>>,
    changes: usize,
    /// Every record above this revision is here, as far as the server has come.
    complete_above: u64,
}

/// Records that are no longer here were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lagged;

impl Feed {
    /// Follows the replica until it ends.
    pub(super) fn start(replica: &Replica, runtime: &Handle) -> Arc<Self> {
        let mut committed = replica.subscribe();
        let feed = Arc::new(Self::at(replica.read(Table::revision)));
        let theirs = Arc::clone(&feed);
        // Weak would do for the replica; it is kept by the handler anyway.
        let replica = replica.clone();
        runtime.spawn(async move {
            loop {
                match committed.recv().await {
                    Ok(record) if record.gap => theirs.cut(record.revision),
                    Ok(record) => theirs.push(record),
                    Err(RecvError::Lagged(_)) => theirs.cut(replica.read(Table::revision)),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        feed
    }

    fn at(revision: u64) -> Self {
        let recent = Recent { records: VecDeque::new(), changes: 0, complete_above: revision };
        Self { recent: Mutex::new(recent), news: watch::Sender::new(()) }
    }

    /// To be woken by news.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// The records above `revision`, in order.
    pub(super) fn above(&self, revision: u64) -> Result<Vec<Arc<Committed>>, Lagged> {
        let recent = self.recent();
        if revision < recent.complete_above {
            return Err(Lagged);
        }
        let first = recent.records.partition_point(|record| record.revision <= revision);
        Ok(recent.records.range(first..).cloned().collect())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, record: Arc<Committed>) {
        let mut recent = self.recent();
        if record.revision <= recent.complete_above {
            return;
        }
        recent.changes += record.changed.len();
        recent.records.push_back(record);
        while recent.records.len() > RECORDS_MAX || recent.changes > CHANGES_MAX && recent.records.len() > 1 {
            if let Some(oldest) = recent.records.pop_front() {
                recent.changes -= oldest.changed.len();
                recent.complete_above = oldest.revision;
            }
        }
        drop(recent);
        self.news.send_replace(());
    }

    /// Records up to this revision were missed.
    fn cut(&self, revision: u64) {
        let mut recent = self.recent();
        recent.records.clear();
        recent.changes = 0;
        recent.complete_above = revision.max(recent.complete_above);
        drop(recent);
        self.news.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weft_control::directory::Record;

    use super::*;

    fn record(revision: u64, changes: usize) -> Arc<Committed> {
        let record = Record { locator: None, service: 0, host_la: None, version: revision };
        Arc::new(Committed {
            revision,
            changed: vec![(Ipv4Addr::LOCALHOST, record); changes],
            policy: Vec::new(),
            gap: false,
        })
    }

    fn above(feed: &Feed, revision: u64) -> Result<Vec<u64>, Lagged> {
        feed.above(revision).map(|records| records.iter().map(|record| record.revision).collect())
    }

    #[test]
    fn a_watch_goes_on_after_any_revision_that_is_still_there() {
        let feed = Feed::at(10);
        let mut news = feed.news();
        assert_eq!(above(&feed, 10), Ok(Vec::new()));
        assert_eq!(above(&feed, 9), Err(Lagged));
        for revision in [10, 12, 15] {
            feed.push(record(revision, 1));
        }
        assert!(news.has_changed().unwrap());
        news.mark_unchanged();
        assert_eq!(above(&feed, 10), Ok(vec![12, 15]));
        assert_eq!(above(&feed, 12), Ok(vec![15]));
        assert_eq!(above(&feed, 99), Ok(Vec::new()));
        feed.cut(20);
        assert!(news.has_changed().unwrap());
        assert_eq!(above(&feed, 15), Err(Lagged));
        assert_eq!(above(&feed, 20), Ok(Vec::new()));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let feed = Feed::at(0);
        for revision in 1..=RECORDS_MAX as u64 + 5 {
            feed.push(record(revision, 1));
        }
        assert_eq!(above(&feed, 4), Err(Lagged));
        assert_eq!(above(&feed, 5).unwrap().len(), RECORDS_MAX);
        feed.push(record(20_000, CHANGES_MAX + 1));
        assert_eq!(above(&feed, 100), Err(Lagged));
        assert_eq!(above(&feed, RECORDS_MAX as u64 + 5), Ok(vec![20_000]), "the latest is always there");
        assert_eq!(feed.recent().changes, CHANGES_MAX + 1);
    }
}
