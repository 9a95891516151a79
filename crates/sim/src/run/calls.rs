//! What happens at a set time and is no arrival of a packet: flow starts, timers, faults, samples.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something to do at a set time. Of two at the same time the one that stands first here is done first, then the one with
/// the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
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
    /// The end of the run.
    Stop,
}

/// All calls that are due some time.
#[derive(Debug, Default)]
pub(super) struct Calls {
    heap: BinaryHeap<Reverse<(u64, Call)>>,
}

impl Calls {
    pub(super) fn add(&mut self, time_ps: u64, call: Call) {
        self.heap.push(Reverse((time_ps, call)));
    }

    /// When the next call is due; the end of time if there is none.
    pub(super) fn next_ps(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((time_ps, _))| *time_ps)
    }

    /// Takes the next call if it is due by `time_ps`.
    pub(super) fn take_by(&mut self, time_ps: u64) -> Option<(u64, Call)> {
        let due = self.heap.peek().is_some_and(|Reverse((due_ps, _))| *due_ps <= time_ps);
        due.then(|| self.heap.pop().map(|Reverse(call)| call)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_order_of_time_kind_and_number() {
        let mut calls = Calls::default();
        for (time_ps, call) in
            [(5, Call::Stop), (5, Call::Sender(2)), (5, Call::Sender(1)), (4, Call::Sample), (5, Call::Start)]
        {
            calls.add(time_ps, call);
        }
        let order: Vec<_> = std::iter::from_fn(|| calls.take_by(5)).map(|(_, call)| call).collect();
        assert_eq!(order, [Call::Sample, Call::Start, Call::Sender(1), Call::Sender(2), Call::Stop]);
        calls.add(6, Call::Stop);
        assert_eq!((calls.take_by(5), calls.next_ps()), (None, 6));
    }
}
