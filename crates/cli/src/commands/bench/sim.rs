//! `weft bench sim`: packet-hops per CPU second and memory of the simulator on its reference jobs, against floors.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use weft_experiment::measurement::Reading;
use weft_experiment::sim_bench::child::{self, ChildReport, Counts, IDLE};
use weft_experiment::sim_bench::daytone::{self, DaytoneRow};
use weft_experiment::sim_bench::{self, Extent, JobRow, SimBench};
use weft_experiment::stats;
use weft_scenario::judge::Relation;
use weft_sim::{Job, Observer, Unobserved, WindowTimes, bench, memory};

use crate::args::{BenchSimArgs, Output, PeerChoice};
use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn sim(args: &BenchSimArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let names = job_names(&args.jobs, args.scale)?;
    let saving = Saving::begin(&args.results)?;
    let progress = TerminalProgress::new(quiet)?;
    let is_peer = |peer: PeerChoice| args.vs.contains(&peer);
    let extent = Extent {
        rounds: args.rounds,
        sweep: args.sweep,
        vs_ns3: args.vs_ns3 || is_peer(PeerChoice::Ns3),
        vs_daytone: is_peer(PeerChoice::Daytone),
    };
    let measured = sim_bench::run(&names, extent, &progress);
    progress.finish();
    let bench = measured?;
    let format = saving.format;
    let readings = bench.jobs.iter().flat_map(readings).collect();
    saving.print(&job_rows(&bench.jobs), &bench, readings, &bench.checks)?;
    if format == Output::Table {
        print_rest(&bench)?;
    }
    output::judged(format, &bench.checks)
}

/// The jobs that were asked for; all without a wish. Those at size come with the one that they are compared with.
fn job_names(wanted: &[String], scale: bool) -> Result<Vec<&'static str>, Failure> {
    let known = weft_sim::bench::JOBS;
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::usage(format!("there is no job `{unknown}`; choose from {}", known.join(", "))));
    }
    let is_wanted = |name: &&str| {
        wanted.is_empty() || wanted.iter().any(|one| one == name) || (scale && *name == bench::SCALE_REFERENCE)
    };
    let at_size = bench::SCALE_JOBS.into_iter().filter(|_| scale);
    Ok(known.into_iter().filter(is_wanted).chain(at_size).collect())
}

/// `weft internal sim-job`: the benchmark's child process.
pub(crate) fn job(name: &str, runs: u32, workers: u32, divisor: u32) -> Result<ExitCode, Failure> {
    let named = || bench::job(name).ok_or_else(|| Failure::usage(format!("there is no job `{name}`")));
    // Of a network at rest, making it is what is measured.
    let job = if name == IDLE || name == bench::REST { None } else { Some(named()?) };
    let job = job.map(|job| on_the_clock(bench::divided(job, divisor)));
    let count = |outcome: weft_sim::Outcome| Counts {
        packet_hops: outcome.totals.packet_hops,
        drops: outcome.totals.drops(),
        mean_fct_us: bench::mean_completion_ns(&outcome) as f64 / 1e3,
        mean_received_us: bench::mean_received_ns(&outcome) as f64 / 1e3,
        datagrams: outcome.datagrams.iter().map(|stream| stream.received).sum(),
        mean_delay_us: bench::mean_delay_ns(&outcome) / 1e3,
    };
    let slowest = Slowest::default();
    let run_job = |job: &Job| Ok(count(weft_sim::run(job, &mut &slowest).map_err(Failure::failed)?));
    let run = || match &job {
        None if name == IDLE => Ok::<Counts, Failure>(Counts::default()),
        None => run_job(&named()?),
        Some(job) => run_job(job),
    };
    let known = |job: &Job| (memory::estimate(&memory::Extent::of_job(job)).0, job.fabric.servers().count() as u64);
    // A network at rest is a job, too.
    let known = job.as_ref().map(known).or_else(|| bench::job(name).as_ref().map(known));
    let (estimated_bytes, servers) = known.unwrap_or_default();
    let measured = child::measure(run, runs, workers)?;
    let report = ChildReport { estimated_bytes, servers, slowest_s: slowest.s(), ..measured };
    output::print_line(&serde_json::to_string(&report).map_err(Failure::failed)?)?;
    Ok(ExitCode::SUCCESS)
}

fn on_the_clock(mut job: Job) -> Job {
    job.watch.cpu_clock = Some(child::thread_cpu_ns);
    job
}

/// Sums the CPU times of the slowest threads of all runs.
#[derive(Default)]
struct Slowest(AtomicU64);

impl Slowest {
    fn s(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e9
    }
}

impl Observer for &Slowest {
    fn progress(&mut self, _progress: &weft_sim::Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn windows(&mut self, times: &WindowTimes) {
        self.0.fetch_add(times.slowest_ns, Ordering::Relaxed);
    }
}

/// `weft internal daytone-config`: a job as daytone's configuration.
pub(crate) fn network(name: &str, file: &Path, results: &Path, divisor: u32) -> Result<ExitCode, Failure> {
    let job = job_of_datagrams(name, divisor)?;
    let payload_bytes = job.datagrams.first().map_or(0, |stream| stream.payload_bytes);
    let streams: Vec<_> = job.datagrams.iter().map(|stream| stream.spec).collect();
    let network = daytone::Network {
        fabric: &job.fabric,
        streams: &streams,
        ways: &weft_sim::datagram_ways(&job),
        payload_bytes,
        packet_bytes: payload_bytes + weft_sim::DATAGRAM_HEADER_BYTES,
    };
    let text = daytone::configuration(&network, results);
    std::fs::write(file, text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
    Ok(ExitCode::SUCCESS)
}

/// `weft internal stream-delays`: the mean delay of each stream in microseconds, 0 where nothing has arrived.
pub(crate) fn delays(name: &str, divisor: u32) -> Result<ExitCode, Failure> {
    let outcome = weft_sim::run(&job_of_datagrams(name, divisor)?, &mut Unobserved).map_err(Failure::failed)?;
    let delays = outcome.datagrams.iter().map(|stream| stream.mean_delay_ps().unwrap_or(0) as f64 / 1e6);
    output::print_line(&serde_json::to_string(&delays.collect::<Vec<f64>>()).map_err(Failure::failed)?)?;
    Ok(ExitCode::SUCCESS)
}

fn job_of_datagrams(name: &str, divisor: u32) -> Result<Job, Failure> {
    let job = bench::job(name).filter(|job| !job.datagrams.is_empty());
    let job = job.ok_or_else(|| Failure::usage(format!("there is no job `{name}` of datagrams")))?;
    Ok(bench::divided(job, divisor))
}

/// What a job reads beside its floors: its pace over the rounds, and what must be the same in every run.
fn readings(job: &JobRow) -> [Reading; 2] {
    let paces: Vec<f64> = job.cpu_by_round_s.iter().map(|cpu_s| job.counts.packet_hops as f64 / cpu_s).collect();
    let interval = stats::median_interval(&paces).map(|interval| [interval.low, interval.high]);
    let pace = Reading::new(format!("{}.pace", job.id), job.hops_per_cpu_s, "hops/CPU s", Relation::AtLeast);
    let hops = Reading::new(format!("{}.packet_hops", job.id), job.counts.packet_hops as f64, "hops", Relation::Info);
    [Reading { interval, ..pace }, hops]
}

const HEADINGS: [&str; 8] = [
    "job",
    "packet-hops",
    "drops",
    "mean FCT us (last ACK)",
    "CPU s",
    "M hops per CPU s",
    "peak RSS MB above idle",
    "estimate / peak RSS",
];

fn job_rows(jobs: &[JobRow]) -> Rows {
    let mut rows = Rows::new(&HEADINGS);
    for job in jobs {
        rows.push(vec![
            job.id.clone(),
            job.counts.packet_hops.to_string(),
            job.counts.drops.to_string(),
            format!("{:.1}", job.counts.mean_fct_us),
            format!("{:.3}", job.cpu_s),
            format!("{:.2}", job.hops_per_cpu_s / 1e6),
            format!("{:.1}", job.peak_rss_bytes as f64 / 1e6),
            format!("{:.2}", job.estimated_over_peak_rss),
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
            "\n{} on ns-3 {}: {:.3} CPU s, {:.3} M hops per CPU s, mean time to the last byte {:.1} us; here {:.3} CPU s, {:.2} M, {:.1} us",
            ns3.job,
            ns3.ns3_version,
            ns3.ns3_cpu_s,
            ns3.ns3_hops_per_cpu_s / 1e6,
            ns3.ns3_mean_received_us,
            ns3.cpu_s,
            ns3.hops_per_cpu_s / 1e6,
            ns3.counts.mean_received_us
        ))?;
    }
    if !bench.vs_daytone.is_empty() {
        output::print_line("")?;
        output::print(Output::Table, &daytone_rows(&bench.vs_daytone), &())?;
    }
    Ok(())
}

const DAYTONE_HEADINGS: [&str; 8] =
    ["job", "simulator", "servers", "packets", "mean delay us", "CPU s", "M hops per CPU s", "kB per server"];

/// Two lines for each network: daytone's and ours.
fn daytone_rows(peers: &[DaytoneRow]) -> Rows {
    let mut rows = Rows::new(&DAYTONE_HEADINGS);
    for peer in peers {
        let theirs = format!("daytone {}", peer.daytone_version);
        let start = |whose: &str, packets: u64| {
            [peer.job, whose]
                .map(str::to_owned)
                .into_iter()
                .chain([peer.servers, packets].map(|count| count.to_string()))
        };
        let rest = |delay_us: f64, cpu_s: f64, pace: f64, bytes: u64| {
            [(delay_us, 1), (cpu_s, 3), (pace / 1e6, 2), (bytes as f64 / 1e3, 1)]
                .map(|(value, digits)| format!("{value:.digits$}"))
        };
        let of_daytone = rest(
            peer.daytone_mean_delay_us,
            peer.daytone_cpu_s,
            peer.daytone_hops_per_cpu_s,
            peer.daytone_bytes_per_server,
        );
        let of_ours = rest(peer.mean_delay_us, peer.cpu_s, peer.hops_per_cpu_s, peer.bytes_per_server);
        rows.push(start(&theirs, peer.daytone_packets).chain(of_daytone).collect());
        rows.push(start("weft", peer.packets).chain(of_ours).collect());
    }
    rows
}
