//! The keys of a fabric file, as serde reads them, with the lines they stand on.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;

use super::super::{InterfaceAddress, Role, TopologyError};
use crate::units::{BitsPerSec, Bytes, Nanos};

/// A whole file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) name: String,
    pub(super) topology: RawTopology,
}

/// `topology:`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTopology {
    #[serde(default)]
    pub(super) defaults: RawDefaults,
    pub(super) nodes: RawNodes,
    #[serde(default)]
    pub(super) links: Vec<Spanned<RawLink>>,
    /// Ours: by VLAN.
    #[serde(default)]
    pub(super) gateways: BTreeMap<u16, InterfaceAddress>,
}

/// `defaults:`
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawDefaults {
    #[serde(rename = "kind")]
    _kind: Option<Kind>,
    pub(super) role: Option<Role>,
    pub(super) labels: Labels,
    pub(super) link: RawLinkDefaults,
}

/// `defaults: {link: ..}`
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLinkDefaults {
    pub(super) rate: Option<BitsPerSec>,
    pub(super) buffer: Option<Bytes>,
    pub(super) mtu: Option<u32>,
    pub(super) delay: Option<Nanos>,
}

/// One node; nothing is required here because the defaults may say it.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNode {
    #[serde(rename = "kind")]
    _kind: Option<Kind>,
    pub(super) role: Option<Role>,
    pub(super) labels: Labels,
}

/// What runs a node.
#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Linux,
}

/// Free labels, of which only `role` means something to us.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Labels {
    pub(super) role: Option<Role>,
    #[serde(flatten)]
    _others: BTreeMap<String, String>,
}

/// One link.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLink {
    pub(super) endpoints: Endpoints,
    pub(super) rate: Option<BitsPerSec>,
    pub(super) buffer: Option<Bytes>,
    pub(super) mtu: Option<u32>,
    pub(super) delay: Option<Nanos>,
    pub(super) vlan: Option<u16>,
    pub(super) address: Option<InterfaceAddress>,
}

impl RawLink {
    /// `a:if1 - b:if2`, as [`TopologyError`] names links.
    pub(super) fn name(&self) -> String {
        self.endpoints.0.join(" - ")
    }
}

/// Two texts `node:interface`.
#[derive(serde::Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(super) struct Endpoints(pub(super) [String; 2]);

impl TryFrom<Vec<String>> for Endpoints {
    type Error = String;
    fn try_from(ends: Vec<String>) -> Result<Self, String> {
        <[String; 2]>::try_from(ends)
            .map(Self)
            .map_err(|ends| format!("a link has two endpoints, `[\"a:eth1\", \"b:eth1\"]`, not {}", ends.len()))
    }
}

/// The nodes in the order of the file, each with the place of its name.
pub(super) struct RawNodes(pub(super) Vec<(Spanned<String>, RawNode)>);

impl<'de> Deserialize<'de> for RawNodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = RawNodes;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("nodes, as `name: {role: ..}`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawNodes, A::Error> {
                let mut nodes = Vec::new();
                while let Some((name, node)) = map.next_entry::<Spanned<String>, Option<RawNode>>()? {
                    nodes.push((name, node.unwrap_or_default()));
                }
                Ok(RawNodes(nodes))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl RawTopology {
    /// The line that breaks a rule, where the rule is about one node or link.
    pub(super) fn line_of(&self, error: &TopologyError) -> Option<u64> {
        match error {
            TopologyError::BadNodeName(name) | TopologyError::DuplicateNode(name) => self.node_line(name),
            TopologyError::ServerLinks { node, .. } | TopologyError::ServerPlace { node, .. } => self.node_line(node),
            TopologyError::Disconnected { unreachable, .. } => self.node_line(unreachable),
            TopologyError::MixedSwitches(node) | TopologyError::RouterPlace(node) => self.node_line(node),
            TopologyError::BadInterfaceName { node, interface } | TopologyError::DuplicatePort { node, interface } => {
                self.port_line(&format!("{node}:{interface}"))
            }
            TopologyError::SelfLink(link)
            | TopologyError::ZeroRate(link)
            | TopologyError::AbsurdRate { link, .. }
            | TopologyError::AbsurdDelay { link, .. }
            | TopologyError::PacketAboveMtu { link, .. }
            | TopologyError::DanglingLink { link, .. }
            | TopologyError::BufferTooSmall { link, .. }
            | TopologyError::Access { link, .. }
            | TopologyError::BadMtu { link, .. } => self.link_line(link),
            TopologyError::Empty(_) | TopologyError::BadParameter { .. } | TopologyError::Gateway { .. } => None,
        }
    }

    fn node_line(&self, name: &str) -> Option<u64> {
        let found = self.nodes.0.iter().find(|(node, _)| node.value == name);
        found.map(|(node, _)| node.referenced.line())
    }

    /// The last link at a port: of two that share one, the second is to blame.
    fn port_line(&self, port: &str) -> Option<u64> {
        let found = self.links.iter().rfind(|link| link.value.endpoints.0.iter().any(|end| end == port));
        found.map(|link| link.referenced.line())
    }

    fn link_line(&self, name: &str) -> Option<u64> {
        self.links.iter().find(|link| link.value.name() == name).map(|link| link.referenced.line())
    }
}
