//! The congestion window in segments, and how Reno grows it (RFC 5681).

/// `ssthresh` before the first loss (RFC 5681 3.1: arbitrarily high).
const UNBOUNDED: u32 = u32::MAX;
/// The smallest `ssthresh` in segments (RFC 5681 equation 4).
pub(super) const SSTHRESH_MIN: u32 = 2;

/// Congestion window and slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Segments that may be in flight, at least 1.
    pub(super) cwnd: u32,
    /// Slow start ends here.
    pub(super) ssthresh: u32,
    /// The window never exceeds this: the receiver's window.
    cap: u32,
    /// Delivered segments that congestion avoidance has not yet turned into window.
    credit: u32,
}

impl Window {
    pub(super) fn new(initial: u32, cap: u32) -> Self {
        Self { cwnd: initial.min(cap).max(1), ssthresh: UNBOUNDED, cap, credit: 0 }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether no loss has set a threshold yet.
    pub(super) fn is_unbounded(&self) -> bool {
        self.ssthresh == UNBOUNDED
    }

    /// Sets the window to `segments`, but at least to 1 and at most to the cap.
    pub(super) fn set(&mut self, segments: u32) {
        self.cwnd = segments.min(self.cap).max(1);
        self.credit = 0;
    }

    /// Raises the window to `segments`, but at most to the cap.
    pub(super) fn raise(&mut self, segments: u32) {
        self.cwnd = segments.min(self.cap).max(self.cwnd);
    }

    /// Grows by one per delivered segment up to `ssthresh` (RFC 5681 3.1 with the byte counting of RFC 3465, without
    /// its limit, as Linux does) and returns the segments left over for congestion avoidance.
    #[inline]
    pub(super) fn slow_start(&mut self, delivered: u32) -> u32 {
        let used = delivered.min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd = (self.cwnd + used).min(self.cap);
        delivered - used
    }

    /// Grows by one per window of delivered segments.
    #[inline]
    pub(super) fn avoid_congestion(&mut self, delivered: u32) {
        self.credit += delivered;
        if self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd = (self.cwnd + 1).min(self.cap);
        }
    }

    /// Slow start, then congestion avoidance with what is left over.
    #[inline]
    pub(super) fn grow(&mut self, delivered: u32) {
        let left = if self.in_slow_start() { self.slow_start(delivered) } else { delivered };
        if left > 0 {
            self.avoid_congestion(left);
        }
    }

    /// Half of the window, the threshold after a loss. Growth stops when the window does not limit the sender, so the
    /// window stands for the flight size of RFC 5681 equation 4.
    pub(super) fn half(&self) -> u32 {
        (self.cwnd / 2).max(SSTHRESH_MIN)
    }

    /// Shrinks after `timeouts` retransmission timeouts without sending: half for each, but not below the initial
    /// window. The threshold remembers three quarters of what was (RFC 2861 section 3.2, as Linux does).
    pub(super) fn decay(&mut self, timeouts: u64, initial: u32) {
        self.ssthresh = self.ssthresh.max(self.cwnd - self.cwnd / 4);
        let floor = initial.min(self.cwnd);
        self.set((self.cwnd >> timeouts.min(31)).max(floor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_per_round_trip() {
        let mut window = Window::new(3, u32::MAX);
        for want in [6, 12, 24, 48] {
            for _ in 0..window.cwnd {
                window.grow(1);
            }
            assert_eq!(window.cwnd, want);
        }
    }

    #[test]
    fn congestion_avoidance_adds_one_per_round_trip() {
        let mut window = Window::new(10, u32::MAX);
        window.ssthresh = 10;
        for want in 11..40 {
            for _ in 0..window.cwnd {
                window.grow(1);
            }
            assert_eq!(window.cwnd, want);
        }
    }

    #[test]
    fn delayed_acks_slow_neither_phase() {
        let mut window = Window::new(8, u32::MAX);
        window.ssthresh = 15;
        for _ in 0..4 {
            window.grow(2);
        }
        // 7 of 8 segments reach ssthresh, the eighth is credit.
        assert_eq!((window.cwnd, window.credit), (15, 1));
        for _ in 0..7 {
            window.grow(2);
        }
        assert_eq!((window.cwnd, window.credit), (16, 0));
    }

    #[test]
    fn the_cap_holds() {
        let mut window = Window::new(100, 40);
        assert_eq!(window.cwnd, 40);
        window.grow(1000);
        assert_eq!(window.cwnd, 40);
    }

    #[test]
    fn idle_time_halves_per_timeout_down_to_the_initial_window() {
        let mut window = Window::new(64, u32::MAX);
        window.ssthresh = 20;
        window.decay(2, 10);
        assert_eq!((window.cwnd, window.ssthresh), (16, 48));
        window.decay(40, 10);
        assert_eq!(window.cwnd, 10);
        let mut small = Window::new(4, u32::MAX);
        small.decay(1, 10);
        assert_eq!(small.cwnd, 4);
    }
}
