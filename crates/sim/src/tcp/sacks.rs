//! Reads SACK blocks into the scoreboard and finds losses by the duplicate threshold (RFC 6675).

use super::ack::SackBlocks;
use super::scoreboard::{Scoreboard, Segment};

/// Segments that must be SACKed above one before it counts as lost (RFC 6675 section 2).
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// What earlier blocks said, so that each ACK costs only what is new in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SackReader {
    seen: [(u32, u32); 3],
    /// The three highest segments that were SACKed, highest first, each plus one; 0: fewer than three.
    highest: [u32; 3],
    /// Everything below was judged by the duplicate threshold.
    judged: u32,
}

impl SackReader {
    /// The segment after the highest that was SACKed (RFC 6675: HighData covered by a SACK).
    pub(super) fn end(&self) -> u32 {
        self.highest[0]
    }

    /// Marks what the blocks report and calls `arrived` for each segment that was not known to have arrived. Ranges
    /// outside the outstanding segments are not believed.
    pub(super) fn read(&mut self, board: &mut Scoreboard, blocks: &SackBlocks, mut arrived: impl FnMut(u32, Segment)) {
        let mut read = [(0, 0); 3];
        for (&(start, end), read) in blocks.ranges.iter().zip(&mut read) {
            if start >= end || start < board.una() || end > board.next() {
                continue;
            }
            *read = (start, end);
            let known = self.seen.iter().copied().find(|seen| seen.0 < end && start < seen.1).unwrap_or((end, end));
            for seq in (start..known.0.max(start)).chain(known.1.min(end)..end) {
                let before = board.get(seq);
                if board.sack(seq) {
                    self.rank(seq + 1);
                    arrived(seq, before);
                }
            }
        }
        self.seen = read;
    }

    /// Marks every segment lost above which [`DUPLICATE_THRESHOLD`] were SACKed: IsLost of RFC 6675 section 4 for
    /// segments of equal size.
    pub(super) fn detect_losses(&mut self, board: &mut Scoreboard) {
        let edge = self.highest[2].saturating_sub(1);
        for seq in self.judged.max(board.una())..edge {
            board.mark_lost(seq);
        }
        self.judged = self.judged.max(edge);
    }

    fn rank(&mut self, end: u32) {
        let [first, second, third] = self.highest;
        self.highest = match end {
            _ if end > first => [end, first, second],
            _ if end > second => [first, end, second],
            _ if end > third => [first, second, end],
            _ => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn board(count: u32) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|_| _ = board.send(0));
        board
    }

    fn read(reader: &mut SackReader, board: &mut Scoreboard, ranges: [(u32, u32); 3]) -> Vec<u32> {
        let mut news = vec![];
        reader.read(board, &SackBlocks { ranges }, |seq, _| news.push(seq));
        news
    }

    fn lost(board: &Scoreboard) -> Vec<u32> {
        (board.una()..board.next()).filter(|&seq| board.get(seq).is_lost()).collect()
    }

    #[test]
    fn three_segments_above_make_one_lost() {
        let (mut board, mut reader) = (board(10), SackReader::default());
        // Segments 0 and 4 are missing.
        assert_eq!(read(&mut reader, &mut board, [(1, 3), (0, 0), (0, 0)]), [1, 2]);
        reader.detect_losses(&mut board);
        assert_eq!(lost(&board), [0u32; 0]);
        assert_eq!(read(&mut reader, &mut board, [(1, 4), (0, 0), (0, 0)]), [3]);
        reader.detect_losses(&mut board);
        assert_eq!(lost(&board), [0]);
        assert_eq!(read(&mut reader, &mut board, [(5, 7), (1, 4), (0, 0)]), [5, 6]);
        reader.detect_losses(&mut board);
        assert_eq!(lost(&board), [0], "only two above segment 4");
        assert_eq!(read(&mut reader, &mut board, [(5, 8), (1, 4), (0, 0)]), [7]);
        reader.detect_losses(&mut board);
        assert_eq!(lost(&board), [0, 4]);
        assert_eq!(reader.end(), 8);
    }

    #[test]
    fn absurd_blocks_are_not_believed() {
        let (mut board, mut reader) = (board(10), SackReader::default());
        board.advance_clean(3);
        assert_eq!(read(&mut reader, &mut board, [(1, 2), (8, 12), (9, 5)]), [0u32; 0]);
        assert_eq!(read(&mut reader, &mut board, [(u32::MAX - 1, u32::MAX), (2, 5), (4, 5)]), [4]);
        assert!(board.sacked() == 1);
    }

    proptest! {
        /// Reading by difference marks the same segments as reading every block whole.
        #[test]
        fn what_was_seen_is_not_needed(acks in proptest::collection::vec([(0u32..40, 0u32..9), (0u32..40, 0u32..9), (0u32..40, 0u32..9)], 1..20)) {
            let (mut board, mut reader) = (board(40), SackReader::default());
            let mut want = [false; 40];
            for ack in acks {
                let ranges = ack.map(|(start, length)| (start, (start + length).min(40)));
                for (start, end) in ranges {
                    want[start as usize..end as usize].fill(true);
                }
                read(&mut reader, &mut board, ranges);
                let got: Vec<bool> = (0..40).map(|seq| board.get(seq).is_sacked()).collect();
                prop_assert_eq!(&got[..], &want[..]);
                let mut above: Vec<u32> = (0..40).filter(|&seq| want[seq as usize]).collect();
                reader.detect_losses(&mut board);
                let edge = if above.len() < 3 { 0 } else { above.split_off(above.len() - 3)[0] };
                let lost_want: Vec<u32> = (0..edge).filter(|&seq| !want[seq as usize]).collect();
                prop_assert_eq!(lost(&board), lost_want);
            }
        }
    }
}
