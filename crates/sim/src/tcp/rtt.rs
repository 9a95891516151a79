//! Round-trip times and the retransmission timeout (RFC 6298).

use super::SECOND;
use super::config::{Config, RtoFloor};

/// The timeout before the first measurement where the SYN was lost (RFC 6298 5.7).
const RTO_AFTER_LOST_SYN_PS: u64 = 3 * SECOND;

/// Smoothed round-trip time, its variation and the back-off. The clock's granularity G is a picosecond and left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
    /// 0: none measured yet.
    srtt_ps: u64,
    variation_ps: u64,
    min_ps: u64,
    backoff: u8,
    lost_syn: bool,
}

impl RttEstimator {
    pub(super) fn new() -> Self {
        Self { srtt_ps: 0, variation_ps: 0, min_ps: u64::MAX, backoff: 0, lost_syn: false }
    }

    pub(super) fn srtt_ps(&self) -> Option<u64> {
        (self.srtt_ps > 0).then_some(self.srtt_ps)
    }

    /// The smallest round-trip time seen; `u64::MAX` before the first.
    pub(super) fn min_ps(&self) -> u64 {
        self.min_ps
    }

    /// Takes a measurement of a segment whose ACK is not ambiguous, and ends the back-off (RFC 6298 2.2, 2.3, 5.7).
    #[inline]
    pub(super) fn sample(&mut self, rtt_ps: u64) {
        let rtt = rtt_ps.max(1);
        self.min_ps = self.min_ps.min(rtt);
        self.backoff = 0;
        if self.srtt_ps == 0 {
            self.srtt_ps = rtt;
            self.variation_ps = rtt / 2;
        } else {
            self.variation_ps = self.variation_ps - self.variation_ps / 4 + self.srtt_ps.abs_diff(rtt) / 4;
            self.srtt_ps = (self.srtt_ps - self.srtt_ps / 8 + rtt / 8).max(1);
        }
    }

    /// The timer expired: twice the timeout from now on (RFC 6298 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The connection opened after its SYN was lost, without a measurement: data start with 3 s (RFC 6298 5.7).
    pub(super) fn open_unmeasured(&mut self) {
        self.backoff = 0;
        self.lost_syn = true;
    }

    /// The timeout now, back-off included.
    #[inline]
    pub(super) fn rto_ps(&self, config: &Config) -> u64 {
        self.base_ps(config).saturating_mul(1 << self.backoff.min(62)).min(config.rto_max_ps)
    }

    #[inline]
    fn base_ps(&self, config: &Config) -> u64 {
        if self.srtt_ps == 0 {
            let floor = if self.lost_syn { RTO_AFTER_LOST_SYN_PS } else { 0 };
            return config.rto_initial_ps.max(floor);
        }
        let spread = 4 * self.variation_ps;
        match config.rto_floor {
            RtoFloor::Whole => (self.srtt_ps + spread).max(config.rto_min_ps),
            RtoFloor::Variation => self.srtt_ps + spread.max(config.rto_min_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MS;
    use super::*;

    fn config(min_ms: u64, rto_floor: RtoFloor) -> Config {
        Config { rto_min_ps: min_ms * MS, rto_floor, rto_max_ps: 60 * SECOND, ..Config::rfc_reno() }
    }

    #[test]
    fn the_sequence_of_rfc_6298_worked_by_hand() {
        let config = config(0, RtoFloor::Whole);
        let mut rtt = RttEstimator::new();
        // 2.1: one second before the first measurement.
        assert_eq!(rtt.rto_ps(&config), SECOND);
        // 2.2: R = 80 ms: SRTT 80, RTTVAR 40, RTO 80 + 4 * 40 = 240.
        rtt.sample(80 * MS);
        assert_eq!((rtt.srtt_ps(), rtt.rto_ps(&config)), (Some(80 * MS), 240 * MS));
        // 2.3: R' = 120: RTTVAR 3/4 * 40 + 1/4 * 40 = 40; SRTT 7/8 * 80 + 1/8 * 120 = 85; RTO 245.
        rtt.sample(120 * MS);
        assert_eq!((rtt.srtt_ps(), rtt.rto_ps(&config)), (Some(85 * MS), 245 * MS));
        // R' = 85: RTTVAR 30; SRTT 85; RTO 205.
        rtt.sample(85 * MS);
        assert_eq!((rtt.srtt_ps(), rtt.rto_ps(&config)), (Some(85 * MS), 205 * MS));
        // R' = 5: RTTVAR 22.5 + 20 = 42.5; SRTT 74.375 + 0.625 = 75; RTO 245.
        rtt.sample(5 * MS);
        assert_eq!((rtt.srtt_ps(), rtt.rto_ps(&config)), (Some(75 * MS), 245 * MS));
        assert_eq!(rtt.min_ps(), 5 * MS);
    }

    #[test]
    fn the_minimum_bounds_the_whole_or_the_variation() {
        let mut rtt = RttEstimator::new();
        rtt.sample(80 * MS);
        assert_eq!(rtt.rto_ps(&config(1000, RtoFloor::Whole)), 1000 * MS);
        assert_eq!(rtt.rto_ps(&config(200, RtoFloor::Variation)), 280 * MS);
        assert_eq!(rtt.rto_ps(&config(100, RtoFloor::Variation)), 240 * MS);
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_measurement() {
        let config = config(1000, RtoFloor::Whole);
        let mut rtt = RttEstimator::new();
        rtt.sample(10 * MS);
        for want_s in [2, 4, 8, 16, 32, 60, 60] {
            rtt.back_off();
            assert_eq!(rtt.rto_ps(&config), want_s * SECOND);
        }
        for _ in 0..300 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto_ps(&config), 60 * SECOND);
        rtt.sample(10 * MS);
        assert_eq!(rtt.rto_ps(&config), SECOND);
    }

    #[test]
    fn a_lost_syn_makes_data_start_with_three_seconds() {
        let config = config(200, RtoFloor::Whole);
        let mut rtt = RttEstimator::new();
        rtt.back_off();
        rtt.open_unmeasured();
        assert_eq!(rtt.rto_ps(&config), 3 * SECOND);
        rtt.sample(10 * MS);
        assert_eq!(rtt.rto_ps(&config), 200 * MS);
    }
}
