//! Few large flows on four paths: hashes collide, and an elephant waits for another while a path idles.
//!
//! The sweep has an axis `balance`, of which the place `flow` hashes whole flows. A workload's flows from one server to another
//! are one elephant: several of them are its subflows, each with a hash of its own.

use std::collections::BTreeMap;

use super::Metric;
use crate::analysis::trials::{cell, put_empty};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Estimate, Findings, Limit, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// The axis of what is hashed.
const BALANCE_AXIS: &str = "balance";
/// The place on it where whole flows are hashed.
const PER_FLOW: &str = "flow";

/// What this analysis yields, with the workload and the place on the axis behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "mean_slowdown",
        meaning: "completion time of an elephant over that alone on the idle network, mean of all elephants",
    },
    MetricInfo { name: "worst_slowdown", meaning: "the same of the slowest elephant" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let balances = spec.labels_of(BALANCE_AXIS);
    match spec.axes.len() == 1 && balances.iter().any(|label| label == PER_FLOW) {
        true => Ok(()),
        false => Err("analysis `trill-elephants` takes the axis `balance`, with a place `flow`".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    super::names_of(&metrics(spec))
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    put_empty(&mut findings, input, |trial| trial.records.flows.is_empty());
    for (place, metric) in input.spec.labels_of(BALANCE_AXIS).iter().flat_map(|place| of_place(input.spec, place)) {
        let here = |trial: &&TrialRecords| {
            trial.key.workload == metric.workload && input.label(&trial.key, BALANCE_AXIS) == Some(&place)
        };
        let samples: Vec<f64> = input.trials.iter().filter(here).filter_map(&metric.number).collect();
        let estimate = Estimate::of_samples(&samples, Limit::Link);
        findings.metrics.extend(estimate.map(|one| (metric.name, one)));
    }
    let table = table(input.spec, &findings);
    findings.tables.push(table);
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    let places = spec.labels_of(BALANCE_AXIS);
    places.iter().flat_map(|place| of_place(spec, place)).map(|(_, metric)| metric).collect()
}

fn of_place<'a>(spec: &'a PlanSpec, place: &str) -> Vec<(String, Metric<'a>)> {
    let of_workload = |workload: &'a String| {
        let name = |metric: &str| format!("{metric}.{workload}.{place}");
        [
            Metric::new(name("mean_slowdown"), workload, |trial| stats::mean(&slowdowns(trial)?)),
            Metric::new(name("worst_slowdown"), workload, |trial| slowdowns(trial)?.into_iter().reduce(f64::max)),
        ]
    };
    spec.workload.keys().flat_map(of_workload).map(|metric| (place.to_owned(), metric)).collect()
}

/// Every elephant's completion time over the sum of its subflows' alone; `None` if one did not end.
fn slowdowns(trial: &TrialRecords) -> Option<Vec<f64>> {
    let mut elephants: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for flow in &trial.records.flows {
        let (took, ideal) = elephants.entry((flow.from, flow.to)).or_default();
        *took = (*took).max(flow.end_ns?.checked_sub(flow.start_ns)?);
        *ideal += flow.ideal_ns.filter(|ns| *ns > 0)?;
    }
    (!elephants.is_empty()).then(|| elephants.values().map(|(took, ideal)| *took as f64 / *ideal as f64).collect())
}

fn table(spec: &PlanSpec, findings: &Findings) -> Table {
    let row = |(workload, place): (&String, &String)| {
        let of = |metric: &str| cell(findings, &format!("{metric}.{workload}.{place}"));
        vec![workload.clone(), place.clone(), of("mean_slowdown"), of("worst_slowdown")]
    };
    let places = spec.labels_of(BALANCE_AXIS);
    let rows = spec.workload.keys().flat_map(|workload| places.iter().map(move |place| (workload, place))).map(row);
    Table {
        title: "Completion of elephants over that alone".into(),
        headings: ["workload", "balance", "mean", "slowest"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
