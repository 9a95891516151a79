//! Fabrics as YAML files: a small subset of containerlab's format, with what a measured network needs added to it.
//!
//! ```yaml
//! name: two-racks
//! topology:
//!   defaults:
//!     kind: linux                      # the only kind: every node is a namespace
//!     link: {rate: 20 Mbit/s}          # ours: for links that do not say otherwise
//!   nodes:
//!     int1: {role: intermediate}       # ours; `labels: {role: intermediate}` is read too
//!     tor1: {role: tor}
//!     s1:   {role: server}
//!   links:
//!     - endpoints: ["int1:tor1", "tor1:int1"]     # the upper end first
//!       rate: 200 Mbit/s                          # ours, as are buffer, mtu and delay
//!     - endpoints: ["tor1:s1", "s1:eth0"]
//! ```
//!
//! In a fabric of RBridges the links of hosts say their VLAN and address too, `vlan: 10, address: 10.0.10.1/24`, and
//! `gateways: {10: 10.0.10.254/24}` beside `links` names the addresses that the RBridges route from;
//! `groups: true` has them prune IP multicast groups.
//!
//! `forwarding: bridge` on a switch's line is what it forwards with, where that is not the overlay of the network.
//!
//! `services` and `broadcast` beside `topology` say which servers share a service, and how broadcast reaches them:
//!
//! ```yaml
//! services:                            # a server is in one at most; the common service, 0, has those of none
//!   web:  {servers: [s1, s3]}          # service 1
//!   data: {servers: [s2, s4]}          # service 2
//! broadcast: {delivery: group, limit: 10 Mbit/s, burst: 64 kB}    # for each server; delivery: group or copies
//! ```
//!
//! `dhcp: {server: dir1}` names the node that hands out the servers' addresses.
//!
//! `outside: {pool: 198.51.100.0/24, servers: [s1, s3]}` beside `topology` names the servers that a node of role `internet`
//! reaches, and the prefix of their public LAs.
//!
//! Anchors and merge keys (`<<`) work. Every other key of containerlab is refused with its line: a file that says more
//! than we do should not seem to work.

mod outside;
mod raw;
mod write;

use std::collections::{BTreeMap, HashMap};

use serde_saphyr::MessageFormatter;

pub use write::to_yaml;

use self::outside::RawOutside;
use self::raw::{RawDefaults, RawFile, RawLink, RawNode, RawService};
use super::{
    Access, Campus, FABRIC_MTU_BYTES, Fabric, Forwarding, Link, LinkSpec, Node, Port, Role, Service, TopologyError,
};
use crate::id::{LinkId, NodeId};
use crate::units::{Bytes, Nanos};

/// Buffer of a link that names none.
const BUFFER_DEFAULT: Bytes = Bytes(4_000_000);

/// Why a fabric file is refused: one line that begins with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Not YAML, an unknown key, a missing key or a value of the wrong kind.
    #[error("{place}: {message}")]
    Syntax {
        /// `file:line:column`, or the file alone where the parser knows no more.
        place: String,
        /// What is wrong there and what to write.
        message: String,
    },
    /// A rule of a valid fabric is broken.
    #[error("{place}: {}", on_one_line(&error.to_string()))]
    Topology {
        /// `file:line`, or the file alone where the rule is about the whole.
        place: String,
        error: TopologyError,
    },
}

/// JSON schema of a fabric's file.
pub fn fabric_schema() -> schemars::Schema {
    schemars::schema_for!(raw::RawFile)
}

/// Reads a fabric from the text of a file; `source_name` is the file's name for messages.
pub fn from_yaml(text: &str, source_name: &str) -> Result<Fabric, LoadError> {
    let file = parse(text, source_name)?;
    let reader = Reader { source_name, defaults: &file.topology.defaults };
    let nodes = reader.nodes(&file.topology.nodes.0)?;
    let links = reader.links(&nodes, &file.topology.links)?;
    let forwarding = reader.forwarding(&file.topology.nodes.0);
    let access = reader.access(&file.topology.links)?;
    let campus = Campus { access, gateways: file.topology.gateways.clone(), groups: file.topology.groups };
    let services = reader.services(&nodes, &file.services.0)?;
    let broadcast = file.broadcast.as_ref().map(|broadcast| broadcast.value);
    let dhcp = file.dhcp.as_ref().map(|dhcp| reader.dhcp_server(&nodes, &dhcp.server)).transpose()?;
    let outside = file.outside.as_ref().map(RawOutside::spec);
    let fabric = Fabric::new(&*file.name, nodes, links).and_then(|fabric| fabric.with_campus(campus));
    let fabric = fabric.and_then(|fabric| fabric.with_services(services, broadcast));
    let fabric = fabric.and_then(|fabric| fabric.with_dhcp(dhcp));
    let fabric = fabric.and_then(|fabric| fabric.with_forwarding(forwarding));
    fabric.and_then(|fabric| fabric.with_outside(outside.as_ref())).map_err(|error| {
        let line = file.line_of(&error);
        let place = line.map_or_else(|| source_name.to_owned(), |line| format!("{source_name}:{line}"));
        LoadError::Topology { place, error }
    })
}

fn parse(text: &str, source_name: &str) -> Result<RawFile, LoadError> {
    // Anchors are limited as by default; the other limits leave room for a hundred thousand servers.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 20_000_000, max_nodes: 20_000_000 },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = match error.location() {
            Some(at) => format!("{source_name}:{}:{}", at.line(), at.column()),
            None => source_name.to_owned(),
        };
        LoadError::Syntax { place, message: message_of(&error) }
    })
}

/// The parser's message on one line, without its place and without advice about its own settings.
fn message_of(error: &serde_saphyr::Error) -> String {
    let error = error.without_snippet();
    let message = match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{key}` is there twice; names of nodes and keys must be unique")
        }
        serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
            format!("unknown key `{field}`; known here: {}", expected.join(", "))
        }
        serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("unknown value `{variant}`; known here: {}", expected.join(", "))
        }
        serde_saphyr::Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        other => serde_saphyr::UserMessageFormatter.format_message(other).into_owned(),
    };
    on_one_line(&message)
}

/// Names in a file may have anything in them.
fn on_one_line(message: &str) -> String {
    message.replace(char::is_control, " ")
}

fn ids(nodes: &[Node]) -> HashMap<&str, NodeId> {
    nodes.iter().zip(0..).map(|(node, index)| (node.name.as_str(), NodeId(index))).collect()
}

/// Turns what the file says into nodes, links and services.
struct Reader<'a> {
    source_name: &'a str,
    defaults: &'a RawDefaults,
}

impl Reader<'_> {
    fn refuse<T>(&self, line: u64, message: String) -> Result<T, LoadError> {
        Err(LoadError::Syntax { place: format!("{}:{line}", self.source_name), message: on_one_line(&message) })
    }

    fn nodes(&self, raw: &[(serde_saphyr::Spanned<String>, Option<RawNode>)]) -> Result<Vec<Node>, LoadError> {
        let node = |(name, node): &(serde_saphyr::Spanned<String>, Option<RawNode>)| {
            Ok(Node { name: name.value.clone(), role: self.role(name, node.as_ref())? })
        };
        raw.iter().map(node).collect()
    }

    fn role(&self, name: &serde_saphyr::Spanned<String>, node: Option<&RawNode>) -> Result<Role, LoadError> {
        let own = node.and_then(|node| node.role.or(node.labels.role));
        let role = own.or(self.defaults.role).or(self.defaults.labels.role);
        match role {
            Some(role) => Ok(role),
            None => self.refuse(
                name.referenced.line(),
                format!("node `{}` has no role; write for example `role: tor`", name.value),
            ),
        }
    }

    fn forwarding(&self, raw: &[(serde_saphyr::Spanned<String>, Option<RawNode>)]) -> BTreeMap<NodeId, Forwarding> {
        let of_node = |((_, node), id): (&(_, Option<RawNode>), NodeId)| {
            let said = node.as_ref()?.forwarding.as_ref()?;
            let place = format!("{}:{}", self.source_name, said.referenced.line());
            Some((id, Forwarding { overlay: said.value, place }))
        };
        raw.iter().zip((0..).map(NodeId)).filter_map(of_node).collect()
    }

    fn links(&self, nodes: &[Node], raw: &[serde_saphyr::Spanned<RawLink>]) -> Result<Vec<Link>, LoadError> {
        let ids = ids(nodes);
        raw.iter()
            .map(|link| {
                let line = link.referenced.line();
                let [a, b] = &link.value.endpoints.0;
                Ok(Link {
                    a: self.port(&ids, link, a, line)?,
                    b: self.port(&ids, link, b, line)?,
                    spec: self.link_spec(&link.value, line)?,
                })
            })
            .collect()
    }

    fn services(
        &self,
        nodes: &[Node],
        raw: &[(serde_saphyr::Spanned<String>, RawService)],
    ) -> Result<Vec<Service>, LoadError> {
        let ids = ids(nodes);
        let service = |(name, service): &(serde_saphyr::Spanned<String>, RawService)| {
            let name = &name.value;
            let server = |server: &serde_saphyr::Spanned<String>| match ids.get(server.value.as_str()) {
                Some(id) => Ok(*id),
                None => self
                    .refuse(server.referenced.line(), format!("service `{name}`: there is no node `{}`", server.value)),
            };
            let servers = service.servers.iter().map(server).collect::<Result<_, _>>()?;
            Ok(Service { name: name.clone(), servers })
        };
        raw.iter().map(service).collect()
    }

    fn dhcp_server(&self, nodes: &[Node], server: &serde_saphyr::Spanned<String>) -> Result<NodeId, LoadError> {
        match ids(nodes).get(server.value.as_str()) {
            Some(id) => Ok(*id),
            None => self.refuse(server.referenced.line(), format!("dhcp: there is no node `{}`", server.value)),
        }
    }

    fn access(&self, raw: &[serde_saphyr::Spanned<RawLink>]) -> Result<BTreeMap<LinkId, Access>, LoadError> {
        let mut access = BTreeMap::new();
        for (link, id) in raw.iter().zip((0..).map(LinkId)) {
            match (link.value.vlan, link.value.address) {
                (None, None) => {}
                (Some(vlan), Some(address)) => drop(access.insert(id, Access { vlan, address })),
                _ => {
                    let name = link.value.name();
                    let message = format!("link `{name}` needs both `vlan` and `address`, or neither");
                    return self.refuse(link.referenced.line(), message);
                }
            }
        }
        Ok(access)
    }

    fn port(
        &self,
        ids: &HashMap<&str, NodeId>,
        link: &serde_saphyr::Spanned<RawLink>,
        endpoint: &str,
        line: u64,
    ) -> Result<Port, LoadError> {
        let Some((node, interface)) = endpoint.split_once(':') else {
            return self.refuse(line, format!("`{endpoint}` is no end of a link; write `node:interface`"));
        };
        match ids.get(node) {
            Some(id) => Ok(Port { node: *id, interface: interface.to_owned() }),
            None => Err(LoadError::Topology {
                place: format!("{}:{line}", self.source_name),
                error: TopologyError::DanglingLink { link: link.value.name(), node: node.to_owned() },
            }),
        }
    }

    fn link_spec(&self, link: &RawLink, line: u64) -> Result<LinkSpec, LoadError> {
        let default = &self.defaults.link;
        let Some(rate) = link.rate.or(default.rate) else {
            let name = link.name();
            return self.refuse(
                line,
                format!("link `{name}` has no rate; write `rate: 20 Mbit/s` here or in `defaults: {{link: ..}}`"),
            );
        };
        Ok(LinkSpec {
            rate,
            buffer: link.buffer.or(default.buffer).unwrap_or(BUFFER_DEFAULT),
            mtu_bytes: link.mtu.or(default.mtu).unwrap_or(FABRIC_MTU_BYTES),
            delay: link.delay.or(default.delay).unwrap_or(Nanos(0)),
        })
    }
}

#[cfg(test)]
mod tests;
