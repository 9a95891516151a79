//! Frames of several sockets in the order of their times: they wait until nothing earlier can come any more, or until too
//! much waits.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

/// Bytes that may wait.
const HELD_MAX_BYTES: usize = 64 << 20;
/// What a frame that waits takes beside its bytes.
const FRAME_BYTES: usize = 128;

/// A frame that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) time: Duration,
    /// Frames of one time keep the order in which they came.
    number: u64,
    pub(super) port: usize,
    pub(super) outgoing: bool,
    pub(super) original_bytes: u32,
    pub(super) data: Vec<u8>,
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Frames that wait.
#[derive(Debug, Default)]
pub(super) struct Window {
    held: BinaryHeap<Reverse<Held>>,
    bytes: usize,
    came: u64,
}

impl Window {
    /// Adds a frame.
    pub(super) fn put(&mut self, time: Duration, port: usize, outgoing: bool, original_bytes: u32, data: &[u8]) {
        self.bytes += data.len() + FRAME_BYTES;
        self.came += 1;
        let number = self.came;
        self.held.push(Reverse(Held { time, number, port, outgoing, original_bytes, data: data.to_vec() }));
    }

    /// The earliest frame, if it is from before `until` or too much waits.
    pub(super) fn next(&mut self, until: Duration) -> Option<Held> {
        let Reverse(first) = self.held.peek()?;
        if first.time >= until && self.bytes <= HELD_MAX_BYTES {
            return None;
        }
        let Reverse(first) = self.held.pop()?;
        self.bytes -= first.data.len() + FRAME_BYTES;
        Some(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: fn(u64) -> Duration = Duration::from_nanos;

    fn times(window: &mut Window, until: Duration) -> Vec<(u128, usize)> {
        std::iter::from_fn(|| window.next(until)).map(|held| (held.time.as_nanos(), held.port)).collect()
    }

    #[test]
    fn frames_leave_in_order_of_their_times_once_nothing_earlier_can_come() {
        let mut window = Window::default();
        for (time, port) in [(5, 0), (9, 0), (3, 1), (5, 1), (7, 1)] {
            window.put(NS(time), port, false, 60, &[0; 60]);
        }
        assert_eq!(times(&mut window, NS(7)), [(3, 1), (5, 0), (5, 1)]);
        window.put(NS(6), 2, false, 60, &[0; 60]);
        assert_eq!(times(&mut window, NS(100)), [(6, 2), (7, 1), (9, 0)]);
        assert!(window.is_empty() && window.bytes == 0);
    }

    #[test]
    fn no_more_than_a_bound_waits() {
        let mut window = Window::default();
        let frame = vec![0; 1 << 20];
        for time in 0..200 {
            window.put(NS(time), 0, false, 1 << 20, &frame);
            while window.next(NS(0)).is_some() {}
            assert!(window.bytes <= HELD_MAX_BYTES);
        }
        assert!(window.held.len() > 32, "up to the bound they wait");
    }
}
