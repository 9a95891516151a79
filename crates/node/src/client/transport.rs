//! The stream under a session.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::error::NodeError;
use crate::tls::{self, TlsFiles};

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Where a directory server takes sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Its Unix socket.
    Socket(PathBuf),
    /// Its TLS address; the server's certificate must name the address.
    Server {
        address: SocketAddr,
        /// Our certificate, and the CA of the server's.
        files: TlsFiles,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(out),
            Self::Server { address, .. } => address.fmt(out),
        }
    }
}

impl<P: AsRef<Path>> From<P> for Target {
    fn from(path: P) -> Self {
        Self::Socket(path.as_ref().to_owned())
    }
}

/// A connected stream.
pub(super) enum Transport {
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Transport {
    pub(super) fn connect(target: &Target, timeout: Duration) -> Result<Self, NodeError> {
        let transport = match target {
            Target::Socket(path) => {
                let what = format!(
                    "connecting to {} (is the directory server running, and are you its user?)",
                    path.display()
                );
                Self::Unix(UnixStream::connect(path).map_err(NodeError::system(what))?)
            }
            Target::Server { address, files } => Self::Tls(Box::new(connect_tls(*address, files, timeout)?)),
        };
        transport.set_timeout(timeout).map_err(NodeError::system("setting a timeout"))?;
        Ok(transport)
    }

    /// Waits until there is something to read, at most `timeout`.
    pub(super) fn wait_input(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let fd = match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        };
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// How long a read or a write may take.
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout))),
            Self::Tls(stream) => {
                stream.sock.set_read_timeout(Some(timeout)).and(stream.sock.set_write_timeout(Some(timeout)))
            }
        }
    }
}

fn connect_tls(
    address: SocketAddr,
    files: &TlsFiles,
    timeout: Duration,
) -> Result<StreamOwned<ClientConnection, TcpStream>, NodeError> {
    let config = tls::client(files)?;
    let failed = || NodeError::system(format!("connecting to {address} (is the directory server running there?)"));
    let stream = TcpStream::connect_timeout(&address, timeout.min(CONNECT_MAX)).map_err(failed())?;
    stream.set_nodelay(true).map_err(failed())?;
    stream.set_read_timeout(Some(timeout.min(CONNECT_MAX))).map_err(failed())?;
    let refused = |error: rustls::Error| NodeError::Protocol {
        path: address.to_string().into(),
        why: format!("no TLS session: {error}; check the certificates in {}", files.cert.display()),
    };
    let mut connection = ClientConnection::new(config, ServerName::from(address.ip())).map_err(refused)?;
    let mut stream = stream;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| refused(rustls::Error::General(error.to_string())))?;
    }
    Ok(StreamOwned::new(connection, stream))
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
