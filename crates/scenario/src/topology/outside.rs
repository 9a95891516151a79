//! The outside world of a VL2 fabric: one node that stands for the Internet, with a link to each border Intermediate, and
//! the servers that are reachable from there by an LA of a public pool (VL2 4.2.3).

use std::collections::BTreeSet;

use super::{Fabric, Role, TopologyError};
use weft_wire::block::Block;
use weft_wire::flow::HASH_SOURCES;

use crate::addressing::{LA_BLOCK, NOT_FOR_HOSTS};
use crate::id::{LinkId, NodeId};

/// Addresses of the links between border Intermediates and the outside, a /31 each (TEST-NET-1, RFC 5737).
pub const BORDER_LINKS: Block = Block::of(std::net::Ipv4Addr::new(192, 0, 2, 0), 24);
/// Addresses outside, all of the one node's (TEST-NET-3, RFC 5737).
pub const OUTSIDE_NET: Block = Block::of(std::net::Ipv4Addr::new(203, 0, 113, 0), 24);
/// Addresses of a pool that no server can have: network and broadcast.
const NOT_FOR_SERVERS: u64 = 2;

/// What a fabric says of the world outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The node that stands for it.
    pub node: NodeId,
    /// The prefix that the border announces by BGP.
    pub pool: Block,
    /// Servers with an LA of the pool, in the order of their addresses.
    pub servers: Vec<NodeId>,
}

/// What is asked of [`Fabric::with_outside`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideSpec {
    /// The prefix that the border announces by BGP.
    pub pool: Block,
    /// Names of the servers with an LA of the pool.
    pub servers: Vec<String>,
}

/// Why a fabric's outside world is refused; each message names the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideError {
    /// `outside` without a node to stand for it.
    #[error("`outside` needs a node of role `internet`, with a link to each Intermediate at the border")]
    NoNode,
    /// A node outside, and nothing said of it.
    #[error("node `{0}` is the Internet; write `outside: {{pool: 198.51.100.0/24, servers: [..]}}` beside `topology`")]
    NotDeclared(String),
    /// More than one node outside.
    #[error("node `{0}` is a second Internet; one node stands for everything outside, with as many links as you like")]
    SecondNode(String),
    /// The node outside is not linked to an Intermediate.
    #[error("node `{node}` is the Internet and {found}; its links must end at Intermediates, the border of the fabric")]
    NotAtBorder {
        node: String,
        /// Where it is linked to.
        found: String,
    },
    /// More links to the outside than there are addresses for.
    #[error("node `{node}` has {links} links; the addresses of the border are enough for {room}")]
    TooManyLinks {
        node: String,
        /// How many links it has.
        links: usize,
        /// How many there may be.
        room: u64,
    },
    /// The pool meets addresses of the fabric or such as no host may have.
    #[error(
        "`outside.pool` {pool} overlaps {with}; choose public addresses that nothing here has, such as 198.51.100.0/24"
    )]
    PoolOverlaps { pool: String, with: String },
    /// The pool has fewer addresses than servers want.
    #[error("`outside.pool` {pool} has {room} addresses for servers, and {servers} servers want one")]
    PoolTooSmall {
        pool: String,
        /// How many servers fit.
        room: u64,
        /// How many are named.
        servers: usize,
    },
    /// Nobody would have an address.
    #[error("`outside.servers` is empty; name the servers that are reachable from outside")]
    NoServers,
    /// A name in the list that is no server's.
    #[error("`outside.servers` names `{node}`, {found}")]
    BadServer {
        node: String,
        /// What it is instead.
        found: String,
    },
}

impl Fabric {
    /// The fabric with what it says of the outside, or which rule is broken and where. A fabric with a node of role
    /// `internet` must say something, one without must not.
    pub fn with_outside(self, spec: Option<&OutsideSpec>) -> Result<Self, TopologyError> {
        let outside = match (self.internet()?, spec) {
            (None, None) => None,
            (Some(node), None) => return Err(OutsideError::NotDeclared(self.node(node).name.clone()).into()),
            (None, Some(_)) => return Err(OutsideError::NoNode.into()),
            (Some(node), Some(spec)) => {
                check_pool(spec)?;
                Some(Outside { node, pool: spec.pool, servers: servers(&self, &spec.servers)? })
            }
        };
        Ok(Self { outside, ..self })
    }

    /// What the fabric says of the outside, if it has one.
    pub fn outside(&self) -> Option<&Outside> {
        self.outside.as_ref()
    }

    /// The Intermediate's end of a link to the outside; `None` for other links.
    pub fn border_of(&self, link: LinkId) -> Option<NodeId> {
        let ends = [self.link(link).a.node, self.link(link).b.node];
        let leads_out = ends.iter().any(|end| self.node(*end).role == Role::Internet);
        ends.into_iter().find(|end| leads_out && self.node(*end).role == Role::Intermediate)
    }

    fn internet(&self) -> Result<Option<NodeId>, OutsideError> {
        let mut nodes = self.with_role(Role::Internet);
        let first = nodes.next();
        match nodes.next() {
            Some(second) => Err(OutsideError::SecondNode(self.node(second).name.clone())),
            None => Ok(first),
        }
    }
}

/// Whether whoever is outside is linked to the border, and to nothing else.
pub(super) fn check_places(fabric: &Fabric) -> Result<(), OutsideError> {
    fabric.with_role(Role::Internet).try_for_each(|node| check_links(fabric, node))
}

fn check_links(fabric: &Fabric, node: NodeId) -> Result<(), OutsideError> {
    let name = || fabric.node(node).name.clone();
    let links = fabric.links_of(node);
    let not_at_border = |found: String| Err(OutsideError::NotAtBorder { node: name(), found });
    if links.is_empty() {
        return not_at_border("has no link".to_owned());
    }
    if let Some(link) = links.iter().find(|link| fabric.border_of(**link).is_none()) {
        return not_at_border(format!("has the link `{}`", fabric.link_name(*link)));
    }
    let room = BORDER_LINKS.size() / 2;
    if links.len() as u64 > room {
        return Err(OutsideError::TooManyLinks { node: name(), links: links.len(), room });
    }
    Ok(())
}

/// The AA block is chosen later; [`crate::addressing::AddressPlan::new`] looks at that.
fn check_pool(spec: &OutsideSpec) -> Result<(), OutsideError> {
    let pool = spec.pool;
    let named = [
        (LA_BLOCK, "the LAs"),
        (HASH_SOURCES, "the prefix of flow hashes"),
        (BORDER_LINKS, "the links of the border"),
        (OUTSIDE_NET, "the addresses outside"),
    ];
    let reserved = NOT_FOR_HOSTS.map(|prefix| (prefix, "addresses that no host may have"));
    if let Some((prefix, what)) = named.into_iter().chain(reserved).find(|(prefix, _)| pool.overlaps(*prefix)) {
        return Err(OutsideError::PoolOverlaps { pool: pool.to_string(), with: format!("{what}, {prefix}") });
    }
    let room = pool.size().saturating_sub(NOT_FOR_SERVERS);
    if spec.servers.len() as u64 > room {
        return Err(OutsideError::PoolTooSmall { pool: pool.to_string(), room, servers: spec.servers.len() });
    }
    Ok(())
}

fn servers(fabric: &Fabric, names: &[String]) -> Result<Vec<NodeId>, OutsideError> {
    if names.is_empty() {
        return Err(OutsideError::NoServers);
    }
    let mut seen = BTreeSet::new();
    let server = |name: &String| {
        let refused = |found: String| Err(OutsideError::BadServer { node: name.clone(), found });
        match fabric.find(name) {
            None => refused("which is not among the nodes".to_owned()),
            Some(node) if fabric.node(node).role != Role::Server => {
                refused(format!("whose role is {:?}, not Server", fabric.node(node).role))
            }
            Some(node) if !seen.insert(node) => refused("twice".to_owned()),
            Some(node) => Ok(node),
        }
    };
    names.iter().map(server).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::topology::{Link, LinkParams, Node, Port, TestbedParams, vl2_testbed};

    /// The paper's switches with four servers, and a node outside with a link to each of these.
    pub(crate) fn bed_linked_to(neighbours: &[&str]) -> Fabric {
        try_bed_linked_to(neighbours).unwrap()
    }

    fn try_bed_linked_to(neighbours: &[&str]) -> Result<Fabric, TopologyError> {
        let bed = vl2_testbed(&TestbedParams { servers_per_tor: [1; 4], ..TestbedParams::default() }).unwrap();
        let (mut nodes, mut links) = (bed.nodes().to_vec(), bed.links().to_vec());
        let net = NodeId(nodes.len() as u32);
        nodes.push(Node { name: "net".into(), role: Role::Internet });
        for neighbour in neighbours {
            let (count, at) = (links.len(), bed.find(neighbour).unwrap());
            links.push(Link {
                a: Port { node: net, interface: format!("out{count}") },
                b: Port { node: at, interface: format!("net{count}") },
                spec: bed.links()[0].spec.clone(),
            });
        }
        Fabric::new("bed", nodes, links)
    }

    pub(crate) fn spec(pool: &str, servers: &[&str]) -> OutsideSpec {
        OutsideSpec { pool: pool.parse().unwrap(), servers: servers.iter().map(|&name| name.to_owned()).collect() }
    }

    fn refusal(fabric: Fabric, spec: Option<&OutsideSpec>) -> String {
        fabric.with_outside(spec).unwrap_err().to_string()
    }

    #[test]
    fn servers_are_named_in_the_order_of_their_addresses() {
        let fabric =
            bed_linked_to(&["int1", "int3"]).with_outside(Some(&spec("198.51.100.0/29", &["s3", "s1"]))).unwrap();
        let outside = fabric.outside().unwrap();
        let names: Vec<&str> = outside.servers.iter().map(|id| fabric.node(*id).name.as_str()).collect();
        assert_eq!((names, fabric.node(outside.node).name.as_str()), (vec!["s3", "s1"], "net"));
        let borders: Vec<&str> = fabric
            .links_of(outside.node)
            .iter()
            .map(|link| fabric.node(fabric.border_of(*link).unwrap()).name.as_str())
            .collect();
        assert_eq!(borders, ["int1", "int3"]);
        assert_eq!((fabric.border_of(LinkId(0)), fabric.edge_of(outside.node)), (None, None));
        assert!(!fabric.switches().any(|id| id == outside.node), "it runs no OSPF and is no hop of the fabric");
        let more = fabric.with_directory_servers(2).unwrap();
        assert_eq!(more.outside(), fabric.outside(), "what is added to a fabric leaves its outside alone");
    }

    #[test]
    fn a_node_outside_belongs_at_the_border_and_is_the_only_one() {
        let good = spec("198.51.100.0/24", &["s1"]);
        let bed = || bed_linked_to(&["int1"]);
        assert!(refusal(bed(), None).contains("node `net` is the Internet; write `outside: {pool: "));
        for (neighbours, found) in [(&["int1", "tor2"][..], "has the link `net:out"), (&[], "has no link;")] {
            let error = try_bed_linked_to(neighbours).unwrap_err().to_string();
            assert!(error.starts_with(&format!("node `net` is the Internet and {found}")), "{error}");
        }
        let no_node = vl2_testbed(&TestbedParams { links: LinkParams::default(), ..TestbedParams::default() }).unwrap();
        assert!(refusal(no_node, Some(&good)).contains("`outside` needs a node of role `internet`"));
        let mut nodes = bed().nodes().to_vec();
        nodes.push(Node { name: "net2".into(), role: Role::Internet });
        let mut links = bed().links().to_vec();
        let mut second = links.last().unwrap().clone();
        (second.a.node, second.b.interface) = (NodeId(nodes.len() as u32 - 1), "more".into());
        links.push(second);
        let two = Fabric::new("two", nodes, links).unwrap();
        assert!(refusal(two, Some(&good)).contains("node `net2` is a second Internet"));
    }

    #[test]
    fn a_pool_that_overlaps_or_is_too_small_is_refused() {
        for (pool, with) in [
            ("10.9.0.0/24", "the LAs, 10.0.0.0/8"),
            ("8.0.0.0/5", "the LAs"),
            ("100.100.0.0/24", "the prefix of flow hashes, 100.64.0.0/10"),
            ("192.0.2.128/25", "the links of the border, 192.0.2.0/24"),
            ("203.0.113.0/24", "the addresses outside"),
            ("127.0.1.0/24", "no host may have, 127.0.0.0/8"),
            ("169.254.7.0/24", "no host may have"),
            ("239.192.0.0/24", "no host may have, 224.0.0.0/3"),
            ("0.0.0.0/0", "the LAs"),
        ] {
            let error = refusal(bed_linked_to(&["int1"]), Some(&spec(pool, &["s1"])));
            assert!(error.starts_with(&format!("`outside.pool` {pool} overlaps ")) && error.contains(with), "{error}");
        }
        let three = ["s1", "s2", "s3"];
        let error = refusal(bed_linked_to(&["int1"]), Some(&spec("198.51.100.0/30", &three)));
        assert_eq!(error, "`outside.pool` 198.51.100.0/30 has 2 addresses for servers, and 3 servers want one");
        let error = refusal(bed_linked_to(&["int1"]), Some(&spec("198.51.100.0/32", &["s1"])));
        assert!(error.contains("has 0 addresses"), "{error}");
    }

    #[test]
    fn a_list_of_servers_has_servers_and_each_once() {
        for (servers, wanted) in [
            (&["s1", "s9"][..], "`outside.servers` names `s9`, which is not among the nodes"),
            (&["tor1"], "`outside.servers` names `tor1`, whose role is Tor, not Server"),
            (&["dir1"], "`outside.servers` names `dir1`, whose role is Directory, not Server"),
            (&["s1", "s2", "s1"], "`outside.servers` names `s1`, twice"),
            (&[], "`outside.servers` is empty"),
        ] {
            let error = refusal(bed_linked_to(&["int1"]), Some(&spec("198.51.100.0/24", servers)));
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
