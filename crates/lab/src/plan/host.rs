//! Plans of servers and directory servers: addresses, routes with the transport's metrics, VXLAN.

use std::net::Ipv4Addr;

use weft_scenario::addressing::{LA_BLOCK, VIRTUAL_MAC};
use weft_scenario::engine::{Overlay, Scenario, Transport};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;
use weft_wire::block::Block;
use weft_wire::ethernet::MacAddress;

use super::iproute::{End, Forward, Ip, LinkKind, Metrics, Network, NewLink, Route};
use super::{NodePlan, Planner, Sysctl, VNI, VTEP_PORT, VXLAN_DEVICE, inner_mtu_bytes, vxlan_mac};
use crate::shaping::Shaper;

impl Planner<'_> {
    pub(super) fn plan_host(&self, plan: &mut NodePlan) {
        let (edge, link) = self.fabric().edge_of(plan.id).expect("a valid fabric's hosts have an edge switch");
        plan.sysctls.extend(tcp_sysctls(&self.scenario.transport));
        plan.configures.extend(self.host_at(plan.id, edge, self.addresses().la(plan.id)));
        if let Overlay::KernelVxlan { .. } | Overlay::Vtep { .. } = self.scenario.overlay
            && let Some(aa) = self.addresses().aa(plan.id)
        {
            let underlay = self.fabric().link(link).end_at(plan.id).expect("a host's link ends at the host");
            self.plan_vxlan(plan, aa, &underlay.interface);
        }
    }

    /// Its link, addresses and routes below an edge switch.
    fn host_at(&self, host: NodeId, edge: NodeId, la: Ipv4Addr) -> Vec<Ip> {
        let (_, link) = self.fabric().edge_of(host).expect("a valid fabric's hosts have an edge switch");
        let interface = &self.fabric().link(link).end_at(host).expect("a host's link ends at the host").interface;
        let gateway = self.addresses().rack_gateway(edge).expect("an edge switch has a rack");
        let mut lines: Vec<Ip> = self.segment_limit(interface).into_iter().chain([Ip::up(interface)]).collect();
        let aa = self.addresses().aa(host).filter(|_| self.scenario.overlay == Overlay::Vl2);
        // First of all: what applications broadcast without choosing an address comes from the first one.
        lines.extend(aa.map(|aa| self.aa_line(aa, interface)));
        // No connected rack route: hosts of one rack also talk through their switch, each has a port of its own. The LA is
        // between the host and its ToR: programs that tell others where they are must choose the AA.
        let network = if self.hears_broadcast() { Network::Hidden } else { Network::Elsewhere };
        lines.push(Ip::address(la, 24, interface, network));
        let mac = MacAddress(VIRTUAL_MAC);
        lines.push(Ip::Neighbour { address: gateway, mac, device: interface.clone() });
        let metrics = match self.scenario.overlay {
            Overlay::Routed => self.metrics(),
            _ => self.route_mtu(host),
        };
        lines.push(Ip::Route(Route::by(LA_BLOCK, gateway, interface, Some(la)).with(metrics)));
        lines.extend(self.public_host_lines(host, interface, gateway));
        if let Some(aa) = aa {
            lines.push(self.block_line(aa, interface, self.route_mtu(host)));
            lines.extend(self.broadcast_lines(host, aa, interface));
        }
        lines
    }

    fn aa_line(&self, aa: Ipv4Addr, device: &str) -> Ip {
        Ip::address(aa, self.addresses().aa_block().prefix_len(), device, Network::Elsewhere)
    }

    /// The whole AA block is on the link: to a server the fabric looks like one Ethernet (VL2 4.2.1).
    fn block_line(&self, aa: Ipv4Addr, device: &str, narrower: Metrics) -> Ip {
        let metrics = Metrics { mtu: narrower.mtu, ..self.metrics() };
        Ip::Route(Route::on_link(self.addresses().aa_block(), device, Some(aa)).with(metrics))
    }

    /// A host of an ordinary Ethernet has a default route, by which its applications' broadcast and multicast finds the
    /// interface. (What is broadcast takes no notice of a route's MTU.)
    fn broadcast_lines(&self, host: NodeId, aa: Ipv4Addr, device: &str) -> Vec<Ip> {
        if self.fabric().broadcast().is_none() {
            return Vec::new();
        }
        let route = |network: [u8; 4], length| Route::on_link(Block::of(network.into(), length), device, Some(aa));
        let groups = route([224, 0, 0, 0], 4).with(self.route_mtu(host));
        vec![Ip::Route(groups), Ip::Route(route([255; 4], 32))]
    }

    /// Where the interface of a server is wider than what leaves it: the metric that says so to the rest of its traffic.
    pub(crate) fn route_mtu(&self, host: NodeId) -> Metrics {
        let is_wide = self.hears_broadcast() && self.fabric().node(host).role == Role::Server;
        let link = self.fabric().edge_of(host).filter(|_| is_wide).map(|(_, link)| self.fabric().link(link));
        Metrics { start: None, mtu: link.map(|link| inner_mtu_bytes(Overlay::Vl2, link.spec.mtu_bytes)) }
    }

    /// Keeps the buffers that TCP hands to a device at the transport's number of segments, where it has one.
    pub(crate) fn segment_limit(&self, device: &str) -> Option<Ip> {
        let segments = self.scenario.transport.segments_per_skb;
        (segments > 0).then(|| Ip::SegmentLimit { device: device.to_owned(), segments })
    }

    /// Initial window and smallest timeout are metrics of the route that the traffic takes.
    pub(crate) fn metrics(&self) -> Metrics {
        let Transport { initial_window, rto_min, .. } = &self.scenario.transport;
        Metrics { start: Some((*initial_window, (rto_min.0 / 1_000_000).max(1))), mtu: None }
    }

    /// A device with every other server's address known in advance: nothing floods, nothing is learnt.
    fn plan_vxlan(&self, plan: &mut NodePlan, aa: Ipv4Addr, underlay: &str) {
        let (fabric, addresses) = (self.fabric(), self.addresses());
        let (_, link) = fabric.edge_of(plan.id).expect("a valid fabric's hosts have an edge switch");
        let mtu = inner_mtu_bytes(self.scenario.overlay, fabric.link(link).spec.mtu_bytes);
        let end = End::new(VXLAN_DEVICE, Some(vxlan_mac(aa)), Some(mtu));
        let is_ours = matches!(self.scenario.overlay, Overlay::Vtep { .. });
        let (local, underlay) = (addresses.la(plan.id), Some(underlay.to_owned()));
        plan.configures.push(Ip::Add(match is_ours {
            true => NewLink::pair(end, End::new(VTEP_PORT, None, Some(mtu)), None),
            false => NewLink { end, kind: LinkKind::Vxlan { vni: VNI, local, underlay } },
        }));
        plan.configures.extend(self.segment_limit(VXLAN_DEVICE));
        plan.configures.push(Ip::up(VXLAN_DEVICE));
        plan.configures.extend(is_ours.then(|| Ip::up(VTEP_PORT)));
        let block = self.block_line(aa, VXLAN_DEVICE, Metrics::default());
        plan.configures.extend([self.aa_line(aa, VXLAN_DEVICE), block]);
        let own = plan.id;
        let others = fabric.servers().filter(move |server| *server != own);
        for (peer, address) in others.filter_map(|server| Some((server, addresses.aa(server)?))) {
            let (mac, device) = (vxlan_mac(address), VXLAN_DEVICE.to_owned());
            plan.configures.push(Ip::Neighbour { address, mac, device: device.clone() });
            if !is_ours {
                plan.forwards.push(Forward { mac, device, peer: addresses.la(peer) });
            }
        }
    }
}

/// What a server gets that has moved below another edge switch.
pub(crate) fn moved_host(scenario: &Scenario, server: NodeId, edge: NodeId, la: Ipv4Addr) -> Vec<Ip> {
    Planner { lab: "", scenario, seed: 0, shaper: Shaper::new(scenario) }.host_at(server, edge, la)
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
