//! The reader: answers look-ups over UDP from memory, a batch of datagrams per system call.

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::net::sockopt;
use weft_control::directory::{Ignored, Responder};
use weft_control::tally::Tally;
use weft_wire::directory::Path;

use super::service::SharedTable;
use crate::error::NodeError;
use crate::poll::Poller;
use crate::stop::Stop;
use crate::sys::Datagrams;

/// Type of service of directory datagrams: internetwork control, so that bulk traffic does not delay them.
const TOS_CONTROL: u8 = 0xc0;

/// Room for a burst of look-ups while the reader waits for a CPU.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

const STOP: u64 = 0;
const SOCKET: u64 = 1;

/// Makes a socket fit for directory datagrams: no waiting, control class, room for bursts.
pub(crate) fn set_up_socket(socket: &UdpSocket) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    sockopt::set_ip_tos(socket, TOS_CONTROL)?;
    // Beyond the system's limit where this user may do that.
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_BYTES)?;
    }
    Ok(())
}

/// What the reader counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LookupCounts {
    pub(super) datagrams: u64,
    pub(super) answered: u64,
    pub(super) questions: u64,
    pub(super) unsent: u64,
    pub(super) ignored: Tally<Ignored>,
}

/// The socket and what is needed to answer.
pub(super) struct Lookups {
    socket: UdpSocket,
    listen: SocketAddrV4,
    responder: Responder,
    table: SharedTable,
}

impl Lookups {
    pub(super) fn bind(listen: SocketAddrV4, responder: Responder, table: SharedTable) -> Result<Self, NodeError> {
        let socket = UdpSocket::bind(listen).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => NodeError::AddressInUse { address: listen },
            std::io::ErrorKind::AddrNotAvailable => {
                NodeError::config("listen", format!("{} is not an address of this host; add it first", listen.ip()))
            }
            _ => NodeError::system(format!("binding UDP {listen}"))(error),
        })?;
        let failed = || NodeError::system("setting up the look-up socket");
        set_up_socket(&socket).map_err(failed())?;
        let listen = match socket.local_addr().map_err(failed())? {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(_) => listen,
        };
        Ok(Self { socket, listen, responder, table })
    }

    /// Where look-ups are answered.
    pub(super) fn listen(&self) -> SocketAddrV4 {
        self.listen
    }

    /// Answers until it is told to stop.
    pub(super) fn serve(&self, counts: &Mutex<LookupCounts>, stop: &Stop) -> Result<(), NodeError> {
        let poller = Poller::new()?;
        poller.add(stop, STOP)?;
        poller.add(&self.socket, SOCKET)?;
        let mut batch = Datagrams::new();
        loop {
            let ready = poller.wait(None)?;
            if ready.contains(&STOP) {
                return Ok(());
            }
            while self.answer_batch(&mut batch, counts)? > 0 {
                if stop.requested() {
                    return Ok(());
                }
            }
        }
    }

    /// Answers one batch. Returns how many datagrams there were.
    fn answer_batch(&self, batch: &mut Datagrams, counts: &Mutex<LookupCounts>) -> Result<usize, NodeError> {
        let count = batch.receive(self.socket.as_fd()).map_err(NodeError::system("reading look-ups"))?;
        if count == 0 {
            return Ok(0);
        }
        let mut seen = LookupCounts { datagrams: count as u64, ..LookupCounts::default() };
        let mut answers = Vec::with_capacity(count);
        {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            for index in 0..count {
                let (source, datagram) = batch.get(index);
                let path = Path { source, destination: self.listen };
                match self.responder.respond(&table, &path, datagram) {
                    Ok(questions) => {
                        seen.questions += questions as u64;
                        answers.push(index);
                    }
                    Err(reason) => seen.ignored.add(reason),
                }
            }
        }
        let sent = batch.send_back(self.socket.as_fd(), &answers);
        seen.answered = sent as u64;
        seen.unsent = (answers.len() - sent) as u64;
        counts.lock().unwrap_or_else(PoisonError::into_inner).merge(&seen);
        Ok(count)
    }
}

impl LookupCounts {
    fn merge(&mut self, other: &Self) {
        self.datagrams += other.datagrams;
        self.answered += other.answered;
        self.questions += other.questions;
        self.unsent += other.unsent;
        self.ignored.merge(&other.ignored);
    }
}
