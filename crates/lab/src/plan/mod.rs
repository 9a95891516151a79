//! From a scenario to what configures every node: pure, so that it can be read and tested without root.
//!
//! Each node gets lists, executed in this order over the whole fabric: links to create and rules (`ip`), addresses, routes
//! and neighbours (`ip`), forwarding entries (`bridge`), queues (`tc`); besides kernel settings and, for switches, the
//! configuration of the routing daemons. They are values ([`iproute`]) until a batch is written.

mod campus;
mod host;
pub(crate) mod iproute;
mod switch;
mod tunnel;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weft_scenario::addressing::AddressPlan;
use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Delivery, Fabric, Port, Role};
use weft_wire::ethernet::MacAddress;
use weft_wire::vl2::OVERHEAD_BYTES as VL2_OVERHEAD_BYTES;

use crate::frr::FrrConfig;
use crate::home::namespace_name;
use crate::shaping::Shaper;

use iproute::{End, Forward, Ip, NewLink, PortQueue};

pub(crate) use campus::{VLAN_DEFAULT, access, bridge_name, bridged_vlans, interfaces, vlans};
pub(crate) use host::{moved_host, tcp_sysctls};
pub(crate) use tunnel::{access_ports, segment, tunnel_peers};

/// Bytes that VXLAN puts before the inner packet: Ethernet, IPv4, UDP and VXLAN headers (RFC 7348, section 5).
pub(crate) const VXLAN_OVERHEAD_BYTES: u32 = weft_wire::vxlan::OVERHEAD_BYTES as u32;
/// What a server talks by where VXLAN is between servers: the kernel's VXLAN device, or an end of a veth pair whose other
/// end is an access port of the VTEP.
pub(crate) const VXLAN_DEVICE: &str = "vxlan0";
/// That access port.
pub(crate) const VTEP_PORT: &str = "vtep0";
/// The segment of all servers.
pub(crate) const VNI: u32 = 42;
/// Hosts behave as on Ethernet: fabric links are wider, so that an overlay's headers fit.
pub(crate) const HOST_MTU_BYTES: u32 = 1500;

/// What is done to make one node.
#[derive(Clone, Debug)]
pub struct NodePlan {
    pub id: NodeId,
    pub name: String,
    pub role: Role,
    pub namespace: String,
    /// Kernel settings of the namespace.
    pub sysctls: Vec<Sysctl>,
    /// The links whose first end is here.
    pub(crate) creates: Vec<NewLink>,
    /// A border's `ip rule` lines, which run once.
    pub(crate) rules: Vec<String>,
    /// Ports that a packet may only come in by if the routes to its source leave by them (RFC 3704 2.2).
    pub checked_ports: Vec<String>,
    /// Addresses, routes and neighbours, and links that need those above.
    pub(crate) configures: Vec<Ip>,
    pub(crate) forwards: Vec<Forward>,
    pub(crate) queues: Vec<PortQueue>,
    /// Routing daemons, on switches.
    pub frr: Option<FrrConfig>,
}

impl NodePlan {
    /// What configures the node may be told again, except what is about devices that are down and what makes links.
    pub(crate) fn again(&self, down: &BTreeSet<String>) -> impl Iterator<Item = &Ip> {
        let is_down = |line: &Ip| line.device().is_some_and(|device| down.contains(device));
        self.configures.iter().filter(move |line| !matches!(line, Ip::Add(_)) && !is_down(line))
    }
}

/// A kernel setting: its path below `/proc/sys` and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// Path, for instance `net/ipv4/ip_forward`.
    pub name: &'static str,
    pub value: String,
    /// Whether a kernel that has no such setting is good enough.
    pub optional: bool,
}

/// What is done to make one lab.
#[derive(Clone, Debug)]
pub struct LabPlan {
    /// One plan per node, in the fabric's order.
    pub nodes: Vec<NodePlan>,
}

impl LabPlan {
    /// Plans a lab. `seed` decides how switches spread flows over equal paths.
    pub fn new(lab: &str, scenario: &Scenario, seed: u64) -> Self {
        let planner = Planner { lab, scenario, seed, shaper: Shaper::new(scenario) };
        Self { nodes: scenario.fabric.ids().map(|id| planner.node(id)).collect() }
    }

    /// One node's plan.
    pub fn node(&self, id: NodeId) -> &NodePlan {
        &self.nodes[id.index()]
    }
}

/// What every part of planning looks at.
pub(crate) struct Planner<'a> {
    lab: &'a str,
    scenario: &'a Scenario,
    seed: u64,
    shaper: Shaper,
}

impl Planner<'_> {
    pub(crate) fn scenario(&self) -> &Scenario {
        self.scenario
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        &self.scenario.fabric
    }

    pub(crate) fn addresses(&self) -> &AddressPlan {
        &self.scenario.addresses
    }

    fn node(&self, id: NodeId) -> NodePlan {
        let node = self.fabric().node(id);
        let mut plan = NodePlan {
            id,
            name: node.name.clone(),
            role: node.role,
            namespace: namespace_name(self.lab, &node.name),
            sysctls: common_sysctls(),
            creates: self.created_links(id),
            rules: Vec::new(),
            checked_ports: Vec::new(),
            configures: vec![Ip::up("lo")],
            forwards: Vec::new(),
            queues: self.queues(id),
            frr: None,
        };
        if self.scenario.overlay.forwards_frames() {
            self.plan_bridging(&mut plan);
        } else if node.role.is_switch() {
            self.plan_switch(&mut plan);
            self.plan_tunnel_end(&mut plan);
        } else if node.role == Role::Internet {
            self.plan_outside(&mut plan);
        } else if self.scenario.overlay.takes_frames() {
            self.plan_station(&mut plan);
        } else {
            self.plan_host(&mut plan);
        }
        plan
    }

    /// A link is created from its first end; the other end is born in its own namespace.
    fn created_links(&self, id: NodeId) -> Vec<NewLink> {
        let links = self.fabric().links_of(id).iter().filter(|link| self.fabric().link(**link).a.node == id);
        links.map(|link| self.pair(*link)).collect()
    }

    fn pair(&self, id: LinkId) -> NewLink {
        let link = self.fabric().link(id);
        let end = |port: &Port| End::new(&port.interface, Some(self.mac(id, port.node)), Some(self.mtu(id, port.node)));
        let far = namespace_name(self.lab, &self.fabric().node(link.b.node).name);
        NewLink::pair(end(&link.a), end(&link.b), Some(far))
    }

    /// Where servers' frames are forwarded as they are every port has an address of its own.
    fn mac(&self, link: LinkId, node: NodeId) -> MacAddress {
        MacAddress(match self.scenario.overlay.takes_frames() {
            true => weft_scenario::addressing::port_mac(self.fabric(), link, node),
            false => self.addresses().mac(self.fabric(), link, node),
        })
    }

    /// The MTU of a link's end: the link's, except that hosts leave room for what the overlay adds behind them. In a campus
    /// the links of hosts say what hosts have. Servers that hear broadcast take in its outer header too, so that their routes
    /// leave the room instead.
    fn mtu(&self, link: LinkId, node: NodeId) -> u32 {
        let link_mtu = self.fabric().link(link).spec.mtu_bytes;
        let role = self.fabric().node(node).role;
        let ends = [self.fabric().link(link).a.node, self.fabric().link(link).b.node];
        let of_host = !ends.iter().all(|end| self.fabric().node(*end).role.is_switch());
        if of_host && self.scenario.overlay.takes_frames() && !self.fabric().is_campus() {
            // The switch's end, too: what comes in there goes on with a header more.
            return link_mtu.min(HOST_MTU_BYTES);
        }
        if role.is_switch() || self.fabric().is_campus() || (role == Role::Server && self.hears_broadcast()) {
            return link_mtu;
        }
        match self.scenario.overlay {
            Overlay::Vl2 => link_mtu.saturating_sub(VL2_OVERHEAD_BYTES as u32).min(HOST_MTU_BYTES),
            Overlay::KernelVxlan { .. } | Overlay::Vtep { .. } => link_mtu,
            Overlay::Routed | Overlay::RBridge { .. } | Overlay::Bridge { .. } | Overlay::Layer2 { .. } => {
                link_mtu.min(HOST_MTU_BYTES)
            }
        }
    }

    /// Whether servers are sent broadcast and multicast in an outer header (VL2 4.2.3).
    fn hears_broadcast(&self) -> bool {
        self.scenario.overlay == Overlay::Vl2 && self.fabric().broadcast().is_some()
    }

    fn queues(&self, id: NodeId) -> Vec<PortQueue> {
        // What XDP redirects goes past queues; a campus has emulated links where it is measured.
        if !self.scenario.shaped || self.scenario.overlay.forwards_frames() {
            return Vec::new();
        }
        let links = self.fabric().links_of(id);
        links.iter().map(|link| self.shaper.queue(self.fabric(), *link, id)).collect()
    }
}

/// Whether the switches route the services' broadcast by multicast (VL2 4.2.3).
pub(crate) fn routes_multicast(scenario: &Scenario) -> bool {
    let delivery = scenario.fabric.broadcast().map(|broadcast| broadcast.delivery);
    scenario.overlay == Overlay::Vl2 && delivery == Some(Delivery::Group)
}

/// Whether the ToRs relay DHCP: what it hands out are AAs.
pub(crate) fn relays_dhcp(scenario: &Scenario) -> bool {
    scenario.overlay == Overlay::Vl2 && scenario.fabric.dhcp().is_some()
}

/// The largest inner IP packet that servers of a scenario exchange.
pub(crate) fn inner_mtu_bytes(overlay: Overlay, link_mtu: u32) -> u32 {
    let overhead = match overlay {
        Overlay::Routed => 0,
        _ if overlay.takes_frames() => 0,
        Overlay::Vl2 => VL2_OVERHEAD_BYTES as u32,
        _ => VXLAN_OVERHEAD_BYTES,
    };
    link_mtu.saturating_sub(overhead).min(HOST_MTU_BYTES)
}

fn common_sysctls() -> Vec<Sysctl> {
    [
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/default/rp_filter", "0"),
        ("net/ipv4/conf/all/send_redirects", "0"),
        ("net/ipv4/conf/default/send_redirects", "0"),
    ]
    .into_iter()
    .map(|(name, value)| Sysctl { name, value: value.into(), optional: false })
    .chain(["net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"].into_iter().map(|name| Sysctl {
        name,
        value: "1".into(),
        optional: true,
    }))
    .collect()
}

/// MAC of [`VXLAN_DEVICE`], derived from the server's AA.
pub(crate) fn vxlan_mac(aa: Ipv4Addr) -> MacAddress {
    let [_, b, c, d] = aa.octets();
    MacAddress([0x02, 0x56, 0x58, b, c, d])
}

#[cfg(test)]
mod tests;
