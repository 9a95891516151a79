//! The keys of a fabric file, as serde reads them, with the lines they stand on.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;

use super::super::{Broadcast, InterfaceAddress, OutsideError, Role, TopologyError};
use super::outside::RawOutside;
use crate::overlay::Overlay;
use crate::units::{BitsPerSec, Bytes, Nanos};

/// A whole file.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[schemars(with = "String")]
    pub(super) name: Spanned<String>,
    pub(super) topology: RawTopology,
    /// Ours: in the order of the file.
    #[serde(default)]
    pub(super) services: InOrder<RawService>,
    /// Ours.
    #[schemars(with = "Option<Broadcast>")]
    pub(super) broadcast: Option<Spanned<Broadcast>>,
    /// Ours.
    pub(super) dhcp: Option<RawDhcp>,
    /// Ours: what is reachable from outside.
    pub(super) outside: Option<RawOutside>,
}

/// `dhcp:`
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDhcp {
    #[schemars(with = "String")]
    pub(super) server: Spanned<String>,
}

/// One service.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawService {
    #[schemars(with = "Vec<String>")]
    pub(super) servers: Vec<Spanned<String>>,
}

/// `topology:`
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTopology {
    #[serde(default)]
    pub(super) defaults: RawDefaults,
    pub(super) nodes: InOrder<Option<RawNode>>,
    #[serde(default)]
    #[schemars(with = "Vec<RawLink>")]
    pub(super) links: Vec<Spanned<RawLink>>,
    /// Ours: by VLAN.
    #[serde(default)]
    pub(super) gateways: BTreeMap<u16, InterfaceAddress>,
    /// Ours: whether RBridges send frames for IP multicast groups where hosts have joined them, and nowhere else.
    #[serde(default)]
    pub(super) groups: bool,
}

/// `defaults:`
#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawDefaults {
    #[serde(rename = "kind")]
    _kind: Option<Kind>,
    pub(super) role: Option<Role>,
    pub(super) labels: Labels,
    pub(super) link: RawLinkDefaults,
}

/// `defaults: {link: ..}`
#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLinkDefaults {
    pub(super) rate: Option<BitsPerSec>,
    pub(super) buffer: Option<Bytes>,
    pub(super) mtu: Option<u32>,
    pub(super) delay: Option<Nanos>,
}

/// One node; nothing is required here because the defaults may say it.
#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNode {
    #[serde(rename = "kind")]
    _kind: Option<Kind>,
    pub(super) role: Option<Role>,
    pub(super) labels: Labels,
    /// Ours.
    #[schemars(with = "Option<Overlay>")]
    pub(super) forwarding: Option<Spanned<Overlay>>,
}

/// What runs a node.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Linux,
}

/// Free labels, of which only `role` means something to us.
#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct Labels {
    pub(super) role: Option<Role>,
    #[serde(flatten)]
    _others: BTreeMap<String, String>,
}

/// One link.
#[derive(serde::Deserialize, schemars::JsonSchema)]
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
#[derive(serde::Deserialize, schemars::JsonSchema)]
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

/// Entries in the order of the file, each with the place of its name.
pub(super) struct InOrder<Entry>(pub(super) Vec<(Spanned<String>, Entry)>);

/// What stands behind a name.
pub(super) trait Named {
    /// For messages: what the names are of.
    const EXPECTED: &'static str;
}

impl Named for Option<RawNode> {
    const EXPECTED: &'static str = "nodes, as `name: {role: ..}`";
}

impl Named for RawService {
    const EXPECTED: &'static str = "services, as `name: {servers: [..]}`";
}

impl<Entry> Default for InOrder<Entry> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, Entry: Named + Deserialize<'de>> Deserialize<'de> for InOrder<Entry> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<Entry>(PhantomData<Entry>);
        impl<'de, Entry: Named + Deserialize<'de>> Visitor<'de> for Entries<Entry> {
            type Value = InOrder<Entry>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(Entry::EXPECTED)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<Entry>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(InOrder(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<Entry: schemars::JsonSchema> schemars::JsonSchema for InOrder<Entry> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}ByName", Entry::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let entry = generator.subschema_for::<Entry>();
        schemars::json_schema!({ "type": "object", "additionalProperties": entry })
    }
}

impl RawFile {
    /// The line that breaks a rule, where the rule is about one entry.
    pub(super) fn line_of(&self, error: &TopologyError) -> Option<u64> {
        match error {
            TopologyError::BadName(_) | TopologyError::Empty(_) => Some(self.name.referenced.line()),
            TopologyError::Service { service, .. } => self.service_line(service),
            TopologyError::Broadcast { .. } => self.broadcast.as_ref().map(|broadcast| broadcast.referenced.line()),
            TopologyError::Dhcp { .. } => self.dhcp.as_ref().map(|dhcp| dhcp.server.referenced.line()),
            other => {
                let in_outside = self.outside.as_ref().and_then(|outside| outside.line_of(other));
                in_outside.or_else(|| self.topology.line_of(other))
            }
        }
    }

    /// The last of this name: of two that share one, the second is to blame.
    fn service_line(&self, service: &str) -> Option<u64> {
        self.services.0.iter().rfind(|(name, _)| name.value == service).map(|(name, _)| name.referenced.line())
    }
}

impl RawTopology {
    /// The line that breaks a rule, where the rule is about one node or link.
    fn line_of(&self, error: &TopologyError) -> Option<u64> {
        match error {
            TopologyError::BadNodeName(name)
            | TopologyError::DuplicateNode(name)
            | TopologyError::AlikeNodes { node: name, .. } => self.node_line(name),
            TopologyError::ServerLinks { node, .. } | TopologyError::ServerPlace { node, .. } => self.node_line(node),
            TopologyError::Disconnected { unreachable, .. } => self.node_line(unreachable),
            TopologyError::MixedSwitches(node)
            | TopologyError::RouterPlace(node)
            | TopologyError::Forwarding { node, .. } => self.node_line(node),
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
            TopologyError::Outside(
                OutsideError::NotDeclared(node)
                | OutsideError::SecondNode(node)
                | OutsideError::NotAtBorder { node, .. }
                | OutsideError::TooManyLinks { node, .. },
            ) => self.node_line(node),
            TopologyError::Outside(_)
            | TopologyError::BadName(_)
            | TopologyError::Empty(_)
            | TopologyError::BadParameter { .. }
            | TopologyError::TooManyLinks { .. }
            | TopologyError::Gateway { .. }
            | TopologyError::Service { .. }
            | TopologyError::Broadcast { .. }
            | TopologyError::Dhcp { .. } => None,
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
