//! What nodes of a fabric with an outside get: addresses, routes, rules and `bgpd` beside what they have anyway.

use std::net::Ipv4Addr;

use weft_scenario::addressing::{LA_BLOCK, OutsideAddresses};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Outside, Role};
use weft_wire::flow::HASH_SOURCES;

use super::bgp::BgpInput;
use super::borders;
use super::rules::{self, BorderPort};
use crate::frr::FrrConfig;
use crate::plan::iproute::{DEFAULT, Ip, Metrics, Network, Route};
use crate::plan::{NodePlan, Planner, Sysctl, tcp_sysctls};

/// Hash policy by fields that are chosen, and the fields: addresses, protocol and ports of the outer header. What VL2
/// encapsulates is spread by its outer addresses as with policy 0, because it has no ports; a flow from or to the outside
/// has no flow hash in its addresses and needs its ports. (Policy 1 would take over the hash of the sending socket, the same
/// at every switch, and so leave paths empty.)
const HASH_BY_FIELDS: &str = "3";
const HASH_FIELDS: &str = "55";

impl Planner<'_> {
    /// The world outside and its addresses, if there is one.
    fn outside(&self) -> Option<(&Outside, &OutsideAddresses)> {
        self.fabric().outside().zip(self.addresses().outside())
    }

    /// How a switch spreads flows, where some have no flow hash in their addresses.
    pub(crate) fn outside_sysctls(&self) -> Vec<Sysctl> {
        let set = |name, value: &str| Sysctl { name, value: value.into(), optional: false };
        let both = || {
            vec![
                set("net/ipv4/fib_multipath_hash_policy", HASH_BY_FIELDS),
                set("net/ipv4/fib_multipath_hash_fields", HASH_FIELDS),
            ]
        };
        self.outside().map(|_| both()).unwrap_or_default()
    }

    /// A server with a public LA sends by it what is for nobody here.
    pub(crate) fn public_host_lines(&self, host: NodeId, interface: &str, gateway: Ipv4Addr) -> Vec<Ip> {
        let Some(la) = self.outside().and_then(|(_, addresses)| addresses.public_la(host)) else { return Vec::new() };
        let metrics = Metrics { mtu: self.route_mtu(host).mtu, ..self.metrics() };
        vec![
            Ip::address(la, 32, interface, Network::OnLink),
            Ip::Route(Route::by(DEFAULT, gateway, interface, Some(la)).with(metrics)),
        ]
    }

    /// Every switch has `bgpd`; a border has its links to the outside and its rules too.
    pub(crate) fn plan_switch_outside(&self, plan: &mut NodePlan) {
        let Some((outside, addresses)) = self.outside() else { return };
        let borders = borders(self.fabric());
        let las = |nodes: &[NodeId]| -> Vec<Ipv4Addr> { nodes.iter().map(|node| self.addresses().la(*node)).collect() };
        let text = if borders.contains(&plan.id) {
            self.plan_border(plan, addresses);
            let others: Vec<NodeId> = self.fabric().switches().filter(|switch| *switch != plan.id).collect();
            let links = self.fabric().links_of(plan.id).iter();
            let peers: Vec<Ipv4Addr> =
                links.filter_map(|link| addresses.border_link(*link)).map(|(_, peer)| peer).collect();
            self.bgp_input(plan).border(outside.pool, &peers, &las(&others))
        } else {
            let is_here = |server: NodeId| self.fabric().edge_of(server).is_some_and(|(edge, _)| edge == plan.id);
            let own = addresses.public_las().filter(|(server, _)| is_here(*server)).map(|(_, la)| la);
            self.bgp_input(plan).switch(&las(&borders), &own.collect::<Vec<_>>())
        };
        plan.frr.as_mut().expect("a switch that routes has FRR").set("bgpd", Some(text));
    }

    /// A border's interfaces to the outside.
    pub(crate) fn outside_ports(&self, border: NodeId) -> impl Iterator<Item = String> {
        let addresses = self.outside().map(|(_, addresses)| addresses);
        let ports = addresses.map(|addresses| self.border_ports(border, addresses)).unwrap_or_default();
        ports.into_iter().map(|port| port.interface.to_owned())
    }

    fn border_ports(&self, border: NodeId, addresses: &OutsideAddresses) -> Vec<BorderPort<'_>> {
        let port = |link: &LinkId| {
            let end =
                self.fabric().link(*link).end_at(border).filter(|_| self.fabric().border_of(*link) == Some(border))?;
            Some(BorderPort { interface: &end.interface, address: addresses.border_link(*link)?.0 })
        };
        self.fabric().links_of(border).iter().filter_map(port).collect()
    }

    fn plan_border(&self, plan: &mut NodePlan, addresses: &OutsideAddresses) {
        let ports = self.border_ports(plan.id, addresses);
        let inside = [LA_BLOCK, self.addresses().aa_block(), HASH_SOURCES, addresses.pool()];
        plan.rules.extend(rules::lines(&ports, addresses.pool(), &inside));
        for BorderPort { interface, address } in &ports {
            plan.configures.push(Ip::address(*address, 31, interface, Network::OnLink));
        }
        // Addresses of the pool that nobody has must not go back out by the default route.
        plan.configures.push(Ip::unreachable(addresses.pool()));
    }

    /// The node outside: a client that has a whole network's addresses, and a router that tells of everything.
    pub(crate) fn plan_outside(&self, plan: &mut NodePlan) {
        debug_assert_eq!(plan.role, Role::Internet);
        let Some((_, addresses)) = self.outside() else { return };
        let fabric = self.fabric();
        plan.sysctls.extend(tcp_sysctls(&self.scenario().transport));
        plan.sysctls.extend(self.outside_sysctls());
        plan.configures.push(Ip::address(addresses.client(), 24, "lo", Network::OnLink));
        let mut peers = Vec::new();
        for link in fabric.links_of(plan.id) {
            let interface = &fabric.link(*link).end_at(plan.id).expect("a link of a node ends at the node").interface;
            let Some((peer, own)) = addresses.border_link(*link) else { continue };
            peers.push(peer);
            plan.configures.extend(self.segment_limit(interface));
            plan.configures.push(Ip::up(interface));
            plan.configures.push(Ip::address(own, 31, interface, Network::OnLink));
        }
        let bgpd = self.bgp_input(plan).outside(&peers);
        plan.frr = Some(FrrConfig::without_ospf(&plan.name, self.scenario().switching.bfd, addresses.client(), bgpd));
    }

    fn bgp_input<'p>(&self, plan: &'p NodePlan) -> BgpInput<'p> {
        BgpInput {
            hostname: &plan.name,
            namespace: &plan.namespace,
            router_id: self.addresses().la(plan.id),
            bfd: self.scenario().switching.bfd.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::addressing::{AddressPlan, AddressingOptions};
    use weft_scenario::engine::{DirectoryStore, Overlay, Scenario, Transport};
    use weft_scenario::switching::Switching;
    use weft_scenario::topology::from_yaml;
    use weft_scenario::units::Nanos;

    use crate::plan::{LabPlan, NodePlan};

    fn node(name: &str) -> NodePlan {
        let fabric = from_yaml(include_str!("../../../../fabrics/vl2-internet.yaml"), "vl2-internet.yaml").unwrap();
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
        let scenario = Scenario {
            fabric,
            addresses,
            overlay: Overlay::Vl2,
            directory: DirectoryStore::default(),
            transport: Transport {
                initial_window: 8,
                rto_min: Nanos(200_000_000),
                segments_per_skb: 0,
                ..Transport::default()
            },
            switching: Switching { bfd: Some(Nanos(50_000_000)), ..Switching::default() },
            shaped: true,
        };
        let id = scenario.fabric.find(name).unwrap();
        LabPlan::new("x", &scenario, 1).nodes.swap_remove(id.index())
    }

    fn lines(plan: &NodePlan) -> Vec<String> {
        plan.configures.iter().map(ToString::to_string).collect()
    }

    fn has(plan: &NodePlan, line: &str) -> bool {
        lines(plan).iter().any(|one| one == line)
    }

    #[test]
    fn a_server_with_a_public_la_sends_by_it_what_is_for_nobody_inside() {
        let (s1, s2, tor1) = (node("s1"), node("s2"), node("tor1"));
        assert!(has(&s1, "addr replace 198.51.100.1/32 dev eth0"));
        let way_out = "route replace default via 10.64.0.1 dev eth0 onlink src 198.51.100.1 initcwnd 8 rto_min 200ms";
        assert!(has(&s1, way_out), "{:?}", lines(&s1));
        assert!(has(&s1, "addr replace 20.0.0.1/8 dev eth0 noprefixroute"), "its AA is as ever");
        assert!(!lines(&s2).iter().any(|line| line.contains("198.51.100") || line.contains("default")));
        assert!(has(&tor1, "route replace 198.51.100.1/32 dev s1"));
        assert_eq!(tor1.checked_ports, ["s1", "s2"], "no server uses the address of another");
        assert!(node("agg1").checked_ports.is_empty() && node("int1").checked_ports.is_empty());
        let bgpd = tor1.frr.unwrap().text("bgpd").unwrap().to_owned();
        assert!(bgpd.contains("  network 198.51.100.1/32\n") && !bgpd.contains("198.51.100.2"), "its own: {bgpd}");
    }

    #[test]
    fn a_border_has_rules_and_every_switch_spreads_by_ports_too() {
        let (int1, agg1) = (node("int1"), node("agg1"));
        assert!(
            has(&int1, "addr replace 192.0.2.0/31 dev net") && has(&int1, "route replace unreachable 198.51.100.0/24")
        );
        assert_eq!((int1.rules.len(), agg1.rules.len()), (13, 0));
        assert!(int1.rules.contains(&"rule add pref 10 iif net from 20.0.0.0/8 blackhole".to_owned()));
        for plan in [&int1, &agg1] {
            let of = |name: &str| plan.sysctls.iter().rev().find(|setting| setting.name == name).map(|one| &*one.value);
            assert_eq!(of("net/ipv4/fib_multipath_hash_policy"), Some("3"), "the last one written");
            assert_eq!(of("net/ipv4/fib_multipath_hash_fields"), Some("55"));
        }
        let frr = int1.frr.unwrap();
        let ospfd = frr.text("ospfd").unwrap();
        assert!(ospfd.contains("interface net\n ip ospf area 0\n ip ospf passive\n"), "OSPF stays inside: {ospfd}");
        assert!(!agg1.frr.unwrap().text("ospfd").unwrap().contains("passive"));
        let bgpd = frr.text("bgpd").unwrap();
        assert!(!bgpd.contains("next-hop-self"), "OSPF tells of the link before BGP does: {bgpd}");
        assert!(
            bgpd.contains(" neighbor 192.0.2.1 peer-group outside\n")
                && bgpd.contains(" neighbor 10.3.0.2 peer-group fabric\n")
        );
        assert_eq!(bgpd.matches(" peer-group fabric\n").count(), 5, "every other switch: {bgpd}");
    }

    #[test]
    fn the_node_outside_has_addresses_of_its_own_and_bgp() {
        let net = node("net");
        let [first, rest @ ..] = &lines(&net)[..] else { panic!("it has lines") };
        assert_eq!(first, "link set dev lo up");
        assert_eq!(
            rest,
            [
                "addr replace 203.0.113.1/24 dev lo",
                "link set dev int1 up",
                "addr replace 192.0.2.1/31 dev int1",
                "link set dev int2 up",
                "addr replace 192.0.2.3/31 dev int2",
            ]
        );
        let frr = net.frr.unwrap();
        assert!(frr.text("ospfd").is_none() && frr.text("bfdd").is_some() && frr.text("bgpd").is_some());
        assert!(!net.queues.is_empty(), "its links are shaped like others");
        assert!(!net.sysctls.iter().any(|setting| setting.name == "net/ipv4/ip_forward"), "nothing goes through it");
    }
}
