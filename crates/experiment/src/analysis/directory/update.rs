//! Updates: how many are acknowledged how fast, each by itself, and how long a killed store leader or directory server
//! holds them up (VL2 5.5, Figure 14b).

use weft_scenario::workload::DirectoryVictim;

use super::{Step, UPDATE, carried_per_s, is_ramp, limit_of, put_lost, put_steps, spec_of, step_names};
use crate::analysis::{Input, MetricInfo};
use crate::metric::{Estimate, Findings, Problem};
use crate::plan::PlanSpec;

/// The paper's 99th percentile at 12 K updates/s.
pub const PAPER_P99_MS: f64 = 600.0;

/// What this analysis yields. Those of one step have the workload behind their names, and the rate where it has several.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "updates_per_s",
        meaning: "highest rate of updates, each acknowledged by itself, with a 99th percentile of at most 600 ms",
    },
    MetricInfo {
        name: "updates_per_s_100ms",
        meaning: "highest rate of updates, each acknowledged by itself, with a 99th percentile of at most 100 ms",
    },
    MetricInfo { name: "p1_ms", meaning: "1st percentile of an update's time to its acknowledgement, ms" },
    MetricInfo { name: "p50_ms", meaning: "median of an update's time to its acknowledgement, ms" },
    MetricInfo { name: "p99_ms", meaning: "99th percentile of it, ms; unanswered updates took the timeout" },
    MetricInfo { name: "answered", meaning: "share of updates acknowledged within the timeout" },
    MetricInfo {
        name: "leader_kill_resume_s",
        meaning: "longest time without an acknowledgement after the store's leader was killed, worst kill, s",
    },
    MetricInfo { name: "server_kill_resume_s", meaning: "the same after one of the directory servers was killed, s" },
    MetricInfo { name: "acknowledged_lost", meaning: "acknowledged updates that some server did not have afterwards" },
];

const OF_STEPS: [&str; 4] = ["p1_ms", "p50_ms", "p99_ms", "answered"];
const PLAIN: [&str; 5] =
    ["updates_per_s", "updates_per_s_100ms", "leader_kill_resume_s", "server_kill_resume_s", "acknowledged_lost"];

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names: Vec<String> = PLAIN.map(str::to_owned).to_vec();
    names.extend(OF_STEPS.iter().flat_map(|metric| step_names(spec, metric, UPDATE)));
    names
}

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check(spec)?;
    let updates = |workload: &String| spec_of(spec, workload).is_some_and(|load| load.updates.is_some());
    match spec.workload.keys().all(updates) {
        true => Ok(()),
        false => Err("analysis `directory-update` needs `updates` in every workload".into()),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    findings.problems.extend(super::wrong_answers(input));
    let steps = Step::all(input, UPDATE);
    let ramp = input.spec.workload.keys().find(|name| spec_of(input.spec, name).is_some_and(is_ramp));
    if let Some(ramp) = ramp {
        for (metric, p99_ms) in [("updates_per_s", PAPER_P99_MS), ("updates_per_s_100ms", 100.0)] {
            let mine = steps.iter().filter(|step| step.trial.key.workload == *ramp);
            findings.put(metric, &carried_per_s(&steps, ramp, p99_ms), limit_of(mine));
        }
    }
    put_steps(&mut findings, &steps, "p1_ms", |step| step.latencies().percentile_ms(0.01));
    put_steps(&mut findings, &steps, "p50_ms", |step| step.latencies().percentile_ms(0.5));
    put_steps(&mut findings, &steps, "p99_ms", |step| step.latencies().percentile_ms(0.99));
    put_steps(&mut findings, &steps, "answered", |step| Some(step.answered_ratio()));
    put_worst_kill(&mut findings, &steps, "leader_kill_resume_s", DirectoryVictim::StoreLeader);
    put_worst_kill(&mut findings, &steps, "server_kill_resume_s", DirectoryVictim::Server);
    put_lost(&mut findings, input);
    findings.tables.push(super::table("Updates by workload and load", &steps));
    findings
}

/// The longest gap over all kills of a kind.
fn put_worst_kill(findings: &mut Findings, steps: &[Step<'_>], metric: &str, victim: DirectoryVictim) {
    let killed = |step: &&Step<'_>| step.spec.kill.is_some_and(|kill| kill.what == victim);
    let mut gaps_s = Vec::new();
    for step in steps.iter().filter(killed) {
        if !step.trial.records.events.iter().any(|event| event.kind == "fault") {
            let text = format!("trial {} killed nothing, so its gap says nothing", step.trial.key.trial);
            findings.problems.push(Problem::Invalid(text));
        }
        gaps_s.push(step.row.longest_gap_ns as f64 / 1e9);
    }
    if let Some(worst) = gaps_s.iter().copied().reduce(f64::max) {
        let limited_by = limit_of(steps.iter().filter(killed));
        let estimate = Estimate { value: worst, interval: None, n: gaps_s.len(), limited_by };
        findings.metrics.insert(metric.to_owned(), estimate);
    }
}
