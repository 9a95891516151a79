//! The event loop of the admin socket: lines in, updates of all clients together into one record, lines out.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use weft_control::directory::Request;

use super::protocol::{AdminRequest, AdminResponse, LIST_MAX, MappingRow};
use super::service::{Failure, Service};
use crate::error::NodeError;
use crate::poll::Poller;
use crate::stop::Stop;
use crate::unix;

/// Longest line, bytes: room for the largest `set-many`.
const LINE_MAX: usize = 16 << 20;
/// Clients at a time.
const CLIENTS_MAX: usize = 256;

const STOP: u64 = 0;
const LISTENER: u64 = 1;
const FIRST_CLIENT: u64 = 2;

/// A listening socket that only this user may open; the path goes with it.
pub(super) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    pub(super) fn bind(path: &Path) -> Result<Self, NodeError> {
        Ok(Self { listener: unix::listen_on(path, "admin_socket")?, path: path.to_owned() })
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        // Nothing depends on the path once nobody listens.
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Nothing more is read; it is closed once its output is gone.
    closing: bool,
}

/// A line of a client: a request, or the answer to what is none.
struct Line {
    client: u64,
    request: Result<AdminRequest, AdminResponse>,
}

/// The loop's state.
pub(super) struct Admin<'a> {
    service: Service,
    status: &'a dyn Fn(&Service) -> super::protocol::DirectoryStatus,
    clients: BTreeMap<u64, Client>,
    next_client: u64,
    poller: Poller,
}

impl<'a> Admin<'a> {
    pub(super) fn new(
        service: Service,
        status: &'a dyn Fn(&Service) -> super::protocol::DirectoryStatus,
    ) -> Result<Self, NodeError> {
        Ok(Self { service, status, clients: BTreeMap::new(), next_client: FIRST_CLIENT, poller: Poller::new()? })
    }

    /// Serves clients until it is told to stop.
    pub(super) fn serve(mut self, socket: &AdminSocket, stop: &Stop) -> Result<(), NodeError> {
        self.poller.add(stop, STOP)?;
        self.poller.add(&socket.listener, LISTENER)?;
        loop {
            let ready = self.poller.wait(None)?;
            if ready.contains(&STOP) {
                return Ok(());
            }
            let mut lines = Vec::new();
            for token in ready {
                if token == LISTENER {
                    self.accept(&socket.listener)?;
                } else {
                    self.read(token, &mut lines);
                }
            }
            self.carry_out(lines);
            self.write_all()?;
        }
    }

    fn accept(&mut self, listener: &UnixListener) -> Result<(), NodeError> {
        while let Ok((stream, _)) = listener.accept() {
            if self.clients.len() >= CLIENTS_MAX {
                continue;
            }
            stream.set_nonblocking(true).map_err(NodeError::system("setting up a client"))?;
            self.poller.add(&stream, self.next_client)?;
            let client = Client { stream, input: Vec::new(), output: Vec::new(), closing: false };
            self.clients.insert(self.next_client, client);
            self.next_client += 1;
        }
        Ok(())
    }

    /// Reads what a client sent and splits it into lines.
    fn read(&mut self, token: u64, lines: &mut Vec<Line>) {
        let Some(client) = self.clients.get_mut(&token).filter(|client| !client.closing) else { return };
        let mut chunk = [0; 65_536];
        loop {
            match client.stream.read(&mut chunk) {
                Ok(0) => client.closing = true,
                Ok(count) => {
                    client.input.extend_from_slice(&chunk[..count]);
                    if chunk[..count].contains(&b'\n') || client.input.len() > LINE_MAX {
                        take_lines(client, token, lines);
                    }
                    if !client.closing {
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => client.closing = true,
            }
            return;
        }
    }

    /// Carries out lines in order; updates that follow each other share a record.
    fn carry_out(&mut self, lines: Vec<Line>) {
        let mut updates: Vec<(u64, Request)> = Vec::new();
        for line in lines {
            match line.request {
                Ok(request) => match request.update() {
                    Some(update) => updates.push((line.client, update)),
                    None => {
                        self.commit(&mut updates);
                        let response = self.look(&request);
                        self.respond(line.client, &response);
                    }
                },
                Err(response) => {
                    self.commit(&mut updates);
                    self.respond(line.client, &response);
                }
            }
        }
        self.commit(&mut updates);
    }

    fn commit(&mut self, updates: &mut Vec<(u64, Request)>) {
        if updates.is_empty() {
            return;
        }
        let (clients, requests): (Vec<u64>, Vec<Request>) = updates.drain(..).unzip();
        for (client, verdict) in clients.into_iter().zip(self.service.commit(requests)) {
            let response = match verdict {
                Ok(revision) => AdminResponse::committed(revision),
                Err(Failure::Refused(refusal)) => AdminResponse::failed("refused", refusal),
                Err(Failure::Store(error)) => AdminResponse::failed("store", error),
            };
            self.respond(client, &response);
        }
    }

    fn look(&self, request: &AdminRequest) -> AdminResponse {
        let ok = AdminResponse { ok: true, ..AdminResponse::default() };
        match request {
            AdminRequest::Get { aa } => self.service.read(|table| AdminResponse {
                revision: Some(table.revision()),
                mapping: table.record(*aa).and_then(|record| MappingRow::of(*aa, record)),
                ..ok
            }),
            AdminRequest::List { from, limit } => self.service.read(|table| {
                let limit = limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
                let mut rows = table.mappings_from(from.unwrap_or(Ipv4Addr::UNSPECIFIED), limit + 1);
                let next = (rows.len() > limit).then(|| rows.pop()).flatten().map(|(aa, _)| aa);
                let mappings = rows.into_iter().filter_map(|(aa, record)| MappingRow::of(aa, record)).collect();
                AdminResponse { revision: Some(table.revision()), mappings: Some(mappings), next, ..ok }
            }),
            _ => AdminResponse { status: Some((self.status)(&self.service)), ..ok },
        }
    }

    fn respond(&mut self, client: u64, response: &AdminResponse) {
        let Some(client) = self.clients.get_mut(&client) else { return };
        let line = serde_json::to_vec(response).expect("a response has no maps with keys that are not text");
        client.output.extend_from_slice(&line);
        client.output.push(b'\n');
    }

    /// Sends what can be sent and closes clients that are done.
    fn write_all(&mut self) -> Result<(), NodeError> {
        let mut done = Vec::new();
        for (token, client) in &mut self.clients {
            let (pending, open) = client.flush();
            if !open || (client.closing && !pending) {
                done.push(*token);
            } else {
                self.poller.want_write(&client.stream, *token, pending)?;
            }
        }
        for token in done {
            if let Some(client) = self.clients.remove(&token) {
                self.poller.remove(&client.stream);
            }
        }
        Ok(())
    }
}

impl Client {
    /// Writes until the socket is full. Returns whether output is left, and whether the client is still there.
    fn flush(&mut self) -> (bool, bool) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) if count > 0 => {
                    self.output.drain(..count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (true, true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return (false, false),
            }
        }
        (false, true)
    }
}

/// Moves whole lines out of a client's input.
fn take_lines(client: &mut Client, token: u64, lines: &mut Vec<Line>) {
    let Some(end) = client.input.iter().rposition(|byte| *byte == b'\n') else {
        if client.input.len() > LINE_MAX {
            client.closing = true;
            client.input = Vec::new();
            let why = format!("a line is longer than {LINE_MAX} bytes; send fewer mappings at a time");
            lines.push(Line { client: token, request: Err(AdminResponse::failed("request", why)) });
        }
        return;
    };
    let rest = client.input.split_off(end + 1);
    let whole = std::mem::replace(&mut client.input, rest);
    for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let request = serde_json::from_slice(line)
            .map_err(|error| AdminResponse::failed("request", format!("not a request: {error}")));
        lines.push(Line { client: token, request });
    }
}
