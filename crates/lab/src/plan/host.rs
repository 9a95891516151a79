//! Plans of servers and directory servers: addresses, routes with the transport's metrics, VXLAN.

use std::net::Ipv4Addr;

use weft_scenario::addressing::{LA_BLOCK, VIRTUAL_MAC};
use weft_scenario::engine::{Overlay, Transport};
use weft_scenario::id::NodeId;

use super::{NodePlan, Planner, Sysctl, VXLAN_DEVICE, inner_mtu_bytes, mac_text, vxlan_mac};

impl Planner<'_> {
    pub(super) fn plan_host(&self, plan: &mut NodePlan) {
        let (fabric, addresses) = (self.fabric(), self.addresses());
        let (edge, link) = fabric.edge_of(plan.id).expect("a valid fabric's hosts have an edge switch");
        let interface = &fabric.link(link).end_at(plan.id).expect("a host's link ends at the host").interface;
        let (la, gateway) = (addresses.la(plan.id), addresses.rack_gateway(edge).expect("an edge switch has a rack"));
        plan.sysctls.extend(tcp_sysctls(&self.scenario.transport));
        let lines = &mut plan.configures;
        if self.scenario.transport.segments_per_skb > 0 {
            lines.push(format!("link set dev {interface} gso_max_segs {}", self.scenario.transport.segments_per_skb));
        }
        lines.push(format!("link set dev {interface} up"));
        // No connected rack route: hosts of one rack also talk through their switch, each has a port of its own.
        lines.push(format!("addr replace {la}/24 dev {interface} noprefixroute"));
        lines.push(format!("neigh replace {gateway} lladdr {} dev {interface} nud permanent", mac_text(VIRTUAL_MAC)));
        let metrics = if self.scenario.overlay == Overlay::Routed { self.metrics() } else { String::new() };
        lines.push(format!("route replace {LA_BLOCK} via {gateway} dev {interface} onlink src {la}{metrics}"));
        if let Some(aa) = addresses.aa(plan.id) {
            match self.scenario.overlay {
                Overlay::Routed | Overlay::Trill | Overlay::Bridged | Overlay::Layer2 => {}
                Overlay::Vl2 => lines.extend(self.aa_lines(aa, interface)),
                Overlay::KernelVxlan => self.plan_vxlan(plan, aa, interface),
            }
        }
    }

    /// The whole AA block is on the link: to a server the fabric looks like one Ethernet (VL2 4.2.1).
    fn aa_lines(&self, aa: Ipv4Addr, device: &str) -> Vec<String> {
        let block = self.addresses().aa_block();
        vec![
            format!("addr replace {aa}/{} dev {device} noprefixroute", block.length),
            format!("route replace {block} dev {device} proto kernel scope link src {aa}{}", self.metrics()),
        ]
    }

    /// Initial window and smallest timeout are metrics of the route that the traffic takes.
    fn metrics(&self) -> String {
        let Transport { initial_window, rto_min, .. } = &self.scenario.transport;
        format!(" initcwnd {initial_window} rto_min {}ms", (rto_min.0 / 1_000_000).max(1))
    }

    /// A VXLAN device with every other server's address known in advance: nothing floods, nothing is learnt.
    fn plan_vxlan(&self, plan: &mut NodePlan, aa: Ipv4Addr, underlay: &str) {
        let (fabric, addresses) = (self.fabric(), self.addresses());
        let (_, link) = fabric.edge_of(plan.id).expect("a valid fabric's hosts have an edge switch");
        let mtu = inner_mtu_bytes(Overlay::KernelVxlan, fabric.link(link).spec.mtu_bytes);
        // One transaction creates the device; it lives in the second list because it needs the link below it.
        plan.configures.push(format!(
            "link add dev {VXLAN_DEVICE} address {} mtu {mtu} type vxlan id 42 dstport 4789 local {} dev {underlay} nolearning",
            vxlan_mac(aa),
            addresses.la(plan.id),
        ));
        if self.scenario.transport.segments_per_skb > 0 {
            plan.configures
                .push(format!("link set dev {VXLAN_DEVICE} gso_max_segs {}", self.scenario.transport.segments_per_skb));
        }
        plan.configures.push(format!("link set dev {VXLAN_DEVICE} up"));
        plan.configures.extend(self.aa_lines(aa, VXLAN_DEVICE));
        let own = plan.id;
        let others = fabric.servers().filter(move |server| *server != own);
        for (peer, peer_aa) in others.filter_map(|server| Some((server, addresses.aa(server)?))) {
            self.add_vxlan_peer(plan, peer, peer_aa);
        }
    }

    fn add_vxlan_peer(&self, plan: &mut NodePlan, peer: NodeId, aa: Ipv4Addr) {
        let mac = vxlan_mac(aa);
        plan.configures.push(format!("neigh replace {aa} lladdr {mac} dev {VXLAN_DEVICE} nud permanent"));
        plan.forwards
            .push(format!("fdb replace {mac} dev {VXLAN_DEVICE} dst {} self permanent", self.addresses().la(peer)));
    }
}

/// Settings of a host's TCP. Cached metrics of earlier connections would make later runs depend on earlier ones.
pub(super) fn tcp_sysctls(transport: &Transport) -> Vec<Sysctl> {
    let set = |name, value: String| Sysctl { name, value, optional: false };
    let mut sysctls = vec![
        set("net/ipv4/tcp_congestion_control", transport.congestion_control.kernel_name().into()),
        set("net/ipv4/tcp_timestamps", u8::from(transport.timestamps).to_string()),
        set("net/ipv4/tcp_no_metrics_save", "1".into()),
    ];
    if transport.segments_per_skb > 0 {
        // Otherwise a short round-trip time builds buffers of 64 KB whatever `gso_max_segs` settles at later.
        sysctls.push(Sysctl { name: "net/ipv4/tcp_tso_rtt_log", value: "0".into(), optional: true });
        sysctls.push(set("net/ipv4/tcp_min_tso_segs", transport.segments_per_skb.to_string()));
    }
    if let Some(limit) = transport.output_limit {
        sysctls.push(set("net/ipv4/tcp_limit_output_bytes", limit.0.to_string()));
    }
    sysctls
}
