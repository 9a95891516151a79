//! The receiving end: puts segments in order and decides when to acknowledge (RFC 5681 4.2, RFC 8257 3.2).

use super::ack::Ack;
use super::config::Config;
use super::out_of_order::{Inserted, OutOfOrder};

/// What to do about a segment that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// Send [`Receiver::ack`].
    Now,
    /// Congestion marks began or ended here: send an ACK with these values, which reports the segments before, and then
    /// [`Receiver::ack`] (RFC 8257 3.2).
    NowAfter {
        /// [`Ack::cumulative`] of the first.
        cumulative: u32,
        /// [`Ack::ece`] of the first.
        ece: bool,
    },
    /// Send [`Receiver::ack`] when this time comes and [`Receiver::deadline`] still says so.
    Delay(u64),
}

/// The receiver of one flow.
#[derive(Debug)]
pub struct Receiver {
    next: u32,
    /// In-order segments that no ACK has covered yet.
    uncovered: u32,
    /// When the delayed ACK is due; `u64::MAX`: there is none.
    deadline_ps: u64,
    /// Segments that are still acknowledged one by one.
    quick: u32,
    sack: bool,
    /// The last segment was marked (DCTCP.CE).
    marked: bool,
    duplicate: Option<(u32, u32)>,
    held: Option<Box<OutOfOrder>>,
}

impl Receiver {
    /// A receiver that waits for segment 0.
    pub fn new(config: &Config) -> Self {
        Self {
            next: 0,
            uncovered: 0,
            deadline_ps: u64::MAX,
            quick: config.quick_acks,
            sack: config.sack,
            marked: false,
            duplicate: None,
            held: None,
        }
    }

    /// Segments that the application has received, in order.
    #[inline]
    pub fn delivered(&self) -> u32 {
        self.next
    }

    /// When a delayed ACK is due.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        (self.deadline_ps != u64::MAX).then_some(self.deadline_ps)
    }

    /// Takes segment `seq`. `ce`: a switch marked it.
    #[inline]
    pub fn on_data(&mut self, now_ps: u64, seq: u32, ce: bool, config: &Config) -> AckDecision {
        let before = (ce != self.marked).then(|| self.mark_changes(ce)).flatten();
        let decision = if seq == self.next && self.held.is_none() {
            self.next += 1;
            self.in_order(now_ps, config)
        } else {
            self.take_aside(seq);
            AckDecision::Now
        };
        before.unwrap_or(decision)
    }

    /// The ACK to send now. It covers everything that has arrived.
    #[inline]
    pub fn ack(&mut self) -> Ack {
        self.uncovered = 0;
        self.deadline_ps = u64::MAX;
        let sack = if self.held.is_none() && self.duplicate.is_none() { None } else { self.blocks() };
        Ack { cumulative: self.next, ece: self.marked, sack }
    }

    #[inline]
    fn in_order(&mut self, now_ps: u64, config: &Config) -> AckDecision {
        self.uncovered += 1;
        if self.uncovered >= config.segments_per_ack || self.quick > 0 {
            self.quick = self.quick.saturating_sub(1);
            return AckDecision::Now;
        }
        if self.deadline_ps == u64::MAX {
            self.deadline_ps = now_ps + config.delayed_ack_ps;
        }
        AckDecision::Delay(self.deadline_ps)
    }

    /// The marks on segments begin or end: what is not yet acknowledged must be reported with the old state. An ACK
    /// for the segment itself follows at once.
    fn mark_changes(&mut self, ce: bool) -> Option<AckDecision> {
        let before = AckDecision::NowAfter { cumulative: self.next, ece: self.marked };
        self.marked = ce;
        (std::mem::take(&mut self.uncovered) > 0).then_some(before)
    }

    /// A segment that is a duplicate, comes too early or fills a gap is acknowledged at once (RFC 5681 4.2).
    fn take_aside(&mut self, seq: u32) {
        if seq < self.next {
            self.duplicate = Some((seq, seq + 1));
            return;
        }
        let mut held = self.held.take().unwrap_or_default();
        if seq == self.next {
            self.next = held.take_from(seq + 1);
        } else if held.insert(seq) == Inserted::Duplicate {
            self.duplicate = Some((seq, seq + 1));
        }
        self.held = (!held.is_empty()).then_some(held);
    }

    fn blocks(&mut self) -> Option<super::SackBlocks> {
        let duplicate = self.duplicate.take();
        let none = OutOfOrder::default();
        self.held.as_deref().unwrap_or(&none).blocks(duplicate).filter(|_| self.sack)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MS;
    use super::*;

    fn config(segments_per_ack: u32, quick_acks: u32) -> Config {
        Config { segments_per_ack, quick_acks, ..Config::rfc_reno() }
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_the_last_one_late() {
        let config = config(2, 0);
        let mut receiver = Receiver::new(&config);
        assert_eq!(receiver.on_data(5, 0, false, &config), AckDecision::Delay(5 + 40 * MS));
        assert_eq!(receiver.on_data(7, 1, false, &config), AckDecision::Now);
        assert_eq!(receiver.ack(), Ack { cumulative: 2, ece: false, sack: None });
        assert_eq!(receiver.deadline(), None);
        assert_eq!(receiver.on_data(9, 2, false, &config), AckDecision::Delay(9 + 40 * MS));
        assert_eq!(receiver.deadline(), Some(9 + 40 * MS));
        assert_eq!(receiver.ack().cumulative, 3);
        assert_eq!(receiver.deadline(), None);
    }

    #[test]
    fn the_first_segments_may_be_acknowledged_one_by_one() {
        let config = config(2, 3);
        let mut receiver = Receiver::new(&config);
        for seq in 0..3 {
            assert_eq!(receiver.on_data(0, seq, false, &config), AckDecision::Now);
            receiver.ack();
        }
        assert_eq!(receiver.on_data(0, 3, false, &config), AckDecision::Delay(40 * MS));
    }

    #[test]
    fn gaps_and_their_end_are_acknowledged_at_once() {
        let config = config(2, 0);
        let mut receiver = Receiver::new(&config);
        assert_eq!(receiver.on_data(0, 2, false, &config), AckDecision::Now);
        assert_eq!(receiver.ack().sack.map(|b| b.ranges[0]), Some((2, 3)));
        assert_eq!(receiver.on_data(0, 1, false, &config), AckDecision::Now);
        assert_eq!((receiver.ack().cumulative, receiver.delivered()), (0, 0));
        assert_eq!(receiver.on_data(0, 0, false, &config), AckDecision::Now);
        assert_eq!(receiver.ack(), Ack { cumulative: 3, ece: false, sack: None });
    }

    #[test]
    fn duplicates_are_reported_once() {
        let config = config(2, 0);
        let mut receiver = Receiver::new(&config);
        for seq in [0, 1, 3, 0] {
            receiver.on_data(0, seq, false, &config);
        }
        assert_eq!(receiver.ack().sack.map(|b| b.ranges), Some([(0, 1), (3, 4), (0, 0)]));
        assert_eq!(receiver.ack().sack.map(|b| b.ranges), Some([(3, 4), (0, 0), (0, 0)]));
        receiver.on_data(0, 3, false, &config);
        assert_eq!(receiver.ack().sack.map(|b| b.ranges), Some([(3, 4), (3, 4), (0, 0)]));
        assert_eq!(receiver.delivered(), 2);
    }

    #[test]
    fn without_sack_no_blocks_are_sent() {
        let config = Config { sack: false, ..config(2, 0) };
        let mut receiver = Receiver::new(&config);
        receiver.on_data(0, 5, false, &config);
        receiver.on_data(0, 5, false, &config);
        assert_eq!(receiver.ack(), Ack::default());
    }

    /// RFC 8257 3.2: with delayed ACKs every mark is still reported, by an ACK for what came before it.
    #[test]
    fn marks_that_begin_and_end_are_reported_exactly() {
        let config = config(2, 0);
        let mut receiver = Receiver::new(&config);
        assert_eq!(receiver.on_data(0, 0, false, &config), AckDecision::Delay(40 * MS));
        assert_eq!(receiver.on_data(0, 1, true, &config), AckDecision::NowAfter { cumulative: 1, ece: false });
        assert_eq!(receiver.ack(), Ack { cumulative: 2, ece: true, sack: None });
        assert_eq!(receiver.on_data(0, 2, true, &config), AckDecision::Delay(40 * MS));
        assert_eq!(receiver.on_data(0, 3, true, &config), AckDecision::Now);
        assert_eq!(receiver.ack(), Ack { cumulative: 4, ece: true, sack: None });
        assert_eq!(receiver.on_data(0, 4, false, &config), AckDecision::Delay(40 * MS));
    }
}
