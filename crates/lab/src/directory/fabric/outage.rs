//! All agents ask at one instant, as after a power cut, and the floor of that: the same datagrams to sockets that only send back.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::net::sockopt;
use serde::Serialize;
use weft_node::stop::Stop;
use weft_testbed::bench::median;
use weft_testbed::load::agents::{Agents, BounceReport, OutageReport};

use super::{Run, failed};
use crate::directory::bed::Bed;
use crate::directory::echo::{bind, echo};
use crate::directory::usage::Usage;
use crate::error::LabError;

/// Look-ups per second of a directory server of the paper (VL2 5.5).
pub const PAPER_LOOKUPS_PER_S: f64 = 17_000.0;
/// Its directory servers for 100 K hosts (VL2 5.5).
pub const PAPER_SERVERS: f64 = 60.0;
/// Room for a burst, as a directory server has.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// All agents at once, medians over the rounds where nothing else is said.
#[derive(Clone, Debug, Serialize)]
pub struct OutageNumbers {
    /// AAs that each agent asks for.
    pub questions: usize,
    /// From the common instant until half of the agents had all their answers.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Until the last one had, worst round.
    pub worst_ms: f64,
    /// The same from when that agent asked: without the turns of the others at the one thread that speaks for all.
    pub own_p50_ms: f64,
    pub own_p99_ms: f64,
    pub own_worst_ms: f64,
    /// When the last agent asked, after the common instant.
    pub last_asked_ms: f64,
    /// Agents that were not told of every AA that they asked for, in all rounds.
    pub unanswered: u64,
    /// Questions that were asked again.
    pub repeated: f64,
    /// Datagrams with questions; each question goes to two servers.
    pub datagrams: f64,
    /// Answers that found the agents' one queue full: lost by the measurement itself.
    pub overflowed: f64,
    /// CPU time of all directory servers.
    pub server_cpu_s: f64,
    /// CPU time of the agents.
    pub agents_cpu_s: f64,
    /// The share of the time in which the agents' one thread was busy: near 1, it was the limit.
    pub agents_busy_ratio: f64,
    /// The same datagrams sent back by a socket for each server that does nothing else.
    pub echo_p99_ms: f64,
    pub echo_worst_ms: f64,
    pub echo_cpu_s: f64,
    /// The share of them that did not come back, and that nobody asked for again.
    pub echo_lost_ratio: f64,
    /// CPU time of the servers over that of the echo for as many datagrams.
    pub server_cpu_over_echo: f64,
    /// Seconds of one core that two seconds need: directory servers of this CPU for all to be answered in time.
    pub cores_for_two_s: f64,
    /// How long three directory servers of the paper, and sixty, take for as many look-ups.
    pub paper_three_servers_s: f64,
    pub paper_sixty_servers_s: f64,
    #[serde(skip)]
    pub(super) foreign_cpu_ratio: f64,
}

#[derive(Default)]
struct Samples {
    outages: Vec<(OutageReport, f64)>,
    echoes: Vec<(BounceReport, f64)>,
    foreign: f64,
}

pub(super) fn measure(run: &Run<'_>, bed: &Bed) -> Result<OutageNumbers, LabError> {
    run.progress.phase("outage", &format!("{} agents ask at once", run.options.agents));
    let mut agents = Agents::new(&run.layout.agents(run, bed)).map_err(|error| failed(&error))?;
    let mut samples = Samples::default();
    for round in 0..run.options.rounds {
        run.go_on()?;
        run.progress.advance(f64::from(round) / f64::from(run.options.rounds), "");
        samples.echoes.push(sent_back(run, &mut agents)?);
        let before = Usage::read(bed, run.options.servers);
        let report = watched(run, |stop| agents.ask_at_once(stop))?;
        let used = Usage::read(bed, run.options.servers).since(&before);
        run.go_on()?;
        samples.foreign = samples.foreign.max(used.foreign_ratio());
        samples.outages.push((report, used.servers_ns() as f64 / 1e9));
    }
    Ok(samples.numbers(run))
}

/// The load on a thread of its own: it pins itself. Ends it when the user asks for that.
pub(super) fn watched<T: Send>(
    run: &Run<'_>,
    load: impl FnOnce(&Stop) -> Result<T, weft_node::NodeError> + Send,
) -> Result<T, LabError> {
    let stop = Stop::manual().map_err(|error| failed(&error))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| load(&stop));
        while !thread.is_finished() {
            if run.progress.interrupted() {
                stop.request();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(|error| failed(&error))
    })
}

/// The floor of a round: as many echoes as servers that each question goes to. Returns CPU time of the echoes, too.
fn sent_back(run: &Run<'_>, agents: &mut Agents) -> Result<(BounceReport, f64), LabError> {
    let io = || LabError::io("measure the floor of an outage");
    let sockets = (0..run.options.servers.min(2)).map(|_| roomy()).collect::<std::io::Result<Vec<_>>>().map_err(io())?;
    let address = |socket: &UdpSocket| match socket.local_addr() {
        Ok(SocketAddr::V4(address)) => Ok(address),
        Ok(SocketAddr::V6(_)) => Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)),
        Err(error) => Err(error),
    };
    let addresses = sockets.iter().map(address).collect::<std::io::Result<Vec<_>>>().map_err(io())?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let cpu_s = |socket| {
            let rate = echo(socket, run.cpus[0], &over)?;
            Ok::<_, std::io::Error>((rate, weft_testbed::cpu::this_thread_ns() as f64 / 1e9))
        };
        let threads: Vec<_> = sockets.iter().map(|socket| scope.spawn(move || cpu_s(socket))).collect();
        let report = watched(run, |stop| agents.bounce(&addresses, stop));
        over.store(true, Relaxed);
        let mut sum_s = 0.0;
        for thread in threads {
            sum_s += thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(io())?.1;
        }
        Ok((report?, sum_s))
    })
}

fn roomy() -> std::io::Result<UdpSocket> {
    let socket = bind(Ipv4Addr::LOCALHOST)?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES)?;
    }
    Ok(socket)
}

impl Samples {
    fn numbers(self, run: &Run<'_>) -> OutageNumbers {
        let of = |value: &dyn Fn(&OutageReport) -> f64| {
            median(&self.outages.iter().map(|(report, _)| value(report)).collect::<Vec<_>>())
        };
        let worst = |value: &dyn Fn(&OutageReport) -> u64| {
            self.outages.iter().map(|(report, _)| value(report)).max().unwrap_or(0) as f64 / 1e6
        };
        let echo = |value: &dyn Fn(&BounceReport) -> f64| {
            median(&self.echoes.iter().map(|(report, _)| value(report)).collect::<Vec<_>>())
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        let server_cpu_s = median(&self.outages.iter().map(|(_, cpu_s)| *cpu_s).collect::<Vec<_>>());
        let echo_cpu_s = median(&self.echoes.iter().map(|(_, cpu_s)| *cpu_s).collect::<Vec<_>>());
        let datagrams = of(&|report| report.datagrams as f64);
        let each = |cpu_s: f64, count: f64| cpu_s / count.max(1.0);
        let lookups = f64::from(run.options.agents) * run.options.questions as f64;
        OutageNumbers {
            questions: run.options.questions,
            p50_ms: of(&|report| ms(report.since_instant_ns.value_at_quantile(0.5))),
            p99_ms: of(&|report| ms(report.since_instant_ns.value_at_quantile(0.99))),
            worst_ms: worst(&|report| report.since_instant_ns.max()),
            own_p50_ms: of(&|report| ms(report.since_asked_ns.value_at_quantile(0.5))),
            own_p99_ms: of(&|report| ms(report.since_asked_ns.value_at_quantile(0.99))),
            own_worst_ms: worst(&|report| report.since_asked_ns.max()),
            last_asked_ms: of(&|report| ms(report.last_asked_ns)),
            unanswered: self.outages.iter().map(|(report, _)| report.agents - report.answered).sum(),
            repeated: of(&|report| report.repeated as f64),
            datagrams,
            overflowed: of(&|report| report.overflowed as f64),
            server_cpu_s,
            agents_cpu_s: of(&|report| report.own_cpu_ns as f64 / 1e9),
            agents_busy_ratio: of(&|report| report.own_cpu_ns as f64 / report.elapsed_ns.max(1) as f64),
            echo_p99_ms: echo(&|report| ms(report.since_instant_ns.value_at_quantile(0.99))),
            echo_worst_ms: echo(&|report| ms(report.since_instant_ns.max())),
            echo_cpu_s,
            echo_lost_ratio: echo(&|report| 1.0 - report.back as f64 / report.sent.max(1) as f64),
            server_cpu_over_echo: each(server_cpu_s, datagrams) / each(echo_cpu_s, echo(&|report| report.back as f64)),
            cores_for_two_s: server_cpu_s / 2.0,
            paper_three_servers_s: lookups / (3.0 * PAPER_LOOKUPS_PER_S),
            paper_sixty_servers_s: lookups / (PAPER_SERVERS * PAPER_LOOKUPS_PER_S),
            foreign_cpu_ratio: self.foreign,
        }
    }
}
