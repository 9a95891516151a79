//! The configuration file of `weft node rbridge`, what people write. What it means is in `settings`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_control::isis::Timing;
use weft_control::{NS_PER_MS, NS_PER_S, snooper};
use weft_wire::isis::PDU_LEN_MIN;

use super::frames::Frames;
use super::keys;
use super::settings::Settings;
use crate::error::NodeError;
use crate::runner::DaemonKind;

/// The configuration file of `weft node rbridge`, as TOML. Ports are numbered from 1 in the order of their `[[port]]`
/// tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RBridgeConfig {
    /// Its name in LSPs (RFC 5301), 1 to 64 bytes.
    pub name: String,
    /// Its IS-IS system ID, as `"0200.0000.0001"`; by default the first port's MAC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_id: Option<String>,
    /// Its nickname, 1 to 65471 (0xffbf); by default one that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nickname: Option<u16>,
    /// How many nicknames it holds, 1 to 4; those beside `nickname` are free ones. Each can be the root of a tree, so that one
    /// RBridge in the middle can be that of several.
    #[serde(default = "one")]
    pub nicknames: u16,
    /// Priority to be the root of a distribution tree; the highest is it (RFC 6325 section 4.5).
    #[serde(default = "root_priority")]
    pub root_priority: u16,
    /// Distribution trees, 1 to 4: so many are computed if the highest root wants as many, and no RBridge has less.
    #[serde(default = "one")]
    pub trees: u16,
    /// Of these so many, 1 to 4, that the RBridge brings its frames onto: those whose roots are nearest. What is for one group or
    /// station in a VLAN keeps to one of them.
    #[serde(default = "one")]
    pub trees_used: u16,
    /// Longest LSP that it takes, bytes, 1470 to 9216: no more than the MTU of its links to RBridges. The least of all in the campus
    /// is how long LSPs become (RFC 6325 section 4.3.1, where it is originatingL1LSPBufferSize).
    #[serde(default = "lsp_buffer_bytes")]
    pub lsp_buffer_bytes: u16,
    /// Where the programs run.
    #[serde(default)]
    pub xdp: XdpChoice,
    /// CPUs that frames of links are spread over by egress nickname, as `"0-3"`; by default each frame is worked on where
    /// its interface's interrupt is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_cpus: Option<String>,
    /// Directory in a bpffs where the data path is pinned, so that it works on while the daemon restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_dir: Option<PathBuf>,
    /// Path of the RBridge's control socket.
    #[serde(default = "socket")]
    pub socket: PathBuf,
    /// Address and TCP port for `/metrics`, `/healthz` and `/readyz`: HTTP that everybody who reaches it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_listen: Option<SocketAddrV4>,
    /// Frames for groups and unknown stations that each port to stations may send per second; 0: any number.
    #[serde(default = "storm_per_s")]
    pub storm_per_s: u32,
    /// Keys of the campus; without them everybody on a link is believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationTable>,
    /// Room in the data path.
    #[serde(default)]
    pub capacity: Capacity,
    /// When things happen.
    #[serde(default)]
    pub timing: TimingTable,
    /// Ports, 1 to 63 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortTable>,
    /// Frames for IP multicast groups go where somebody listens; without this table they go everywhere in their VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupsTable>,
    /// Routing between VLANs at the RBridge where a packet comes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayTable>,
}

/// Who listens to which IP multicast groups, by IGMP and MLD (RFC 6325 section 4.7, RFC 4541).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupsTable {
    /// Whether stations are asked what they listen to. Switch it off where a multicast router asks.
    pub query: bool,
    /// Between two questions, seconds.
    pub interval_s: u32,
    /// Within that stations answer, milliseconds; until then nothing is pruned.
    pub response_ms: u32,
}

impl Default for GroupsTable {
    fn default() -> Self {
        Self { query: true, interval_s: 125, response_ms: 10_000 }
    }
}

impl GroupsTable {
    pub(super) fn config(self) -> Result<snooper::Config, NodeError> {
        let interval_ns = within("groups.interval_s", self.interval_s, 1..=31_744)? * NS_PER_S;
        let response_ns = within("groups.response_ms", self.response_ms, 100..=3_174_400)? * NS_PER_MS;
        if response_ns >= interval_ns {
            let why = format!("{} is not below the interval of {} s", self.response_ms, self.interval_s);
            return Err(NodeError::config("groups.response_ms", why));
        }
        Ok(snooper::Config { asks: self.query, interval_ns, response_ns })
    }
}

/// How PDUs are signed and checked (RFC 5310, RFC 5304).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthenticationTable {
    /// File of the keys, a line for each: ID, algorithm, secret. The first one signs.
    pub key_file: PathBuf,
    /// Whether PDUs without authentication are believed as well: while a campus gets its first key.
    #[serde(default)]
    pub accept_unsigned: bool,
    /// Whether Hellos and sequence numbers PDUs must have a number above the last one's, so that none is said again (RFC 7602). Ours
    /// have one with every key; switch it on when those of all neighbours have.
    #[serde(default)]
    pub replay_check: bool,
}

/// Where the programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XdpChoice {
    /// In the driver.
    #[default]
    Native,
    /// In the stack: slower, with every driver.
    Generic,
}

/// Room in the data path: the number of things that its maps hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capacity {
    /// Stations, in all VLANs together.
    pub stations: u32,
    /// Stations that are learned behind one port.
    pub port_stations: u32,
    /// Stations that are learned behind one other RBridge; behind all others together three quarters of `stations` at most.
    pub nickname_stations: u32,
    /// Hosts that the gateway routes to.
    pub host_routes: u32,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { stations: 16_384, port_stations: 4096, nickname_stations: 4096, host_routes: 4096 }
    }
}

macro_rules! timing_table {
    ($($(#[$doc:meta])* $key:ident => $field:ident: $unit:expr, $usual:literal, $range:expr;)*) => {
        /// When things happen, in the units of the keys; what is missing is as in [`Timing`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct TimingTable {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<u32>,)*
            /// How long a silent station is remembered, seconds (RFC 6325 section 4.8.3: 300).
            #[serde(skip_serializing_if = "Option::is_none")]
            pub station_age_s: Option<u32>,
        }

        impl TimingTable {
            pub(super) fn timing(&self) -> Result<Timing, NodeError> {
                let mut timing = Timing::default();
                $(if let Some(value) = self.$key {
                    timing.$field = within(concat!("timing.", stringify!($key)), value, $range)? * $unit;
                })*
                timing.check().map_err(|why| NodeError::config("timing.echo_ms", why))?;
                Ok(timing)
            }
        }
    };
}

weft_control::isis_timers!(timing_table);

impl TimingTable {
    pub(super) fn station_age(&self) -> Result<u32, NodeError> {
        self.station_age_s.map_or(Ok(300), |age_s| Ok(within("timing.station_age_s", age_s, 1..=1_000_000)? as u32))
    }
}

fn within(field: &'static str, value: u32, range: RangeInclusive<u32>) -> Result<u64, NodeError> {
    let (least, most) = (range.start(), range.end());
    let why = || NodeError::config(field, format!("{value} is not {least} to {most}"));
    range.contains(&value).then_some(value.into()).ok_or_else(why)
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortTable {
    pub interface: String,
    /// What is behind it.
    pub kind: KindText,
    /// Of `access`: its VLAN. Of `trunk`: VLAN of frames without a tag; by default they are dropped. Of `shared`: VLAN of frames
    /// without a tag; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Of `trunk` and `shared`: VLANs of frames with a tag, as `"10,20-30"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlans: Option<String>,
    /// Of `p2p` and `shared`: metric, 1 to 16777214; by default from the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// Of `p2p` and `shared`: rate, bit/s; by default what the interface says, else 10 Gbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Of `p2p`: VLAN that Hellos name; 1 by default. A tag with it is taken off. Of `shared`: the VLAN in which RBridges are to talk,
    /// one of those of the port; by default `vlan`. The DRB's wish counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub designated_vlan: Option<u16>,
    /// Of `shared`: VLANs in which Hellos go, beside the Designated VLAN, as `"10,20-30"`; by default all of the port. So two parts of a
    /// link that are one in some VLANs alone do not serve these both (RFC 6325 section 4.4.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announcing_vlans: Option<String>,
    /// Of `p2p` and `shared`: hold the adjacency back until an LSP as long as any in the campus would pass (RFC 6325 section 4.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_test: Option<bool>,
    /// Of `p2p`: leave the outer header out while the neighbour says that it takes such frames. No RFC's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elide_outer_header: Option<bool>,
    /// Of `shared`: priority to become the link's DRB, 0 to 127; 64 by default. Of the highest ones the highest MAC is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drb_priority: Option<u8>,
    /// Of `shared`: whether it may be appointed forwarder of the link's end stations; yes by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stations: Option<bool>,
}

/// What is behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindText {
    /// Another RBridge, point to point.
    P2p,
    /// End stations of one VLAN, without tags.
    Access,
    /// End stations of several VLANs, with tags.
    Trunk,
    /// A link of any number of RBridges and end stations, such as bridges.
    Shared,
}

/// Routing between VLANs at the RBridge where a packet comes in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayTable {
    /// MAC of the gateway, the same at every RBridge.
    pub mac: String,
    /// VLANs between which is routed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlan: Vec<GatewayVlan>,
    /// Hosts; no others are reached through the gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<GatewayHost>,
}

/// The gateway in a VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayVlan {
    pub vlan: u16,
    /// The gateway's address with its prefix length, as `"10.0.10.254/24"`.
    pub address: String,
}

/// A host that the gateway routes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayHost {
    /// Its address, within one of the gateway's VLANs.
    pub address: Ipv4Addr,
    pub mac: String,
    pub vlan: u16,
    /// Nickname of the RBridge that it is behind. Without it packets for the host are copied to everybody in its VLAN,
    /// because what it sends to other VLANs shows nobody where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nickname: Option<u16>,
}

fn storm_per_s() -> u32 {
    10_000
}

fn root_priority() -> u16 {
    0x8000
}

fn one() -> u16 {
    1
}

fn lsp_buffer_bytes() -> u16 {
    PDU_LEN_MIN
}

fn socket() -> PathBuf {
    DaemonKind::Rbridge.socket()
}

impl PortTable {
    /// A link to another RBridge.
    pub fn p2p(interface: impl Into<String>) -> Self {
        Self::of(interface, KindText::P2p)
    }

    /// A port to end stations of one VLAN.
    pub fn access(interface: impl Into<String>, vlan: u16) -> Self {
        Self { vlan: Some(vlan), ..Self::of(interface, KindText::Access) }
    }

    /// A port to end stations of several VLANs, as `"10,20-30"`.
    pub fn trunk(interface: impl Into<String>, vlans: impl Into<String>) -> Self {
        Self { vlans: Some(vlans.into()), ..Self::of(interface, KindText::Trunk) }
    }

    /// A link of RBridges and end stations; those without tags are in `vlan`.
    pub fn shared(interface: impl Into<String>, vlan: u16) -> Self {
        Self { vlan: Some(vlan), ..Self::of(interface, KindText::Shared) }
    }

    fn of(interface: impl Into<String>, kind: KindText) -> Self {
        Self {
            interface: interface.into(),
            kind,
            vlan: None,
            vlans: None,
            cost: None,
            rate_bps: None,
            designated_vlan: None,
            announcing_vlans: None,
            mtu_test: None,
            elide_outer_header: None,
            drb_priority: None,
            stations: None,
        }
    }
}

impl RBridgeConfig {
    /// An RBridge without ports.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            system_id: None,
            nickname: None,
            root_priority: root_priority(),
            nicknames: one(),
            trees: one(),
            trees_used: one(),
            lsp_buffer_bytes: lsp_buffer_bytes(),
            xdp: XdpChoice::default(),
            spread_cpus: None,
            pin_dir: None,
            socket: socket(),
            http_listen: None,
            authentication: None,
            capacity: Capacity::default(),
            storm_per_s: storm_per_s(),
            timing: TimingTable::default(),
            port: Vec::new(),
            groups: None,
            gateway: None,
        }
    }

    /// A configuration to start from.
    pub fn example() -> Self {
        let mut config = Self::new("s1");
        config.system_id = Some("0200.0000.0001".to_owned());
        config.nickname = Some(0x101);
        config.pin_dir = Some("/run/weft/bpf/rbridge-s1".into());
        config.timing = TimingTable { hello_ms: Some(3000), holding_multiplier: Some(3), ..TimingTable::default() };
        config.port = vec![
            PortTable { rate_bps: Some(10_000_000_000), ..PortTable::p2p("eth1") },
            PortTable { cost: Some(2000), ..PortTable::p2p("eth2") },
            PortTable::access("host1", 10),
            PortTable::trunk("host2", "10,20-30"),
        ];
        config.groups = Some(GroupsTable::default());
        let address = |vlan: u16| format!("10.0.{vlan}.254/24");
        config.gateway = Some(GatewayTable {
            mac: "02:54:52:00:00:fe".to_owned(),
            vlan: [10, 20].map(|vlan| GatewayVlan { vlan, address: address(vlan) }).into(),
            host: vec![GatewayHost {
                address: Ipv4Addr::new(10, 0, 20, 1),
                mac: "02:00:00:00:20:01".to_owned(),
                vlan: 20,
                nickname: Some(0x102),
            }],
        });
        config
    }
}

impl crate::runner::Settings for RBridgeConfig {
    const LIVE: &'static [&'static str] = &["authentication", "timing", "gateway"];

    /// Rights among them, so that their lack is told as such.
    fn check(&self) -> Result<(), NodeError> {
        self.check_alone()?;
        self.authentication.as_ref().map(keys::read).transpose()?;
        Frames::open().map(drop)
    }

    fn check_alone(&self) -> Result<(), NodeError> {
        Settings::of(self).map(drop)
    }

    fn places(&self) -> (&Path, Option<&Path>) {
        (&self.socket, self.pin_dir.as_deref())
    }

    fn http_listen(&self) -> Option<SocketAddrV4> {
        self.http_listen
    }
}
