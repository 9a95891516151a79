//! The rules of a valid fabric.

use std::collections::{BTreeMap, BTreeSet};

use super::{DELAY_MAX, Fabric, Link, LinkSpec, Node, Port, RATE_MAX, Role, TopologyError};
use crate::id::NodeId;
use crate::name;

/// Rules that need no more than the lists: names, ports, link specifications. The first that is broken.
pub(super) fn parts(name: &str, nodes: &[Node], links: &[Link]) -> Result<(), TopologyError> {
    broken_parts(name, nodes, links).into_iter().next().map_or(Ok(()), Err)
}

/// Every one of the same that is broken: one for each node, and for each link.
pub(super) fn broken_parts(name: &str, nodes: &[Node], links: &[Link]) -> Vec<TopologyError> {
    let mut broken = Vec::new();
    if !name::is_usable(name) {
        broken.push(TopologyError::BadName(name.to_owned()));
    }
    if nodes.is_empty() {
        broken.push(TopologyError::Empty(name.to_owned()));
    }
    let mut seen = BTreeMap::new();
    broken.extend(nodes.iter().filter_map(|node| check_node_name(&node.name, &mut seen).err()));
    let mut ports = BTreeSet::new();
    broken.extend(links.iter().filter_map(|link| check_link(nodes, link, &mut ports).err()));
    broken
}

/// Rules about the shape: where hosts hang, and that everything is reachable.
pub(super) fn whole(fabric: &Fabric) -> Result<(), TopologyError> {
    check_servers(fabric)?;
    super::outside::check_places(fabric)?;
    check_connected(fabric)
}

fn check_servers(fabric: &Fabric) -> Result<(), TopologyError> {
    for id in hosts(fabric) {
        let node = fabric.node(id);
        let links = fabric.links_of(id).len();
        if links != 1 && (node.role != Role::Router || links == 0) {
            return Err(TopologyError::ServerLinks { node: node.name.clone(), role: node.role, links });
        }
        let above = fabric.links_of(id).iter().filter_map(|link| fabric.link(*link).far_end(id)).map(|port| port.node);
        let mut above = above.filter(|edge| !fabric.node(*edge).role.is_edge_switch());
        if let Some(edge) = above.next() {
            return Err(TopologyError::ServerPlace { node: node.name.clone(), switch: fabric.node(edge).name.clone() });
        }
    }
    Ok(())
}

/// Nodes that hang below an edge switch; the one outside does not.
fn hosts(fabric: &Fabric) -> impl Iterator<Item = NodeId> + '_ {
    let is_host = |role: Role| !role.is_switch() && role != Role::Internet;
    fabric.ids().filter(move |id| is_host(fabric.node(*id).role))
}

fn check_connected(fabric: &Fabric) -> Result<(), TopologyError> {
    let mut reached = vec![false; fabric.nodes().len()];
    let mut frontier = vec![NodeId(0)];
    reached[0] = true;
    while let Some(at) = frontier.pop() {
        for link in fabric.links_of(at) {
            if let Some(next) = fabric.link(*link).far_end(at)
                && !std::mem::replace(&mut reached[next.node.index()], true)
            {
                frontier.push(next.node);
            }
        }
    }
    match reached.iter().position(|seen| !seen) {
        None => Ok(()),
        Some(index) => Err(TopologyError::Disconnected {
            from: fabric.nodes()[0].name.clone(),
            unreachable: fabric.nodes()[index].name.clone(),
        }),
    }
}

/// `a:if1 - b:if2`, for messages.
pub(super) fn link_name(nodes: &[Node], link: &Link) -> String {
    let end = |port: &Port| {
        let node = nodes.get(port.node.index()).map_or("?", |node| node.name.as_str());
        format!("{node}:{}", port.interface)
    };
    format!("{} - {}", end(&link.a), end(&link.b))
}

fn check_node_name<'a>(node: &'a str, seen: &mut BTreeMap<String, &'a str>) -> Result<(), TopologyError> {
    if !name::is_usable(node) {
        return Err(TopologyError::BadNodeName(node.to_owned()));
    }
    match seen.insert(name::as_host(node), node) {
        Some(other) if other == node => Err(TopologyError::DuplicateNode(node.to_owned())),
        Some(other) => Err(TopologyError::AlikeNodes { node: node.to_owned(), other: other.to_owned() }),
        None => Ok(()),
    }
}

fn check_link<'a>(
    nodes: &[Node],
    link: &'a Link,
    ports: &mut BTreeSet<(NodeId, &'a str)>,
) -> Result<(), TopologyError> {
    let name = link_name(nodes, link);
    for port in [&link.a, &link.b] {
        let Some(node) = nodes.get(port.node.index()) else {
            return Err(TopologyError::DanglingLink { link: name, node: format!("#{}", port.node.0) });
        };
        let interface = &port.interface;
        if !name::is_usable_interface(interface) {
            return Err(TopologyError::BadInterfaceName { node: node.name.clone(), interface: interface.clone() });
        }
        if !ports.insert((port.node, interface)) {
            return Err(TopologyError::DuplicatePort { node: node.name.clone(), interface: interface.clone() });
        }
    }
    check_link_spec(link, name)
}

fn check_link_spec(link: &Link, name: String) -> Result<(), TopologyError> {
    let LinkSpec { rate, buffer, mtu_bytes, delay } = link.spec;
    if link.a.node == link.b.node {
        return Err(TopologyError::SelfLink(name));
    }
    if rate.0 == 0 {
        return Err(TopologyError::ZeroRate(name));
    }
    if rate > RATE_MAX {
        return Err(TopologyError::AbsurdRate { link: name, rate });
    }
    if delay > DELAY_MAX {
        return Err(TopologyError::AbsurdDelay { link: name, delay });
    }
    if !(576..=65535).contains(&mtu_bytes) {
        return Err(TopologyError::BadMtu { link: name, mtu_bytes });
    }
    if buffer.0 < u64::from(mtu_bytes) {
        return Err(TopologyError::BufferTooSmall { link: name, buffer, mtu_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{LinkParams, TestbedParams, overlay_pair, vl2_testbed};
    use super::*;
    use crate::units::{BitsPerSec, Nanos};

    #[test]
    fn a_name_that_is_not_unique_or_not_plain_is_refused() {
        let fabric = overlay_pair(&LinkParams::default()).expect("valid");
        for name in ["s1", "S1", "", "1s", "a b", "a/b", "a.", "a..b", "ü", &"n".repeat(33)] {
            let mut nodes = fabric.nodes().to_vec();
            nodes[0].name = name.to_owned();
            let error = Fabric::new("x", nodes, fabric.links().to_vec()).expect_err(name);
            let is_alike = matches!(error, TopologyError::DuplicateNode(_) | TopologyError::AlikeNodes { .. });
            assert_eq!(is_alike, name.eq_ignore_ascii_case("s1"), "{error}");
            assert!(is_alike || matches!(error, TopologyError::BadNodeName(_)), "{error}");
        }
    }

    #[test]
    fn a_link_to_no_node_is_refused() {
        let fabric = overlay_pair(&LinkParams::default()).expect("valid");
        let mut links = fabric.links().to_vec();
        links[0].b.node = NodeId(99);
        let error = Fabric::new("x", fabric.nodes().to_vec(), links).expect_err("dangling");
        assert_eq!(error.to_string(), "link `int1:tor1 - ?:int1` ends at node `#99`, which is not among the nodes");
    }

    #[test]
    fn a_link_twice_is_refused() {
        let fabric = overlay_pair(&LinkParams::default()).expect("valid");
        let mut links = fabric.links().to_vec();
        links.push(links[0].clone());
        let error = Fabric::new("x", fabric.nodes().to_vec(), links).expect_err("duplicate");
        assert!(matches!(error, TopologyError::DuplicatePort { .. }), "{error}");
    }

    #[test]
    fn rates_and_delays_beyond_any_link_are_refused_by_name() {
        let with = |rate, delay| {
            overlay_pair(&LinkParams { server_rate: BitsPerSec(rate), delay: Nanos(delay), ..LinkParams::default() })
        };
        let (rate, delay) = (10_000_000_000_000, 10_000_000_000);
        assert!(with(rate, delay).is_ok());
        assert_eq!(
            with(rate + 1, 0).unwrap_err().to_string(),
            "link `tor1:s1 - s1:eth0` has rate 10000000000001 bit/s; choose at most 10000 Gbit/s"
        );
        let late = with(rate, delay + 1).unwrap_err();
        assert!(matches!(&late, TopologyError::AbsurdDelay { link, .. } if link == "int1:tor1 - tor1:int1"), "{late}");
    }

    #[test]
    fn packets_longer_than_a_link_carries_are_refused_by_name() {
        let fabric = overlay_pair(&LinkParams::default()).expect("valid");
        let mut links = fabric.links().to_vec();
        links[2].spec.mtu_bytes = 1500;
        let fabric = Fabric::new("x", fabric.nodes().to_vec(), links).expect("valid");
        assert_eq!(fabric.check_packet(1500), Ok(()));
        assert_eq!(
            fabric.check_packet(1540).unwrap_err().to_string(),
            "packets of 1540 bytes, outer headers included, do not fit link `tor1:s1 - s1:eth0`, whose MTU is 1500"
        );
    }

    #[test]
    fn no_nodes_are_no_fabric() {
        assert_eq!(Fabric::new("x", Vec::new(), Vec::new()), Err(TopologyError::Empty("x".to_owned())));
    }

    #[test]
    fn roles_and_links_are_found() {
        let fabric = vl2_testbed(&TestbedParams::default()).expect("valid");
        assert_eq!(fabric.switches().count(), 10);
        let server = fabric.find("s20").expect("there");
        let (edge, link) = fabric.edge_of(server).expect("hangs below a ToR");
        assert_eq!(fabric.node(edge).name, "tor2");
        assert_eq!((fabric.link_class(link).as_str(), fabric.edge_of(edge)), ("tor-server", None));
        assert_eq!(fabric.find("s76"), None);
        assert_eq!(fabric.with_role(Role::Spine).count(), 0);
    }
}
