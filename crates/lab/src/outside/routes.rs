//! Routes that BGP must arrive at, beside those of OSPF ([`crate::routes::expected`]).

use std::collections::{BTreeMap, BTreeSet};

use weft_scenario::addressing::{AddressPlan, OutsideAddresses};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::EcmpRoutes;
use weft_scenario::topology::{Fabric, Outside};

use super::borders;
use crate::routes::RouteTable;

/// The kernel's name for the default route.
const DEFAULT: &str = "default";

/// Adds, while these links are down: on switches the way out and the public LAs, on the node outside the pool.
pub(crate) fn add(
    expected: &mut BTreeMap<NodeId, RouteTable>,
    fabric: &Fabric,
    addresses: &AddressPlan,
    paths: &EcmpRoutes,
    down: &BTreeSet<LinkId>,
) {
    let Some((outside, public)) = fabric.outside().zip(addresses.outside()) else { return };
    let view = View { fabric, paths, down, outside, public, borders: borders(fabric) };
    for (switch, table) in expected.iter_mut() {
        table.extend(view.of_switch(*switch));
    }
    expected.insert(outside.node, view.of_outside());
}

struct View<'a> {
    fabric: &'a Fabric,
    paths: &'a EcmpRoutes,
    down: &'a BTreeSet<LinkId>,
    outside: &'a Outside,
    public: &'a OutsideAddresses,
    borders: Vec<NodeId>,
}

impl View<'_> {
    fn of_switch(&self, switch: NodeId) -> RouteTable {
        let mut table = RouteTable::new();
        // A switch that reaches no border hears of nothing.
        if !self.borders.contains(&switch) && self.paths.anycast_next_hops(switch, &self.borders).is_empty() {
            return table;
        }
        let with_way_out: Vec<NodeId> =
            self.borders.iter().copied().filter(|border| !self.ways_out(*border).is_empty()).collect();
        let out = if with_way_out.contains(&switch) {
            self.ways_out(switch)
        } else {
            self.paths.anycast_next_hops(switch, &with_way_out)
        };
        table.insert(DEFAULT.to_owned(), self.interfaces(switch, out));
        for (edge, la) in self.reachable_public() {
            table.insert(la, self.interfaces(switch, self.paths.next_hops(switch, edge)));
        }
        table.retain(|_, interfaces| !interfaces.is_empty());
        table
    }

    /// Over every link to a border that knows the way to some server.
    fn of_outside(&self) -> RouteTable {
        let knows =
            |border: NodeId| self.reachable_public().any(|(edge, _)| !self.paths.next_hops(border, edge).is_empty());
        let links = self.fabric.links_of(self.outside.node).iter().copied();
        let live = links.filter(|link| !self.down.contains(link));
        let used = live.filter(|link| self.fabric.border_of(*link).is_some_and(knows)).collect();
        let mut table = RouteTable::from([(self.public.pool().to_string(), self.interfaces(self.outside.node, used))]);
        table.retain(|_, interfaces| !interfaces.is_empty());
        table
    }

    /// Public LAs of servers whose link is up, each with its edge switch.
    fn reachable_public(&self) -> impl Iterator<Item = (NodeId, String)> + '_ {
        self.public.public_las().filter_map(|(server, la)| {
            let (edge, link) = self.fabric.edge_of(server)?;
            (!self.down.contains(&link)).then(|| (edge, la.to_string()))
        })
    }

    fn ways_out(&self, border: NodeId) -> Vec<LinkId> {
        let links = self.fabric.links_of(border).iter().copied();
        links.filter(|link| self.fabric.border_of(*link).is_some() && !self.down.contains(link)).collect()
    }

    fn interfaces(&self, node: NodeId, links: Vec<LinkId>) -> BTreeSet<String> {
        let ports = links.into_iter().filter_map(|link| self.fabric.link(link).end_at(node));
        ports.map(|port| port.interface.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::addressing::AddressingOptions;
    use weft_scenario::topology::from_yaml;

    use super::*;
    use crate::routes::expected;

    fn fabric() -> Fabric {
        from_yaml(include_str!("../../../../fabrics/vl2-internet.yaml"), "vl2-internet.yaml").unwrap()
    }

    /// By which interfaces a node reaches a destination while some links are down.
    fn by(node: &str, destination: &str, down: &[(&str, &str)]) -> String {
        let fabric = fabric();
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
        let mut links_down = BTreeSet::new();
        for (a, b) in down {
            let (a, b) = (fabric.find(a).unwrap(), fabric.find(b).unwrap());
            let between = fabric.links_of(a).iter().filter(|link| fabric.link(**link).far_end(a).unwrap().node == b);
            links_down.extend(between.copied());
        }
        let tables = expected(&fabric, &addresses, &links_down);
        let found = tables[&fabric.find(node).unwrap()].get(destination);
        found.map_or("-".to_owned(), |by| by.iter().cloned().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_way_out_is_spread_over_the_borders_and_inbound_over_their_links() {
        assert_eq!(by("tor1", "default", &[]), "agg1 agg2");
        assert_eq!(by("agg1", "default", &[]), "int1 int2");
        assert_eq!(by("int1", "default", &[]), "net");
        assert_eq!(by("net", "198.51.100.0/24", &[]), "int1 int2");
        assert_eq!(by("int1", "198.51.100.1", &[]), "agg1 agg2");
        assert_eq!(by("tor1", "198.51.100.1", &[]), "-", "its own server's: a route of the plan");
        assert_eq!(by("tor2", "198.51.100.1", &[]), "agg1 agg2");
    }

    #[test]
    fn a_border_that_lost_a_side_is_left_out() {
        let no_way_out = [("int1", "net")];
        assert_eq!(by("agg1", "default", &no_way_out), "int2");
        assert_eq!(by("int1", "default", &no_way_out), "agg1 agg2", "by way of the other border");
        assert_eq!(by("net", "198.51.100.0/24", &no_way_out), "int2");
        let no_fabric = [("int1", "agg1"), ("int1", "agg2")];
        assert_eq!(by("net", "198.51.100.0/24", &no_fabric), "int2");
        assert_eq!(by("agg1", "default", &no_fabric), "int2");
        assert_eq!(by("agg1", "default", &[("int1", "net"), ("int2", "net")]), "-");
        assert_eq!(by("agg1", "198.51.100.1", &[("tor1", "s1")]), "-", "nobody is there");
        assert_eq!(by("tor1", "default", &[("tor1", "agg1"), ("tor1", "agg2")]), "-");
    }
}
