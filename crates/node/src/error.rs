//! Why a daemon could not start or go on: one line each, with the remedy.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use weft_control::vtep::Fault;
use weft_datapath::DatapathError;

use crate::store::StoreError;

/// What stops a daemon or a client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// A setting that cannot work.
    #[error("{field}: {why}")]
    Config {
        /// Name of the setting.
        field: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// A configuration file that cannot be read or understood.
    #[error("{path}: {why}")]
    ConfigFile {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A setting that a reload cannot change.
    #[error("{key}: cannot change at run time, what was made at the start depends on it; restart the daemon")]
    Fixed { key: String },
    /// A key file that must not or cannot be used.
    #[error("key file {path}: {why}")]
    KeyFile {
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// A certificate or its key that cannot be used.
    #[error("TLS file {path}: {why}")]
    Tls {
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// Packets of the interface would not fit the fabric with their outer headers.
    #[error(
        "interface `{interface}` has MTU {mtu} and VL2 adds 40 bytes, but the underlay carries {underlay_mtu}; set its \
         MTU to {most} or less (ip link set {interface} mtu {most}), raise `underlay_mtu`, or set `clamp_mtu`"
    )]
    Mtu {
        interface: String,
        /// Its MTU, bytes.
        mtu: u32,
        /// What the fabric carries, bytes.
        underlay_mtu: u32,
        /// The largest MTU that fits, bytes.
        most: u32,
    },
    /// Somebody else listens there.
    #[error("address {address} is in use; stop the process that has it (ss -lunp) or choose another address")]
    AddressInUse { address: SocketAddrV4 },
    /// A folder under `/run/weft` that somebody else could have made.
    #[error("folder {path} {fault}; {remedy}")]
    Folder {
        path: PathBuf,
        /// What is wrong with it.
        fault: &'static str,
        /// How the reader mends the folder.
        remedy: String,
    },
    /// Somebody else listens there.
    #[error("socket {path} belongs to a running process; stop that process or choose another path")]
    SocketInUse { path: PathBuf },
    /// The limit of file descriptors is too low to be of use.
    #[error(
        "this process may open {limit} files and needs at least {needed}; run `ulimit -n 1024` before it, or set \
         LimitNOFILE=1024 in its unit"
    )]
    Descriptors {
        limit: usize,
        /// What is open at the start, and what clients and the store need.
        needed: usize,
    },
    /// A helper program failed.
    #[error("`{command}` failed: {output}")]
    Command { command: String, output: String },
    /// The data path.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system refused something.
    #[error("{what}: {source}")]
    System { what: String, source: std::io::Error },
    /// A thread of ours failed.
    #[error("the thread `{thread}` failed ({said}): a bug; restart the daemon")]
    Panic {
        thread: String,
        /// What it said.
        said: String,
    },
    /// A server did not understand the client, or the client the server.
    #[error("daemon at {path}: {why}")]
    Protocol { path: PathBuf, why: String },
    /// A server refused a request.
    #[error("refused: {0}")]
    Refused(String),
    /// No answer in time.
    #[error("no valid answer from {server} within {timeout_ms} ms; check the address, the key file and the server")]
    NoAnswer {
        server: SocketAddrV4,
        /// How long was waited, milliseconds.
        timeout_ms: u64,
    },
}

impl From<Fault> for NodeError {
    fn from(fault: Fault) -> Self {
        Self::Config { field: fault.setting, why: fault.why }
    }
}

impl NodeError {
    /// A setting that cannot work.
    pub fn config(field: &'static str, why: impl Into<String>) -> Self {
        Self::Config { field, why: why.into() }
    }

    /// For `map_err`: what was tried when the system refused.
    pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System { what, source: source.into() }
    }

    /// For `map_err`: a file or socket that could not be used.
    pub fn at<E: Into<std::io::Error>>(what: &str, path: &Path) -> impl FnOnce(E) -> Self {
        Self::system(format!("{what} {}", path.display()))
    }
}
