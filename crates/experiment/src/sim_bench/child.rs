//! One run of the benchmark: a process that does nothing else and says what came out and what it cost.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use weft_scenario::engine::{EngineError, Progress};

use super::{failed, program};

/// Runs nothing: what a process of this program needs by itself.
pub const IDLE: &str = "idle";

/// What one run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Transmissions of packets over links.
    pub packet_hops: u64,
    /// Packets lost.
    pub drops: u64,
    /// Mean flow completion time: to the last byte acknowledged at the sender.
    pub mean_fct_us: f64,
    /// Mean time to the last byte at the receiver.
    pub mean_received_us: f64,
    /// Datagrams received; 0 in jobs of TCP.
    pub datagrams: u64,
    /// Their mean one-way delay.
    pub mean_delay_us: f64,
}

/// What one child process did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ChildReport {
    /// Of one run; all runs of a child are alike.
    #[serde(flatten)]
    pub counts: Counts,
    /// CPU time of all runs, user and system, without start and preparation.
    pub cpu_s: f64,
    /// CPU time of the process, from its start.
    pub process_cpu_s: f64,
    /// Wall time of the runs.
    pub wall_s: f64,
    /// CPU time of the slowest thread of a run, window by window; 0 in jobs of one thread.
    #[serde(default)]
    pub slowest_s: f64,
    /// Largest resident size of the process.
    pub peak_rss_bytes: u64,
    /// What that was estimated to be; 0 of nothing.
    pub estimated_bytes: u64,
    /// Servers of the job's network.
    pub servers: u64,
}

/// Starts a child and reads its report.
pub(super) fn start(arguments: &[&str], progress: &dyn Progress) -> Result<ChildReport, EngineError> {
    let mut command = internal("sim-job")?;
    let output = finished(command.args(arguments), &arguments.join(" "), progress)?;
    serde_json::from_slice(&output.stdout).map_err(failed)
}

/// Has a child write the network of a job, with so many times fewer packets, as daytone's configuration.
pub(super) fn write_network(
    job: &str,
    divisor: &str,
    file: &Path,
    results: &Path,
    progress: &dyn Progress,
) -> Result<(), EngineError> {
    let mut command = internal("daytone-config")?;
    finished(command.args([job, "--divisor", divisor]).arg(file).arg(results), job, progress).map(drop)
}

/// Has a child run a job with so many times fewer packets and say the mean delay of each of its streams, in microseconds.
pub(super) fn stream_delays(job: &str, divisor: &str, progress: &dyn Progress) -> Result<Vec<f64>, EngineError> {
    let output = finished(internal("stream-delays")?.args([job, "--divisor", divisor]), job, progress)?;
    serde_json::from_slice(&output.stdout).map_err(failed)
}

fn internal(part: &str) -> Result<Command, EngineError> {
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["internal", part]);
    Ok(command)
}

fn finished(command: &mut Command, job: &str, progress: &dyn Progress) -> Result<Output, EngineError> {
    let output = program::output(command, progress)?.map_err(failed)?;
    match output.status.success() {
        true => Ok(output),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(EngineError::Failed(format!("job {job}: {}: {}", output.status, said.trim())))
        }
    }
}

/// The child's side: runs the job so many times, on so many threads.
pub fn measure<E: Send>(run: impl Fn() -> Result<Counts, E> + Sync, runs: u32, workers: u32) -> Result<ChildReport, E> {
    let (next, last) = (AtomicU32::new(0), Mutex::new(None));
    let work = || {
        while next.fetch_add(1, Ordering::Relaxed) < runs {
            let outcome = run();
            *last.lock().expect("a worker that panics ends the process") = Some(outcome);
        }
    };
    let (cpu_before_s, started) = (cpu_s(), Instant::now());
    if workers <= 1 {
        work();
    } else {
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    }
    let process_cpu_s = cpu_s();
    let (cpu_s, wall_s) = (process_cpu_s - cpu_before_s, started.elapsed().as_secs_f64());
    let last = last.into_inner().expect("a worker that panics ends the process");
    Ok(ChildReport {
        counts: last.transpose()?.unwrap_or_default(),
        cpu_s,
        process_cpu_s,
        wall_s,
        peak_rss_bytes: peak_rss_bytes(),
        ..ChildReport::default()
    })
}

/// CPU time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU time of this thread so far.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
    fn every_run_is_done_once_whoever_does_it() {
        let done = AtomicU32::new(0);
        let run =
            || Ok::<_, ()>(Counts { drops: u64::from(done.fetch_add(1, Ordering::Relaxed) / 5), ..Counts::default() });
        assert_eq!(measure(run, 5, 2).map(|report| report.counts), Ok(Counts::default()));
        assert_eq!(done.into_inner(), 5);
    }
}
