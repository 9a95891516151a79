//! One socket to one server: questions out in batches, answers checked.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use weft_node::NodeError;
use weft_node::datagrams::{Inbox, Outbox, Sent, receive_bursts};
use weft_node::directory::set_up_socket;
use weft_wire::directory::{Entry, Kind, Message, Path, Status, View, datagram_len};

use super::LookupLoad;

/// Names of the statuses, in the order of [`status_index`].
pub(super) const STATUSES: [&str; 6] = ["ok", "unknown", "refused", "behind", "overloaded", "other"];

/// A connected socket and the questions that wait to leave by it.
pub(super) struct Flow {
    pub(super) socket: UdpSocket,
    path: Path,
    question: Message,
    bytes: Vec<u8>,
    outbox: Outbox,
}

impl Flow {
    pub(super) fn new(load: &LookupLoad, server: SocketAddrV4) -> Result<Self, NodeError> {
        let failed = || NodeError::system(format!("asking {server}"));
        let socket = UdpSocket::bind((load.source, 0)).map_err(failed())?;
        // Connecting chooses the source address, which the tag covers.
        socket.connect(server).map_err(failed())?;
        set_up_socket(&socket).map_err(failed())?;
        let burst_max = load.arrivals.burst_max(load.burst);
        if burst_max > 1 {
            let _ = receive_bursts(socket.as_fd());
        }
        let source = match socket.local_addr().map_err(failed())? {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        };
        let question = Message {
            kind: Kind::Ask,
            service: load.access.service,
            request_id: 0,
            revision: 0,
            key_id: load.access.key_id,
            entries: vec![Entry::question(load.first_aa, 0); load.questions],
        };
        let path = Path { source, destination: server };
        Ok(Self { socket, path, question, bytes: Vec::new(), outbox: Outbox::with_bursts_of(burst_max) })
    }

    /// Adds a question with this number about random AAs.
    pub(super) fn ask(&mut self, load: &LookupLoad, request_id: u64, random: &mut Pcg64) {
        self.question.request_id = request_id;
        for entry in &mut self.question.entries {
            let offset = (u64::from(random.next_u32()) * u64::from(load.aas)) >> 32;
            entry.aa = Ipv4Addr::from(u32::from(load.first_aa).wrapping_add(offset as u32));
        }
        let length = datagram_len(load.questions);
        let start = self.bytes.len();
        self.bytes.resize(start + length, 0);
        self.question
            .emit_into(&mut self.bytes[start..], &load.access.key, &self.path)
            .expect("the load was checked: the number of questions fits");
        self.outbox.push(None, length, start..start + length);
    }

    /// Sends what was asked.
    pub(super) fn send(&mut self) -> Sent {
        let sent = self.outbox.send(self.socket.as_fd(), &self.bytes);
        self.bytes.clear();
        sent
    }

    /// Reads one batch. `answered` is told the number of every valid answer, and `None` of what is none. Returns how many
    /// messages there were.
    pub(super) fn receive(
        &self,
        load: &LookupLoad,
        inbox: &mut Inbox,
        mut answered: impl FnMut(Option<(u64, [u64; STATUSES.len()])>),
    ) -> Result<usize, NodeError> {
        let count = inbox.receive(self.socket.as_fd()).map_err(NodeError::system("reading answers"))?;
        let back = self.path.reversed();
        inbox.for_each(|_, datagram| {
            let valid = View::new(datagram)
                .ok()
                .filter(|view| view.kind() == Kind::Answer && view.verify(&load.access.key, &back).is_ok());
            answered(valid.map(|view| {
                let mut statuses = [0; STATUSES.len()];
                view.entries().for_each(|entry| statuses[status_index(entry.status)] += 1);
                (view.request_id(), statuses)
            }));
            false
        });
        Ok(count)
    }
}

fn status_index(status: Status) -> usize {
    match status {
        Status::Ok => 0,
        Status::Unknown => 1,
        Status::Refused => 2,
        Status::Behind => 3,
        Status::Overloaded => 4,
        Status::Question | Status::Other(_) => 5,
    }
}
