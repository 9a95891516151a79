//! Takes a reduction of the window back when every retransmission behind it turns out to have been needless, because
//! the receiver reports each as a duplicate (RFC 3708, in the way of Linux).

use super::window::Window;

/// The window before a reduction and the retransmissions since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    cwnd: u32,
    ssthresh: u32,
    /// Duplicates below were sent before the reduction.
    from: u32,
    /// Retransmissions that were not yet reported as duplicates.
    unproven: u32,
}

impl Undo {
    pub(super) fn new(window: &Window, una: u32) -> Self {
        Self { cwnd: window.cwnd, ssthresh: window.ssthresh, from: una, unproven: 0 }
    }

    pub(super) fn retransmitted(&mut self) {
        self.unproven += 1;
    }

    /// Takes a reported duplicate; true if it was the last that was missing.
    pub(super) fn duplicate(&mut self, (start, end): (u32, u32)) -> bool {
        if start < self.from || self.unproven == 0 {
            return false;
        }
        self.unproven = self.unproven.saturating_sub(end - start);
        self.unproven == 0
    }

    pub(super) fn restore(&self, window: &mut Window) {
        window.ssthresh = window.ssthresh.max(self.ssthresh);
        window.set(window.cwnd.max(self.cwnd));
    }
}
