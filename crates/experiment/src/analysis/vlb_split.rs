//! How evenly Aggregation switches split the data-centre mix over the Intermediates (VL2 5.2, Figure 10).
//!
//! The paper reads the counters of all links from Aggregation to Intermediate switches every 10 s and plots Jain's
//! index of each switch's split. The plan gives the length of that interval on our scale.

use std::collections::BTreeMap;

use weft_scenario::record::{FlowRow, Records};
use weft_scenario::topology::Role;
use weft_scenario::workload::{MixSpec, Workload};

use super::series::Window;
use super::{Input, MetricInfo, TrialRecords, cpu, links};
use crate::metric::{Estimate, Findings, Limit, Problem};
use crate::plan::PlanSpec;
use crate::stats;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "jain_split_mean",
        meaning: "Jain's index of the split, mean over time, worst Aggregation switch",
    },
    MetricInfo { name: "jain_split_min", meaning: "lowest Jain index of any switch and interval" },
    MetricInfo { name: "core_utilisation", meaning: "mean use of Aggregation-Intermediate links" },
    MetricInfo { name: "core_utilisation_max", meaning: "use of the busiest Aggregation-Intermediate link" },
    MetricInfo { name: "concurrent_flows", meaning: "flows that a server has open, mean over servers and time" },
    MetricInfo { name: "large_flow_bytes", meaning: "share of bytes in flows of 100 MB to 1 GB on the paper's scale" },
    MetricInfo { name: "cpu_idle_busiest_core", meaning: "idle share of the busiest core" },
];

/// Stretches for the interval of the mean: neighbouring intervals share their long flows, so they are not independent.
const BATCHES: usize = 10;
/// The flows that carry almost all bytes (VL2 Figure 2).
const LARGE_FLOW_BYTES: std::ops::RangeInclusive<f64> = 100e6..=1e9;

/// One switch's index over time: middle of the interval in seconds, index.
pub type SplitSeries = Vec<(f64, f64)>;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_no_sweep(spec)
}

/// Runs the analysis; repetitions are put end to end, as one longer run.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let limit = limit(input);
    put_split(input, limit, &mut findings);
    if !findings.metrics.contains_key("jain_split_mean") {
        let text = "no Aggregation switch sent anything to an Intermediate after the warm-up".to_owned();
        findings.problems.push(Problem::Failed(text));
    }
    let mut put = |name: &str, value: &dyn Fn(&TrialRecords) -> Option<f64>| {
        findings.put(name, &input.trials.iter().filter_map(value).collect::<Vec<_>>(), limit);
    };
    put("core_utilisation", &|trial| stats::mean(&utilisations(input, trial)));
    put("core_utilisation_max", &|trial| utilisations(input, trial).into_iter().max_by(f64::total_cmp));
    put("concurrent_flows", &|trial| {
        concurrent_flows(&trial.records, window(input)?, input.fabric().servers().count())
    });
    put("large_flow_bytes", &|trial| large_flow_share(&trial.records.flows, mix(input)?.size_divisor));
    put("cpu_idle_busiest_core", &|trial| cpu::busiest_idle(&trial.records.cpu, window(input)?));
    findings
}

/// The time from the end of the warm-up to the end of the mix.
pub fn window(input: &Input<'_>) -> Option<Window> {
    let window = Window { from_s: input.spec.sampling.warm_up.as_secs_f64(), to_s: mix(input)?.duration.as_secs_f64() };
    (window.to_s > window.from_s).then_some(window)
}

/// Each Aggregation switch's split over time in one trial. Intervals in which a switch sent nothing are left out.
pub fn split_over_time(input: &Input<'_>, records: &Records) -> BTreeMap<String, SplitSeries> {
    let (Some(window), Some(interval)) = (window(input), input.spec.sampling.split_interval) else {
        return BTreeMap::new();
    };
    let length = interval.as_secs_f64();
    let count = (window.seconds() / length + 1e-9).floor() as usize;
    let whole = Window { to_s: window.from_s + count as f64 * length, ..window };
    let series = links::all(&records.links, input.fabric());
    let over_time = |uplinks: &[&links::LinkSeries]| -> SplitSeries {
        let index = |part: Window| Some(((part.from_s + part.to_s) / 2.0, links::split_index(uplinks, part)?));
        whole.parts(count).filter_map(index).collect()
    };
    links::intermediate_links(&series)
        .into_iter()
        .map(|(switch, uplinks)| (switch.to_owned(), over_time(&uplinks)))
        .filter(|(_, series)| !series.is_empty())
        .collect()
}

fn mix<'a>(input: &Input<'a>) -> Option<&'a MixSpec> {
    input.spec.workload.values().find_map(|workload| match workload {
        Workload::Mix(mix) => Some(mix),
        _ => None,
    })
}

fn limit(input: &Input<'_>) -> Limit {
    let Some(window) = window(input) else { return Limit::OfferedLoad };
    let of = |trial: &TrialRecords| cpu::limit(&trial.records.cpu, window, Limit::OfferedLoad);
    if input.trials.iter().any(|trial| of(trial) == Limit::Cpu) { Limit::Cpu } else { Limit::OfferedLoad }
}

fn put_split(input: &Input<'_>, limited_by: Limit, findings: &mut Findings) {
    let mut by_switch: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for trial in input.trials {
        for (switch, series) in split_over_time(input, &trial.records) {
            by_switch.entry(switch).or_default().extend(series.into_iter().map(|(_, index)| index));
        }
    }
    let mean_of = |indices: &&Vec<f64>| stats::mean(indices).unwrap_or(f64::NAN);
    if let Some(worst) = by_switch.values().min_by(|a, b| mean_of(a).total_cmp(&mean_of(b))) {
        let estimate = Estimate {
            value: mean_of(&worst),
            interval: stats::batch_means_interval(worst, BATCHES),
            n: worst.len(),
            limited_by,
        };
        findings.metrics.insert("jain_split_mean".into(), estimate);
    }
    if let Some(lowest) = by_switch.values().flatten().copied().min_by(f64::total_cmp) {
        findings.metrics.insert("jain_split_min".into(), Estimate::exact(lowest, limited_by));
    }
}

fn utilisations(input: &Input<'_>, trial: &TrialRecords) -> Vec<f64> {
    let Some(window) = window(input) else { return Vec::new() };
    let series = links::all(&trial.records.links, input.fabric());
    links::utilisations(&series, [Role::Aggregation, Role::Intermediate], window)
}

fn concurrent_flows(records: &Records, window: Window, servers: usize) -> Option<f64> {
    let open_s = |flow: &FlowRow| {
        let start = (flow.start_ns as f64 / 1e9).max(window.from_s);
        let end = flow.end_ns.map_or(window.to_s, |end| (end as f64 / 1e9).min(window.to_s));
        (end - start).max(0.0)
    };
    let total: f64 = records.flows.iter().map(open_s).sum();
    (servers > 0).then(|| total / (window.seconds() * servers as f64))
}

fn large_flow_share(flows: &[FlowRow], size_divisor: u32) -> Option<f64> {
    let paper_bytes = |flow: &FlowRow| flow.bytes_asked as f64 * f64::from(size_divisor);
    let total: f64 = flows.iter().map(paper_bytes).sum();
    // A flow of exactly 100 MB loses up to one byte when its size is divided.
    let slack = f64::from(size_divisor);
    let large = |bytes: &f64| LARGE_FLOW_BYTES.contains(&(bytes + slack)) || LARGE_FLOW_BYTES.contains(bytes);
    let in_large: f64 = flows.iter().map(paper_bytes).filter(large).sum();
    (total > 0.0).then(|| in_large / total)
}

#[cfg(test)]
mod tests;
