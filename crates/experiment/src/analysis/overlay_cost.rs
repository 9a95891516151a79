//! What an overlay costs beside plain routing: CPU seconds per gigabyte of payload, and goodput.
//!
//! Rounds are interleaved, so each round's ratio compares trials that ran next to each other; the estimate is the
//! median of these ratios with its order-statistics interval. Every metric exists per workload (`metric.workload`); the
//! plain name is the workload in which VL2 does worst, so that a claim on it covers all of them.
//!
//! CPU cost comes from the workloads that the plan pins to one core. Goodput comes from those that it does not pin, if
//! there are any: on one pinned core it would only be the reciprocal of the cost.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{CostRow, Records};

use super::{Input, MetricInfo};
use crate::metric::{Estimate, Findings, Limit, Problem};
use crate::plan::PlanSpec;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "vl2_cpu_over_routed", meaning: "CPU s/GB of VL2 / of plain routing, same round" },
    MetricInfo { name: "vxlan_cpu_over_routed", meaning: "CPU s/GB of kernel VXLAN / of plain routing, same round" },
    MetricInfo { name: "vl2_cpu_over_vxlan", meaning: "CPU s/GB of VL2 / of kernel VXLAN, same round" },
    MetricInfo { name: "vl2_goodput_over_routed", meaning: "goodput of VL2 / of plain routing, same round" },
    MetricInfo { name: "vxlan_goodput_over_routed", meaning: "goodput of kernel VXLAN / of plain routing, same round" },
    MetricInfo { name: "routed_cpu_s_per_gb", meaning: "CPU seconds per gigabyte of payload, plain routing" },
    MetricInfo { name: "vl2_cpu_s_per_gb", meaning: "CPU seconds per gigabyte of payload, VL2" },
    MetricInfo { name: "vxlan_cpu_s_per_gb", meaning: "CPU seconds per gigabyte of payload, kernel VXLAN" },
    MetricInfo { name: "routed_goodput", meaning: "goodput of plain routing, bit/s" },
    MetricInfo { name: "vl2_goodput", meaning: "goodput of VL2, bit/s" },
    MetricInfo { name: "vxlan_goodput", meaning: "goodput of kernel VXLAN, bit/s" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_no_sweep(spec)
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let each = |metric: &MetricInfo| {
        let name = metric.name;
        spec.workload.keys().map(move |workload| format!("{name}.{workload}"))
    };
    METRICS.iter().flat_map(|metric| std::iter::once(metric.name.to_owned()).chain(each(metric))).collect()
}

/// A number of one trial.
type Number = fn(&Records) -> Option<f64>;

fn cpu_s_per_gb(records: &Records) -> Option<f64> {
    records.cost.first().map(|cost| cost.cpu_ns as f64 / cost.payload_bytes as f64)
}

fn goodput_bps(records: &Records) -> Option<f64> {
    if let Some(cost) = records.cost.first() {
        return Some(cost.payload_bytes as f64 * 8e9 / cost.wall_ns as f64);
    }
    let bytes: u64 = records.flows.iter().map(|flow| flow.bytes_received).sum();
    let end_ns = records.flows.iter().filter_map(|flow| flow.end_ns).max().filter(|end_ns| *end_ns > 0)?;
    Some(bytes as f64 * 8e9 / end_ns as f64)
}

fn is_pinned(input: &Input<'_>, workload: &str) -> bool {
    input.spec.sampling.measure_cpu_cost.iter().any(|pinned| pinned == workload)
}

/// Whether a metric is taken from a workload.
fn is_measured(input: &Input<'_>, metric: &str, workload: &str) -> bool {
    let shared = input.spec.workload.keys().any(|workload| !is_pinned(input, workload));
    match metric.contains("goodput") && shared {
        true => !is_pinned(input, workload),
        false => is_pinned(input, workload),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    for trial in input.trials {
        let key = &trial.key;
        let usable = |cost: &CostRow| cost.cpu_ns > 0 && cost.payload_bytes > 0 && cost.wall_ns > 0;
        let carried = match is_pinned(input, &key.workload) {
            true => trial.records.cost.first().is_some_and(usable),
            false => goodput_bps(&trial.records).is_some_and(|goodput| goodput > 0.0),
        };
        if !carried {
            let text = format!("trial {} ({}) has no result: nothing was carried", key.trial, key.workload);
            findings.problems.push(Problem::Failed(text));
        }
    }
    if !findings.problems.is_empty() {
        return findings;
    }
    for workload in input.spec.workload.keys() {
        let limit = if is_pinned(input, workload) { Limit::PinnedCore } else { Limit::SharedCores };
        for metric in METRICS.iter().filter(|metric| is_measured(input, metric.name, workload)) {
            let name = format!("{}.{workload}", metric.name);
            findings.put(&name, &samples(input, metric.name, workload), limit);
        }
    }
    put_worst(input, &mut findings);
    findings
}

/// One value per round of a metric in a workload.
pub fn samples(input: &Input<'_>, metric: &str, workload: &str) -> Vec<f64> {
    use Overlay::{KernelVxlan, Routed, Vl2};
    let (number, over, under): (Number, Overlay, Option<Overlay>) = match metric {
        "vl2_cpu_over_routed" => (cpu_s_per_gb, Vl2, Some(Routed)),
        "vxlan_cpu_over_routed" => (cpu_s_per_gb, KernelVxlan, Some(Routed)),
        "vl2_cpu_over_vxlan" => (cpu_s_per_gb, Vl2, Some(KernelVxlan)),
        "vl2_goodput_over_routed" => (goodput_bps, Vl2, Some(Routed)),
        "vxlan_goodput_over_routed" => (goodput_bps, KernelVxlan, Some(Routed)),
        "routed_cpu_s_per_gb" => (cpu_s_per_gb, Routed, None),
        "vl2_cpu_s_per_gb" => (cpu_s_per_gb, Vl2, None),
        "vxlan_cpu_s_per_gb" => (cpu_s_per_gb, KernelVxlan, None),
        "routed_goodput" => (goodput_bps, Routed, None),
        "vl2_goodput" => (goodput_bps, Vl2, None),
        "vxlan_goodput" => (goodput_bps, KernelVxlan, None),
        _ => return Vec::new(),
    };
    if !is_measured(input, metric, workload) {
        return Vec::new();
    }
    let of_round = |round: u32| {
        let divisor = under.map_or(Some(1.0), |overlay| number(records(input, round, overlay, workload)?))?;
        Some(number(records(input, round, over, workload)?)? / divisor)
    };
    (1..=input.spec.repetitions).filter_map(of_round).collect()
}

fn records<'a>(input: &Input<'a>, round: u32, overlay: Overlay, workload: &str) -> Option<&'a Records> {
    let same = |key: &super::TrialKey| key.repetition == round && key.overlay == overlay && key.workload == workload;
    input.trials.iter().find(|trial| same(&trial.key)).map(|trial| &trial.records)
}

/// Gives each plain name the estimate of the workload in which VL2 does worst: for CPU metrics the one with the highest
/// upper end of `vl2_cpu_over_routed`, for goodput the one with the lowest `vl2_goodput_over_routed`.
fn put_worst(input: &Input<'_>, findings: &mut Findings) {
    let of = |metric: &str, workload: &str| findings.metrics.get(&format!("{metric}.{workload}"));
    let upper = |estimate: &Estimate| estimate.interval.map_or(estimate.value, |interval| interval.high);
    let cpu = |workload: &&String| of("vl2_cpu_over_routed", workload).map_or(f64::NEG_INFINITY, upper);
    let goodput = |workload: &&String| of("vl2_goodput_over_routed", workload).map_or(f64::INFINITY, |one| one.value);
    let workloads = || input.spec.workload.keys();
    let costliest = workloads().max_by(|a, b| cpu(a).total_cmp(&cpu(b)));
    let slowest = workloads().min_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    let mut worst = Vec::new();
    for metric in METRICS {
        let workload = if metric.name.contains("goodput") { slowest } else { costliest };
        let estimate = workload.and_then(|workload| of(metric.name, workload)).cloned();
        worst.extend(estimate.map(|estimate| (metric.name.to_owned(), estimate)));
    }
    findings.metrics.extend(worst);
}

#[cfg(test)]
mod tests;
