//! Asks a directory: administration over its Unix socket, look-ups over UDP.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_wire::directory::{DATAGRAM_LEN_MAX, Entry, Key, Kind, Message, Path as TagPath, View};

use crate::directory::protocol::{AdminRequest, AdminResponse, DirectoryStatus, MappingRow, MappingToSet};
use crate::error::NodeError;
use crate::key;

/// Longest wait for an answer on the admin socket.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a directory server's admin socket.
pub struct AdminClient {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl AdminClient {
    /// Connects.
    ///
    /// # Errors
    /// [`NodeError::System`] when no server listens there or this user may not connect.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, NodeError> {
        let path = path.as_ref();
        let what = format!("connecting to {} (is the directory server running, and are you its user?)", path.display());
        let stream = UnixStream::connect(path).map_err(NodeError::system(what))?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(NodeError::system("setting a timeout"))?;
        Ok(Self { path: path.to_owned(), stream: BufReader::new(stream) })
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// [`NodeError::Refused`] with the server's reason; [`NodeError::System`] or [`NodeError::Protocol`].
    pub fn request(&mut self, request: &AdminRequest) -> Result<AdminResponse, NodeError> {
        let mut line = serde_json::to_vec(request).map_err(|error| self.protocol(error.to_string()))?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(NodeError::at("writing to", &self.path))?;
        let mut answer = String::new();
        let count = self.stream.read_line(&mut answer).map_err(NodeError::at("reading from", &self.path))?;
        if count == 0 {
            return Err(self.protocol("it closed the connection without an answer; look at its log"));
        }
        let response: AdminResponse =
            serde_json::from_str(&answer).map_err(|error| self.protocol(format!("answer not understood: {error}")))?;
        if response.ok {
            Ok(response)
        } else {
            Err(NodeError::Refused(response.error.unwrap_or_else(|| "without a reason".to_owned())))
        }
    }

    /// The mapping of an AA, if it has one.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn get(&mut self, aa: Ipv4Addr) -> Result<Option<MappingRow>, NodeError> {
        self.request(&AdminRequest::Get { aa }).map(|response| response.mapping)
    }

    /// Sets one mapping. Returns the revision at which it was committed.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn set(&mut self, mapping: MappingToSet) -> Result<u64, NodeError> {
        self.set_many(vec![mapping])
    }

    /// Sets mappings, all or none. Returns the revision at which they were committed.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn set_many(&mut self, mappings: Vec<MappingToSet>) -> Result<u64, NodeError> {
        self.update(&AdminRequest::SetMany { mappings, client: 0, sequence: 0 })
    }

    /// Deletes a mapping. Returns the revision at which that was committed.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn del(&mut self, aa: Ipv4Addr) -> Result<u64, NodeError> {
        self.update(&AdminRequest::Del { aa, if_version: None, client: 0, sequence: 0 })
    }

    /// Every mapping, in order of AAs. Parts that change while they are read may be of different revisions.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn list(&mut self) -> Result<Vec<MappingRow>, NodeError> {
        let (mut rows, mut from) = (Vec::new(), None);
        loop {
            let response = self.request(&AdminRequest::List { from, limit: None })?;
            rows.extend(response.mappings.unwrap_or_default());
            from = response.next;
            if from.is_none() {
                return Ok(rows);
            }
        }
    }

    /// The server's state and counters.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn status(&mut self) -> Result<DirectoryStatus, NodeError> {
        let response = self.request(&AdminRequest::Status {})?;
        response.status.ok_or_else(|| self.protocol("the status is missing in the answer"))
    }

    fn update(&mut self, request: &AdminRequest) -> Result<u64, NodeError> {
        let response = self.request(request)?;
        response.revision.ok_or_else(|| self.protocol("the revision is missing in the answer"))
    }

    fn protocol(&self, why: impl Into<String>) -> NodeError {
        NodeError::Protocol { path: self.path.clone(), why: why.into() }
    }
}

/// Asks one directory server over UDP, as an agent does.
pub struct LookupClient {
    socket: UdpSocket,
    path: TagPath,
    key: Key,
    key_id: u32,
    tenant: u32,
    next_request: u64,
}

impl LookupClient {
    /// A client for this server; without a key file, for an open one.
    ///
    /// # Errors
    /// [`NodeError::KeyFile`] or [`NodeError::System`].
    pub fn new(server: SocketAddrV4, key_file: Option<&Path>, key_id: u32, tenant: u32) -> Result<Self, NodeError> {
        let key = key::read_or_open(key_file)?;
        let failed = || NodeError::system(format!("asking {server}"));
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed())?;
        // Connecting chooses the source address, which the tag covers.
        socket.connect(server).map_err(failed())?;
        let source = match socket.local_addr().map_err(failed())? {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(_) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        };
        let path = TagPath { source, destination: server };
        Ok(Self { socket, path, key, key_id, tenant, next_request: u64::from(source.port()) << 32 })
    }

    /// Where these AAs are, at most [`weft_wire::directory::ENTRIES_MAX`]; one try.
    ///
    /// # Errors
    /// [`NodeError::NoAnswer`] or [`NodeError::System`].
    pub fn ask(&mut self, aas: &[Ipv4Addr], timeout: Duration) -> Result<Message, NodeError> {
        self.next_request += 1;
        let question = Message {
            kind: Kind::Ask,
            tenant: self.tenant,
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
