//! Rounds whose ratios are known.

use super::*;
use crate::analysis::testing;
use crate::analysis::{TrialKey, TrialRecords};
use crate::plan::PlanSpec;
use weft_scenario::record::FlowRow;

fn spec() -> PlanSpec {
    let keys = "analysis = \"overlay-cost\"\noverlays = [\"routed\", \"vl2\", \"kernel-vxlan\"]\nrepetitions = 10";
    let workload = |flows: u32| {
        format!(
            "[workload.flows-{flows}]\nkind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = {flows}\nduration = \"1 s\"\n"
        )
    };
    let rest = "[sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\nmeasure_cpu_cost = [\"flows-1\", \"flows-8\"]\n\
                [[claims]]\nid = \"vl2_cpu_over_routed\"\nrelation = \"<=\"\nwant = 1.15\nunit = \"ratio\"\n";
    testing::spec(keys, &format!("{}{}{rest}", workload(1), workload(8)))
}

/// Ten rounds; the machine is faster or slower from round to round, but alike for all overlays of one.
fn trials(factor: impl Fn(Overlay, &str, u32) -> f64) -> Vec<TrialRecords> {
    let mut trials = Vec::new();
    for repetition in 1..=10 {
        for workload in ["flows-1", "flows-8"] {
            for overlay in [Overlay::Routed, Overlay::Vl2, Overlay::KernelVxlan] {
                let mood = 1.0 + 0.3 * f64::from(repetition % 3);
                let cpu_ns = (mood * factor(overlay, workload, repetition) * 1e9) as u64;
                let cost = vec![CostRow { cpu_ns, payload_bytes: 2_000_000_000, wall_ns: cpu_ns }];
                let trial = trials.len() as u32 + 1;
                let key =
                    TrialKey { trial, repetition, seed: 1, overlay, workload: workload.into(), point: Vec::new() };
                trials.push(TrialRecords { key, records: Records { cost, ..Records::default() } });
            }
        }
    }
    trials
}

fn run(trials: &[TrialRecords]) -> Findings {
    let spec = spec();
    let fabric = testing::fabric(&spec);
    testing::run(&spec, std::slice::from_ref(&fabric), trials)
}

fn factor(overlay: Overlay, workload: &str, _: u32) -> f64 {
    match (overlay, workload) {
        (Overlay::Routed, _) => 1.0,
        (Overlay::Vl2, "flows-1") => 1.05,
        (Overlay::Vl2, _) => 1.10,
        _ => 1.40,
    }
}

fn assert_close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-6, "got {got}, want {want}");
}

#[test]
fn ratios_are_free_of_the_machines_mood() {
    let findings = run(&trials(factor));
    let value = |name: &str| findings.metrics[name].value;
    assert_close(value("vl2_cpu_over_routed.flows-1"), 1.05);
    assert_close(value("vl2_cpu_over_routed.flows-8"), 1.10);
    assert_close(value("vl2_cpu_over_routed"), 1.10);
    assert_close(value("vxlan_cpu_over_routed"), 1.40);
    assert_close(value("vl2_cpu_over_vxlan"), 1.10 / 1.40);
    assert_close(value("vl2_goodput_over_routed"), 1.0 / 1.10);
    let estimate = &findings.metrics["vl2_cpu_over_routed"];
    let interval = estimate.interval.unwrap();
    assert_eq!((estimate.n, estimate.limited_by), (10, Limit::PinnedCore));
    assert!(interval.high - interval.low < 1e-6, "{interval:?}");
    let plain: Vec<_> = findings.metrics.keys().filter(|name| !name.contains('.')).map(String::as_str).collect();
    let mut promised: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
    promised.sort_unstable();
    assert_eq!(plain, promised);
}

#[test]
fn the_interval_leaves_out_the_outermost_of_ten_rounds() {
    let noisy = |overlay, workload: &str, round| match overlay {
        Overlay::Vl2 => 1.0 + f64::from(round) / 100.0,
        _ => factor(overlay, workload, round),
    };
    let interval = run(&trials(noisy)).metrics["vl2_cpu_over_routed"].interval.unwrap();
    assert_close(interval.low, 1.02);
    assert_close(interval.high, 1.09);
}

#[test]
fn a_trial_that_carried_nothing_fails_the_run() {
    let mut trials = trials(factor);
    trials[4].records.cost.clear();
    let findings = run(&trials);
    assert_eq!(findings.problems, [Problem::Failed("trial 5 (flows-8) has no result: nothing was carried".into())]);
}

#[test]
fn goodput_comes_from_the_workloads_on_all_cores_if_there_are_any() {
    let mut spec = spec();
    spec.sampling.measure_cpu_cost = vec!["flows-1".into()];
    let mut trials = trials(factor);
    for trial in trials.iter_mut().filter(|trial| trial.key.workload == "flows-8") {
        let bytes = if trial.key.overlay == Overlay::Vl2 { 1_940_000_000 } else { 2_000_000_000 };
        let flow = FlowRow { bytes_received: bytes, ..testing::flow(0, 0, Some(1_000_000_000)) };
        trial.records = Records { flows: vec![flow], ..Records::default() };
    }
    let fabric = testing::fabric(&spec);
    let findings = testing::run(&spec, std::slice::from_ref(&fabric), &trials);
    assert_eq!(findings.problems, []);
    assert_close(findings.metrics["vl2_cpu_over_routed"].value, 1.05);
    let goodput = &findings.metrics["vl2_goodput_over_routed"];
    assert_close(goodput.value, 0.97);
    assert_eq!(goodput.limited_by, Limit::SharedCores);
    assert!(!findings.metrics.contains_key("vl2_goodput_over_routed.flows-1"));
    assert!(!findings.metrics.contains_key("vl2_cpu_over_routed.flows-8"));
}
