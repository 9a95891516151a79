//! What a flow log says (VL2 3.1 to 3.3): the same numbers for `weft analyse` and for plans with generated logs.
//!
//! Numbers of a generated log say how well generator and analysis work, and nothing about a data centre.
//!
//! * [`sizes`]: flows and bytes by size (Figure 2), and how much leaves the data centre
//! * [`concurrency`]: flows that a server has at once (Figure 3)
//! * [`matrices`]: how the traffic between racks changes (Figure 4)

pub mod concurrency;
pub mod matrices;
pub mod sizes;

use weft_scenario::workload::{FlowLogSpec, Workload};

use super::{Input, TrialRecords};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::PlanSpec;

/// A share of a whole; `None` of nothing.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The log that a workload of the plan generates.
fn spec_of<'a>(spec: &'a PlanSpec, workload: &str) -> Option<&'a FlowLogSpec> {
    match spec.workload.get(workload) {
        Some(Workload::FlowLog(log)) => Some(log),
        _ => None,
    }
}

/// What a plan must have for these analyses.
fn check(spec: &PlanSpec, one_workload: bool) -> Result<(), String> {
    let name = spec.analysis.name();
    if !spec.axes.is_empty() || (one_workload && spec.workload.len() != 1) {
        let workloads = if one_workload { "one workload" } else { "workloads" };
        return Err(format!("analysis `{name}` takes {workloads} of kind `flow-log` and no sweep"));
    }
    match spec.workload.values().all(|workload| matches!(workload, Workload::FlowLog(_))) {
        true => Ok(()),
        false => Err(format!("analysis `{name}` needs workloads of kind `flow-log`")),
    }
}

/// Adds the median over the trials of a workload; a log without flows is a failure.
fn put(findings: &mut Findings, trials: &[&TrialRecords], name: &str, number: impl Fn(&TrialRecords) -> Option<f64>) {
    let samples: Vec<f64> = trials.iter().filter_map(|trial| number(trial)).collect();
    findings.put(name, &samples, Limit::Computed);
}

fn put_empty(findings: &mut Findings, input: &Input<'_>) {
    for trial in input.trials.iter().filter(|trial| trial.records.flow_sizes.is_empty()) {
        findings.problems.push(Problem::Failed(format!("the log of trial {} has no flows", trial.key.trial)));
    }
}

#[cfg(test)]
mod tests;
