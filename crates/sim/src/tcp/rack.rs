//! RACK (RFC 8985 section 6): a segment is lost when one sent later has arrived and reordering cannot explain it.

use std::collections::VecDeque;

use super::scoreboard::{Scoreboard, Segment};

/// Recoveries for which a widened window is kept (RFC 8985: RACK.reo_wnd_persist).
const WIDE_FOR_RECOVERIES: u8 = 16;

/// What a connection has learnt about reordering. It outlives episodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reordering {
    seen: bool,
    /// Quarters of the smallest round-trip time beyond the first (RFC 8985: RACK.reo_wnd_mult - 1).
    widenings: u8,
    recoveries_left: u8,
    /// One widening per round trip: the next when this segment is acknowledged.
    until: u32,
}

impl Reordering {
    /// A segment that was never retransmitted arrived after a higher one (RFC 8985 step 3).
    pub(super) fn seen(&mut self) {
        self.seen = true;
    }

    pub(super) fn was_seen(self) -> bool {
        self.seen
    }

    /// A retransmission was needless: wait longer next time (RFC 8985 step 4).
    pub(super) fn needless_retransmission(&mut self, una: u32, next: u32) {
        if una >= self.until {
            self.until = next;
            self.widenings = self.widenings.saturating_add(1);
            self.recoveries_left = WIDE_FOR_RECOVERIES;
        }
    }

    /// A recovery is over: what was widened long ago is forgotten.
    pub(super) fn recovered(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.widenings = 0;
        }
    }
}

/// Round-trip times that bound the reordering window; 0 for smoothed: none measured, so no window.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    pub(super) min_ps: u64,
    pub(super) smoothed_ps: u64,
}

/// The most recently sent segment that has arrived, and the segments that are not judged yet.
#[derive(Debug)]
pub(super) struct Rack {
    sent_ps: u64,
    /// The segment after it: breaks ties of `sent_ps`.
    end: u32,
    rtt_ps: u64,
    /// Segments below that were sent once have been judged; sequence order is the order of sending.
    judged: u32,
    /// Retransmitted segments in the order of sending.
    resent: VecDeque<u32>,
}

impl Rack {
    pub(super) fn new(una: u32) -> Self {
        Self { sent_ps: 0, end: 0, rtt_ps: 0, judged: una, resent: VecDeque::new() }
    }

    pub(super) fn retransmitted(&mut self, seq: u32) {
        self.resent.push_back(seq);
    }

    /// After a timeout: whatever was retransmitted counts as lost already.
    pub(super) fn forget_retransmissions(&mut self) {
        self.resent.clear();
    }

    /// A segment arrived at `now_ps` (RFC 8985 step 2). An answer that comes sooner than any did is to the original.
    pub(super) fn arrived(&mut self, seq: u32, segment: Segment, now_ps: u64, min_rtt_ps: u64) {
        let rtt_ps = now_ps - segment.sent_ps();
        if segment.is_ambiguous() && rtt_ps < min_rtt_ps {
            return;
        }
        if (segment.sent_ps(), seq + 1) > (self.sent_ps, self.end) {
            (self.sent_ps, self.end, self.rtt_ps) = (segment.sent_ps(), seq + 1, rtt_ps);
        }
    }

    /// Marks lost what was sent early enough (RFC 8985 step 5) and returns when to look again if something was not.
    /// `hasty`: losses are being repaired already or the duplicate threshold is reached, so only reordering that was
    /// really seen is waited for (step 4). `again` is called for each retransmission that was lost.
    pub(super) fn detect_losses(
        &mut self,
        board: &mut Scoreboard,
        reordering: Reordering,
        round_trips: RoundTrips,
        hasty: bool,
        now_ps: u64,
        again: impl FnMut(u32),
    ) -> Option<u64> {
        let window_ps = reordering_window_ps(reordering, round_trips, hasty);
        let patience_ps = self.rtt_ps + window_ps;
        let judge = |seq: u32, segment: Segment, (sent_ps, end): (u64, u32)| {
            let earlier = (segment.sent_ps(), seq + 1) < (sent_ps, end);
            let at_ps = segment.sent_ps() + patience_ps;
            match earlier {
                false => Verdict::SentLater,
                true if at_ps <= now_ps => Verdict::Lost,
                true => Verdict::WaitUntil(at_ps),
            }
        };
        let newest = (self.sent_ps, self.end);
        let first = self.judge_originals(board, |seq, segment| judge(seq, segment, newest));
        let second = self.judge_retransmissions(board, |seq, segment| judge(seq, segment, newest), again);
        first.into_iter().chain(second).min()
    }

    fn judge_originals(&mut self, board: &mut Scoreboard, judge: impl Fn(u32, Segment) -> Verdict) -> Option<u64> {
        self.judged = self.judged.max(board.una());
        while self.judged < board.next() {
            let segment = board.get(self.judged);
            if !(segment.is_sacked() || segment.is_lost() || segment.is_ambiguous()) {
                match judge(self.judged, segment) {
                    Verdict::Lost => board.mark_lost(self.judged),
                    Verdict::WaitUntil(at_ps) => return Some(at_ps),
                    Verdict::SentLater => return None,
                }
            }
            self.judged += 1;
        }
        None
    }

    fn judge_retransmissions(
        &mut self,
        board: &mut Scoreboard,
        judge: impl Fn(u32, Segment) -> Verdict,
        mut again: impl FnMut(u32),
    ) -> Option<u64> {
        while let Some(&seq) = self.resent.front() {
            if seq >= board.una() && board.get(seq).is_resent() {
                match judge(seq, board.get(seq)) {
                    Verdict::Lost => {
                        board.mark_resent_lost(seq);
                        again(seq);
                    }
                    Verdict::WaitUntil(at_ps) => return Some(at_ps),
                    Verdict::SentLater => return None,
                }
            }
            self.resent.pop_front();
        }
        None
    }
}

/// What RACK says of one segment.
enum Verdict {
    Lost,
    WaitUntil(u64),
    SentLater,
}

fn reordering_window_ps(reordering: Reordering, round_trips: RoundTrips, hasty: bool) -> u64 {
    if hasty && !reordering.seen {
        return 0;
    }
    let quarters = 1 + u64::from(reordering.widenings);
    (round_trips.min_ps / 4).saturating_mul(quarters).min(round_trips.smoothed_ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIPS: RoundTrips = RoundTrips { min_ps: 400, smoothed_ps: 500 };

    /// Segment n was sent at n * 10.
    fn board(count: u32) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|seq| _ = board.send(u64::from(seq) * 10));
        board
    }

    fn arrive(rack: &mut Rack, board: &mut Scoreboard, seq: u32, now_ps: u64) {
        let segment = board.get(seq);
        board.sack(seq);
        rack.arrived(seq, segment, now_ps, ROUND_TRIPS.min_ps);
    }

    fn detect(rack: &mut Rack, board: &mut Scoreboard, hasty: bool, now_ps: u64) -> (Option<u64>, Vec<u32>) {
        let mut again = vec![];
        let wait = rack.detect_losses(board, Reordering::default(), ROUND_TRIPS, hasty, now_ps, |seq| again.push(seq));
        (wait, again)
    }

    #[test]
    fn one_arrival_waits_a_quarter_of_the_round_trip() {
        let (mut board, mut rack) = (board(3), Rack::new(0));
        arrive(&mut rack, &mut board, 1, 410);
        // Segment 0 left at 0 and may take the round trip of 400 and 100 more.
        assert_eq!(detect(&mut rack, &mut board, false, 410).0, Some(500));
        assert_eq!(board.lost(), 0);
        assert_eq!(detect(&mut rack, &mut board, false, 500).0, None);
        assert!(board.get(0).is_lost() && !board.get(2).is_lost());
    }

    #[test]
    fn haste_does_not_wait() {
        let (mut board, mut rack) = (board(6), Rack::new(0));
        arrive(&mut rack, &mut board, 3, 430);
        assert_eq!(detect(&mut rack, &mut board, true, 430), (None, vec![]));
        assert_eq!(board.lost(), 3);
    }

    #[test]
    fn a_lost_retransmission_is_found() {
        let (mut board, mut rack) = (board(6), Rack::new(0));
        arrive(&mut rack, &mut board, 3, 430);
        detect(&mut rack, &mut board, true, 430);
        board.resend(0, 440);
        rack.retransmitted(0);
        board.resend(1, 450);
        rack.retransmitted(1);
        // The second retransmission arrives, the first does not.
        arrive(&mut rack, &mut board, 1, 860);
        assert_eq!(detect(&mut rack, &mut board, true, 860).1, [0]);
        // 2 was lost before; 4 and 5 left before the retransmission of 1 did.
        assert_eq!((board.unrepaired(), board.pipe()), (4, 0));
    }

    #[test]
    fn an_answer_sooner_than_possible_is_to_the_original() {
        let (mut board, mut rack) = (board(4), Rack::new(0));
        board.mark_lost(0);
        board.resend(0, 440);
        rack.retransmitted(0);
        arrive(&mut rack, &mut board, 0, 450);
        assert_eq!(detect(&mut rack, &mut board, true, 450), (None, vec![]));
        assert_eq!(board.lost(), 0, "the retransmission at 440 has proved nothing");
    }

    #[test]
    fn reordering_widens_the_window_up_to_the_smoothed_round_trip() {
        let mut reordering = Reordering::default();
        assert_eq!(reordering_window_ps(reordering, ROUND_TRIPS, true), 0);
        reordering.seen();
        assert_eq!(reordering_window_ps(reordering, ROUND_TRIPS, true), 100);
        reordering.needless_retransmission(0, 10);
        reordering.needless_retransmission(9, 12);
        assert_eq!(reordering_window_ps(reordering, ROUND_TRIPS, true), 200, "once per round trip");
        (10..300).for_each(|una| reordering.needless_retransmission(una, una));
        assert_eq!(reordering_window_ps(reordering, ROUND_TRIPS, true), 500);
        (0..15).for_each(|_| reordering.recovered());
        assert_eq!(reordering_window_ps(reordering, ROUND_TRIPS, true), 500, "remembered for 16 recoveries");
        reordering.recovered();
        assert_eq!(reordering_window_ps(reordering, ROUND_TRIPS, true), 100);
    }
}
