//! Plans of networks in which the switches forward frames: RBridges, and the bridges of their spanning-tree twin.
//!
//! Kernels without VLAN filtering and tagged devices have one bridge for each VLAN, and between two bridges one pair of
//! devices for each VLAN: the link's own interface for the lowest VLAN, `interface.vlan` for the others. Bridges that a fabric has
//! beside RBridges have one bridge for all frames, because RBridges send theirs without a tag.

use std::collections::BTreeSet;

use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Access, InterfaceAddress, Role};
use weft_wire::ethernet::MacAddress;

use super::iproute::{DEFAULT, End, Ip, LinkKind, Network, NewLink, Route};
use super::{NodePlan, Planner, Sysctl, tcp_sysctls};
use crate::home::namespace_name;

/// VLAN of all servers where the fabric says nothing of VLANs.
pub(crate) const VLAN_DEFAULT: u16 = 1;

/// VLAN and address of the host at a link. In fabrics that say nothing of VLANs all servers are in one, with their AAs.
pub(crate) fn access(scenario: &Scenario, link: LinkId) -> Option<Access> {
    let ends = [&scenario.fabric.link(link).a, &scenario.fabric.link(link).b];
    let aa = ends.into_iter().find_map(|port| scenario.addresses.aa(port.node));
    let plain = |address| InterfaceAddress { address, length: scenario.addresses.aa_block().prefix_len() };
    let by_default = || Some(Access { vlan: VLAN_DEFAULT, address: plain(aa?) });
    scenario.fabric.campus().access.get(&link).copied().or_else(by_default)
}

/// VLANs that somebody is in, in order.
pub(crate) fn vlans(scenario: &Scenario) -> BTreeSet<u16> {
    if scenario.fabric.is_campus() { scenario.fabric.campus().vlans() } else { [VLAN_DEFAULT].into() }
}

/// An interface of a link's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VlanPort {
    /// The VLAN that it carries; `None`: all of them, between RBridges.
    pub(crate) vlan: Option<u16>,
    pub(crate) interface: String,
}

/// The interfaces of a link's end: one, or one for each VLAN between bridges.
pub(crate) fn interfaces(scenario: &Scenario, link: LinkId, node: NodeId) -> Vec<VlanPort> {
    let interface = &scenario.fabric.link(link).end_at(node).expect("the caller names an end of the link").interface;
    if let Some(access) = access(scenario, link).filter(|_| !is_between_switches(scenario, link)) {
        return vec![VlanPort { vlan: Some(access.vlan), interface: interface.clone() }];
    }
    if !is_bridged(scenario) {
        return vec![VlanPort { vlan: None, interface: interface.clone() }];
    }
    let named = |(place, vlan): (usize, u16)| VlanPort {
        vlan: Some(vlan),
        interface: if place == 0 { interface.clone() } else { format!("{interface}.{vlan}") },
    };
    vlans(scenario).into_iter().enumerate().map(named).collect()
}

/// Whether all switches are bridges.
fn is_bridged(scenario: &Scenario) -> bool {
    scenario.overlays().iter().all(|overlay| matches!(overlay, Overlay::Bridge { .. }))
}

/// The VLANs that a switch has bridges for: all, or one bridge for whatever RBridges send each other; none at other switches.
pub(crate) fn bridged_vlans(scenario: &Scenario, switch: NodeId) -> BTreeSet<u16> {
    match scenario.fabric.is_bridge(switch, scenario.overlay) {
        true if is_bridged(scenario) => vlans(scenario),
        true => [VLAN_DEFAULT].into(),
        false => BTreeSet::new(),
    }
}

/// The bridge of a VLAN.
pub(crate) fn bridge_name(vlan: u16) -> String {
    format!("br{vlan}")
}

fn is_between_switches(scenario: &Scenario, link: LinkId) -> bool {
    let link = scenario.fabric.link(link);
    [&link.a, &link.b].into_iter().all(|port| scenario.fabric.node(port.node).role.is_switch())
}

impl Planner<'_> {
    pub(super) fn plan_bridging(&self, plan: &mut NodePlan) {
        if is_bridged(self.scenario) {
            let links = self.fabric().links_of(plan.id).iter();
            let own = links.filter(|link| self.fabric().link(**link).a.node == plan.id);
            plan.creates.extend(own.flat_map(|link| self.vlan_pairs(*link)));
        }
        match plan.role.is_switch() {
            true => self.plan_frame_switch(plan),
            false => self.plan_station(plan),
        }
    }

    /// Pairs of devices for the VLANs that the link's own pair does not carry.
    fn vlan_pairs(&self, link: LinkId) -> Vec<NewLink> {
        let spec = &self.fabric().link(link);
        let ends = [spec.a.node, spec.b.node];
        let [a, b] = ends.map(|node| interfaces(self.scenario, link, node));
        let far = namespace_name(self.lab, &self.fabric().node(ends[1]).name);
        let end = |number: u8, port: &VlanPort| {
            let [high, low] = port.vlan.unwrap_or_default().to_be_bytes();
            let [_, _, c, d] = link.0.to_be_bytes();
            End::new(&port.interface, Some(MacAddress([0x06, number, high, low, c, d])), Some(spec.spec.mtu_bytes))
        };
        let pairs = a.iter().zip(&b).skip(1);
        pairs.map(|(a, b)| NewLink::pair(end(0, a), end(1, b), Some(far.clone()))).collect()
    }

    /// Ports up; of bridges also which bridge each belongs to. RBridges are set up by their daemon.
    fn plan_frame_switch(&self, plan: &mut NodePlan) {
        let bridges = bridged_vlans(self.scenario, plan.id);
        plan.configures.extend(bridges.iter().map(|vlan| bridge(plan.id, *vlan)));
        for link in self.fabric().links_of(plan.id) {
            for VlanPort { vlan, interface } in interfaces(self.scenario, *link, plan.id) {
                if !bridges.is_empty() {
                    let bridge = bridge_name(vlan.filter(|vlan| bridges.contains(vlan)).unwrap_or(VLAN_DEFAULT));
                    plan.configures.push(Ip::Master { device: interface.clone(), bridge });
                }
                plan.configures.push(Ip::up(&interface));
            }
        }
    }

    pub(super) fn plan_station(&self, plan: &mut NodePlan) {
        plan.sysctls.extend(tcp_sysctls(&self.scenario.transport));
        if plan.role == Role::Router {
            plan.sysctls.push(Sysctl { name: "net/ipv4/ip_forward", value: "1".into(), optional: false });
        }
        for link in self.fabric().links_of(plan.id) {
            let interface = &self.fabric().link(*link).end_at(plan.id).expect("a link of a node ends there").interface;
            plan.configures.push(Ip::up(interface));
            let Some(Access { vlan, address }) = access(self.scenario, *link) else { continue };
            plan.configures.push(Ip::address(address.address, address.length, interface, Network::OnLink));
            let gateway = self.fabric().campus().gateway_of(self.fabric(), vlan);
            if let Some(gateway) = gateway.filter(|_| plan.role != Role::Router) {
                plan.configures.push(Ip::Route(Route::by(DEFAULT, gateway, interface, None)));
            }
        }
    }
}

/// The lowest address is the root's: the first switch of the fabric. The bridge comes up when its timers are set.
fn bridge(id: NodeId, vlan: u16) -> Ip {
    let [high, low] = vlan.to_be_bytes();
    let [_, _, c, d] = id.0.to_be_bytes();
    let mac = MacAddress([0x02, 0x42, high, low, c, d]);
    Ip::Add(NewLink {
        end: End::new(&bridge_name(vlan), Some(mac), None),
        kind: LinkKind::Bridge { spanning_tree: true },
    })
}
