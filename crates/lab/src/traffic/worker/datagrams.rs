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
pub(super) const READS_PER_TURN: usize = 64;

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
        for _ in 0..READS_PER_TURN {
            // The payload is of no interest: TRUNC tells its length without a copy.
            match recv(socket, &mut [0; 1][..], RecvFlags::TRUNC) {
                Ok((_, bytes)) => {
                    self.table.hosts()[self.me].received_bytes.fetch_add(bytes as u64, Relaxed);
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Sending {
    fn send_due(&mut self, now_ns: u64, payload: &[u8]) -> io::Result<()> {
        let due_bytes = due_bytes(self.stream.rate, self.stream.start_ns, now_ns.min(self.stream.end_ns));
        while self.offered_bytes + payload.len() as u64 <= due_bytes {
            self.offered_bytes += payload.len() as u64;
            match send(&self.socket, payload, SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::INTR) => {}
                // The interface is busy, or nobody listens yet: lost, like everything that a source offers too fast.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED) => {}
                Err(error) => return Err(io::Error::other(format!("send datagrams: {error}"))),
            }
        }
        Ok(())
    }
}

/// What a source at a steady rate has to offer between two times.
pub(super) fn due_bytes(rate: BitsPerSec, start_ns: u64, now_ns: u64) -> u64 {
    (u128::from(now_ns.saturating_sub(start_ns)) * u128::from(rate.0) / 8_000_000_000) as u64
}
