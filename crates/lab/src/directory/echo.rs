//! A bare socket that sends every datagram back and knows nothing: what the machine makes of a load at this time. Whatever makes such
//! an echo late, neighbours on the same cores for one, makes a directory late, too.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use weft_testbed::cpu;
use weft_wire::directory::datagram_len;

use super::step::inside;
use crate::error::LabError;

/// The server looks this often whether it is over.
const PATIENCE: Duration = Duration::from_millis(20);
/// What comes later than so long after the end is lost, and counts as if it had come then.
const GRACE: Duration = Duration::from_millis(100);
/// Longest time that is told apart, nanoseconds.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// A wait for less than this is none: the kernel could not wake us in time.
const SLEEP_MIN: Duration = Duration::from_micros(60);

/// A load of datagrams that are sent back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Echo<'a> {
    /// Namespaces of server and client, where they are in one.
    pub(super) places: [Option<&'a Path>; 2],
    /// The server's address.
    pub(super) address: Ipv4Addr,
    /// CPUs of server and client, where they are pinned.
    pub(super) cpus: [Option<usize>; 2],
    /// Datagrams per second, evenly spaced.
    pub(super) per_s: f64,
    pub(super) length: Duration,
}

impl Echo<'_> {
    /// 99th percentile of the time from when a datagram was due until it was back, nanoseconds.
    pub(super) fn p99_ns(&self) -> Result<u64, LabError> {
        let failed = || LabError::io("measure the baseline");
        let server = inside(self.places[0], || bind(self.address).map_err(failed()))?;
        let address = server.local_addr().map_err(failed())?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let echo = scope.spawn(|| echo(&server, self.cpus[0], &over));
            let asked = scope.spawn(|| inside(self.places[1], || self.ask(address).map_err(failed())));
            let asked = asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            over.store(true, Relaxed);
            echo.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed())?;
            Ok(asked?.value_at_quantile(0.99))
        })
    }

    /// Sends what is due, each datagram with its number, and reads what is back.
    fn ask(&self, server: SocketAddr) -> io::Result<Histogram<u64>> {
        pin(self.cpus[1])?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        let mut latency_ns = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are constants");
        let due = |number: u64| Duration::from_secs_f64(number as f64 / self.per_s);
        let count = (self.length.as_secs_f64() * self.per_s) as u64;
        let mut question = [0u8; datagram_len(1)];
        let mut buffer = [0; 2048];
        let (start, mut sent, mut back) = (Instant::now(), 0u64, 0u64);
        while back < count && start.elapsed() < self.length + GRACE {
            while sent < count && due(sent) <= start.elapsed() {
                question[..size_of::<u64>()].copy_from_slice(&sent.to_be_bytes());
                // A full queue is a late one: the datagram counts as lost.
                let _ = socket.send(&question);
                sent += 1;
            }
            while let Ok(length) = socket.recv(&mut buffer) {
                let Some(number) = buffer[..length].first_chunk::<8>() else { continue };
                let number = u64::from_be_bytes(*number);
                latency_ns.saturating_record((start.elapsed().saturating_sub(due(number)).as_nanos() as u64).max(1));
                back += 1;
            }
            if sent < count && due(sent) < start.elapsed() + SLEEP_MIN {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(SLEEP_MIN);
            }
        }
        latency_ns.saturating_record_n((self.length + GRACE).as_nanos() as u64, count - back);
        Ok(latency_ns)
    }
}

/// A socket for [`echo`].
pub(super) fn bind(address: Ipv4Addr) -> io::Result<UdpSocket> {
    let server = UdpSocket::bind((address, 0))?;
    server.set_read_timeout(Some(PATIENCE))?;
    Ok(server)
}

/// Sends back until it is over. Returns datagrams per CPU second.
pub(super) fn echo(server: &UdpSocket, cpu: Option<usize>, over: &AtomicBool) -> io::Result<f64> {
    pin(cpu)?;
    let mut buffer = [0; 2048];
    let (mut count, start_ns) = (0u64, cpu::this_thread_ns());
    while !over.load(Relaxed) {
        match server.recv_from(&mut buffer) {
            Ok((length, from)) => {
                server.send_to(&buffer[..length], from)?;
                count += 1;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count as f64 * 1e9 / (cpu::this_thread_ns() - start_ns).max(1) as f64)
}

/// Binds the calling thread to a CPU, where there is one for it.
pub(super) fn pin(cpu: Option<usize>) -> io::Result<()> {
    cpu.map_or(Ok(()), cpu::pin_this_thread).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_datagram_comes_back_and_is_timed() {
        let echo = Echo {
            places: [None, None],
            address: Ipv4Addr::LOCALHOST,
            cpus: [None, None],
            per_s: 1000.0,
            length: Duration::from_millis(100),
        };
        let p99_ns = echo.p99_ns().expect("loopback carries it");
        assert!(p99_ns > 1000 && p99_ns < (echo.length + GRACE).as_nanos() as u64, "{p99_ns}");
        // Nobody is at this port.
        let silent = bind(Ipv4Addr::LOCALHOST).expect("a port");
        let lost = echo.ask(silent.local_addr().expect("it is bound")).expect("it sends");
        assert_eq!((lost.len(), lost.min() > GRACE.as_nanos() as u64), (100, true));
    }
}
