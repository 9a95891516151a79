//! More directory servers for a fabric that was made with one.

use std::cmp::Reverse;

use super::{Fabric, Link, Node, Port, Role, TopologyError};
use crate::id::NodeId;

impl Fabric {
    /// How many directory servers there are.
    pub fn directory_servers(&self) -> usize {
        self.with_role(Role::Directory).count()
    }

    /// The fabric with at least `count` directory servers. Each new one hangs, by a link like its ToR's other host links,
    /// below the edge switch with the fewest directory servers, then the fewest hosts, so that one ToR's failure takes as
    /// few of them along as can be. The last such switch is taken, as the generators do. A fabric without any directory
    /// server stays as it is.
    pub fn with_directory_servers(&self, count: usize) -> Result<Self, TopologyError> {
        let mut fabric = self.clone();
        while (1..count).contains(&fabric.directory_servers()) {
            let Some(edge) = fabric.roomiest_edge() else { return Ok(fabric) };
            fabric = fabric.with_directory_server_below(edge)?;
        }
        Ok(fabric)
    }

    fn roomiest_edge(&self) -> Option<NodeId> {
        let hosts = |edge: NodeId| self.ids().filter(move |id| self.edge_of(*id).is_some_and(|(at, _)| at == edge));
        let directories = |edge| hosts(edge).filter(|id| self.node(*id).role == Role::Directory).count();
        let edges = self.switches().filter(|edge| hosts(*edge).next().is_some());
        edges.min_by_key(|edge| (directories(*edge), hosts(*edge).count(), Reverse(*edge)))
    }

    fn with_directory_server_below(&self, edge: NodeId) -> Result<Self, TopologyError> {
        let name = (1..).map(|number| format!("dir{number}")).find(|name| self.find(name).is_none());
        let name = name.expect("numbers do not end");
        let is_host_link = |link: &&Link| link.far_end(edge).is_some_and(|far| !self.node(far.node).role.is_switch());
        let like = self.links.iter().find(is_host_link).expect("the switch was chosen because it has a host");
        let (mut nodes, mut links) = (self.nodes.clone(), self.links.clone());
        nodes.push(Node { name: name.clone(), role: Role::Directory });
        let host = Port { node: NodeId(nodes.len() as u32 - 1), interface: "eth0".to_owned() };
        links.push(Link { a: Port { node: edge, interface: name }, b: host, spec: like.spec.clone() });
        let fabric = Self::new(self.name.clone(), nodes, links)?;
        Ok(Self {
            sharing: self.sharing.clone(),
            dhcp: self.dhcp,
            outside: self.outside.clone(),
            forwarding: self.forwarding.clone(),
            ..fabric
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LinkParams, TestbedParams, overlay_pair, vl2_testbed};

    fn places(fabric: &Fabric) -> Vec<(String, String)> {
        let place = |id| Some((fabric.node(id).name.clone(), fabric.node(fabric.edge_of(id)?.0).name.clone()));
        fabric.with_role(Role::Directory).filter_map(place).collect()
    }

    fn pair(name: &str, edge: &str) -> (String, String) {
        (name.to_owned(), edge.to_owned())
    }

    #[test]
    fn they_spread_over_the_racks() {
        let bed = vl2_testbed(&TestbedParams::default()).unwrap().with_directory_servers(3).unwrap();
        assert_eq!(places(&bed), [pair("dir1", "tor4"), pair("dir2", "tor3"), pair("dir3", "tor2")]);
        assert_eq!(bed.servers().count(), 75, "servers keep their numbers");
        let line = overlay_pair(&LinkParams::default()).unwrap().with_directory_servers(3).unwrap();
        assert_eq!(places(&line), [pair("dir1", "tor1"), pair("dir2", "tor2"), pair("dir3", "tor2")]);
        let specs: Vec<_> = line.with_role(Role::Directory).filter_map(|id| line.edge_of(id)).collect();
        assert!(specs.iter().all(|(_, link)| line.link(*link).spec == LinkParams::default().server_spec()));
    }

    #[test]
    fn a_fabric_that_has_enough_stays_as_it_is() {
        let bed = vl2_testbed(&TestbedParams::default()).unwrap();
        assert_eq!(bed.with_directory_servers(1).unwrap(), bed);
        let again = bed.with_directory_servers(3).unwrap();
        assert_eq!(again.with_directory_servers(2).unwrap(), again);
    }
}
