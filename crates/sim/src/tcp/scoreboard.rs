//! Every outstanding segment in eight bytes, and the counts that follow from them (RFC 6675 section 3).
//!
//! A segment's word is when it was last sent and four marks. The words form a ring indexed by sequence number, so that
//! sending and acknowledging in order touch memory one word after the other and never allocate once the ring is grown.

use crate::prefetch::prefetch;

/// What is known about one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment(u64);

const SACKED: u64 = 1;
const LOST: u64 = 2;
/// A retransmission is in flight.
const RESENT: u64 = 4;
/// Was ever retransmitted, so that its ACK is ambiguous (Karn).
const AMBIGUOUS: u64 = 8;
const TIME_SHIFT: u32 = 4;

impl Segment {
    fn sent(now_ps: u64) -> Self {
        Self(now_ps << TIME_SHIFT)
    }

    /// When it was last sent.
    #[inline]
    pub(super) fn sent_ps(self) -> u64 {
        self.0 >> TIME_SHIFT
    }

    pub(super) fn is_sacked(self) -> bool {
        self.0 & SACKED != 0
    }

    pub(super) fn is_lost(self) -> bool {
        self.0 & LOST != 0
    }

    /// Whether a retransmission of it is in flight.
    pub(super) fn is_resent(self) -> bool {
        self.0 & RESENT != 0
    }

    /// Whether it was ever sent twice.
    #[inline]
    pub(super) fn is_ambiguous(self) -> bool {
        self.0 & AMBIGUOUS != 0
    }
}

const RING_MIN: usize = 16;

/// The outstanding segments `una..next` and how many of them are where.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    /// Empty or a power of two long, at least the number of outstanding segments.
    ring: Vec<Segment>,
    una: u32,
    next: u32,
    sacked: u32,
    lost: u32,
    /// Of all outstanding segments, those with a retransmission in flight.
    resent: u32,
    /// Of the lost ones, those without.
    unrepaired: u32,
}

impl Scoreboard {
    /// The oldest segment that is not acknowledged.
    #[inline]
    pub(super) fn una(&self) -> u32 {
        self.una
    }

    /// The segment after the highest that was sent.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub(super) fn outstanding(&self) -> u32 {
        self.next - self.una
    }

    /// RFC 6675's estimate of the segments in the network: a lost or SACKed one has left it, a retransmission is in it.
    #[inline]
    pub(super) fn pipe(&self) -> u32 {
        self.outstanding() - self.sacked - self.lost + self.resent
    }

    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Lost segments that wait for their retransmission.
    pub(super) fn unrepaired(&self) -> u32 {
        self.unrepaired
    }

    /// Whether every outstanding segment was sent once and nothing is known about any.
    pub(super) fn is_clean(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.resent == 0
    }

    /// An outstanding segment, or the last that was sent.
    #[inline]
    pub(super) fn get(&self, seq: u32) -> Segment {
        self.ring[seq as usize & (self.ring.len() - 1)]
    }

    /// Fetches the oldest and the next segment ahead of their use.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        let places = [self.una, self.next].map(|seq| seq as usize & self.ring.len().saturating_sub(1));
        places.into_iter().filter_map(|place| self.ring.get(place)).for_each(prefetch);
    }

    /// Notes that the next segment is sent now, and returns its number.
    #[inline]
    pub(super) fn send(&mut self, now_ps: u64) -> u32 {
        if self.outstanding() as usize >= self.ring.len() {
            self.grow();
        }
        let seq = self.next;
        self.set(seq, Segment::sent(now_ps));
        self.next += 1;
        seq
    }

    /// Notes that segment `seq` is sent again now.
    pub(super) fn resend(&mut self, seq: u32, now_ps: u64) {
        let segment = self.get(seq);
        if !segment.is_resent() {
            self.resent += 1;
            self.unrepaired -= u32::from(segment.is_lost());
        }
        let marks = (segment.0 & (SACKED | LOST)) | RESENT | AMBIGUOUS;
        self.set(seq, Segment(Segment::sent(now_ps).0 | marks));
    }

    /// Acknowledges everything below `cumulative` at once. The scoreboard must be clean.
    #[inline]
    pub(super) fn advance_clean(&mut self, cumulative: u32) {
        debug_assert!(self.is_clean());
        self.una = cumulative;
    }

    /// Acknowledges the oldest segment and returns what was known about it.
    pub(super) fn retire(&mut self) -> Segment {
        let segment = self.get(self.una);
        self.una += 1;
        self.sacked -= u32::from(segment.is_sacked());
        self.uncount(segment);
        segment
    }

    /// Notes that `seq` has arrived out of order; false if that was known.
    pub(super) fn sack(&mut self, seq: u32) -> bool {
        let segment = self.get(seq);
        if segment.is_sacked() {
            return false;
        }
        self.uncount(segment);
        self.sacked += 1;
        self.set(seq, Segment((segment.0 & !(LOST | RESENT)) | SACKED));
        true
    }

    /// Notes that `seq` is lost, in case nothing was known about it.
    pub(super) fn mark_lost(&mut self, seq: u32) {
        let segment = self.get(seq);
        if segment.0 & (SACKED | LOST) == 0 {
            self.lost += 1;
            self.unrepaired += u32::from(!segment.is_resent());
            self.set(seq, Segment(segment.0 | LOST));
        }
    }

    /// Notes that the retransmission of `seq` is lost as well.
    pub(super) fn mark_resent_lost(&mut self, seq: u32) {
        let segment = self.get(seq);
        if segment.is_resent() {
            self.resent -= 1;
            self.unrepaired += u32::from(segment.is_lost());
            self.set(seq, Segment(segment.0 & !RESENT));
        }
        self.mark_lost(seq);
    }

    /// After a timeout everything that has not arrived counts as lost, retransmissions too (RFC 6675 5.1).
    pub(super) fn mark_all_lost(&mut self) {
        for seq in self.una..self.next {
            self.mark_resent_lost(seq);
        }
    }

    /// Without SACK, a duplicate ACK says that one segment more has arrived, not which (RFC 6582 3.2 step 3). One more
    /// than the lost ones must be missing, or the ACK would not be a duplicate. Returns whether it counted.
    pub(super) fn presume_arrived(&mut self) -> bool {
        let room = self.sacked + self.lost.max(1) < self.outstanding();
        self.sacked += u32::from(room);
        room
    }

    /// Without SACK, takes back up to `count` presumed arrivals.
    pub(super) fn forget_presumed(&mut self, count: u32) {
        self.sacked -= count.min(self.sacked);
    }

    /// Without SACK, at least one outstanding segment is missing: no more can have arrived.
    pub(super) fn limit_presumed(&mut self) {
        self.sacked = self.sacked.min(self.outstanding().saturating_sub(self.lost.max(1)));
    }

    /// Takes a segment that leaves the network out of the counts of lost and retransmitted ones.
    fn uncount(&mut self, segment: Segment) {
        self.lost -= u32::from(segment.is_lost());
        self.resent -= u32::from(segment.is_resent());
        self.unrepaired -= u32::from(segment.is_lost() && !segment.is_resent());
    }

    #[inline]
    fn set(&mut self, seq: u32, segment: Segment) {
        let index = seq as usize & (self.ring.len() - 1);
        self.ring[index] = segment;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(RING_MIN);
        let mut larger = vec![Segment::default(); size];
        for seq in self.una..self.next {
            larger[seq as usize & (size - 1)] = self.get(seq);
        }
        self.ring = larger;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(count: u32) -> Scoreboard {
        let mut board = Scoreboard::default();
        for seq in 0..count {
            assert_eq!(board.send(u64::from(seq)), seq);
        }
        board
    }

    #[test]
    fn pipe_counts_as_rfc_6675_says() {
        let mut board = sent(10);
        assert_eq!(board.pipe(), 10);
        for seq in [2, 3, 4] {
            assert!(board.sack(seq));
        }
        assert_eq!(board.pipe(), 7);
        board.mark_lost(0);
        board.mark_lost(1);
        assert_eq!((board.pipe(), board.unrepaired()), (5, 2));
        board.resend(0, 100);
        assert_eq!((board.pipe(), board.unrepaired()), (6, 1));
        board.mark_resent_lost(0);
        assert_eq!((board.pipe(), board.unrepaired()), (5, 2));
        assert!(!board.sack(2));
        for _ in 0..5 {
            board.retire();
        }
        assert_eq!((board.pipe(), board.is_clean()), (5, true));
    }

    #[test]
    fn the_ring_grows_across_its_wrap() {
        let mut board = sent(12);
        board.advance_clean(10);
        for time in 12..200 {
            board.send(time);
        }
        for seq in 10..200 {
            assert_eq!(board.get(seq).sent_ps(), u64::from(seq));
        }
    }

    #[test]
    fn presumed_arrivals_leave_a_hole() {
        let mut board = sent(4);
        assert_eq!([(); 5].map(|()| board.presume_arrived()), [true, true, true, false, false]);
        assert_eq!(board.pipe(), 1);
    }

    proptest! {
        #[test]
        fn counts_equal_a_recount(operations in proptest::collection::vec((0u8..7, any::<u32>()), 0..200)) {
            let mut board = Scoreboard::default();
            for (time, (operation, pick)) in operations.into_iter().enumerate() {
                let any = board.una() + pick % board.outstanding().max(1);
                match operation {
                    _ if board.outstanding() == 0 => _ = board.send(time as u64),
                    0 | 1 => _ = board.send(time as u64),
                    2 => _ = board.retire(),
                    3 => _ = board.sack(any),
                    4 => board.mark_lost(any),
                    5 if !board.get(any).is_sacked() => board.resend(any, time as u64),
                    5 => (),
                    _ => board.mark_resent_lost(any),
                }
                let all: Vec<_> = (board.una()..board.next()).map(|seq| board.get(seq)).collect();
                let count = |which: fn(&Segment) -> bool| all.iter().filter(|s| which(s)).count() as u32;
                prop_assert_eq!(board.sacked(), count(|s| s.is_sacked()));
                prop_assert_eq!(board.lost(), count(|s| s.is_lost()));
                prop_assert_eq!(board.unrepaired(), count(|s| s.is_lost() && !s.is_resent()));
                let pipe = count(|s| !s.is_sacked() && !s.is_lost()) + count(|s| s.is_resent());
                prop_assert_eq!(board.pipe(), pipe);
            }
        }
    }
}
