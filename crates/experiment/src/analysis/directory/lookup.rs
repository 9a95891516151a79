//! Look-ups: how many a server answers within 10 ms, and what the paper's mix of look-ups and updates sees on fewer
//! servers, with losses and with a server killed (VL2 5.5, Figure 14a).
//!
//! A look-up that asks two servers counts once. The rate per server is that of the workload that raises its rate
//! (several steps, no loss, nothing killed); of several such workloads the one with the least.

use super::{LOOKUP, Step, UPDATE, carried_per_s, is_ramp, limit_of, put_lost, put_steps, spec_of, step_names};
use crate::analysis::{Input, MetricInfo};
use crate::metric::{Estimate, Findings};
use crate::plan::PlanSpec;

/// The paper's longest acceptable answer.
pub const ACCEPTABLE_MS: f64 = 10.0;

/// What this analysis yields. Those of one step have the workload behind their names, and the rate where it has several.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "lookups_per_server",
        meaning: "highest rate of look-ups with a 99th percentile of at most 10 ms, over the servers asked",
    },
    MetricInfo { name: "p1_ms", meaning: "1st percentile of a look-up's time, ms" },
    MetricInfo { name: "p50_ms", meaning: "median of a look-up's time, ms" },
    MetricInfo { name: "p99_ms", meaning: "99th percentile of a look-up's time, ms; unanswered ones took the timeout" },
    MetricInfo { name: "within_10ms", meaning: "share of look-ups answered within 10 ms" },
    MetricInfo { name: "answered", meaning: "share of look-ups answered within the timeout" },
    MetricInfo { name: "update_p99_ms", meaning: "99th percentile of an update's time to its acknowledgement, ms" },
    MetricInfo { name: "updates_answered", meaning: "share of updates acknowledged within the timeout" },
    MetricInfo { name: "acknowledged_lost", meaning: "acknowledged updates that some server did not have afterwards" },
];

const OF_LOOKUPS: [&str; 5] = ["p1_ms", "p50_ms", "p99_ms", "within_10ms", "answered"];
const OF_UPDATES: [&str; 2] = ["update_p99_ms", "updates_answered"];

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = vec!["lookups_per_server".to_owned(), "acknowledged_lost".to_owned()];
    names.extend(spec.workload.keys().map(|workload| format!("lookups_per_server.{workload}")));
    names.extend(OF_LOOKUPS.iter().flat_map(|metric| step_names(spec, metric, LOOKUP)));
    names.extend(OF_UPDATES.iter().flat_map(|metric| step_names(spec, metric, UPDATE)));
    names
}

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check(spec)?;
    let asks = |workload: &String| spec_of(spec, workload).is_some_and(|load| load.lookups.is_some());
    match spec.workload.keys().all(asks) {
        true => Ok(()),
        false => Err("analysis `directory-lookup` needs `lookups` in every workload".into()),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    findings.problems.extend(super::wrong_answers(input));
    let (lookups, updates) = (Step::all(input, LOOKUP), Step::all(input, UPDATE));
    put_rates(&mut findings, input, &lookups);
    put_steps(&mut findings, &lookups, "p1_ms", |step| step.latencies().percentile_ms(0.01));
    put_steps(&mut findings, &lookups, "p50_ms", |step| step.latencies().percentile_ms(0.5));
    put_steps(&mut findings, &lookups, "p99_ms", |step| step.latencies().percentile_ms(0.99));
    put_steps(&mut findings, &lookups, "within_10ms", |step| step.latencies().share_within_ms(ACCEPTABLE_MS));
    put_steps(&mut findings, &lookups, "answered", |step| Some(step.answered_ratio()));
    put_steps(&mut findings, &updates, "update_p99_ms", |step| step.latencies().percentile_ms(0.99));
    put_steps(&mut findings, &updates, "updates_answered", |step| Some(step.answered_ratio()));
    put_lost(&mut findings, input);
    findings.tables.push(super::table("Look-ups by workload and load", &lookups));
    if !updates.is_empty() {
        findings.tables.push(super::table("Updates meanwhile", &updates));
    }
    findings
}

/// What each server adds.
pub(super) fn put_rates(findings: &mut Findings, input: &Input<'_>, lookups: &[Step<'_>]) {
    let mut least: Option<Estimate> = None;
    for workload in input.spec.workload.keys() {
        let Some(load) = spec_of(input.spec, workload).filter(|load| is_ramp(load)) else { continue };
        let per_server = |rate: f64| rate / f64::from(load.servers);
        let samples: Vec<f64> = carried_per_s(lookups, workload, ACCEPTABLE_MS).into_iter().map(per_server).collect();
        let mine = lookups.iter().filter(|step| step.trial.key.workload == *workload);
        let Some(estimate) = Estimate::of_samples(&samples, limit_of(mine)) else { continue };
        if least.as_ref().is_none_or(|least| estimate.value < least.value) {
            least = Some(estimate.clone());
        }
        findings.metrics.insert(format!("lookups_per_server.{workload}"), estimate);
    }
    findings.metrics.extend(least.map(|least| ("lookups_per_server".to_owned(), least)));
}
