//! Query completion times by where large buffers are (leaf-spine paper, "Where are large buffers more effective for
//! Incast bursts?").
//!
//! The sweep has an axis `buffers` with the places `none`, `leaf`, `spine` and `both`, an axis `fan-in` and an axis `load`.
//! A query is complete when the last of its responses is; every place on `buffers` sees the same queries, so ratios
//! compare query by query. Places with fewer than 200 queries make no claim; a metric without a suffix is that of the
//! fan-in and load with the highest upper end of its interval.

use std::collections::BTreeMap;

use weft_scenario::record::LinkRow;
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::workload::Workload;

use super::completion::{self, SAMPLES_MIN};
use super::{Input, MetricInfo, TrialRecords};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::stats::{self, Ratio};
use crate::table::plain;

/// The axis of where large buffers are.
pub const BUFFERS_AXIS: &str = "buffers";
/// The axis of how many servers answer a query.
pub const FAN_IN_AXIS: &str = "fan-in";
/// The axis of the loads.
pub const LOAD_AXIS: &str = "load";

/// What this analysis yields; each also for every fan-in, `METRIC.FAN-IN`, the worst load of it.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "leaf_over_spine", meaning: "mean query completion, large buffers at leaves / at spines" },
    MetricInfo { name: "leaf_over_spine_p99", meaning: "99th percentile of the same" },
    MetricInfo { name: "leaf_over_none", meaning: "mean query completion, large buffers at leaves / nowhere" },
    MetricInfo { name: "spine_over_none", meaning: "mean query completion, large buffers at spines / nowhere" },
    MetricInfo { name: "both_over_leaf", meaning: "mean query completion, large buffers everywhere / at leaves" },
];

/// Numerator and denominator of each metric of means.
const PAIRS: [(&str, &str, &str); 4] = [
    ("leaf_over_spine", "leaf", "spine"),
    ("leaf_over_none", "leaf", "none"),
    ("spine_over_none", "spine", "none"),
    ("both_over_leaf", "both", "leaf"),
];

/// Queries at one place of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The workload.
    pub workload: String,
    /// Where large buffers are.
    pub buffers: String,
    /// How many servers answer.
    pub fan_in: String,
    /// The load.
    pub load: String,
    /// Completion times in ns, by repetition, in order of the queries.
    pub completions_ns: Vec<Vec<f64>>,
    /// Frames dropped by leaves, and by spines.
    pub dropped: [u64; 2],
}

impl Cell {
    /// All completion times.
    pub fn all_ns(&self) -> Vec<f64> {
        self.completions_ns.concat()
    }
}

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let places = spec.labels_of(BUFFERS_AXIS);
    if ["leaf", "spine"].iter().any(|place| !places.iter().any(|label| label == place)) {
        return Err("analysis `incast` needs an axis `buffers` with the variants `leaf` and `spine`".into());
    }
    if spec.labels_of(FAN_IN_AXIS).is_empty() || spec.labels_of(LOAD_AXIS).is_empty() || spec.axes.len() != 3 {
        return Err("analysis `incast` takes the axes `buffers`, `fan-in` and `load`, and no other".into());
    }
    let queries = |workload: &Workload| matches!(workload, Workload::Traffic(traffic) if traffic.query.is_some());
    match spec.workload.values().all(queries) {
        true => Ok(()),
        false => Err("analysis `incast` needs workloads of kind `traffic` with a `query`".into()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let each = |metric: &MetricInfo| {
        let name = metric.name;
        spec.labels_of(FAN_IN_AXIS).iter().map(move |fan_in| format!("{name}.{fan_in}"))
    };
    METRICS.iter().flat_map(|metric| std::iter::once(metric.name.to_owned()).chain(each(metric))).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    let cells = cells(input);
    for cell in cells.iter().filter(|cell| cell.buffers == "leaf") {
        for (name, over, under) in PAIRS {
            let of = |place: &str| cells.iter().find(|other| is_beside(other, cell) && other.buffers == place);
            let (Some(over), Some(under)) = (of(over), of(under)) else { continue };
            match paired(over, under) {
                Ok(ratio) => put_worst(name, cell, ratio, &mut findings),
                Err(problem) => findings.problems.push(problem),
            }
            if name == "leaf_over_spine" {
                put_worst("leaf_over_spine_p99", cell, p99_ratio(over, under), &mut findings);
            }
        }
    }
    findings.tables.push(table(&cells));
    findings
}

/// Whether two cells differ in nothing but the buffers.
fn is_beside(one: &Cell, other: &Cell) -> bool {
    (&one.workload, &one.fan_in, &one.load) == (&other.workload, &other.fan_in, &other.load)
}

fn paired(over: &Cell, under: &Cell) -> Result<Option<Ratio>, Problem> {
    let lengths = |cell: &Cell| cell.completions_ns.iter().map(Vec::len).collect::<Vec<_>>();
    if lengths(over) != lengths(under) {
        let text = format!("buffers at {} and at {} did not see the same queries", over.buffers, under.buffers);
        return Err(Problem::Failed(text));
    }
    let pair = |(one, other): (&Vec<f64>, &Vec<f64>)| one.iter().copied().zip(other.iter().copied()).collect();
    let series: Vec<Vec<(f64, f64)>> = over.completions_ns.iter().zip(&under.completions_ns).map(pair).collect();
    Ok(stats::paired_ratio(&series))
}

fn p99_ratio(over: &Cell, under: &Cell) -> Option<Ratio> {
    let under = stats::percentile(&under.all_ns(), 0.99).filter(|p99| *p99 > 0.0)?;
    let value = stats::percentile(&over.all_ns(), 0.99)? / under;
    Some(Ratio { value, interval: None, n: over.all_ns().len() })
}

/// Puts a ratio under its fan-in and under the plain name, if it is the worst so far.
fn put_worst(metric: &str, cell: &Cell, ratio: Option<Ratio>, findings: &mut Findings) {
    let Some(ratio) = ratio.filter(|ratio| ratio.n >= SAMPLES_MIN) else { return };
    let estimate = Estimate { value: ratio.value, interval: ratio.interval, n: ratio.n, limited_by: Limit::Link };
    let upper = |estimate: &Estimate| estimate.interval.map_or(estimate.value, |interval| interval.high);
    for name in [metric.to_owned(), format!("{metric}.{}", cell.fan_in)] {
        let slot = findings.metrics.entry(name).or_insert_with(|| estimate.clone());
        if upper(&estimate) > upper(slot) {
            *slot = estimate.clone();
        }
    }
}

/// Every place of the sweep, in its order.
pub fn cells(input: &Input<'_>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for trial in input.trials {
        let label = |axis: &str| input.label(&trial.key, axis).unwrap_or_default().to_owned();
        let (buffers, fan_in, load) = (label(BUFFERS_AXIS), label(FAN_IN_AXIS), label(LOAD_AXIS));
        let (workload, dropped) = (trial.key.workload.clone(), [0; 2]);
        let fresh = Cell { workload, buffers, fan_in, load, completions_ns: Vec::new(), dropped };
        let place = cells.iter().position(|cell| is_beside(cell, &fresh) && cell.buffers == fresh.buffers);
        let place = place.unwrap_or_else(|| {
            cells.push(fresh);
            cells.len() - 1
        });
        let cell = &mut cells[place];
        cell.completions_ns.push(completions_ns(input, trial));
        let fabric = input.at(&trial.key).map_or(input.fabric(), |(_, fabric)| fabric);
        let drops = |role| dropped_frames(&trial.records.links, fabric, role);
        cell.dropped = [cell.dropped[0] + drops(Role::Leaf), cell.dropped[1] + drops(Role::Spine)];
    }
    cells
}

/// From the first response's start to the last one's end, for every query that was measured and answered in full.
fn completions_ns(input: &Input<'_>, trial: &TrialRecords) -> Vec<f64> {
    let mut queries: BTreeMap<u32, (u64, Option<u64>)> = BTreeMap::new();
    for flow in completion::measured(input, trial) {
        let Some(request) = flow.request else { continue };
        let query = queries.entry(request).or_insert((flow.start_ns, Some(0)));
        query.0 = query.0.min(flow.start_ns);
        query.1 = query.1.zip(flow.end_ns).map(|(last, end)| last.max(end));
    }
    queries.into_values().filter_map(|(start, end)| Some(end?.saturating_sub(start) as f64)).collect()
}

/// Frames that switches of a role dropped in the whole run.
fn dropped_frames(rows: &[LinkRow], fabric: &Fabric, role: Role) -> u64 {
    let mut last: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| fabric.find(&row.node).is_some_and(|node| fabric.node(node).role == role)) {
        let count = last.entry((&row.node, &row.interface)).or_default();
        *count = (*count).max(row.dropped_frames);
    }
    last.into_values().sum()
}

fn table(cells: &[Cell]) -> Table {
    let milliseconds = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ns| plain(ns / 1e6));
    let row = |cell: &Cell| {
        let all = cell.all_ns();
        vec![
            cell.workload.clone(),
            cell.fan_in.clone(),
            cell.load.clone(),
            cell.buffers.clone(),
            all.len().to_string(),
            milliseconds(stats::mean(&all)),
            milliseconds(stats::percentile(&all, 0.99)),
            cell.dropped[0].to_string(),
            cell.dropped[1].to_string(),
        ]
    };
    let headings = [
        "workload",
        "fan-in",
        "load",
        "large buffers",
        "queries",
        "mean (ms)",
        "p99 (ms)",
        "dropped by leaves",
        "dropped by spines",
    ];
    let rows = cells.iter().map(row).collect();
    Table { title: "Query completion times".into(), headings: headings.map(str::to_owned).to_vec(), rows }
}

#[cfg(test)]
mod tests;
