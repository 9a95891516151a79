//! The VTEP in the ToR: servers send plain frames, the ToRs tunnel them over a routed fabric with two spines.

use std::net::Ipv4Addr;

use weft_node::vtep::VtepConfig;

use crate::bed::{Running, port, segment};
use crate::net::{Namespace, link, transfer};

/// Addresses of the ToRs, on their loopback interfaces as OSPF announces them.
const TOR: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];
const SERVER: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 168, 5, 1), Ipv4Addr::new(192, 168, 5, 2)];

/// Two ToRs, two spines, and behind each ToR a server in VNI 100 and one in VNI 200 with the same addresses.
struct Fabric {
    tors: [Namespace; 2],
    _spines: [Namespace; 2],
    /// By segment, then by ToR.
    servers: [[Namespace; 2]; 2],
    dir: tempfile::TempDir,
}

impl Fabric {
    fn new() -> Self {
        let node = |name: &str| Namespace::new("tor", name);
        let (tors, spines) = ([node("t0"), node("t1")], [node("i0"), node("i1")]);
        for switch in tors.iter().chain(&spines) {
            for (key, value) in [("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")] {
                switch.sysctl(key, value);
            }
            switch.sysctl("fib_multipath_hash_policy", "1");
        }
        for (k, tor) in tors.iter().enumerate() {
            tor.ip(&format!("addr add {}/32 dev lo", TOR[k]));
            let mut hops = String::new();
            for (i, spine) in spines.iter().enumerate() {
                let (up, down, net) = (format!("up{i}"), format!("tor{k}"), 4 * k + 2 * i);
                link((tor, &up), (spine, &down), 1600);
                tor.ip(&format!("addr add 10.128.0.{net}/31 dev {up}"));
                spine.ip(&format!("addr add 10.128.0.{}/31 dev {down}", net + 1));
                spine.ip(&format!("route add {}/32 via 10.128.0.{net}", TOR[k]));
                hops += &format!(" nexthop via 10.128.0.{}", net + 1);
            }
            tor.ip(&format!("route add {}/32 src {}{hops}", TOR[1 - k], TOR[k]));
        }
        let servers = ["a", "b"].map(|segment| {
            [0, 1].map(|k| {
                let server = node(&format!("{segment}{k}"));
                link((&tors[k], segment), (&server, "eth0"), 1500);
                server.ip(&format!("addr add {}/24 dev eth0", SERVER[k]));
                server
            })
        });
        Self { tors, _spines: spines, servers, dir: tempfile::tempdir().unwrap() }
    }

    fn vtep(&self, k: usize) -> Running {
        let mut config = VtepConfig::new(TOR[k], vec!["up0".to_owned(), "up1".to_owned()]);
        config.socket = self.dir.path().join(format!("tor{k}.sock"));
        config.peers = [TOR[1 - k]].into();
        config.vni = vec![segment(100), segment(200)];
        config.port = vec![port("a", 100), port("b", 200)];
        Running::start(&self.tors[k], config)
    }
}

#[test]
fn plain_servers_of_two_segments_talk_over_a_routed_fabric() {
    if !weft_needs::root() {
        return;
    }
    let fabric = Fabric::new();
    let vteps = [fabric.vtep(0), fabric.vtep(1)];
    for servers in &fabric.servers {
        let output = servers[0].ping(&format!("-c 3 -i 0.05 -W 30 {}", SERVER[1]));
        assert!(output.contains("3 received"), "{output}");
    }
    let before = [0, 1].map(|i| fabric.tors[1].received(&format!("up{i}")).1);
    for _ in 0..24 {
        transfer(&fabric.servers[0][0], &fabric.servers[0][1], SERVER[1], 200_000);
    }
    let after = [0, 1].map(|i| fabric.tors[1].received(&format!("up{i}")).1);
    assert!(after.iter().zip(before).all(|(after, before)| *after > before), "flows spread: {before:?} {after:?}");
    // One segment's server goes; the other's with the same address is not asked in its place.
    fabric.servers[1][1].ip("link set eth0 down");
    fabric.servers[1][0].ip("neigh flush all");
    assert!(fabric.servers[1][0].ping(&format!("-c 1 -W 1 {}", SERVER[1])).contains("0 received"));
    assert!(fabric.servers[0][0].ping(&format!("-c 1 -W 30 {}", SERVER[1])).contains("1 received"));
    for vtep in vteps {
        assert_eq!(vtep.count("frames", "no_route") + vtep.count("frames", "unknown_peer"), 0);
        vtep.finish();
    }
}
