//! The paper's sum (VL2 5.5): 100 K hosts that each look up 10 peers at once are a million look-ups a second; how many
//! directory servers is that at the rate that one was measured to carry?

use super::{LOOKUP, Step, is_ramp, spec_of};
use crate::analysis::{Input, MetricInfo};
use crate::metric::{Estimate, Findings, Limit, Problem};
use crate::plan::PlanSpec;
use crate::stats;

/// Hosts of the paper's data centre.
pub const HOSTS: f64 = 100_000.0;
/// Peers that each of them looks up in the same second.
pub const LOOKUPS_PER_HOST: f64 = 10.0;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "servers_needed", meaning: "directory servers for a million look-ups/s at 99 % within 10 ms" },
    MetricInfo { name: "servers_percent", meaning: "the same, in percent of the 100 K hosts" },
    MetricInfo {
        name: "lookups_per_server",
        meaning: "highest rate with a 99th percentile of at most 10 ms, per server",
    },
    MetricInfo {
        name: "lookups_per_cpu_s",
        meaning: "look-ups answered per CPU second of a server, at its highest load",
    },
    MetricInfo { name: "cores_needed", meaning: "cores for a million look-ups/s, from the CPU time of one" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::lookup::check(spec)?;
    match spec.workload.keys().any(|name| spec_of(spec, name).is_some_and(is_ramp)) {
        true => Ok(()),
        false => Err("analysis `directory-sizing` needs a workload with several rates of look-ups".into()),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    findings.problems.extend(super::wrong_answers(input));
    let lookups = Step::all(input, LOOKUP);
    super::lookup::put_rates(&mut findings, input, &lookups);
    findings.metrics.retain(|name, _| name == "lookups_per_server");
    let demand_per_s = HOSTS * LOOKUPS_PER_HOST;
    match findings.metrics.get("lookups_per_server").filter(|rate| rate.value > 0.0).cloned() {
        None => findings.problems.push(Problem::Failed("no load was carried within 10 ms".into())),
        Some(rate) => {
            let servers = (demand_per_s / rate.value).ceil();
            let estimate = |value| Estimate { value, interval: None, n: rate.n, limited_by: Limit::Computed };
            findings.metrics.insert("servers_needed".into(), estimate(servers));
            findings.metrics.insert("servers_percent".into(), estimate(servers / HOSTS * 100.0));
        }
    }
    let busiest: Vec<f64> = busiest(&lookups);
    findings.put("lookups_per_cpu_s", &busiest, Limit::SharedCores);
    if let Some(per_cpu_s) = stats::median(&busiest) {
        findings.metrics.insert("cores_needed".into(), Estimate::exact(demand_per_s / per_cpu_s, Limit::Computed));
    }
    findings.tables.push(super::table("Look-ups by load", &lookups));
    findings
}

/// Look-ups per CPU second in each trial's step that answered most.
fn busiest(lookups: &[Step<'_>]) -> Vec<f64> {
    let mut trials: Vec<u32> = lookups.iter().map(|step| step.trial.key.trial).collect();
    trials.dedup();
    let of = |trial: u32| {
        let mine = lookups.iter().filter(|step| step.trial.key.trial == trial && step.row.server_cpu_ns > 0);
        let most = mine.max_by_key(|step| step.row.answered)?;
        Some(most.row.answered as f64 * 1e9 / most.row.server_cpu_ns as f64)
    };
    trials.into_iter().filter_map(of).collect()
}
