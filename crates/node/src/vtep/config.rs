//! The configuration file of `weft node vtep`, what people write. What it means is in `settings`.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_wire::directory::PORT as DIRECTORY_PORT;
use weft_wire::vxlan::UDP_PORT;

use crate::agent::AGENT_PORT;
use crate::error::NodeError;
use crate::runner::DaemonKind;

/// The configuration file of `weft node vtep`. `peers`, `segment`, `vni`, `port` and `entry` can change while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VtepConfig {
    /// Our address as a VTEP: an address of this host.
    pub local: Ipv4Addr,
    /// Interfaces towards the underlay; the kernel's routes choose among them.
    pub uplink: Vec<String>,
    /// UDP port of the tunnels; 4789 unless all VTEPs say otherwise.
    #[serde(default = "udp_port")]
    pub udp_port: u16,
    /// Where the programs are attached.
    #[serde(default)]
    pub hook: HookChoice,
    /// How the TC programs are put on interfaces.
    #[serde(default)]
    pub attach: AttachChoice,
    /// What becomes of frames from a VTEP that is no peer.
    #[serde(default)]
    pub strangers: Strangers,
    /// Other VTEPs.
    #[serde(default)]
    pub peers: BTreeSet<Ipv4Addr>,
    /// Directory in a bpffs where the data path is pinned, so that it works on while the daemon restarts.
    #[serde(default)]
    pub pin_dir: Option<PathBuf>,
    /// Path of the VTEP's control socket.
    #[serde(default = "socket")]
    pub socket: PathBuf,
    /// Address and TCP port for `/metrics`, `/healthz` and `/readyz`: HTTP that everybody who reaches it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_listen: Option<SocketAddrV4>,
    /// Room in the data path.
    #[serde(default)]
    pub capacity: Capacity,
    /// What holds for every segment that does not say otherwise.
    #[serde(default)]
    pub segment: SegmentTable,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vni: Vec<SegmentTable>,
    /// Access ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortTable>,
    /// Forwarding entries that do not age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry: Vec<EntryTable>,
    /// The directory of directory-driven segments.
    #[serde(default)]
    pub directory: Option<DirectoryTable>,
}

/// Where the programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookChoice {
    /// Behind the driver, where super frames stay whole: for servers and VMs that speak TCP.
    #[default]
    Tc,
    /// In the driver, before a socket buffer is made, with TC behind it: for packet rate.
    Xdp,
}

/// How the TC programs are put on interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachChoice {
    /// By links, which go with the daemon unless they are pinned. Some 16 ms for each port.
    #[default]
    Link,
    /// By classic filters, for thousands of ports: 0.1 ms for each. After SIGKILL they stay, pinned or not, until the next
    /// start or the interface ends.
    Filter,
}

/// What becomes of frames from a VTEP that is no peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strangers {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// They are taken like those of peers.
    Accept,
}

/// Room in the data path: the number of things that its maps hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capacity {
    /// MACs that are learned, in all segments together.
    pub macs: u32,
    /// MACs that are learned in one segment.
    pub vni_macs: u32,
    /// MACs that are learned behind one access port.
    pub port_macs: u32,
    /// MACs that are learned behind one trunk.
    pub trunk_macs: u32,
    /// MACs beside these that entries and the directory tell.
    pub told_macs: u32,
    /// Addresses that ARP is answered for.
    pub arps: u32,
    /// Segments.
    pub vnis: u32,
    /// Access ports and uplinks.
    pub ports: u32,
    /// Access ports that are trunks.
    pub trunks: u32,
    pub peers: u32,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            macs: 65_536,
            vni_macs: 8192,
            port_macs: 4096,
            trunk_macs: 32_768,
            told_macs: 16_384,
            arps: 16_384,
            vnis: 8192,
            ports: 8192,
            trunks: 64,
            peers: 1024,
        }
    }
}

/// One segment or several that are alike; what is missing is as in `[segment]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentTable {
    /// Its VNI as a number, or several as a range `"100-199"`. Not in `[segment]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<VniIds>,
    /// Where frames to many go: `"peers"` (all), a list of peers, a multicast group, or `"nowhere"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<FloodText>,
    /// Peers that may send into it: by default those of `flood` if it is a list, else all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<BTreeSet<Ipv4Addr>>,
    /// Learn MACs from frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn: Option<bool>,
    /// How long a MAC that is silent is kept, seconds; 0: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u32>,
    /// Answer ARP from what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_arp: Option<bool>,
    /// Ask the directory where addresses are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<bool>,
    /// Flood what the directory is asked for meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood_misses: Option<bool>,
    /// Frames to unknown MACs flooded per second; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_per_s: Option<u32>,
    /// Broadcast and group frames flooded per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast_per_s: Option<u32>,
}

/// `100` or `"100-199"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum VniIds {
    One(i64),
    /// Both ends of a range.
    Range(String),
}

/// `"peers"`, `"nowhere"`, `"239.1.1.1"` or `["10.0.0.2", "10.0.0.3"]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FloodText {
    /// A word or a multicast group.
    Word(String),
    /// Peers.
    List(BTreeSet<Ipv4Addr>),
}

/// An access port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortTable {
    pub interface: String,
    /// Its segment; of a trunk that of frames without a VLAN tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<i64>,
    /// Segments of its VLANs: `"10=5010"`, or `"100-199=10100-10199"` for as many of both. With them the port is a trunk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<String>,
    /// What becomes of frames with a VLAN tag, unless the port is a trunk.
    #[serde(default)]
    pub tagged: TaggedText,
}

/// What becomes of frames with a VLAN tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaggedText {
    /// Dropped and counted.
    #[default]
    Drop,
    /// Carried as they are.
    Keep,
}

/// A forwarding entry: a MAC behind a peer or behind a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryTable {
    /// Its segment.
    pub vni: i64,
    pub mac: String,
    /// The VTEP that it is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Ipv4Addr>,
    /// The access port that it is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The VLAN of that port, if it is a trunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// The address that ARP is answered for with this MAC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<Ipv4Addr>,
}

/// Whom a directory-driven segment asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryTable {
    /// Directory servers, at least one.
    pub servers: Vec<SocketAddrV4>,
    /// VTEPs that it may name beside `peers`: what it says of another one is not believed, since a tenant may have said it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tor_las: Vec<Ipv4Addr>,
    /// UDP port of our questions at `local`; 0 for any.
    #[serde(default = "directory_port")]
    pub port: u16,
    /// Folder with the keys of the tags: a file VNI.key for each directory-driven segment, derived from the servers' secret
    /// for service VNI and `local` (`weft directory key`). Without it servers must be open.
    #[serde(default)]
    pub key_dir: Option<PathBuf>,
    /// Which secret the keys were derived from.
    #[serde(default)]
    pub key_id: u32,
    /// Age at which a station's place must have been confirmed, seconds.
    #[serde(default = "lifetime_s")]
    pub lifetime_s: u32,
}

fn udp_port() -> u16 {
    UDP_PORT
}

fn socket() -> PathBuf {
    DaemonKind::Vtep.socket()
}

fn directory_port() -> u16 {
    AGENT_PORT
}

fn lifetime_s() -> u32 {
    300
}

impl VtepConfig {
    /// A VTEP without segments.
    pub fn new(local: Ipv4Addr, uplink: Vec<String>) -> Self {
        Self {
            local,
            uplink,
            udp_port: UDP_PORT,
            hook: HookChoice::default(),
            attach: AttachChoice::default(),
            strangers: Strangers::default(),
            peers: BTreeSet::new(),
            pin_dir: None,
            socket: socket(),
            http_listen: None,
            capacity: Capacity::default(),
            segment: SegmentTable::default(),
            vni: Vec::new(),
            port: Vec::new(),
            entry: Vec::new(),
            directory: None,
        }
    }

    /// A configuration to start from.
    pub fn example() -> Self {
        let mut config = Self::new(Ipv4Addr::new(10, 64, 0, 2), vec!["eth0".to_owned()]);
        config.peers = [3, 4].map(|k| Ipv4Addr::new(10, 64, 0, k)).into();
        config.pin_dir = Some("/run/weft/bpf/vtep".into());
        config.segment = SegmentTable { flood: Some(FloodText::Word("peers".to_owned())), ..SegmentTable::default() };
        let id = |id| SegmentTable { id: Some(id), ..SegmentTable::default() };
        let group = Some(FloodText::Word("239.1.1.1".to_owned()));
        config.vni = vec![
            SegmentTable { members: Some([Ipv4Addr::new(10, 64, 0, 3)].into()), ..id(VniIds::One(100)) },
            SegmentTable { flood: group, age_s: Some(600), ..id(VniIds::Range("200-299".to_owned())) },
            SegmentTable { directory: Some(true), learn: Some(true), ..id(VniIds::One(7)) },
        ];
        let vlans = ["10=100", "20-29=200-209"].map(str::to_owned).to_vec();
        config.port = vec![
            PortTable::access("vm1", 100),
            PortTable::access("vm2", 7),
            PortTable { vni: None, vlans, ..PortTable::access("trunk1", 0) },
        ];
        config.entry = vec![EntryTable {
            vni: 100,
            mac: "02:00:00:00:00:09".to_owned(),
            peer: Some(Ipv4Addr::new(10, 64, 0, 3)),
            port: None,
            vlan: None,
            ip: Some(Ipv4Addr::new(192, 168, 0, 9)),
        }];
        config.directory = Some(DirectoryTable {
            servers: vec![SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), DIRECTORY_PORT)],
            tor_las: vec![Ipv4Addr::new(10, 64, 0, 5)],
            port: directory_port(),
            key_dir: Some("/etc/weft/vtep-keys".into()),
            key_id: 0,
            lifetime_s: lifetime_s(),
        });
        config
    }
}

impl crate::runner::Settings for VtepConfig {
    const LIVE: &'static [&'static str] = &["peers", "segment", "vni", "port", "entry"];

    /// What this host has to say of them comes later.
    fn check(&self) -> Result<(), NodeError> {
        self.settings().map(drop)
    }

    fn places(&self) -> (&Path, Option<&Path>) {
        (&self.socket, self.pin_dir.as_deref())
    }

    fn http_listen(&self) -> Option<SocketAddrV4> {
        self.http_listen
    }
}

impl PortTable {
    /// In one segment.
    pub fn access(interface: &str, vni: i64) -> Self {
        Self { interface: interface.to_owned(), vni: Some(vni), vlans: Vec::new(), tagged: TaggedText::Drop }
    }
}
