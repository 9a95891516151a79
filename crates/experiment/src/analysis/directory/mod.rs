//! The directory system under load (VL2 5.5, Figure 14): one module per question, and what they share.
//!
//! * [`lookup`]: how many look-ups a server answers within 10 ms, and what the paper's mix, loss and a killed server do
//! * [`update`]: how many updates are acknowledged how fast, and what a killed leader costs
//! * [`convergence`]: when an update is visible
//! * [`sizing`]: how many servers a data centre needs
//! * [`migration`]: what an AA's move costs
//!
//! A share or percentile counts every request that was due: one without an answer, or never sent because the load itself
//! had no time for it, took the whole timeout.

pub mod convergence;
pub mod lookup;
pub mod migration;
pub mod sizing;
pub mod update;

use weft_scenario::record::{DirectoryRow, LatencyRow};
use weft_scenario::workload::{DirectorySpec, Workload};

use super::{Input, TrialRecords};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::PlanSpec;
use crate::stats;

/// Look-ups and their answers.
pub const LOOKUP: &str = "lookup";
/// Updates and their acknowledgements.
pub const UPDATE: &str = "update";
/// From an update until look-ups answer with it.
pub const VISIBLE: &str = "visible";
/// From an update until a subscriber has it.
pub const PUSHED: &str = "pushed";

/// The share of requests that must be answered for a rate to count.
const ANSWERED_MIN: f64 = 0.99;
/// The share of what was asked for that must have been offered: below it the load's own machine was the limit.
const OFFERED_MIN: f64 = 0.97;
/// Above this share of foreign work on the cores, or of requests that could not be sent, tails are not the directory's.
const DISTURBED: f64 = 0.05;

/// How long requests took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Upper end of each bin in nanoseconds and how many are in it, in order.
    bins: Vec<(u64, u64)>,
    /// Those that were never answered.
    failed: u64,
    /// How long they were waited for.
    timeout_ns: u64,
}

impl Distribution {
    /// From bins in any order; bins with the same end are added.
    pub fn new(bins: impl IntoIterator<Item = (u64, u64)>, failed: u64, timeout_ns: u64) -> Self {
        let mut sorted = std::collections::BTreeMap::new();
        for (end, count) in bins {
            *sorted.entry(end).or_insert(0) += count;
        }
        Self { bins: sorted.into_iter().collect(), failed, timeout_ns }
    }

    /// Several distributions as one.
    pub fn together(parts: &[Self]) -> Self {
        let bins = parts.iter().flat_map(|part| part.bins.iter().copied());
        let (failed, timeout) = (parts.iter().map(|part| part.failed).sum(), parts.iter().map(|part| part.timeout_ns));
        Self::new(bins, failed, timeout.max().unwrap_or(0))
    }

    /// How many requests there were, answered or not.
    pub fn total(&self) -> u64 {
        self.bins.iter().map(|bin| bin.1).sum::<u64>() + self.failed
    }

    /// The upper end of the bin below which a share `ratio` of all requests lies, in milliseconds; the timeout where that
    /// is among those without an answer. `None` of nothing.
    pub fn percentile_ms(&self, ratio: f64) -> Option<f64> {
        let total = self.total();
        let rank = ((ratio * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut below = 0;
        let bin = self.bins.iter().find(|bin| {
            below += bin.1;
            below >= rank
        });
        (total > 0).then(|| bin.map_or(self.timeout_ns, |bin| bin.0) as f64 / 1e6)
    }

    /// The share of all requests that took at most so long. `None` of nothing.
    pub fn share_within_ms(&self, limit_ms: f64) -> Option<f64> {
        let limit_ns = (limit_ms * 1e6) as u64;
        let within: u64 = self.bins.iter().filter(|bin| bin.0 <= limit_ns).map(|bin| bin.1).sum();
        (self.total() > 0).then(|| within as f64 / self.total() as f64)
    }

    /// Milliseconds and the share of requests that took at most so long.
    pub fn cumulative(&self) -> Vec<(f64, f64)> {
        let (total, mut below) = (self.total().max(1) as f64, 0);
        let point = |bin: &(u64, u64)| {
            below += bin.1;
            (bin.0 as f64 / 1e6, below as f64 / total)
        };
        self.bins.iter().map(point).collect()
    }
}

/// One step of one trial, for one kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The trial.
    pub trial: &'a TrialRecords,
    /// The workload as the plan has it.
    pub spec: &'a DirectorySpec,
    /// What was offered and answered.
    pub row: &'a DirectoryRow,
}

impl<'a> Step<'a> {
    /// All steps of all trials for requests of a kind.
    pub fn all(input: &Input<'a>, kind: &'static str) -> Vec<Self> {
        let of_trial = |trial: &'a TrialRecords| {
            let spec = spec_of(input.spec, &trial.key.workload)?;
            let rows = trial.records.directory.iter().filter(move |row| row.kind == kind);
            Some(rows.map(move |row| Self { trial, spec, row }))
        };
        input.trials.iter().filter_map(of_trial).flatten().collect()
    }

    /// How long its requests took.
    pub fn latencies(&self) -> Distribution {
        self.distribution(&self.row.kind, None)
    }

    /// The same for another kind of timing of the same step, at one server or, without one, at any or all.
    pub fn distribution(&self, kind: &str, server: Option<&str>) -> Distribution {
        let is_it =
            |row: &&LatencyRow| row.kind == kind && row.step == self.row.step && row.server.as_deref() == server;
        let rows = self.trial.records.latencies.iter().filter(is_it);
        let failed = self.row.unanswered + self.row.wrong + self.row.skipped;
        Distribution::new(rows.map(|row| (row.latency_at_most_ns, row.requests)), failed, self.spec.timeout.0)
    }

    /// Requests sent per second.
    pub fn sent_per_s(&self) -> f64 {
        self.row.sent as f64 * 1e9 / self.row.wall_ns.max(1) as f64
    }

    /// The share of the requests that were due which were answered.
    pub fn answered_ratio(&self) -> f64 {
        self.row.answered as f64 / self.due().max(1) as f64
    }

    fn due(&self) -> u64 {
        self.row.sent + self.row.skipped
    }

    /// Whether the load was offered as asked for, and carried with a 99th percentile of at most so long.
    pub fn carries(&self, p99_ms: f64) -> bool {
        let offered = self.sent_per_s() >= OFFERED_MIN * self.row.offered_per_s as f64;
        let p99 = self.latencies().percentile_ms(0.99).is_some_and(|p99| p99 <= p99_ms);
        offered && p99 && self.answered_ratio() >= ANSWERED_MIN
    }

    /// What its tail was limited by: work of others on the machine makes it longer.
    pub fn tail_limit(&self) -> Limit {
        let skipped = self.row.skipped as f64 / self.due().max(1) as f64;
        if self.row.foreign_cpu_ratio.max(skipped) > DISTURBED { Limit::OtherWork } else { Limit::SharedCores }
    }
}

/// The load of a workload of the plan.
pub fn spec_of<'a>(spec: &'a PlanSpec, workload: &str) -> Option<&'a DirectorySpec> {
    match spec.workload.get(workload)? {
        Workload::Directory(directory) => Some(directory),
        _ => None,
    }
}

/// Whether a workload raises its look-ups or updates from step to step with nothing else going on.
pub fn is_ramp(spec: &DirectorySpec) -> bool {
    spec.steps().len() > 1 && spec.loss_percent == 0 && spec.kill.is_none()
}

/// The highest rate that each repetition of a workload carried within a 99th percentile; 0 where no step did.
pub fn carried_per_s(steps: &[Step<'_>], workload: &str, p99_ms: f64) -> Vec<f64> {
    let of = |repetition: u32| {
        let mine = steps
            .iter()
            .filter(|step| step.trial.key.workload == workload && step.trial.key.repetition == repetition)
            .filter(|step| step.carries(p99_ms));
        mine.map(Step::sent_per_s).fold(0.0, f64::max)
    };
    let mut repetitions: Vec<u32> =
        steps.iter().filter(|step| step.trial.key.workload == workload).map(|step| step.trial.key.repetition).collect();
    repetitions.dedup();
    repetitions.into_iter().map(of).collect()
}

/// What numbers of these steps were limited by.
pub(crate) fn limit_of<'a>(mut steps: impl Iterator<Item = &'a Step<'a>>) -> Limit {
    if steps.any(|step| step.tail_limit().excuses()) { Limit::OtherWork } else { Limit::SharedCores }
}

/// A number of each step, by name of workload and, where it has several, rate of the step.
pub(crate) fn put_steps(
    findings: &mut Findings,
    steps: &[Step<'_>],
    metric: &str,
    number: impl Fn(&Step<'_>) -> Option<f64>,
) {
    let mut names: Vec<(String, Vec<&Step<'_>>)> = Vec::new();
    for step in steps {
        let name = step_name(metric, &step.trial.key.workload, step.spec, step.row.offered_per_s);
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(step),
            None => names.push((name, vec![step])),
        }
    }
    for (name, members) in names {
        let samples: Vec<f64> = members.iter().filter_map(|step| number(step)).collect();
        findings.put(&name, &samples, limit_of(members.into_iter()));
    }
}

fn step_name(metric: &str, workload: &str, spec: &DirectorySpec, rate: u64) -> String {
    match spec.steps().len() {
        1 => format!("{metric}.{workload}"),
        _ => format!("{metric}.{workload}.{rate}"),
    }
}

/// The names that [`put_steps`] may use for requests of a kind.
pub(crate) fn step_names(spec: &PlanSpec, metric: &str, kind: &str) -> Vec<String> {
    let mut names = Vec::new();
    for workload in spec.workload.keys() {
        let Some(directory) = spec_of(spec, workload) else { continue };
        for step in directory.steps() {
            let rate = if kind == LOOKUP { step.lookups_per_s } else { step.updates_per_s };
            names.push(step_name(metric, workload, directory, u64::from(rate)));
        }
    }
    names
}

/// Acknowledged updates that were gone afterwards, in the whole run.
pub(crate) fn put_lost(findings: &mut Findings, input: &Input<'_>) {
    let steps = Step::all(input, UPDATE);
    if !steps.is_empty() {
        let lost: u64 = steps.iter().map(|step| step.row.lost).sum();
        let estimate = crate::metric::Estimate {
            value: lost as f64,
            interval: None,
            n: steps.iter().map(|step| step.row.answered as usize).sum(),
            limited_by: Limit::OfferedLoad,
        };
        findings.metrics.insert("acknowledged_lost".into(), estimate);
    }
}

/// Answers that were not what had been asked for.
pub(crate) fn wrong_answers(input: &Input<'_>) -> Option<Problem> {
    let rows = input.trials.iter().flat_map(|trial| &trial.records.directory);
    let wrong: u64 = rows.filter(|row| row.kind == LOOKUP).map(|row| row.wrong).sum();
    (wrong > 0).then(|| Problem::Failed(format!("{wrong} look-ups were answered with something else than was asked")))
}

/// Whether all workloads are loads on the directory, without a sweep.
pub(crate) fn check(spec: &PlanSpec) -> Result<(), String> {
    let name = spec.analysis.name();
    if !spec.axes.is_empty() {
        return Err(format!("analysis `{name}` takes no sweep; a workload has its own steps"));
    }
    match spec.workload.keys().all(|workload| spec_of(spec, workload).is_some()) {
        true => Ok(()),
        false => Err(format!("analysis `{name}` needs workloads of kind `directory`")),
    }
}

/// The median over repetitions of a percentile, for tables.
pub(crate) fn median_percentile_ms(steps: &[&Step<'_>], ratio: f64) -> Option<f64> {
    stats::median(&steps.iter().filter_map(|step| step.latencies().percentile_ms(ratio)).collect::<Vec<_>>())
}

/// One line for each workload and rate: what was offered, what came of it.
pub(crate) fn table(title: &str, steps: &[Step<'_>]) -> crate::metric::Table {
    let headings = [
        "workload",
        "offered (/s)",
        "sent (/s)",
        "not begun",
        "answered",
        "p1 (ms)",
        "p50 (ms)",
        "p99 (ms)",
        "messages a request",
        "per server CPU second",
        "foreign CPU",
    ];
    let mut groups: Vec<Vec<&Step<'_>>> = Vec::new();
    for step in steps {
        let same =
            |other: &Step<'_>| (&other.trial.key.workload, other.row.step) == (&step.trial.key.workload, step.row.step);
        match groups.iter_mut().find(|group| same(group[0])) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    let row = |group: &Vec<&Step<'_>>| {
        let median = |number: fn(&Step<'_>) -> f64| {
            stats::median(&group.iter().map(|step| number(step)).collect::<Vec<_>>()).map_or_else(dash, shown)
        };
        let percentile = |ratio| median_percentile_ms(group, ratio).map_or_else(dash, shown);
        vec![
            group[0].trial.key.workload.clone(),
            group[0].row.offered_per_s.to_string(),
            median(|step| step.sent_per_s().round()),
            median(|step| step.row.skipped as f64 / step.due().max(1) as f64),
            median(|step| step.answered_ratio()),
            percentile(0.01),
            percentile(0.5),
            percentile(0.99),
            median(|step| step.row.messages as f64 / step.row.sent.max(1) as f64),
            median(|step| (step.row.answered as f64 * 1e9 / step.row.server_cpu_ns.max(1) as f64).round()),
            median(|step| step.row.foreign_cpu_ratio),
        ]
    };
    let rows = groups.iter().map(row).collect();
    crate::metric::Table { title: title.to_owned(), headings: headings.map(str::to_owned).to_vec(), rows }
}

fn dash() -> String {
    "-".to_owned()
}

fn shown(value: f64) -> String {
    crate::table::plain(value)
}

#[cfg(test)]
pub(crate) mod tests;
