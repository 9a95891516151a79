//! A fabric: nodes, links and the rules that make it a valid one.
//!
//! Generators for the usual shapes live in the submodules; each returns a [`Fabric`], which can only be made through
//! [`Fabric::new`], so whatever holds one holds a valid one.

mod builder;
pub mod campus;
mod check;
pub mod clos;
pub mod conventional;
mod dhcp;
mod directories;
mod error;
pub mod fat_tree;
mod forwarding;
mod incidence;
pub mod leaf_spine;
pub mod line;
pub mod mesh;
pub mod output_queued;
pub mod outside;
mod services;
mod size;
pub mod spec;
pub mod testbed;
pub mod tree;
pub mod yaml;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{LinkId, NodeId};
use crate::units::{BitsPerSec, Bytes, Nanos};

pub use builder::{CORE_OVER_SERVER, FABRIC_MTU_BYTES, LinkParams};
pub use campus::{Access, Campus, InterfaceAddress};
pub use clos::{ClosParams, vl2_clos};
pub use conventional::{ConventionalParams, conventional};
pub use error::TopologyError;
pub use fat_tree::{FatTreeParams, fat_tree};
pub use forwarding::{Forwarding, Island};
pub use leaf_spine::{LeafSpineParams, leaf_spine};
pub use line::overlay_pair;
pub use mesh::{MeshParams, mesh};
pub use output_queued::{OutputQueuedParams, output_queued};
pub use outside::{Outside, OutsideError, OutsideSpec};
pub use services::{Broadcast, Delivery, Service, broadcast_group};
pub use size::{FabricSize, LINKS_MAX};
pub use spec::{FabricError, FabricSpec, Generator};
pub use testbed::{TestbedParams, vl2_testbed};
pub use tree::{TreeParams, tree};
pub use yaml::{LoadError, check_yaml, fabric_schema, from_yaml, to_yaml};

use incidence::Incidence;

/// The highest rate of a link: some way above the fastest Ethernet, so that a slip of the pen is noticed.
pub const RATE_MAX: BitsPerSec = BitsPerSec(10_000_000_000_000);
/// The longest propagation delay of a link: far more than over a satellite.
pub const DELAY_MAX: Nanos = Nanos(10_000_000_000);

/// What a node is in its fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Top tier of a VL2 Clos; owns an anycast LA and decapsulates.
    Intermediate,
    /// Middle tier of a VL2 Clos or of a conventional tree.
    Aggregation,
    /// Top-of-rack switch; servers hang below it.
    Tor,
    /// Upper tier of a leaf-spine fabric.
    Spine,
    /// Lower tier of a leaf-spine fabric; servers hang below it.
    Leaf,
    /// A pair of them routes for each layer-2 domain of a conventional network.
    Access,
    /// Top tier of a conventional tree.
    Core,
    /// A switch of a TRILL campus (RFC 6325); hosts may hang below any of them.
    Rbridge,
    /// An end host.
    Server,
    /// A directory server: an end host that agents ask for AA-to-LA mappings.
    Directory,
    /// A router between VLANs: an end host of a campus with a link to each of them.
    Router,
    /// The world outside a VL2 fabric, beyond the border Intermediates that it is linked to.
    Internet,
}

impl Role {
    /// Whether the node forwards packets and runs a routing protocol.
    pub fn is_switch(self) -> bool {
        !matches!(self, Self::Server | Self::Directory | Self::Router | Self::Internet)
    }

    /// Its place in drawings, 0 at the top: the outside, the top switches, those between, edge switches, end hosts.
    pub fn tier(self) -> usize {
        match self {
            Self::Internet => 0,
            Self::Intermediate | Self::Spine | Self::Core => 1,
            Self::Access | Self::Aggregation => 2,
            Self::Tor | Self::Leaf | Self::Rbridge => 3,
            Self::Server | Self::Directory | Self::Router => Self::HOST_TIER,
        }
    }

    /// The [`Role::tier`] of end hosts, below all others.
    pub const HOST_TIER: usize = 4;

    /// Whether end hosts hang below this switch.
    pub fn is_edge_switch(self) -> bool {
        matches!(self, Self::Tor | Self::Leaf | Self::Rbridge)
    }
}

/// A node of a fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Node {
    /// Unique name, as [`crate::name`] has it.
    pub name: String,
    pub role: Role,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Port {
    /// The node that the link ends at.
    pub node: NodeId,
    /// The interface on that node, unique there, called as [`crate::name`] has it.
    pub interface: String,
}

/// What a link can carry; the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkSpec {
    /// Layer-1 rate of each direction.
    pub rate: BitsPerSec,
    /// Buffer at each end, for the frames that wait to be sent.
    pub buffer: Bytes,
    /// Largest IP packet the link carries.
    pub mtu_bytes: u32,
    /// One-way propagation delay.
    pub delay: Nanos,
}

/// A link between two ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Link {
    /// The upper end, by convention of the generators: the switch nearer the top.
    pub a: Port,
    /// The lower end.
    pub b: Port,
    /// What the link can carry.
    pub spec: LinkSpec,
}

impl Link {
    /// The end at `node`, if the link has one there.
    pub fn end_at(&self, node: NodeId) -> Option<&Port> {
        [&self.a, &self.b].into_iter().find(|port| port.node == node)
    }

    /// The end that is not at `node`.
    pub fn far_end(&self, node: NodeId) -> Option<&Port> {
        if self.a.node == node {
            Some(&self.b)
        } else if self.b.node == node {
            Some(&self.a)
        } else {
            None
        }
    }
}

/// A valid fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    name: String,
    nodes: Vec<Node>,
    links: Vec<Link>,
    links_of: Incidence,
    campus: Campus,
    sharing: services::Sharing,
    dhcp: Option<NodeId>,
    outside: Option<Outside>,
    forwarding: BTreeMap<NodeId, Forwarding>,
}

impl Fabric {
    /// Checks every rule and keeps the fabric, or says which rule is broken and where.
    pub fn new(name: impl Into<String>, nodes: Vec<Node>, links: Vec<Link>) -> Result<Self, TopologyError> {
        let name = name.into();
        check::parts(&name, &nodes, &links)?;
        let links_of = Incidence::new(nodes.len(), &links);
        let (campus, sharing) = (Campus::default(), services::Sharing::default());
        let forwarding = BTreeMap::new();
        let fabric = Self { name, nodes, links, links_of, campus, sharing, dhcp: None, outside: None, forwarding };
        check::whole(&fabric)?;
        Ok(fabric)
    }

    /// The fabric's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All nodes; a [`NodeId`] is an index into them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links; a [`LinkId`] is an index into them.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// One link.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// The links that end at a node, in the order of the links.
    pub fn links_of(&self, id: NodeId) -> &[LinkId] {
        self.links_of.of(id)
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|index| NodeId(index as u32))
    }

    /// All nodes of a role, in order.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = NodeId> + '_ {
        self.ids().filter(move |id| self.node(*id).role == role)
    }

    /// All switches, in order.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids().filter(|id| self.node(*id).role.is_switch())
    }

    /// Servers (without directory servers), in order. A server's place here is its number in a workload.
    pub fn servers(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.with_role(Role::Server)
    }

    /// Every node's id, in order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The edge switch that an end host hangs below, and the link to it: of a router, the first. `None` for switches and
    /// the node outside.
    pub fn edge_of(&self, host: NodeId) -> Option<(NodeId, LinkId)> {
        if self.node(host).role.is_switch() || self.node(host).role == Role::Internet {
            return None;
        }
        let link = *self.links_of(host).first()?;
        Some((self.link(link).far_end(host)?.node, link))
    }

    /// `upper-lower`, the roles at a link's ends, for instance `aggregation-tor`: links of one class are alike.
    pub fn link_class(&self, id: LinkId) -> String {
        let link = self.link(id);
        let role = |node: NodeId| format!("{:?}", self.node(node).role).to_lowercase();
        format!("{}-{}", role(link.a.node), role(link.b.node))
    }

    /// Whether every link carries IP packets of this length; an error names the first that does not.
    pub fn check_packet(&self, packet_bytes: u32) -> Result<(), TopologyError> {
        match self.links.iter().find(|link| packet_bytes > link.spec.mtu_bytes) {
            None => Ok(()),
            Some(link) => Err(TopologyError::PacketAboveMtu {
                link: check::link_name(&self.nodes, link),
                packet_bytes,
                mtu_bytes: link.spec.mtu_bytes,
            }),
        }
    }

    /// `a:if1 - b:if2`, for messages.
    pub fn link_name(&self, id: LinkId) -> String {
        check::link_name(&self.nodes, self.link(id))
    }
}
