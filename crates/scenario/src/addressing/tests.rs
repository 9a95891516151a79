//! Addresses of whole fabrics: flat AAs, unique LAs, anycast addresses that stay alive.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::topology::{
    ClosParams, LeafSpineParams, LinkParams, OutputQueuedParams, TestbedParams, leaf_spine, output_queued,
    overlay_pair, vl2_clos, vl2_testbed,
};

fn bed() -> Fabric {
    vl2_testbed(&TestbedParams::default()).unwrap()
}

fn plan(fabric: &Fabric) -> AddressPlan {
    AddressPlan::new(fabric, AddressingOptions::default()).unwrap()
}

fn address(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

/// A fabric of `count` Intermediates, and its plan for switches that spread over `width` next hops.
fn with_intermediates(count: u32, width: usize) -> (Fabric, AddressPlan) {
    let params = ClosParams {
        aggregation_ports: 2 * count,
        intermediate_ports: 4,
        servers_per_tor: 1,
        links: LinkParams::default(),
    };
    let fabric = vl2_clos(&params).unwrap();
    let options = AddressingOptions { ecmp_width: width, ..AddressingOptions::default() };
    let plan = AddressPlan::new(&fabric, options).unwrap();
    (fabric, plan)
}

#[test]
fn the_test_bed_has_the_addresses_of_the_table() {
    let fabric = bed();
    let plan = plan(&fabric);
    let node = |name: &str| fabric.find(name).unwrap();
    assert_eq!(plan.aa(node("s1")), Some(address("20.0.0.1")));
    assert_eq!(plan.aa(node("s75")), Some(address("20.0.0.75")));
    assert_eq!(plan.host_of_aa(address("20.0.0.75")), Some(node("s75")));
    assert_eq!((plan.aa(node("dir1")), plan.aa(node("tor1"))), (None, None));
    for (name, la) in [
        ("tor1", "10.1.0.1"),
        ("agg3", "10.2.0.3"),
        ("int2", "10.3.0.2"),
        ("s1", "10.64.0.2"),
        ("s20", "10.64.1.2"),
        ("dir1", "10.64.3.20"),
    ] {
        assert_eq!(plan.la(node(name)), address(la), "{name}");
    }
    assert_eq!(plan.rack_gateway(node("tor4")), Some(address("10.64.3.1")));
    assert_eq!((plan.rack(node("agg1")), plan.rack_gateway(node("s1"))), (None, None));
    assert_eq!(plan.link(LinkId(1)), Some((address("10.128.0.2"), address("10.128.0.3"))));
    assert_eq!(plan.link(fabric.edge_of(node("s1")).unwrap().1), None);
    let groups = plan.anycast_groups();
    assert_eq!((groups.len(), groups[0].address, groups[0].members.len()), (1, address("10.255.255.1"), 3));
}

#[test]
fn an_aa_says_nothing_about_the_place() {
    let sorted = |fabric: &Fabric| plan(fabric).host_of_aa.keys().copied().collect::<Vec<_>>();
    let other = TestbedParams { servers_per_tor: [72, 1, 1, 1], ..TestbedParams::default() };
    assert_eq!(sorted(&bed()), sorted(&vl2_testbed(&other).unwrap()));
}

#[test]
fn hosts_see_one_gateway_mac_and_every_other_mac_is_unique() {
    let fabric = bed();
    let plan = plan(&fabric);
    let mut seen = BTreeSet::new();
    for (link, id) in fabric.links().iter().zip((0..).map(LinkId)) {
        for port in [&link.a, &link.b] {
            let mac = plan.mac(&fabric, id, port.node);
            assert_eq!(mac[0] & 3, 2, "locally administered unicast");
            let to_host = !fabric.node(link.far_end(port.node).unwrap().node).role.is_switch();
            assert_eq!(mac == VIRTUAL_MAC, to_host);
            assert!(to_host || seen.insert(mac), "{mac:?} twice");
        }
    }
}

#[test]
fn blocks_that_cannot_be_aas_are_refused() {
    let fabric = bed();
    let refusal = |block: Block| {
        let options = AddressingOptions { aa_block: block, ..AddressingOptions::default() };
        AddressPlan::new(&fabric, options).map(|_| ()).unwrap_err()
    };
    for (block, with) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.20.0.0/16", "10.0.0.0/8"),
        ("8.0.0.0/5", "10.0.0.0/8"),
        ("100.64.0.0/16", "100.64.0.0/10"),
        ("100.0.0.0/8", "100.64.0.0/10"),
        ("127.1.0.0/16", "127.0.0.0/8"),
        ("224.0.0.0/8", "224.0.0.0/3"),
        ("169.254.0.0/16", "169.254.0.0/16"),
        ("0.0.0.0/0", "10.0.0.0/8"),
    ] {
        let expected = AddressError::Overlap { block: block.to_owned(), with: with.to_owned() };
        assert_eq!(refusal(block.parse().unwrap()), expected);
    }
    let small = AddressError::BlockTooSmall { block: "20.0.0.0/26".to_owned(), room: 62, servers: 75 };
    assert_eq!(refusal("20.0.0.0/26".parse().unwrap()), small);
    assert!(matches!(refusal("20.0.0.0/32".parse().unwrap()), AddressError::BlockTooSmall { room: 0, .. }));
    let no_width = AddressingOptions { ecmp_width: 0, ..AddressingOptions::default() };
    assert_eq!(AddressPlan::new(&fabric, no_width).map(|_| ()), Err(AddressError::ZeroWidth));
}

#[test]
fn more_than_a_rack_holds_is_refused() {
    let full = TestbedParams { servers_per_tor: [252; 4], ..TestbedParams::default() };
    assert!(AddressPlan::new(&vl2_testbed(&full).unwrap(), AddressingOptions::default()).is_ok());
    let fabric = overlay_pair(&LinkParams::default()).unwrap();
    let (mut nodes, mut links) = (fabric.nodes().to_vec(), fabric.links().to_vec());
    for extra in 0..SERVERS_PER_RACK_MAX {
        let mut link = links[2].clone();
        (link.a.interface, link.b.node) = (format!("x{extra}"), NodeId(nodes.len() as u32));
        nodes.push(crate::topology::Node { name: format!("x{extra}"), role: Role::Server });
        links.push(link);
    }
    let crowded = Fabric::new("crowded", nodes, links).unwrap();
    let error = AddressPlan::new(&crowded, AddressingOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, AddressError::RackTooLarge { switch: "tor1".to_owned(), hosts: SERVERS_PER_RACK_MAX + 2 });
}

#[test]
fn the_ideal_switch_is_one_large_rack() {
    for (servers, length) in [(253, 24), (254, 23), (1_600, 21), (4_000, 20)] {
        let fabric = output_queued(&OutputQueuedParams { servers, ..OutputQueuedParams::default() }).unwrap();
        let plan = plan(&fabric);
        let rack = plan.rack(NodeId(0)).unwrap();
        assert_eq!((rack.network(), rack.prefix_len()), (address("10.64.0.0"), length));
        let last = fabric.servers().last().unwrap();
        assert_eq!(u32::from(plan.la(last)), u32::from(rack.network()) + 1 + servers);
        check_unique(&fabric).unwrap();
    }
}

#[test]
fn racks_of_all_sizes_lie_side_by_side() {
    let fabric = leaf_spine(&LeafSpineParams { leaves: 3, ..LeafSpineParams::default() }).unwrap();
    let (mut nodes, mut links) = (fabric.nodes().to_vec(), fabric.links().to_vec());
    let middle = links.iter().find(|link| fabric.node(link.b.node).name == "s3").unwrap().clone();
    for extra in 0..300 {
        let mut link = middle.clone();
        (link.a.interface, link.b.node) = (format!("x{extra}"), NodeId(nodes.len() as u32));
        nodes.push(crate::topology::Node { name: format!("x{extra}"), role: Role::Server });
        links.push(link);
    }
    let fabric = Fabric::new("uneven", nodes, links).unwrap();
    let plan = plan(&fabric);
    let racks = ["leaf1", "leaf2", "leaf3"].map(|leaf| plan.rack(fabric.find(leaf).unwrap()).unwrap().to_string());
    assert_eq!(racks, ["10.64.0.0/24", "10.64.2.0/23", "10.64.4.0/24"]);
    check_unique(&fabric).unwrap();
}

#[test]
fn more_racks_than_the_block_holds_are_refused() {
    let node = |number: u32| crate::topology::Node { name: format!("tor{number}"), role: Role::Tor };
    let nodes: Vec<_> = (0..16_385).map(node).collect();
    let link = |number: u32| crate::topology::Link {
        a: crate::topology::Port { node: NodeId(0), interface: format!("d{number}") },
        b: crate::topology::Port { node: NodeId(number), interface: "up".to_owned() },
        spec: LinkParams::default().core_spec(),
    };
    let fabric = Fabric::new("wide", nodes, (1..16_385).map(link).collect()).unwrap();
    let error = AddressPlan::new(&fabric, AddressingOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, AddressError::TooMany { what: "edge switches", count: 16_385, room: 16_384 });
}

#[test]
fn the_papers_largest_network_has_room() {
    let fabric = vl2_clos(&ClosParams::with_ports(144)).unwrap();
    let plan = plan(&fabric);
    assert_eq!(plan.anycast_groups().len(), 5, "72 Intermediates in groups of at most 16");
    let last = fabric.servers().last().unwrap();
    assert_eq!(plan.aa(last), Some(Ipv4Addr::from(u32::from(address("20.0.0.0")) + 103_680)));
    let (_, narrow) = with_intermediates(127, 1);
    assert_eq!(narrow.anycast_groups().len(), 127);
}

#[test]
fn the_returning_intermediate_gets_its_address_back() {
    let (fabric, mut plan) = with_intermediates(4, 2);
    let before = plan.anycast_groups().to_vec();
    let ints: Vec<NodeId> = fabric.with_role(Role::Intermediate).collect();
    let (first, second) = (before[0].address, before[1].address);
    assert_eq!(
        [before[0].members.clone(), before[1].members.clone()],
        [vec![ints[0], ints[2]], vec![ints[1], ints[3]]]
    );
    assert_eq!(plan.intermediate_failed(ints[0]), []);
    assert_eq!(plan.intermediate_failed(ints[0]), [], "the same failure twice changes nothing");
    assert_eq!(plan.intermediate_failed(ints[2]), [(first, ints[1])]);
    assert_eq!(plan.intermediate_failed(ints[1]), [(first, ints[3])], "a stand-in that fails is replaced");
    assert_eq!(plan.intermediate_failed(ints[3]), [], "nobody is left to take anything");
    use AnycastChange::{Releases, Takes};
    assert_eq!(plan.intermediate_repaired(ints[1]), [Takes(ints[1], first), Takes(ints[1], second)]);
    assert_eq!(plan.intermediate_repaired(ints[2]), [Takes(ints[2], first), Releases(ints[1], first)]);
    assert_eq!(plan.intermediate_repaired(ints[2]), []);
    plan.intermediate_repaired(ints[3]);
    plan.intermediate_repaired(ints[0]);
    assert_eq!(plan.anycast_groups(), before);
}

#[test]
fn one_failed_intermediate_may_leave_several_addresses() {
    let (fabric, mut plan) = with_intermediates(3, 1);
    let ints: Vec<NodeId> = fabric.with_role(Role::Intermediate).collect();
    let groups = plan.anycast_groups().to_vec();
    assert_eq!(plan.intermediate_failed(ints[0]), [(groups[0].address, ints[1])]);
    let moved = plan.intermediate_failed(ints[1]);
    assert_eq!(moved, [(groups[0].address, ints[2]), (groups[1].address, ints[2])]);
}

#[test]
fn nodes_that_are_no_intermediates_change_nothing() {
    let fabric = bed();
    let mut plan = plan(&fabric);
    let tor = fabric.find("tor1").unwrap();
    assert_eq!((plan.intermediate_failed(tor), plan.intermediate_repaired(tor)), (Vec::new(), Vec::new()));
    let spines = leaf_spine(&LeafSpineParams::default()).unwrap();
    let without = AddressPlan::new(&spines, AddressingOptions::default()).unwrap();
    assert!(without.anycast_groups().is_empty());
    assert_eq!(without.anycast_for(spines.find("leaf1").unwrap()), None);
}

#[test]
fn the_hash_prefix_holds_every_source_that_wire_writes_and_nothing_else() {
    use weft_wire::flow::hash_source;
    assert_eq!((hash_source(0), hash_source(u32::MAX)), (HASH_SOURCES.network(), HASH_SOURCES.last()));
}

/// Every LA in use: each node's own, the gateways, the links' ends, the anycast addresses.
fn all_las(fabric: &Fabric, plan: &AddressPlan) -> Vec<Ipv4Addr> {
    let mut all: Vec<Ipv4Addr> = fabric.ids().map(|node| plan.la(node)).collect();
    all.extend(fabric.ids().filter_map(|node| plan.rack_gateway(node)));
    let ends = (0..fabric.links().len() as u32).filter_map(|link| plan.link(LinkId(link)));
    all.extend(ends.flat_map(|(a, b)| [a, b]));
    all.extend(plan.anycast_groups().iter().map(|group| group.address));
    all
}

fn check_unique(fabric: &Fabric) -> Result<(), TestCaseError> {
    let plan = plan(fabric);
    let las = all_las(fabric, &plan);
    let aas: Vec<Ipv4Addr> = fabric.servers().filter_map(|server| plan.aa(server)).collect();
    prop_assert_eq!(aas.len(), fabric.servers().count());
    let distinct: BTreeSet<Ipv4Addr> = las.iter().chain(&aas).copied().collect();
    prop_assert_eq!(distinct.len(), las.len() + aas.len());
    prop_assert!(las.iter().all(|la| LA_BLOCK.contains(*la)));
    for (server, aa) in fabric.servers().zip(&aas) {
        let block = plan.aa_block();
        prop_assert!(block.contains(*aa) && *aa != block.network() && *aa != block.last());
        let (edge, _) = fabric.edge_of(server).unwrap();
        prop_assert!(plan.rack(edge).unwrap().contains(plan.la(server)));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn no_two_things_of_a_clos_share_an_address(half in 1u32..8, d_i in 2u32..10, servers_per_tor in 1u32..30) {
        prop_assume!(2 * half * d_i % 4 == 0);
        let params = ClosParams {
            aggregation_ports: 2 * half,
            intermediate_ports: d_i,
            servers_per_tor,
            links: LinkParams::default(),
        };
        check_unique(&vl2_clos(&params).unwrap())?;
    }

    #[test]
    fn no_two_things_of_a_leaf_spine_share_an_address(spines in 1u32..6, leaves in 1u32..20, servers in 1u32..40) {
        let params =
            LeafSpineParams { spines, leaves, servers_per_leaf: servers, ..LeafSpineParams::default() };
        check_unique(&leaf_spine(&params).unwrap())?;
    }

    #[test]
    fn groups_respect_the_width_and_share_everything_evenly(ints in 1u32..60, width in 1usize..20) {
        let (fabric, plan) = with_intermediates(ints, width);
        let sizes: Vec<usize> = plan.anycast_groups().iter().map(|group| group.members.len()).collect();
        prop_assert_eq!(sizes.len(), (ints as usize).div_ceil(width));
        prop_assert_eq!(sizes.iter().sum::<usize>(), ints as usize);
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        prop_assert!(*most <= width && most - least <= 1);
        let mut racks: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
        for tor in fabric.with_role(Role::Tor) {
            *racks.entry(plan.anycast_for(tor).unwrap()).or_default() += 1;
        }
        let tors = fabric.with_role(Role::Tor).count();
        prop_assert!(racks.values().all(|count| *count <= tors.div_ceil(sizes.len())));
    }

    #[test]
    fn addresses_stay_alive_whatever_fails_and_all_return_home(
        ints in 2u32..24,
        width in 1usize..8,
        picks in proptest::collection::vec((any::<bool>(), 0usize..24), 0..60),
    ) {
        let (fabric, mut plan) = with_intermediates(ints, width);
        let before = plan.anycast_groups().to_vec();
        let nodes: Vec<NodeId> = fabric.with_role(Role::Intermediate).collect();
        let mut down = BTreeSet::new();
        for (fails, pick) in picks {
            let node = nodes[pick % nodes.len()];
            let mut owners: BTreeSet<(Ipv4Addr, NodeId)> = pairs(&plan);
            if fails {
                down.insert(node);
                owners.retain(|(_, owner)| *owner != node);
                owners.extend(plan.intermediate_failed(node));
            } else {
                down.remove(&node);
                for change in plan.intermediate_repaired(node) {
                    match change {
                        AnycastChange::Takes(owner, address) => prop_assert!(owners.insert((address, owner))),
                        AnycastChange::Releases(owner, address) => prop_assert!(owners.remove(&(address, owner))),
                    };
                }
            }
            prop_assert_eq!(owners, pairs(&plan), "what is returned is what changed");
            for group in plan.anycast_groups() {
                prop_assert!(group.members.len() <= width);
                prop_assert!(group.members.iter().all(|member| !down.contains(member)));
                prop_assert_eq!(group.members.is_empty(), down.len() == nodes.len());
            }
        }
        for node in down {
            plan.intermediate_repaired(node);
        }
        prop_assert_eq!(plan.anycast_groups(), &before[..]);
    }
}

fn pairs(plan: &AddressPlan) -> BTreeSet<(Ipv4Addr, NodeId)> {
    let owners = |group: &AnycastGroup| group.members.iter().map(|owner| (group.address, *owner)).collect::<Vec<_>>();
    plan.anycast_groups().iter().flat_map(owners).collect()
}
