//! Which ports a capture looks at: from what people write to interfaces of namespaces.

use std::collections::BTreeSet;
use std::str::FromStr;

use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Fabric;

use crate::error::LabError;
use crate::state::LabState;

/// Ports, as people name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapturePorts {
    /// Both ends of every link.
    All,
    /// All ports of a node, in the order of its links.
    Of {
        /// The node's name.
        node: String,
    },
    /// One interface of a node, of the fabric or not; or what leads to a neighbour.
    At {
        /// The node's name.
        node: String,
        /// The interface's name, or the neighbour's where no interface has it.
        at: String,
    },
}

impl FromStr for CapturePorts {
    type Err = String;

    /// `NODE:INTERFACE`, `NODE:NEIGHBOUR` or `NODE`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if !text.is_empty() => Ok(Self::Of { node: text.to_owned() }),
            Some((node, at)) if !node.is_empty() && !at.is_empty() => {
                Ok(Self::At { node: node.to_owned(), at: at.to_owned() })
            }
            _ => Err("it is not NODE:INTERFACE; write for example tor1:agg1, or tor1 for all ports of tor1".to_owned()),
        }
    }
}

/// An interface to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) node: NodeId,
    pub(super) interface: String,
    /// The link that it is an end of, if the fabric has it.
    pub(super) link: Option<LinkId>,
}

/// The interfaces that are meant, each once.
pub(super) fn find(state: &LabState, fabric: &Fabric, wanted: &[CapturePorts]) -> Result<Vec<Port>, LabError> {
    let mut found = Vec::new();
    for ports in wanted {
        match ports {
            CapturePorts::All => found.extend(fabric.ids().flat_map(|node| of_node(fabric, node))),
            CapturePorts::Of { node } => found.extend(of_node(fabric, find_node(state, fabric, node)?)),
            CapturePorts::At { node, at } => found.extend(at_node(fabric, find_node(state, fabric, node)?, at)),
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|port: &Port| seen.insert((port.node, port.interface.clone())));
    Ok(found)
}

fn find_node(state: &LabState, fabric: &Fabric, name: &str) -> Result<NodeId, LabError> {
    fabric.find(name).ok_or_else(|| state.no_such_node(name))
}

fn of_node(fabric: &Fabric, node: NodeId) -> impl Iterator<Item = Port> {
    let port = move |link: &LinkId| {
        let end = fabric.link(*link).end_at(node)?;
        Some(Port { node, interface: end.interface.clone(), link: Some(*link) })
    };
    fabric.links_of(node).iter().filter_map(port)
}

/// By its own name; else by that of the neighbour; else it is no interface of the fabric, such as a device of a tunnel.
fn at_node(fabric: &Fabric, node: NodeId, at: &str) -> Vec<Port> {
    let ports: Vec<Port> = of_node(fabric, node).collect();
    if let Some(port) = ports.iter().find(|port| port.interface == at) {
        return vec![port.clone()];
    }
    let leads = |port: &Port| peer_of(fabric, port).is_some_and(|(peer, _)| fabric.node(peer).name == at);
    match ports.into_iter().filter(leads).collect::<Vec<_>>() {
        none if none.is_empty() => vec![Port { node, interface: at.to_owned(), link: None }],
        some => some,
    }
}

/// The node and interface at the other end of a port's link.
pub(super) fn peer_of<'a>(fabric: &'a Fabric, port: &Port) -> Option<(NodeId, &'a str)> {
    fabric.link(port.link?).far_end(port.node).map(|far| (far.node, far.interface.as_str()))
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{TestbedParams, vl2_testbed};

    use super::*;

    fn names(text: &str) -> Vec<String> {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let CapturePorts::At { node, at } = text.parse().unwrap() else {
            let node = fabric.find(text).unwrap();
            return of_node(&fabric, node).map(|port| port.interface).collect();
        };
        let node = fabric.find(&node).unwrap();
        at_node(&fabric, node, &at)
            .into_iter()
            .map(|port| format!("{} {:?}", port.interface, port.link.is_some()))
            .collect()
    }

    #[test]
    fn ports_are_known_by_interface_neighbour_or_node() {
        assert_eq!(names("tor1:agg1"), ["agg1 true"]);
        assert_eq!(names("s1:eth0"), ["eth0 true"]);
        assert_eq!(names("s1:tor1"), ["eth0 true"], "a server's interface has not its neighbour's name");
        assert_eq!(names("tor1:vxlan0"), ["vxlan0 false"], "perhaps the namespace has it");
        assert_eq!(names("int1"), ["agg1", "agg2", "agg3"]);
    }

    #[test]
    fn what_names_no_port_is_refused_with_an_example() {
        for text in ["", ":", "tor1:", ":agg1"] {
            assert!(text.parse::<CapturePorts>().unwrap_err().contains("tor1:agg1"), "{text}");
        }
    }
}
