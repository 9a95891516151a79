//! Unix sockets that only this user may open, among them those that tell a daemon's state.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::NodeError;
use crate::run_folder;

/// Listens on `path` with mode 0600, without blocking, in a folder that is made if it lies under `/run/weft`. A socket left
/// behind by a process that was killed is replaced. `field` is the setting that the path came from.
pub(crate) fn listen_on(path: &Path, field: &'static str) -> Result<UnixListener, NodeError> {
    run_folder::for_socket(path)?;
    if UnixStream::connect(path).is_ok() {
        return Err(NodeError::SocketInUse { path: path.to_owned() });
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            let why = format!("{} exists and is no socket; choose another path", path.display());
            return Err(NodeError::config(field, why));
        }
        Ok(_) => std::fs::remove_file(path).map_err(NodeError::at("replacing", path))?,
        Err(_) => {}
    }
    listen_privately(path).map_err(NodeError::at("making the socket", path))
}

/// How long one reader of a status may keep a daemon waiting.
const WRITE_TIMEOUT: Duration = Duration::from_millis(50);
/// How long a daemon may take to tell its status.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket that tells whoever connects the daemon's state, one JSON object; the path goes with it.
pub(crate) struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl StatusSocket {
    pub(crate) fn bind(path: &Path) -> Result<Self, NodeError> {
        Ok(Self { listener: listen_on(path, "status_socket")?, path: path.to_owned() })
    }

    /// Answers everybody who waits.
    pub(crate) fn answer<T: Serialize>(&self, status: impl Fn() -> T) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let text = serde_json::to_vec(&status()).expect("a status has no maps with keys that are not text");
            // A reader that does not read in time goes without the rest.
            let _ = stream.set_write_timeout(Some(WRITE_TIMEOUT)).and_then(|()| stream.write_all(&text));
        }
    }
}

impl AsFd for StatusSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        // Nothing depends on the path once nobody listens.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads the state of the daemon that listens on `path`; `whose` names it.
pub(crate) fn read_status<T: DeserializeOwned>(path: &Path, whose: &str) -> Result<T, NodeError> {
    let what = format!("connecting to the {whose} at");
    let stream = UnixStream::connect(path).map_err(NodeError::at(&what, path))?;
    stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(NodeError::system("setting a timeout"))?;
    serde_json::from_reader(stream)
        .map_err(|error| NodeError::Protocol { path: path.to_owned(), why: format!("status not understood: {error}") })
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
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn only_this_user_may_open_it_and_a_dead_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let first = listen_on(&path, "field").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let error = listen_on(&path, "field").unwrap_err().to_string();
        assert!(error.contains("belongs to a running process"), "{error}");
        drop(first);
        listen_on(&path, "field").unwrap();
    }

    #[test]
    fn a_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "precious").unwrap();
        let error = listen_on(&path, "admin_socket").unwrap_err().to_string();
        assert!(error.starts_with("admin_socket: ") && error.contains("is no socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
