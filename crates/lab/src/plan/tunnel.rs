//! VXLAN at edge switches: a segment for each VLAN of the servers below. The kernel's tunnel end points are planned here as a bridge
//! and a device for each segment; our VTEP is a daemon and gets the same segments and peers.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weft_scenario::engine::{Overlay, Scenario, TunnelEnd};
use weft_scenario::id::NodeId;
use weft_wire::ethernet::MacAddress;

use super::iproute::{End, Forward, Ip, LinkKind, NewLink};
use super::{HOST_MTU_BYTES, NodePlan, Planner, access, bridge_name};

/// VNI of a VLAN's segment.
pub(crate) fn segment(vlan: u16) -> u32 {
    u32::from(vlan)
}

/// VLANs of the servers below a switch.
fn vlans_at(scenario: &Scenario, switch: NodeId) -> BTreeSet<u16> {
    access_ports(scenario, switch).into_iter().map(|(_, vlan)| vlan).collect()
}

/// Ports of a switch to servers, each with its VLAN.
pub(crate) fn access_ports(scenario: &Scenario, switch: NodeId) -> Vec<(&str, u16)> {
    let fabric = &scenario.fabric;
    let port = |link: &weft_scenario::id::LinkId| {
        let far = fabric.link(*link).far_end(switch)?;
        let access = access(scenario, *link).filter(|_| !fabric.node(far.node).role.is_switch())?;
        Some((fabric.link(*link).end_at(switch)?.interface.as_str(), access.vlan))
    };
    fabric.links_of(switch).iter().filter_map(port).collect()
}

/// LAs of the other switches that have servers in a VLAN.
pub(crate) fn tunnel_peers(scenario: &Scenario, switch: NodeId, vlan: u16) -> Vec<Ipv4Addr> {
    let others = scenario.fabric.switches().filter(|other| *other != switch);
    others.filter(|other| vlans_at(scenario, *other).contains(&vlan)).map(|peer| scenario.addresses.la(peer)).collect()
}

impl Planner<'_> {
    /// The kernel's tunnel end points of a switch: as it does it at its best, without a UDP checksum.
    pub(super) fn plan_tunnel_end(&self, plan: &mut NodePlan) {
        let Overlay::KernelVxlan { at: TunnelEnd::Tor } = self.scenario.forwarding(plan.id) else { return };
        let local = self.addresses().la(plan.id);
        for vlan in vlans_at(self.scenario, plan.id) {
            let (bridge, device) = (bridge_name(vlan), format!("vx{vlan}"));
            let master = |device: &str| Ip::Master { device: device.to_owned(), bridge: bridge.clone() };
            let tunnel = LinkKind::Vxlan { vni: segment(vlan), local, underlay: None };
            plan.configures.extend([
                Ip::Add(NewLink {
                    end: End::new(&bridge, None, None),
                    kind: LinkKind::Bridge { spanning_tree: false },
                }),
                Ip::Add(NewLink { end: End::new(&device, None, Some(HOST_MTU_BYTES)), kind: tunnel }),
                master(&device),
                Ip::up(&device),
            ]);
            let ports = access_ports(self.scenario, plan.id).into_iter().filter(|(_, of)| *of == vlan);
            plan.configures.extend(ports.map(|(port, _)| master(port)));
            plan.configures.push(Ip::up(&bridge));
            let flood = |peer| Forward { mac: MacAddress([0; 6]), device: device.clone(), peer };
            plan.forwards.extend(tunnel_peers(self.scenario, plan.id, vlan).into_iter().map(flood));
        }
    }
}
