//! Runs one job of the benchmark and says what came out and what it cost: `bench_job r1a`.

#![allow(clippy::print_stdout)]

use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};
use weft_sim::{Unobserved, bench, run};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "r1a".to_owned());
    let Some(job) = bench::job(&name) else {
        eprintln!("there is no job `{name}`; choose one of {}", bench::JOBS.join(", "));
        return ExitCode::from(2);
    };
    let (idle_kb, before_s) = (peak_kb(), cpu_s());
    let outcome = match run(&job, &mut Unobserved) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let cpu_s = cpu_s() - before_s;
    let totals = outcome.totals;
    println!(
        "{name}: {} packet-hops, {} drops, {} retransmits, {} timeouts, mean FCT {:.1} us, {cpu_s:.2} CPU s, {:.1} M hops/CPU s, {} kB above idle",
        totals.packet_hops,
        totals.drops(),
        totals.retransmits,
        totals.timeouts,
        bench::mean_completion_ns(&outcome) as f64 / 1e3,
        totals.packet_hops as f64 / cpu_s.max(1e-3) / 1e6,
        peak_kb() - idle_kb,
    );
    ExitCode::SUCCESS
}

/// CPU time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Largest resident size of this process so far, in kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
