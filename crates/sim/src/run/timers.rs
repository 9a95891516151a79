//! Timers: what happens at a set time and is no arrival of a packet. Flow starts, faults, samples, the timers of TCP.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something to do at a set time. Of two at the same time the one that stands first here is done first, then the one with
/// the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The receiver in this place may owe an acknowledgement; its flow's number.
    Receiver(u32, u64),
    /// The timer of the sender in this place may have run out; its flow's number.
    Sender(u32, u64),
    /// Progress and link counters.
    Sample,
    /// TCP senders.
    SampleTcp,
    /// What a replay shows.
    Replay,
    /// The end of the run.
    Stop,
}

/// A time, and how much of what is due then comes before: no timer of this rank or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) time_ps: u64,
    rank: u8,
}

impl Due {
    /// Later than everything.
    pub(super) const NEVER: Self = Self { time_ps: u64::MAX, rank: u8::MAX };

    /// Before everything that is due at a time.
    pub(super) fn at(time_ps: u64) -> Self {
        Self { time_ps, rank: 0 }
    }

    /// After all timers of a time, as arrivals are.
    pub(super) fn after_timers_of(time_ps: u64) -> Self {
        Self { time_ps, rank: u8::MAX }
    }
}

/// Bits of an entry's order that hold a flow's number, beneath the timer's rank.
const NUMBER_BITS: u32 = 60;

/// When, what (rank and number), and where that is kept, on which the order does not depend.
type Entry = (u64, u64, u32);

/// All timers that are due some time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Timers {
    pub(super) fn add(&mut self, time_ps: u64, timer: Timer) {
        let (order, place) = timer.packed();
        self.heap.push(Reverse((time_ps, order, place)));
    }

    /// When the next timer is due.
    pub(super) fn next(&self) -> Due {
        self.heap.peek().map_or(Due::NEVER, |Reverse((time_ps, order, _))| Due {
            time_ps: *time_ps,
            rank: (order >> NUMBER_BITS) as u8,
        })
    }

    /// Takes the next timer if it is due by `time_ps`.
    pub(super) fn take_by(&mut self, time_ps: u64) -> Option<(u64, Timer)> {
        let due = self.heap.peek().is_some_and(|Reverse((due_ps, ..))| *due_ps <= time_ps);
        due.then(|| self.heap.pop().map(|Reverse((at_ps, order, place))| (at_ps, Timer::unpacked(order, place))))
            .flatten()
    }
}

impl Timer {
    fn packed(self) -> (u64, u32) {
        let (rank, number, place) = match self {
            Self::FaultStep(step) => (0, step.into(), 0),
            Self::Reconverge(step) => (1, step.into(), 0),
            Self::Start => (2, 0, 0),
            Self::Source(server) => (3, server.into(), 0),
            Self::Datagram(stream) => (4, stream.into(), 0),
            Self::Host(server) => (5, server.into(), 0),
            Self::Receiver(place, flow) => (6, flow, place),
            Self::Sender(place, flow) => (7, flow, place),
            Self::Sample => (8, 0, 0),
            Self::SampleTcp => (9, 0, 0),
            Self::Replay => (10, 0, 0),
            Self::Stop => (11, 0, 0),
        };
        (rank << NUMBER_BITS | number, place)
    }

    fn unpacked(order: u64, place: u32) -> Self {
        let number = order & ((1 << NUMBER_BITS) - 1);
        match order >> NUMBER_BITS {
            0 => Self::FaultStep(number as u32),
            1 => Self::Reconverge(number as u32),
            2 => Self::Start,
            3 => Self::Source(number as u32),
            4 => Self::Datagram(number as u32),
            5 => Self::Host(number as u32),
            6 => Self::Receiver(place, number),
            7 => Self::Sender(place, number),
            8 => Self::Sample,
            9 => Self::SampleTcp,
            10 => Self::Replay,
            _ => Self::Stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_order_of_time_kind_and_number() {
        let mut timers = Timers::default();
        for (time_ps, timer) in [
            (5, Timer::Stop),
            (5, Timer::Sender(0, 2)),
            (5, Timer::Sender(9, 1)),
            (4, Timer::Sample),
            (5, Timer::Start),
            (5, Timer::Receiver(3, (1 << 52) - 1)),
            (5, Timer::Reconverge(u32::MAX)),
        ] {
            timers.add(time_ps, timer);
        }
        assert_eq!(timers.next(), Due { time_ps: 4, rank: 8 });
        assert!(Due::at(4) < timers.next() && timers.next() < Due::at(5) && Due::at(5) < Due::NEVER);
        let order: Vec<_> = std::iter::from_fn(|| timers.take_by(5)).map(|(_, timer)| timer).collect();
        let expected = [
            Timer::Sample,
            Timer::Reconverge(u32::MAX),
            Timer::Start,
            Timer::Receiver(3, (1 << 52) - 1),
            Timer::Sender(9, 1),
            Timer::Sender(0, 2),
            Timer::Stop,
        ];
        assert_eq!(order, expected);
        timers.add(6, Timer::Stop);
        assert_eq!((timers.take_by(5), timers.next().time_ps), (None, 6));
    }

    #[test]
    fn every_timer_is_what_went_in() {
        let timers = [
            Timer::FaultStep(7),
            Timer::Source(8),
            Timer::Datagram(u32::MAX),
            Timer::Host(9),
            Timer::SampleTcp,
            Timer::Replay,
        ];
        for timer in timers {
            let (order, place) = timer.packed();
            assert_eq!(Timer::unpacked(order, place), timer);
        }
    }
}
