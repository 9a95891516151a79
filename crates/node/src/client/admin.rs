//! A session with a directory server: one request after the other, or many at once.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_wire::ParseError;
use weft_wire::directory::update::{UpdateFrame, VerdictFrame};

use super::transport::{Target, Transport};
use crate::directory::protocol::{
    AdminRequest, AdminResponse, ChangeRow, DirectoryStatus, Event, MappingRow, MappingToSet, PolicyRow, RulesRow,
};
use crate::error::NodeError;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// A session with a directory server.
pub struct AdminClient {
    target: Target,
    stream: BufReader<Transport>,
    /// Requests that were not sent yet.
    output: Vec<u8>,
    /// An answer that has come in part.
    partial: Vec<u8>,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// These AAs changed at this revision.
    Changed {
        /// The record's revision.
        revision: u64,
        /// The AAs as they are after it.
        changes: Vec<ChangeRow>,
    },
    /// Changes are gone that were not told: list everything again. The watch has ended.
    Lagged,
    /// Nothing yet.
    Silence,
}

impl AdminClient {
    /// Connects to the server's Unix socket.
    ///
    /// # Errors
    /// [`NodeError::System`] when no server listens there or this user may not connect.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, NodeError> {
        Self::open(&path.into())
    }

    /// Connects.
    ///
    /// # Errors
    /// [`NodeError::System`] when no server listens there, [`NodeError::Tls`] for files that cannot be used,
    /// [`NodeError::Protocol`] for an end that does not trust the other.
    pub fn open(target: &Target) -> Result<Self, NodeError> {
        let transport = Transport::connect(target, TIMEOUT)?;
        let stream = BufReader::with_capacity(BUFFER_BYTES, transport);
        Ok(Self { target: target.clone(), stream, output: Vec::new(), partial: Vec::new() })
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// [`NodeError::Refused`] with the server's reason; [`NodeError::System`] or [`NodeError::Protocol`].
    pub fn request(&mut self, request: &AdminRequest) -> Result<AdminResponse, NodeError> {
        self.put(request)?;
        self.flush()?;
        let response = self.receive()?;
        if response.ok {
            Ok(response)
        } else {
            Err(NodeError::Refused(response.error.unwrap_or_else(|| "without a reason".to_owned())))
        }
    }

    /// Adds a request to those that [`Self::flush`] sends. Answers come in the order of the requests: whoever sends
    /// ahead must take them with [`Self::receive`] before a thousand are open.
    ///
    /// # Errors
    /// [`NodeError::Protocol`].
    pub fn put(&mut self, request: &AdminRequest) -> Result<(), NodeError> {
        serde_json::to_writer(&mut self.output, request).map_err(|error| self.protocol(error.to_string()))?;
        self.output.push(b'\n');
        Ok(())
    }

    /// Adds an update in its short form; its answer is taken with [`Self::verdict`].
    pub fn put_frame(&mut self, frame: &UpdateFrame) {
        self.output.extend(frame.emit());
    }

    /// Sends what was added.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn flush(&mut self) -> Result<(), NodeError> {
        let stream = self.stream.get_mut();
        let sent = stream.write_all(&self.output).and_then(|()| stream.flush());
        self.output.clear();
        sent.map_err(|error| self.system("writing to", error))
    }

    /// The next answer, good or bad.
    ///
    /// # Errors
    /// [`NodeError::System`] or [`NodeError::Protocol`].
    pub fn receive(&mut self) -> Result<AdminResponse, NodeError> {
        match self.line()? {
            Some(line) => self.parse(&line),
            None => Err(self.protocol("no answer in time; look at its log")),
        }
    }

    /// The answer to the next update in short form.
    ///
    /// # Errors
    /// [`NodeError::System`] or [`NodeError::Protocol`].
    pub fn verdict(&mut self) -> Result<VerdictFrame, NodeError> {
        loop {
            if self.partial.is_empty()
                && let Ok((verdict, length)) = VerdictFrame::parse(self.stream.buffer())
            {
                self.stream.consume(length);
                return Ok(verdict);
            }
            match VerdictFrame::parse(&self.partial) {
                Ok((verdict, length)) => {
                    self.partial.drain(..length);
                    return Ok(verdict);
                }
                Err(ParseError::Truncated { .. }) => {}
                Err(error) => return Err(self.protocol(format!("answer not understood: {error}"))),
            }
            let bytes = match self.stream.fill_buf() {
                Ok([]) => return Err(self.closed()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.system("reading from", error)),
            };
            let count = bytes.len();
            self.partial.extend_from_slice(bytes);
            self.stream.consume(count);
        }
    }

    /// Waits until an answer begins to come, at most `timeout`.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn wait_input(&self, timeout: Duration) -> Result<bool, NodeError> {
        if self.has_input() {
            return Ok(true);
        }
        self.stream.get_ref().wait_input(timeout).map_err(|error| self.system("reading from", error))
    }

    /// Whether an answer may be there without waiting.
    pub fn has_input(&self) -> bool {
        !self.stream.buffer().is_empty() || !self.partial.is_empty()
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

    /// Moves an AA to another ToR and host; only from version `if_version`, if that is named. Returns the revision at
    /// which that was committed.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn move_to(
        &mut self,
        aa: Ipv4Addr,
        tor_la: Ipv4Addr,
        host_la: Option<Ipv4Addr>,
        if_version: Option<u64>,
    ) -> Result<u64, NodeError> {
        let anycast_la = None;
        self.update(&AdminRequest::Move { aa, tor_la, anycast_la, host_la, if_version, client: 0, sequence: 0 })
    }

    /// Every mapping that this client may see, in order of AAs. Parts that change while they are read may be of different
    /// revisions; [`Self::list_each`] says which was the first.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn list(&mut self) -> Result<Vec<MappingRow>, NodeError> {
        let mut rows = Vec::new();
        self.list_each(|part| {
            rows.extend(part);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Hands every mapping to `each`, in parts. Returns the revision of the first part: with a watch from there nothing
    /// is missed.
    ///
    /// # Errors
    /// As [`Self::request`], and those of `each`.
    pub fn list_each(
        &mut self,
        mut each: impl FnMut(Vec<MappingRow>) -> Result<(), NodeError>,
    ) -> Result<u64, NodeError> {
        let (mut revision, mut from) = (None, None);
        loop {
            let response = self.request(&AdminRequest::List { from, limit: None })?;
            let revision = *revision.get_or_insert(response.revision.unwrap_or(0));
            each(response.mappings.unwrap_or_default())?;
            from = response.next;
            if from.is_none() {
                return Ok(revision);
            }
        }
    }

    /// What the server takes as mappings.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn rules(&mut self) -> Result<RulesRow, NodeError> {
        let response = self.request(&AdminRequest::Rules {})?;
        response.rules.ok_or_else(|| self.protocol("the rules are missing in the answer"))
    }

    /// The rules that differ from the default.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn policy(&mut self) -> Result<Vec<PolicyRow>, NodeError> {
        self.request(&AdminRequest::PolicyList {}).map(|response| response.policy.unwrap_or_default())
    }

    /// Changes rules, all or none. Returns the revision at which they were committed.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn set_policy(&mut self, changes: Vec<PolicyRow>) -> Result<u64, NodeError> {
        self.update(&AdminRequest::Policy { changes, client: 0, sequence: 0 })
    }

    /// Begins to watch what is committed above revision `from`, by default the current one, which is returned. From then
    /// on this session is for [`Self::watched`].
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn watch(&mut self, from: Option<u64>) -> Result<u64, NodeError> {
        self.update(&AdminRequest::Watch { from })
    }

    /// What the watch tells next, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`NodeError::System`] or [`NodeError::Protocol`].
    pub fn watched(&mut self, timeout: Duration) -> Result<Watch, NodeError> {
        let timeout = timeout.max(Duration::from_millis(1));
        self.stream.get_ref().set_timeout(timeout).map_err(|error| self.system("setting up", error))?;
        let Some(line) = self.line()? else { return Ok(Watch::Silence) };
        let response = self.parse(&line)?;
        match response.event {
            Some(Event::Changed) => Ok(Watch::Changed {
                revision: response.revision.unwrap_or(0),
                changes: response.changes.unwrap_or_default(),
            }),
            Some(Event::Lagged) => Ok(Watch::Lagged),
            None => Err(self.protocol("an answer where an event was expected")),
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

    /// The next line; `None` when none came in time. What came of it is kept.
    fn line(&mut self) -> Result<Option<Vec<u8>>, NodeError> {
        let since = Instant::now();
        // Reading verdicts may have taken in what follows them.
        if let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let rest = self.partial.split_off(end + 1);
            return Ok(Some(std::mem::replace(&mut self.partial, rest)));
        }
        loop {
            match self.stream.read_until(b'\n', &mut self.partial) {
                Ok(_) if self.partial.last() == Some(&b'\n') => return Ok(Some(std::mem::take(&mut self.partial))),
                Ok(_) => return Err(self.closed()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted && since.elapsed() < TIMEOUT => {}
                Err(error) => return Err(self.system("reading from", error)),
            }
        }
    }

    fn parse(&self, line: &[u8]) -> Result<AdminResponse, NodeError> {
        serde_json::from_slice(line).map_err(|error| self.protocol(format!("answer not understood: {error}")))
    }

    fn closed(&self) -> NodeError {
        self.protocol("it closed the connection without an answer; look at its log, and check the certificate")
    }

    fn system(&self, what: &str, error: std::io::Error) -> NodeError {
        if error.kind() == ErrorKind::InvalidData {
            // What rustls says, as of a certificate that the other end does not take.
            return self.protocol(format!("{error}; check the certificate"));
        }
        NodeError::system(format!("{what} {}", self.target))(error)
    }

    fn protocol(&self, why: impl Into<String>) -> NodeError {
        NodeError::Protocol { path: PathBuf::from(self.target.to_string()), why: why.into() }
    }
}
