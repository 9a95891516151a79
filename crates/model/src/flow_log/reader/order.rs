//! Flows in the order of their starts, from lines that are almost in it. What may come late waits in a heap: as many lines
//! as begin within the time that is allowed, no more.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Line, ReadError};

pub(super) struct Order {
    allowed_ns: u64,
    newest_ns: u64,
    waiting: BinaryHeap<Reverse<Waiting>>,
}

struct Waiting {
    line: u64,
    read: Line,
}

impl Waiting {
    fn key(&self) -> (u64, u64) {
        (self.read.start_ns, self.line)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl Order {
    pub(super) fn new(allowed_ns: u64) -> Self {
        Self { allowed_ns, newest_ns: 0, waiting: BinaryHeap::new() }
    }

    /// Takes a line; refuses one that begins too long before an earlier one.
    pub(super) fn put(&mut self, line: u64, read: Line) -> Result<(), ReadError> {
        let back_ns = self.newest_ns.saturating_sub(read.start_ns);
        if back_ns > self.allowed_ns {
            let what = format!(
                "time goes back: the flow starts {} s before one of an earlier line; sort the log by start (`nfdump -O \
                 tstart`) or allow it with --reorder",
                back_ns as f64 / 1e9
            );
            return Err(ReadError::Line { line, what });
        }
        self.newest_ns = self.newest_ns.max(read.start_ns);
        self.waiting.push(Reverse(Waiting { line, read }));
        Ok(())
    }

    /// The next line that nothing can come before any more.
    pub(super) fn take(&mut self) -> Option<(u64, Line)> {
        let first = &self.waiting.peek()?.0;
        let settled = self.newest_ns - first.read.start_ns >= self.allowed_ns;
        settled.then(|| self.waiting.pop()).flatten().map(|Reverse(one)| (one.line, one.read))
    }

    /// Everything that still waits, in order.
    pub(super) fn rest(self) -> impl Iterator<Item = (u64, Line)> {
        let mut waiting = self.waiting;
        std::iter::from_fn(move || waiting.pop().map(|Reverse(one)| (one.line, one.read)))
    }
}
