//! What a directory server is told at start.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weft_control::address::AaBlock;
use weft_control::directory::Rules;
use weft_wire::directory::PORT;

use super::UPDATES_MAX;
use crate::error::NodeError;

/// The configuration file of `weft node directory`, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Address and UDP port for look-ups. One address, not `0.0.0.0`: it is part of every tag.
    pub listen: SocketAddrV4,
    /// Path of the Unix socket for updates. Made with mode 0600: who may open it may change mappings.
    pub admin_socket: PathBuf,
    /// The store's file. Made if it is missing.
    pub store: PathBuf,
    /// File with the key of the tags: 32 hexadecimal digits, mode 0600. Needed unless `open` is set.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Which key that is.
    #[serde(default)]
    pub key_id: u32,
    /// The tenant served.
    #[serde(default)]
    pub tenant: u32,
    /// The block that all AAs come from, as `20.0.0.0/8`.
    pub aa_block: String,
    /// The LAs of all ToR switches; without the list any LA is taken.
    #[serde(default)]
    pub tor_las: Option<Vec<Ipv4Addr>>,
    /// Answer everybody: no key. Only on a loopback address, or with `lab`.
    #[serde(default)]
    pub open: bool,
    /// This is a lab whose network nobody else can reach: `open` may be used on any address.
    #[serde(default)]
    pub lab: bool,
}

impl DirectoryConfig {
    /// A configuration to start from.
    pub fn example() -> Self {
        Self {
            listen: SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), PORT),
            admin_socket: "/run/weft/directory.sock".into(),
            store: "/var/lib/weft/directory.redb".into(),
            key_file: Some("/etc/weft/directory.key".into()),
            key_id: 0,
            tenant: 0,
            aa_block: "20.0.0.0/8".to_owned(),
            tor_las: Some(vec![Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)]),
            open: false,
            lab: false,
        }
    }

    /// The rules for updates.
    pub(super) fn rules(&self) -> Result<Rules, NodeError> {
        let aa_block: AaBlock =
            self.aa_block.parse().map_err(|error| NodeError::config("aa_block", format!("{error}")))?;
        let tor_las: Option<BTreeSet<_>> = self.tor_las.as_ref().map(|las| las.iter().copied().collect());
        if tor_las.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(NodeError::config(
                "tor_las",
                "is empty, so no mapping could be set; name the ToRs or leave it out",
            ));
        }
        Ok(Rules { aa_block, tor_las, updates_max: UPDATES_MAX })
    }

    /// Refuses an address that tags cannot cover, and an open server that strangers could reach.
    pub(super) fn check_access(&self) -> Result<(), NodeError> {
        let ip = *self.listen.ip();
        if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
            return Err(NodeError::config(
                "listen",
                format!("{ip} is not one address of this host; name the server's LA"),
            ));
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
