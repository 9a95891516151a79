//! `weft bench sim`: packet-hops per CPU second and memory of the simulator on its reference jobs, against floors.
//!
//! Every run is a child process of its own ([`child`]), so that no run inherits another's memory; rounds are interleaved
//! and the median counts, so that a moment of a busy machine does not.

pub(crate) mod child;
mod gates;
mod measure;
mod ns3;

use std::process::ExitCode;

use serde::Serialize;

use crate::args::{BenchSimArgs, Output};
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;
use measure::{JobRow, SweepRow};
use ns3::Ns3Row;
use weft_scenario::judge::Check;

/// Everything that was measured.
#[derive(Serialize)]
struct SimBench {
    schema_version: u32,
    rounds: u32,
    jobs: Vec<JobRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vs_ns3: Option<Ns3Row>,
    checks: Vec<Check>,
}

pub(crate) fn sim(args: &BenchSimArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let names = job_names(&args.jobs)?;
    let progress = TerminalProgress::new(quiet)?;
    let measured = measure_all(&names, args, &progress);
    progress.finish();
    let bench = measured?;
    output::print(args.output.output, &job_rows(&bench.jobs), &bench)?;
    if args.output.output == Output::Table {
        print_rest(&bench)?;
    }
    output::judged(args.output.output, &bench.checks)
}

/// The jobs that were asked for; all without a wish.
fn job_names(wanted: &[String]) -> Result<Vec<&'static str>, Failure> {
    let known = weft_sim::bench::JOBS;
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::usage(format!("there is no job `{unknown}`; choose from {}", known.join(", "))));
    }
    Ok(known.into_iter().filter(|name| wanted.is_empty() || wanted.iter().any(|one| one == name)).collect())
}

fn measure_all(names: &[&'static str], args: &BenchSimArgs, progress: &TerminalProgress) -> Result<SimBench, Failure> {
    // Whatever is missing for the comparison is said before minutes of measuring.
    let ns3 = args.vs_ns3.then(ns3::Driver::build).transpose()?;
    let jobs = measure::jobs(names, args.rounds, progress)?;
    let sweep = args.sweep.then(|| measure::sweep(args.rounds, progress)).transpose()?;
    let vs_ns3 = ns3.map(|driver| driver.compare(args.rounds, progress)).transpose()?;
    let checks = gates::checks(&jobs, sweep.as_ref(), vs_ns3.as_ref());
    Ok(SimBench { schema_version: 2, rounds: args.rounds, jobs, sweep, vs_ns3, checks })
}

const HEADINGS: [&str; 7] =
    ["job", "packet-hops", "drops", "mean FCT us", "CPU s", "M hops per CPU s", "peak RSS MB above idle"];

fn job_rows(jobs: &[JobRow]) -> Rows {
    let mut rows = Rows::new(&HEADINGS);
    for job in jobs {
        rows.push(vec![
            job.id.clone(),
            job.packet_hops.to_string(),
            job.drops.to_string(),
            format!("{:.1}", job.mean_fct_us),
            format!("{:.3}", job.cpu_s),
            format!("{:.2}", job.hops_per_cpu_s / 1e6),
            format!("{:.1}", job.peak_rss_bytes as f64 / 1e6),
        ]);
    }
    rows
}

/// The comparisons and the checks, for people.
fn print_rest(bench: &SimBench) -> Result<(), Failure> {
    if let Some(sweep) = &bench.sweep {
        output::print_line(&format!(
            "\nsweep of {} x {}: {:.3} CPU s on {} workers, {:.3} serial; wall {:.2} s, {:.2} s serial",
            sweep.runs, sweep.job, sweep.cpu_s, sweep.workers, sweep.serial_cpu_s, sweep.wall_s, sweep.serial_wall_s
        ))?;
    }
    if let Some(ns3) = &bench.vs_ns3 {
        output::print_line(&format!(
            "\n{} on ns-3 {}: {:.3} CPU s, {:.3} M hops per CPU s, mean FCT {:.1} us; here {:.3} CPU s, {:.2} M, {:.1} us",
            ns3.job,
            ns3.ns3_version,
            ns3.ns3_cpu_s,
            ns3.ns3_hops_per_cpu_s / 1e6,
            ns3.ns3_mean_fct_us,
            ns3.cpu_s,
            ns3.hops_per_cpu_s / 1e6,
            ns3.mean_fct_us
        ))?;
    }
    Ok(())
}
