//! Where queues build up: lengths of queues at the fabric ports of leaves beside those of spines (leaf-spine paper,
//! "Where do queues build up?").
//!
//! Each leaf port that leads to a spine stands beside a spine port that leads to a leaf: same number, same rate, and with
//! uniform traffic the same load. A tier's distribution is that of all its ports together, weighted by time. Lengths are
//! the upper ends of the bins of `records/queues.csv`. A metric without a load's name is that of the load where the two
//! tiers are furthest apart.

use std::collections::BTreeMap;

use weft_scenario::record::QueueRow;
use weft_scenario::topology::{Fabric, Role};

use super::{Input, MetricInfo, TrialRecords};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::table::plain;

/// The axis of the loads.
pub const LOAD_AXIS: &str = "load";

/// What this analysis yields; each also for every load, `METRIC.LOAD`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "queue_distance",
        meaning: "largest difference of the two tiers' distributions (Kolmogorov-Smirnov)",
    },
    MetricInfo { name: "leaf_over_spine_mean", meaning: "mean queue at leaf fabric ports / at spine ports" },
    MetricInfo { name: "leaf_over_spine_p99", meaning: "99th percentile of the same" },
    MetricInfo { name: "leaf_mean", meaning: "mean queue at leaf fabric ports, bytes" },
    MetricInfo { name: "spine_mean", meaning: "mean queue at spine ports, bytes" },
    MetricInfo { name: "leaf_p99", meaning: "99th percentile of queues at leaf fabric ports, bytes" },
    MetricInfo { name: "spine_p99", meaning: "99th percentile of queues at spine ports, bytes" },
];

/// How long queues of a tier had which length: nanoseconds by upper end in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths(BTreeMap<u64, u128>);

impl Lengths {
    /// The queues from switches of one role to those of another.
    pub fn between(rows: &[QueueRow], fabric: &Fabric, from: Role, to: Role) -> Self {
        let role = |name: &str| fabric.find(name).map(|node| fabric.node(node).role);
        let mut lengths = Self::default();
        for row in rows.iter().filter(|row| role(&row.node) == Some(from) && role(&row.peer) == Some(to)) {
            *lengths.0.entry(row.bytes_at_most).or_default() += u128::from(row.time_ns);
        }
        lengths
    }

    fn total(&self) -> u128 {
        self.0.values().sum()
    }

    /// Mean over time in bytes; `None` without any time.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        let weighted: f64 = self.0.iter().map(|(bytes, time)| *bytes as f64 * *time as f64).sum();
        (total > 0).then(|| weighted / total as f64)
    }

    /// The smallest length that is not exceeded for this share of the time.
    pub fn percentile(&self, ratio: f64) -> Option<f64> {
        let wanted = self.total() as f64 * ratio;
        let mut below = 0;
        let reached = self.0.iter().find(|(_, time)| {
            below += **time;
            below as f64 >= wanted
        });
        reached.map(|(bytes, _)| *bytes as f64)
    }

    /// Share of the time in which a queue is longer, by length (complementary distribution function).
    pub fn longer(&self) -> Vec<(u64, f64)> {
        let total = self.total();
        let mut left = total;
        let share = |(bytes, time): (&u64, &u128)| {
            left -= time;
            (*bytes, left as f64 / total as f64)
        };
        self.0.iter().map(share).collect()
    }

    fn longer_than(&self, bytes: u64) -> f64 {
        let over: u128 = self.0.range(bytes + 1..).map(|(_, time)| time).sum();
        over as f64 / self.total() as f64
    }

    /// Largest difference between two distributions at any length, 0 to 1 (Kolmogorov-Smirnov). `None` if one is empty.
    pub fn distance(&self, other: &Self) -> Option<f64> {
        let lengths = self.0.keys().chain(other.0.keys());
        let apart = lengths.map(|bytes| (self.longer_than(*bytes) - other.longer_than(*bytes)).abs());
        (self.total() > 0 && other.total() > 0).then(|| apart.fold(0.0, f64::max))
    }

    fn add(&mut self, other: &Self) {
        for (bytes, time) in &other.0 {
            *self.0.entry(*bytes).or_default() += time;
        }
    }
}

/// Both tiers of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// From leaves to spines.
    pub leaf: Lengths,
    /// From spines to leaves.
    pub spine: Lengths,
}

impl Tiers {
    fn of(input: &Input<'_>, trial: &TrialRecords) -> Self {
        let fabric = input.at(&trial.key).map_or(input.fabric(), |(_, fabric)| fabric);
        let between = |from, to| Lengths::between(&trial.records.queues, fabric, from, to);
        Self { leaf: between(Role::Leaf, Role::Spine), spine: between(Role::Spine, Role::Leaf) }
    }

    fn value(&self, metric: &str) -> Option<f64> {
        let ratio = |over: Option<f64>, under: Option<f64>| over.zip(under.filter(|under| *under > 0.0));
        match metric {
            "queue_distance" => self.leaf.distance(&self.spine),
            "leaf_over_spine_mean" => ratio(self.leaf.mean(), self.spine.mean()).map(|(over, under)| over / under),
            "leaf_over_spine_p99" => {
                ratio(self.leaf.percentile(0.99), self.spine.percentile(0.99)).map(|(over, under)| over / under)
            }
            "leaf_mean" => self.leaf.mean(),
            "spine_mean" => self.spine.mean(),
            "leaf_p99" => self.leaf.percentile(0.99),
            "spine_p99" => self.spine.percentile(0.99),
            _ => None,
        }
    }
}

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    match spec.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().as_slice() {
        [LOAD_AXIS] if spec.workload.len() == 1 => Ok(()),
        _ => Err("analysis `queues` takes one workload and the axis `load`".into()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let each = |metric: &MetricInfo| {
        let name = metric.name;
        spec.labels_of(LOAD_AXIS).iter().map(move |load| format!("{name}.{load}"))
    };
    METRICS.iter().flat_map(|metric| std::iter::once(metric.name.to_owned()).chain(each(metric))).collect()
}

/// Runs the analysis: each repetition is a sample.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut worst: Option<(f64, &str)> = None;
    for load in input.spec.labels_of(LOAD_AXIS) {
        let samples: Vec<Tiers> = trials(input, load).map(|trial| Tiers::of(input, trial)).collect();
        for metric in METRICS {
            let values: Vec<f64> = samples.iter().filter_map(|tiers| tiers.value(metric.name)).collect();
            findings.put(&format!("{}.{load}", metric.name), &values, Limit::Link);
        }
        let distance = findings.metrics.get(&format!("queue_distance.{load}")).map(|estimate| estimate.value);
        match distance {
            Some(distance) if worst.is_none_or(|(most, _)| distance > most) => worst = Some((distance, load)),
            Some(_) => {}
            None => {
                let text = format!("at load {load} no queue between leaves and spines was recorded");
                findings.problems.push(Problem::Failed(text));
            }
        }
    }
    if let Some((_, load)) = worst {
        let of_worst = |metric: &MetricInfo| {
            let estimate = findings.metrics.get(&format!("{}.{load}", metric.name))?;
            Some((metric.name.to_owned(), estimate.clone()))
        };
        let plain: Vec<(String, Estimate)> = METRICS.iter().filter_map(of_worst).collect();
        findings.metrics.extend(plain);
    }
    findings.tables.push(table(input, &findings));
    findings
}

/// Both tiers at every load, all repetitions together.
pub fn by_load(input: &Input<'_>) -> Vec<(String, Tiers)> {
    let of_load = |load: &String| {
        let mut sum = Tiers::default();
        for tiers in trials(input, load).map(|trial| Tiers::of(input, trial)) {
            sum.leaf.add(&tiers.leaf);
            sum.spine.add(&tiers.spine);
        }
        (load.clone(), sum)
    };
    input.spec.labels_of(LOAD_AXIS).iter().map(of_load).collect()
}

fn trials<'a>(input: &Input<'a>, load: &str) -> impl Iterator<Item = &'a TrialRecords> {
    input.trials.iter().filter(move |trial| input.label(&trial.key, LOAD_AXIS) == Some(load))
}

fn table(input: &Input<'_>, findings: &Findings) -> Table {
    let row = |load: &String| {
        let cell = |metric: &MetricInfo| {
            let estimate = findings.metrics.get(&format!("{}.{load}", metric.name));
            estimate.map_or_else(|| "-".to_owned(), |estimate| plain(estimate.value))
        };
        std::iter::once(load.clone()).chain(METRICS.iter().map(cell)).collect()
    };
    let names = METRICS.iter().map(|metric| metric.name.replace('_', " "));
    Table {
        title: "Queues by load".into(),
        headings: std::iter::once("load".to_owned()).chain(names).collect(),
        rows: input.spec.labels_of(LOAD_AXIS).iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests;
