//! Forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996) with what Linux added to it until RACK: the highest SACK alone
//! says what is lost, and a retransmission too is lost once something that was sent after it has arrived.

use std::collections::VecDeque;

use super::sacks::DUPLICATE_THRESHOLD;
use super::scoreboard::Scoreboard;

/// What was judged, and the retransmissions of a recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Forward {
    /// Everything below was judged.
    judged: u32,
    /// Retransmitted segments in the order of sending, each with the segment that was next then.
    resent: VecDeque<(u32, u32)>,
}

impl Forward {
    pub(super) fn retransmitted(&mut self, seq: u32, next: u32) {
        self.resent.push_back((seq, next));
    }

    /// Another phase begins, in which earlier retransmissions say nothing.
    pub(super) fn start_over(&mut self) {
        self.resent.clear();
    }

    /// Marks lost what is at least the duplicate threshold below `end`, the segment after the highest that was SACKed, and
    /// retransmissions that were overtaken; `again` is called for each of these. Linux asks for a segment beyond the first
    /// that was sent after the retransmission.
    pub(super) fn detect_losses(&mut self, board: &mut Scoreboard, end: u32, mut again: impl FnMut(u32)) {
        let edge = end.saturating_sub(DUPLICATE_THRESHOLD);
        for seq in self.judged.max(board.una())..edge {
            board.mark_lost(seq);
        }
        self.judged = self.judged.max(edge);
        while let Some((seq, _)) = self.resent.front().copied().filter(|(_, next)| *next + 1 < end) {
            self.resent.pop_front();
            if seq >= board.una() && board.get(seq).is_resent() {
                board.mark_resent_lost(seq);
                again(seq);
            }
        }
    }
}
