//! Whether the window is what limits a sender. Only then may it grow (RFC 7661 section 4, in the way of Linux): a flow
//! that waits for its application or its NIC learns nothing about the network.

use super::window::Window;

/// The use of the window in the current round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    limited: bool,
    /// Most segments outstanding.
    peak: u32,
    /// The round trip ends when this segment is acknowledged.
    until: u32,
}

impl Usage {
    /// A segment was wanted and the window did not allow it.
    #[inline]
    pub(super) fn limited(&mut self, next: u32) {
        self.limited = true;
        self.until = next;
    }

    #[inline]
    pub(super) fn sent(&mut self, outstanding: u32) {
        self.peak = self.peak.max(outstanding);
    }

    /// Starts a new round trip if the last is over.
    #[inline]
    pub(super) fn acknowledged(&mut self, una: u32, next: u32) {
        if una >= self.until {
            *self = Self { limited: false, peak: next - una, until: next };
        }
    }

    /// Whether the window may grow. Slow start may as long as half of it is used, so that it can double.
    #[inline]
    pub(super) fn allows_growth(&self, window: &Window) -> bool {
        self.limited || (window.in_slow_start() && window.cwnd < self.peak.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_sends_little_does_not_open_the_window() {
        let mut window = Window::new(10, u32::MAX);
        let mut usage = Usage::default();
        usage.sent(4);
        assert!(!usage.allows_growth(&window));
        usage.sent(6);
        assert!(usage.allows_growth(&window), "slow start may double what is used");
        window.ssthresh = 10;
        assert!(!usage.allows_growth(&window));
        usage.limited(20);
        assert!(usage.allows_growth(&window));
        usage.acknowledged(19, 30);
        assert!(usage.allows_growth(&window), "until the limited round trip is over");
        usage.acknowledged(20, 30);
        assert!(!usage.allows_growth(&window));
    }
}
