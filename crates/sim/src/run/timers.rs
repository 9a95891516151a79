//! Timers: what happens at a set time and is no arrival of a packet. Flow starts, faults, samples, the timers of TCP.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something to do at a set time. Of two at the same time the one that stands first here is done first, then the one with
/// the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The step of this number in the schedule of faults and repairs.
    FaultStep(u32),
    /// Routes follow what the step of this number changed.
    Reconverge(u32),
    /// The next flow of the list.
    Start,
    /// The source of the server of this number hands out what its flows may send.
    Source(u32),
    /// The stream of datagrams of this number sends its next one.
    Datagram(u32),
    /// The card of the server of this number has room again.
    Host(u32),
    /// The receiver of the flow in this place may owe an acknowledgement.
    Receiver(u32),
    /// The timer of the sender in this place may have run out.
    Sender(u32),
    /// Progress and link counters.
    Sample,
    /// TCP senders.
    SampleTcp,
    /// What a replay shows.
    Replay,
    /// The end of the run.
    Stop,
}

/// All timers that are due some time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, Timer)>>,
}

impl Timers {
    pub(super) fn add(&mut self, time_ps: u64, timer: Timer) {
        self.heap.push(Reverse((time_ps, timer)));
    }

    /// When the next timer is due; the end of time if there is none.
    pub(super) fn next_ps(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((time_ps, _))| *time_ps)
    }

    /// Takes the next timer if it is due by `time_ps`.
    pub(super) fn take_by(&mut self, time_ps: u64) -> Option<(u64, Timer)> {
        let due = self.heap.peek().is_some_and(|Reverse((due_ps, _))| *due_ps <= time_ps);
        due.then(|| self.heap.pop().map(|Reverse(timer)| timer)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_order_of_time_kind_and_number() {
        let mut timers = Timers::default();
        for (time_ps, timer) in
            [(5, Timer::Stop), (5, Timer::Sender(2)), (5, Timer::Sender(1)), (4, Timer::Sample), (5, Timer::Start)]
        {
            timers.add(time_ps, timer);
        }
        let order: Vec<_> = std::iter::from_fn(|| timers.take_by(5)).map(|(_, timer)| timer).collect();
        assert_eq!(order, [Timer::Sample, Timer::Start, Timer::Sender(1), Timer::Sender(2), Timer::Stop]);
        timers.add(6, Timer::Stop);
        assert_eq!((timers.take_by(5), timers.next_ps()), (None, 6));
    }
}
