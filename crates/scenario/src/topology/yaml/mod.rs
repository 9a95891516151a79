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

mod others;
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
    check,
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

impl LoadError {
    /// `file:line:column`, `file:line`, or the file alone.
    pub fn place(&self) -> &str {
        let (Self::Syntax { place, .. } | Self::Topology { place, .. }) = self;
        place
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> String {
        match self {
            Self::Syntax { message, .. } => message.clone(),
            Self::Topology { error, .. } => on_one_line(&error.to_string()),
        }
    }

    /// Line and column, counted from 1; 0 where they are not known.
    pub fn line_and_column(&self) -> (u64, u64) {
        let mut numbers = self.place().rsplit(':').map_while(|part| part.parse::<u64>().ok()).take(2);
        match (numbers.next(), numbers.next()) {
            (Some(column), Some(line)) => (line, column),
            (Some(line), None) => (line, 0),
            _ => (0, 0),
        }
    }
}

/// JSON schema of a fabric's file.
pub fn fabric_schema() -> schemars::Schema {
    schemars::schema_for!(raw::RawFile)
}

/// Reads a fabric from the text of a file; `source_name` is the file's name for messages. The error is the first mistake of the file.
pub fn from_yaml(text: &str, source_name: &str) -> Result<Fabric, LoadError> {
    build(&parse(text, source_name)?, source_name).map_err(|mut mistakes| mistakes.swap_remove(0))
}

/// Reads a fabric as [`from_yaml`] does. The error has every mistake that can be told without another being mended first, in the order
/// of the file.
pub fn check_yaml(text: &str, source_name: &str) -> Result<Fabric, Vec<LoadError>> {
    let mut mistakes = match parse(text, source_name) {
        Ok(file) => match build(&file, source_name) {
            Ok(fabric) => return Ok(fabric),
            Err(mistakes) => mistakes,
        },
        Err(first) => others::with_others(first, text, source_name),
    };
    mistakes.sort_by_key(LoadError::line_and_column);
    mistakes.dedup();
    Err(mistakes)
}

/// The fabric that a file says, or what is wrong with it: at least one mistake.
fn build(file: &RawFile, source_name: &str) -> Result<Fabric, Vec<LoadError>> {
    let reader = Reader { source_name, defaults: &file.topology.defaults };
    let mut wrong = Vec::new();
    let nodes = reader.nodes(&file.topology.nodes.0, &mut wrong);
    let links = kept(reader.links(&nodes, &file.topology.links), &mut wrong);
    let access = kept(reader.access(&file.topology.links), &mut wrong).into_iter().flatten().collect();
    let services = kept(reader.services(&nodes, &file.services.0), &mut wrong);
    let dhcp = kept(file.dhcp.iter().map(|dhcp| reader.dhcp_server(&nodes, &dhcp.server)), &mut wrong).pop();
    let at = |error: TopologyError| {
        let place = file.line_of(&error).map_or_else(|| source_name.to_owned(), |line| format!("{source_name}:{line}"));
        LoadError::Topology { place, error }
    };
    let name = &*file.name.value;
    wrong.extend(check::broken_parts(name, &nodes, &links).into_iter().map(at));
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let forwarding = reader.forwarding(&file.topology.nodes.0);
    let campus = Campus { access, gateways: file.topology.gateways.clone(), groups: file.topology.groups };
    let broadcast = file.broadcast.as_ref().map(|broadcast| broadcast.value);
    let outside = file.outside.as_ref().map(RawOutside::spec);
    let fabric = Fabric::new(name, nodes, links).and_then(|fabric| fabric.with_campus(campus));
    let fabric = fabric.and_then(|fabric| fabric.with_services(services, broadcast));
    let fabric = fabric.and_then(|fabric| fabric.with_dhcp(dhcp));
    let fabric = fabric.and_then(|fabric| fabric.with_forwarding(forwarding));
    fabric.and_then(|fabric| fabric.with_outside(outside.as_ref())).map_err(|error| vec![at(error)])
}

/// What could be read; what could not is put with the other mistakes.
fn kept<T>(read: impl IntoIterator<Item = Result<T, LoadError>>, wrong: &mut Vec<LoadError>) -> Vec<T> {
    read.into_iter().filter_map(|one| one.map_err(|error| wrong.push(error)).ok()).collect()
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
        let message = if begins_as_toml(text) {
            "this is TOML, as plans and scenarios are; a fabric is YAML, and `weft fabric make` writes one to begin with"
                .to_owned()
        } else {
            message_of(&error)
        };
        LoadError::Syntax { place, message }
    })
}

/// Whether the first line that says something is the head of a table or a key with a sign of equality, which is no line of a fabric.
fn begins_as_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return false };
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let head =
        first.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name.trim_start_matches('['));
    head.is_some_and(is_key) || first.split_once('=').is_some_and(|(key, _)| is_key(key.trim_end()))
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

    /// All nodes, also one without a role, so that links to it are no mistakes of their own.
    fn nodes(&self, raw: &[(serde_saphyr::Spanned<String>, Option<RawNode>)], wrong: &mut Vec<LoadError>) -> Vec<Node> {
        let node = |(name, node): &(serde_saphyr::Spanned<String>, Option<RawNode>)| {
            let role = self.role(name, node.as_ref()).unwrap_or_else(|error| {
                wrong.push(error);
                Role::Server
            });
            Node { name: name.value.clone(), role }
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

    fn links(&self, nodes: &[Node], raw: &[serde_saphyr::Spanned<RawLink>]) -> Vec<Result<Link, LoadError>> {
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
    ) -> Vec<Result<Service, LoadError>> {
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

    /// What each link with a VLAN says of it.
    fn access(&self, raw: &[serde_saphyr::Spanned<RawLink>]) -> Vec<Result<Option<(LinkId, Access)>, LoadError>> {
        let of_link =
            |(link, id): (&serde_saphyr::Spanned<RawLink>, LinkId)| match (link.value.vlan, link.value.address) {
                (None, None) => Ok(None),
                (Some(vlan), Some(address)) => Ok(Some((id, Access { vlan, address }))),
                _ => {
                    let name = link.value.name();
                    self.refuse(
                        link.referenced.line(),
                        format!("link `{name}` needs both `vlan` and `address`, or neither"),
                    )
                }
            };
        raw.iter().zip((0..).map(LinkId)).map(of_link).collect()
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
