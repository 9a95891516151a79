//! Flow completion times on fabrics beside the ideal output-queued switch (leaf-spine paper, "Impact of Link Speed").
//!
//! The sweep has an axis `fabric`, of which the place `oq` is the ideal switch, and an axis `load`. Every fabric carries
//! the same flows, so a ratio to the ideal switch compares flow by flow. Loads whose bin has fewer than 200 flows make no
//! claim; of the others the one with the largest ratio counts, and `..._load` says which it was. A metric without a
//! workload's name is that of the workload with the largest ratio.

use std::collections::BTreeMap;

use weft_scenario::workload::Workload;

use super::completion::{self, SAMPLES_MIN, SizeClass, fct_ns, slowdown};
use super::{Input, MetricInfo};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::stats::{self, Ratio};
use crate::table::plain;

/// The axis of the networks.
pub const FABRIC_AXIS: &str = "fabric";
/// The place on it that the others are held against.
pub const IDEAL: &str = "oq";
/// The axis of the loads.
pub const LOAD_AXIS: &str = "load";

/// What this analysis yields; each for every fabric but the ideal one, `METRIC.FABRIC`, and also for every workload,
/// `METRIC.WORKLOAD.FABRIC`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "small_mean_over_oq",
        meaning: "mean FCT of flows below 100 kB / on the ideal switch, worst load",
    },
    MetricInfo { name: "small_mean_over_oq_load", meaning: "that load" },
    MetricInfo { name: "small_p99_over_oq", meaning: "99th percentile of the same / on the ideal switch, worst load" },
    MetricInfo { name: "small_p99_over_oq_load", meaning: "that load" },
    MetricInfo { name: "medium_mean_over_oq", meaning: "mean FCT of flows of 100 kB to 10 MB / on the ideal switch" },
    MetricInfo { name: "medium_mean_over_oq_load", meaning: "that load" },
    MetricInfo { name: "medium_p99_over_oq", meaning: "99th percentile of the same / on the ideal switch, worst load" },
    MetricInfo { name: "medium_p99_over_oq_load", meaning: "that load" },
    MetricInfo {
        name: "large_mean_over_oq",
        meaning: "mean FCT of flows above 10 MB / on the ideal switch, worst load",
    },
    MetricInfo { name: "large_mean_over_oq_load", meaning: "that load" },
    MetricInfo { name: "large_p99_over_oq", meaning: "99th percentile of the same / on the ideal switch, worst load" },
    MetricInfo { name: "large_p99_over_oq_load", meaning: "that load" },
    MetricInfo { name: "query_mean_over_oq", meaning: "mean FCT of responses to queries / on the ideal switch" },
    MetricInfo { name: "query_mean_over_oq_load", meaning: "that load" },
    MetricInfo { name: "query_p99_over_oq", meaning: "99th percentile of the same / on the ideal switch, worst load" },
    MetricInfo { name: "query_p99_over_oq_load", meaning: "that load" },
];

/// One class of flows of one workload at one load on one fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Bin {
    /// The workload.
    pub workload: String,
    /// The load, as the plan writes it.
    pub load: String,
    /// The fabric.
    pub fabric: String,
    /// The class.
    pub class: SizeClass,
    /// Number of flows.
    pub n: usize,
    /// Mean completion time in ns.
    pub mean_ns: f64,
    /// 99th percentile in ns.
    pub p99_ns: f64,
    /// Mean completion time / alone on an idle network.
    pub mean_slowdown: Option<f64>,
    /// Mean completion time over the ideal switch's; `None` on the ideal switch itself.
    pub mean_over_ideal: Option<Ratio>,
    /// The same for the 99th percentiles.
    pub p99_over_ideal: Option<f64>,
}

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    if !spec.labels_of(FABRIC_AXIS).iter().any(|label| label == IDEAL) || spec.labels_of(LOAD_AXIS).is_empty() {
        return Err("analysis `fct` needs the axes `load` and `fabric`, the latter with a variant `oq`".into());
    }
    if spec.axes.len() > 2 {
        return Err("analysis `fct` takes the axes `load` and `fabric` only; use workloads for the rest".into());
    }
    match spec.workload.values().all(|workload| matches!(workload, Workload::Traffic(_))) {
        true => Ok(()),
        false => Err("analysis `fct` needs workloads of kind `traffic`".into()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let fabrics = || spec.labels_of(FABRIC_AXIS).iter().filter(|label| *label != IDEAL);
    let of = |metric: &MetricInfo| {
        let name = metric.name;
        let each = fabrics().map(move |fabric| format!("{name}.{fabric}"));
        let with_workload = fabrics()
            .flat_map(move |fabric| spec.workload.keys().map(move |workload| format!("{name}.{workload}.{fabric}")));
        each.chain(with_workload).collect::<Vec<_>>()
    };
    METRICS.iter().flat_map(of).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    if !findings.problems.is_empty() {
        return findings;
    }
    let bins = match bins(input) {
        Ok(bins) => bins,
        Err(problem) => return Findings { problems: vec![problem], ..findings },
    };
    for fabric in input.spec.labels_of(FABRIC_AXIS).iter().filter(|label| *label != IDEAL) {
        for class in SizeClass::ALL {
            put_worst(&bins, fabric, class, "mean", |bin| bin.mean_over_ideal, &mut findings);
            let p99 = |bin: &Bin| bin.p99_over_ideal.map(|value| Ratio { value, interval: None, n: bin.n });
            put_worst(&bins, fabric, class, "p99", p99, &mut findings);
        }
    }
    findings.tables.push(table(&bins));
    findings
}

/// Puts the worst load of every workload, and of all.
fn put_worst(
    bins: &[Bin],
    fabric: &str,
    class: SizeClass,
    statistic: &str,
    ratio: impl Fn(&Bin) -> Option<Ratio>,
    findings: &mut Findings,
) {
    let metric = format!("{}_{statistic}_over_oq", class.name());
    let mut worst: BTreeMap<&str, (Ratio, &Bin)> = BTreeMap::new();
    for bin in bins.iter().filter(|bin| bin.fabric == fabric && bin.class == class && bin.n >= SAMPLES_MIN) {
        let Some(ratio) = ratio(bin) else { continue };
        for place in ["", bin.workload.as_str()] {
            let slot = worst.entry(place).or_insert((ratio, bin));
            if ratio.value > slot.0.value {
                *slot = (ratio, bin);
            }
        }
    }
    for (workload, (ratio, bin)) in worst {
        let suffix = if workload.is_empty() { fabric.to_owned() } else { format!("{workload}.{fabric}") };
        let (n, limited_by) = (ratio.n, Limit::Link);
        let estimate = Estimate { value: ratio.value, interval: ratio.interval, n, limited_by };
        findings.metrics.insert(format!("{metric}.{suffix}"), estimate);
        if let Ok(load) = bin.load.parse() {
            let estimate = Estimate { n, ..Estimate::exact(load, limited_by) };
            findings.metrics.insert(format!("{metric}_load.{suffix}"), estimate);
        }
    }
}

/// All bins that have flows, by workload, class, load and fabric in the plan's order. An error if the fabrics did not
/// carry the same flows.
pub fn bins(input: &Input<'_>) -> Result<Vec<Bin>, Problem> {
    let mut bins = Vec::new();
    for (workload, load) in
        input.spec.workload.keys().flat_map(|name| input.spec.labels_of(LOAD_AXIS).iter().map(move |load| (name, load)))
    {
        let ideal = Cell::collect(input, workload, load, IDEAL)?;
        for fabric in input.spec.labels_of(FABRIC_AXIS) {
            let cell = Cell::collect(input, workload, load, fabric)?;
            bins.extend(SizeClass::ALL.into_iter().filter_map(|class| cell.bin(class, &ideal)));
        }
    }
    bins.sort_by(|a, b| (&a.workload, a.class).cmp(&(&b.workload, b.class)));
    Ok(bins)
}

/// Completion times of one workload at one load on one fabric, by class; one list for each repetition, in order of
/// starts, with the same flow's time on the ideal switch.
struct Cell {
    workload: String,
    load: String,
    fabric: String,
    series: BTreeMap<SizeClass, Vec<Vec<(f64, f64)>>>,
    slowdowns: BTreeMap<SizeClass, Vec<f64>>,
}

impl Cell {
    fn collect(input: &Input<'_>, workload: &str, load: &str, fabric: &str) -> Result<Self, Problem> {
        let (mut series, mut slowdowns) = (BTreeMap::new(), BTreeMap::<_, Vec<f64>>::new());
        for repetition in 1..=input.spec.repetitions {
            let at =
                |fabric| completion::find(input, workload, repetition, &[(FABRIC_AXIS, fabric), (LOAD_AXIS, load)]);
            let (Some(trial), Some(ideal)) = (at(fabric), at(IDEAL)) else { continue };
            let divisor = input
                .at(&trial.key)
                .and_then(|(spec, _)| spec.workload.get(workload))
                .map_or(1, completion::size_divisor);
            let mut pairs: BTreeMap<SizeClass, Vec<(f64, f64)>> = BTreeMap::new();
            let (mut ours, mut theirs) = (completion::measured(input, trial), completion::measured(input, ideal));
            loop {
                let (flow, same) = match (ours.next(), theirs.next()) {
                    (None, None) => break,
                    (Some(flow), Some(same)) if completion::is_same(flow, same) => (flow, same),
                    _ => {
                        let place = completion::place(input, &trial.key);
                        return Err(Problem::Failed(format!("{place} did not carry the flows of the ideal switch")));
                    }
                };
                let class = SizeClass::of(flow, divisor);
                pairs.entry(class).or_default().extend(fct_ns(flow).zip(fct_ns(same)));
                slowdowns.entry(class).or_default().extend(slowdown(flow));
            }
            for (class, pairs) in pairs {
                series.entry(class).or_insert_with(Vec::new).push(pairs);
            }
        }
        let (workload, load, fabric) = (workload.to_owned(), load.to_owned(), fabric.to_owned());
        Ok(Self { workload, load, fabric, series, slowdowns })
    }

    fn bin(&self, class: SizeClass, ideal: &Self) -> Option<Bin> {
        let series = self.series.get(&class)?;
        let times: Vec<f64> = series.iter().flatten().map(|pair| pair.0).collect();
        let p99_ns = stats::percentile(&times, 0.99)?;
        let is_ideal = self.fabric == ideal.fabric;
        let ideal_times: Vec<f64> = series.iter().flatten().map(|pair| pair.1).collect();
        let ideal_p99 = stats::percentile(&ideal_times, 0.99).filter(|p99| *p99 > 0.0 && !is_ideal);
        Some(Bin {
            workload: self.workload.clone(),
            load: self.load.clone(),
            fabric: self.fabric.clone(),
            class,
            n: times.len(),
            mean_ns: stats::mean(&times)?,
            p99_ns,
            mean_slowdown: self.slowdowns.get(&class).and_then(|slowdowns| stats::mean(slowdowns)),
            mean_over_ideal: if is_ideal { None } else { stats::paired_ratio(series) },
            p99_over_ideal: ideal_p99.map(|ideal| p99_ns / ideal),
        })
    }
}

fn table(bins: &[Bin]) -> Table {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), plain);
    let row = |bin: &Bin| {
        let interval = bin.mean_over_ideal.and_then(|ratio| ratio.interval);
        vec![
            bin.workload.clone(),
            bin.class.name().to_owned(),
            bin.load.clone(),
            bin.fabric.clone(),
            bin.n.to_string(),
            plain(bin.mean_ns / 1e6),
            plain(bin.p99_ns / 1e6),
            number(bin.mean_slowdown),
            number(bin.mean_over_ideal.map(|ratio| ratio.value)),
            interval.map_or_else(|| "-".to_owned(), |ends| format!("{} .. {}", plain(ends.low), plain(ends.high))),
            number(bin.p99_over_ideal),
        ]
    };
    Table {
        title: "Flow completion times".into(),
        headings: [
            "workload",
            "class",
            "load",
            "fabric",
            "flows",
            "mean (ms)",
            "p99 (ms)",
            "mean slowdown",
            "mean / ideal switch",
            "its interval",
            "p99 / ideal switch",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: bins.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests;
