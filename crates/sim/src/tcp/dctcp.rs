//! DCTCP's estimate of the marked fraction (RFC 8257 3.3), in integers.

use super::window::SSTHRESH_MIN;

use super::congestion::Delivery;

/// One, in the fixed point of `alpha`. Fine enough that alpha can fall below any marking that matters.
const ONE: u64 = 1 << 20;
/// The estimation gain g is 1 / 2^4 (RFC 8257 4.1).
const GAIN_SHIFT: u32 = 4;

/// DCTCP's state.
#[derive(Debug)]
pub(super) struct Dctcp {
    alpha: u64,
    /// Segments acknowledged in this observation window, and those of them under a mark.
    acked: u64,
    marked: u64,
    /// The observation window ends when this segment is acknowledged (DCTCP.WindowEnd).
    window_end: u32,
}

impl Default for Dctcp {
    /// Alpha starts at 1, so that the first marks halve the window (RFC 8257 4.2).
    fn default() -> Self {
        Self { alpha: ONE, acked: 0, marked: 0, window_end: 0 }
    }
}

impl Dctcp {
    /// Counts marks and updates alpha once per window: alpha = (1 - g) * alpha + g * marked / acked.
    pub(super) fn observe(&mut self, delivery: &Delivery) {
        self.acked += u64::from(delivery.segments);
        self.marked += u64::from(delivery.segments) * u64::from(delivery.ece);
        if delivery.una <= self.window_end || self.acked == 0 {
            return;
        }
        let fraction = self.marked * ONE / self.acked;
        self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + (fraction >> GAIN_SHIFT);
        (self.acked, self.marked, self.window_end) = (0, 0, delivery.next);
    }

    /// The window times (1 - alpha / 2).
    pub(super) fn reduced(&self, cwnd: u32) -> u32 {
        let cut = u64::from(cwnd) * self.alpha / (2 * ONE);
        // The cut is at most half of a u32.
        (cwnd - cut as u32).max(SSTHRESH_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_of(dctcp: &mut Dctcp, marked: u32, clean: u32) {
        let una = dctcp.window_end + 1;
        let ack = |segments, ece, una| Delivery {
            now_ps: 0,
            segments,
            rtt_ps: None,
            srtt_ps: 0,
            ece,
            una,
            next: una + marked + clean,
        };
        dctcp.observe(&ack(marked, true, una - 1));
        dctcp.observe(&ack(clean, false, una));
    }

    fn parts_per_million(dctcp: &Dctcp) -> u64 {
        dctcp.alpha * 1_000_000 / ONE
    }

    #[test]
    fn alpha_starts_at_one_and_halves_the_window() {
        assert_eq!(Dctcp::default().reduced(100), 50);
        assert_eq!(Dctcp::default().reduced(3), 2);
    }

    #[test]
    fn alpha_moves_by_a_sixteenth_per_window() {
        let mut dctcp = Dctcp::default();
        window_of(&mut dctcp, 0, 10);
        // 15/16.
        assert_eq!(parts_per_million(&dctcp), 937_500);
        window_of(&mut dctcp, 5, 5);
        // 15/16 * 15/16 + 1/16 * 1/2 = 225/256 + 8/256.
        assert_eq!(parts_per_million(&dctcp), 910_156);
        // 100 - 100 * 0.91016 / 2 = 54.49.., the cut rounded down.
        assert_eq!(dctcp.reduced(100), 55);
    }

    #[test]
    fn alpha_converges_to_the_marked_fraction() {
        let mut dctcp = Dctcp::default();
        (0..300).for_each(|_| window_of(&mut dctcp, 1, 9));
        assert!((99_900..=100_100).contains(&parts_per_million(&dctcp)), "{}", parts_per_million(&dctcp));
        (0..300).for_each(|_| window_of(&mut dctcp, 0, 10));
        assert!(parts_per_million(&dctcp) < 20);
        assert_eq!(dctcp.reduced(1000), 1000);
    }
}
