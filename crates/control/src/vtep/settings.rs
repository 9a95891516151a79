//! What a VTEP is wanted to be: the part of its configuration that can change while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanId;

use super::vni::Vni;

/// Frames of each kind that a segment floods per second, unless it is told otherwise.
pub const FLOODED_PER_S: u32 = 10_000;

/// Everything that a VTEP can be told while it runs. Checked by [`super::check`]; changed by [`super::Change`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub vnis: BTreeMap<Vni, Segment>,
    /// Access ports by the name of their interface. Each is in one segment, or as a trunk in one for each of its VLANs.
    pub ports: BTreeMap<String, Port>,
    /// Other VTEPs: who may send to us.
    pub peers: BTreeSet<Ipv4Addr>,
    /// Forwarding entries that do not age.
    pub entries: BTreeMap<(Vni, MacAddress), Entry>,
}

/// One segment: a VNI and how it forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where broadcast, group and unknown unicast frames go beside the local ports.
    pub flood: Flood,
    /// Peers that may send into it; `None`: those of `flood` if it is a list, else all. Those that its entries name may, too.
    pub members: Option<BTreeSet<Ipv4Addr>>,
    /// Learn MACs from frames (RFC 7348 section 4.1).
    pub learn: bool,
    /// How long a learned MAC that is silent is kept, seconds; 0: for ever.
    pub age_s: u32,
    /// Answer ARP requests from what is known, without sending them on.
    pub answer_arp: bool,
    /// Ask the directory where addresses are (the VNI is the directory's service).
    pub directory: bool,
    /// Flood what the directory is asked for meanwhile; otherwise it waits for the answer. Without the directory what is
    /// unknown is always flooded.
    pub flood_misses: bool,
    /// Frames to unknown unicast MACs that are flooded per second, usually [`FLOODED_PER_S`]; 0: none, `None`: all.
    pub unknown_per_s: Option<u32>,
    /// Broadcast and group frames that are flooded per second, usually [`FLOODED_PER_S`], at least 1; `None`: all.
    pub broadcast_per_s: Option<u32>,
}

impl Default for Segment {
    /// Flood and learn as RFC 7348 section 4 has it, by head-end replication to all peers.
    fn default() -> Self {
        Self {
            flood: Flood::Peers,
            members: None,
            learn: true,
            age_s: 300,
            answer_arp: true,
            directory: false,
            flood_misses: false,
            unknown_per_s: Some(FLOODED_PER_S),
            broadcast_per_s: Some(FLOODED_PER_S),
        }
    }
}

/// Where a segment's frames to many go in the underlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flood {
    /// A copy to every peer.
    Peers,
    /// A copy to each of these peers.
    List(BTreeSet<Ipv4Addr>),
    /// One copy to this multicast group (RFC 7348 section 4.2).
    Group(Ipv4Addr),
    Nowhere,
}

impl fmt::Display for Flood {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peers => out.write_str("peers"),
            Self::List(list) => {
                for (place, peer) in list.iter().enumerate() {
                    write!(out, "{}{peer}", if place == 0 { "" } else { " " })?;
                }
                Ok(())
            }
            Self::Group(group) => write!(out, "group {group}"),
            Self::Nowhere => out.write_str("nowhere"),
        }
    }
}

/// An access port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Its segment; of a trunk that of frames without a VLAN tag, `None`: they are dropped.
    pub vni: Option<Vni>,
    /// The segments of its VLANs: with any of them the port is a trunk, which drops frames of other VLANs. Tags are taken off
    /// on the way in and put on again on the way out.
    pub vlans: BTreeMap<VlanId, Vni>,
    /// What becomes of frames with a VLAN tag.
    pub tagged: Tagged,
}

impl Port {
    /// In one segment, which frames without a tag are in.
    pub fn access(vni: Vni) -> Self {
        Self { vni: Some(vni), ..Self::default() }
    }

    /// Whether VLAN tags say the segment.
    pub fn is_trunk(&self) -> bool {
        !self.vlans.is_empty()
    }

    /// The segment of one of its VLANs, or of frames without a tag.
    pub fn vni_of(&self, vlan: Option<VlanId>) -> Option<Vni> {
        vlan.map_or(self.vni, |vlan| self.vlans.get(&vlan).copied())
    }

    /// Its segments, each with its VLAN.
    pub fn circuits(&self) -> impl Iterator<Item = (Option<VlanId>, Vni)> {
        let tagged = self.vlans.iter().map(|(vlan, vni)| (Some(*vlan), *vni));
        self.vni.map(|vni| (None, vni)).into_iter().chain(tagged)
    }
}

/// What an access port does with frames that carry a VLAN tag (RFC 7348 section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tagged {
    /// Drops them: a segment carries untagged frames.
    #[default]
    Drop,
    /// Carries them as they are.
    Keep,
}

/// A forwarding entry that does not age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the MAC is.
    pub to: To,
    /// The IPv4 address that ARP is answered for with this MAC.
    pub ip: Option<Ipv4Addr>,
}

/// Where a MAC is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Behind another VTEP.
    Peer(Ipv4Addr),
    /// Behind an access port; of a trunk: where frames have no tag.
    Port(String),
    /// In a VLAN behind a trunk.
    Vlan(String, VlanId),
}

impl To {
    /// Behind a port, perhaps in a VLAN of it.
    pub fn at(port: &str, vlan: Option<VlanId>) -> Self {
        let port = port.to_owned();
        vlan.map_or(Self::Port(port.clone()), |vlan| Self::Vlan(port, vlan))
    }

    /// The port's name.
    pub fn port(&self) -> Option<&str> {
        match self {
            Self::Port(port) | Self::Vlan(port, _) => Some(port),
            Self::Peer(_) => None,
        }
    }
}

impl fmt::Display for To {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(peer) => peer.fmt(out),
            Self::Port(port) => port.fmt(out),
            Self::Vlan(port, vlan) => write!(out, "{port}.{vlan}"),
        }
    }
}

impl Settings {
    /// Where the segments are at this host: each port, and each VLAN of each trunk.
    pub fn circuits(&self) -> impl Iterator<Item = (Vni, To)> {
        self.ports.iter().flat_map(|(name, port)| port.circuits().map(move |(vlan, vni)| (vni, To::at(name, vlan))))
    }

    /// The peers that a segment's frames to many are copied to.
    pub fn copies_of(&self, segment: &Segment) -> BTreeSet<Ipv4Addr> {
        match &segment.flood {
            Flood::Peers => self.peers.clone(),
            Flood::List(list) => list.clone(),
            Flood::Group(_) | Flood::Nowhere => BTreeSet::new(),
        }
    }
}
