//! Segments that arrived before their turn, as ranges in the order in which SACK reports them (RFC 2018 section 4).

use super::ack::SackBlocks;

/// Most ranges that a receiver keeps: what the memory of a flow is bounded by. Segments that would need another are
/// not taken, as if they had been lost.
const RANGES_MAX: usize = 4096;

/// Ranges above the next expected segment, disjoint and not adjacent, the one changed last first.
#[derive(Debug, Default)]
pub(super) struct OutOfOrder {
    ranges: Vec<(u32, u32)>,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    New,
    Duplicate,
    NoRoom,
}

impl OutOfOrder {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Takes a segment and moves its range to the front.
    pub(super) fn insert(&mut self, seq: u32) -> Inserted {
        let mut merged = (seq, seq + 1);
        let (mut below, mut above) = (None, None);
        for (index, &(start, end)) in self.ranges.iter().enumerate() {
            if start <= seq && seq < end {
                self.ranges[..=index].rotate_right(1);
                return Inserted::Duplicate;
            }
            if end == seq {
                (below, merged.0) = (Some(index), start);
            } else if start == seq + 1 {
                (above, merged.1) = (Some(index), end);
            }
        }
        self.put_first(merged, below, above)
    }

    /// Replaces the neighbours at the given places by the range that joins them.
    fn put_first(&mut self, merged: (u32, u32), below: Option<usize>, above: Option<usize>) -> Inserted {
        match (below, above) {
            (None, None) if self.ranges.len() >= RANGES_MAX => return Inserted::NoRoom,
            (None, None) => self.ranges.insert(0, merged),
            (Some(one), None) | (None, Some(one)) => {
                self.ranges[..=one].rotate_right(1);
                self.ranges[0] = merged;
            }
            (Some(one), Some(other)) => {
                self.ranges.remove(one.max(other));
                self.ranges[..=one.min(other)].rotate_right(1);
                self.ranges[0] = merged;
            }
        }
        Inserted::New
    }

    /// Takes out the range that begins at `next` and returns its end, or `next` if there is none.
    pub(super) fn take_from(&mut self, next: u32) -> u32 {
        match self.ranges.iter().position(|range| range.0 == next) {
            Some(index) => self.ranges.remove(index).1,
            None => next,
        }
    }

    /// The blocks to report, a duplicate before all others (RFC 2883 section 4).
    pub(super) fn blocks(&self, duplicate: Option<(u32, u32)>) -> Option<SackBlocks> {
        let mut blocks = SackBlocks::default();
        let reported = duplicate.iter().chain(&self.ranges);
        blocks.ranges.iter_mut().zip(reported).for_each(|(block, range)| *block = *range);
        (blocks != SackBlocks::default()).then_some(blocks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_are_reported_most_recent_first() {
        // RFC 2018 section 4, case 3 in segments: the second, fourth, sixth and eighth of 8 are lost.
        let mut held = OutOfOrder::default();
        assert_eq!([2, 4, 6].map(|seq| held.insert(seq)), [Inserted::New; 3]);
        assert_eq!(held.blocks(None).map(|b| b.ranges), Some([(6, 7), (4, 5), (2, 3)]));
        // The fourth arrives and joins two blocks.
        held.insert(3);
        assert_eq!(held.blocks(None).map(|b| b.ranges), Some([(2, 5), (6, 7), (0, 0)]));
        // The second arrives.
        assert_eq!(held.take_from(2), 5);
        assert_eq!(held.blocks(None).map(|b| b.ranges), Some([(6, 7), (0, 0), (0, 0)]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut held = OutOfOrder::default();
        for range in 0..RANGES_MAX as u32 {
            assert_eq!(held.insert(range * 2 + 1), Inserted::New);
        }
        assert_eq!(held.insert(1_000_001), Inserted::NoRoom);
        assert_eq!(held.insert(2), Inserted::New, "joining ranges needs no memory");
    }

    proptest! {
        #[test]
        fn ranges_equal_a_set(segments in proptest::collection::vec(0u32..64, 0..100)) {
            let mut held = OutOfOrder::default();
            let mut set = std::collections::BTreeSet::new();
            for seq in segments {
                let want = if set.insert(seq) { Inserted::New } else { Inserted::Duplicate };
                prop_assert_eq!(held.insert(seq), want);
                let first = held.ranges[0];
                prop_assert!(first.0 <= seq && seq < first.1);
                let mut sorted = held.ranges.clone();
                sorted.sort_unstable();
                prop_assert!(sorted.windows(2).all(|pair| pair[0].1 < pair[1].0), "disjoint and apart");
                let all: Vec<u32> = sorted.into_iter().flat_map(|(start, end)| start..end).collect();
                prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
