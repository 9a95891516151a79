//! Puts nodes and links together for the generators, so that all of them name interfaces alike.

use super::{Fabric, Link, LinkSpec, Node, Port, Role, TopologyError};
use crate::id::NodeId;
use crate::units::{BitsPerSec, Bytes, Nanos};

/// MTU of generated links: a host's 1500 bytes, VL2's 40 bytes of outer headers, and room to spare.
pub const FABRIC_MTU_BYTES: u32 = 1600;
/// Switch-to-switch links are this much faster than server links (VL2 4.1: 1 Gb/s and 10 Gb/s).
pub const CORE_OVER_SERVER: u64 = 10;

/// Servers below one edge switch: what a rack prefix holds, less one place for a directory server.
pub(super) const HOSTS_PER_TOR_MAX: u32 = 252;

/// Rates, buffers and delay of a generated fabric: one class for links to hosts, one for links between switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkParams {
    /// Rate of links to servers and directory servers.
    pub server_rate: BitsPerSec,
    /// Rate of links between switches.
    pub core_rate: BitsPerSec,
    /// Buffer at each end of a link to a host.
    pub server_buffer: Bytes,
    /// Buffer at each end of a link between switches.
    pub core_buffer: Bytes,
    /// One-way propagation delay of every link.
    pub delay: Nanos,
}

impl LinkParams {
    /// Links of a fabric whose servers have this rate: the core ten times as fast, buffers as in the default.
    pub fn for_server_rate(server_rate: BitsPerSec) -> Self {
        let core_rate = BitsPerSec(server_rate.0.saturating_mul(CORE_OVER_SERVER));
        Self {
            server_rate,
            core_rate,
            server_buffer: Bytes(4_000_000),
            core_buffer: Bytes(16_000_000),
            delay: Nanos(0),
        }
    }

    /// A link to a host.
    pub fn server_spec(&self) -> LinkSpec {
        let Self { server_rate: rate, server_buffer: buffer, delay, .. } = *self;
        LinkSpec { rate, buffer, mtu_bytes: FABRIC_MTU_BYTES, delay }
    }

    /// A link between switches.
    pub fn core_spec(&self) -> LinkSpec {
        let Self { core_rate: rate, core_buffer: buffer, delay, .. } = *self;
        LinkSpec { rate, buffer, mtu_bytes: FABRIC_MTU_BYTES, delay }
    }
}

impl Default for LinkParams {
    fn default() -> Self {
        Self::for_server_rate(BitsPerSec(20_000_000))
    }
}

/// Whether parameters of a generator are counts from 1 to their limits: name, value, limit, and what to choose instead.
pub(super) fn check_counts(limits: &[(&'static str, u32, u32, &'static str)]) -> Result<(), TopologyError> {
    for &(parameter, value, most, reason) in limits {
        if !(1..=most).contains(&value) {
            return Err(TopologyError::BadParameter { parameter, value: value.into(), reason });
        }
    }
    Ok(())
}

/// A fabric in the making.
pub(super) struct Builder<'a> {
    params: &'a LinkParams,
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(params: &'a LinkParams) -> Self {
        Self { params, nodes: Vec::new(), links: Vec::new() }
    }

    /// Adds one node.
    pub(super) fn node(&mut self, name: impl Into<String>, role: Role) -> NodeId {
        self.nodes.push(Node { name: name.into(), role });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds `count` nodes called `prefix1`, `prefix2` and so on.
    pub(super) fn tier(&mut self, prefix: &str, role: Role, count: u32) -> Vec<NodeId> {
        (1..=count).map(|number| self.node(format!("{prefix}{number}"), role)).collect()
    }

    /// Links two nodes with what the parameters say for their roles.
    pub(super) fn link(&mut self, upper: NodeId, lower: NodeId) {
        let to_host = !self.nodes[lower.index()].role.is_switch();
        let spec = if to_host { self.params.server_spec() } else { self.params.core_spec() };
        self.link_with(upper, lower, spec);
    }

    /// Links two nodes. On a switch the interface is called after the far node, on a host `eth0`.
    pub(super) fn link_with(&mut self, upper: NodeId, lower: NodeId, spec: LinkSpec) {
        let Node { name, role } = &self.nodes[lower.index()];
        let a = Port { node: upper, interface: name.clone() };
        let interface = if role.is_switch() { self.nodes[upper.index()].name.clone() } else { "eth0".to_owned() };
        self.links.push(Link { a, b: Port { node: lower, interface }, spec });
    }

    /// Links two switches with so many links. The interfaces of the second have `-2` behind their names, and so on.
    fn link_parallel(&mut self, upper: NodeId, lower: NodeId, count: u32) {
        self.link(upper, lower);
        for number in 2..=count {
            self.link(upper, lower);
            for port in self.links.last_mut().into_iter().flat_map(|link| [&mut link.a, &mut link.b]) {
                port.interface.push_str(&format!("-{number}"));
            }
        }
    }

    /// Links every switch of one tier with every switch of the other, with so many links each.
    pub(super) fn link_all(&mut self, uppers: &[NodeId], lowers: &[NodeId], count: u32) {
        for upper in uppers {
            for lower in lowers {
                self.link_parallel(*upper, *lower, count);
            }
        }
    }

    /// Hangs `per_edge[i]` servers below the i-th edge switch; they are called `s1`, `s2`, … from left to right.
    pub(super) fn servers(&mut self, edges: &[NodeId], per_edge: &[u32]) {
        let mut number = 0;
        for (edge, count) in edges.iter().zip(per_edge) {
            for _ in 0..*count {
                number += 1;
                let server = self.node(format!("s{number}"), Role::Server);
                self.link(*edge, server);
            }
        }
    }

    /// Hangs the directory server `dir1` below an edge switch.
    pub(super) fn directory(&mut self, edge: NodeId) {
        let directory = self.node("dir1", Role::Directory);
        self.link(edge, directory);
    }

    /// Checks the rules and hands the fabric over.
    pub(super) fn finish(self, name: impl Into<String>) -> Result<Fabric, TopologyError> {
        Fabric::new(name, self.nodes, self.links)
    }
}
