//! Plans of switches: loopback and link addresses, routes to the hosts below, forwarding settings, OSPF.

use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::random::scramble;

use super::iproute::{End, Ip, Network, NewLink};
use super::{NodePlan, Planner, Sysctl, relays_dhcp, routes_multicast};
use crate::frr::{FrrConfig, FrrInput};

/// Device of an edge switch that has the rack's prefix, and its far end.
const RACK_DEVICE: &str = "weft-rack0";
const RACK_DEVICE_FAR: &str = "weft-rack1";

impl Planner<'_> {
    pub(super) fn plan_switch(&self, plan: &mut NodePlan) {
        let (fabric, addresses) = (self.fabric(), self.addresses());
        plan.sysctls.extend(self.forwarding_sysctls(plan.id));
        plan.sysctls.extend(self.outside_sysctls());
        let la = addresses.la(plan.id);
        let groups = addresses.anycast_groups().iter().filter(|group| group.members.contains(&plan.id));
        let own = std::iter::once(la).chain(groups.map(|group| group.address));
        plan.configures.extend(own.map(|address| Ip::address(address, 32, "lo", Network::OnLink)));
        let mut ospf_interfaces = Vec::new();
        for link in fabric.links_of(plan.id) {
            let port = fabric.link(*link).end_at(plan.id).expect("a link of a node ends at the node");
            plan.configures.push(Ip::up(&port.interface));
            if let Some((a, b)) = addresses.link(*link) {
                let own = if fabric.link(*link).a.node == plan.id { a } else { b };
                plan.configures.push(Ip::address(own, 31, &port.interface, Network::OnLink));
                ospf_interfaces.push(port.interface.clone());
            }
        }
        self.plan_rack(plan);
        let server_ports: Vec<String> = self.host_ports(plan.id).map(|(_, _, port)| port.to_owned()).collect();
        if self.fabric().outside().is_some() && addresses.rack(plan.id).is_some() {
            plan.checked_ports.clone_from(&server_ports);
        }
        let rack = addresses.rack(plan.id).map(|_| RACK_DEVICE.to_owned());
        let passive: Vec<String> = rack.into_iter().chain(self.outside_ports(plan.id)).collect();
        let input = FrrInput {
            hostname: &plan.name,
            namespace: &plan.namespace,
            router_id: la,
            interfaces: &ospf_interfaces,
            passive: &passive,
            bfd: self.scenario.switching.bfd,
            multicast: routes_multicast(self.scenario).then_some(server_ports.as_slice()),
        };
        plan.frr = Some(FrrConfig::new(&input));
        self.plan_switch_outside(plan);
    }

    /// What an edge switch knows of the hosts below it: a host route and a neighbour per address, for its own only.
    ///
    /// The rack's prefix sits on a pair of devices of its own that carries nothing: OSPF announces it as one stub
    /// network whatever the rack holds and whichever host's link is down. (Redistributing a route of the kernel would
    /// need no device, but `ospfd` 8.4 does not install such routes again at a switch that was cut off.)
    fn plan_rack(&self, plan: &mut NodePlan) {
        let addresses = self.addresses();
        let Some((rack, gateway)) = addresses.rack(plan.id).zip(addresses.rack_gateway(plan.id)) else { return };
        let [end, far] = [RACK_DEVICE, RACK_DEVICE_FAR].map(|device| End::new(device, None, None));
        plan.creates.push(NewLink::pair(end, far, None));
        let gateway_at = |device: &str| Ip::address(gateway, rack.prefix_len(), device, Network::Elsewhere);
        plan.configures.extend([
            Ip::up(RACK_DEVICE),
            Ip::up(RACK_DEVICE_FAR),
            gateway_at(RACK_DEVICE),
            Ip::unreachable(rack),
        ]);
        for (link, host, port) in self.host_ports(plan.id) {
            // IGMP and DHCP relays speak from a port's own address, and only with whom it makes a neighbour.
            if routes_multicast(self.scenario) || relays_dhcp(self.scenario) {
                plan.configures.push(gateway_at(port));
            }
            if !self.scenario.overlay.takes_frames() {
                plan.configures.extend(self.host_lines(link, host, port));
            }
        }
    }

    /// The ports to servers and directory servers: link, host and interface.
    fn host_ports(&self, edge: NodeId) -> impl Iterator<Item = (LinkId, NodeId, &str)> {
        let fabric = self.fabric();
        fabric.links_of(edge).iter().filter_map(move |link| {
            let (port, far) = fabric.link(*link).end_at(edge).zip(fabric.link(*link).far_end(edge))?;
            (!fabric.node(far.node).role.is_switch()).then_some((*link, far.node, port.interface.as_str()))
        })
    }

    fn host_lines(&self, link: LinkId, host: NodeId, port: &str) -> impl Iterator<Item = Ip> {
        let mac = self.mac(link, host);
        let aa = self.addresses().aa(host).filter(|_| self.scenario.overlay == Overlay::Vl2);
        let public = self.addresses().outside().and_then(|outside| outside.public_la(host));
        let addresses = [Some(self.addresses().la(host)), aa, public].into_iter().flatten();
        addresses.flat_map(move |address| Ip::host(address, mac, port))
    }

    fn forwarding_sysctls(&self, id: NodeId) -> Vec<Sysctl> {
        let set = |name, value: &str| Sysctl { name, value: value.into(), optional: false };
        // VL2 writes a hash of the flow into the outer source address, so addresses alone spread its flows; the other
        // overlays need the ports.
        let policy = if self.scenario.overlay == Overlay::Vl2 { "0" } else { "1" };
        vec![
            set("net/ipv4/ip_forward", "1"),
            set("net/ipv4/conf/all/ignore_routes_with_linkdown", "1"),
            set("net/ipv4/conf/default/ignore_routes_with_linkdown", "1"),
            set("net/ipv4/fib_multipath_hash_policy", policy),
            // With one seed everywhere, all tiers make the same choice and half of the paths stay empty.
            Sysctl {
                name: "net/ipv4/fib_multipath_hash_seed",
                value: hash_seed(self.seed, id).to_string(),
                optional: true,
            },
        ]
    }
}

/// A switch's own hash seed: never 0 (which means random), different per switch, the same in every run of a seed.
fn hash_seed(seed: u64, id: NodeId) -> u32 {
    let word = seed.wrapping_sub(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(id.0) + 1);
    (scramble(word) >> 32) as u32 | 1
}
