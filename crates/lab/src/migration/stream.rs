//! The traffic of a migration: one TCP connection that sends as much as it can, and a UDP probe every millisecond, so that
//! something is always on its way also while TCP waits for its timer.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weft_scenario::record::ProgressRow;

use crate::error::LabError;
use crate::netns::{self, join};

const PORT: u16 = 5400;
const PROBE_INTERVAL: Duration = Duration::from_millis(1);
/// Ends are looked for this often.
const PATIENCE: Duration = Duration::from_millis(20);
const CONNECT_MAX: Duration = Duration::from_secs(5);
const BLOCK: usize = 64 << 10;

/// From whom to whom, and for how long.
pub(super) struct Stream {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) duration: Duration,
    /// Distance between rows of progress.
    pub(super) interval: Duration,
}

/// What arrived.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// By TCP.
    pub(super) bytes: u64,
    /// Payload over time.
    pub(super) progress: Vec<ProgressRow>,
    pub(super) probes: u64,
    /// Probes that left.
    pub(super) probes_sent: u64,
    /// The longest time in which neither payload nor probe came.
    pub(super) longest_silence_ns: u64,
}

/// When something came last, and the longest time until the next.
#[derive(Default)]
struct Silence {
    last_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Silence {
    fn heard(&self, start: Instant) {
        let now_ns = start.elapsed().as_nanos() as u64;
        let last_ns = self.last_ns.swap(now_ns, Relaxed);
        if last_ns > 0 {
            self.longest_ns.fetch_max(now_ns.saturating_sub(last_ns), Relaxed);
        }
    }
}

impl Stream {
    /// Sends until it is over, and for `duration` at most.
    pub(super) fn run(&self, start: Instant, over: &AtomicBool) -> Result<Received, LabError> {
        let listening = netns::in_namespace(&self.to, || {
            let listener = TcpListener::bind((self.destination, PORT))?;
            listener.set_nonblocking(true)?;
            let probes = UdpSocket::bind((self.destination, PORT))?;
            probes.set_read_timeout(Some(PATIENCE))?;
            Ok::<_, std::io::Error>((listener, probes))
        })?;
        let (listener, probes) = listening.map_err(LabError::io("listen at the server that moves"))?;
        let silence = Silence::default();
        std::thread::scope(|scope| {
            let (silence, listener, probes) = (&silence, &listener, &probes);
            let receiving = scope.spawn(move || self.receive(listener, start, over, silence));
            let listening = scope.spawn(move || count_probes(probes, start, over, silence));
            let sending = scope.spawn(move || netns::in_namespace(&self.from, || self.send(start, over)));
            let probing = scope.spawn(move || netns::in_namespace(&self.from, || self.probe(start, over)));
            let mut received = join(receiving).map_err(LabError::io("receive at the server that moves"))?;
            received.probes = join(listening);
            join(sending)?.map_err(LabError::io("send to the server that moves"))?;
            received.probes_sent = join(probing)?.map_err(LabError::io("probe the server that moves"))?;
            received.longest_silence_ns = silence.longest_ns.load(Relaxed);
            Ok(received)
        })
    }

    fn is_over(&self, start: Instant, over: &AtomicBool) -> bool {
        over.load(Relaxed) || start.elapsed() >= self.duration
    }

    fn send(&self, start: Instant, over: &AtomicBool) -> std::io::Result<()> {
        let address = SocketAddrV4::new(self.destination, PORT);
        let mut stream = TcpStream::connect_timeout(&address.into(), CONNECT_MAX)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let block = vec![7; BLOCK];
        while !self.is_over(start, over) {
            match stream.write(&block) {
                Err(error) if !is_patience(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn receive(
        &self,
        listener: &TcpListener,
        start: Instant,
        over: &AtomicBool,
        silence: &Silence,
    ) -> std::io::Result<Received> {
        let mut received = Received::default();
        let mut stream: Option<TcpStream> = None;
        let mut buffer = vec![0; BLOCK];
        let mut next_row = self.interval;
        while !self.is_over(start, over) {
            match &mut stream {
                None => match listener.accept() {
                    Ok((accepted, _)) => {
                        accepted.set_nonblocking(false)?;
                        accepted.set_read_timeout(Some(PATIENCE))?;
                        stream = Some(accepted);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PROBE_INTERVAL),
                    Err(error) => return Err(error),
                },
                Some(stream) => match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        received.bytes += count as u64;
                        silence.heard(start);
                    }
                    Err(error) if is_patience(&error) => {}
                    Err(error) => return Err(error),
                },
            }
            if start.elapsed() >= next_row {
                received.progress.push(row(start, received.bytes));
                next_row += self.interval;
            }
        }
        received.progress.push(row(start, received.bytes));
        Ok(received)
    }

    /// Sends probes on time; one that the network does not take is lost like any other.
    fn probe(&self, start: Instant, over: &AtomicBool) -> std::io::Result<u64> {
        let socket = UdpSocket::bind((self.source, 0))?;
        let mut sent = 0u64;
        while !self.is_over(start, over) {
            let _ = socket.send_to(&sent.to_be_bytes(), (self.destination, PORT));
            sent += 1;
            let due = PROBE_INTERVAL * u32::try_from(sent).unwrap_or(u32::MAX);
            if let Some(early) = due.checked_sub(start.elapsed()) {
                std::thread::sleep(early);
            }
        }
        Ok(sent)
    }
}

fn count_probes(socket: &UdpSocket, start: Instant, over: &AtomicBool, silence: &Silence) -> u64 {
    let (mut buffer, mut count) = ([0; 64], 0);
    while !over.load(Relaxed) {
        if socket.recv(&mut buffer).is_ok() {
            count += 1;
            silence.heard(start);
        }
    }
    count
}

fn row(start: Instant, received_bytes: u64) -> ProgressRow {
    ProgressRow { time_ns: start.elapsed().as_nanos() as u64, received_bytes, flows_done: 0 }
}

/// Nothing happened in time.
fn is_patience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
