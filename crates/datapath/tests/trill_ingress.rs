//! Frames by ports to end stations: VLANs and tags, learning, encapsulation, copies, routing between VLANs.

mod common;

use common::trill::*;
use common::{Ipv4, SERVER_MAC, arp, assert_frame, ethernet};
use weft_datapath::frame::Verdict;
use weft_datapath::trill::{Fib, OwnTrees, Place, RBridgeConfig, Station};
use weft_wire::ethernet::MacAddress;

fn packet() -> Vec<u8> {
    Ipv4::default().bytes()
}

fn native(destination: [u8; 6]) -> Vec<u8> {
    ethernet(destination, SERVER_MAC, 0x0800, &packet())
}

/// What a native frame is inside TRILL, from us to `egress` by `port`.
fn encapsulated(egress: u16, port: u8, destination: [u8; 6], control: u16) -> Frame {
    Frame {
        destination: neighbor_mac(port),
        source: port_mac(port),
        flags: HOP_COUNT.into(),
        ingress: OWN,
        egress,
        inner_destination: destination,
        inner_source: SERVER_MAC,
        control,
        payload: packet(),
        ..unicast(port, OWN, egress)
    }
}

/// The same for many: its outer source comes with each copy.
fn flooded(port: u8, destination: [u8; 6], control: u16) -> Vec<u8> {
    encapsulated(NEAR, LINK_A, destination, control)
        .with(|f| (f.destination, f.flags) = (ALL_RBRIDGES, MULTI | u16::from(TREE_HOP_COUNT)))
        .marked(port)
        .bytes()
}

#[test]
fn a_station_behind_another_rbridge() {
    let Some(mut rb) = rbridge() else { return };
    rb.datapath.maps().set_station(&station(FAR_STATION, 10, Place::RBridge(NEAR))).unwrap();
    let expected = |control| encapsulated(NEAR, LINK_A, FAR_STATION, control).bytes();
    rb.sends(ACCESS_10, &native(FAR_STATION), "ingress", &expected(10));
    // A tag without a VLAN keeps its priority, one with the port's VLAN is as good as none.
    let with_tag = |control| tagged(FAR_STATION, SERVER_MAC, control, 0x0800, &packet());
    rb.sends(ACCESS_10, &with_tag(0xe000), "ingress", &expected(0xe00a));
    rb.sends(ACCESS_10, &with_tag(0x600a), "ingress", &expected(0x600a));
    rb.sends(TRUNK, &with_tag(0x600a), "ingress", &expected(0x600a));
    // In another VLAN it is another station.
    let frame = encapsulated(FAR, LINK_A, FAR_STATION, 20);
    let (outcome, output) = rb.run(ACCESS_20, &native(FAR_STATION));
    assert_eq!(outcome, "ingress");
    let port = 1 + common::trill_model::choice(SEED, &frame.inner(), 2) as u8;
    assert_frame(&output.bytes, &encapsulated(FAR, port, FAR_STATION, 20).bytes());
}

#[test]
fn every_length_goes_in_and_comes_out_again() {
    let Some(mut rb) = rbridge() else { return };
    rb.datapath.maps().set_station(&station(FAR_STATION, 10, Place::RBridge(NEAR))).unwrap();
    for payload in [0, 1, 4, 46, 100, 1499, 1500] {
        let bytes: Vec<u8> = (0..payload).map(|n| (n * 7) as u8).collect();
        let plain = ethernet(FAR_STATION, SERVER_MAC, 0x0800, &bytes);
        let (outcome, output) = rb.run(ACCESS_10, &plain);
        assert_eq!(outcome, "ingress");
        // The other end, which is us once more: same station, now behind our own port.
        rb.datapath.maps().set_station(&station(FAR_STATION, 10, Place::Port(ACCESS_10))).unwrap();
        let mut arriving = output.bytes;
        arriving[..6].copy_from_slice(&port_mac(LINK_A));
        arriving[6..12].copy_from_slice(&neighbor_mac(LINK_A));
        arriving[16..20].copy_from_slice(&[OWN.to_be_bytes(), NEAR.to_be_bytes()].concat());
        rb.sends(LINK_A, &arriving, "egress", &plain);
        rb.datapath.maps().set_station(&station(FAR_STATION, 10, Place::RBridge(NEAR))).unwrap();
    }
    let long = ethernet(FAR_STATION, SERVER_MAC, 0x0800, &[0; 1577]);
    rb.drops(ACCESS_10, &long, "too_long");
}

#[test]
fn groups_and_unknown_stations_go_everywhere() {
    let Some(mut rb) = rbridge() else { return };
    for destination in [BROADCAST, NOBODY, [0x33, 0x33, 0, 0, 0, 1], [0x01, 0, 0x5e, 0, 0, 0xfb]] {
        rb.sends(ACCESS_10, &native(destination), "ingress_flood", &flooded(ACCESS_10, destination, 10));
        let tag = tagged(destination, SERVER_MAC, 0x4014, 0x0800, &packet());
        rb.sends(TRUNK, &tag, "ingress_flood", &flooded(TRUNK, destination, 0x4014));
    }
    // Of VLAN 30 there is only the one link.
    let alone = encapsulated(NEAR, LINK_A, BROADCAST, 30);
    let alone = alone.with(|f| (f.destination, f.flags) = (ALL_RBRIDGES, MULTI | u16::from(TREE_HOP_COUNT)));
    rb.sends(TRUNK, &native(BROADCAST), "ingress_flood", &alone.bytes());
    // A station that was behind a port which has left the VLAN since.
    rb.datapath.maps().set_station(&station(NOBODY, 10, Place::Port(ACCESS_20))).unwrap();
    rb.sends(ACCESS_10, &native(NOBODY), "ingress_flood", &flooded(ACCESS_10, NOBODY, 10));
}

#[test]
fn groups_are_spread_over_our_trees_and_each_keeps_to_its_own() {
    let Some(mut rb) = rbridge() else { return };
    let like_near = |fib: &mut Fib| [WIDE, FAR].map(|root| fib.trees.insert(root, fib.trees[&NEAR].clone()));
    rb.datapath.change(|fib| drop(like_near(fib))).unwrap();
    let mut trees = |roots: &[u16]| -> Vec<u16> {
        rb.datapath.change(|fib| fib.own_trees.deal(&roots.iter().copied().collect())).unwrap();
        let mut tree = |group| {
            let (outcome, output) = rb.run(ACCESS_10, &native(group));
            assert_eq!(outcome, "ingress_flood");
            u16::from_be_bytes([output.bytes[16], output.bytes[17]])
        };
        (0..64).map(|last| tree([0x01, 0, 0x5e, 0x01, 0x02, last])).collect()
    };
    let three = trees(&[NEAR, WIDE, FAR]);
    assert_eq!(three, trees(&[NEAR, WIDE, FAR]), "each keeps to its tree");
    for root in [NEAR, WIDE, FAR] {
        let count = three.iter().filter(|tree| **tree == root).count();
        assert!((16..=26).contains(&count), "{count} of 64 groups are on tree {root:#06x}: {three:?}");
    }
    let two = trees(&[NEAR, WIDE]);
    for (before, after) in three.iter().zip(&two) {
        assert!(*after != FAR && (before == after || *before == FAR), "{before:#06x} became {after:#06x}");
    }
    for root in [NEAR, WIDE] {
        let taken = three.iter().zip(&two).filter(|(before, after)| **before == FAR && **after == root).count();
        assert!(taken >= 6, "{root:#06x} took {taken} of those of the tree that is gone");
    }
    assert_eq!(trees(&[WIDE]), [WIDE; 64]);
}

#[test]
fn without_a_tree_or_a_nickname_only_our_own_ports_get_it() {
    let Some(mut rb) = rbridge() else { return };
    let local = |destination| {
        let frame = encapsulated(0, LINK_A, destination, 10);
        let frame = frame.with(|f| (f.destination, f.flags, f.ingress) = (ALL_RBRIDGES, 0, 0));
        frame.marked(ACCESS_10).bytes()
    };
    rb.datapath.change(|fib| fib.own_trees = OwnTrees::default()).unwrap();
    rb.sends(ACCESS_10, &native(BROADCAST), "ingress_flood", &local(BROADCAST));
    rb.drops(TRUNK, &native(BROADCAST), "no_receiver"); // nobody else is in VLAN 30
    rb.datapath.change(|fib| (fib.own_trees, fib.nickname) = (OwnTrees::of([NEAR]), None)).unwrap();
    rb.sends(ACCESS_10, &native(BROADCAST), "ingress_flood", &local(BROADCAST));
    rb.drops(ACCESS_10, &native(FAR_STATION), "no_nickname");
    rb.sends(
        ACCESS_10,
        &native(SECOND_STATION),
        "switched",
        &tagged(SECOND_STATION, SERVER_MAC, 10, 0x0800, &packet()),
    );
}

#[test]
fn between_our_own_ports_the_tag_is_as_each_wants_it() {
    let Some(mut rb) = rbridge() else { return };
    let with_tag = |destination, control| tagged(destination, SERVER_MAC, control, 0x0800, &packet());
    rb.sends(OTHER_10, &native(NEAR_STATION), "switched", &native(NEAR_STATION));
    rb.sends(OTHER_10, &native(SECOND_STATION), "switched", &with_tag(SECOND_STATION, 10));
    rb.sends(OTHER_10, &with_tag(SECOND_STATION, 0xa000), "switched", &with_tag(SECOND_STATION, 0xa00a));
    rb.sends(TRUNK, &with_tag(NEAR_STATION, 0xa00a), "switched", &native(NEAR_STATION));
    rb.drops(ACCESS_10, &native(NEAR_STATION), "same_port");
    let long = |payload| ethernet(NEAR_STATION, SERVER_MAC, 0x0800, &vec![1; payload]);
    rb.sends(OTHER_10, &long(1500), "switched", &long(1500));
    rb.drops(OTHER_10, &long(1501), "too_long");
}

#[test]
fn what_may_not_come_in() {
    let Some(mut rb) = rbridge() else { return };
    let with_tag = |control| tagged(NOBODY, SERVER_MAC, control, 0x0800, &packet());
    for vlan in [20, 11, 4095, 4094] {
        rb.drops(ACCESS_10, &with_tag(vlan), "not_in_vlan");
    }
    for vlan in [11, 40, 4095] {
        rb.drops(TRUNK, &with_tag(vlan), "not_in_vlan");
    }
    for source in [[0; 6], BROADCAST, [0x01, 0, 0, 0, 0, 9]] {
        rb.drops(ACCESS_10, &ethernet(NOBODY, source, 0x0800, &packet()), "bad_source");
    }
    let trill = unicast(LINK_A, FAR, OWN).bytes();
    rb.drops(ACCESS_10, &trill, "trill_on_native");
    rb.drops(ACCESS_10, &tagged(NOBODY, SERVER_MAC, 10, 0x22f3, &trill[14..]), "trill_on_native");
    for last in 0x40..=0x4f {
        rb.drops(ACCESS_10, &native([0x01, 0x80, 0xc2, 0, 0, last]), "trill_on_native");
    }
    rb.drops(ACCESS_10, &ethernet(NOBODY, SERVER_MAC, 0x22f4, &[0; 46]), "trill_on_native");
    // IS-IS is for links: here it would only stand in the daemon's queue before the neighbours'.
    for destination in [[0x01, 0x80, 0xc2, 0, 0, 0x41], port_mac(ACCESS_10)] {
        rb.drops(ACCESS_10, &ethernet(destination, SERVER_MAC, 0x22f4, &[0; 46]), "trill_on_native");
        rb.drops(ACCESS_10, &tagged(destination, SERVER_MAC, 10, 0x22f4, &[0; 46]), "trill_on_native");
    }
    let whole = with_tag(10);
    for length in 14..18 {
        rb.drops(ACCESS_10, &whole[..length], "malformed");
    }
    rb.drops(ACCESS_10, &native(LOST_STATION), "no_route");
}

#[test]
fn a_port_full_of_stations_leaves_the_others_room_until_they_are_over() {
    let Some(mut rb) = rbridge() else { return };
    let from = |kind: u8, n: u16| {
        let [a, b] = n.to_be_bytes();
        ethernet(NEAR_STATION, [2, 0x77, kind, 0, a, b], 0x0800, &packet())
    };
    let behind = |rb: &RBridge, port| {
        let stations = rb.datapath.maps().stations().unwrap();
        stations.iter().filter(|station| station.confidence == 0x20 && station.place == Place::Port(port)).count()
    };
    for n in 0..20_000 {
        rb.datapath.run(ACCESS_10, &from(1, n)).unwrap();
    }
    rb.datapath.run(OTHER_10, &from(2, 0)).unwrap();
    assert_eq!(behind(&rb, OTHER_10), 1, "the other port's station was learned");
    let most = behind(&rb, ACCESS_10);
    assert!(rb.count(ACCESS_10, "port_full") >= 20_000 - most as u64);
    // One that is behind the other port does not move to the full one; one that leaves makes room.
    rb.datapath.run(ACCESS_10, &from(2, 0)).unwrap();
    assert_eq!(rb.place_of([2, 0x77, 2, 0, 0, 0], 10), Some(Place::Port(OTHER_10)));
    rb.datapath.run(OTHER_10, &from(1, 0)).unwrap();
    rb.datapath.maps().tick(101).unwrap();
    rb.datapath.run(ACCESS_10, &from(2, 0)).unwrap();
    assert_eq!((behind(&rb, ACCESS_10), rb.place_of([2, 0x77, 2, 0, 0, 0], 10)), (most, Some(Place::Port(ACCESS_10))));
    rb.datapath.maps().tick(1000).unwrap();
    rb.datapath.maps().age(300).unwrap();
    assert_eq!(behind(&rb, ACCESS_10), 0);
    for n in 0..20_000 {
        rb.datapath.run(ACCESS_10, &from(3, n)).unwrap();
    }
    assert_eq!(behind(&rb, ACCESS_10), most);
}

#[test]
fn a_port_floods_only_so_much() {
    let Some(mut rb) = rbridge_with(&RBridgeConfig { storm_per_s: 1, ..RBridgeConfig::default() }) else { return };
    let (outcome, _) = rb.run(ACCESS_10, &native(BROADCAST));
    assert_eq!(outcome, "ingress_flood");
    for destination in [BROADCAST, NOBODY] {
        rb.drops(ACCESS_10, &native(destination), "storm_limit");
    }
    // Neither its known stations nor the other ports notice.
    let (outcome, _) = rb.run(ACCESS_10, &native(SECOND_STATION));
    assert_eq!(outcome, "switched");
    let (outcome, _) = rb.run(OTHER_10, &native(BROADCAST));
    assert_eq!(outcome, "ingress_flood");
}

#[test]
fn sources_are_learned_and_age() {
    let Some(mut rb) = rbridge() else { return };
    let seen = |rb: &RBridge, mac| {
        let stations = rb.datapath.maps().stations().unwrap();
        stations.into_iter().find(|station| station.mac == MacAddress(mac)).map(|station| station.seen_s)
    };
    rb.run(ACCESS_10, &native(NOBODY));
    let learned = Station { confidence: 0x20, seen_s: 100, ..station(SERVER_MAC, 10, Place::Port(ACCESS_10)) };
    assert!(rb.datapath.maps().stations().unwrap().contains(&learned));
    // It moves to the next port, and back, within one second.
    rb.run(OTHER_10, &native(NOBODY));
    assert_eq!(rb.place_of(SERVER_MAC, 10), Some(Place::Port(OTHER_10)));
    rb.run(ACCESS_10, &native(NOBODY));
    assert_eq!(rb.place_of(SERVER_MAC, 10), Some(Place::Port(ACCESS_10)));
    assert_eq!((rb.count(OTHER_10, "fdb_moved"), rb.count(ACCESS_10, "fdb_moved")), (1, 1));

    rb.datapath.maps().tick(250).unwrap();
    assert_eq!(seen(&rb, SERVER_MAC), Some(100));
    rb.run(ACCESS_10, &native(NOBODY));
    assert_eq!(seen(&rb, SERVER_MAC), Some(250));
    rb.datapath.maps().tick(550).unwrap();
    assert_eq!(rb.datapath.maps().age(300).unwrap(), 0);
    rb.datapath.maps().tick(551).unwrap();
    assert_eq!(rb.datapath.maps().age(300).unwrap(), 1, "static stations do not age");
    assert_eq!(seen(&rb, SERVER_MAC), None);
    // Forgotten, and learned again in the same second.
    rb.run(ACCESS_10, &native(NOBODY));
    assert_eq!(rb.datapath.maps().forget(|station| station.place == Place::Port(ACCESS_10)).unwrap(), 2);
    rb.run(ACCESS_10, &native(NOBODY));
    assert_eq!(seen(&rb, SERVER_MAC), Some(551));
}

#[test]
fn a_full_table_learns_no_more_and_says_so() {
    let config = RBridgeConfig { port_stations: 40_000, ..RBridgeConfig::default() };
    let Some(mut rb) = rbridge_with(&config) else { return };
    for n in 0..40_000_u32 {
        let [_, a, b, c] = n.to_be_bytes();
        rb.datapath.run(ACCESS_10, &ethernet(NOBODY, [0x06, 0, 0, a, b, c], 0x0800, &packet())).unwrap();
    }
    let known = rb.datapath.maps().stations().unwrap().len();
    assert!((16_000..=16_384).contains(&known), "{known}");
    assert!(rb.count(ACCESS_10, "fdb_full") >= 40_000 - known as u64);
    assert_eq!(rb.count(ACCESS_10, "ingress_flood"), 40_000, "and forwards as before");
}

/// A packet for a host in another VLAN, by way of the gateway's address.
fn to_gateway(change: impl FnOnce(&mut Ipv4)) -> Vec<u8> {
    let mut packet = Ipv4 { source: [10, 0, 10, 9].into(), destination: FAR_HOST, ..Ipv4::default() };
    change(&mut packet);
    ethernet(GATEWAY, SERVER_MAC, 0x0800, &packet.bytes())
}

#[test]
fn the_gateway_routes_between_vlans() {
    let Some(mut rb) = rbridge() else { return };
    let routed = |destination, ttl| Ipv4 { source: [10, 0, 10, 9].into(), destination, ttl, ..Ipv4::default() }.bytes();
    let frame = |port| {
        let inside = |f: &mut Frame| (f.inner_source, f.payload) = (GATEWAY, routed(FAR_HOST, 63));
        encapsulated(FAR, port, FAR_STATION, 20).with(inside)
    };
    let port = 1 + common::trill_model::choice(SEED, &frame(LINK_A).inner(), 2) as u8;
    rb.sends(ACCESS_10, &to_gateway(|_| ()), "ingress", &frame(port).bytes());
    let near = ethernet(NEAR_STATION, GATEWAY, 0x0800, &routed(NEAR_HOST, 1));
    rb.sends(ACCESS_10, &to_gateway(|ip| (ip.destination, ip.ttl) = (NEAR_HOST, 2)), "switched", &near);
    // One trunk may carry both VLANs.
    rb.datapath.maps().set_station(&station(NEAR_STATION, 20, Place::Port(TRUNK))).unwrap();
    let packet = Ipv4 { destination: NEAR_HOST, ..Ipv4::default() };
    let (back, there) = (routed_from(&packet), tagged(GATEWAY, SERVER_MAC, 0x600a, 0x0800, &packet.bytes()));
    rb.sends(TRUNK, &there, "switched", &tagged(NEAR_STATION, GATEWAY, 0x6014, 0x0800, &back));
    assert_eq!(rb.place_of(GATEWAY, 10), Some(Place::Gateway));
}

fn routed_from(packet: &Ipv4) -> Vec<u8> {
    Ipv4 { ttl: packet.ttl - 1, ..packet.clone() }.bytes()
}

#[test]
fn what_the_gateway_does_not_route() {
    let Some(mut rb) = rbridge() else { return };
    rb.drops(ACCESS_10, &to_gateway(|ip| ip.ttl = 1), "gateway_ttl");
    rb.drops(ACCESS_10, &to_gateway(|ip| ip.ttl = 0), "gateway_ttl");
    rb.passes(ACCESS_10, &to_gateway(|ip| ip.destination = GATEWAY_IP), "gateway_miss");
    rb.passes(ACCESS_10, &to_gateway(|ip| ip.destination = [8, 8, 8, 8].into()), "gateway_miss");
    rb.passes(ACCESS_10, &to_gateway(|ip| ip.options = vec![1; 4]), "gateway_miss");
    rb.passes(ACCESS_10, &ethernet(GATEWAY, SERVER_MAC, 0x86dd, &[0x60; 60]), "gateway_miss");
    let whole = to_gateway(|_| ());
    for length in 15..34 {
        rb.drops(ACCESS_10, &whole[..length], "gateway_malformed");
    }
    for byte in 14..34 {
        let mut wrong = whole.clone();
        wrong[byte] ^= 0x10;
        let (outcome, output) = rb.run(ACCESS_10, &wrong);
        let options = byte == 14; // then it is another version, which the stack may know
        assert_eq!(
            (outcome, output.verdict),
            if options { ("gateway_miss", Verdict::Next) } else { ("gateway_malformed", Verdict::Drop) }
        );
    }
}

#[test]
fn arp_for_the_gateway_is_answered_where_it_is_asked() {
    let Some(mut rb) = rbridge() else { return };
    let host = (SERVER_MAC, [10, 0, 10, 9].into());
    let request = |target| arp(1, host, ([0; 6], target));
    let answer = arp(2, (GATEWAY, GATEWAY_IP), host);
    let (outcome, output) = rb.run(ACCESS_10, &ethernet(BROADCAST, SERVER_MAC, 0x0806, &request(GATEWAY_IP)));
    assert_eq!((outcome, output.verdict), ("arp_answered", Verdict::Redirect));
    assert_frame(&output.bytes, &ethernet(SERVER_MAC, GATEWAY, 0x0806, &answer));
    let (_, output) = rb.run(TRUNK, &tagged(BROADCAST, SERVER_MAC, 0x200a, 0x0806, &request(GATEWAY_IP)));
    assert_frame(&output.bytes, &tagged(SERVER_MAC, GATEWAY, 0x200a, 0x0806, &answer));
    // Not for others, not in another VLAN, no announcement, no answer.
    let others = [
        (ACCESS_10, request(FAR_HOST)),
        (ACCESS_20, request(GATEWAY_IP)),
        (ACCESS_10, arp(1, (SERVER_MAC, GATEWAY_IP), ([0; 6], GATEWAY_IP))),
        (ACCESS_10, arp(2, host, (GATEWAY, GATEWAY_IP))),
        (ACCESS_10, request(GATEWAY_IP)[..27].to_vec()),
    ];
    for (port, payload) in others {
        let (outcome, _) = rb.run(port, &ethernet(BROADCAST, SERVER_MAC, 0x0806, &payload));
        assert_eq!(outcome, "ingress_flood");
    }
}
