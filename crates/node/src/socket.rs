//! Sockets by which every daemon is asked and told while it runs: mode 0600, one request and one answer per connection, each a
//! line of JSON.
//!
//! ```text
//! {"show":WHAT}     its state; {"show":null} where there is but one thing to show    {"shown":..}
//! "metrics"         its numbers, as for Prometheus                                   {"metrics":TEXT}
//! "config"          the settings in force                                            {"config":TOML}
//! "reload"          read the settings again                                          {"reloaded":{"changed":[KEY, ..], "removed":[TEXT, ..]}}
//! "stop"            end, and remove the data path, pins included                     "done"
//! {"add":ITEM}, {"remove":ITEM}      where something can come and go: a VTEP         "done"
//! ```
//!
//! What is refused is answered with `{"refused":"one line of reason"}`; then nothing has changed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::{left, run_folder};

/// Longest request, bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// How long one client may keep the daemon waiting for its request, or for each part of its answer. The data path does not
/// wait meanwhile.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(200);
/// After a client that could not be taken in.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// How long a client waits: 5000 VXLAN segments are set up in less.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What a daemon can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request<What = (), Item = Nothing> {
    /// Tell state.
    Show(What),
    /// Tell the numbers that `/metrics` would have.
    Metrics,
    /// Tell the settings in force.
    Config,
    /// Read the settings again and become what they say.
    Reload,
    /// End, and remove everything from the kernel.
    Stop,
    /// Add something; it lasts until the next reload or restart.
    Add(Item),
    /// Remove something.
    Remove(Item),
}

/// Of a daemon that nothing is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nothing {}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<Shown> {
    Done,
    /// State.
    Shown(Shown),
    /// The text of a scrape.
    Metrics(String),
    /// The text of a settings file.
    Config(String),
    /// The settings were read again.
    Reloaded(Reloaded),
    /// It is not done, and nothing has changed; one line says why and what to do.
    Refused(String),
}

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Keys of the settings that are other than before.
    pub changed: Vec<String>,
    /// What had been added at run time, or is no longer in the settings, and is gone.
    pub removed: Vec<String>,
}

/// Counters as they are shown.
pub(crate) fn named(counts: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// The daemon's end; the path goes with it.
pub(crate) struct ControlSocket(Listener);

impl ControlSocket {
    pub(crate) fn bind(path: &Path) -> Result<Self, NodeError> {
        Listener::bind(path, "socket").map(Self)
    }

    /// The next request of somebody who waits, and where its answer goes.
    pub(crate) fn next<R: DeserializeOwned>(&self) -> Option<(R, Reply)> {
        loop {
            let mut reply = self.accept()?;
            match reply.request() {
                Ok(request) => return Some((request, reply)),
                Err(why) => reply.send(&Answer::<()>::Refused(why)),
            }
        }
    }

    /// Whoever waits. Where a descriptor for him is missing he is still there at the next look, which then is not at once.
    fn accept(&self) -> Option<Reply> {
        match self.0.socket.accept() {
            Ok((stream, _)) => Some(Reply(stream)),
            Err(error) => {
                if error.kind() != ErrorKind::WouldBlock {
                    std::thread::sleep(ACCEPT_PAUSE);
                }
                None
            }
        }
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket.as_fd()
    }
}

/// Where one answer goes.
pub(crate) struct Reply(UnixStream);

impl Reply {
    /// User and process at the other end of the socket, for the log.
    pub(crate) fn peer(&self) -> String {
        match rustix::net::sockopt::socket_peercred(&self.0) {
            Ok(peer) => format!("uid {} (process {})", peer.uid.as_raw(), peer.pid.as_raw_nonzero()),
            Err(_) => "somebody".to_owned(),
        }
    }

    fn request<R: DeserializeOwned>(&mut self) -> Result<R, String> {
        let timeouts = self.0.set_nonblocking(false).and_then(|()| self.0.set_read_timeout(Some(CLIENT_TIMEOUT)));
        timeouts.and_then(|()| self.0.set_write_timeout(Some(CLIENT_TIMEOUT))).map_err(|error| error.to_string())?;
        let mut line = Vec::new();
        let mut reader = BufReader::new(Read::by_ref(&mut self.0).take(REQUEST_BYTES_MAX));
        reader.read_until(b'\n', &mut line).map_err(|error| format!("no request came in time ({error})"))?;
        serde_json::from_slice(&line).map_err(|error| format!("request not understood: {error}"))
    }

    /// A client that does not read in time goes without the rest.
    pub(crate) fn send<S: Serialize>(&mut self, answer: &Answer<S>) {
        let mut text = serde_json::to_vec(answer).expect("an answer has no maps with keys that are not text");
        text.push(b'\n');
        let _ = self.0.write_all(&text);
    }
}

/// Asks the daemon that listens on `path`.
///
/// # Errors
/// [`NodeError::System`] when none listens there, [`NodeError::Refused`] with its reason, [`NodeError::Protocol`].
pub fn ask<W: Serialize, I: Serialize, S: DeserializeOwned>(
    kind: DaemonKind,
    path: &Path,
    request: &Request<W, I>,
) -> Result<Answer<S>, NodeError> {
    ask_on(connect(kind, path)?, path, request)
}

/// The state of the daemon that listens on `path`.
///
/// # Errors
/// As for [`ask`].
pub fn show<W: Serialize, S: DeserializeOwned>(kind: DaemonKind, path: &Path, what: W) -> Result<S, NodeError> {
    match ask(kind, path, &Request::<W, Nothing>::Show(what))? {
        Answer::Shown(shown) => Ok(shown),
        _ => Err(strange(path)),
    }
}

/// Its metrics, as the text of a scrape.
///
/// # Errors
/// As for [`ask`].
pub fn metrics(kind: DaemonKind, path: &Path) -> Result<String, NodeError> {
    match ask::<_, _, IgnoredAny>(kind, path, &Request::<(), Nothing>::Metrics)? {
        Answer::Metrics(text) => Ok(text),
        _ => Err(strange(path)),
    }
}

/// Settings in force, as the text of a file.
///
/// # Errors
/// As for [`ask`].
pub fn config(kind: DaemonKind, path: &Path) -> Result<String, NodeError> {
    match ask::<_, _, IgnoredAny>(kind, path, &Request::<(), Nothing>::Config)? {
        Answer::Config(text) => Ok(text),
        _ => Err(strange(path)),
    }
}

/// Has the daemon read its settings again.
///
/// # Errors
/// As for [`ask`]. [`NodeError::Refused`]: it goes on as before.
pub fn reload(kind: DaemonKind, path: &Path) -> Result<Reloaded, NodeError> {
    match ask::<_, _, IgnoredAny>(kind, path, &Request::<(), Nothing>::Reload)? {
        Answer::Reloaded(reloaded) => Ok(reloaded),
        _ => Err(strange(path)),
    }
}

/// What [`stop`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A daemon, which has ended; its data path is removed.
    Daemon,
    /// None, but the data path that an earlier one pinned here, which is removed.
    DataPath(PathBuf),
}

/// Ends the daemon, a process of its own, and waits until it has ended: a start that follows finds nothing of it. Where none answers the
/// data path goes that an earlier one with this socket left at work.
///
/// # Errors
/// As for [`ask`].
pub fn stop(kind: DaemonKind, path: &Path) -> Result<Stopped, NodeError> {
    let stream = match connect(kind, path) {
        Ok(stream) => stream,
        Err(NodeError::System { what, source }) if is_nobody(&source) => {
            return match left::remove(kind, path)? {
                Some(pin_dir) => Ok(Stopped::DataPath(pin_dir)),
                None => Err(NodeError::System { what: still_pinned(kind, what), source }),
            };
        }
        Err(error) => return Err(error),
    };
    let daemon = Process::behind(&stream).map_err(NodeError::at("asking who listens on", path))?;
    ask_on::<_, IgnoredAny>(stream, path, &Request::<(), Nothing>::Stop)?;
    if daemon.has_ended_within(ANSWER_TIMEOUT).map_err(NodeError::at("waiting for the end of the daemon at", path))? {
        return Ok(Stopped::Daemon);
    }
    let why = format!("has not ended within {} s; look at its log", ANSWER_TIMEOUT.as_secs());
    Err(NodeError::Protocol { path: path.to_owned(), why })
}

/// Whether nobody listens at a socket.
fn is_nobody(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// An error's first half, `what`, with a word about a data path that is pinned at the daemon's usual place without a note of its socket.
fn still_pinned(kind: DaemonKind, what: String) -> String {
    let pinned = left::usual_pins(kind);
    pinned.map_or(what.clone(), |dir| {
        let (dir, word) = (dir.display(), kind.word());
        format!(
            "a data path is still at work, pinned in {dir}, and no daemon with this socket has noted it; name the socket that its \
             settings had, or start it with these (weft node {word}) and stop it again; {what}"
        )
    })
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

fn connect(kind: DaemonKind, path: &Path) -> Result<UnixStream, NodeError> {
    UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => NodeError::at("run as root: connecting to", path)(error),
        _ => {
            let (what, word) = (kind.title(), kind.word());
            NodeError::at(
                &format!("no {what} answers; start one (weft node {word}) or name its --socket: connecting to"),
                path,
            )(error)
        }
    })
}

fn ask_on<R: Serialize, S: DeserializeOwned>(
    mut stream: UnixStream,
    path: &Path,
    request: &R,
) -> Result<Answer<S>, NodeError> {
    let mut text = serde_json::to_vec(request).expect("a request has no maps with keys that are not text");
    text.push(b'\n');
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(NodeError::system("setting a timeout"))?;
    stream.write_all(&text).map_err(NodeError::at("writing to", path))?;
    let not_understood =
        |error| NodeError::Protocol { path: path.to_owned(), why: format!("answer not understood: {error}") };
    match serde_json::from_reader(stream).map_err(not_understood)? {
        Answer::Refused(why) => Err(NodeError::Refused(why)),
        answer => Ok(answer),
    }
}

fn strange(path: &Path) -> NodeError {
    NodeError::Protocol { path: path.to_owned(), why: "answered without what was asked for".to_owned() }
}

/// A Unix socket that only this user may open; its path goes with it.
pub(crate) struct Listener {
    pub(crate) socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens on `path` with mode 0600, without blocking, in a folder that is made if it lies under `/run/weft`. A socket left
    /// behind by a process of this user or of root that was killed is replaced. `field` is the setting that the path came from.
    pub(crate) fn bind(path: &Path, field: &'static str) -> Result<Self, NodeError> {
        run_folder::for_socket(path)?;
        if UnixStream::connect(path).is_ok() {
            return Err(NodeError::SocketInUse { path: path.to_owned() });
        }
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                let why = format!("{} exists and is no socket; choose another path", path.display());
                return Err(NodeError::config(field, why));
            }
            Ok(found) if ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) => {
                let why = format!("{} belongs to somebody else; remove it or choose another path", path.display());
                return Err(NodeError::config(field, why));
            }
            Ok(_) => std::fs::remove_file(path).map_err(NodeError::at("replacing", path))?,
            Err(_) => {}
        }
        let socket = listen_privately(path).map_err(NodeError::at("making the socket", path))?;
        Ok(Self { socket, path: path.to_owned() })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Nothing depends on the path once nobody listens.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn listen_privately(path: &Path) -> std::io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The mode of the descriptor becomes that of the path: there is no moment in which others may connect.
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    listen(&fd, 64)?;
    Ok(fd.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        Listener::bind(path, "socket").map(drop).unwrap_err().to_string()
    }

    #[test]
    fn only_this_user_may_open_it_and_a_dead_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let first = Listener::bind(&path, "field").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(refusal(&path).contains("belongs to a running process"), "{}", refusal(&path));
        drop(first);
        assert!(!path.exists(), "its path went with it");
        drop(listen_privately(&path).unwrap());
        Listener::bind(&path, "field").unwrap();
    }

    #[test]
    fn a_dead_one_of_somebody_else_is_left_alone() {
        if !weft_needs::root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        drop(listen_privately(&path).unwrap());
        std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
        assert!(refusal(&path).contains("belongs to somebody else"), "{}", refusal(&path));
        assert!(path.exists());
    }

    #[test]
    fn a_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "precious").unwrap();
        let error = refusal(&path);
        assert!(error.starts_with("socket: ") && error.contains("is no socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
