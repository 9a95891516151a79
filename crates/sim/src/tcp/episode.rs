//! The state that exists only while something is wrong: segments arrived out of order, were lost or are being repaired.

use super::forward::Forward;
use super::probe::Probe;
use super::rack::Rack;
use super::reduction::Reduction;
use super::sacks::SackReader;

/// How far the trouble has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Something arrived out of order; nothing is known to be lost.
    Disorder,
    /// Losses are being repaired without a timeout (RFC 6675, RFC 6582).
    Recovery,
    /// The retransmission timer expired (RFC 5681 3.1).
    Loss,
}

/// Trouble, from the first sign of it until every segment is in order again.
#[derive(Debug)]
pub(super) struct Episode {
    pub(super) phase: Phase,
    /// RecoveryPoint: recovery ends when everything below is acknowledged.
    pub(super) point: u32,
    /// The segment that the last timeout found missing.
    pub(super) timed_out: Option<u32>,
    /// The first retransmission of a recovery goes out whatever the window says (RFC 6675 section 5, step 4.3).
    pub(super) fast_retransmit: bool,
    /// No lost segment below is without retransmission (HighRxt of RFC 6675).
    pub(super) repaired: u32,
    /// The rescue retransmission of this recovery has been sent (RescueRxt of RFC 6675).
    pub(super) rescued: bool,
    pub(super) sacks: SackReader,
    pub(super) rack: Rack,
    pub(super) forward: Forward,
    pub(super) probe: Option<Probe>,
    pub(super) reduction: Option<Reduction>,
}

impl Episode {
    pub(super) fn new(una: u32) -> Self {
        Self {
            phase: Phase::Disorder,
            point: una,
            timed_out: None,
            fast_retransmit: false,
            repaired: una,
            rescued: false,
            sacks: SackReader::default(),
            rack: Rack::new(una),
            forward: Forward::default(),
            probe: None,
            reduction: None,
        }
    }

    /// Begins a phase in which everything from `una` on is to be repaired and which lasts until `point`.
    pub(super) fn start_over(&mut self, phase: Phase, una: u32, point: u32) {
        self.phase = phase;
        self.point = point;
        self.repaired = una;
        self.rescued = false;
        self.probe = None;
        self.reduction = None;
        self.fast_retransmit = false;
        self.forward.start_over();
    }
}
