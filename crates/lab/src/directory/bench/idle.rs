//! Idle connections, as many as a port of a directory server takes: what they do to look-ups, and to whoever looks after it.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_node::client::{AdminClient, Target};
use weft_scenario::engine::DirectoryStore;

use super::abuse::behind_others;
use super::lookups::{load, run};
use super::{Bench, failed, median};
use crate::directory::bed::Bed;
use crate::directory::tier::{self, Tier};
use crate::error::LabError;
use crate::sys;

/// More than a port has places for; a quick run makes do with a part of the sessions.
const MOST: usize = 4200;
const MOST_QUICK: usize = 500;
/// A port that takes no more lets a connection wait; nobody waits for a second one.
const FULL: Duration = Duration::from_millis(100);
/// Between two questions to the admin socket.
const PAUSE: Duration = Duration::from_millis(20);

/// Look-ups beside idle connections.
#[derive(Clone, Debug, Serialize)]
pub struct IdleNumbers {
    /// Which port, and what its connections are.
    pub port: &'static str,
    /// Connections held, the least in a round.
    pub connections: usize,
    /// Server CPU per look-up at saturation without and with them.
    pub cpu_ns_without: f64,
    pub cpu_ns_with: f64,
    /// The latter over the former, of neighbouring rounds, the median.
    pub cpu_ratio: f64,
    /// The longest that the admin socket took for an answer, a new connection included, while they were made and held.
    pub admin_ms_worst: f64,
    /// The largest share of the cores' time that somebody else used in a round.
    #[serde(skip)]
    pub foreign_cpu_ratio: f64,
}

/// Whoever holds connections that say nothing.
enum Idler {
    /// Not even a handshake.
    Silent(SocketAddr),
    /// Sessions with a certificate.
    Session(Target),
}

/// What an idler holds; all of it ends with this.
#[derive(Default)]
struct Held {
    _streams: Vec<TcpStream>,
    _sessions: Vec<AdminClient>,
    count: usize,
}

/// Rounds without and with idle connections take turns, port by port.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<IdleNumbers>, LabError> {
    bench.progress.phase("idle", "connections that say nothing, as many as a port takes");
    sys::raise_file_limit(2 * MOST as u64);
    let bed = Bed::start(&bench.bed(1, DirectoryStore::Embedded, Some(1), true), bench.progress)?;
    tier::fill(&bed, bench.options.mappings, bench.progress)?;
    let server = bed.servers().swap_remove(0);
    let status = AdminClient::connect(&server.admin).and_then(|mut admin| admin.status());
    let status = status.map_err(|error| failed(&error))?;
    let closed = || LabError::DirectoryLoad("the server has a port less than it was told".to_owned());
    let idlers = [
        ("TLS, no handshake", Idler::Silent(status.tls_listen.ok_or_else(closed)?.into())),
        ("TLS, sessions", Idler::Session(server.sessions)),
        ("HTTP", Idler::Silent(status.http_listen.ok_or_else(closed)?.into())),
    ];
    idlers.into_iter().map(|(port, idler)| beside(bench, &bed, port, &idler)).collect()
}

fn beside(bench: &Bench<'_>, bed: &Bed, port: &'static str, idler: &Idler) -> Result<IdleNumbers, LabError> {
    let length = Duration::from_millis(if bench.options.quick { 400 } else { 1000 });
    let good = load(bench, bed, 1, 1, length);
    let (mut cpu_ns, mut connections, mut worst, mut foreign) = ([vec![], vec![]], usize::MAX, Duration::ZERO, 0f64);
    for round in 0..bench.options.rounds * 2 {
        let is_beside = round % 2 == 1;
        bench.progress.advance(f64::from(round) / f64::from(bench.options.rounds * 2), port);
        let over = AtomicBool::new(!is_beside);
        let (report, longest) = std::thread::scope(|scope| {
            let admin = scope.spawn(|| longest_answer(bed, &over));
            let held = if is_beside { idler.hold(bench) } else { Ok(Held::default()) };
            let report = held.and_then(|held| run(bench, bed, &good).map(|report| (report, held.count)));
            over.store(true, Relaxed);
            (report, admin.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let ((report, server_ns, others), count) = report?;
        cpu_ns[usize::from(is_beside)].push(server_ns as f64 / report.answered.max(1) as f64);
        foreign = foreign.max(others);
        if is_beside {
            connections = connections.min(count);
            worst = worst.max(longest?);
        }
    }
    let [without, with] = &cpu_ns;
    let ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
    Ok(IdleNumbers {
        port,
        connections,
        cpu_ns_without: median(without),
        cpu_ns_with: median(with),
        cpu_ratio: median(&ratios),
        admin_ms_worst: worst.as_secs_f64() * 1e3,
        foreign_cpu_ratio: foreign,
    })
}

impl Idler {
    /// Until no more are taken.
    fn hold(&self, bench: &Bench<'_>) -> Result<Held, LabError> {
        std::thread::scope(|scope| {
            let held = scope.spawn(|| {
                behind_others()?;
                let most = if bench.options.quick { MOST_QUICK } else { MOST };
                Ok(match self {
                    Self::Silent(port) => {
                        let connect = |_| TcpStream::connect_timeout(port, FULL).ok();
                        let streams: Vec<TcpStream> = (0..MOST).map_while(connect).collect();
                        Held { count: streams.len(), _streams: streams, ..Held::default() }
                    }
                    Self::Session(server) => {
                        // One that is refused is heard of with its first answer.
                        let open = |_| AdminClient::open(server).and_then(|mut one| one.status().map(|_| one)).ok();
                        let sessions: Vec<AdminClient> = (0..most).map_while(open).collect();
                        Held { count: sessions.len(), _sessions: sessions, ..Held::default() }
                    }
                })
            });
            held.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Asks the admin socket again and again until it is over.
fn longest_answer(bed: &Bed, over: &AtomicBool) -> Result<Duration, LabError> {
    let admin = bed.servers().swap_remove(0).admin;
    let mut longest = Duration::ZERO;
    while !over.load(Relaxed) {
        let begin = Instant::now();
        let status = AdminClient::connect(&admin).and_then(|mut admin| admin.status());
        longest = longest.max(begin.elapsed());
        status.map_err(|error| failed(&error))?;
        std::thread::sleep(PAUSE);
    }
    Ok(longest)
}
