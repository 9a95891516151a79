//! Interleaved rounds of children, and their medians.

use serde::Serialize;
use weft_scenario::engine::{EngineError, Progress};

use super::child::{self, ChildReport, Counts, IDLE};
use crate::stats;

/// One job: counts are the same in every round; times and memory are medians.
#[derive(Clone, Debug, Serialize)]
pub struct JobRow {
    pub id: String,
    /// The same in every round.
    #[serde(flatten)]
    pub counts: Counts,
    /// User and system CPU time of the run.
    pub cpu_s: f64,
    /// Of user and system CPU time.
    pub hops_per_cpu_s: f64,
    /// Largest resident size above that of an idle process.
    pub peak_rss_bytes: u64,
    /// The estimate of memory before the run / the largest resident size of the process.
    pub estimated_over_peak_rss: f64,
    /// Of the run, without start and preparation.
    pub wall_s: f64,
    /// CPU time of the slowest thread, window by window: what the run takes where every thread has a processor. 0 in jobs of one
    /// thread.
    pub slowest_s: f64,
    /// CPU time of each round, for ratios of jobs that ran in the same one.
    #[serde(skip)]
    pub cpu_by_round_s: Vec<f64>,
    /// The same of the slowest thread.
    #[serde(skip)]
    pub slowest_by_round_s: Vec<f64>,
}

/// Independent runs one after another, and the same on several workers.
#[derive(Clone, Debug, Serialize)]
pub struct SweepRow {
    /// Which job the runs are.
    pub job: &'static str,
    /// How many in each round, serial and parallel.
    pub runs: u32,
    /// Threads of the parallel ones.
    pub workers: u32,
    /// CPU time of all serial runs.
    pub serial_cpu_s: f64,
    /// CPU time of all parallel runs.
    pub cpu_s: f64,
    /// Median of the rounds' total CPU time / serial.
    pub cpu_ratio: f64,
    /// Wall time of all serial runs.
    pub serial_wall_s: f64,
    /// Wall time of all parallel runs.
    pub wall_s: f64,
}

/// What the runs of a sweep are: with losses, so that recovery is in it.
const SWEEP_JOB: &str = "r1b";
const SWEEP_RUNS: u32 = 8;
const SWEEP_WORKERS: u32 = 2;

/// Every job once a round.
pub(super) fn jobs(names: &[&str], rounds: u32, progress: &dyn Progress) -> Result<Vec<JobRow>, EngineError> {
    progress.phase("jobs", &names.join(", "));
    let mut reports = vec![Vec::new(); names.len()];
    let mut idle_bytes = Vec::new();
    for round in 0..rounds {
        idle_bytes.push(child::start(&[IDLE], progress)?.peak_rss_bytes as f64);
        for (place, name) in names.iter().enumerate() {
            check_interrupted(progress)?;
            reports[place].push(child::start(&[name], progress)?);
            let done = f64::from(round) + (place + 1) as f64 / names.len() as f64;
            progress.advance(done / f64::from(rounds), &format!("round {} of {rounds}, {name}", round + 1));
        }
    }
    let idle_bytes = median(&idle_bytes);
    names.iter().zip(&reports).map(|(name, reports)| job_row(name, reports, idle_bytes)).collect()
}

fn job_row(id: &str, reports: &[ChildReport], idle_bytes: f64) -> Result<JobRow, EngineError> {
    let of = |field: fn(&ChildReport) -> f64| median(&reports.iter().map(field).collect::<Vec<_>>());
    let first = reports.first().copied().unwrap_or_default();
    if reports.iter().any(|report| report.counts != first.counts) {
        return Err(EngineError::Failed(format!("job {id} did not give the same result in every round")));
    }
    let cpu_s = of(|report| report.cpu_s);
    Ok(JobRow {
        id: id.to_owned(),
        counts: first.counts,
        cpu_s,
        hops_per_cpu_s: pace(first.counts.packet_hops, cpu_s),
        peak_rss_bytes: (of(|report| report.peak_rss_bytes as f64) - idle_bytes).max(0.0) as u64,
        estimated_over_peak_rss: first.estimated_bytes as f64 / of(|report| report.peak_rss_bytes as f64).max(1.0),
        wall_s: of(|report| report.wall_s),
        slowest_s: of(|report| report.slowest_s),
        cpu_by_round_s: reports.iter().map(|report| report.cpu_s).collect(),
        slowest_by_round_s: reports.iter().map(|report| report.slowest_s).collect(),
    })
}

/// Eight runs, serial and on two workers in turn.
pub(super) fn sweep(rounds: u32, progress: &dyn Progress) -> Result<SweepRow, EngineError> {
    progress.phase("sweep", &format!("{SWEEP_RUNS} runs of {SWEEP_JOB}"));
    let (mut serial, mut parallel) = (Vec::new(), Vec::new());
    let runs = SWEEP_RUNS.to_string();
    for round in 0..rounds {
        check_interrupted(progress)?;
        serial.push(child::start(&[SWEEP_JOB, "--runs", &runs], progress)?);
        let workers = SWEEP_WORKERS.to_string();
        parallel.push(child::start(&[SWEEP_JOB, "--runs", &runs, "--workers", &workers], progress)?);
        progress.advance(f64::from(round + 1) / f64::from(rounds), &format!("round {} of {rounds}", round + 1));
    }
    let cpu_s = |reports: &[ChildReport]| reports.iter().map(|report| report.cpu_s).collect::<Vec<_>>();
    let of = |reports: &[ChildReport], field: fn(&ChildReport) -> f64| {
        median(&reports.iter().map(field).collect::<Vec<_>>())
    };
    Ok(SweepRow {
        job: SWEEP_JOB,
        runs: SWEEP_RUNS,
        workers: SWEEP_WORKERS,
        serial_cpu_s: of(&serial, |report| report.cpu_s),
        cpu_s: of(&parallel, |report| report.cpu_s),
        cpu_ratio: paired_ratio(&cpu_s(&parallel), &cpu_s(&serial)),
        serial_wall_s: of(&serial, |report| report.wall_s),
        wall_s: of(&parallel, |report| report.wall_s),
    })
}

/// Median of the ratios of what was measured in the same round.
pub(super) fn paired_ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs.max(1e-9)).collect::<Vec<_>>())
}

pub(super) fn check_interrupted(progress: &dyn Progress) -> Result<(), EngineError> {
    if progress.interrupted() { Err(EngineError::Interrupted) } else { Ok(()) }
}

pub(super) fn pace(packet_hops: u64, cpu_s: f64) -> f64 {
    packet_hops as f64 / cpu_s.max(1e-9)
}

pub(super) fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cpu_s: f64, peak_rss_bytes: u64) -> ChildReport {
        ChildReport {
            counts: Counts { packet_hops: 1_000, ..Counts::default() },
            cpu_s,
            peak_rss_bytes,
            wall_s: cpu_s,
            estimated_bytes: 60,
            ..ChildReport::default()
        }
    }

    #[test]
    fn medians_count_and_memory_is_above_an_idle_process() {
        let row = job_row("a", &[report(1.0, 30), report(9.0, 20), report(2.0, 70)], 10.0).expect("they agree");
        assert_eq!((row.cpu_s, row.hops_per_cpu_s, row.peak_rss_bytes), (2.0, 500.0, 20));
        assert_eq!(row.estimated_over_peak_rss, 2.0, "60 of the whole process's 30");
    }

    #[test]
    fn rounds_that_disagree_are_no_result() {
        let other = ChildReport { counts: Counts { drops: 1, ..report(1.0, 1).counts }, ..report(1.0, 1) };
        assert!(job_row("a", &[report(1.0, 1), other], 0.0).is_err());
    }
}
