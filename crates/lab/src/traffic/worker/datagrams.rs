//! Datagrams at a steady rate, whatever becomes of them: what an application without congestion control sends.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use weft_scenario::units::BitsPerSec;
use weft_scenario::workload::services::{DATAGRAM_PAYLOAD_BYTES, DatagramStream};

use super::socket::{datagram_receiver, datagram_sender};
use crate::traffic::table::{Table, now_ns};

/// Sockets are written to no more often than this.
pub(super) const TICK_NS: u64 = 2_000_000;
/// Reads before TCP has its turn.
const READS_PER_TURN: usize = 64;

/// All streams of datagrams that one server sends, and the socket where it receives others'.
pub(super) struct Datagrams<'a> {
    table: &'a Table,
    me: usize,
    sending: Vec<Sending>,
    receiver: Option<OwnedFd>,
    /// What is written at once.
    payload: Vec<u8>,
    next_due_ns: u64,
}

struct Sending {
    socket: OwnedFd,
    stream: DatagramStream,
    /// Payload that was written or could not be: the source does not wait.
    offered_bytes: u64,
}

impl<'a> Datagrams<'a> {
    pub(super) fn open(table: &'a Table, me: usize) -> io::Result<Self> {
        let config = table.config();
        let address = |server: u32| config.hosts[server as usize].address;
        let mine = config.datagrams.iter().filter(|stream| stream.from as usize == me);
        let sending = mine.map(|stream| {
            let socket = datagram_sender(address(stream.from), address(stream.to), DATAGRAM_PAYLOAD_BYTES)?;
            Ok(Sending { socket, stream: *stream, offered_bytes: 0 })
        });
        let sending = sending.collect::<io::Result<Vec<_>>>()?;
        let receives = config.datagrams.iter().any(|stream| stream.to as usize == me);
        let receiver = receives.then(|| datagram_receiver(config.hosts[me].address)).transpose()?;
        let payload = vec![0; (config.datagrams_per_write * DATAGRAM_PAYLOAD_BYTES) as usize];
        Ok(Self { table, me, sending, receiver, payload, next_due_ns: u64::MAX })
    }

    /// Where datagrams arrive, if any are expected.
    pub(super) fn receiver(&self) -> Option<&OwnedFd> {
        self.receiver.as_ref()
    }

    /// The run starts at this time.
    pub(super) fn begin(&mut self, start_ns: u64) {
        for Sending { stream, .. } in &mut self.sending {
            stream.start_ns = start_ns.saturating_add(stream.start_ns);
            stream.end_ns = start_ns.saturating_add(stream.end_ns);
        }
        self.next_due_ns = self.sending.iter().map(|sending| sending.stream.start_ns).min().unwrap_or(u64::MAX);
    }

    /// When [`Self::send_due`] has something to do.
    pub(super) fn next_due_ns(&self) -> u64 {
        self.next_due_ns
    }

    /// Writes what has become due since the last time.
    pub(super) fn send_due(&mut self) -> io::Result<()> {
        let now_ns = now_ns();
        if now_ns < self.next_due_ns {
            return Ok(());
        }
        self.next_due_ns = u64::MAX;
        for sending in &mut self.sending {
            sending.send_due(now_ns, &self.payload)?;
            if now_ns < sending.stream.end_ns {
                self.next_due_ns = self.next_due_ns.min(sending.stream.start_ns.max(now_ns + TICK_NS));
            }
        }
        Ok(())
    }

    /// Counts what has arrived.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let Some(socket) = &self.receiver else { return Ok(()) };
        let counter = &self.table.hosts()[self.me].received_bytes;
        take(socket, |_: [u8; 1], bytes| {
            counter.fetch_add(bytes as u64, Relaxed);
        })
    }
}

impl Sending {
    fn send_due(&mut self, now_ns: u64, payload: &[u8]) -> io::Result<()> {
        let due_bytes = due_bytes(self.stream.rate, self.stream.start_ns, now_ns.min(self.stream.end_ns));
        while self.offered_bytes + payload.len() as u64 <= due_bytes {
            self.offered_bytes += payload.len() as u64;
            offer(&self.socket, payload, "send datagrams")?;
        }
        Ok(())
    }
}

/// Writes a datagram. What the interface has no room for, or nobody listens for yet, is lost, like everything that a source offers
/// too fast.
pub(super) fn offer(socket: &OwnedFd, payload: &[u8], what: &str) -> io::Result<()> {
    match send(socket, payload, SendFlags::NOSIGNAL) {
        Ok(_) | Err(Errno::INTR | Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED) => Ok(()),
        Err(error) => Err(io::Error::other(format!("{what}: {error}"))),
    }
}

/// Takes what has arrived, until TCP has its turn: `arrived` gets the beginning of each datagram and its length.
pub(super) fn take<const N: usize>(socket: &OwnedFd, arrived: impl Fn([u8; N], usize)) -> io::Result<()> {
    for _ in 0..READS_PER_TURN {
        let mut beginning = [0; N];
        // The rest is of no interest: TRUNC tells the length without a copy.
        match recv(socket, &mut beginning[..], RecvFlags::TRUNC) {
            Ok((_, bytes)) => arrived(beginning, bytes),
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What a source at a steady rate has to offer between two times.
pub(super) fn due_bytes(rate: BitsPerSec, start_ns: u64, now_ns: u64) -> u64 {
    (u128::from(now_ns.saturating_sub(start_ns)) * u128::from(rate.0) / 8_000_000_000) as u64
}
