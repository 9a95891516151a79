//! Plans of servers and directory servers: addresses, routes with the transport's metrics, VXLAN.

use std::net::Ipv4Addr;

use weft_scenario::addressing::{LA_BLOCK, VIRTUAL_MAC};
use weft_scenario::engine::{Overlay, Transport};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;

use super::{NodePlan, Planner, Sysctl, VNI, VTEP_PORT, VXLAN_DEVICE, inner_mtu_bytes, mac_text, vxlan_mac};

impl Planner<'_> {
    pub(super) fn plan_host(&self, plan: &mut NodePlan) {
        let (fabric, addresses) = (self.fabric(), self.addresses());
        let (edge, link) = fabric.edge_of(plan.id).expect("a valid fabric's hosts have an edge switch");
        let interface = &fabric.link(link).end_at(plan.id).expect("a host's link ends at the host").interface;
        let (la, gateway) = (addresses.la(plan.id), addresses.rack_gateway(edge).expect("an edge switch has a rack"));
        plan.sysctls.extend(tcp_sysctls(&self.scenario.transport));
        let lines = &mut plan.configures;
        lines.extend(self.segment_limit(interface));
        lines.push(format!("link set dev {interface} up"));
        let aa = addresses.aa(plan.id);
        // First of all: what applications broadcast without choosing an address comes from the first one.
        if let Some(aa) = aa.filter(|_| self.scenario.overlay == Overlay::Vl2) {
            lines.push(self.aa_line(aa, interface));
        }
        // No connected rack route: hosts of one rack also talk through their switch, each has a port of its own.
        lines.push(format!("addr replace {la}/24 dev {interface} noprefixroute{}", self.la_scope()));
        lines.push(format!("neigh replace {gateway} lladdr {} dev {interface} nud permanent", mac_text(VIRTUAL_MAC)));
        let metrics = match self.scenario.overlay {
            Overlay::Routed => self.metrics(),
            _ => self.route_mtu(plan.id),
        };
        lines.push(format!("route replace {LA_BLOCK} via {gateway} dev {interface} onlink src {la}{metrics}"));
        lines.extend(self.public_host_lines(plan.id, interface, gateway));
        if let Some(aa) = aa {
            match self.scenario.overlay {
                Overlay::Vl2 => {
                    lines.push(format!("{}{}", self.block_line(aa, interface), self.route_mtu(plan.id)));
                    lines.extend(self.broadcast_lines(plan.id, aa, interface));
                }
                Overlay::KernelVxlan { .. } | Overlay::Vtep { .. } => self.plan_vxlan(plan, aa, interface),
                _ => {}
            }
        }
    }

    fn aa_line(&self, aa: Ipv4Addr, device: &str) -> String {
        format!("addr replace {aa}/{} dev {device} noprefixroute", self.addresses().aa_block().length)
    }

    /// The whole AA block is on the link: to a server the fabric looks like one Ethernet (VL2 4.2.1).
    fn block_line(&self, aa: Ipv4Addr, device: &str) -> String {
        let block = self.addresses().aa_block();
        format!("route replace {block} dev {device} proto kernel scope link src {aa}{}", self.metrics())
    }

    /// The LA is between the host and its ToR: programs that tell others where they are must choose the AA.
    fn la_scope(&self) -> &'static str {
        if self.scenario.overlay == Overlay::Vl2 && self.fabric().broadcast().is_some() { " scope link" } else { "" }
    }

    /// A host of an ordinary Ethernet has a default route, by which its applications' broadcast and multicast finds the
    /// interface. (What is broadcast takes no notice of a route's MTU.)
    fn broadcast_lines(&self, host: NodeId, aa: Ipv4Addr, device: &str) -> Vec<String> {
        if self.fabric().broadcast().is_none() {
            return Vec::new();
        }
        let line = |to: &str| format!("route replace {to} dev {device} proto kernel scope link src {aa}");
        vec![format!("{}{}", line("224.0.0.0/4"), self.route_mtu(host)), line("255.255.255.255/32")]
    }

    /// Where the interface of a server is wider than what leaves it: the metric that says so to the rest of its traffic.
    pub(crate) fn route_mtu(&self, host: NodeId) -> String {
        let is_wide = self.hears_broadcast() && self.fabric().node(host).role == Role::Server;
        let link = self.fabric().edge_of(host).filter(|_| is_wide).map(|(_, link)| self.fabric().link(link));
        link.map_or_else(String::new, |link| format!(" mtu {}", inner_mtu_bytes(Overlay::Vl2, link.spec.mtu_bytes)))
    }

    /// Keeps the buffers that TCP hands to a device at the transport's number of segments, where it has one.
    pub(crate) fn segment_limit(&self, device: &str) -> Option<String> {
        let segments = self.scenario.transport.segments_per_skb;
        (segments > 0).then(|| format!("link set dev {device} gso_max_segs {segments}"))
    }

    /// Initial window and smallest timeout are metrics of the route that the traffic takes.
    pub(crate) fn metrics(&self) -> String {
        let Transport { initial_window, rto_min, .. } = &self.scenario.transport;
        format!(" initcwnd {initial_window} rto_min {}ms", (rto_min.0 / 1_000_000).max(1))
    }

    /// A device with every other server's address known in advance: nothing floods, nothing is learnt.
    fn plan_vxlan(&self, plan: &mut NodePlan, aa: Ipv4Addr, underlay: &str) {
        let (fabric, addresses) = (self.fabric(), self.addresses());
        let (_, link) = fabric.edge_of(plan.id).expect("a valid fabric's hosts have an edge switch");
        let mtu = inner_mtu_bytes(self.scenario.overlay, fabric.link(link).spec.mtu_bytes);
        let device = format!("link add dev {VXLAN_DEVICE} address {} mtu {mtu}", vxlan_mac(aa));
        // One transaction creates the device; it lives in the second list because it needs the link below it.
        plan.configures.push(match self.scenario.overlay {
            Overlay::KernelVxlan { .. } => {
                let la = addresses.la(plan.id);
                format!("{device} type vxlan id {VNI} dstport 4789 local {la} dev {underlay} nolearning")
            }
            _ => format!("{device} type veth peer name {VTEP_PORT} mtu {mtu}"),
        });
        plan.configures.extend(self.segment_limit(VXLAN_DEVICE));
        plan.configures.push(format!("link set dev {VXLAN_DEVICE} up"));
        if let Overlay::Vtep { .. } = self.scenario.overlay {
            plan.configures.push(format!("link set dev {VTEP_PORT} up"));
        }
        plan.configures.extend([self.aa_line(aa, VXLAN_DEVICE), self.block_line(aa, VXLAN_DEVICE)]);
        let own = plan.id;
        let others = fabric.servers().filter(move |server| *server != own);
        for (peer, peer_aa) in others.filter_map(|server| Some((server, addresses.aa(server)?))) {
            self.add_vxlan_peer(plan, peer, peer_aa);
        }
    }

    fn add_vxlan_peer(&self, plan: &mut NodePlan, peer: NodeId, aa: Ipv4Addr) {
        let mac = vxlan_mac(aa);
        plan.configures.push(format!("neigh replace {aa} lladdr {mac} dev {VXLAN_DEVICE} nud permanent"));
        if let Overlay::KernelVxlan { .. } = self.scenario.overlay {
            let la = self.addresses().la(peer);
            plan.forwards.push(format!("fdb replace {mac} dev {VXLAN_DEVICE} dst {la} self permanent"));
        }
    }
}

/// Settings of a host's TCP. Cached metrics of earlier connections would make later runs depend on earlier ones.
pub(crate) fn tcp_sysctls(transport: &Transport) -> Vec<Sysctl> {
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
