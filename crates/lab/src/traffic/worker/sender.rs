//! The sending half of a worker: opens connections, writes zeroes, tells the table the state of TCP.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, Release};

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use weft_scenario::random::scramble;

use super::receiver::greeting;
use super::slots::{Kind, Slots};
use super::socket::{start_connection, tcp_state};
use crate::traffic::table::{Config, FlowCell, HostConfig, Table, now_ns};

/// What all flows carry.
static ZEROES: [u8; 1 << 18] = [0; 1 << 18];
/// A connection that cannot be made is tried again after this time.
const RETRY_NS: u64 = 250_000_000;
/// And given up, with the run, after this.
const GIVE_UP_NS: u64 = 15_000_000_000;

/// One flow to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) row: Option<u32>,
    pub(super) to: u32,
    /// `None`: as much as possible.
    pub(super) bytes: Option<u64>,
    /// Place among the flows of this server, from which its source port follows.
    pub(super) serial: u64,
    /// Absolute.
    pub(super) start_ns: u64,
}

/// One connection that sends.
pub(super) struct Sending {
    socket: OwnedFd,
    task: Task,
    pub(super) left: u64,
    phase: Phase,
    /// Payload that pacing allows to send now.
    pub(super) credit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Greeting,
    Writing,
    /// Everything is written and the FIN sent; the receiver closes when it has all of it.
    Finishing,
}

/// All connections that this server opened.
pub(super) struct Senders<'a> {
    table: &'a Table,
    me: usize,
    /// Writes are made by [`Senders::write_up_to`] and not whenever the socket has room.
    paced: bool,
    pub(super) open: Slots<Sending>,
    /// Flows to open, the next one last.
    waiting: Vec<Task>,
}

/// What an event led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    /// A paced connection is up; nothing is written yet.
    Connected,
    /// The receiver has everything; the connection is closed.
    Finished,
}

impl<'a> Senders<'a> {
    pub(super) fn new(table: &'a Table, me: usize, paced: bool) -> Self {
        Self { table, me, paced, open: Slots::new(Kind::Sender), waiting: Vec::new() }
    }

    /// Puts a flow among those that wait for their start.
    pub(super) fn add(&mut self, task: Task) {
        let place = self.waiting.partition_point(|other| other.start_ns > task.start_ns);
        self.waiting.insert(place, task);
    }

    /// When the next flow starts.
    pub(super) fn next_start_ns(&self) -> Option<u64> {
        self.waiting.last().map(|task| task.start_ns)
    }

    /// Opens the connections that are due.
    pub(super) fn start_due(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        while let Some(task) = self.waiting.pop_if(|task| task.start_ns <= now_ns()) {
            self.start(task, epoll)?;
        }
        Ok(())
    }

    fn start(&mut self, task: Task, epoll: &OwnedFd) -> io::Result<()> {
        if let Some(cell) = self.cell(&task).filter(|cell| cell.start_ns.load(Relaxed) == 0) {
            cell.start_ns.store(now_ns(), Relaxed);
        }
        let config = self.table.config();
        let own = (self.me as u64) << 32 | task.serial;
        let seed = scramble(config.seed ^ scramble(own));
        let (from, to) = (&config.hosts[self.me], &config.hosts[task.to as usize]);
        match start_connection(from.address, to.address, seed) {
            Ok(socket) => {
                let left = task.bytes.unwrap_or(u64::MAX);
                let sending = Sending { socket, task, left, phase: Phase::Connecting, credit: 0.0 };
                let slot = self.open.insert(sending);
                let socket = &self.open.get(slot).expect("just inserted").socket;
                epoll::add(epoll, socket, self.open.token(slot), EventFlags::OUT | EventFlags::RDHUP)?;
                Ok(())
            }
            Err(error) => self.retry(task, &error),
        }
    }

    /// Puts off a flow that could not connect, or gives up.
    fn retry(&mut self, task: Task, why: &io::Error) -> io::Result<()> {
        let now_ns = now_ns();
        let first_ns = self.cell(&task).map_or(task.start_ns, |cell| cell.start_ns.load(Relaxed));
        if now_ns > first_ns + GIVE_UP_NS {
            return Err(io::Error::other(format!("connect to {}: {why}", describe(self.receiver(&task)))));
        }
        self.add(Task { start_ns: now_ns + RETRY_NS, ..task });
        Ok(())
    }

    /// Handles what epoll says about one connection.
    pub(super) fn event(&mut self, slot: usize, flags: EventFlags, epoll: &OwnedFd) -> io::Result<Outcome> {
        let Some(phase) = self.open.get(slot).map(|sending| sending.phase) else { return Ok(Outcome::Nothing) };
        let closing = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR | EventFlags::IN);
        match phase {
            Phase::Connecting => return self.connected(slot, epoll),
            Phase::Finishing if closing => return self.finished(slot),
            Phase::Finishing => {}
            Phase::Greeting | Phase::Writing if closing => return Err(self.lost(slot)),
            Phase::Greeting | Phase::Writing if !self.paced => self.write_up_to(slot, u64::MAX, epoll).map(drop)?,
            Phase::Greeting | Phase::Writing => {}
        }
        Ok(Outcome::Nothing)
    }

    fn connected(&mut self, slot: usize, epoll: &OwnedFd) -> io::Result<Outcome> {
        let token = self.open.token(slot);
        let Some(sending) = self.open.get_mut(slot) else { return Ok(Outcome::Nothing) };
        if let Err(error) = sockopt::socket_error(&sending.socket)? {
            let task = sending.task;
            self.open.remove(slot);
            return self.retry(task, &error.into()).map(|()| Outcome::Nothing);
        }
        check_congestion_control(&sending.socket, self.table.config())?;
        sending.phase = Phase::Greeting;
        if self.paced {
            epoll::modify(epoll, &sending.socket, token, EventFlags::RDHUP)?;
            return Ok(Outcome::Connected);
        }
        self.write_up_to(slot, u64::MAX, epoll).map(|_| Outcome::Nothing)
    }

    /// Writes at most this much, as far as the socket has room; how much it was.
    pub(super) fn write_up_to(&mut self, slot: usize, limit: u64, epoll: &OwnedFd) -> io::Result<u64> {
        let token = self.open.token(slot);
        let Some(sending) = self.open.get_mut(slot).filter(|it| it.may_write()) else { return Ok(0) };
        let before = sending.left;
        match sending.write(limit) {
            Ok(()) => {}
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(self.failed("send to", slot, error.into())),
        }
        let written = before - sending.left;
        if sending.left == 0 {
            sending.phase = Phase::Finishing;
            if let Err(error) = shutdown(&sending.socket, Shutdown::Write) {
                return Err(self.failed("send to", slot, error.into()));
            }
            epoll::modify(epoll, &sending.socket, token, EventFlags::RDHUP)?;
        }
        Ok(written)
    }

    fn finished(&mut self, slot: usize) -> io::Result<Outcome> {
        let Some(sending) = self.open.get(slot) else { return Ok(Outcome::Nothing) };
        if let Err(error) = sockopt::socket_error(&sending.socket)? {
            return Err(self.failed("end of the flow to", slot, error.into()));
        }
        self.publish(sending)?;
        self.open.remove(slot);
        Ok(Outcome::Finished)
    }

    fn lost(&self, slot: usize) -> io::Error {
        let error = self.open.get(slot).map(|sending| sockopt::socket_error(&sending.socket));
        match error {
            Some(Ok(Err(error))) => self.failed("send to", slot, error.into()),
            _ => self.failed("send to", slot, io::Error::other("the receiver closed the connection")),
        }
    }

    fn failed(&self, what: &str, slot: usize, error: io::Error) -> io::Error {
        let receiver = self.open.get(slot).map(|sending| describe(self.receiver(&sending.task))).unwrap_or_default();
        io::Error::other(format!("{what} {receiver}: {error}"))
    }

    /// Writes the TCP state of all connections into the table.
    pub(super) fn publish_all(&self) -> io::Result<()> {
        self.open
            .iter()
            .filter(|sending| sending.phase != Phase::Connecting)
            .try_for_each(|sending| self.publish(sending))
    }

    fn publish(&self, sending: &Sending) -> io::Result<()> {
        let Some(cell) = self.cell(&sending.task) else { return Ok(()) };
        let state = tcp_state(&sending.socket)?;
        cell.cwnd_segments.store(state.cwnd_segments, Relaxed);
        cell.srtt_us.store(state.srtt_us, Relaxed);
        cell.retransmits.store(state.retransmits, Relaxed);
        cell.data_segments.store(state.data_segments_out, Relaxed);
        cell.acks.store(state.segments_in, Relaxed);
        cell.tcp_ns.store(now_ns(), Release);
        Ok(())
    }

    fn cell(&self, task: &Task) -> Option<&'a FlowCell> {
        self.table.flows().get(task.row? as usize)
    }

    fn receiver(&self, task: &Task) -> &'a HostConfig {
        &self.table.config().hosts[task.to as usize]
    }
}

impl Sending {
    /// Connected, with payload left.
    pub(super) fn may_write(&self) -> bool {
        matches!(self.phase, Phase::Greeting | Phase::Writing) && self.left > 0
    }

    fn write(&mut self, mut limit: u64) -> Result<(), Errno> {
        if self.phase == Phase::Greeting {
            // MORE: the greeting shares the first segment with payload. An empty send buffer has room for it.
            send(&self.socket, &greeting(self.task.row), SendFlags::NOSIGNAL | SendFlags::MORE)?;
            self.phase = Phase::Writing;
        }
        while self.left.min(limit) > 0 {
            let bytes = self.left.min(limit).min(ZEROES.len() as u64);
            let sent = match send(&self.socket, &ZEROES[..bytes as usize], SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => 0,
                other => other? as u64,
            };
            limit -= sent;
            if self.task.bytes.is_some() {
                self.left -= sent;
            }
        }
        Ok(())
    }
}

fn describe(host: &HostConfig) -> String {
    format!("{} ({})", host.name, host.address)
}

/// A socket with the system's default instead of what was asked would make the run mean something else.
fn check_congestion_control(socket: &OwnedFd, config: &Config) -> io::Result<()> {
    let (asked, got) = (config.congestion_control.kernel_name(), sockopt::tcp_congestion(socket)?);
    if got == asked {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "sockets use congestion control {got} instead of {asked}; set net.ipv4.tcp_congestion_control in its namespace"
    )))
}
