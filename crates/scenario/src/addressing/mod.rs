//! Addresses of a fabric: flat AAs, topological LAs, anycast groups, link addresses and MACs (VL2 4.2.1, 4.2.2).
//!
//! | what | block | example |
//! | --- | --- | --- |
//! | AA of server k (flat, no topology in it) | `20.0.0.0/8` by default | `20.0.0.1` |
//! | LA of the i-th Intermediate, Aggregation, edge switch (loopback) | `10.3`, `10.2`, `10.1` `.hi.lo/32` | `10.1.0.1` |
//! | LA of a server: in its rack's prefix of `10.64.0.0/10`, a /24 or as much larger as needed, switch at .1 | | `10.64.0.2` |
//! | switch-to-switch links, a /31 each | `10.128.0.0/10` | `10.128.0.0`, `10.128.0.1` |
//! | anycast LA of group g | `10.255.255.g+1/32` | `10.255.255.1` |
//! | public LA of the k-th server that is reachable from outside | the fabric's `outside.pool` | `198.51.100.1` |
//! | border links, a /31 each; the node outside | `192.0.2.0/24`; `203.0.113.0/24` | `192.0.2.0`; `203.0.113.1` |
//! | hash of the five-tuple, written as source | `100.64.0.0/10`, 22 bits | `100.64.17.9` |

mod anycast;
mod error;
mod outside;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub use anycast::{AnycastChange, AnycastGroup};
pub use error::AddressError;
pub use outside::OutsideAddresses;
use weft_wire::block::Block;
use weft_wire::flow::HASH_SOURCES;

use self::anycast::Anycast;
use crate::id::{LinkId, NodeId};
use crate::topology::{Fabric, Role};

/// The MAC that every edge switch shows to its servers, so that agents need no state per rack.
pub const VIRTUAL_MAC: [u8; 6] = [0x02, 0x56, 0x4c, 0x32, 0x00, 0x01];
/// All LAs.
pub const LA_BLOCK: Block = Block::of(Ipv4Addr::new(10, 0, 0, 0), 8);
/// Rack prefixes, a /24 or more each.
const RACKS: Block = Block::of(Ipv4Addr::new(10, 64, 0, 0), 10);
/// Addresses of switch-to-switch links, two each.
const LINKS: Block = Block::of(Ipv4Addr::new(10, 128, 0, 0), 10);
/// Addresses that no host may have: this network, loopback, link-local, multicast and reserved ones (RFC 6890).
pub(crate) const NOT_FOR_HOSTS: [Block; 4] = [
    Block::of(Ipv4Addr::new(0, 0, 0, 0), 8),
    Block::of(Ipv4Addr::new(127, 0, 0, 0), 8),
    Block::of(Ipv4Addr::new(169, 254, 0, 0), 16),
    Block::of(Ipv4Addr::new(224, 0, 0, 0), 3),
];
/// Hosts of the largest rack: a /20 less network, switch and broadcast.
pub const SERVERS_PER_RACK_MAX: usize = (1 << 12) - NOT_FOR_RACK_HOSTS;
/// Addresses of a rack prefix that its hosts cannot have: network, switch and broadcast.
const NOT_FOR_RACK_HOSTS: usize = 3;

/// What may be chosen about addressing.
#[derive(Clone, Debug)]
pub struct AddressingOptions {
    /// The flat block of AAs.
    pub aa_block: Block,
    /// How many next hops a switch can spread over; more Intermediates than that make several anycast groups.
    pub ecmp_width: usize,
}

impl Default for AddressingOptions {
    fn default() -> Self {
        Self { aa_block: Block::of(Ipv4Addr::new(20, 0, 0, 0), 8), ecmp_width: 16 }
    }
}

/// All addresses of one fabric.
#[derive(Clone, Debug)]
pub struct AddressPlan {
    options: AddressingOptions,
    aa: Vec<Option<Ipv4Addr>>,
    la: Vec<Ipv4Addr>,
    host_of_aa: BTreeMap<Ipv4Addr, NodeId>,
    racks: BTreeMap<NodeId, Block>,
    links: Vec<Option<(Ipv4Addr, Ipv4Addr)>>,
    anycast: Anycast,
    outside: Option<OutsideAddresses>,
}

impl AddressPlan {
    /// Gives every node and link of the fabric its addresses.
    pub fn new(fabric: &Fabric, options: AddressingOptions) -> Result<Self, AddressError> {
        check_block(fabric, &options)?;
        check_room(fabric, &options)?;
        let racks = rack_prefixes(fabric)?;
        let la = locators(fabric, &racks);
        let mut aa = vec![None; fabric.nodes().len()];
        let mut host_of_aa = BTreeMap::new();
        for (server, number) in fabric.servers().zip(1..) {
            let address = Ipv4Addr::from(u32::from(options.aa_block.network()) + number);
            aa[server.index()] = Some(address);
            host_of_aa.insert(address, server);
        }
        let anycast = Anycast::new(fabric, options.ecmp_width);
        let outside = OutsideAddresses::new(fabric, &options)?;
        Ok(Self { links: link_addresses(fabric), options, aa, la, host_of_aa, racks, anycast, outside })
    }

    /// The AA block.
    pub fn aa_block(&self) -> Block {
        self.options.aa_block
    }

    /// A server's AA; `None` for switches and directory servers.
    pub fn aa(&self, node: NodeId) -> Option<Ipv4Addr> {
        self.aa[node.index()]
    }

    /// Which server has this AA.
    pub fn host_of_aa(&self, aa: Ipv4Addr) -> Option<NodeId> {
        self.host_of_aa.get(&aa).copied()
    }

    /// A node's own LA: a switch's loopback, or a host's address in its rack prefix.
    pub fn la(&self, node: NodeId) -> Ipv4Addr {
        self.la[node.index()]
    }

    /// The prefix of the hosts below an edge switch; the switch itself is at `.1` ([`Self::rack_gateway`]).
    pub fn rack(&self, edge: NodeId) -> Option<Block> {
        self.racks.get(&edge).copied()
    }

    /// The switch's address in its rack prefix.
    pub fn rack_gateway(&self, edge: NodeId) -> Option<Ipv4Addr> {
        self.rack(edge).map(|rack| Ipv4Addr::from(u32::from(rack.network()) + 1))
    }

    /// The addresses of a switch-to-switch link's two ends, a /31; `None` for links to hosts.
    pub fn link(&self, link: LinkId) -> Option<(Ipv4Addr, Ipv4Addr)> {
        self.links[link.index()]
    }

    /// The anycast groups, in order of their addresses. Empty if the fabric has no Intermediate.
    pub fn anycast_groups(&self) -> &[AnycastGroup] {
        self.anycast.groups()
    }

    /// The anycast LA that traffic towards an edge switch uses: groups share the edge switches evenly.
    pub fn anycast_for(&self, edge: NodeId) -> Option<Ipv4Addr> {
        let rack = self.rack(edge)?;
        let place = (u32::from(rack.network()) - u32::from(RACKS.network())) / 256;
        let groups = self.anycast_groups();
        groups.get(place as usize % groups.len().max(1)).map(|group| group.address)
    }

    /// Takes a failed Intermediate out of its group. If that leaves an address without an owner, another Intermediate
    /// takes it over, so that every anycast LA stays alive and agents notice nothing (VL2 4.2.2): one with the fewest
    /// addresses, out of the largest group. Returns each moved address with its new owner; there may be several,
    /// because the failed one may have stood in for others. Only when all Intermediates are down are addresses dead.
    pub fn intermediate_failed(&mut self, failed: NodeId) -> Vec<(Ipv4Addr, NodeId)> {
        self.anycast.fail(failed)
    }

    /// Gives a recovered Intermediate its address back; whoever stood in for it releases the address. Returns the
    /// changes in the order in which they keep every address alive.
    pub fn intermediate_repaired(&mut self, repaired: NodeId) -> Vec<AnycastChange> {
        self.anycast.repair(repaired)
    }

    /// A locally administered MAC for an interface of a node; the virtual MAC for an edge switch's host ports.
    pub fn mac(&self, fabric: &Fabric, link: LinkId, node: NodeId) -> [u8; 6] {
        let far = fabric.link(link).far_end(node).map(|port| fabric.node(port.node).role);
        if fabric.node(node).role.is_edge_switch() && far.is_some_and(|role| !role.is_switch()) {
            return VIRTUAL_MAC;
        }
        port_mac(fabric, link, node)
    }
}

/// A locally administered MAC of a link's end at a node, different from that of every other port.
pub fn port_mac(fabric: &Fabric, link: LinkId, node: NodeId) -> [u8; 6] {
    let end = u8::from(fabric.link(link).b.node == node);
    let [a, b, c, d] = link.0.to_be_bytes();
    [0x02, end, a, b, c, d]
}

fn check_block(fabric: &Fabric, options: &AddressingOptions) -> Result<(), AddressError> {
    let block = options.aa_block;
    if options.ecmp_width == 0 {
        return Err(AddressError::ZeroWidth);
    }
    if let Some(with) = [LA_BLOCK, HASH_SOURCES].iter().chain(&NOT_FOR_HOSTS).find(|other| block.overlaps(**other)) {
        return Err(AddressError::Overlap { block: block.to_string(), with: with.to_string() });
    }
    let servers = fabric.servers().count();
    let room = block.size().saturating_sub(2);
    if servers as u64 > room {
        return Err(AddressError::BlockTooSmall { block: block.to_string(), room, servers });
    }
    Ok(())
}

/// Whether the blocks of LAs have room for the fabric.
fn check_room(fabric: &Fabric, options: &AddressingOptions) -> Result<(), AddressError> {
    let edges = fabric.ids().filter(|id| fabric.node(*id).role.is_edge_switch()).count();
    let uppers = fabric.switches().count() - edges;
    let links = (0..fabric.links().len() as u32).filter(|link| is_between_switches(fabric, LinkId(*link))).count();
    let groups = fabric.with_role(Role::Intermediate).count().div_ceil(options.ecmp_width);
    for (what, count, room) in [
        ("switches above the edge", uppers, usize::from(u16::MAX)),
        ("links between switches", links, LINKS.size() as usize / 2),
        ("anycast groups", groups, anycast::GROUPS_MAX),
    ] {
        if count > room {
            return Err(AddressError::TooMany { what, count, room });
        }
    }
    Ok(())
}

fn rack_prefixes(fabric: &Fabric) -> Result<BTreeMap<NodeId, Block>, AddressError> {
    let edges: Vec<NodeId> = fabric.ids().filter(|id| fabric.node(*id).role.is_edge_switch()).collect();
    let mut racks = BTreeMap::new();
    let mut used: u64 = 0;
    for edge in &edges {
        let hosts = hosts_below(fabric, *edge).count();
        if hosts > SERVERS_PER_RACK_MAX {
            return Err(AddressError::RackTooLarge { switch: fabric.node(*edge).name.clone(), hosts });
        }
        let size = (hosts + NOT_FOR_RACK_HOSTS).next_power_of_two().max(256) as u64;
        let start = used.next_multiple_of(size);
        used = start + size;
        if used > RACKS.size() {
            return Err(AddressError::TooMany { what: "edge switches", count: edges.len(), room: racks.len() });
        }
        let network = Ipv4Addr::from(u32::from(RACKS.network()) + start as u32);
        racks.insert(*edge, Block::of(network, 32 - size.ilog2() as u8));
    }
    Ok(racks)
}

fn hosts_below(fabric: &Fabric, edge: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    fabric
        .links_of(edge)
        .iter()
        .filter_map(move |link| fabric.link(*link).far_end(edge))
        .map(|port| port.node)
        .filter(|node| !fabric.node(*node).role.is_switch())
}

fn locators(fabric: &Fabric, racks: &BTreeMap<NodeId, Block>) -> Vec<Ipv4Addr> {
    let mut la = vec![Ipv4Addr::UNSPECIFIED; fabric.nodes().len()];
    for (tier, second) in [
        (&[Role::Tor, Role::Leaf, Role::Rbridge][..], 1u8),
        (&[Role::Aggregation], 2),
        (&[Role::Intermediate, Role::Spine, Role::Core], 3),
        (&[Role::Access], 4),
    ] {
        let switches = fabric.ids().filter(|id| tier.contains(&fabric.node(*id).role));
        for (number, switch) in switches.enumerate() {
            let [high, low] = (number as u16 + 1).to_be_bytes();
            la[switch.index()] = Ipv4Addr::new(10, second, high, low);
        }
    }
    for internet in fabric.with_role(Role::Internet) {
        la[internet.index()] = outside::client();
    }
    for (edge, rack) in racks {
        for (number, host) in hosts_below(fabric, *edge).enumerate() {
            la[host.index()] = Ipv4Addr::from(u32::from(rack.network()) + 2 + number as u32);
        }
    }
    la
}

fn is_between_switches(fabric: &Fabric, link: LinkId) -> bool {
    let link = fabric.link(link);
    [&link.a, &link.b].into_iter().all(|port| fabric.node(port.node).role.is_switch())
}

fn link_addresses(fabric: &Fabric) -> Vec<Option<(Ipv4Addr, Ipv4Addr)>> {
    let mut next = u32::from(LINKS.network());
    let mut addresses = Vec::with_capacity(fabric.links().len());
    for link in 0..fabric.links().len() as u32 {
        addresses.push(is_between_switches(fabric, LinkId(link)).then(|| {
            next += 2;
            (Ipv4Addr::from(next - 2), Ipv4Addr::from(next - 1))
        }));
    }
    addresses
}

#[cfg(test)]
mod tests;
