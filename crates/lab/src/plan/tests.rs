//! What a scenario becomes for each node, as text.

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Transport};
use weft_scenario::switching::Switching;
use weft_scenario::topology::{Broadcast, Delivery, LinkParams, Service, TestbedParams, overlay_pair, vl2_testbed};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};

use super::*;

fn scenario(fabric: Fabric, overlay: Overlay) -> Scenario {
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
    let transport = Transport {
        initial_window: 8,
        rto_min: Nanos(1_000_000_000),
        timestamps: false,
        segments_per_skb: 8,
        output_limit: Some(Bytes(4096)),
        ..Transport::default()
    };
    Scenario {
        fabric,
        addresses,
        overlay,
        directory: DirectoryStore::default(),
        transport,
        switching: Switching::default(),
        shaped: true,
    }
}

fn pair(overlay: Overlay) -> Scenario {
    let links = LinkParams { server_rate: BitsPerSec(20_000_000), ..LinkParams::default() };
    scenario(overlay_pair(&links).unwrap(), overlay)
}

fn node(scenario: &Scenario, name: &str) -> NodePlan {
    let id = scenario.fabric.find(name).unwrap();
    LabPlan::new("x", scenario, 1).nodes.swap_remove(id.index())
}

/// As iproute2 reads it.
fn text(lines: &[impl ToString]) -> Vec<String> {
    lines.iter().flat_map(|line| line.to_string().lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn value(plan: &NodePlan, name: &str) -> Option<String> {
    plan.sysctls.iter().find(|setting| setting.name == name).map(|setting| setting.value.clone())
}

#[test]
fn a_vl2_server_sees_one_large_ethernet() {
    let plan = node(&pair(Overlay::Vl2), "s2");
    assert_eq!(plan.namespace, "weft-x-s2");
    assert_eq!(
        text(&plan.configures),
        [
            "link set dev lo up",
            "link set dev eth0 gso_max_segs 8",
            "link set dev eth0 up",
            "addr replace 20.0.0.2/8 dev eth0 noprefixroute",
            "addr replace 10.64.1.2/24 dev eth0 noprefixroute",
            "neigh replace 10.64.1.1 lladdr 02:56:4c:32:00:01 dev eth0 nud permanent",
            "route replace 10.0.0.0/8 via 10.64.1.1 dev eth0 onlink src 10.64.1.2",
            "route replace 20.0.0.0/8 dev eth0 proto kernel scope link src 20.0.0.2 initcwnd 8 rto_min 1000ms",
        ]
    );
    assert_eq!(value(&plan, "net/ipv4/tcp_congestion_control").as_deref(), Some("cubic"));
    assert_eq!(value(&plan, "net/ipv4/tcp_timestamps").as_deref(), Some("0"));
    assert_eq!(value(&plan, "net/ipv4/tcp_min_tso_segs").as_deref(), Some("8"));
    assert_eq!(value(&plan, "net/ipv4/tcp_limit_output_bytes").as_deref(), Some("4096"));
    assert!(text(&plan.creates).is_empty() && text(&plan.forwards).is_empty() && plan.frr.is_none());
}

#[test]
fn a_tor_makes_its_links_and_knows_only_its_own_servers() {
    let plan = node(&pair(Overlay::Vl2), "tor2");
    assert_eq!(
        text(&plan.creates),
        [
            "link add dev s2 address 02:56:4c:32:00:01 mtu 1600 type veth \
             peer name eth0 address 02:01:00:00:00:03 mtu 1500 netns weft-x-s2",
            "link add dev weft-rack0 type veth peer name weft-rack1",
        ]
    );
    assert_eq!(
        text(&plan.configures),
        [
            "link set dev lo up",
            "addr replace 10.1.0.2/32 dev lo",
            "link set dev int1 up",
            "addr replace 10.128.0.3/31 dev int1",
            "link set dev s2 up",
            "link set dev weft-rack0 up",
            "link set dev weft-rack1 up",
            "addr replace 10.64.1.1/24 dev weft-rack0 noprefixroute",
            "route replace unreachable 10.64.1.0/24",
            "neigh replace 10.64.1.2 lladdr 02:01:00:00:00:03 dev s2 nud permanent",
            "route replace 10.64.1.2/32 dev s2",
            "neigh replace 20.0.0.2 lladdr 02:01:00:00:00:03 dev s2 nud permanent",
            "route replace 20.0.0.2/32 dev s2",
        ]
    );
}

fn with_broadcast(delivery: Delivery) -> Scenario {
    let mut scenario = pair(Overlay::Vl2);
    let servers = scenario.fabric.servers().collect();
    let services = vec![Service { name: "web".into(), servers }];
    let broadcast = Broadcast { delivery, limit: BitsPerSec(10_000_000), burst: Bytes(64_000) };
    scenario.fabric = scenario.fabric.with_services(services, Some(broadcast)).unwrap();
    scenario
}

#[test]
fn groups_need_multicast_routing_and_copies_do_not() {
    let scenario = with_broadcast(Delivery::Group);
    let tor = node(&scenario, "tor2");
    let address = "addr replace 10.64.1.1/24 dev s2 noprefixroute".to_owned();
    assert!(text(&tor.configures).contains(&address), "IGMP queries need a source: {:?}", text(&tor.configures));
    assert!(tor.frr.unwrap().text("pimd").unwrap().contains("interface s2\n ip pim\n ip pim passive\n ip igmp\n"));
    assert!(!node(&scenario, "int1").frr.unwrap().text("pimd").unwrap().contains("igmp"));
    let host = node(&scenario, "s2");
    for to in ["224.0.0.0/4", "255.255.255.255/32"] {
        let line = format!("route replace {to} dev eth0 proto kernel scope link src 20.0.0.2");
        assert!(text(&host.configures).iter().any(|one| one.starts_with(&line)), "{:?}", text(&host.configures));
    }
    assert!(text(&host.configures).contains(&"addr replace 10.64.1.2/24 dev eth0 noprefixroute scope link".to_owned()));
    let tor = node(&with_broadcast(Delivery::Copies), "tor2");
    assert!(tor.frr.unwrap().text("pimd").is_none() && !text(&tor.configures).contains(&address));
}

#[test]
fn a_server_that_hears_broadcast_takes_in_the_outer_header_and_sends_what_fits_inside() {
    for delivery in [Delivery::Group, Delivery::Copies] {
        let scenario = with_broadcast(delivery);
        assert!(text(&node(&scenario, "tor2").creates)[0].contains(" mtu 1600 netns weft-x-s2"), "the server's end");
        let host = node(&scenario, "s2");
        let routes: Vec<String> =
            text(&host.configures).into_iter().filter(|line| line.starts_with("route ")).collect();
        assert_eq!(routes.len(), 4);
        for route in routes {
            // Broadcast would take no notice.
            assert_eq!(route.ends_with(" mtu 1500"), !route.contains(" 255.255.255.255/32 "), "{route}");
        }
    }
    let scenario = scenario(with_broadcast(Delivery::Group).fabric, Overlay::Routed);
    assert!(
        text(&node(&scenario, "tor2").creates)[0].contains(" mtu 1500 netns weft-x-s2"),
        "without agents nobody is sent any"
    );
}

#[test]
fn relays_of_dhcp_have_an_address_at_each_port() {
    let mut scenario = pair(Overlay::Vl2);
    let server = scenario.fabric.find("dir1");
    scenario.fabric = scenario.fabric.with_dhcp(server).unwrap();
    let lines = text(&node(&scenario, "tor1").configures);
    for port in ["s1", "dir1"] {
        assert!(lines.contains(&format!("addr replace 10.64.0.1/24 dev {port} noprefixroute")), "{lines:?}");
    }
    scenario.overlay = Overlay::Routed;
    assert!(!text(&node(&scenario, "tor1").configures).iter().any(|line| line.contains("10.64.0.1/24 dev s1")));
}

#[test]
fn an_intermediate_owns_the_anycast_address() {
    let plan = node(&pair(Overlay::Vl2), "int1");
    assert_eq!(
        text(&plan.configures),
        [
            "link set dev lo up",
            "addr replace 10.3.0.1/32 dev lo",
            "addr replace 10.255.255.1/32 dev lo",
            "link set dev tor1 up",
            "addr replace 10.128.0.0/31 dev tor1",
            "link set dev tor2 up",
            "addr replace 10.128.0.2/31 dev tor2",
        ]
    );
    assert!(!plan.frr.unwrap().text("ospfd").unwrap().contains("passive"));
}

#[test]
fn without_an_overlay_no_switch_hears_of_aas() {
    let scenario = pair(Overlay::Routed);
    let plans = format!("{:?}", LabPlan::new("x", &scenario, 1));
    assert!(!plans.contains("20.0.0."), "AAs belong to overlays");
    let server = node(&scenario, "s1");
    let route = text(&server.configures).into_iter().find(|line| line.contains("10.0.0.0/8")).unwrap();
    assert!(route.ends_with("src 10.64.0.2 initcwnd 8 rto_min 1000ms"), "{route}");
    assert_eq!(value(&node(&scenario, "int1"), "net/ipv4/fib_multipath_hash_policy").as_deref(), Some("1"));
    assert_eq!(value(&node(&pair(Overlay::Vl2), "int1"), "net/ipv4/fib_multipath_hash_policy").as_deref(), Some("0"));
}

#[test]
fn vxlan_leaves_1500_bytes_inside_and_knows_every_peer() {
    let plan = node(&pair(Overlay::KERNEL_VXLAN), "s1");
    let lines = text(&plan.configures).join("\n");
    assert!(lines.contains(
        "link add dev vxlan0 address 02:56:58:00:00:01 mtu 1500 type vxlan id 42 dstport 4789 local 10.64.0.2 dev eth0 nolearning"
    ));
    assert!(lines.contains("neigh replace 20.0.0.2 lladdr 02:56:58:00:00:02 dev vxlan0 nud permanent"));
    assert!(lines.contains("route replace 20.0.0.0/8 dev vxlan0 proto kernel scope link src 20.0.0.1"));
    assert_eq!(text(&plan.forwards), ["fdb replace 02:56:58:00:00:02 dev vxlan0 dst 10.64.1.2 self permanent"]);
    let ours = node(&pair(Overlay::VTEP), "s1");
    let lines = text(&ours.configures).join("\n");
    assert!(
        lines.contains("link add dev vxlan0 address 02:56:58:00:00:01 mtu 1500 type veth peer name vtep0 mtu 1500")
    );
    assert!(lines.contains("neigh replace 20.0.0.2 lladdr 02:56:58:00:00:02 dev vxlan0 nud permanent"));
    assert!(
        lines.contains("link set dev vtep0 up") && text(&ours.forwards).is_empty(),
        "the daemon knows who is where"
    );
    let tor = node(&pair(Overlay::KERNEL_VXLAN), "tor1");
    assert!(
        text(&tor.creates)[0].contains("peer name eth0") && text(&tor.creates)[0].contains("mtu 1600 netns weft-x-s1")
    );
}

#[test]
fn queues_of_large_buffers_have_scaled_rates_and_a_class_for_routing() {
    let plan = node(&pair(Overlay::Vl2), "s1");
    // 20 Mbit/s x 3082/3274: the queue counts before the headers are added.
    assert_eq!(
        text(&plan.queues),
        [
            "qdisc add dev eth0 root handle 1: htb default 1",
            "class add dev eth0 parent 1: classid 1:1 htb rate 18827122bit burst 12960 cburst 12960 quantum 12960",
            "class add dev eth0 parent 1: classid 1:2 htb rate 18827122bit burst 3200 cburst 3200 quantum 12960",
            "qdisc add dev eth0 parent 1:1 handle 10: bfifo limit 4000000",
            "qdisc add dev eth0 parent 1:2 handle 20: pfifo limit 1000",
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 89 0xff flowid 1:2",
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0xc0 0xfc flowid 1:2",
            "filter add dev eth0 parent 1: protocol arp prio 2 u32 match u32 0 0 flowid 1:2",
        ]
    );
    let core = node(&pair(Overlay::Vl2), "tor1");
    // 200 Mbit/s x 3202/3274, and ten times the burst: the same time.
    assert!(
        text(&core.queues)[1].starts_with("class add dev int1 parent 1: classid 1:1 htb rate 195601710bit burst 126")
    );
    let to_server =
        text(&core.queues).into_iter().find(|line| line.contains("dev s1") && line.contains("1:1 htb")).unwrap();
    assert!(to_server.contains("rate 19543436bit"), "20 Mbit/s x 3082/3154: {to_server}");
}

#[test]
fn queues_of_single_frames_are_exact() {
    let mut scenario = pair(Overlay::Vl2);
    scenario.transport.segments_per_skb = 1;
    let plan = node(&scenario, "s1");
    assert_eq!(
        text(&plan.queues)[0],
        "qdisc add dev eth0 root handle 1: stab overhead 24 linklayer ethernet htb default 1"
    );
    assert!(text(&plan.queues)[1].contains("rate 20000000bit burst 3200 "), "{}", text(&plan.queues)[1]);
    scenario.shaped = false;
    assert!(text(&node(&scenario, "s1").queues).is_empty());
}

#[test]
fn every_switch_hashes_in_its_own_way_and_the_same_way_again() {
    let scenario = scenario(vl2_testbed(&TestbedParams::default()).unwrap(), Overlay::Vl2);
    let seeds = |seed| {
        let plans = LabPlan::new("x", &scenario, seed).nodes;
        plans.iter().filter_map(|plan| value(plan, "net/ipv4/fib_multipath_hash_seed")).collect::<Vec<_>>()
    };
    let unique: std::collections::BTreeSet<_> = seeds(1).into_iter().collect();
    assert_eq!((seeds(1).len(), unique.len()), (10, 10));
    assert!(!unique.contains("0"), "0 lets the kernel choose at random");
    assert_eq!(seeds(1), seeds(1));
    assert_ne!(seeds(1), seeds(2));
}

#[test]
fn what_other_switches_learn_does_not_grow_with_the_servers() {
    let of_size = |servers| {
        let params = TestbedParams { servers_per_tor: [servers; 4], ..TestbedParams::default() };
        let scenario = scenario(vl2_testbed(&params).unwrap(), Overlay::Vl2);
        let plans = LabPlan::new("x", &scenario, 1).nodes;
        plans
            .into_iter()
            .filter_map(|plan| plan.frr)
            .map(|frr| frr.text("ospfd").unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_size(2), of_size(40), "OSPF carries switches and racks, never AAs (VL2 4.2.1)");
}

#[test]
fn a_test_bed_of_75_servers_is_planned_whole() {
    let scenario = scenario(vl2_testbed(&TestbedParams::default()).unwrap(), Overlay::Vl2);
    let plans = LabPlan::new("x", &scenario, 1).nodes;
    let links = scenario.fabric.links().len();
    assert_eq!(
        plans.iter().map(|plan| text(&plan.creates).len()).sum::<usize>(),
        links + 4,
        "and a rack device per ToR"
    );
    let ends: usize =
        plans.iter().map(|plan| text(&plan.queues).iter().filter(|line| line.contains(" root ")).count()).sum();
    assert_eq!(ends, 2 * links);
}

fn campus(overlay: Overlay) -> Scenario {
    let text = r#"name: campus
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 9216}}
  nodes: {s1: {role: rbridge}, s2: {role: rbridge}, h1: {role: server}, h2: {role: server}, r1: {role: router}}
  links:
    - {endpoints: ["s1:s2", "s2:s1"]}
    - {endpoints: ["s1:h1", "h1:eth0"], vlan: 10, address: 10.0.10.1/24, mtu: 9000}
    - {endpoints: ["s2:h2", "h2:eth0"], vlan: 20, address: 10.0.20.2/24, mtu: 9000}
    - {endpoints: ["s1:r10", "r1:eth10"], vlan: 10, address: 10.0.10.254/24, mtu: 9000}
    - {endpoints: ["s1:r20", "r1:eth20"], vlan: 20, address: 10.0.20.254/24, mtu: 9000}
"#;
    scenario(weft_scenario::topology::from_yaml(text, "campus").unwrap(), overlay)
}

#[test]
fn hosts_of_a_campus_are_the_same_whatever_switches_their_frames() {
    for overlay in [Overlay::RBRIDGE, Overlay::BRIDGE, Overlay::L2] {
        let scenario = campus(overlay);
        let host = node(&scenario, "h1");
        assert_eq!(
            text(&host.configures),
            [
                "link set dev lo up",
                "link set dev eth0 up",
                "addr replace 10.0.10.1/24 dev eth0",
                "route replace default via 10.0.10.254 dev eth0"
            ]
        );
        assert_eq!((text(&host.queues).len(), host.frr.is_some()), (0, false), "nothing is shaped, nothing routes");
        let router = node(&scenario, "r1");
        assert_eq!(value(&router, "net/ipv4/ip_forward").as_deref(), Some("1"));
        assert!(text(&router.configures).contains(&"addr replace 10.0.20.254/24 dev eth20".to_owned()));
        assert!(!text(&router.configures).iter().any(|line| line.contains("default")));
        let ends = "s1 address 02:01:00:00:00:00 mtu 9216";
        assert!(text(&node(&scenario, "s1").creates)[0].contains(&format!("peer name {ends} netns weft-x-s2")));
    }
}

#[test]
fn bridges_have_a_pair_of_devices_for_each_vlan() {
    let scenario = campus(Overlay::BRIDGE);
    let switch = node(&scenario, "s1");
    let pair = "link add dev s2.20 address 06:00:00:14:00:00 mtu 9216 type veth peer name s1.20 address 06:01:00:14:00:00 \
                mtu 9216 netns weft-x-s2";
    assert!(text(&switch.creates).contains(&pair.to_owned()), "{:?}", text(&switch.creates));
    assert_eq!(text(&switch.creates).len(), 5, "four links, and the trunk once more");
    let bridge = "link add dev br10 address 02:42:00:0a:00:00 type bridge stp_state 1 mcast_snooping 0";
    for line in
        [bridge, "link set dev s2 master br10", "link set dev s2.20 master br20", "link set dev r20 master br20"]
    {
        assert!(text(&switch.configures).contains(&line.to_owned()), "{line}: {:?}", text(&switch.configures));
    }
    let rbridge = node(&campus(Overlay::RBRIDGE), "s1");
    assert_eq!(text(&rbridge.creates).len(), 4);
    assert!(!text(&rbridge.configures).iter().any(|line| line.contains("master")));
}

#[test]
fn what_is_told_again_leaves_devices_that_are_down_alone() {
    let switch = node(&campus(Overlay::BRIDGE), "s1");
    let again: Vec<&iproute::Ip> = switch.again(&["s2", "s2.20"].map(str::to_owned).into()).collect();
    assert_eq!(
        text(&again),
        [
            "link set dev lo up",
            "link set dev h1 master br10",
            "link set dev h1 up",
            "link set dev r10 master br10",
            "link set dev r10 up",
            "link set dev r20 master br20",
            "link set dev r20 up",
        ]
    );
}

#[test]
fn a_fabric_without_vlans_is_one_vlan() {
    let scenario = pair(Overlay::RBRIDGE);
    assert_eq!(vlans(&scenario).into_iter().collect::<Vec<_>>(), [1]);
    let host = node(&scenario, "s2");
    assert_eq!(text(&host.configures).last().unwrap(), "addr replace 20.0.0.2/8 dev eth0");
}
