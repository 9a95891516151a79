//! Sockets by which a daemon is asked and told while it runs: mode 0600, one request and one answer per connection, each a
//! line of JSON.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::NodeError;
use crate::unix;

/// Longest request, bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// How long one client may keep the daemon waiting for its request, or for each part of its answer. The data path does not
/// wait meanwhile.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a client waits: 5000 VXLAN segments are set up in less.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer, which may be that a request is refused with one line of reason.
pub(crate) trait Answer: Serialize + DeserializeOwned {
    fn refused(why: String) -> Self;

    /// The reason of a refusal, or the answer.
    fn accepted(self) -> Result<Self, String>;
}

/// Makes an enum with a variant `Refused(String)` an [`Answer`].
macro_rules! can_refuse {
    ($answer:ty) => {
        impl $crate::command::Answer for $answer {
            fn refused(why: String) -> Self {
                Self::Refused(why)
            }

            fn accepted(self) -> Result<Self, String> {
                if let Self::Refused(why) = self { Err(why) } else { Ok(self) }
            }
        }
    };
}

pub(crate) use can_refuse;

/// The daemon's end; the path goes with it.
pub(crate) struct CommandSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl CommandSocket {
    pub(crate) fn bind(path: &Path) -> Result<Self, NodeError> {
        Ok(Self { listener: unix::listen_on(path, "socket")?, path: path.to_owned() })
    }

    /// The next request of somebody who waits, and where its answer goes.
    pub(crate) fn next<R: DeserializeOwned, A: Answer>(&self) -> Option<(R, Reply)> {
        loop {
            let (stream, _) = self.listener.accept().ok()?;
            let mut reply = Reply(stream);
            match reply.request() {
                Ok(request) => return Some((request, reply)),
                Err(why) => reply.send(&A::refused(why)),
            }
        }
    }
}

impl AsFd for CommandSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for CommandSocket {
    fn drop(&mut self) {
        // Nothing depends on the path once nobody listens.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where one answer goes.
pub(crate) struct Reply(UnixStream);

impl Reply {
    fn request<R: DeserializeOwned>(&mut self) -> Result<R, String> {
        let timeouts = self.0.set_nonblocking(false).and_then(|()| self.0.set_read_timeout(Some(CLIENT_TIMEOUT)));
        timeouts.and_then(|()| self.0.set_write_timeout(Some(CLIENT_TIMEOUT))).map_err(|error| error.to_string())?;
        let mut line = Vec::new();
        let mut reader = BufReader::new(Read::by_ref(&mut self.0).take(REQUEST_BYTES_MAX));
        reader.read_until(b'\n', &mut line).map_err(|error| format!("no request came in time ({error})"))?;
        serde_json::from_slice(&line).map_err(|error| format!("request not understood: {error}"))
    }

    /// A client that does not read in time goes without the rest.
    pub(crate) fn send<A: Answer>(&mut self, answer: &A) {
        let mut text = serde_json::to_vec(answer).expect("an answer has no maps with keys that are not text");
        text.push(b'\n');
        let _ = self.0.write_all(&text);
    }
}

/// Asks the daemon that listens on `path`; `nobody` says what to do when none does.
pub(crate) fn ask<R: Serialize, A: Answer>(path: &Path, nobody: &str, request: &R) -> Result<A, NodeError> {
    ask_on(connect(path, nobody)?, path, request)
}

/// Asks the daemon to end, and waits until its process has: a start that follows finds nothing of it.
pub(crate) fn ask_to_end<R: Serialize, A: Answer>(path: &Path, nobody: &str, request: &R) -> Result<(), NodeError> {
    let stream = connect(path, nobody)?;
    let daemon = Process::behind(&stream).map_err(NodeError::at("asking who listens on", path))?;
    ask_on::<R, A>(stream, path, request)?;
    if daemon.has_ended_within(ANSWER_TIMEOUT).map_err(NodeError::at("waiting for the end of the daemon at", path))? {
        return Ok(());
    }
    let why = format!("has not ended within {} s; look at its log", ANSWER_TIMEOUT.as_secs());
    Err(NodeError::Protocol { path: path.to_owned(), why })
}

/// A process that stays the same one however numbers are given anew.
struct Process(OwnedFd);

impl Process {
    /// The one that listens at the other end.
    fn behind(stream: &UnixStream) -> std::io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(Self(rustix::process::pidfd_open(peer.pid, rustix::process::PidfdFlags::empty())?))
    }

    fn has_ended_within(&self, limit: Duration) -> std::io::Result<bool> {
        let limit = Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        Ok(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))? > 0)
    }
}

fn connect(path: &Path, nobody: &str) -> Result<UnixStream, NodeError> {
    UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => NodeError::at("run as root: connecting to", path)(error),
        _ => NodeError::at(&format!("{nobody}: connecting to"), path)(error),
    })
}

fn ask_on<R: Serialize, A: Answer>(mut stream: UnixStream, path: &Path, request: &R) -> Result<A, NodeError> {
    let mut text = serde_json::to_vec(request).expect("a request has no maps with keys that are not text");
    text.push(b'\n');
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(NodeError::system("setting a timeout"))?;
    stream.write_all(&text).map_err(NodeError::at("writing to", path))?;
    let protocol = |why: String| NodeError::Protocol { path: path.to_owned(), why };
    let answer: A =
        serde_json::from_reader(stream).map_err(|error| protocol(format!("answer not understood: {error}")))?;
    answer.accepted().map_err(NodeError::Refused)
}
