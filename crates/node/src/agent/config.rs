//! What an agent is told at start.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_control::NS_PER_S;
use weft_control::agent::Timing;
use weft_datapath::broadcast::Broadcast;
use weft_datapath::host::{LimitedTraffic, RateLimit};
use weft_datapath::spread::Spread;
use weft_wire::block::Block;
use weft_wire::directory::PORT;
use weft_wire::ethernet::MacAddress;

use super::broadcast::BroadcastConfig;
use crate::aa_block;
use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::settings_file::check_interface;

/// UDP port of an agent unless configured otherwise: where servers send answers and corrections to.
pub const AGENT_PORT: u16 = 5301;

/// The configuration file of `weft node agent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// Interface towards the ToR.
    pub interface: String,
    /// Where the data path sends frames without a mapping. With `miss_interface` a veth pair, made if it is missing.
    #[serde(default = "redirect_interface")]
    pub redirect_interface: String,
    /// The pair's other end, where the agent reads them.
    #[serde(default = "miss_interface")]
    pub miss_interface: String,
    /// This host's AA.
    pub aa: Ipv4Addr,
    /// The block that all AAs come from, as `20.0.0.0/8`.
    pub aa_block: String,
    /// This host's LA: where its datagrams come from.
    pub la: Ipv4Addr,
    /// The LA by which the outside knows this host (VL2 4.2.3), if it has one. What the host sends from other addresses than
    /// its AA and its LAs is dropped and counted as `foreign_source` (RFC 2827).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_la: Option<Ipv4Addr>,
    /// UDP port of its datagrams; 0 for any.
    #[serde(default = "port")]
    pub port: u16,
    /// LA of the ToR that this host is behind.
    pub own_tor_la: Ipv4Addr,
    /// MAC of the ToR's host port, as `02:56:4c:32:00:01`.
    pub gateway_mac: String,
    /// Largest IPv4 packet that the fabric carries, outer headers included, bytes.
    pub underlay_mtu: u32,
    /// If the interface's packets would not fit: lower the MTU of the AA route instead of refusing to start.
    #[serde(default)]
    pub clamp_mtu: bool,
    /// Directory servers, at least one.
    pub directory_servers: Vec<SocketAddrV4>,
    /// File with the key of the tags: 32 hexadecimal digits, mode 0600, derived from the directory servers' secret for
    /// this `service` and `la`. Without it servers must be open.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Which secret the key was derived from.
    #[serde(default)]
    pub key_id: u32,
    /// The service that this host belongs to.
    #[serde(default, alias = "tenant")]
    pub service: u32,
    /// Age at which a mapping must have been confirmed, seconds. So long at most does a server reach an AA that its service
    /// may no longer reach; moves are corrected at once.
    #[serde(default = "mapping_lifetime_s")]
    pub mapping_lifetime_s: u32,
    /// Directory in a bpffs where the data path is pinned, so that it works on while the agent restarts.
    #[serde(default)]
    pub pin_dir: Option<PathBuf>,
    /// Most AAs that the data path holds.
    #[serde(default = "map_entries")]
    pub map_entries: u32,
    /// Send packets for the own rack to the ToR directly instead of over an Intermediate.
    #[serde(default)]
    pub rack_direct: bool,
    /// Most that this host may send to AAs; without it there is no limit.
    #[serde(default)]
    pub rate_limit: Option<RateLimitConfig>,
    /// Which flows under way get another path (VL2 4.2.2); without it none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadConfig>,
    /// Whom broadcast and multicast of this host reach (VL2 4.2.3); without it they are dropped and counted.
    #[serde(default)]
    pub broadcast: Option<BroadcastConfig>,
    /// Path of the agent's control socket.
    #[serde(default = "socket", alias = "status_socket")]
    pub socket: PathBuf,
    /// Address and TCP port for `/metrics`, `/healthz` and `/readyz`: HTTP that everybody who reaches it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_listen: Option<SocketAddrV4>,
}

/// A token bucket in the data path. What is beyond it is dropped and counted as `rate_limited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimitConfig {
    /// Bits per second in the long run; of frames without FCS and without outer headers.
    pub bits_per_s: u64,
    /// Bytes that may leave at once, at least one frame.
    pub burst_bytes: u32,
    #[serde(default)]
    pub traffic: RateLimitedTraffic,
}

/// What a rate limit is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimitedTraffic {
    /// Everything but TCP, which keeps to its share by itself (VL2 5.3).
    #[default]
    NonTcp,
    /// Everything.
    All,
}

impl RateLimitConfig {
    /// As the data path wants it.
    pub(super) fn limit(&self) -> RateLimit {
        let traffic = match self.traffic {
            RateLimitedTraffic::NonTcp => LimitedTraffic::NonTcp,
            RateLimitedTraffic::All => LimitedTraffic::All,
        };
        RateLimit { bits_per_s: self.bits_per_s, burst_bytes: self.burst_bytes, traffic }
    }
}

/// Which flows under way get another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SpreadConfig {
    /// Large TCP flows that lose: always after a timeout, otherwise with one chance in two.
    Rehash {
        /// Time between two choices for one flow, and the pause that tells a timeout, microseconds.
        hold_us: u64,
        /// What a flow has sent before it counts as large, bytes.
        large_bytes: u64,
        /// Whether it moves after a timeout alone.
        #[serde(default)]
        only_timeouts: bool,
    },
    /// TCP flows that send again after a pause.
    Flowlets {
        /// The pause, microseconds.
        gap_us: u64,
    },
}

impl SpreadConfig {
    /// For the data path.
    pub(super) fn rule(spread: Option<Self>) -> Spread {
        match spread {
            None => Spread::Never,
            Some(Self::Rehash { hold_us, large_bytes, only_timeouts }) => {
                Spread::Rehash { hold: Duration::from_micros(hold_us), large_bytes, only_timeouts }
            }
            Some(Self::Flowlets { gap_us }) => Spread::Flowlets { gap: Duration::from_micros(gap_us) },
        }
    }
}

fn redirect_interface() -> String {
    "weft-up0".to_owned()
}

fn miss_interface() -> String {
    "weft-up1".to_owned()
}

fn port() -> u16 {
    AGENT_PORT
}

fn mapping_lifetime_s() -> u32 {
    (Timing::default().lifetime_ns / NS_PER_S) as u32
}

fn socket() -> PathBuf {
    DaemonKind::Agent.socket()
}

fn map_entries() -> u32 {
    weft_datapath::host::MAP_ENTRIES_DEFAULT
}

/// Settings that are text in the file, read.
pub(super) struct Checked {
    pub(super) aa_block: Block,
    pub(super) gateway_mac: [u8; 6],
    pub(super) broadcast: Option<Broadcast>,
}

impl AgentConfig {
    /// A configuration to start from.
    pub fn example() -> Self {
        Self {
            interface: "eth0".to_owned(),
            redirect_interface: redirect_interface(),
            miss_interface: miss_interface(),
            aa: Ipv4Addr::new(20, 0, 0, 1),
            aa_block: "20.0.0.0/8".to_owned(),
            la: Ipv4Addr::new(10, 64, 0, 2),
            public_la: None,
            port: AGENT_PORT,
            own_tor_la: Ipv4Addr::new(10, 1, 0, 1),
            gateway_mac: "02:56:4c:32:00:01".to_owned(),
            underlay_mtu: 1600,
            clamp_mtu: false,
            directory_servers: vec![SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), PORT)],
            key_file: Some("/etc/weft/agent.key".into()),
            key_id: 0,
            service: 0,
            mapping_lifetime_s: mapping_lifetime_s(),
            pin_dir: Some("/run/weft/bpf/agent".into()),
            map_entries: map_entries(),
            rack_direct: false,
            rate_limit: None,
            spread: None,
            broadcast: None,
            socket: socket(),
            http_listen: None,
        }
    }

    /// Checks what can be checked without looking at the machine.
    pub(super) fn checked(&self) -> Result<Checked, NodeError> {
        let aa_block = aa_block::read(&self.aa_block)?;
        let gateway_mac: MacAddress =
            self.gateway_mac.parse().map_err(|error| NodeError::config("gateway_mac", format!("{error}")))?;
        if !aa_block.contains(self.aa) {
            return Err(NodeError::config("aa", format!("{} is outside the AA block {aa_block}", self.aa)));
        }
        aa_block::check_las(aa_block, "la", [self.la])?;
        aa_block::check_las(aa_block, "public_la", self.public_la)?;
        aa_block::check_las(aa_block, "own_tor_la", [self.own_tor_la])?;
        aa_block::check_las(aa_block, "directory_servers", self.directory_servers.iter().map(|server| *server.ip()))?;
        if self.directory_servers.is_empty() {
            return Err(NodeError::config("directory_servers", "is empty; name at least one server as ADDRESS:PORT"));
        }
        for (field, name) in [
            ("interface", &self.interface),
            ("redirect_interface", &self.redirect_interface),
            ("miss_interface", &self.miss_interface),
        ] {
            check_interface(field, name)?;
        }
        if !(1..=86_400).contains(&self.mapping_lifetime_s) {
            let why = format!("{} is not between 1 and 86400 seconds; 300 is usual", self.mapping_lifetime_s);
            return Err(NodeError::config("mapping_lifetime_s", why));
        }
        if self.underlay_mtu < 108 {
            let why = format!("{} is below 108 bytes; 1600 carries 1500 of payload", self.underlay_mtu);
            return Err(NodeError::config("underlay_mtu", why));
        }
        let broadcast = self.broadcast.as_ref().map(|broadcast| broadcast.check(self, aa_block)).transpose()?;
        Ok(Checked { aa_block, gateway_mac: gateway_mac.0, broadcast })
    }
}
