//! What a ToR's reporter is told at start.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_wire::directory::PORT;

use crate::error::NodeError;
use crate::runner::{DaemonKind, Settings};

/// UDP port that reports come from unless configured otherwise.
pub const REPORTER_PORT: u16 = 5302;

/// The configuration file of `weft node tor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TorConfig {
    /// The ToR's LA: where its reports come from.
    pub la: Ipv4Addr,
    /// UDP port of its reports; 0 for any.
    #[serde(default = "port")]
    pub port: u16,
    /// Directory servers, at least one.
    pub directory_servers: Vec<SocketAddrV4>,
    /// File with the key of the tags: 32 hexadecimal digits, mode 0600, derived from the directory servers' secret for
    /// service 0 and `la`. Without it servers must be open.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Which secret the key was derived from.
    #[serde(default)]
    pub key_id: u32,
    /// Directory in a bpffs where the switch's data path is pinned.
    pub pin_dir: PathBuf,
    /// Path of the reporter's control socket.
    #[serde(default = "socket", alias = "status_socket")]
    pub socket: PathBuf,
    /// Address and TCP port for `/metrics`, `/healthz` and `/readyz`: HTTP that everybody who reaches it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_listen: Option<SocketAddrV4>,
}

fn socket() -> PathBuf {
    DaemonKind::Tor.socket()
}

fn port() -> u16 {
    REPORTER_PORT
}

impl TorConfig {
    /// A configuration to start from.
    pub fn example() -> Self {
        Self {
            la: Ipv4Addr::new(10, 1, 0, 1),
            port: REPORTER_PORT,
            directory_servers: vec![SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), PORT)],
            key_file: Some("/etc/weft/tor.key".into()),
            key_id: 0,
            pin_dir: "/run/weft/bpf/switch".into(),
            socket: socket(),
            http_listen: None,
        }
    }
}

impl Settings for TorConfig {
    const LIVE: &'static [&'static str] = &["directory_servers", "key_file", "key_id"];

    fn check(&self) -> Result<(), NodeError> {
        if self.directory_servers.is_empty() {
            return Err(NodeError::config("directory_servers", "is empty; name at least one server as ADDRESS:PORT"));
        }
        Ok(())
    }

    fn places(&self) -> (&Path, Option<&Path>) {
        (&self.socket, Some(&self.pin_dir))
    }

    fn http_listen(&self) -> Option<SocketAddrV4> {
        self.http_listen
    }
}
