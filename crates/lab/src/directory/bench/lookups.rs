//! Look-ups: how many a CPU second of the server answers when it never waits, and how long they take at a rate that leaves
//! it time.

use std::time::Duration;

use serde::Serialize;
use weft_node::stop::Stop;
use weft_scenario::engine::DirectoryStore;
use weft_testbed::cpu;
use weft_testbed::load::{LookupLoad, LookupReport, Pace};

use super::echo::{self, Baseline};
use super::{Bench, failed, median};
use crate::directory::bed::Bed;
use crate::directory::tier::{self, FIRST_AA, Tier};
use crate::directory::usage::Usage;
use crate::error::LabError;

/// Datagrams in one burst of a busy agent.
const BURST: usize = 16;
/// Datagrams outstanding while the server is kept busy.
const WINDOW: usize = 256;
/// Rate at which latencies are taken, look-ups per second.
const LATENCY_PER_S: f64 = 50_000.0;
/// Questions in a datagram, bursts or not, and the floor in look-ups per CPU second of the server.
const SHAPES: [(usize, bool, Option<f64>); 5] =
    [(1, false, Some(450e3)), (1, true, Some(1.2e6)), (8, false, Some(3e6)), (32, false, Some(10e6)), (32, true, None)];

/// Look-ups of one shape.
#[derive(Clone, Debug, Serialize)]
pub struct LookupNumbers {
    /// AAs in one datagram.
    pub questions_per_datagram: usize,
    /// Whether datagrams come in bursts of 16, which the server receives and answers as one.
    pub gro: bool,
    /// AAs answered per CPU second of the server, all its threads, at saturation.
    pub lookups_per_cpu_s: f64,
    /// Lowest and highest round.
    pub lookups_per_cpu_s_range: [f64; 2],
    /// The same over what the baseline sent back in the same round.
    pub over_baseline: f64,
    /// AAs answered per second at saturation.
    pub lookups_per_s: f64,
    /// Median time of a datagram at 50 K look-ups/s.
    pub p50_us: f64,
    /// 99th percentile of it.
    pub p99_us: f64,
    /// The same of datagrams at this rate that a bare socket sends back, just before and after, the longer one.
    pub echo_p99_us: f64,
    /// What kept the rate from being higher: `server cpu` or `load cpu`.
    pub limited_by: &'static str,
    /// The floor for the rate per CPU second.
    pub want_per_cpu_s: Option<f64>,
    /// The largest share of the cores' time that somebody else used in a round.
    #[serde(skip)]
    pub foreign_cpu_ratio: f64,
}

#[derive(Default)]
struct Samples {
    per_cpu_s: Vec<f64>,
    per_s: Vec<f64>,
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    echo_p99_us: Vec<f64>,
    server_busy: Vec<f64>,
    foreign: f64,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<(Vec<LookupNumbers>, Baseline), LabError> {
    bench.progress.phase("look-ups", "one server, one thread, 100 K mappings");
    let bed = Bed::start(&bench.bed(1, DirectoryStore::Embedded, Some(1), true), bench.progress)?;
    tier::fill(&bed, bench.options.mappings, bench.progress)?;
    let mut samples: Vec<Samples> = SHAPES.iter().map(|_| Samples::default()).collect();
    let mut baseline = Vec::new();
    let rounds = bench.options.rounds;
    for round in 0..rounds {
        baseline.push(echo::round(bench, length(bench))?);
        for ((number, shape), samples) in (0..).zip(SHAPES).zip(&mut samples) {
            bench.go_on()?;
            let done = (round * SHAPES.len() as u32 + number) as f64 / (rounds * SHAPES.len() as u32) as f64;
            bench.progress.advance(done, &format!("{} questions a datagram", shape.0));
            one(bench, &bed, shape.0, shape.1, samples)?;
        }
    }
    let rows = SHAPES.into_iter().zip(samples).map(|(shape, samples)| samples.numbers(shape, &baseline)).collect();
    Ok((rows, Baseline::of(baseline)))
}

/// How long each part of a round takes.
fn length(bench: &Bench<'_>) -> Duration {
    Duration::from_millis(if bench.options.quick { 250 } else { 800 })
}

fn one(bench: &Bench<'_>, bed: &Bed, questions: usize, gro: bool, samples: &mut Samples) -> Result<(), LabError> {
    let length = length(bench);
    let burst = if gro { BURST } else { 1 };
    let (saturated, server_ns, foreign) = run(bench, bed, &load(bench, bed, questions, burst, length))?;
    let answered = (saturated.answered * questions as u64) as f64;
    samples.per_cpu_s.push(answered * 1e9 / server_ns.max(1) as f64);
    samples.per_s.push(saturated.per_second() * questions as f64);
    samples.server_busy.push(server_ns as f64 / (saturated.elapsed_ns as f64 + 100e6));
    samples.foreign = samples.foreign.max(foreign);
    let paced =
        LookupLoad { pace: Pace::Rate(LATENCY_PER_S / questions as f64), ..load(bench, bed, questions, burst, length) };
    let echo = || echo::paced_p99_us(bench, LATENCY_PER_S / questions as f64, length / 4);
    let before_us = echo()?;
    let (paced, _, foreign) = run(bench, bed, &paced)?;
    samples.echo_p99_us.push(echo()?.max(before_us));
    samples.p50_us.push(paced.latency_ns.value_at_quantile(0.5) as f64 / 1e3);
    samples.p99_us.push(paced.latency_ns.value_at_quantile(0.99) as f64 / 1e3);
    samples.foreign = samples.foreign.max(foreign);
    Ok(())
}

/// A load at saturation.
pub(super) fn load(bench: &Bench<'_>, bed: &Bed, questions: usize, burst: usize, duration: Duration) -> LookupLoad {
    let server = bed.servers().first().map(|server| server.lookups).expect("the tier has a server");
    LookupLoad {
        questions,
        burst,
        pace: Pace::Window(WINDOW),
        duration,
        timeout: Duration::from_millis(500),
        cpu: bench.load_cpu,
        ..LookupLoad::of(server, bed.access(), FIRST_AA, bench.options.mappings)
    }
}

/// Runs a load; the server's CPU time in all of it and the share of foreign work come too. Every AA must be found.
pub(super) fn run(bench: &Bench<'_>, bed: &Bed, load: &LookupLoad) -> Result<(LookupReport, u64, f64), LabError> {
    let stop = Stop::manual().map_err(|error| failed(&error))?;
    let pid = bed.servers().first().map_or(0, |server| server.pid);
    // The load warms up before it counts; so does the clock of the server's CPU.
    let (report, used, server_ns) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| load.run(&stop));
        std::thread::sleep(load.warm_up);
        let (before, cpu_before) = (Usage::read(bed, 1), cpu::time_ns(pid, ""));
        std::thread::sleep(load.duration);
        let (used, cpu_after) = (Usage::read(bed, 1).since(&before), cpu::time_ns(pid, ""));
        let report = asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let server_ns = cpu_after.unwrap_or(0).saturating_sub(cpu_before.unwrap_or(0));
        (report, used, server_ns)
    });
    bench.go_on()?;
    let report = report.map_err(|error| failed(&error))?;
    let found = report.statuses.get("ok").copied().unwrap_or(0);
    if report.answered == 0 || found != report.answered * load.questions as u64 {
        return Err(LabError::DirectoryLoad(format!(
            "of {} look-ups {found} found their AA; the numbers would be of something else",
            report.answered * load.questions as u64
        )));
    }
    Ok((report, server_ns, used.foreign_ratio()))
}

impl Samples {
    fn numbers(
        self,
        (questions_per_datagram, gro, want_per_cpu_s): (usize, bool, Option<f64>),
        baseline: &[f64],
    ) -> LookupNumbers {
        let over: Vec<f64> =
            self.per_cpu_s.iter().zip(baseline).map(|(ours, baseline)| ours / baseline.max(1.0)).collect();
        let ends = |values: &[f64]| {
            [values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max)]
        };
        LookupNumbers {
            questions_per_datagram,
            gro,
            lookups_per_cpu_s_range: ends(&self.per_cpu_s),
            lookups_per_cpu_s: median(&self.per_cpu_s),
            over_baseline: median(&over),
            lookups_per_s: median(&self.per_s),
            p50_us: median(&self.p50_us),
            p99_us: median(&self.p99_us),
            echo_p99_us: median(&self.echo_p99_us),
            limited_by: if median(&self.server_busy) > 0.8 { "server cpu" } else { "load cpu" },
            want_per_cpu_s,
            foreign_cpu_ratio: self.foreign,
        }
    }
}
