//! The congestion controls behind one interface: Reno (RFC 5681), CUBIC (RFC 9438) and DCTCP (RFC 8257).

use weft_scenario::engine::CongestionControl;

use super::config::Config;
use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::window::Window;
use crate::prefetch::prefetch;

/// A congestion control with its state.
#[derive(Debug)]
pub(super) enum Control {
    Reno,
    Cubic(Box<Cubic>),
    Dctcp(Box<Dctcp>),
}

/// An ACK, as a congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) now_ps: u64,
    /// Segments that arrived, by cumulative and selective acknowledgement together.
    pub(super) segments: u32,
    /// Round-trip time of the newest of them; `None`: ambiguous.
    pub(super) rtt_ps: Option<u64>,
    /// Smoothed round-trip time; 0: unknown.
    pub(super) srtt_ps: u64,
    /// The receiver saw congestion marks.
    pub(super) ece: bool,
    /// The oldest segment that is not acknowledged, after this ACK.
    pub(super) una: u32,
    /// The segment after the highest that was sent.
    pub(super) next: u32,
}

impl Control {
    pub(super) fn new(config: &Config) -> Self {
        match config.congestion_control {
            CongestionControl::Reno => Self::Reno,
            CongestionControl::Cubic => Self::Cubic(Box::new(Cubic::new(config.hystart))),
            CongestionControl::Dctcp => Self::Dctcp(Box::default()),
        }
    }

    /// Fetches what it keeps ahead of its use.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        match self {
            Self::Reno => (),
            Self::Cubic(cubic) => prefetch(&**cubic),
            Self::Dctcp(dctcp) => prefetch(&**dctcp),
        }
    }

    /// Learns from every ACK, whether the window may grow or not.
    #[inline]
    pub(super) fn observe(&mut self, window: &mut Window, delivery: &Delivery) {
        match self {
            Self::Reno => (),
            Self::Cubic(cubic) => cubic.observe(window, delivery),
            Self::Dctcp(dctcp) => dctcp.observe(delivery),
        }
    }

    /// Grows the window for segments that were delivered while it was the limit.
    #[inline]
    pub(super) fn grow(&mut self, window: &mut Window, delivery: &Delivery) {
        match self {
            Self::Reno | Self::Dctcp(_) => window.grow(delivery.segments),
            Self::Cubic(cubic) => cubic.grow(window, delivery),
        }
    }

    /// The threshold after a loss. DCTCP reacts to loss as Reno does (RFC 8257 3.5).
    pub(super) fn ssthresh_after_loss(&mut self, window: &Window) -> u32 {
        match self {
            Self::Reno | Self::Dctcp(_) => window.half(),
            Self::Cubic(cubic) => cubic.reduce(window),
        }
    }

    /// The threshold after congestion marks, at most once per window (RFC 3168 6.1.2, RFC 8257 3.3).
    pub(super) fn ssthresh_after_marks(&mut self, window: &Window) -> u32 {
        match self {
            Self::Dctcp(dctcp) => dctcp.reduced(window.cwnd),
            _ => self.ssthresh_after_loss(window),
        }
    }

    /// The retransmission timer expired.
    pub(super) fn timed_out(&mut self) {
        if let Self::Cubic(cubic) = self {
            cubic.timed_out();
        }
    }

    /// A reduction was taken back, or the window shrank after idle time.
    pub(super) fn restart(&mut self) {
        if let Self::Cubic(cubic) = self {
            cubic.restart();
        }
    }
}
