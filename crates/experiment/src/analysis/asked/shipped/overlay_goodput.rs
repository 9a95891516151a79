//! Rounds whose ratios are known (vl2/overlay-goodput).

use weft_scenario::engine::Overlay;
use weft_scenario::record::{CostRow, FlowRow, Records};

use super::{close, shipped};
use crate::analysis::testing;
use crate::analysis::{TrialKey, TrialRecords};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::PlanSpec;

fn spec() -> PlanSpec {
    PlanSpec { repetitions: 10, ..shipped("vl2/overlay-goodput") }
}

/// Ten rounds; the machine is faster or slower from round to round, but alike for all overlays of one. On all cores VL2 carries 0.97
/// of what the others do.
fn trials(factor: impl Fn(Overlay, &str, u32) -> f64) -> Vec<TrialRecords> {
    let mut trials = Vec::new();
    for repetition in 1..=10 {
        for workload in ["pinned-1", "pinned-8", "all-cores-1", "all-cores-8"] {
            for overlay in [Overlay::Routed, Overlay::Vl2, Overlay::KERNEL_VXLAN] {
                let mood = 1.0 + 0.3 * f64::from(repetition % 3);
                let records = if workload.starts_with("pinned") {
                    let cpu_ns = (mood * factor(overlay, workload, repetition) * 1e9) as u64;
                    let cost = vec![CostRow { cpu_ns, payload_bytes: 2_000_000_000, wall_ns: cpu_ns }];
                    Records { cost, ..Records::default() }
                } else {
                    let bytes_received = if overlay == Overlay::Vl2 { 1_940_000_000 } else { 2_000_000_000 };
                    let flow = FlowRow { bytes_received, ..testing::flow(0, 0, Some(1_000_000_000)) };
                    Records { flows: vec![flow], ..Records::default() }
                };
                let trial = trials.len() as u32 + 1;
                let key =
                    TrialKey { trial, repetition, seed: 1, overlay, workload: workload.into(), point: Vec::new() };
                trials.push(TrialRecords { key, records });
            }
        }
    }
    trials
}

fn run(trials: &[TrialRecords]) -> Findings {
    let spec = spec();
    testing::run(&spec, &spec.build_fabrics().unwrap(), trials)
}

fn factor(overlay: Overlay, workload: &str, _: u32) -> f64 {
    match (overlay, workload) {
        (Overlay::Routed, _) => 1.0,
        (Overlay::Vl2, "pinned-1") => 1.05,
        (Overlay::Vl2, _) => 1.10,
        _ => 1.40,
    }
}

#[test]
fn ratios_are_free_of_the_machines_mood() {
    let found = run(&trials(factor));
    assert_eq!(found.problems, []);
    close(&found, "cpu_over_of.vl2.routed.pinned-1", 1.05);
    close(&found, "cpu_over_of.vl2.routed.pinned-8", 1.10);
    close(&found, "cpu_over.vl2.routed", 1.10);
    close(&found, "cpu_over.kernel-vxlan.routed", 1.40);
    close(&found, "cpu_over.vl2.kernel-vxlan", 1.10 / 1.40);
    close(&found, "goodput_over.vl2.routed", 0.97);
    let estimate = &found.metrics["cpu_over.vl2.routed"];
    let interval = estimate.interval.unwrap();
    assert_eq!((estimate.n, estimate.limited_by), (10, Limit::PinnedCore));
    assert!(interval.high - interval.low < 1e-6, "{interval:?}");
    assert_eq!(found.metrics["goodput_over.vl2.routed"].limited_by, Limit::SharedCores);
}

#[test]
fn the_interval_leaves_out_the_outermost_of_ten_rounds() {
    let noisy = |overlay, workload: &str, round| match overlay {
        Overlay::Vl2 => 1.0 + f64::from(round) / 100.0,
        _ => factor(overlay, workload, round),
    };
    let interval = run(&trials(noisy)).metrics["cpu_over.vl2.routed"].interval.unwrap();
    assert!((interval.low - 1.02).abs() < 1e-6 && (interval.high - 1.09).abs() < 1e-6, "{interval:?}");
}

#[test]
fn a_trial_that_carried_nothing_fails_the_run() {
    let mut trials = trials(factor);
    trials[4].records.cost.clear();
    trials[7].records.flows.clear();
    let nothing = |trial: u32, workload: &str| {
        Problem::Failed(format!("trial {trial} ({workload}) has no result: nothing was carried"))
    };
    assert_eq!(run(&trials).problems, [nothing(5, "pinned-8"), nothing(8, "all-cores-1")]);
}
