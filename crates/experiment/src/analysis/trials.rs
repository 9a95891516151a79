//! Trials with the test centre: estimates over repetitions, the check of the way CPU time is read, cells of tables.

use super::{Input, TrialRecords};
use crate::metric::{Findings, Limit, Problem};

/// A cost that was put in on purpose, and what was read of it: facts of every trial, nanoseconds per frame.
pub(super) const KNOWN_NS: &str = "cost.known_ns";
/// See [`KNOWN_NS`].
pub(super) const READ_NS: &str = "cost.read_ns";

/// The trials of a workload, one for each repetition.
pub(super) fn trials<'a>(input: &Input<'a>, workload: &str) -> impl Iterator<Item = &'a TrialRecords> {
    let workload = workload.to_owned();
    input.trials.iter().filter(move |trial| trial.key.workload == workload)
}

/// Adds the median over the repetitions of a workload.
pub(super) fn put(
    findings: &mut Findings,
    input: &Input<'_>,
    workload: &str,
    name: &str,
    number: impl Fn(&TrialRecords) -> Option<f64>,
) {
    let samples: Vec<f64> = trials(input, workload).filter_map(number).filter(|value| value.is_finite()).collect();
    findings.put(name, &samples, Limit::PinnedCore);
}

/// How far off the known cost was read, as a share of it; the median over all trials.
pub(super) fn put_calibration(findings: &mut Findings, input: &Input<'_>) {
    let error = |trial: &TrialRecords| {
        let (known, read) = (trial.records.fact(KNOWN_NS)?, trial.records.fact(READ_NS)?);
        (known > 0.0).then(|| (read - known).abs() / known)
    };
    let samples: Vec<f64> = input.trials.iter().filter_map(error).collect();
    findings.put("calibration_error", &samples, Limit::OtherWork);
}

/// A trial without rows measured nothing.
pub(super) fn put_empty(findings: &mut Findings, input: &Input<'_>, is_empty: impl Fn(&TrialRecords) -> bool) {
    for trial in input.trials.iter().filter(|trial| is_empty(trial)) {
        findings.problems.push(Problem::Failed(format!("trial {} measured nothing", trial.key.trial)));
    }
}

/// Whole numbers as text, a dash where there is none.
pub(super) fn cell(findings: &Findings, metric: &str) -> String {
    findings.metrics.get(metric).map_or_else(|| "-".to_owned(), |estimate| crate::table::plain(estimate.value))
}

/// A value with its interval, a dash where there is none.
pub(super) fn cell_with_interval(findings: &Findings, metric: &str) -> String {
    let Some(estimate) = findings.metrics.get(metric) else { return "-".to_owned() };
    let plain = crate::table::plain;
    match estimate.interval {
        Some(interval) => format!("{} ({} .. {})", plain(estimate.value), plain(interval.low), plain(interval.high)),
        None => plain(estimate.value),
    }
}
