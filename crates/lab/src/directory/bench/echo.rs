//! The baseline of the same run: a socket that sends every datagram back and knows nothing, with the same datagrams, the
//! same pinning and one system call each way. A directory that costs less than that gains from answering many at a time.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_wire::directory::datagram_len;

use super::{Bench, median};
use crate::directory::echo::{Echo, bind, echo, pin};
use crate::error::LabError;

/// Datagrams outstanding.
const WINDOW: usize = 64;

/// Rate of the baseline on the machine and at the time that the floors were set: two cores of 2.3 GHz. Where it is lower
/// the machine is slower, and an absolute floor says nothing about the directory.
pub(super) const REFERENCE_PER_CPU_S: f64 = 445e3;

/// What the kernel takes for a datagram in and out.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// What answered.
    pub name: &'static str,
    /// Datagrams sent back per CPU second of its thread, median over rounds in between those of the look-ups.
    pub datagrams_per_cpu_s: f64,
    /// The same when the floors were set.
    pub reference_per_cpu_s: f64,
    /// Programs that were not measured beside us because they are not installed here.
    pub absent: Vec<&'static str>,
}

impl Baseline {
    /// Of the rates that [`round`] found.
    pub(super) fn of(rates: Vec<f64>) -> Self {
        let is_absent = |program: &&str| {
            let paths = std::env::var_os("PATH").unwrap_or_default();
            !std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
        };
        Self {
            name: "udp echo, recvfrom and sendto",
            datagrams_per_cpu_s: median(&rates),
            reference_per_cpu_s: REFERENCE_PER_CPU_S,
            // Measured by hand where they are: look-ups per CPU second 0.27 M (memcached, UDP) and 1.2 M (Redis, pipelined).
            absent: ["memcached", "redis-server"].into_iter().filter(is_absent).collect(),
        }
    }
}

/// 99th percentile of an echo at this rate, microseconds, with the pinning of servers and load.
pub(super) fn paced_p99_us(bench: &Bench<'_>, per_s: f64, length: Duration) -> Result<f64, LabError> {
    let cpus = [bench.server_cpu, bench.load_cpu];
    let paced = Echo { places: [None, None], address: Ipv4Addr::LOCALHOST, cpus, per_s, length };
    Ok(paced.p99_ns()? as f64 / 1e3)
}

/// Datagrams per CPU second in one round.
pub(super) fn round(bench: &Bench<'_>, length: Duration) -> Result<f64, LabError> {
    one(bench, length).map_err(LabError::io("measure the baseline"))
}

fn one(bench: &Bench<'_>, length: Duration) -> std::io::Result<f64> {
    let server = bind(Ipv4Addr::LOCALHOST)?;
    let address = server.local_addr()?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(&server, bench.server_cpu, &over));
        let client = scope.spawn(|| ask(address, bench.load_cpu, length));
        let asked = client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        over.store(true, Relaxed);
        let echoed = echo.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        asked.and(echoed)
    })
}

/// Keeps so many datagrams on their way.
fn ask(server: SocketAddr, place: Option<usize>, length: Duration) -> std::io::Result<()> {
    pin(place)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let question = [0u8; datagram_len(1)];
    let mut buffer = [0; 2048];
    let fill = |socket: &UdpSocket| (0..WINDOW).try_for_each(|_| socket.send(&question).map(drop));
    fill(&socket)?;
    let start = Instant::now();
    while start.elapsed() < length {
        match socket.recv(&mut buffer) {
            Ok(_) => drop(socket.send(&question)?),
            // Whatever was lost is replaced.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => fill(&socket)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
