//! When each agent wants attention, the earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::host::Host;

/// An agent may stand here several times; only what it wants now counts.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, u32)>>);

impl Timers {
    /// Notes what an agent wants, if that has changed.
    pub(super) fn set(&mut self, number: u32, host: &mut Host) {
        if let Some(at_ns) = host.changed_deadline_ns() {
            self.0.push(Reverse((at_ns, number)));
        }
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// An agent whose time has come.
    pub(super) fn pop_due(&mut self, now_ns: u64, hosts: &[Host]) -> Option<u32> {
        while let Some(Reverse((at_ns, number))) = self.0.peek().copied().filter(|Reverse((at_ns, _))| *at_ns <= now_ns)
        {
            self.0.pop();
            if hosts[number as usize].deadline_ns() == Some(at_ns) {
                return Some(number);
            }
        }
        None
    }
}
