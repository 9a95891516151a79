//! What an RBridge shows by its control socket ([`crate::socket`]): `{"show":"adjacency"}`, and shared, lsdb, nickname, route, tree, rpf, groups,
//! fdb, counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::socket;

/// A request.
pub type Request = socket::Request<What>;

/// An answer.
pub type Answer = socket::Answer<Shown>;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Links to other RBridges, with their adjacencies.
    Adjacency,
    /// Shared links: who is DRB, and who serves end stations.
    Shared,
    /// The link state database.
    Lsdb,
    /// Who holds which nickname.
    Nickname,
    /// Next hops by egress nickname.
    Route,
    /// Distribution trees.
    Tree,
    /// Where frames of a tree must come from.
    Rpf,
    /// IP multicast groups, and who listens to them.
    Groups,
    /// Where stations are.
    Fdb,
    Counters,
}

/// State.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Links to other RBridges, by port.
    Adjacencies(Vec<AdjacencyRow>),
    /// Shared links by port.
    SharedLinks(Vec<SharedRow>),
    /// LSPs in the order of their IDs.
    Lsps(Vec<LspRow>),
    /// Nicknames in order; one that two hold is there twice.
    Nicknames(Vec<NicknameRow>),
    /// Routes by egress nickname.
    Routes(Vec<RouteRow>),
    Trees(Vec<TreeRow>),
    /// Reverse path checks by tree and ingress.
    Rpf(Vec<RpfRow>),
    /// IP multicast groups by VLAN.
    Groups(Vec<GroupRow>),
    /// Stations by VLAN and MAC.
    Stations(Vec<FdbRow>),
    /// Counters: of each group, numbers by name.
    Counters(BTreeMap<String, BTreeMap<String, u64>>),
}

/// A link to another RBridge; of a shared link there is one for each that is heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdjacencyRow {
    pub port: u8,
    pub interface: String,
    /// `up`, `down` (no carrier, or set down), or `missing`.
    pub link: String,
    /// `down`, `detect`, `2-way` or `report` (RFC 7177 section 3.2).
    pub state: String,
    /// Host name of the neighbour, or its system ID while that is not known.
    pub neighbor: Option<String>,
    /// System ID of the neighbour.
    pub system: Option<String>,
    /// MAC of the neighbour's port.
    pub mac: Option<String>,
    /// The neighbour's extended circuit ID.
    pub circuit: Option<u32>,
    /// Until the neighbour's silence ends the adjacency, seconds.
    pub holding_s: Option<f64>,
    /// Whether data frames go without outer header: `off`, `offered` (the neighbour does not take them) or `agreed`.
    pub elision: String,
    /// Whether it returns BFD Echoes (RFC 7175), so that its silence is noticed before that.
    pub echoes: bool,
    /// IS-IS PDUs that were dropped on the port because they were not authentic.
    pub refused: u64,
    /// Metric of sending over the link.
    pub cost: u32,
    /// MTU of the interface, bytes.
    pub mtu: u32,
    /// Longest PDU that an MTU test has seen to pass, bytes; none where nothing was tested.
    pub tested_bytes: Option<u16>,
    /// Longest LSP that all RBridges of the campus take, bytes (RFC 6325 section 4.3.1: Sz).
    pub sz_bytes: u16,
}

/// A link of any number of RBridges and end stations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedRow {
    pub port: u8,
    pub interface: String,
    /// `down`, `suspended`, `drb` or `not-drb` (RFC 7177 section 4.3).
    pub state: String,
    /// Host name of the DRB, or its system ID.
    pub drb: String,
    /// VLAN in which RBridges talk.
    pub designated_vlan: u16,
    /// The DRB's name for the link.
    pub lan_id: String,
    /// Whether LSPs tell of neighbours instead of the link.
    pub bypass: bool,
    /// VLANs that we are appointed forwarder of, as `10,20-30`.
    pub appointed: String,
    /// VLANs whose end stations we serve now.
    pub carried: String,
    /// VLANs that we are appointed for and do not serve yet: somebody else might still do so.
    pub inhibited: String,
    /// All forwarders, where we are DRB and so appoint them; elsewhere there are none.
    pub forwarders: Vec<ForwarderRow>,
}

/// Who serves end stations of a shared link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwarderRow {
    pub nickname: u16,
    /// Its host name, or its system ID.
    pub hostname: String,
    /// In these VLANs, as `10,20-30`.
    pub vlans: String,
}

/// A fragment of an LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LspRow {
    pub lsp: String,
    /// Host name of its originator, or its system ID.
    pub hostname: String,
    pub sequence: u32,
    /// Fletcher checksum.
    pub checksum: u16,
    /// Until it expires, seconds; 0: withdrawn.
    pub remaining_s: u16,
    /// Length, bytes.
    pub bytes: usize,
    /// Longest LSP that its originator says it takes, bytes; fragment 0 says it.
    pub lsp_buffer_bytes: Option<u16>,
    /// Whether no paths shall lead through the originator.
    pub overloaded: bool,
    /// Whether it is ours.
    pub own: bool,
}

/// A nickname that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicknameRow {
    pub nickname: u16,
    /// Host name of the holder, or its system ID.
    pub hostname: String,
    /// System ID of the holder.
    pub system: String,
    /// How strongly it is held; 128 and above: configured.
    pub priority: u8,
    /// Priority to be the root of a tree.
    pub root_priority: u16,
    /// Whether it is ours.
    pub own: bool,
    /// Whether frames get there.
    pub reachable: bool,
}

/// The way to an RBridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRow {
    /// Nickname of the egress.
    pub egress: u16,
    /// Its host name, or its system ID.
    pub hostname: String,
    /// Sum of the metrics.
    pub cost: u64,
    /// Next hops, all equally good.
    pub hops: Vec<HopRow>,
}

/// A next hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopRow {
    /// Number of our port.
    pub port: u8,
    pub interface: String,
    /// Host name of the neighbour, or its system ID.
    pub neighbor: String,
    /// MAC of the neighbour's port.
    pub mac: String,
}

/// A distribution tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRow {
    /// Its number in the campus, from 1.
    pub number: u16,
    /// Nickname of its root.
    pub root: u16,
    /// Host name of the root, or its system ID.
    pub hostname: String,
    /// Hops to the farthest RBridge.
    pub depth: u16,
    /// Whether frames that come in here are sent on it.
    pub used: bool,
    /// Host names of those that have announced to send on it, or their system IDs.
    pub users: Vec<String>,
    /// Where copies go.
    pub branches: Vec<BranchRow>,
}

/// A branch of a distribution tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Number of our port.
    pub port: u8,
    pub interface: String,
    /// Host name of the neighbour, or its system ID.
    pub neighbor: String,
    /// VLANs that somebody behind it is interested in, as `10,20-30`; frames of others are pruned.
    pub vlans: String,
}

/// Where frames of a tree and an ingress must come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpfRow {
    /// Nickname of the tree's root.
    pub root: u16,
    /// Nickname of the ingress.
    pub ingress: u16,
    /// Host name of the ingress, or its system ID.
    pub hostname: String,
    /// Number of the only port that they are accepted from.
    pub port: u8,
    pub interface: String,
}

/// Who listens to an IP multicast group, or to all of a family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRow {
    /// In these VLANs, as `10,20-30`.
    pub vlans: String,
    /// The address that Ethernet carries the group to, or `all IPv4`, `all IPv6`: a router is there, or nobody snoops.
    pub group: String,
    /// Interfaces of our ports with listeners.
    pub interfaces: Vec<String>,
    /// Host names of the RBridges with listeners, or their system IDs.
    pub rbridges: Vec<String>,
}

/// Where a station is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdbRow {
    pub vlan: u16,
    pub mac: String,
    /// `port`, `rbridge` or `gateway`.
    pub place: String,
    /// Interface of our port that it is behind.
    pub interface: Option<String>,
    /// Nickname of the RBridge that it is behind.
    pub nickname: Option<u16>,
    /// That one's host name, or its system ID.
    pub hostname: Option<String>,
    /// `learned` or `static`.
    pub origin: String,
    /// Time since a frame of it was last seen, seconds; none where that does not count.
    pub silent_s: Option<u32>,
}
