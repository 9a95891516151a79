//! HyStart as Linux has it (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011): CUBIC leaves slow start before
//! it overflows a queue, when a round's ACKs span half of the shortest round trip or when the delay rises.

use super::MS;
use super::congestion::Delivery;

/// Below this window slow start is never left early.
const WINDOW_MIN: u32 = 16;
/// ACKs this close together belong to one train.
const TRAIN_GAP_PS: u64 = 2 * MS;
/// Samples of a round before its delay is judged.
const SAMPLES: u8 = 8;
/// The rise in delay that counts, an eighth of the shortest round trip, is kept within these.
const RISE_MIN_PS: u64 = 4 * MS;
const RISE_MAX_PS: u64 = 16 * MS;
/// A train may be longer by the time of four full GSO buffers at the pacing rate, but not by more than a millisecond.
const GSO_ALLOWANCE_SEGMENTS: u64 = 4 * 65_536 / 1_448;
const GSO_ALLOWANCE_MAX_PS: u64 = MS;

/// HyStart's state.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    shortest_ps: u64,
    found: bool,
    /// The round ends when this segment is acknowledged.
    round_end: u32,
    round_start_ps: u64,
    last_ack_ps: u64,
    round_shortest_ps: u64,
    samples: u8,
}

impl HyStart {
    /// Takes an ACK of slow start; true once, when slow start should end with the window `cwnd`.
    pub(super) fn says_stop(&mut self, cwnd: u32, delivery: &Delivery) -> bool {
        let Some(rtt_ps) = delivery.rtt_ps else { return false };
        self.shortest_ps = if self.shortest_ps == 0 { rtt_ps } else { self.shortest_ps.min(rtt_ps) };
        if self.found || cwnd < WINDOW_MIN {
            return false;
        }
        if delivery.una > self.round_end {
            self.start_round(delivery);
        }
        self.found = self.train_is_long(cwnd, delivery) || self.delay_rises(rtt_ps);
        self.found
    }

    fn start_round(&mut self, delivery: &Delivery) {
        self.round_end = delivery.next;
        self.round_start_ps = delivery.now_ps;
        self.last_ack_ps = delivery.now_ps;
        self.round_shortest_ps = u64::MAX;
        self.samples = 0;
    }

    fn train_is_long(&mut self, cwnd: u32, delivery: &Delivery) -> bool {
        if delivery.now_ps - self.last_ack_ps > TRAIN_GAP_PS {
            return false;
        }
        self.last_ack_ps = delivery.now_ps;
        // Linux paces slow start, where it paces, at two windows per round trip.
        let allowance_ps =
            (delivery.srtt_ps * GSO_ALLOWANCE_SEGMENTS / (2 * u64::from(cwnd))).min(GSO_ALLOWANCE_MAX_PS);
        delivery.now_ps - self.round_start_ps > (self.shortest_ps + allowance_ps) / 2
    }

    fn delay_rises(&mut self, rtt_ps: u64) -> bool {
        self.round_shortest_ps = self.round_shortest_ps.min(rtt_ps);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise_ps = (self.shortest_ps / 8).clamp(RISE_MIN_PS, RISE_MAX_PS);
        self.round_shortest_ps > self.shortest_ps + rise_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK at a time, with a round-trip time; the round ends every hundred segments.
    fn ack(now_us: u64, rtt_us: u64, una: u32) -> Delivery {
        let (now_ps, rtt_ps) = (now_us * MS / 1000, rtt_us * MS / 1000);
        Delivery { now_ps, segments: 1, rtt_ps: Some(rtt_ps), srtt_ps: rtt_ps, ece: false, una, next: una + 100 }
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        // 20 ms round trips, so half plus half the allowance of 1 ms is 10.5 ms.
        assert!(!hystart.says_stop(64, &ack(100_000, 20_000, 1)));
        for step in 1..=7 {
            assert!(!hystart.says_stop(64, &ack(100_000 + step * 1_500, 20_000, 2)));
        }
        assert!(hystart.says_stop(64, &ack(111_001, 20_000, 3)));
        assert!(!hystart.says_stop(64, &ack(111_002, 20_000, 4)), "once");
    }

    #[test]
    fn a_gap_ends_the_train() {
        let mut hystart = HyStart::default();
        assert!(!hystart.says_stop(64, &ack(100_000, 20_000, 1)));
        assert!(!hystart.says_stop(64, &ack(103_000, 20_000, 2)));
        assert!(!hystart.says_stop(64, &ack(115_000, 20_000, 3)));
    }

    #[test]
    fn delay_that_rises_by_an_eighth_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert!(!hystart.says_stop(64, &ack(0, 80_000, 0)));
        for step in 0..8 {
            assert!(!hystart.says_stop(64, &ack(100_000 + step * 3_000, 91_000, 1)));
        }
        assert!(hystart.says_stop(64, &ack(124_000, 91_000, 1)));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut hystart = HyStart::default();
        for step in 0..100 {
            assert!(!hystart.says_stop(15, &ack(step * 1_000, 20_000 + step * 1_000, 1)));
        }
    }
}
