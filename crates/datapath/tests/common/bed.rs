//! A real path: server A - ToR 1 - Intermediate - ToR 2 - server B, five namespaces, static routes.

use std::net::Ipv4Addr;

use super::netns::{Namespace, link};
use super::{ANYCAST, GATEWAY_MAC, MY_AA, MY_TOR, PEER_AA, PEER_TOR, available, host_config};
use weft_datapath::host::{HostConfig, HostDatapath, Mapping};
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};

/// The namespaces; the data path is attached by [`Bed::attach`].
pub struct Bed {
    pub a: Namespace,
    pub tor1: Namespace,
    pub intermediate: Namespace,
    pub tor2: Namespace,
    pub b: Namespace,
}

/// The programs at work; dropping detaches them.
pub struct Attached {
    pub a: HostDatapath,
    pub b: HostDatapath,
    pub tor1: SwitchDatapath,
    pub intermediate: SwitchDatapath,
    pub tor2: SwitchDatapath,
}

pub const A_MAPPING: Mapping = Mapping { tor_la: MY_TOR, anycast_la: ANYCAST, refused: false, version: 1 };
pub const B_MAPPING: Mapping = Mapping { tor_la: PEER_TOR, anycast_la: ANYCAST, refused: false, version: 1 };

impl Bed {
    pub fn new(test: &str) -> Self {
        let node = |name| Namespace::new(test, name);
        let bed = Self { a: node("a"), tor1: node("t1"), intermediate: node("i"), tor2: node("t2"), b: node("b") };
        for switch in [&bed.tor1, &bed.intermediate, &bed.tor2] {
            switch.sysctl("net.ipv4.ip_forward", "1");
            switch.sysctl("net.ipv4.conf.all.rp_filter", "0");
            switch.sysctl("net.ipv4.conf.default.rp_filter", "0");
        }
        link((&bed.tor1, "fabric"), (&bed.intermediate, "left"), 1600);
        link((&bed.tor2, "fabric"), (&bed.intermediate, "right"), 1600);
        connect_server(&bed.a, &bed.tor1, "10.64.0", MY_AA);
        connect_server(&bed.b, &bed.tor2, "10.64.1", PEER_AA);
        bed.route();
        bed
    }

    fn route(&self) {
        self.tor1.ip("addr add 10.128.0.0/31 dev fabric");
        self.intermediate.ip("addr add 10.128.0.1/31 dev left");
        self.tor2.ip("addr add 10.128.0.2/31 dev fabric");
        self.intermediate.ip("addr add 10.128.0.3/31 dev right");
        self.intermediate.ip(&format!("addr add {ANYCAST}/32 dev lo"));
        self.tor1.ip(&format!("addr add {MY_TOR}/32 dev lo"));
        self.tor2.ip(&format!("addr add {PEER_TOR}/32 dev lo"));
        self.tor1.ip("route add 10.0.0.0/8 via 10.128.0.1");
        self.tor2.ip("route add 10.0.0.0/8 via 10.128.0.3");
        self.intermediate.ip(&format!("route add {MY_TOR}/32 via 10.128.0.0"));
        self.intermediate.ip(&format!("route add {PEER_TOR}/32 via 10.128.0.2"));
        self.tor1.ip(&format!("route add {MY_AA}/32 dev host"));
        self.tor2.ip(&format!("route add {PEER_AA}/32 dev host"));
    }

    /// Attaches all programs; the servers know each other. `None`: eBPF is not available.
    pub fn attach(&self) -> Option<Attached> {
        let attached = Attached {
            a: available(self.a.enter(|| HostDatapath::attach(&server_config(MY_TOR))))?,
            b: available(self.b.enter(|| HostDatapath::attach(&server_config(PEER_TOR))))?,
            tor1: available(self.tor1.enter(|| SwitchDatapath::attach(&tor_config(MY_TOR))))?,
            tor2: available(self.tor2.enter(|| SwitchDatapath::attach(&tor_config(PEER_TOR))))?,
            intermediate: available(self.intermediate.enter(|| SwitchDatapath::attach(&intermediate_config())))?,
        };
        attached.a.set(PEER_AA, &B_MAPPING).expect("in the block");
        attached.b.set(MY_AA, &A_MAPPING).expect("in the block");
        Some(attached)
    }
}

fn connect_server(server: &Namespace, tor: &Namespace, rack: &str, aa: Ipv4Addr) {
    link((server, "eth0"), (tor, "host"), 1600);
    link((server, "weft-up0"), (server, "weft-up1"), 1500);
    let mac = GATEWAY_MAC.map(|byte| format!("{byte:02x}")).join(":");
    tor.ip(&format!("link set dev host address {mac}"));
    tor.ip(&format!("addr add {rack}.1/24 dev host"));
    server.ip("link set dev eth0 mtu 1500");
    server.ip(&format!("addr add {aa}/8 dev eth0"));
    server.ip(&format!("addr add {rack}.2/24 dev eth0"));
    server.ip(&format!("route add 10.0.0.0/8 via {rack}.1"));
}

pub fn server_config(tor_la: Ipv4Addr) -> HostConfig {
    HostConfig {
        interface: "eth0".to_owned(),
        miss_interface: "weft-up0".to_owned(),
        own_tor_la: tor_la,
        ..host_config()
    }
}

fn tor_config(la: Ipv4Addr) -> SwitchConfig {
    SwitchConfig {
        ports: vec!["fabric".to_owned()],
        host_ports: vec!["host".to_owned()],
        own_las: vec![la],
        tier: Tier::Tor,
        pin_dir: None,
    }
}

fn intermediate_config() -> SwitchConfig {
    SwitchConfig {
        ports: vec!["left".to_owned(), "right".to_owned()],
        host_ports: Vec::new(),
        own_las: vec![ANYCAST],
        tier: Tier::Intermediate,
        pin_dir: None,
    }
}
