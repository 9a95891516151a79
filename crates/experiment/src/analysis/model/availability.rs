//! What networks can carry while devices fail (VL2 3.4): VL2's n:m redundancy beside the conventional pairs.
//!
//! Capacity is across the top of the network, over that of the same network when nothing is down. A server below a dead ToR
//! is lost in every network alike, so the comparison is of what is left to the others: capacity over the share of the
//! demand whose ToRs work.

use weft_scenario::record::{AvailabilityRow, Records};

use super::super::{Input, MetricInfo};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::stats;
use crate::table::plain;

/// What this analysis yields: `METRIC`, or `METRIC.PLACE` in a sweep.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "mean_capacity", meaning: "capacity / when whole, mean over time" },
    MetricInfo { name: "mean_left", meaning: "capacity left to servers whose ToR works / when whole, mean over time" },
    MetricInfo { name: "lost", meaning: "1 - mean_left: what the network itself lost" },
    MetricInfo {
        name: "lost_over",
        meaning: "mean lost here / mean lost at the first place, same times and sizes of failures",
    },
    MetricInfo { name: "below_90_h", meaning: "hours with less than 90 % left to servers whose ToR works" },
    MetricInfo { name: "below_50_h", meaning: "hours with less than 50 % left to them" },
    MetricInfo { name: "cut_h", meaning: "hours in which some working racks had no way to each other" },
    MetricInfo { name: "lowest", meaning: "least capacity / when whole" },
    MetricInfo { name: "failures", meaning: "failures in the whole time" },
    MetricInfo { name: "group_failures", meaning: "failures that took two members of a redundant group" },
    MetricInfo { name: "one_top_lost", meaning: "capacity lost with one switch of the top tier / when whole" },
    MetricInfo { name: "one_aggregation_lost", meaning: "the same with one Aggregation" },
    MetricInfo { name: "absolute", meaning: "capacity when whole / rates of all servers" },
];

const HOUR_NS: f64 = 3.6e12;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check(spec, "availability", "availability")
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let places = super::places(spec);
    METRICS.iter().flat_map(|metric| places.iter().map(|place| super::name_at(metric.name, place))).collect()
}

/// Capacity at a time over that of the whole network.
pub fn relative(records: &Records) -> impl Iterator<Item = (&AvailabilityRow, f64)> {
    let whole = whole(records);
    records.availability.iter().map(move |row| (row, row.capacity_ratio / whole))
}

/// Capacity of the network with nothing down.
fn whole(records: &Records) -> f64 {
    records.fact("availability.whole").unwrap_or(f64::NAN)
}

/// What is left to servers whose ToR works; at most what they had.
pub fn left(row: &AvailabilityRow, relative: f64) -> f64 {
    if row.demand_ratio > 0.0 { (relative / row.demand_ratio).min(1.0) } else { 0.0 }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let places = super::places(input.spec);
    let first = super::trials_at(input.trials, &places[0]);
    for place in &places {
        let trials = super::trials_at(input.trials, place);
        if trials.is_empty() || trials.iter().any(|trial| !whole(&trial.records).is_finite()) {
            findings.problems.push(Problem::Failed(format!("nothing was followed at `{place}`")));
            continue;
        }
        for metric in METRICS.iter().filter(|metric| metric.name != "lost_over") {
            let samples: Vec<f64> = trials.iter().filter_map(|trial| value(&trial.records, metric.name)).collect();
            findings.put(&super::name_at(metric.name, place), &samples, Limit::Computed);
        }
        let lost = |records: &Records| value(records, "lost");
        let pairs = trials.iter().zip(&first);
        let pairs: Vec<(f64, f64)> =
            pairs.filter_map(|(here, there)| Some((lost(&here.records)?, lost(&there.records)?))).collect();
        if let Some(stats::Ratio { value, interval, n }) = stats::paired_ratio(&[pairs]) {
            let estimate = Estimate { value, interval, n, limited_by: Limit::Computed };
            findings.metrics.insert(super::name_at("lost_over", place), estimate);
        }
    }
    findings.tables.push(table(&findings, &places));
    findings
}

/// A metric of one run.
fn value(records: &Records, metric: &str) -> Option<f64> {
    let all_ns: f64 = records.availability.iter().map(|row| row.lasts_ns as f64).sum();
    let mean = |of: fn(&AvailabilityRow, f64) -> f64| {
        relative(records).map(|(row, share)| of(row, share) * row.lasts_ns as f64).sum::<f64>() / all_ns
    };
    let hours = |is: &dyn Fn(&AvailabilityRow, f64) -> bool| {
        let rows = relative(records).filter(|(row, share)| is(row, *share));
        rows.map(|(row, _)| row.lasts_ns as f64).sum::<f64>() / HOUR_NS
    };
    // To nine digits: 1 - 0.9 is not 0.1 in binary.
    let one_lost = |name: &str| records.fact(name).map(|left| ((1.0 - left / whole(records)) * 1e9).round() / 1e9);
    Some(match metric {
        "mean_capacity" => mean(|_, share| share),
        "mean_left" => mean(left),
        "lost" => 1.0 - mean(left),
        "below_90_h" => hours(&|row, share| left(row, share) < 0.9),
        "below_50_h" => hours(&|row, share| left(row, share) < 0.5),
        "cut_h" => hours(&|row, _| row.cut_ratio > 0.0),
        "lowest" => relative(records).map(|(_, share)| share).reduce(f64::min)?,
        "failures" => records.failures.len() as f64,
        "group_failures" => records.failures.iter().map(|row| f64::from(row.takes_group)).sum(),
        "one_top_lost" => one_lost("availability.one_down.top")?,
        "one_aggregation_lost" => one_lost("availability.one_down.aggregation")?,
        "absolute" => whole(records),
        _ => return None,
    })
}

fn table(findings: &Findings, places: &[String]) -> Table {
    let row = |metric: &MetricInfo| {
        let cell = |place: &String| {
            let found = findings.metrics.get(&super::name_at(metric.name, place));
            found.map_or_else(|| "-".to_owned(), |estimate| plain(estimate.value))
        };
        std::iter::once(metric.meaning.to_owned()).chain(places.iter().map(cell)).collect()
    };
    Table {
        title: "What was left while devices failed (median over the repetitions)".into(),
        headings: std::iter::once("what".to_owned()).chain(places.iter().cloned()).collect(),
        rows: METRICS.iter().map(row).collect(),
    }
}
