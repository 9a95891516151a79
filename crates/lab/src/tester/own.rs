//! `weft bench tester`: what the test centre itself costs, how low its floor is, and how evenly it sends.

use std::time::Duration;

use serde::Serialize;
use weft_scenario::engine::Progress;
use weft_scenario::judge::Check;

use super::bed::{Bed, Between};
use super::cost::Calibration;
use super::error::TesterError;
use super::path::TrialOrder;
use super::reference::{Reference, Stop, run_ns};
use super::stream::StreamPlan;

/// Size of all frames with FCS, bytes.
const FRAME_BYTES: u32 = 64;
/// Rates at which the spacing of frames is looked at, frames per second.
const PACING_PPS: [f64; 4] = [10_000.0, 50_000.0, 100_000.0, 500_000.0];
const FLOOR_PPS: f64 = 100_000.0;
const RUNS: u32 = 8;
const RUN_TIME: Duration = Duration::from_millis(40);
/// CPU nanoseconds of generator and counting analyser for a frame, at most.
const GENERATOR_NS_MAX: f64 = 230.0;
/// Median of the latency floor, nanoseconds, at most.
const FLOOR_NS_MAX: f64 = 300.0;
/// A kernel bridge on the machine where these two were set (Linux 6.18).
const REFERENCE_BRIDGE: BridgeHop = BridgeHop { cpu_ns: 619.0, latency_ns: 924.0 };
/// How far the median gap may be off.
const PACING_RATIO_MAX: f64 = 0.02;

/// The tester alone, over a veth pair of its own, and a kernel bridge, by which the machine's speed is known.
#[derive(Clone, Debug, Serialize)]
pub struct OwnReport {
    /// Version of this form.
    pub schema_version: u32,
    /// What was read.
    #[serde(flatten)]
    pub own: Own,
    /// A kernel bridge on this machine.
    pub bridge: BridgeHop,
    /// The way CPU time is read, checked in this run.
    pub calibration: Calibration,
    /// The floors.
    pub checks: Vec<Check>,
}

/// The tester's own numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Own {
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

/// What one kernel bridge takes, without the tester.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BridgeHop {
    /// CPU nanoseconds per frame.
    pub cpu_ns: f64,
    /// Nanoseconds that a frame is longer under way, by medians at 100,000 frames per second.
    pub latency_ns: f64,
}

impl BridgeHop {
    /// Whether the machine is slower than the one that floors in nanoseconds were set on; then they say nothing, and their
    /// ratios to the bridge count.
    pub fn is_slower_machine(self) -> bool {
        self.cpu_ns > REFERENCE_BRIDGE.cpu_ns || self.latency_ns > REFERENCE_BRIDGE.latency_ns
    }
}

/// Measures.
///
/// # Errors
/// Any [`TesterError`]; nothing is left behind.
pub fn run(progress: &dyn Progress) -> Result<OwnReport, TesterError> {
    let stop = || progress.interrupted();
    let plan = StreamPlan::default();
    progress.phase("the tester alone", "its own cost, floor and pacing");
    let mut reference = Reference::open(&plan, FRAME_BYTES, &stop)?;
    let own = own(&mut reference, &stop)?;
    progress.phase("a kernel bridge", "how fast this machine is");
    let bridge = bridge(&mut reference, &own, &plan, &stop)?;
    let calibration = reference.calibration(&stop)?;
    let checks = checks(&own, calibration.holds, bridge);
    Ok(OwnReport { schema_version: 1, own, bridge, calibration, checks })
}

fn own(reference: &mut Reference, stop: Stop<'_>) -> Result<Own, TesterError> {
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
    Ok(Own { generator_ns, generator_pps: reference.generator_pps(), floor_p50_ns, floor_p99_ns, pacing })
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

/// Runs over the bridge and over the tester's own path in turns.
fn bridge(reference: &mut Reference, own: &Own, plan: &StreamPlan, stop: Stop<'_>) -> Result<BridgeHop, TesterError> {
    let bed = Bed::new(Between::Bridge { link: None })?;
    let mut path = bed.path(plan, FRAME_BYTES)?;
    path.teach(Duration::ZERO)?;
    reference.match_to(&path, stop)?;
    let (mut whole_ns, mut alone_ns, mut p50_ns) = (f64::MAX, own.generator_ns, u64::MAX);
    for _ in 0..RUNS {
        whole_ns = whole_ns.min(run_ns(&mut path, RUN_TIME, stop)?.unwrap_or(f64::MAX));
        alone_ns = alone_ns.min(reference.own_run_ns(RUN_TIME, stop)?.unwrap_or(f64::MAX));
        p50_ns = p50_ns.min(path.trial(&TrialOrder::paced(FLOOR_PPS, RUN_TIME), stop)?.latency.summary().p50);
    }
    Ok(BridgeHop { cpu_ns: whole_ns - alone_ns, latency_ns: p50_ns.saturating_sub(own.floor_p50_ns) as f64 })
}

fn checks(own: &Own, method_holds: bool, bridge: BridgeHop) -> Vec<Check> {
    // Noise only ever adds: what passes has passed, what fails in a noisy phase may be the noise.
    let judge = |id: &str, ours: f64, want_max: f64, unit, is_sure: bool| {
        Check::at_most(id, ours, want_max, unit).unless((!is_sure).then_some("noise, or a slower machine"))
    };
    let (generator, floor) = (own.generator_ns, own.floor_p50_ns as f64);
    let is_sure = method_holds && !bridge.is_slower_machine();
    let most = [GENERATOR_NS_MAX / REFERENCE_BRIDGE.cpu_ns, FLOOR_NS_MAX / REFERENCE_BRIDGE.latency_ns];
    let ratios = [generator / bridge.cpu_ns, floor / bridge.latency_ns];
    let mut checks = vec![
        judge("generator and counting analyser, 64 B", generator, GENERATOR_NS_MAX, "ns of CPU", is_sure),
        judge("latency floor p50, 100 K frames/s", floor, FLOOR_NS_MAX, "ns", is_sure),
        judge("generator and analyser over a kernel bridge", ratios[0], most[0], "of its CPU", method_holds),
        judge("latency floor over a kernel bridge's", ratios[1], most[1], "of its p50", method_holds),
    ];
    checks.extend(own.pacing.iter().map(|pacing| {
        let id = format!("median gap off, {:.0} K frames/s", pacing.asked_pps / 1e3);
        judge(&id, pacing.error_ratio, PACING_RATIO_MAX, "ratio", method_holds)
    }));
    checks
}

#[cfg(test)]
mod tests {
    use weft_scenario::judge::Verdict::{self, Fail, Inconclusive, Pass};

    use super::*;

    fn verdicts(generator_ns: f64, floor_p50_ns: u64, holds: bool, bridge: BridgeHop) -> Vec<Verdict> {
        let own = Own { generator_ns, generator_pps: 5e6, floor_p50_ns, floor_p99_ns: 500, pacing: Vec::new() };
        checks(&own, holds, bridge).iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn floors_pass_in_noise_but_do_not_fail_in_it() {
        let first = |ns, holds| verdicts(ns, 240, holds, REFERENCE_BRIDGE)[0];
        assert_eq!([first(200.0, true), first(200.0, false)], [Pass; 2]);
        assert_eq!([first(300.0, true), first(300.0, false)], [Fail, Inconclusive]);
    }

    #[test]
    fn on_a_slower_machine_ratios_to_its_bridge_are_judged() {
        let slower = BridgeHop { cpu_ns: 1200.0, latency_ns: 1500.0 };
        assert_eq!(verdicts(280.0, 350, true, slower), [Inconclusive, Inconclusive, Pass, Pass]);
        assert_eq!(verdicts(460.0, 350, true, slower), [Inconclusive, Inconclusive, Fail, Pass]);
        assert_eq!(verdicts(280.0, 350, true, REFERENCE_BRIDGE), [Fail, Fail, Fail, Fail]);
        assert_eq!(verdicts(230.0, 300, true, REFERENCE_BRIDGE), [Pass; 4]);
    }
}
