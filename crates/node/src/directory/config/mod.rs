//! What a directory server is told at start.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_control::directory::{KeyRing, Rules};
use weft_wire::directory::PORT;

use super::UPDATES_MAX;
use super::protocol::RulesRow;
use super::sessions::Terms;
use crate::aa_block;
use crate::agent::AGENT_PORT;
use crate::error::NodeError;
use crate::key;
use crate::rbridge::XdpChoice;
use crate::runner::{DaemonKind, Settings};
use crate::tls::{self, TlsFiles};

mod quota;
mod store;

pub(super) use quota::Quotas;
pub use quota::{QuotaConfig, ServiceConfig, SessionTimers};
pub use store::StoreConfig;

/// Where a directory server has sessions unless configured otherwise.
pub const SOCKET_DEFAULT: &str = "/run/weft/directory/admin.sock";
/// Threads that answer look-ups: more would only wait for each other.
const LOOKUP_THREADS_MAX: usize = 64;

/// The configuration file of `weft node directory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Address and UDP port for look-ups. One address, not `0.0.0.0`: it is part of every tag.
    pub listen: SocketAddrV4,
    /// Path of the server's control socket.
    #[serde(default = "control_socket")]
    pub socket: PathBuf,
    /// Path of the Unix socket for sessions, by which clients ask and update. Made with mode 0600: who may open it may change mappings.
    pub admin_socket: PathBuf,
    /// Where the log of updates is kept.
    pub store: StoreConfig,
    /// File with the secret that everybody's key is derived from: 32 hexadecimal digits, mode 0600. Needed unless `open`
    /// is set.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Which secret that is.
    #[serde(default)]
    pub key_id: u32,
    /// More secrets that are valid, while one replaces another.
    #[serde(default)]
    pub more_keys: Vec<KeyFile>,
    /// Address and TCP port for sessions over mutual TLS.
    #[serde(default)]
    pub tls_listen: Option<SocketAddrV4>,
    /// Files for these sessions.
    #[serde(default)]
    pub tls: Option<TlsFiles>,
    /// File with the SHA-256 fingerprints of certificates that are no longer good, one a line, as
    /// `openssl x509 -noout -fingerprint -sha256` prints them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_revoked: Option<PathBuf>,
    /// Address and TCP port for `/metrics`, `/healthz` and `/readyz`: HTTP that everybody who reaches it may read.
    #[serde(default)]
    pub http_listen: Option<SocketAddrV4>,
    /// How long an update may wait for the store, milliseconds.
    #[serde(default = "default_update_timeout_ms")]
    pub update_timeout_ms: u64,
    /// UDP port on which agents take corrections.
    #[serde(default = "default_agent_port")]
    pub agent_port: u16,
    /// The block that all AAs come from, as `20.0.0.0/8`.
    pub aa_block: String,
    /// The LAs of all ToR switches; without the list any LA is taken.
    #[serde(default)]
    pub tor_las: Option<Vec<Ipv4Addr>>,
    /// Answer everybody: no key. Only on a loopback address, or with `lab`.
    #[serde(default)]
    pub open: bool,
    /// Threads that answer look-ups, each with its own socket; by default one for each CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup_threads: Option<usize>,
    /// Interface at which look-ups are answered by XDP, before they reach the server; without it the server answers all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_interface: Option<String>,
    /// Where XDP runs at that interface.
    #[serde(default)]
    pub xdp: XdpChoice,
    /// Mappings that there is room for at the interface, 64 bytes each; look-ups of others are the server's.
    #[serde(default = "default_xdp_mappings")]
    pub xdp_mappings: u32,
    /// This is a lab whose network nobody else can reach: `open` may be used on any address.
    #[serde(default)]
    pub lab: bool,
    /// How long sessions over TLS are waited for.
    #[serde(default)]
    pub sessions: SessionTimers,
    /// What each service may take.
    #[serde(default)]
    pub quota: QuotaConfig,
    /// What is said of single services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceConfig>,
}

/// A secret in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    pub id: u32,
    /// 32 hexadecimal digits, mode 0600.
    pub file: PathBuf,
}

fn control_socket() -> PathBuf {
    DaemonKind::Directory.socket()
}

fn default_update_timeout_ms() -> u64 {
    5000
}

fn default_xdp_mappings() -> u32 {
    1 << 18
}

fn default_agent_port() -> u16 {
    AGENT_PORT
}

impl DirectoryConfig {
    /// A configuration to start from.
    pub fn example() -> Self {
        Self {
            listen: SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), PORT),
            socket: control_socket(),
            admin_socket: SOCKET_DEFAULT.into(),
            store: "/var/lib/weft/directory.redb".into(),
            key_file: Some("/etc/weft/directory.key".into()),
            key_id: 0,
            more_keys: Vec::new(),
            tls_listen: None,
            tls: None,
            tls_revoked: None,
            http_listen: None,
            update_timeout_ms: default_update_timeout_ms(),
            agent_port: default_agent_port(),
            aa_block: "20.0.0.0/8".to_owned(),
            tor_las: Some(vec![Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)]),
            open: false,
            lookup_threads: None,
            xdp_interface: None,
            xdp: XdpChoice::default(),
            xdp_mappings: default_xdp_mappings(),
            lab: false,
            sessions: SessionTimers::default(),
            quota: QuotaConfig::example(),
            services: Vec::new(),
        }
    }

    /// The secrets.
    pub(super) fn keys(&self) -> Result<KeyRing, NodeError> {
        let Some(first) = &self.key_file else { return Ok(KeyRing::open()) };
        let files = std::iter::once((self.key_id, first)).chain(self.more_keys.iter().map(|key| (key.id, &key.file)));
        let mut seen = BTreeSet::new();
        let secrets = files.map(|(id, file)| {
            if seen.insert(id) {
                Ok((id, key::read_secret(file)?))
            } else {
                Err(NodeError::config("more_keys", format!("key id {id} is named twice; give each secret its own")))
            }
        });
        Ok(KeyRing::new(secrets.collect::<Result<Vec<_>, _>>()?))
    }

    /// What sessions are held to.
    pub(super) fn terms(&self) -> Result<Terms, NodeError> {
        let revoked = self.tls_revoked.as_deref();
        Ok(Terms {
            update_timeout: Duration::from_millis(self.update_timeout_ms.max(1)),
            rules: RulesRow { aa_block: self.aa_block.clone(), tor_las: self.tor_las.clone() },
            quotas: Quotas::new(&self.quota, &self.services),
            timers: self.sessions,
            trust: self.tls.as_ref().map(|files| tls::server(files, revoked).map(Arc::new)).transpose()?,
        })
    }

    /// The LAs of all ToR switches.
    pub(super) fn tor_set(&self) -> Option<BTreeSet<Ipv4Addr>> {
        self.tor_las.as_ref().map(|las| las.iter().copied().collect())
    }

    /// Threads that answer look-ups.
    pub(super) fn lookup_threads(&self) -> Result<usize, NodeError> {
        match self.lookup_threads {
            Some(threads) if !(1..=LOOKUP_THREADS_MAX).contains(&threads) => Err(NodeError::config(
                "lookup_threads",
                format!("{threads} is not between 1 and {LOOKUP_THREADS_MAX}; leave it out for one for each CPU"),
            )),
            Some(threads) => Ok(threads),
            None => Ok(std::thread::available_parallelism().map_or(1, usize::from).min(LOOKUP_THREADS_MAX)),
        }
    }

    /// The rules for updates.
    pub(super) fn rules(&self) -> Result<Rules, NodeError> {
        let aa_block = aa_block::read(&self.aa_block)?;
        aa_block::check_las(aa_block, "listen", [*self.listen.ip()])?;
        aa_block::check_las(aa_block, "tor_las", self.tor_las.iter().flatten().copied())?;
        let tor_las = self.tor_set();
        if tor_las.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(NodeError::config(
                "tor_las",
                "is empty, so no mapping could be set; name the ToRs or leave it out",
            ));
        }
        let aa_ranges = quota::aa_ranges(aa_block, &self.services)?;
        Ok(Rules { aa_block, tor_las, aa_ranges, updates_max: UPDATES_MAX })
    }

    /// Refuses an address that tags cannot cover, and an open server that strangers could reach.
    fn check_access(&self) -> Result<(), NodeError> {
        let ip = *self.listen.ip();
        if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
            return Err(NodeError::config(
                "listen",
                format!("{ip} is not one address of this host; name the server's LA"),
            ));
        }
        if self.key_file.is_none() && !self.more_keys.is_empty() {
            return Err(NodeError::config("more_keys", "needs `key_file`; name the first secret there"));
        }
        if self.tls_listen.is_some() != self.tls.is_some() {
            let why = "goes with `tls`; set both or none (`weft directory certs DIR` makes the files)";
            return Err(NodeError::config("tls_listen", why));
        }
        if self.tls_revoked.is_some() && self.tls.is_none() {
            return Err(NodeError::config("tls_revoked", "goes with `tls`; set both, or leave it out"));
        }
        match (&self.key_file, self.open) {
            (None, false) => {
                Err(NodeError::config("key_file", "is missing; name one, or set `open` on a loopback address"))
            }
            (Some(_), true) => Err(NodeError::config("open", "contradicts `key_file`; leave one of them out")),
            (None, true) if !ip.is_loopback() && !self.lab => Err(NodeError::config(
                "open",
                format!("would let everybody who reaches {ip} ask; set `key_file`, or `lab` if nobody else can"),
            )),
            _ => Ok(()),
        }
    }
}

impl Settings for DirectoryConfig {
    const LIVE: &'static [&'static str] = &[
        "key_file",
        "key_id",
        "more_keys",
        "update_timeout_ms",
        "agent_port",
        "tor_las",
        "tls",
        "tls_revoked",
        "sessions",
        "quota",
        "services",
    ];

    fn check(&self) -> Result<(), NodeError> {
        self.check_alone()?;
        self.keys().map(drop)
    }

    fn check_alone(&self) -> Result<(), NodeError> {
        self.check_access()?;
        self.rules()?;
        self.lookup_threads().map(drop)
    }

    fn places(&self) -> (&Path, Option<&Path>) {
        (&self.socket, None)
    }

    fn http_listen(&self) -> Option<SocketAddrV4> {
        self.http_listen
    }
}
