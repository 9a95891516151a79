//! Following the log by a watch. It is only an optimisation of reading it: it may end, lag or fall silent.

use std::collections::VecDeque;

use crate::NS_PER_MS;

/// Silence after which the watch is asked for a sign of life.
const SILENT_NS: u64 = 200 * NS_PER_MS;
/// Silence after which it is given up.
const DEAD_NS: u64 = 600 * NS_PER_MS;
/// How long it may fail to show a record that is known to be in the log.
const BEHIND_NS: u64 = 400 * NS_PER_MS;

/// Silence of all members that is reported as an error.
const REPORT_NS: u64 = 1500 * NS_PER_MS;

/// A record as it is kept, by its etcd revision.
pub type Raw = (u64, Vec<u8>);

/// What was read of the log and is not taken yet.
#[derive(Debug)]
pub struct Tail {
    after: u64,
    backlog: VecDeque<Raw>,
}

impl Tail {
    /// After this etcd revision.
    pub fn new(after: u64) -> Self {
        Self { after, backlog: VecDeque::new() }
    }

    /// The etcd revision up to which everything was read.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// All records of the log up to this revision were read.
    pub fn read(&mut self, records: Vec<Raw>, now: u64) {
        self.backlog.extend(records);
        self.after = now;
    }

    /// The watch shows a key of the log with so many changes at this revision.
    pub fn event(&mut self, revision: u64, version: u64, value: &[u8]) {
        // A record is made once and never changed; deletions have version 0.
        if version == 1 && revision > self.after {
            self.after = revision;
            self.backlog.push_back((revision, value.to_vec()));
        }
    }

    /// How many records wait to be taken.
    pub fn len(&self) -> usize {
        self.backlog.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Takes the first, at most so many.
    pub fn take(&mut self, max: usize) -> Vec<Raw> {
        let count = self.backlog.len().min(max);
        self.backlog.drain(..count).collect()
    }
}

/// Looks after a watch that is silent: over a connection that is dead, to a node that is paused or cut off, it says
/// nothing at all.
#[derive(Clone, Copy, Debug)]
pub struct Vigil {
    begun_ns: u64,
    heard_ns: u64,
    asked_ns: u64,
}

/// What is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing.
    Wait,
    /// It is to be asked for a sign of life.
    Ask,
    /// It is to be given up, for this reason.
    GiveUp(String),
}

impl Vigil {
    /// Of a watch that begins now.
    pub fn new(now_ns: u64) -> Self {
        Self { begun_ns: now_ns, heard_ns: now_ns, asked_ns: now_ns }
    }

    /// It said something.
    pub fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    /// What to do while it says nothing. `behind_since_ns`: since when a record is known to be in the log that it does not show.
    pub fn look(&mut self, now_ns: u64, behind_since_ns: Option<u64>) -> Sign {
        let since = |at_ns: u64| now_ns.saturating_sub(at_ns);
        if behind_since_ns.is_some_and(|at_ns| since(at_ns) > BEHIND_NS) && since(self.begun_ns) > BEHIND_NS {
            return Sign::GiveUp("it does not show a record that is in the log".to_owned());
        }
        if since(self.heard_ns) > DEAD_NS {
            return Sign::GiveUp(format!("no sign of life for {} ms", DEAD_NS / NS_PER_MS));
        }
        if since(self.heard_ns) > SILENT_NS && since(self.asked_ns) > SILENT_NS {
            self.asked_ns = now_ns;
            return Sign::Ask;
        }
        Sign::Wait
    }
}

/// Whether any member of the cluster is heard.
#[derive(Clone, Debug, Default)]
pub struct Mute {
    /// Since when none is, and what was wrong with the last one.
    since_ns: Option<u64>,
    why: String,
}

impl Mute {
    /// A watch was given up, or could not be begun.
    pub fn gave_up(&mut self, now_ns: u64, why: String) {
        self.since_ns.get_or_insert(now_ns);
        self.why = why;
    }

    /// A watch says something. That it has begun is not enough: what was missed comes after that.
    pub fn heard(&mut self, has_begun_only: bool) {
        if !has_begun_only {
            self.since_ns = None;
        }
    }

    /// What is to be reported.
    pub fn report(&self, now_ns: u64) -> Option<&str> {
        let long = self.since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= REPORT_NS);
        long.then_some(self.why.as_str())
    }
}
