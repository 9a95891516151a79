//! A directory server that starts from nothing with all mappings in its store, and one that restarts while it is asked.

use std::time::{Duration, Instant};

use serde::Serialize;
use weft_node::stop::Stop;
use weft_scenario::workload::DirectoryVictim;
use weft_testbed::bench::median;
use weft_testbed::cpu;
use weft_testbed::load::{LookupLoad, LookupReport, Pace};

use super::{Run, failed};
use crate::directory::bed::Bed;
use crate::directory::tier::{FIRST_AA, ServerView, Tier, connect, refused};
use crate::directory::usage::{Usage, peak_bytes, resident_bytes, wait_until};
use crate::error::LabError;

/// Look-ups per second while a server restarts.
const STREAM_PER_S: f64 = 10_000.0;
/// As long before and after as it takes to see that the stream is steady.
const MARGIN: Duration = Duration::from_secs(1);
/// An agent's first wait and its last (VL2 5.5).
const RETRY: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(2);
/// A restart takes less, or the stream ends.
const RESTART_MAX: Duration = Duration::from_secs(120);

/// A start from nothing, medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct StartNumbers {
    /// From the start of the process until it has every mapping and answers.
    pub ready_s: f64,
    /// CPU time of the server until then.
    pub server_cpu_s: f64,
    /// CPU time of its store meanwhile, where that is another process.
    pub store_cpu_s: f64,
    /// Memory in use then, as the kernel counts it.
    pub memory_mb: f64,
    /// The most that it had in use until then.
    pub memory_peak_mb: f64,
    /// Memory of a server without mappings.
    pub empty_mb: f64,
    /// Memory beyond that, for each mapping.
    pub bytes_per_mapping: f64,
    /// The same mappings filled in through one session, 1,024 at a time.
    pub filled_s: f64,
    /// `filled_s` over `ready_s`.
    pub filled_over_ready: f64,
}

/// A restart beside a steady stream of look-ups, sums and worst of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct RestartNumbers {
    /// Restarts, each by SIGKILL.
    pub restarts: u32,
    /// Look-ups per second, each to two servers as an agent's.
    pub lookups_per_s: f64,
    /// Look-ups from before the kill until after the server was back.
    pub asked: u64,
    /// Those without an answer within 2 s.
    pub unanswered: u64,
    /// Those that were asked again.
    pub repeated: u64,
    pub p99_ms: f64,
    pub worst_ms: f64,
    /// The same stream without a restart.
    pub steady_p99_ms: f64,
    pub steady_worst_ms: f64,
    /// Look-ups without an answer in that.
    pub steady_unanswered: u64,
}

/// Memory of a process as the kernel counts it, MB of 10^6 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    now_mb: f64,
    peak_mb: f64,
}

impl Memory {
    /// Of the last server.
    pub(super) fn of_last(bed: &Bed) -> Self {
        bed.servers().last().map_or_else(Self::default, |server| Self::of(server.pid))
    }

    fn of(pid: u32) -> Self {
        Self { now_mb: resident_bytes(pid) as f64 / 1e6, peak_mb: peak_bytes(pid) as f64 / 1e6 }
    }
}

/// Kills the last server and starts it again.
pub(super) fn measure(run: &Run<'_>, bed: &mut Bed, empty: &Memory, filled_s: f64) -> Result<StartNumbers, LabError> {
    run.progress.phase("start", "one directory server, from nothing to every mapping");
    let (mut ready, mut server_cpu, mut store_cpu, mut now, mut peak) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..run.options.rounds {
        run.go_on()?;
        run.progress.advance(f64::from(round) / f64::from(run.options.rounds), "");
        bed.kill(DirectoryVictim::Server, run.options.servers)?;
        let before = Usage::read(bed, run.options.servers);
        let begin = Instant::now();
        let server = come_back(run, bed)?;
        ready.push(begin.elapsed().as_secs_f64());
        server_cpu.push(cpu::process_ns(server.pid) as f64 / 1e9);
        store_cpu.push(Usage::read(bed, run.options.servers).since(&before).store_ns as f64 / 1e9);
        let memory = Memory::of(server.pid);
        now.push(memory.now_mb);
        peak.push(memory.peak_mb);
    }
    let (ready_s, memory_mb) = (median(&ready), median(&now));
    Ok(StartNumbers {
        ready_s,
        server_cpu_s: median(&server_cpu),
        store_cpu_s: median(&store_cpu),
        memory_mb,
        memory_peak_mb: median(&peak),
        empty_mb: empty.now_mb,
        bytes_per_mapping: (memory_mb - empty.now_mb) * 1e6 / f64::from(run.options.aas),
        filled_s,
        filled_over_ready: filled_s / ready_s.max(1e-9),
    })
}

/// Starts the killed server again and waits until it has every mapping.
fn come_back(run: &Run<'_>, bed: &mut Bed) -> Result<ServerView, LabError> {
    bed.mend(run.progress)?;
    let server = bed.servers().pop().ok_or_else(|| LabError::DirectoryLoad("there is no server".to_owned()))?;
    let mut client = connect(&server)?;
    wait_until(run.progress, "a directory server that was started again has all mappings", || {
        let status = client.status().map_err(|error| refused(&server.name, &error))?;
        Ok(status.mappings >= run.options.aas as usize)
    })?;
    Ok(server)
}

/// Rounds without and with a restart take turns.
pub(super) fn restart(run: &Run<'_>, bed: &mut Bed) -> Result<RestartNumbers, LabError> {
    run.progress.phase("restart", "one directory server is killed and starts again, look-ups go on");
    let mut reports: [Vec<LookupReport>; 2] = Default::default();
    for round in 0..run.options.rounds {
        run.go_on()?;
        run.progress.advance(f64::from(round) / f64::from(run.options.rounds), "");
        reports[0].push(beside(run, bed, |_| {
            std::thread::sleep(MARGIN * 2);
            Ok(())
        })?);
        reports[1].push(beside(run, bed, |bed| {
            std::thread::sleep(MARGIN);
            bed.kill(DirectoryVictim::Server, run.options.servers)?;
            come_back(run, bed)?;
            std::thread::sleep(MARGIN);
            Ok(())
        })?);
    }
    let sum = |reports: &[LookupReport], of: &dyn Fn(&LookupReport) -> u64| reports.iter().map(of).sum::<u64>();
    let worst = |reports: &[LookupReport], of: &dyn Fn(&LookupReport) -> u64| {
        reports.iter().map(of).max().unwrap_or(0) as f64 / 1e6
    };
    let unanswered = |report: &LookupReport| report.failed + report.skipped + wrong(report);
    let [steady, restarted] = &reports;
    Ok(RestartNumbers {
        restarts: run.options.rounds,
        lookups_per_s: STREAM_PER_S,
        asked: sum(restarted, &|report| report.sent + report.skipped),
        unanswered: sum(restarted, &unanswered),
        repeated: sum(restarted, &|report| report.retried),
        p99_ms: worst(restarted, &|report| report.latency_ns.value_at_quantile(0.99)),
        worst_ms: worst(restarted, &|report| report.latency_ns.max()),
        steady_p99_ms: worst(steady, &|report| report.latency_ns.value_at_quantile(0.99)),
        steady_worst_ms: worst(steady, &|report| report.latency_ns.max()),
        steady_unanswered: sum(steady, &unanswered),
    })
}

/// Answers that do not say where the AA is, although it has a mapping.
fn wrong(report: &LookupReport) -> u64 {
    report.statuses.iter().filter(|(status, _)| **status != "ok").map(|(_, count)| *count).sum()
}

/// A steady stream of look-ups to all servers until `work` is done.
fn beside(
    run: &Run<'_>,
    bed: &mut Bed,
    work: impl FnOnce(&mut Bed) -> Result<(), LabError>,
) -> Result<LookupReport, LabError> {
    let servers: Vec<_> = bed.servers().into_iter().map(|server| server.lookups).collect();
    let load = LookupLoad {
        fanout: servers.len().min(2),
        pace: Pace::Rate(STREAM_PER_S),
        duration: RESTART_MAX,
        timeout: TIMEOUT,
        retry: Some(RETRY),
        cpu: run.cpus[1],
        ..LookupLoad::of(servers[0], bed.access(), FIRST_AA, run.options.aas)
    };
    let load = LookupLoad { servers, ..load };
    let stop = Stop::manual().map_err(|error| failed(&error))?;
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| load.run(&stop));
        let worked = work(bed);
        stop.request();
        let report = asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked?;
        report.map_err(|error| failed(&error))
    })
}
