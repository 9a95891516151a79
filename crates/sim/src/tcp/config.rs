//! How both ends of a connection behave. One value serves all flows of a run, so machines take it by reference.

use weft_scenario::engine::{CongestionControl, Transport};
use weft_scenario::units::Nanos;

use super::{MS, SECOND};

/// Settings of TCP. [`Config::default`] is a Linux kernel of today; [`Config::linux_2_6_26`] is the leaf-spine paper's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How the window grows and shrinks.
    pub congestion_control: CongestionControl,
    /// Whether CUBIC leaves slow start early (HyStart, as in Linux).
    pub hystart: bool,
    /// Initial window in segments, at least 1.
    pub initial_window: u32,
    /// Most segments outstanding, at least 1: the receiver's window; `u32::MAX`: no limit.
    pub window_cap: u32,
    /// Whether idle time longer than the retransmission timeout shrinks the window (RFC 5681 4.1).
    pub idle_restart: bool,

    /// Selective acknowledgements (RFC 2018, RFC 2883). Without them recovery is NewReno's (RFC 6582).
    pub sack: bool,
    /// Timestamps (RFC 7323): retransmitted segments give round-trip times too. No bytes are added.
    pub timestamps: bool,
    /// How losses are found where SACK is on.
    pub loss_detection: LossDetection,
    /// Tail loss probes (RFC 8985 section 7) where SACK is on.
    pub tail_loss_probe: bool,
    /// Added to a probe's timeout when one segment is outstanding, for its delayed ACK (Linux: its smallest RTO).
    pub probe_ack_delay_ps: u64,
    /// Added to a probe's timeout when more are outstanding (Linux: two clock ticks, at 250 Hz
    /// 8 ms).
    pub probe_margin_ps: u64,
    /// Proportional rate reduction (RFC 6937) instead of the pipe rule of RFC 6675.
    pub proportional_reduction: bool,

    /// Smallest retransmission timeout.
    pub rto_min_ps: u64,
    /// What that minimum applies to.
    pub rto_floor: RtoFloor,
    /// Largest retransmission timeout, back-off included.
    pub rto_max_ps: u64,
    /// Retransmission timeout before the first round-trip time is known.
    pub rto_initial_ps: u64,
    /// SYNs sent again before the connection fails.
    pub syn_retries: u8,

    /// In-order segments that one ACK may cover: 1 or 2 (RFC 5681 4.2).
    pub segments_per_ack: u32,
    /// Longest time that an ACK is held back.
    pub delayed_ack_ps: u64,
    /// First segments of a connection that are acknowledged one by one (Linux: up to 16).
    pub quick_acks: u32,
}

/// How a sender finds lost segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// Three segments above it were SACKed (RFC 6675).
    DuplicateThreshold,
    /// The highest SACKed segment is three above it; a retransmission when something sent after it has arrived (FACK). Once
    /// reordering was seen, as with the threshold.
    Forward,
    /// A segment sent later has arrived (RACK, RFC 8985 section 6).
    Rack,
}

/// What the smallest retransmission timeout bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298 2.4).
    Whole,
    /// Only the part for variation, so that the timeout is the smoothed round-trip time plus the minimum (Linux).
    Variation,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion_control: CongestionControl::Cubic,
            hystart: true,
            initial_window: 10,
            window_cap: u32::MAX,
            idle_restart: true,
            sack: true,
            timestamps: true,
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            probe_ack_delay_ps: 200 * MS,
            probe_margin_ps: 8 * MS,
            proportional_reduction: true,
            rto_min_ps: 200 * MS,
            rto_floor: RtoFloor::Variation,
            rto_max_ps: 120 * SECOND,
            rto_initial_ps: SECOND,
            syn_retries: 6,
            segments_per_ack: 2,
            delayed_ack_ps: 40 * MS,
            quick_acks: 16,
        }
    }
}

impl Config {
    /// Whether loss probes are sent.
    pub(super) fn probes(&self) -> bool {
        self.tail_loss_probe && self.sack
    }

    /// The same with what a scenario says about TCP. Its settings for the lab only are left alone.
    pub fn with_transport(self, transport: &Transport) -> Self {
        Self {
            congestion_control: transport.congestion_control,
            initial_window: transport.initial_window,
            window_cap: transport.window_cap_segments.unwrap_or(u32::MAX),
            rto_min_ps: picoseconds(transport.rto_min),
            rto_initial_ps: picoseconds(transport.rto_initial),
            segments_per_ack: transport.segments_per_ack,
            sack: transport.sack,
            timestamps: transport.timestamps,
            ..self
        }
    }

    /// Linux 2.6.26, which the leaf-spine paper measured with: Reno, an initial window of 3, FACK, no RACK, no probes.
    /// Its rate halving is stood in for by proportional rate reduction, which has the same target.
    pub fn linux_2_6_26() -> Self {
        Self {
            congestion_control: CongestionControl::Reno,
            hystart: false,
            initial_window: 3,
            loss_detection: LossDetection::Forward,
            tail_loss_probe: false,
            rto_initial_ps: 3 * SECOND,
            ..Self::default()
        }
    }

    /// The RFCs' plain Reno with SACK and nothing else: RFC 5681, 6675 and 6298.
    pub fn rfc_reno() -> Self {
        Self {
            congestion_control: CongestionControl::Reno,
            hystart: false,
            loss_detection: LossDetection::DuplicateThreshold,
            tail_loss_probe: false,
            proportional_reduction: false,
            rto_floor: RtoFloor::Whole,
            rto_min_ps: SECOND,
            timestamps: false,
            quick_acks: 0,
            ..Self::default()
        }
    }
}

fn picoseconds(time: Nanos) -> u64 {
    time.0.saturating_mul(1_000)
}
