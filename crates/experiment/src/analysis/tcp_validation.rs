//! The simulator's TCP beside the kernel's: one scenario on both engines.
//!
//! The sweep has an axis `engine` with the places `lab` and `sim`. Goodput is all payload over the time of the last byte;
//! completion times are those of all flows. A metric without a workload's name is that of the workload where the engines
//! differ most.

use weft_scenario::record::Records;

use super::completion::{self, fct_ns};
use super::series::Window;
use super::{Input, MetricInfo, cpu};
use crate::metric::{Estimate, Findings, Limit, Table};
use crate::plan::{ENGINE_AXIS, PlanSpec};
use crate::stats;
use crate::table::plain;

/// What this analysis yields; each also for every workload, `METRIC.WORKLOAD`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "goodput_error", meaning: "distance from 1 of the simulated goodput / the kernel's" },
    MetricInfo { name: "goodput_ratio", meaning: "simulated goodput / the kernel's, median of the repetitions" },
    MetricInfo { name: "p99_fct_error", meaning: "distance from 1 of the simulated p99 FCT / the kernel's" },
    MetricInfo { name: "p99_fct_ratio", meaning: "simulated p99 FCT / the kernel's, median of the repetitions" },
    MetricInfo { name: "mean_fct_ratio", meaning: "simulated mean FCT / the kernel's, median of the repetitions" },
];

/// A number of one trial.
type Number = fn(&Records) -> Option<f64>;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let places = spec.labels_of(ENGINE_AXIS);
    match spec.axes.len() == 1 && ["lab", "sim"].iter().all(|engine| places.iter().any(|label| label == engine)) {
        true => Ok(()),
        false => Err("analysis `tcp-validation` takes one axis, `engine`, with the values `lab` and `sim`".into()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let each = |metric: &MetricInfo| {
        let name = metric.name;
        spec.workload.keys().map(move |workload| format!("{name}.{workload}"))
    };
    METRICS.iter().flat_map(|metric| std::iter::once(metric.name.to_owned()).chain(each(metric))).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    let limit = limit(input);
    let pairs: [(&str, Option<&str>, Number); 3] = [
        ("goodput_ratio", Some("goodput_error"), goodput_bps),
        ("p99_fct_ratio", Some("p99_fct_error"), p99_fct_ns),
        ("mean_fct_ratio", None, mean_fct_ns),
    ];
    for (ratio_name, error_name, number) in pairs {
        let mut worst: Option<(f64, Estimate)> = None;
        for workload in input.spec.workload.keys() {
            let Some(ratio) = Estimate::of_samples(&ratios(input, workload, number), limit) else { continue };
            let error = (ratio.value - 1.0).abs();
            if let Some(name) = error_name {
                findings
                    .metrics
                    .insert(format!("{name}.{workload}"), Estimate { n: ratio.n, ..Estimate::exact(error, limit) });
            }
            findings.metrics.insert(format!("{ratio_name}.{workload}"), ratio.clone());
            if worst.as_ref().is_none_or(|(most, _)| error > *most) {
                worst = Some((error, ratio));
            }
        }
        let Some((error, ratio)) = worst else { continue };
        if let Some(name) = error_name {
            findings.metrics.insert(name.to_owned(), Estimate { n: ratio.n, ..Estimate::exact(error, limit) });
        }
        findings.metrics.insert(ratio_name.to_owned(), ratio);
    }
    findings.tables.push(table(input));
    findings
}

/// Simulator over lab, for every repetition that both have.
fn ratios(input: &Input<'_>, workload: &str, number: Number) -> Vec<f64> {
    let of = |engine: &str, repetition: u32| {
        let trial = completion::find(input, workload, repetition, &[(ENGINE_AXIS, engine)])?;
        number(&trial.records).filter(|value| *value > 0.0)
    };
    let ratio = |repetition: u32| Some(of("sim", repetition)? / of("lab", repetition)?);
    (1..=input.spec.repetitions).filter_map(ratio).collect()
}

fn goodput_bps(records: &Records) -> Option<f64> {
    let bytes: u64 = records.flows.iter().map(|flow| flow.bytes_received).sum();
    let end_ns = records.flows.iter().filter_map(|flow| flow.end_ns).max().filter(|end_ns| *end_ns > 0)?;
    Some(bytes as f64 * 8e9 / end_ns as f64)
}

fn p99_fct_ns(records: &Records) -> Option<f64> {
    stats::percentile(&records.flows.iter().filter_map(fct_ns).collect::<Vec<_>>(), 0.99)
}

fn mean_fct_ns(records: &Records) -> Option<f64> {
    stats::mean(&records.flows.iter().filter_map(fct_ns).collect::<Vec<_>>())
}

/// A lab that lacked CPU says nothing about TCP.
fn limit(input: &Input<'_>) -> Limit {
    let of = |records: &Records| {
        let to_s = records.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap_or(0) as f64 / 1e9;
        cpu::limit(&records.cpu, Window { from_s: 0.0, to_s }, Limit::Link)
    };
    if input.trials.iter().any(|trial| of(&trial.records) == Limit::Cpu) { Limit::Cpu } else { Limit::Link }
}

fn table(input: &Input<'_>) -> Table {
    let row = |trial: &super::TrialRecords| {
        let number = |value: Option<f64>, unit: f64| value.map_or_else(|| "-".to_owned(), |value| plain(value / unit));
        let records = &trial.records;
        vec![
            trial.key.workload.clone(),
            trial.key.repetition.to_string(),
            input.label(&trial.key, ENGINE_AXIS).unwrap_or_default().to_owned(),
            number(goodput_bps(records), 1e6),
            number(mean_fct_ns(records), 1e6),
            number(p99_fct_ns(records), 1e6),
            records.flows.iter().map(|flow| flow.retransmits).sum::<u64>().to_string(),
        ]
    };
    let headings = [
        "workload",
        "repetition",
        "engine",
        "goodput (Mbit/s)",
        "mean FCT (ms)",
        "p99 FCT (ms)",
        "retransmitted segments",
    ];
    let mut rows: Vec<Vec<String>> = input.trials.iter().map(row).collect();
    rows.sort();
    Table { title: "Both engines".into(), headings: headings.map(str::to_owned).to_vec(), rows }
}

#[cfg(test)]
mod tests;
