//! Updates: single ones from many clients, bulk changes, when an update is visible, and what a killed store leader costs.

use std::time::Duration;

use serde::Serialize;
use weft_node::stop::Stop;
use weft_scenario::engine::DirectoryStore;
use weft_scenario::units::Nanos;
use weft_scenario::workload::{Arrivals as Offering, DirectoryKill, DirectorySpec, DirectoryVictim, UpdateLoad};
use weft_testbed::load::{Arrivals, Pace, UpdateLoad as Sending, UpdateReport};

use super::{Bench, failed, median};
use crate::directory::bed::Bed;
use crate::directory::rows::Latencies;
use crate::directory::step;
use crate::directory::tier::{self, FIRST_AA, Tier, mark};
use crate::directory::usage::Usage;
use crate::error::LabError;

/// Directory servers, as in the paper.
const SERVERS: usize = 3;
/// Clients that each wait for their update.
const CLIENTS: usize = 1024;
/// Sessions that they share.
const SESSIONS: usize = 16;
/// Commits per second while visibility is measured.
const VISIBLE_PER_S: u32 = 200;
/// Updates per second while leaders are killed.
const KILL_PER_S: u32 = 1000;
/// Leaders killed.
const KILLS: u32 = 5;
/// Mappings in one request of a bulk change, and sessions with one request each on its way.
const BULK: (usize, usize) = (1024, 6);

/// Updates.
#[derive(Clone, Debug, Serialize)]
pub struct UpdateNumbers {
    /// `etcd3`, `etcd5` or `embedded`.
    pub store: &'static str,
    /// Updates per second, each one mapping, acknowledged by itself.
    pub single_per_s: f64,
    /// Mappings per second in requests of 1024.
    pub mappings_per_s: f64,
    /// Median time to the acknowledgement of a single update, at that rate.
    pub p50_ms: f64,
    /// 99th percentile of it.
    pub p99_ms: f64,
    /// Clients that each wait for their update.
    pub clients: usize,
    /// What kept it from being more.
    pub limited_by: &'static str,
}

/// From issue to visibility at every server.
#[derive(Clone, Debug, Serialize)]
pub struct ConvergenceNumbers {
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Updates per second meanwhile.
    pub commits_per_s: u32,
    /// Directory servers.
    pub servers: usize,
}

/// Killed leaders.
#[derive(Clone, Debug, Serialize)]
pub struct FailoverNumbers {
    /// How many were killed.
    pub kills: u32,
    /// The longest time without an acknowledgement, worst kill; one that lasts counts to the end.
    pub leader_kill_resume_s: f64,
    /// Updates that were not acknowledged within 2 s.
    pub unanswered: u64,
    /// Acknowledged updates that a server did not have afterwards.
    pub acknowledged_lost: u64,
}

/// All of it.
pub(super) struct Numbers {
    pub(super) updates: UpdateNumbers,
    pub(super) convergence: ConvergenceNumbers,
    pub(super) failover: Option<FailoverNumbers>,
    pub(super) foreign_cpu_ratio: f64,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Numbers, LabError> {
    let store = bench.options.store;
    let servers = if store == DirectoryStore::Embedded { 1 } else { SERVERS };
    bench.progress.phase("updates", &format!("{servers} directory servers, store {}", store.name()));
    // Servers, store and load share all cores: with three stores and three servers there is no core to spare.
    let mut bed = Bed::start(&bench.bed(servers, store, Some(1), false), bench.progress)?;
    tier::fill(&bed, bench.options.mappings, bench.progress)?;
    let (updates, foreign_cpu_ratio) = single_and_bulk(bench, &bed)?;
    let convergence = convergence(bench, &mut bed)?;
    let failover = match store {
        DirectoryStore::Embedded => None,
        DirectoryStore::Etcd3 | DirectoryStore::Etcd5 => Some(failover(bench, &mut bed)?),
    };
    Ok(Numbers { updates, convergence, failover, foreign_cpu_ratio })
}

fn single_and_bulk(bench: &Bench<'_>, bed: &Bed) -> Result<(UpdateNumbers, f64), LabError> {
    let length = Duration::from_millis(if bench.options.quick { 1000 } else { 3000 });
    let (mut single, mut bulk, mut p50, mut p99, mut foreign) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0.0f64);
    for round in 0..bench.options.rounds {
        bench.go_on()?;
        bench.progress.advance(f64::from(round) / f64::from(bench.options.rounds), "single updates and bulk changes");
        let before = Usage::read(bed, SERVERS);
        let report = send(&load(bench, bed, SESSIONS, CLIENTS / SESSIONS, 1, length, round))?;
        single.push(report.per_second());
        p50.push(report.latency_ns.value_at_quantile(0.5) as f64 / 1e6);
        p99.push(report.latency_ns.value_at_quantile(0.99) as f64 / 1e6);
        foreign = foreign.max(Usage::read(bed, SERVERS).since(&before).foreign_ratio());
        let bulk_load = load(bench, bed, BULK.1, 1, BULK.0, length, bench.options.rounds + round);
        bulk.push(send(&bulk_load)?.per_second() * BULK.0 as f64);
    }
    let updates = UpdateNumbers {
        store: bench.options.store.name(),
        single_per_s: median(&single),
        mappings_per_s: median(&bulk),
        p50_ms: median(&p50),
        p99_ms: median(&p99),
        clients: CLIENTS,
        limited_by: "shared cores",
    };
    Ok((updates, foreign))
}

fn load(
    bench: &Bench<'_>,
    bed: &Bed,
    sessions: usize,
    open: usize,
    mappings: usize,
    duration: Duration,
    number: u32,
) -> Sending {
    Sending {
        servers: bed.servers().into_iter().map(|server| server.sessions).collect(),
        sessions,
        open,
        mappings,
        first_aa: FIRST_AA,
        aas: bench.options.mappings,
        tor_las: vec![bed.tor_la()],
        anycast_la: mark(0),
        service: 0,
        pace: Pace::Window(open),
        burst: 1,
        arrivals: Arrivals::Even,
        warm_up: Duration::from_millis(300),
        duration,
        timeout: Duration::from_secs(5),
        cpu: None,
        seed: step::session_seed(1, number),
    }
}

fn send(load: &Sending) -> Result<UpdateReport, LabError> {
    let report = Stop::manual().and_then(|stop| load.run(&stop)).map_err(|error| failed(&error))?;
    match report.first_error {
        Some(why) => Err(LabError::DirectoryLoad(format!("some updates were not carried out: {why}"))),
        None => Ok(report),
    }
}

fn convergence(bench: &Bench<'_>, bed: &mut Bed) -> Result<ConvergenceNumbers, LabError> {
    let seconds = if bench.options.quick { 2 } else { 5 };
    let servers = bed.servers().len();
    let load = offered(VISIBLE_PER_S, 16, true);
    let records = step::run(bed, &spec(bench, servers, seconds, load, None), 1, bench.progress)?;
    let mut latencies = Latencies::default();
    for row in records.latencies.iter().filter(|row| row.kind == "visible" && row.server.is_none()) {
        latencies.add(row.latency_at_most_ns, row.requests);
    }
    Ok(ConvergenceNumbers {
        p50_ms: latencies.percentile_ns(0.5) as f64 / 1e6,
        p99_ms: latencies.percentile_ns(0.99) as f64 / 1e6,
        commits_per_s: VISIBLE_PER_S,
        servers,
    })
}

fn failover(bench: &Bench<'_>, bed: &mut Bed) -> Result<FailoverNumbers, LabError> {
    bench.progress.phase("failover", &format!("the store's leader is killed {KILLS} times"));
    let kill = Some(DirectoryKill { what: DirectoryVictim::StoreLeader, at: Nanos(500_000_000), back_at: None });
    let (mut worst_ns, mut lost, mut unanswered) = (0, 0, 0);
    for number in 0..KILLS {
        bench.progress.advance(f64::from(number) / f64::from(KILLS), "");
        let load = offered(KILL_PER_S, 64, false);
        let records = step::run(bed, &spec(bench, SERVERS, 3, load, kill), u64::from(number), bench.progress)?;
        for row in records.directory.iter().filter(|row| row.kind == "update") {
            worst_ns = worst_ns.max(row.longest_gap_ns);
            lost += row.lost;
            unanswered += row.unanswered + row.wrong;
        }
    }
    let leader_kill_resume_s = worst_ns as f64 / 1e9;
    Ok(FailoverNumbers { kills: KILLS, leader_kill_resume_s, unanswered, acknowledged_lost: lost })
}

fn offered(per_s: u32, clients: u32, until_visible: bool) -> UpdateLoad {
    UpdateLoad { per_s: vec![per_s], clients, burst: 1, arrivals: Offering::Even, until_visible }
}

fn spec(
    bench: &Bench<'_>,
    servers: usize,
    seconds: u64,
    updates: UpdateLoad,
    kill: Option<DirectoryKill>,
) -> DirectorySpec {
    DirectorySpec {
        mappings: bench.options.mappings,
        servers: servers as u32,
        duration: Nanos(seconds * 1_000_000_000),
        timeout: Nanos(2_000_000_000),
        lookups: None,
        updates: Some(updates),
        loss_percent: 0,
        kill,
    }
}
