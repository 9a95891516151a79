//! The receiving half of a worker: accepts connections, counts what arrives, stamps the last byte.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, acceptfrom_with, recv};

use super::slots::{Kind, Slots};
use crate::traffic::table::{FlowCell, HostCounters, Table, now_ns};

/// Every connection begins with its flow's number and this word; they are no payload.
pub(super) const GREETING_LENGTH: usize = 8;
const GREETING_WORD: u32 = 0x7765_6674;
/// Number of a flow that has no cell.
pub(super) const UNLISTED: u32 = u32::MAX;
/// One read takes at most this much; when bytes are discarded in the kernel the buffer is never touched.
const READ_BYTES: usize = 1 << 18;
/// Reads of one connection before the others get their turn.
const READS_PER_TURN: usize = 8;

/// What a sender writes first.
pub(super) fn greeting(row: Option<u32>) -> [u8; GREETING_LENGTH] {
    let mut bytes = [0; GREETING_LENGTH];
    bytes[..4].copy_from_slice(&GREETING_WORD.to_be_bytes());
    bytes[4..].copy_from_slice(&row.unwrap_or(UNLISTED).to_be_bytes());
    bytes
}

/// All connections that this server accepted.
pub(super) struct Receivers<'a> {
    table: &'a Table,
    me: usize,
    listener: OwnedFd,
    open: Slots<Receiving>,
    buffer: Vec<u8>,
    flags: RecvFlags,
}

/// One accepted connection.
struct Receiving {
    socket: OwnedFd,
    peer: SocketAddrV4,
    greeting: [u8; GREETING_LENGTH],
    greeted: usize,
    row: Option<u32>,
}

/// What became of a connection after its turn.
enum Turn {
    Open,
    Closed,
}

impl<'a> Receivers<'a> {
    /// Listens; `copy` makes every byte cross into user space, as an application's would.
    pub(super) fn new(table: &'a Table, me: usize, listener: OwnedFd, copy: bool) -> Self {
        let flags = if copy { RecvFlags::empty() } else { RecvFlags::TRUNC };
        Self { table, me, listener, open: Slots::new(Kind::Receiver), buffer: vec![0; READ_BYTES], flags }
    }

    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Takes all connections that wait.
    pub(super) fn accept(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        loop {
            let (socket, peer) = match acceptfrom_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(accepted) => accepted,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(peer) = peer.and_then(|peer| SocketAddrV4::try_from(peer).ok()) else { continue };
            let receiving = Receiving { socket, peer, greeting: [0; GREETING_LENGTH], greeted: 0, row: None };
            let slot = self.open.insert(receiving);
            let socket = &self.open.get(slot).expect("just inserted").socket;
            epoll::add(epoll, socket, self.open.token(slot), epoll::EventFlags::IN)?;
        }
    }

    /// Reads one connection that has something to say.
    pub(super) fn read(&mut self, slot: usize) {
        let host = &self.table.hosts()[self.me];
        let Some(receiving) = self.open.get_mut(slot) else { return };
        let turn = match receiving.greet(self.table, self.me) {
            Ok(Some(row)) => receive(receiving, cell(self.table, row), host, &mut self.buffer, self.flags),
            Ok(None) => Turn::Open,
            Err(_) => Turn::Closed,
        };
        if matches!(turn, Turn::Closed) {
            self.open.remove(slot);
        }
    }

    /// Ends the flows that had no size: the time they were given is over.
    pub(super) fn end_open_flows(&mut self) {
        let now_ns = now_ns();
        for receiving in self.open.iter_mut() {
            if let Some(cell) = receiving.row.and_then(|row| cell(self.table, row))
                && cell.asked_bytes.load(Relaxed) == 0
                && cell.received_bytes.load(Relaxed) > 0
            {
                cell.end_ns.store(now_ns, Release);
                self.table.hosts()[self.me].flows_done.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Receiving {
    /// Reads the rest of the greeting; the flow's number once it is complete. An error means a stranger.
    fn greet(&mut self, table: &Table, me: usize) -> io::Result<Option<u32>> {
        if let Some(row) = self.row {
            return Ok(Some(row));
        }
        let (more, _) = match recv(&self.socket, &mut self.greeting[self.greeted..], RecvFlags::empty()) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => more,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.greeted += more;
        if self.greeted < GREETING_LENGTH {
            return Ok(None);
        }
        let word = |at: usize| {
            u32::from_be_bytes(self.greeting[at..at + 4].try_into().expect("four bytes of a greeting of eight"))
        };
        let row = word(4);
        let expected = match cell(table, row) {
            None => row == UNLISTED,
            Some(cell) => {
                let from = cell.from.load(Acquire) as usize;
                let hosts = &table.config().hosts;
                cell.to.load(Relaxed) as usize == me
                    && hosts.get(from).is_some_and(|host| host.address == *self.peer.ip())
            }
        };
        if word(0) != GREETING_WORD || !expected {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.row = Some(row);
        Ok(self.row)
    }
}

fn cell(table: &Table, row: u32) -> Option<&FlowCell> {
    table.flows().get(row as usize)
}

/// Takes what has arrived; the flow ends with its last byte, one without a cell with its connection.
fn receive(
    receiving: &Receiving,
    cell: Option<&FlowCell>,
    host: &HostCounters,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Turn {
    for _ in 0..READS_PER_TURN {
        let bytes = match recv(&receiving.socket, &mut *buffer, flags) {
            Ok((_, 0)) => {
                if cell.is_none() {
                    host.flows_done.fetch_add(1, Relaxed);
                }
                return Turn::Closed;
            }
            Ok((_, bytes)) => bytes as u64,
            Err(Errno::AGAIN) => return Turn::Open,
            Err(Errno::INTR) => continue,
            // The sender is gone. If it should not be, the parent sees its process end.
            Err(_) => return Turn::Closed,
        };
        host.received_bytes.fetch_add(bytes, Relaxed);
        if let Some(cell) = cell {
            let received = cell.received_bytes.fetch_add(bytes, Relaxed) + bytes;
            if received == cell.asked_bytes.load(Relaxed) {
                cell.end_ns.store(now_ns(), Release);
                host.flows_done.fetch_add(1, Release);
            }
        }
    }
    Turn::Open
}
