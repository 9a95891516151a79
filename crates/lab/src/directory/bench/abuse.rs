//! One service that takes all it can get: what it does to the updates of another.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::setpriority_process;
use serde::Serialize;
use weft_node::client::{AdminClient, Target};
use weft_node::directory::protocol::MappingRow;
use weft_node::stop::Stop;
use weft_scenario::engine::DirectoryStore;
use weft_testbed::load::{Arrivals, Pace, UpdateLoad, UpdateReport};

use super::{Bench, failed, median};
use crate::directory::bed::{Bed, SERVICES};
use crate::directory::step;
use crate::directory::tier::{FIRST_AA, Tier, mark};
use crate::error::LabError;

/// Updates per second of the service that behaves.
const GOOD_PER_S: f64 = 1000.0;
/// Sessions of the one that does not, nearly as many as it may have, and updates open in each: far more than it may have.
const BAD: (usize, usize) = (60, 512);
/// AAs that it sets: far more rows than it may have.
const BAD_AAS: u32 = 1_000_000;
/// Its threads stand behind those of the other: what they take of this CPU they would take of another machine's.
const BEHIND_OTHERS: i32 = 19;
/// Before its attempts to open sessions beyond those, and between them.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(1);

/// Updates of a service beside one that takes more than its share of everything.
#[derive(Clone, Debug, Serialize)]
pub struct AbuseNumbers {
    /// Updates of the service that behaves, per second.
    pub updates_per_s: f64,
    /// 99th percentile of its updates without the other.
    pub p99_ms_without: f64,
    /// The same with it.
    pub p99_ms_with: f64,
    pub p50_ms_without: f64,
    pub p50_ms_with: f64,
    /// The 99th percentile with it over that without it, of neighbouring rounds, the median.
    pub p99_ratio: f64,
    /// Updates that were not carried out meanwhile, or not acknowledged in time.
    pub failed: u64,
    /// Updates that were acknowledged and are not in the directory.
    pub lost: u64,
    /// What the other had carried out and refused, per second.
    pub abuse_committed_per_s: f64,
    pub abuse_refused_per_s: f64,
}

/// Rounds without and with abuse take turns.
pub(super) fn measure(bench: &Bench<'_>) -> Result<AbuseNumbers, LabError> {
    bench.progress.phase("abuse", "one service beyond all its limits, beside another");
    let bed = Bed::start(&bench.bed(1, DirectoryStore::Embedded, Some(1), true), bench.progress)?;
    let length = Duration::from_millis(if bench.options.quick { 1500 } else { 4000 });
    let rounds = bench.options.rounds;
    let mut seen = Seen::default();
    for round in 0..rounds {
        bench.go_on()?;
        bench.progress.advance(f64::from(round) / f64::from(rounds), "without");
        // Clients of its own each time: the server knows those of before.
        let load = |number| load(bench, &bed, SERVICES[0], length, number);
        seen.of(&run(&load(2 * round))?, &held(&bed)?, false);
        bench.go_on()?;
        let load = load(2 * round + 1);
        bench.progress.advance((f64::from(round) + 0.5) / f64::from(rounds), "with");
        let over = UpdateLoad {
            sessions: BAD.0,
            open: BAD.1,
            aas: BAD_AAS,
            first_aa: Ipv4Addr::from(u32::from(FIRST_AA) + load.aas),
            pace: Pace::Window(BAD.1),
            // Before the other is counted, and until it is not.
            warm_up: Duration::ZERO,
            duration: load.warm_up + length,
            ..self::load(bench, &bed, SERVICES[1], length, 2 * rounds + round)
        };
        let (report, abuse) = beside(&load, &over)?;
        seen.of(&report, &held(&bed)?, true);
        seen.abuse(&abuse);
    }
    Ok(seen.numbers())
}

/// What the rounds showed: those without abuse, those with it.
#[derive(Default)]
struct Seen {
    p50_ms: [Vec<f64>; 2],
    p99_ms: [Vec<f64>; 2],
    failed: u64,
    lost: u64,
    committed_per_s: Vec<f64>,
    refused_per_s: Vec<f64>,
}

impl Seen {
    /// What became of the updates of the service that behaves, and what the directory has of them.
    fn of(&mut self, report: &UpdateReport, held: &[MappingRow], abused: bool) {
        let at_ms = |quantile| report.latency_ns.value_at_quantile(quantile) as f64 / 1e6;
        self.p50_ms[usize::from(abused)].push(at_ms(0.5));
        self.p99_ms[usize::from(abused)].push(at_ms(0.99));
        self.failed += report.failed + report.refused + report.unanswered;
        self.lost += report.lost(held);
    }

    fn abuse(&mut self, report: &UpdateReport) {
        let per_s = |count: u64| count as f64 * 1e9 / report.elapsed_ns.max(1) as f64;
        self.committed_per_s.push(per_s(report.committed));
        self.refused_per_s.push(per_s(report.refused + report.failed));
    }

    fn numbers(&self) -> AbuseNumbers {
        let [p50_ms_without, p50_ms_with] = [0, 1].map(|abused| median(&self.p50_ms[abused]));
        let [without, with] = &self.p99_ms;
        let ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
        AbuseNumbers {
            updates_per_s: GOOD_PER_S,
            p99_ms_without: median(without),
            p99_ms_with: median(with),
            p50_ms_without,
            p50_ms_with,
            p99_ratio: median(&ratios),
            failed: self.failed,
            lost: self.lost,
            abuse_committed_per_s: median(&self.committed_per_s),
            abuse_refused_per_s: median(&self.refused_per_s),
        }
    }
}

/// A service's updates at a fixed rate.
fn load(bench: &Bench<'_>, bed: &Bed, service: u32, duration: Duration, number: u32) -> UpdateLoad {
    UpdateLoad {
        servers: bed.sessions_of(service),
        sessions: 8,
        open: 64,
        mappings: 1,
        first_aa: FIRST_AA,
        aas: 4096,
        tor_las: vec![bed.tor_la()],
        anycast_la: mark(0),
        service,
        pace: Pace::Rate(GOOD_PER_S),
        burst: 1,
        arrivals: Arrivals::Even,
        warm_up: Duration::from_secs(1),
        duration,
        timeout: Duration::from_secs(5),
        cpu: bench.load_cpu,
        seed: step::session_seed(u64::from(service), number),
    }
}

fn run(load: &UpdateLoad) -> Result<UpdateReport, LabError> {
    Stop::manual().and_then(|stop| load.run(&stop)).map_err(|error| failed(&error))
}

/// A load, and the abuse meanwhile.
fn beside(load: &UpdateLoad, abuse: &UpdateLoad) -> Result<(UpdateReport, UpdateReport), LabError> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let abuser = scope.spawn(|| behind_others().and_then(|()| run(abuse)));
        let knocker = scope.spawn(|| behind_others().map(|()| knock(&abuse.servers, &over)));
        let report = run(load);
        let abuse = abuser.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        over.store(true, Relaxed);
        knocker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((report?, abuse?))
    })
}

/// Of this thread and those that it starts.
pub(super) fn behind_others() -> Result<(), LabError> {
    setpriority_process(None, BEHIND_OTHERS).map_err(LabError::errno("stand behind others"))
}

/// Opens sessions, all that there are and more, and keeps them.
fn knock(servers: &[Target], over: &AtomicBool) {
    let mut open = Vec::new();
    std::thread::sleep(PATIENCE);
    while !over.load(Relaxed) {
        open.extend(servers.iter().filter_map(|server| AdminClient::open(server).ok()));
        // One that was refused is heard of with the first answer: most of these are gone at the other end.
        open.truncate(BAD.0);
        std::thread::sleep(PAUSE);
    }
}

/// What the directory has.
fn held(bed: &Bed) -> Result<Vec<MappingRow>, LabError> {
    let servers = bed.servers();
    AdminClient::open(&servers[0].sessions).and_then(|mut client| client.list()).map_err(|error| failed(&error))
}
