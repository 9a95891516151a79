//! One question over UDP, as an agent asks it.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use weft_wire::directory::{DATAGRAM_LEN_MAX, Entry, Key, Kind, Message, Path as TagPath, View};

use crate::error::NodeError;
use crate::key;

/// Asks one directory server over UDP, as an agent does.
pub struct LookupClient {
    socket: UdpSocket,
    path: TagPath,
    key: Key,
    key_id: u32,
    service: u32,
    next_request: u64,
}

impl LookupClient {
    /// A client for this server that belongs to this service; without a key file, for an open one. The key is that
    /// of the address that this host sends to the server from.
    ///
    /// # Errors
    /// [`NodeError::KeyFile`] or [`NodeError::System`].
    pub fn new(server: SocketAddrV4, key_file: Option<&Path>, key_id: u32, service: u32) -> Result<Self, NodeError> {
        let failed = || NodeError::system(format!("asking {server}"));
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed())?;
        // Connecting chooses the source address, which the tag covers.
        socket.connect(server).map_err(failed())?;
        let source = match socket.local_addr().map_err(failed())? {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(_) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        };
        let key = key::read_or_open(key_file, key::Derived { la: Some(*source.ip()), service })?;
        let path = TagPath { source, destination: server };
        Ok(Self { socket, path, key, key_id, service, next_request: u64::from(source.port()) << 32 })
    }

    /// Where these AAs are, at most [`weft_wire::directory::ENTRIES_MAX`]; one try.
    ///
    /// # Errors
    /// [`NodeError::NoAnswer`] or [`NodeError::System`].
    pub fn ask(&mut self, aas: &[Ipv4Addr], timeout: Duration) -> Result<Message, NodeError> {
        self.next_request += 1;
        let question = Message {
            kind: Kind::Ask,
            service: self.service,
            request_id: self.next_request,
            revision: 0,
            key_id: self.key_id,
            entries: aas.iter().map(|aa| Entry::question(*aa, 0)).collect(),
        };
        let mut buffer = [0; DATAGRAM_LEN_MAX];
        let length = question
            .emit_into(&mut buffer, &self.key, &self.path)
            .map_err(|error| NodeError::config("aa", error.to_string()))?;
        let server = self.path.destination;
        self.socket.send(&buffer[..length]).map_err(NodeError::system(format!("asking {server}")))?;
        self.await_answer(&question, timeout)
    }

    fn await_answer(&self, question: &Message, timeout: Duration) -> Result<Message, NodeError> {
        let server = self.path.destination;
        let deadline = Instant::now() + timeout;
        let no_answer = || NodeError::NoAnswer { server, timeout_ms: timeout.as_millis() as u64 };
        let mut buffer = [0; DATAGRAM_LEN_MAX];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(no_answer());
            }
            self.socket.set_read_timeout(Some(left)).map_err(NodeError::system("setting a timeout"))?;
            let Ok(length) = self.socket.recv(&mut buffer) else { return Err(no_answer()) };
            let Ok(view) = View::new(&buffer[..length]) else { continue };
            let ours = view.kind() == Kind::Answer && view.request_id() == question.request_id;
            if ours && view.verify(&self.key, &self.path.reversed()).is_ok() {
                return Ok(view.to_message());
            }
        }
    }
}
