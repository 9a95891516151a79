//! Large flows that collide: what moving them to other paths does for completion time and fairness (VL2 4.2.2).
//!
//! The sweep has an axis `balance`, of which the place `flow` hashes whole flows for good. A repetition has the same flows at
//! every place of the axis, so that completion times compare draw by draw: a repetition is one sample, because the flows of
//! one draw share their luck.

use super::series::Window;
use super::{Input, MetricInfo, TrialRecords, completion, cpu};
use crate::metric::{Estimate, Findings, Limit, Table};
use crate::plan::PlanSpec;
use crate::stats;
use crate::table::plain;

/// The axis of how flows are balanced.
pub const BALANCE_AXIS: &str = "balance";
/// The place on it where whole flows are hashed for good.
pub const PER_FLOW: &str = "flow";
/// A fact of a trial: how often agents moved a flow.
const MOVES: &str = "vl2.moves";

/// What this analysis yields, with the place on the axis behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "mean_over_flow", meaning: "mean completion time / with whole flows, same draw" },
    MetricInfo { name: "mean_fct_s", meaning: "mean completion time, s" },
    MetricInfo { name: "worst_fct_s", meaning: "completion time of the slowest, s" },
    MetricInfo { name: "jain", meaning: "Jain's index of the flows' mean goodput" },
    MetricInfo { name: "moves", meaning: "times that agents moved a flow, per flow (lab only)" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let balances = spec.labels_of(BALANCE_AXIS);
    if spec.axes.len() != 1 || !balances.iter().any(|label| label == PER_FLOW) {
        return Err("analysis `elephants` takes the axis `balance`, with a place `flow`".to_owned());
    }
    if spec.workload.len() != 1 || spec.overlays.len() != 1 {
        return Err("analysis `elephants` takes one workload and one overlay".to_owned());
    }
    Ok(())
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let of_place = |place: &String| {
        let compared = METRICS.iter().filter(move |metric| place != PER_FLOW || metric.name != "mean_over_flow");
        compared.map(|metric| format!("{}.{place}", metric.name)).collect::<Vec<_>>()
    };
    spec.labels_of(BALANCE_AXIS).iter().flat_map(of_place).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    for place in input.spec.labels_of(BALANCE_AXIS) {
        let trials: Vec<&TrialRecords> = at(input, place).collect();
        let limit = if trials.iter().any(|trial| cpu_bound(trial)) { Limit::Cpu } else { Limit::Link };
        let mut put = |name: &str, samples: Vec<f64>| {
            let estimate = mean_of(&samples, limit);
            findings.metrics.extend(estimate.map(|one| (format!("{name}.{place}"), one)));
        };
        let of = |number: &dyn Fn(&TrialRecords) -> Option<f64>| trials.iter().filter_map(|one| number(one)).collect();
        if place != PER_FLOW {
            put("mean_over_flow", of(&|trial| Some(mean_fct(trial)? / mean_fct(partner(input, trial)?)?)));
        }
        put("mean_fct_s", of(&mean_fct));
        put("worst_fct_s", of(&|trial| fcts(trial)?.into_iter().reduce(f64::max)));
        put("jain", of(&fairness));
        put("moves", of(&moves));
    }
    let table = table(input.spec, &findings);
    findings.tables.push(table);
    findings
}

/// The mean over the repetitions with Student's interval: ratios of means are near enough to normal for a few draws.
fn mean_of(samples: &[f64], limited_by: Limit) -> Option<Estimate> {
    let value = stats::mean(samples)?;
    Some(Estimate { value, interval: stats::mean_interval(samples), n: samples.len(), limited_by })
}

fn at<'a>(input: &'a Input<'a>, place: &'a str) -> impl Iterator<Item = &'a TrialRecords> {
    input.trials.iter().filter(move |trial| input.label(&trial.key, BALANCE_AXIS) == Some(place))
}

/// The same draw with whole flows.
fn partner<'a>(input: &'a Input<'a>, trial: &TrialRecords) -> Option<&'a TrialRecords> {
    at(input, PER_FLOW).find(|other| other.key.repetition == trial.key.repetition)
}

/// Seconds of every flow; `None` if one did not end.
fn fcts(trial: &TrialRecords) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> =
        trial.records.flows.iter().map(|flow| completion::fct_ns(flow).map(|ns| ns / 1e9)).collect();
    all.filter(|fcts| !fcts.is_empty())
}

fn mean_fct(trial: &TrialRecords) -> Option<f64> {
    stats::mean(&fcts(trial)?)
}

fn fairness(trial: &TrialRecords) -> Option<f64> {
    let flows = trial.records.flows.iter();
    let goodputs: Option<Vec<f64>> =
        flows.map(|flow| Some(flow.bytes_received as f64 / completion::fct_ns(flow).filter(|ns| *ns > 0.0)?)).collect();
    stats::jain(&goodputs?)
}

fn moves(trial: &TrialRecords) -> Option<f64> {
    Some(trial.records.fact(MOVES)? / trial.records.flows.len().max(1) as f64)
}

fn cpu_bound(trial: &TrialRecords) -> bool {
    let end_ns = trial.records.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap_or(0);
    let whole = Window { from_s: 0.0, to_s: end_ns as f64 / 1e9 };
    cpu::limit(&trial.records.cpu, whole, Limit::Link) == Limit::Cpu
}

fn table(spec: &PlanSpec, findings: &Findings) -> Table {
    let cell = |metric: &MetricInfo, place: &str| {
        let estimate = findings.metrics.get(&format!("{}.{place}", metric.name));
        estimate.map_or_else(|| "-".to_owned(), |one| plain(one.value))
    };
    let row = |place: &String| {
        let cells = METRICS.iter().map(|metric| cell(metric, place));
        std::iter::once(place.clone()).chain(cells).collect()
    };
    let headings = ["balance", "mean / whole flows", "mean (s)", "slowest (s)", "Jain", "moves per flow"];
    Table {
        title: "Large flows, mean over the repetitions".into(),
        headings: headings.map(str::to_owned).to_vec(),
        rows: spec.labels_of(BALANCE_AXIS).iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests;
