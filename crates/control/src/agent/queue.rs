//! Frames that wait for a mapping, bounded for each AA and in all; the oldest make room.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use super::io::Held;

/// Waiting frames in order of arrival.
#[derive(Debug)]
pub(super) struct FrameQueue<H> {
    frames: BTreeMap<u64, (Ipv4Addr, H)>,
    by_aa: BTreeMap<Ipv4Addr, Waiting>,
    bytes: usize,
    next: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    numbers: VecDeque<u64>,
    bytes: usize,
}

/// Which bound a dropped frame met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The bound of its AA.
    Aa,
    /// The bound of all frames.
    Total,
}

impl<H: Held> FrameQueue<H> {
    pub(super) fn new() -> Self {
        Self { frames: BTreeMap::new(), by_aa: BTreeMap::new(), bytes: 0, next: 0 }
    }

    /// Appends a frame, then drops the oldest ones until both bounds hold. Returns what was dropped.
    pub(super) fn push(
        &mut self,
        aa: Ipv4Addr,
        frame: H,
        per_aa_max: usize,
        total_max: usize,
    ) -> Vec<(Ipv4Addr, Full)> {
        let waiting = self.by_aa.entry(aa).or_default();
        waiting.numbers.push_back(self.next);
        waiting.bytes += frame.held_bytes();
        self.bytes += frame.held_bytes();
        self.frames.insert(self.next, (aa, frame));
        self.next += 1;
        let mut dropped = Vec::new();
        while self.by_aa.get(&aa).is_some_and(|waiting| waiting.bytes > per_aa_max) {
            self.pop(aa);
            dropped.push((aa, Full::Aa));
        }
        while self.bytes > total_max {
            let (_, (oldest, _)) = self.frames.first_key_value().expect("bytes are held by frames");
            let oldest = *oldest;
            self.pop(oldest);
            dropped.push((oldest, Full::Total));
        }
        dropped
    }

    /// Takes all frames of an AA, oldest first.
    pub(super) fn take(&mut self, aa: Ipv4Addr) -> Vec<H> {
        let mut frames = Vec::new();
        while let Some(frame) = self.pop(aa) {
            frames.push(frame);
        }
        frames
    }

    /// How many frames wait.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    fn pop(&mut self, aa: Ipv4Addr) -> Option<H> {
        let waiting = self.by_aa.get_mut(&aa)?;
        let number = waiting.numbers.pop_front()?;
        let (_, frame) = self.frames.remove(&number).expect("each number has its frame");
        waiting.bytes -= frame.held_bytes();
        self.bytes -= frame.held_bytes();
        if waiting.numbers.is_empty() {
            self.by_aa.remove(&aa);
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 2);

    #[test]
    fn frames_come_out_in_order_and_once() {
        let mut queue = FrameQueue::new();
        assert!(queue.push(A, vec![1; 10], 100, 100).is_empty());
        assert!(queue.push(B, vec![2; 10], 100, 100).is_empty());
        assert!(queue.push(A, vec![3; 10], 100, 100).is_empty());
        assert_eq!(queue.take(A), [vec![1; 10], vec![3; 10]]);
        assert!(queue.take(A).is_empty());
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn the_oldest_make_room_under_each_bound() {
        let mut queue = FrameQueue::new();
        queue.push(A, vec![1; 60], 100, 150);
        assert_eq!(queue.push(A, vec![2; 60], 100, 150), [(A, Full::Aa)]);
        assert_eq!(queue.push(B, vec![3; 95], 100, 150), [(A, Full::Total)]);
        assert!(queue.take(A).is_empty());
        assert_eq!(queue.take(B), [vec![3; 95]]);
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn a_frame_above_the_bound_is_dropped_itself() {
        let mut queue = FrameQueue::new();
        assert_eq!(queue.push(A, vec![1; 101], 100, 150), [(A, Full::Aa)]);
        assert_eq!((queue.len(), queue.bytes, queue.by_aa.len()), (0, 0, 0));
    }
}
