//! What the tester itself costs, how low its floor is, and how evenly it sends.

use std::time::Duration;

use serde::Serialize;

use crate::tester::error::TesterError;
use crate::tester::path::TrialOrder;
use crate::tester::reference::{Reference, Stop};
use crate::tester::stream::StreamPlan;

/// Rates at which the spacing of frames is looked at, frames per second.
const PACING_PPS: [f64; 4] = [10_000.0, 50_000.0, 100_000.0, 500_000.0];
const FLOOR_PPS: f64 = 100_000.0;
const RUNS: u32 = 8;
const RUN_TIME: Duration = Duration::from_millis(40);

/// The tester alone, over a veth pair of its own, with frames of 64 bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnReport {
    /// Generator, veth and counting analyser, CPU nanoseconds per frame: the least of some runs.
    pub generator_ns: f64,
    /// What it sends into its own sink, frames per second.
    pub generator_pps: f64,
    /// Median latency at 100,000 frames per second, nanoseconds: the least of some runs.
    pub floor_p50_ns: u64,
    /// 99th percentile of the same run.
    pub floor_p99_ns: u64,
    /// How evenly frames leave.
    pub pacing: Vec<Pacing>,
}

/// Spacing of frames at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pacing {
    /// What was asked for, frames per second.
    pub asked_pps: f64,
    /// What was sent.
    pub offered_pps: f64,
    /// Time between frames, nanoseconds: first hundredth, median, last hundredth.
    pub gap_p1_ns: u64,
    /// Median.
    pub gap_p50_ns: u64,
    /// 99th percentile.
    pub gap_p99_ns: u64,
    /// How far the median is from what was asked, as a share of it.
    pub error_ratio: f64,
    /// Times that the generator was held up.
    pub slips: u64,
}

pub(super) fn measure(reference: &mut Reference, plan: &StreamPlan, stop: Stop<'_>) -> Result<OwnReport, TesterError> {
    debug_assert!(!plan.is_tagged(), "64 bytes have no room for a tag");
    reference.set_own_size(64)?;
    let mut generator_ns = reference.generator_ns();
    let (mut floor_p50_ns, mut floor_p99_ns) = (u64::MAX, u64::MAX);
    for _ in 0..RUNS {
        generator_ns = generator_ns.min(reference.own_run_ns(RUN_TIME, stop)?.unwrap_or(f64::MAX));
        let latency = reference.own_trial(&TrialOrder::paced(FLOOR_PPS, RUN_TIME), stop)?.latency.summary();
        if latency.count > 0 && (latency.p50, latency.p99) < (floor_p50_ns, floor_p99_ns) {
            (floor_p50_ns, floor_p99_ns) = (latency.p50, latency.p99);
        }
    }
    let pacing = PACING_PPS.into_iter().map(|pps| pacing(reference, pps, stop)).collect::<Result<_, _>>()?;
    Ok(OwnReport { generator_ns, generator_pps: reference.generator_pps(), floor_p50_ns, floor_p99_ns, pacing })
}

/// The best of three: a neighbour's slices only ever widen gaps.
fn pacing(reference: &mut Reference, asked_pps: f64, stop: Stop<'_>) -> Result<Pacing, TesterError> {
    let mut best: Option<Pacing> = None;
    for _ in 0..3 {
        let trial = reference.own_trial(&TrialOrder::paced(asked_pps, RUN_TIME * 2), stop)?;
        let gap = |ratio| trial.gaps.as_ref().map_or(0, |gaps| gaps.percentile_ns(ratio));
        let gap_p50_ns = gap(0.5);
        let found = Pacing {
            asked_pps,
            offered_pps: trial.offered_pps,
            gap_p1_ns: gap(0.01),
            gap_p50_ns,
            gap_p99_ns: gap(0.99),
            error_ratio: (gap_p50_ns as f64 * asked_pps / 1e9 - 1.0).abs(),
            slips: trial.slips,
        };
        if best.is_none_or(|best| found.error_ratio < best.error_ratio) {
            best = Some(found);
        }
    }
    Ok(best.expect("three were measured"))
}
