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

use serde_json::Value;
use weft_scenario::record::{Records, RowKind};
use weft_scenario::workload::{FlowLogSpec, Workload};

use super::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Limit, Problem, Table};
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

/// A number of a trial of a plan.
type OfTrial = fn(&PlanSpec, &TrialRecords) -> Option<f64>;

/// What a plan can ask of generated logs.
pub(crate) struct LogQuestion {
    /// As a plan writes it.
    pub(super) name: &'static str,
    pub(crate) metrics: &'static [MetricInfo],
    pub(super) reads: &'static [RowKind],
    /// Whether a plan may have several workloads, each with metrics of its own: `METRIC.WORKLOAD`.
    by_workload: bool,
    /// The numbers of one log: see [`number`].
    summary: fn(&Records) -> serde_json::Result<Value>,
    /// A metric that needs more than the log.
    beyond: Option<(&'static str, OfTrial)>,
    table: Option<fn(&str, &Records) -> Table>,
}

/// A metric in a summary of a log; what is in bytes says so there.
pub(crate) fn number<'a>(summary: &'a Value, metric: &str) -> Option<&'a Value> {
    summary.get(metric).or_else(|| summary.get(metric.replace("median_size", "median_bytes")))
}

impl LogQuestion {
    /// What a plan must have.
    pub(super) fn check(&self, spec: &PlanSpec) -> Result<(), String> {
        let name = self.name;
        if !spec.axes.is_empty() || (!self.by_workload && spec.workload.len() != 1) {
            let workloads = if self.by_workload { "workloads" } else { "one workload" };
            return Err(format!("analysis `{name}` takes {workloads} of kind `flow-log` and no sweep"));
        }
        match spec.workload.values().all(|workload| matches!(workload, Workload::FlowLog(_))) {
            true => Ok(()),
            false => Err(format!("analysis `{name}` needs workloads of kind `flow-log`")),
        }
    }

    /// Names of all metrics of a plan.
    pub(super) fn names(&self, spec: &PlanSpec) -> Vec<String> {
        let of =
            |workload: &String| self.metrics.iter().map(|metric| self.name_of(metric, workload)).collect::<Vec<_>>();
        spec.workload.keys().flat_map(of).collect()
    }

    fn name_of(&self, metric: &MetricInfo, workload: &str) -> String {
        if self.by_workload { format!("{}.{workload}", metric.name) } else { metric.name.to_owned() }
    }

    /// The median of each metric over the trials of a workload; a log without flows is a failure.
    pub(super) fn analyse(&self, input: &Input<'_>) -> Findings {
        let mut findings = Findings::default();
        for trial in input.trials.iter().filter(|trial| trial.records.flow_sizes.is_empty()) {
            findings.problems.push(Problem::Failed(format!("the log of trial {} has no flows", trial.key.trial)));
        }
        for workload in input.spec.workload.keys() {
            let trials = input.trials.iter().filter(|trial| trial.key.workload == *workload);
            let logs: Vec<_> =
                trials.map(|trial| (trial, (self.summary)(&trial.records).unwrap_or_default())).collect();
            for metric in self.metrics {
                let of = |(trial, summary): &(&TrialRecords, Value)| match self.beyond {
                    Some((name, number)) if name == metric.name => number(input.spec, trial),
                    _ => number(summary, metric.name)?.as_f64(),
                };
                let samples: Vec<f64> = logs.iter().filter_map(of).collect();
                findings.put(&self.name_of(metric, workload), &samples, Limit::Computed);
            }
        }
        let table = |trial: &TrialRecords| Some(self.table?(&trial.key.workload, &trial.records));
        findings.tables = input.trials.iter().filter_map(table).collect();
        findings
    }
}

#[cfg(test)]
mod tests;
