//! How evenly hashing splits traffic, and what that costs, as core links become faster than servers' (VL2 5.2: the split
//! is even because core links carry many flows each).
//!
//! The sweep has an axis `ratio`, core rate over server rate at the same total core capacity, and an axis `balance` with
//! the places `flow` and `flowlet`. Flows are the same everywhere, so ratios of completion times compare flow by flow.

use std::collections::BTreeMap;

use weft_scenario::topology::Role;
use weft_scenario::workload::Workload;

use super::completion::{self, SAMPLES_MIN, fct_ns, slowdown};
use super::links::{self, LinkSeries};
use super::series::Window;
use super::{Input, MetricInfo, TrialRecords};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::stats;
use crate::table::plain;

/// The axis of core rate over server rate.
pub const RATIO_AXIS: &str = "ratio";
/// The axis of what is hashed.
pub const BALANCE_AXIS: &str = "balance";
/// The place on it where whole flows are hashed.
pub const PER_FLOW: &str = "flow";
/// The place on it where flows may move after a pause.
pub const PER_FLOWLET: &str = "flowlet";
/// Stretches for the interval of the mean index: neighbouring intervals share their long flows.
const BATCHES: usize = 10;

/// What this analysis yields: `METRIC.RATIO.BALANCE`; those that compare places on an axis leave that one out.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "jain_split",
        meaning: "Jain's index of a leaf's split over its uplinks, mean over time, worst leaf",
    },
    MetricInfo { name: "mean_slowdown", meaning: "mean completion time / alone on an idle network" },
    MetricInfo { name: "mean_over_fastest", meaning: "mean FCT / with the fastest core, same balance" },
    MetricInfo { name: "flowlet_over_flow", meaning: "mean FCT with flowlets / with whole flows, same ratio" },
];

/// One place of the sweep.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Core rate over server rate.
    pub ratio: String,
    /// What is hashed.
    pub balance: String,
    /// Completion times in ns, by repetition, in order of the flows' starts.
    pub fcts_ns: Vec<Vec<f64>>,
    /// Mean slowdown.
    pub mean_slowdown: Option<f64>,
    /// Jain's index of every leaf's split in every interval, repetitions end to end.
    pub split: BTreeMap<String, Vec<f64>>,
}

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let balances = spec.labels_of(BALANCE_AXIS);
    if !balances.iter().any(|label| label == PER_FLOW) || spec.labels_of(RATIO_AXIS).is_empty() || spec.axes.len() != 2
    {
        return Err(
            "analysis `split-speed` takes the axes `ratio` and `balance`, the latter with a place `flow`".into()
        );
    }
    if spec.sampling.split_interval.is_none_or(|interval| interval < spec.sampling.interval) {
        return Err("analysis `split-speed` needs `sampling.split_interval`, not below `sampling.interval`".into());
    }
    match spec.workload.len() == 1 && spec.workload.values().all(|one| matches!(one, Workload::Traffic(_))) {
        true => Ok(()),
        false => Err("analysis `split-speed` needs one workload of kind `traffic`".into()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = Vec::new();
    for ratio in spec.labels_of(RATIO_AXIS) {
        names.push(format!("flowlet_over_flow.{ratio}"));
        for balance in spec.labels_of(BALANCE_AXIS) {
            let each = ["jain_split", "mean_slowdown", "mean_over_fastest"];
            names.extend(each.map(|name| format!("{name}.{ratio}.{balance}")));
        }
    }
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    let cells = cells(input);
    for cell in &cells {
        let place = format!("{}.{}", cell.ratio, cell.balance);
        match jain(cell) {
            Some(estimate) => {
                findings.metrics.insert(format!("jain_split.{place}"), estimate);
            }
            None => findings.problems.push(Problem::Failed(format!("at {place} no leaf sent anything to a spine"))),
        }
        if let Some(slowdown) = cell.mean_slowdown {
            let n = cell.fcts_ns.iter().map(Vec::len).sum();
            let estimate = Estimate { n, ..Estimate::exact(slowdown, Limit::Link) };
            findings.metrics.insert(format!("mean_slowdown.{place}"), estimate);
        }
        let beside = |ratio: &str, balance: &str| {
            let other = cells.iter().find(|other| other.ratio == ratio && other.balance == balance)?;
            compare(cell, other)
        };
        if let Some(fastest) = fastest(&cells).filter(|fastest| *fastest != cell.ratio) {
            let estimate = beside(fastest, &cell.balance);
            findings.metrics.extend(estimate.map(|one| (format!("mean_over_fastest.{place}"), one)));
        }
        if cell.balance == PER_FLOWLET {
            let estimate = beside(&cell.ratio, PER_FLOW);
            findings.metrics.extend(estimate.map(|one| (format!("flowlet_over_flow.{}", cell.ratio), one)));
        }
    }
    findings.tables.push(table(&cells, &findings));
    findings
}

/// Mean over time of the leaf whose mean is lowest.
fn jain(cell: &Cell) -> Option<Estimate> {
    let mean_of = |indices: &&Vec<f64>| stats::mean(indices).unwrap_or(f64::NAN);
    let worst = cell.split.values().min_by(|a, b| mean_of(a).total_cmp(&mean_of(b)))?;
    let interval = stats::batch_means_interval(worst, BATCHES);
    Some(Estimate { value: mean_of(&worst), interval, n: worst.len(), limited_by: Limit::OfferedLoad })
}

/// Mean completion time of one place over another's, same flows; `None` of too few or of different flows.
fn compare(cell: &Cell, other: &Cell) -> Option<Estimate> {
    let alike = |(a, b): (&Vec<f64>, &Vec<f64>)| a.len() == b.len();
    let same = cell.fcts_ns.len() == other.fcts_ns.len() && cell.fcts_ns.iter().zip(&other.fcts_ns).all(alike);
    let pair = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().copied().zip(b.iter().copied()).collect();
    let series: Vec<Vec<(f64, f64)>> = cell.fcts_ns.iter().zip(&other.fcts_ns).map(pair).collect();
    let ratio = stats::paired_ratio(&series).filter(|ratio| same && ratio.n >= SAMPLES_MIN)?;
    Some(Estimate { value: ratio.value, interval: ratio.interval, n: ratio.n, limited_by: Limit::Link })
}

/// The label of the fastest core.
fn fastest(cells: &[Cell]) -> Option<&str> {
    let number = |cell: &&Cell| cell.ratio.parse::<f64>().unwrap_or(f64::NEG_INFINITY);
    cells.iter().max_by(|a, b| number(a).total_cmp(&number(b))).map(|cell| cell.ratio.as_str())
}

/// Every place of the sweep, in its order.
pub fn cells(input: &Input<'_>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut slowdowns: Vec<Vec<f64>> = Vec::new();
    for trial in input.trials {
        let label = |axis: &str| input.label(&trial.key, axis).unwrap_or_default();
        let (ratio, balance) = (label(RATIO_AXIS), label(BALANCE_AXIS));
        let place = cells.iter().position(|cell| cell.ratio == ratio && cell.balance == balance).unwrap_or_else(|| {
            let (ratio, balance) = (ratio.to_owned(), balance.to_owned());
            cells.push(Cell { ratio, balance, fcts_ns: Vec::new(), mean_slowdown: None, split: BTreeMap::new() });
            slowdowns.push(Vec::new());
            cells.len() - 1
        });
        cells[place].fcts_ns.push(completion::measured(input, trial).filter_map(fct_ns).collect());
        for (leaf, indices) in split_over_time(input, trial) {
            cells[place].split.entry(leaf).or_default().extend(indices);
        }
        slowdowns[place].extend(completion::measured(input, trial).filter_map(slowdown));
    }
    for (cell, slowdowns) in cells.iter_mut().zip(slowdowns) {
        cell.mean_slowdown = stats::mean(&slowdowns);
    }
    cells
}

/// The index of every leaf in every interval of the measured time in which it sent anything to a spine.
fn split_over_time(input: &Input<'_>, trial: &TrialRecords) -> BTreeMap<String, Vec<f64>> {
    let Some((spec, fabric)) = input.at(&trial.key) else { return BTreeMap::new() };
    let (Some(interval), Some(window)) = (spec.sampling.split_interval, window(spec)) else { return BTreeMap::new() };
    let series = links::all(&trial.records.links, fabric);
    let mut by_leaf: BTreeMap<&str, Vec<&LinkSeries>> = BTreeMap::new();
    for link in series.iter().filter(|link| link.role == Role::Leaf && link.peer_role == Role::Spine) {
        by_leaf.entry(&link.node).or_default().push(link);
    }
    let count = (window.seconds() / interval.as_secs_f64() + 1e-9).floor() as usize;
    let whole = Window { to_s: window.from_s + count as f64 * interval.as_secs_f64(), ..window };
    let over_time = |uplinks: &[&LinkSeries]| -> Vec<f64> {
        whole.parts(count).filter_map(|part| links::split_index(uplinks, part)).collect()
    };
    let by_leaf = by_leaf.into_iter().map(|(leaf, uplinks)| (leaf.to_owned(), over_time(&uplinks)));
    by_leaf.filter(|(_, indices)| !indices.is_empty()).collect()
}

/// From the end of the warm-up to the last start that is measured, or to the end of the traffic.
fn window(spec: &PlanSpec) -> Option<Window> {
    let Some(Workload::Traffic(traffic)) = spec.workload.values().next() else { return None };
    let until = spec.sampling.measure_until.unwrap_or(traffic.duration);
    let window = Window { from_s: spec.sampling.warm_up.as_secs_f64(), to_s: until.as_secs_f64() };
    (window.to_s > window.from_s).then_some(window)
}

fn table(cells: &[Cell], findings: &Findings) -> Table {
    let number = |name: String| findings.metrics.get(&name).map_or_else(|| "-".to_owned(), |one| plain(one.value));
    let row = |cell: &Cell| {
        let place = format!("{}.{}", cell.ratio, cell.balance);
        vec![
            cell.ratio.clone(),
            cell.balance.clone(),
            cell.fcts_ns.iter().map(Vec::len).sum::<usize>().to_string(),
            number(format!("jain_split.{place}")),
            number(format!("mean_slowdown.{place}")),
            number(format!("mean_over_fastest.{place}")),
        ]
    };
    let headings =
        ["core / server rate", "hashed", "flows", "Jain of the split", "mean slowdown", "mean FCT / fastest core"];
    Table {
        title: "Split and completion times".into(),
        headings: headings.map(str::to_owned).to_vec(),
        rows: cells.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests;
