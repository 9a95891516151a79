//! What the programs cost: nanoseconds per packet, as a ratio to a layer-2 program at the same hook that is measured in the same
//! rounds.
//!
//! [`run`] runs each program in the kernel without a network (`BPF_PROG_RUN`): the program alone, about a third of what a hop with
//! real frames costs. Those are measured by plans: `trill/fastpath-table1`, `vxlan/encapsulations`, `vxlan/tcp`,
//! `vl2/overlay-goodput`.
//!
//! XDP programs repeat on one buffer, and their time is the thread's CPU time, not the wall's: other work on the machine hardly
//! moves it. TC programs get a new frame each time (`vl2`), because what they do to one cannot be undone.

mod directory;
mod frames;
mod program_run;
mod trill;
mod vl2;

use serde::Serialize;

pub use directory::{CardNumbers, card};
pub use program_run::run;
pub use trill::{EGRESS_RATIO_MAX, INGRESS_RATIO_MAX, TRANSIT_MFRAMES_MIN, TRANSIT_RATIO_MAX};
pub use vl2::{HOST_RATIO_MAX, INTERMEDIATE_RATIO_MAX, TOR_DOWN_RATIO_MAX, TOR_UP_RATIO_MAX};

/// Highest ratio of VXLAN encapsulation to the layer-2 program.
pub const VXLAN_ENCAP_RATIO_MAX: f64 = 2.2;
/// Highest ratio of VXLAN decapsulation to the layer-2 program.
pub const VXLAN_DECAP_RATIO_MAX: f64 = 1.5;
/// Highest ratio of the layer-2 program, net, to the empty loop: else the yardstick itself would be too long.
pub const L2_OVER_EMPTY_MAX: f64 = 3.5;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct BenchOptions {
    /// Runs of a program in one call to the kernel.
    pub repeat: u32,
    /// Rounds; each measures everything once, and medians are taken over rounds.
    pub rounds: u32,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self { repeat: 500_000, rounds: 11 }
    }
}

/// What [`run`] found.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The shipped programs, net.
    pub programs: Vec<ProgramCost>,
    /// All that was measured, as measured.
    pub raw: Vec<RawCost>,
    /// What costs may be at most.
    #[serde(skip)]
    pub ceilings: Vec<Ceiling>,
    /// Runs per call.
    pub repeat: u32,
    pub rounds: u32,
}

/// One program at one frame size.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramCost {
    /// `l2_forward`, `vxlan_...` or `trill_...` at XDP; `l2_forward_tc` or `vl2_...` at TC.
    pub name: &'static str,
    /// The server's frame, before encapsulation, bytes.
    pub frame_bytes: usize,
    /// CPU time per packet without the empty loop and without what a wrapper spends on restoring the frame.
    pub ns_per_packet: f64,
    /// [`Self::ns_per_packet`] over that of the layer-2 program at the same hook: median of the rounds' ratios.
    pub ratio_to_l2: f64,
}

/// One measured loop.
#[derive(Clone, Debug, Serialize)]
pub struct RawCost {
    /// What ran.
    pub name: &'static str,
    /// As in [`ProgramCost`].
    pub frame_bytes: usize,
    /// CPU time per run: median of the rounds.
    pub ns_median: f64,
    /// The fastest round.
    pub ns_min: f64,
    /// The slowest round.
    pub ns_max: f64,
}

/// What a cost may be at most.
#[derive(Clone, Debug)]
pub struct Ceiling {
    /// What is compared, with the frame size.
    pub id: String,
    /// What was measured: a ratio, or nanoseconds where the name says so.
    pub ours: f64,
    /// What it may be at most.
    pub want_max: f64,
}

/// Middle value of some numbers, of an even count the mean of two; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[4.0, 1.0, 9.0]), median(&[4.0, 2.0])], [0.0, 3.0, 4.0, 3.0]);
    }
}
