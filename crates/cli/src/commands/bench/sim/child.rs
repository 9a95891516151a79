//! One run of the benchmark: a process that does nothing else and says what came out and what it cost.

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use weft_sim::{Job, SimError, Source, Unobserved, bench};

use crate::exit::Failure;
use crate::output;

/// Runs nothing: what a process of this program needs by itself.
pub(super) const IDLE: &str = "idle";

/// What one child process did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct ChildReport {
    /// Of one run, as the three below; all runs of a child are alike.
    pub(super) packet_hops: u64,
    pub(super) drops: u64,
    pub(super) mean_fct_us: f64,
    /// CPU time of all runs, user and system, without start and preparation.
    pub(super) cpu_s: f64,
    /// Wall time of the same.
    pub(super) wall_s: f64,
    /// Largest resident size of the process.
    pub(super) peak_rss_bytes: u64,
}

/// Starts a child and reads its report.
pub(super) fn start(arguments: &[&str]) -> Result<ChildReport, Failure> {
    let weft = std::env::current_exe().map_err(Failure::failed)?;
    let output = Command::new(weft).args(["internal", "sim-job"]).args(arguments).output().map_err(Failure::failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::failed(format!("job {}: {}: {}", arguments.join(" "), output.status, said.trim())));
    }
    serde_json::from_slice(&output.stdout).map_err(Failure::failed)
}

/// The child's side: `weft internal sim-job`.
pub(crate) fn run(name: &str, runs: u32, workers: u32, divisor: u32) -> Result<ExitCode, Failure> {
    let mut report = ChildReport::default();
    if name != IDLE {
        let job = bench::job(name).ok_or_else(|| Failure::usage(format!("there is no job `{name}`")))?;
        report = measure(&divided(job, divisor), runs, workers).map_err(Failure::failed)?;
    }
    report.peak_rss_bytes = peak_rss_bytes();
    output::print_line(&serde_json::to_string(&report).map_err(Failure::failed)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The job with so many times fewer packets in each flow.
fn divided(mut job: Job, divisor: u32) -> Job {
    if let Source::Flows(flows) = &mut job.source {
        flows.iter_mut().for_each(|flow| flow.spec.bytes /= u64::from(divisor.max(1)));
    }
    job
}

fn measure(job: &Job, runs: u32, workers: u32) -> Result<ChildReport, SimError> {
    let (next, last) = (AtomicU32::new(0), Mutex::new(None));
    let work = || {
        while next.fetch_add(1, Ordering::Relaxed) < runs {
            let outcome = weft_sim::run(job, &mut Unobserved);
            *last.lock().expect("a worker that panics ends the process") = Some(outcome);
        }
    };
    let (cpu_before_s, started) = (cpu_s(), Instant::now());
    if workers <= 1 {
        work();
    } else {
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    }
    let (cpu_s, wall_s) = (cpu_s() - cpu_before_s, started.elapsed().as_secs_f64());
    let outcome = match last.into_inner().expect("a worker that panics ends the process") {
        Some(outcome) => outcome?,
        None => return Ok(ChildReport::default()),
    };
    Ok(ChildReport {
        packet_hops: outcome.totals.packet_hops,
        drops: outcome.totals.drops(),
        mean_fct_us: bench::mean_completion_ns(&outcome) as f64 / 1e3,
        cpu_s,
        wall_s,
        peak_rss_bytes: 0,
    })
}

/// CPU time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Largest resident size of this process so far. Unlike `ru_maxrss` it does not begin with that of the parent.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_r1a_has_a_tenth_of_its_hops() {
        let job = divided(bench::job("r1a").expect("it is listed"), 10);
        let report = measure(&job, 2, 2).expect("the job runs");
        // 100 flows of 1000 packets and their ACKs over 4 links, and as much for SYN and SYN-ACK.
        assert_eq!((report.packet_hops, report.drops), (100 * 4 * 2 * 1_001, 0));
    }
}
