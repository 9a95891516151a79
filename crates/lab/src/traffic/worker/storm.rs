//! Broadcast at a steady rate, and a socket on every server that hears it, wherever it should not be heard too.
//!
//! A datagram begins with its sender's number, so that a server knows whether it is of its own service.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use weft_scenario::workload::services::{STORM_PAYLOAD_BYTES, StormSpec};

use super::datagrams::{TICK_NS, due_bytes, offer, take};
use super::socket::{storm_receiver, storm_sender};
use crate::traffic::table::{Table, now_ns};

/// The number's length.
const MARK: usize = size_of::<u32>();

/// One server's side of all storms.
pub(super) struct Storms<'a> {
    table: &'a Table,
    me: usize,
    sending: Option<Sending>,
    receiver: Option<OwnedFd>,
    /// Numbers of the servers whose broadcast it should hear.
    own: Vec<u32>,
    next_due_ns: u64,
}

struct Sending {
    socket: OwnedFd,
    spec: StormSpec,
    offered: u64,
}

impl<'a> Storms<'a> {
    pub(super) fn open(table: &'a Table, me: usize) -> io::Result<Self> {
        let (storms, number) = (&table.config().storms, me as u32);
        let open = |spec: StormSpec| -> io::Result<Sending> {
            Ok(Sending { socket: storm_sender(table.config().hosts[me].address)?, spec, offered: 0 })
        };
        let mine = storms.iter().find(|storm| storm.spec.from == number);
        let sending = mine.map(|storm| open(storm.spec)).transpose()?;
        // The sender's own stack would let it hear itself.
        let receives = !storms.is_empty() && sending.is_none();
        let own = storms.iter().filter(|storm| storm.members.contains(&number)).map(|storm| storm.spec.from).collect();
        let receiver = receives.then(storm_receiver).transpose()?;
        Ok(Self { table, me, sending, receiver, own, next_due_ns: u64::MAX })
    }

    /// Where broadcast arrives, if any may.
    pub(super) fn receiver(&self) -> Option<&OwnedFd> {
        self.receiver.as_ref()
    }

    /// The run starts at this time.
    pub(super) fn begin(&mut self, start_ns: u64) {
        if let Some(Sending { spec, .. }) = &mut self.sending {
            spec.begin.0 = start_ns.saturating_add(spec.begin.0);
            spec.end.0 = start_ns.saturating_add(spec.end.0);
            self.next_due_ns = spec.begin.0;
        }
    }

    /// When [`Self::send_due`] has something to do.
    pub(super) fn next_due_ns(&self) -> u64 {
        self.next_due_ns
    }

    /// Writes what has become due since the last time.
    pub(super) fn send_due(&mut self) -> io::Result<()> {
        let now_ns = now_ns();
        let Some(sending) = self.sending.as_mut().filter(|_| now_ns >= self.next_due_ns) else { return Ok(()) };
        sending.send_due(now_ns, self.me as u32)?;
        self.table.hosts()[self.me].storm_offered.store(sending.offered, Relaxed);
        self.next_due_ns = if now_ns < sending.spec.end.0 { now_ns + TICK_NS } else { u64::MAX };
        Ok(())
    }

    /// Counts what has arrived: its own service's, and whatever else.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let Some(socket) = &self.receiver else { return Ok(()) };
        let counters = &self.table.hosts()[self.me];
        take(socket, |mark: [u8; MARK], bytes| {
            let is_own = bytes >= MARK && self.own.contains(&u32::from_be_bytes(mark));
            let counter = if is_own { &counters.storm_own } else { &counters.storm_foreign };
            counter.fetch_add(1, Relaxed);
            counters.received_bytes.fetch_add(bytes as u64, Relaxed);
        })
    }
}

impl Sending {
    fn send_due(&mut self, now_ns: u64, number: u32) -> io::Result<()> {
        let mut payload = [0; STORM_PAYLOAD_BYTES as usize];
        payload[..MARK].copy_from_slice(&number.to_be_bytes());
        let due = due_bytes(self.spec.rate, self.spec.begin.0, now_ns.min(self.spec.end.0)) / payload.len() as u64;
        while self.offered < due {
            self.offered += 1;
            offer(&self.socket, &payload, "broadcast")?;
        }
        Ok(())
    }
}
