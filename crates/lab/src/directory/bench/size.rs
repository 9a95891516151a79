//! A million mappings: memory of a server and how long it takes to start with them. And a flood of datagrams that are no
//! questions: what it does to those who ask.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_scenario::engine::DirectoryStore;
use weft_scenario::workload::DirectoryVictim;
use weft_testbed::cpu;
use weft_testbed::load::{LookupLoad, Pace};

use super::lookups::{load, run};
use super::{Bench, median};
use crate::directory::bed::Bed;
use crate::directory::tier::{self, Tier};
use crate::directory::usage::resident_bytes;
use crate::error::LabError;

/// Mappings of a large directory; a quick run has a tenth.
const LARGE: u32 = 1_000_000;
/// Look-ups per second of good clients.
const GOOD_PER_S: f64 = 50_000.0;
/// Datagrams per second of the flood: as many as the good ones.
const GARBAGE_PER_S: f64 = 50_000.0;

/// A large directory.
#[derive(Clone, Debug, Serialize)]
pub struct MillionNumbers {
    pub mappings: u32,
    /// Memory that the server has in use with them, after a cold start, megabytes of 10^6 bytes.
    pub memory_mb: f64,
    /// From its start until it answers, with all of them in the store.
    pub cold_start_s: f64,
    /// Mappings per second while they were filled in by one client.
    pub filled_per_s: f64,
}

/// A flood of garbage.
#[derive(Clone, Debug, Serialize)]
pub struct GarbageNumbers {
    /// Datagrams per second that are no questions, beside as many that are.
    pub datagrams_per_s: f64,
    /// 99th percentile of good look-ups without it.
    pub p99_us_without: f64,
    /// The same with it.
    pub p99_us_with: f64,
    /// Median without it.
    pub p50_us_without: f64,
    /// Median with it.
    pub p50_us_with: f64,
    /// Good look-ups that had no answer during the flood.
    pub unanswered: u64,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<(MillionNumbers, GarbageNumbers), LabError> {
    let mappings = if bench.options.quick { LARGE / 10 } else { LARGE };
    bench.progress.phase("size", &format!("{mappings} mappings in one server"));
    let mut bed = Bed::start(&bench.bed(1, DirectoryStore::Embedded, Some(1), true), bench.progress)?;
    let start = Instant::now();
    tier::fill(&bed, mappings, bench.progress)?;
    let filled_per_s = f64::from(mappings) / start.elapsed().as_secs_f64();
    bed.kill(DirectoryVictim::Server, 1)?;
    let start = Instant::now();
    bed.mend(bench.progress)?;
    let cold_start_s = start.elapsed().as_secs_f64();
    let pid = bed.servers().first().map_or(0, |server| server.pid);
    let memory_mb = resident_bytes(pid) as f64 / 1e6;
    Ok((MillionNumbers { mappings, memory_mb, cold_start_s, filled_per_s }, garbage(bench, &bed)?))
}

/// Rounds without and with the flood take turns.
fn garbage(bench: &Bench<'_>, bed: &Bed) -> Result<GarbageNumbers, LabError> {
    bench.progress.phase("garbage", "a flood of datagrams that are no questions");
    let length = Duration::from_millis(if bench.options.quick { 300 } else { 1000 });
    let good = LookupLoad { pace: Pace::Rate(GOOD_PER_S), ..load(bench, bed, 1, 1, length) };
    let server = good.servers[0];
    let (mut p50, mut p99, mut unanswered, mut sent) = ([vec![], vec![]], [vec![], vec![]], 0, Vec::new());
    for round in 0..bench.options.rounds * 2 {
        let flooded = round % 2 == 1;
        bench.progress.advance(f64::from(round) / f64::from(bench.options.rounds * 2), "");
        let over = AtomicBool::new(!flooded);
        let (report, per_s) = std::thread::scope(|scope| {
            let flood = scope.spawn(|| flood(server, bench.load_cpu, &over));
            let report = run(bench, bed, &good);
            over.store(true, Relaxed);
            (report, flood.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (report, _, _) = report?;
        let at = |quantile| report.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
        p50[usize::from(flooded)].push(at(0.5));
        p99[usize::from(flooded)].push(at(0.99));
        if flooded {
            unanswered += report.failed;
            sent.push(per_s.map_err(LabError::io("send garbage"))?);
        }
    }
    let [[p50_without, p50_with], [p99_without, p99_with]] = [p50, p99].map(|both| both.map(|values| median(&values)));
    Ok(GarbageNumbers {
        datagrams_per_s: median(&sent),
        p99_us_without: p99_without,
        p99_us_with: p99_with,
        p50_us_without: p50_without,
        p50_us_with: p50_with,
        unanswered,
    })
}

/// Sends datagrams of the right length and the wrong content until it is over. Returns how many per second.
fn flood(server: SocketAddrV4, place: Option<usize>, over: &AtomicBool) -> std::io::Result<f64> {
    if let Some(place) = place {
        cpu::pin_this_thread(place).map_err(|error| std::io::Error::other(error.to_string()))?;
    }
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    let mut garbage = [0x57u8; 72];
    garbage[1] = 0x44; // The magic is right, so that it costs more than a glance.
    garbage[2] = 0x11;
    garbage[3] = 1;
    let (start, mut count) = (Instant::now(), 0u64);
    while !over.load(Relaxed) {
        garbage[8..16].copy_from_slice(&count.to_be_bytes());
        // A full queue is the server's business.
        let _ = socket.send(&garbage);
        count += 1;
        let due = Duration::from_secs_f64(count as f64 / GARBAGE_PER_S);
        if let Some(early) = due.checked_sub(start.elapsed()).filter(|early| early.as_micros() > 500) {
            std::thread::sleep(early);
        }
    }
    Ok(count as f64 / start.elapsed().as_secs_f64().max(1e-9))
}
