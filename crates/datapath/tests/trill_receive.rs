//! Frames by a link: every step of the acceptance order of RFC 6325 4.6.2 as corrected by RFC 7780, every way to be
//! dropped, transit, egress and trees, whole frames in and out.

mod common;

use common::trill::*;
use common::{SERVER_MAC, ethernet};
use weft_datapath::frame::Verdict;
use weft_datapath::trill::{Place, PortKind, RBridgeConfig};
use weft_wire::ethernet::MacAddress;

const IS_IS_GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x41];

/// `frame` as it leaves by a next hop: other outer addresses, one hop less.
fn forwarded(frame: &Frame, port: u8, to: [u8; 6]) -> Vec<u8> {
    frame.clone().with(|f| (f.destination, f.source, f.flags) = (to, port_mac(port), f.flags - 1)).bytes()
}

#[test]
fn a_link_brings_the_daemon_only_so_much() {
    let Some(mut rb) = rbridge() else { return };
    let pdu = ethernet(IS_IS_GROUP, neighbor_mac(LINK_A), 0x22f4, &[0x83; 46]);
    // Three seconds' worth, in less than one.
    for _ in 0..60_000 {
        rb.datapath.run(LINK_A, &pdu).unwrap();
    }
    assert!(rb.count(LINK_A, "control_limit") > 0);
    assert_eq!(rb.count(LINK_A, "is_is") + rb.count(LINK_A, "control_limit"), 60_000);
    rb.datapath.run(LINK_B, &ethernet(IS_IS_GROUP, neighbor_mac(LINK_B), 0x22f4, &[0x83; 46])).unwrap();
    assert_eq!(rb.count(LINK_B, "is_is"), 1, "the other link has its own share");
}

#[test]
fn step_1_is_is_goes_to_the_daemon() {
    let Some(mut rb) = rbridge() else { return };
    for destination in [IS_IS_GROUP, port_mac(LINK_A)] {
        // Also of a stranger: adjacencies begin so. And short ones, and with a tag of the Designated VLAN.
        rb.passes(LINK_A, &ethernet(destination, SERVER_MAC, 0x22f4, &[0x83; 3]), "is_is");
        let plain = ethernet(destination, SERVER_MAC, 0x22f4, &[0x83; 46]);
        for tag in [0xe000, 0xe000 | DESIGNATED_VLAN] {
            let (outcome, output) = rb.run(LINK_A, &tagged(destination, SERVER_MAC, tag, 0x22f4, &[0x83; 46]));
            assert_eq!((outcome, output.verdict, output.bytes), ("is_is", Verdict::Next, plain.clone()));
        }
    }
    rb.drops(LINK_A, &ethernet(port_mac(LINK_B), SERVER_MAC, 0x22f4, &[0x83; 46]), "not_for_us");
    rb.drops(LINK_A, &ethernet(ALL_RBRIDGES, SERVER_MAC, 0x22f4, &[0x83; 46]), "not_trill");
    assert_eq!(rb.count(LINK_A, "is_is"), 6);
}

#[test]
fn what_bridges_never_forward_goes_to_the_stack() {
    let Some(mut rb) = rbridge() else { return };
    for last in (0..=0x0f).chain([0x21]) {
        let group = [0x01, 0x80, 0xc2, 0, 0, last];
        for port in [LINK_A, ACCESS_10] {
            rb.passes(port, &ethernet(group, SERVER_MAC, 38, &[0x42; 38]), "l2_control");
            rb.passes(port, &tagged(group, SERVER_MAC, 10, 38, &[0x42; 38]), "l2_control");
        }
        // Nor out of TRILL.
        let inside = multicast(LINK_A, NEAR, NEAR).with(|f| f.inner_destination = group);
        rb.drops(LINK_A, &inside.bytes(), "inner_control");
    }
}

#[test]
fn steps_2_to_4_whom_it_is_for() {
    let Some(mut rb) = rbridge() else { return };
    for last in 0x42..=0x4f {
        let other = multicast(LINK_A, NEAR, NEAR).with(|f| f.destination[5] = last);
        rb.drops(LINK_A, &other.bytes(), "other_group");
    }
    let not_is_is = ethernet(IS_IS_GROUP, neighbor_mac(LINK_A), 0x22f3, &[0; 46]);
    rb.drops(LINK_A, &not_is_is, "other_group");
    for destination in [port_mac(LINK_B), NOBODY, BROADCAST, [0x01, 0, 0x5e, 0, 0, 1]] {
        rb.drops(LINK_A, &unicast(LINK_A, NEAR, FAR).with(|f| f.destination = destination).bytes(), "not_for_us");
    }
    rb.drops(LINK_A, &ethernet(ALL_RBRIDGES, neighbor_mac(LINK_A), 0x0800, &[0; 46]), "not_trill");
    for destination in [port_mac(LINK_A), BROADCAST, NEAR_STATION] {
        rb.drops(LINK_A, &ethernet(destination, neighbor_mac(LINK_A), 0x0800, &[0x45; 46]), "native_on_link");
        rb.drops(LINK_A, &tagged(destination, neighbor_mac(LINK_A), 10, 0x0800, &[0x45; 46]), "native_on_link");
    }
    let tagged_with = |control| {
        let frame = unicast(LINK_A, FAR, NEAR).bytes();
        tagged(port_mac(LINK_A), neighbor_mac(LINK_A), control, 0x22f3, &frame[14..])
    };
    rb.drops(LINK_A, &tagged_with(DESIGNATED_VLAN + 1), "outer_vlan");
    for control in [0, DESIGNATED_VLAN, 0xa000 | DESIGNATED_VLAN] {
        let expected = forwarded(&unicast(LINK_A, FAR, NEAR), LINK_A, neighbor_mac(LINK_A));
        rb.sends(LINK_A, &tagged_with(control), "transit", &expected);
    }
}

#[test]
fn steps_5_to_8_header_and_sender() {
    let Some(mut rb) = rbridge() else { return };
    let frames = [unicast(LINK_A, FAR, WIDE), unicast(LINK_A, FAR, OWN), multicast(LINK_A, FAR, NEAR)];
    for frame in frames {
        let with = |change: fn(&mut Frame)| frame.clone().with(change).bytes();
        for version in 1..4 {
            rb.drops(LINK_A, &frame.clone().with(|f| f.flags |= version << 14).bytes(), "bad_version");
        }
        for bit in 7..11 {
            rb.drops(LINK_A, &frame.clone().with(|f| f.flags |= 1 << bit).bytes(), "reserved_bits");
        }
        rb.drops(LINK_A, &with(|f| f.flags &= !63), "hop_count");
        rb.drops(LINK_A, &with(|f| f.flags ^= MULTI), "group_mismatch");
        rb.drops(LINK_A, &with(|f| f.source = NOBODY), "no_adjacency");
        rb.drops(LINK_A, &with(|f| f.source = neighbor_mac(LINK_B)), "no_adjacency");
        // Earlier steps come first.
        rb.drops(LINK_A, &with(|f| (f.source, f.flags) = (NOBODY, f.flags & !63)), "hop_count");
        rb.drops(LINK_A, &with(|f| f.flags = 0x4780), "bad_version");
    }
    rb.datapath.change(|fib| fib.ports.get_mut(&LINK_A).unwrap().kind = PortKind::link(1)).unwrap();
    rb.drops(LINK_A, &unicast(LINK_A, FAR, WIDE).bytes(), "no_adjacency");
    rb.drops(LINK_A, &unicast(LINK_A, FAR, WIDE).with(|f| f.source = [0; 6]).bytes(), "no_adjacency");
}

#[test]
fn truncated_at_every_byte() {
    let Some(mut rb) = rbridge() else { return };
    let flagged = unicast(LINK_A, FAR, WIDE).with(|f| f.flags_word = Some(1));
    for (frame, headers) in [(unicast(LINK_A, FAR, WIDE), 38), (multicast(LINK_A, FAR, NEAR), 38), (flagged, 42)] {
        let bytes = frame.bytes();
        for length in 14..headers {
            rb.drops(LINK_A, &bytes[..length], "malformed");
        }
        // The payload is the end stations' business.
        for length in headers..bytes.len() {
            let (_, output) = rb.run(LINK_A, &bytes[..length]);
            assert_eq!(output.verdict, Verdict::Redirect, "{length}");
        }
    }
    let tag = tagged(port_mac(LINK_A), neighbor_mac(LINK_A), 0, 0x22f3, &unicast(LINK_A, FAR, WIDE).bytes()[14..]);
    for length in 14..42 {
        rb.drops(LINK_A, &tag[..length], "malformed");
    }
}

#[test]
fn nicknames_that_cannot_be_and_frames_that_come_back() {
    let Some(mut rb) = rbridge() else { return };
    for reserved in [0, 0xffc0, 0xffc1, 0xffd8, 0xffff] {
        rb.drops(LINK_A, &unicast(LINK_A, reserved, NEAR).bytes(), "reserved_ingress");
        rb.drops(LINK_A, &unicast(LINK_A, reserved, OWN).bytes(), "reserved_ingress");
        rb.drops(LINK_A, &multicast(LINK_A, reserved, NEAR).bytes(), "reserved_ingress");
        rb.drops(LINK_A, &unicast(LINK_A, NEAR, reserved).bytes(), "reserved_egress");
        rb.drops(LINK_A, &multicast(LINK_A, NEAR, reserved).bytes(), "reserved_egress");
    }
    for egress in [OWN, NEAR] {
        rb.drops(LINK_A, &unicast(LINK_A, OWN, egress).bytes(), "own_ingress");
        rb.drops(LINK_A, &multicast(LINK_A, OWN, egress).bytes(), "own_ingress");
    }
    rb.drops(LINK_A, &unicast(LINK_A, NEAR, UNKNOWN).bytes(), "unknown_egress");
    assert_eq!(rb.count(LINK_A, "own_ingress"), 4);
}

#[test]
fn transit_rewrites_the_outer_header_and_nothing_else() {
    let Some(mut rb) = rbridge() else { return };
    for flags in [1, 2, 63, 0x3001, 0x2010] {
        // Alert and color stay as they are.
        let frame = unicast(LINK_B, FAR, NEAR).with(|f| f.flags = flags);
        rb.sends(LINK_B, &frame.bytes(), "transit", &forwarded(&frame, LINK_A, neighbor_mac(LINK_A)));
    }
    // Transit does not look at the label, nor at what is inside.
    for (label, kind) in [(0x893b, 0x893b), (0x88a8, 0), (0x8100, 0x22f3), (0x8100, 0x86dd)] {
        let frame = unicast(LINK_B, FAR, NEAR).with(|f| (f.label, f.control, f.kind) = (label, 0, kind));
        rb.sends(LINK_B, &frame.bytes(), "transit", &forwarded(&frame, LINK_A, neighbor_mac(LINK_A)));
    }
    assert_eq!(rb.place_of(FAR_STATION, 10), Some(Place::RBridge(FAR)), "transit does not learn");
    let long = |payload| unicast(LINK_B, FAR, NEAR).with(|f| f.payload = vec![7; payload]);
    let longest = long(1614 - 38);
    rb.sends(LINK_B, &longest.bytes(), "transit", &forwarded(&longest, LINK_A, neighbor_mac(LINK_A)));
    rb.drops(LINK_B, &long(1614 - 37).bytes(), "too_long");
}

#[test]
fn flags_that_are_not_known() {
    let Some(mut rb) = rbridge() else { return };
    let frame = |egress, word| unicast(LINK_A, FAR, egress).with(|f| f.flags_word = Some(word));
    let onward = frame(NEAR, 0x7fff_ffff);
    rb.sends(LINK_A, &onward.bytes(), "transit", &forwarded(&onward, LINK_A, neighbor_mac(LINK_A)));
    rb.drops(LINK_A, &frame(NEAR, 0x8000_0000).bytes(), "critical_flag");
    rb.drops(LINK_A, &frame(OWN, 0x8000_0000).bytes(), "critical_flag");
    rb.drops(LINK_A, &frame(OWN, 0x4000_0000).bytes(), "critical_flag");
    let here = frame(OWN, 0x3fff_ffff);
    rb.sends(LINK_A, &here.bytes(), "egress", &here.untagged());
    let tree = multicast(LINK_A, FAR, NEAR).with(|f| f.flags_word = Some(0x4000_0000));
    rb.sends(LINK_A, &tree.bytes(), "tree_flood", &copied(&tree, LINK_A));
    rb.drops(LINK_A, &tree.with(|f| f.flags_word = Some(0x8000_0000)).bytes(), "critical_flag");
}

#[test]
fn equal_paths_share_the_flows_and_keep_them() {
    let Some(mut rb) = rbridge() else { return };
    let mut taken = [0; 4];
    for flow in 0..1024_u16 {
        let frame = unicast(LINK_A, FAR, WIDE).with(|f| {
            f.payload[20..22].copy_from_slice(&flow.to_be_bytes());
        });
        let expected = common::trill_model::choice(SEED, &frame.inner(), 4);
        let to = [0x02, 0xcc, 0, 0, 0, expected as u8];
        rb.sends(LINK_A, &frame.bytes(), "transit", &forwarded(&frame, 1 + expected as u8 % 2, to));
        // Whatever else differs, the flow keeps its path.
        let other = frame.with(|f| (f.flags, f.ingress, f.control) = (0x3033, UNKNOWN, 0xe00a));
        rb.sends(LINK_A, &other.bytes(), "transit", &forwarded(&other, 1 + expected as u8 % 2, to));
        taken[expected] += 1;
    }
    assert!(taken.iter().all(|count| (218..=294).contains(count)), "15 % of even: {taken:?}");
}

#[test]
fn rbridges_in_a_row_do_not_choose_alike() {
    let inner =
        |flow: u16| unicast(LINK_A, FAR, WIDE).with(|f| f.payload[20..22].copy_from_slice(&flow.to_be_bytes())).inner();
    let at_first = (0..4096).filter(|flow| common::trill_model::choice(1, &inner(*flow), 2) == 0);
    let also: Vec<usize> = at_first.map(|flow| common::trill_model::choice(2, &inner(flow), 2)).collect();
    let same = also.iter().filter(|choice| **choice == 0).count();
    assert!(same * 20 > also.len() * 9 && same * 20 < also.len() * 11, "{same} of {}", also.len());
}

#[test]
fn egress_delivers_learns_and_takes_the_tag_where_there_is_none() {
    let Some(mut rb) = rbridge() else { return };
    let to_access = unicast(LINK_A, WIDE, OWN).with(|f| f.inner_source = NOBODY);
    rb.sends(LINK_A, &to_access.bytes(), "egress", &to_access.untagged());
    assert_eq!(rb.place_of(NOBODY, 10), Some(Place::RBridge(WIDE)));
    // It moves, to another RBridge.
    let moved = unicast(LINK_B, NEAR, OWN).with(|f| (f.inner_source, f.flags) = (NOBODY, 1));
    rb.sends(LINK_B, &moved.bytes(), "egress", &moved.untagged());
    assert_eq!(rb.place_of(NOBODY, 10), Some(Place::RBridge(NEAR)));
    assert_eq!((rb.count(LINK_A, "fdb_moved"), rb.count(LINK_B, "fdb_moved")), (0, 1));

    let to_trunk = unicast(LINK_A, WIDE, OWN).with(|f| (f.inner_destination, f.control) = (SECOND_STATION, 0xa00a));
    rb.sends(LINK_A, &to_trunk.bytes(), "egress", &to_trunk.inner());
    // From an RBridge that nobody knows: delivered, but not learned.
    let strange = unicast(LINK_A, UNKNOWN, OWN).with(|f| f.inner_source = SERVER_MAC);
    rb.sends(LINK_A, &strange.bytes(), "egress", &strange.untagged());
    assert_eq!(rb.place_of(SERVER_MAC, 10), None);
    // What is static stays.
    let liar = unicast(LINK_A, WIDE, OWN).with(|f| f.inner_source = SECOND_STATION);
    rb.sends(LINK_A, &liar.bytes(), "egress", &liar.untagged());
    assert_eq!(rb.place_of(SECOND_STATION, 10), Some(Place::Port(TRUNK)));
}

/// A frame of a station that nobody heard of, behind this RBridge: for one of ours, or for many.
fn from_station(ingress: u16, n: u32) -> Frame {
    let [_, a, b, c] = n.to_be_bytes();
    let frame = if n.is_multiple_of(2) { unicast(LINK_A, ingress, OWN) } else { multicast(LINK_A, ingress, NEAR) };
    frame.with(|f| f.inner_source = [2, 0x77, ingress as u8, a, b, c])
}

/// How many stations were learned there.
fn learned(rb: &RBridge, place: Place) -> usize {
    let stations = rb.datapath.maps().stations().unwrap();
    stations.iter().filter(|station| station.confidence == 0x20 && station.place == place).count()
}

#[test]
fn an_rbridge_full_of_stations_leaves_the_others_room_until_they_are_over() {
    let Some(mut rb) = rbridge() else { return };
    let most = 4096;
    let speak = |rb: &mut RBridge, ingress, numbers: std::ops::Range<u32>| {
        numbers.for_each(|n| drop(rb.datapath.run(LINK_A, &from_station(ingress, n).bytes()).unwrap()));
    };
    speak(&mut rb, NEAR, 0..20_000);
    assert_eq!(learned(&rb, Place::RBridge(NEAR)), most);
    assert_eq!(rb.count(LINK_A, "nickname_full"), 20_000 - most as u64);
    speak(&mut rb, FAR, 0..10);
    assert_eq!(learned(&rb, Place::RBridge(FAR)), 10, "the other RBridge's stations were learned");
    // One that is behind the other does not move to the full one; one that leaves makes room.
    let mut moving = from_station(FAR, 0).with(|f| f.ingress = NEAR);
    let mac = moving.inner_source;
    rb.datapath.run(LINK_A, &moving.bytes()).unwrap();
    assert_eq!(rb.place_of(mac, 10), Some(Place::RBridge(FAR)));
    rb.datapath.run(LINK_A, &from_station(NEAR, 0).with(|f| f.ingress = FAR).bytes()).unwrap();
    rb.datapath.maps().tick(101).unwrap();
    rb.datapath.run(LINK_A, &moving.bytes()).unwrap();
    assert_eq!((learned(&rb, Place::RBridge(NEAR)), rb.place_of(mac, 10)), (most, Some(Place::RBridge(NEAR))));
    // What is told of one that was learned makes room as well.
    rb.datapath.maps().set_station(&station(mac, 10, Place::RBridge(FAR))).unwrap();
    moving.inner_source = [2, 0x77, 0, 0, 0, 1];
    rb.datapath.run(LINK_A, &moving.bytes()).unwrap();
    assert_eq!(rb.place_of(moving.inner_source, 10), Some(Place::RBridge(NEAR)));
    rb.datapath.maps().tick(1000).unwrap();
    rb.datapath.maps().age(300).unwrap();
    assert_eq!(learned(&rb, Place::RBridge(NEAR)), 0);
    speak(&mut rb, NEAR, 30_000..40_000);
    assert_eq!(learned(&rb, Place::RBridge(NEAR)), most);
}

#[test]
fn other_rbridges_leave_a_quarter_of_the_table_for_our_ports() {
    let config = RBridgeConfig { nickname_stations: 10_000, ..RBridgeConfig::default() };
    let Some(mut rb) = rbridge_with(&config) else { return };
    for n in 0..10_000 {
        for ingress in [NEAR, FAR] {
            rb.datapath.run(LINK_A, &from_station(ingress, n).bytes()).unwrap();
        }
    }
    let far = |rb: &RBridge| [NEAR, FAR].map(|ingress| learned(rb, Place::RBridge(ingress))).iter().sum::<usize>();
    assert_eq!((far(&rb), rb.count(LINK_A, "fdb_full")), (12_288, 20_000 - 12_288));
    // Among themselves they may move.
    let moving = from_station(NEAR, 0).with(|f| f.ingress = FAR);
    rb.datapath.run(LINK_A, &moving.bytes()).unwrap();
    assert_eq!(rb.place_of(moving.inner_source, 10), Some(Place::RBridge(FAR)));
    for n in 0..4000_u32 {
        let [_, _, a, b] = n.to_be_bytes();
        rb.datapath.run(ACCESS_10, &ethernet(NOBODY, [2, 0x78, 0, 0, a, b], 0x0800, &[0; 46])).unwrap();
    }
    assert_eq!(learned(&rb, Place::Port(ACCESS_10)), 4000, "our own stations were learned");
    // A station of ours does not go over to them, but comes from them.
    let ours = from_station(NEAR, 0).with(|f| f.inner_source = [2, 0x78, 0, 0, 0, 0]);
    rb.datapath.run(LINK_A, &ours.bytes()).unwrap();
    assert_eq!(rb.place_of(ours.inner_source, 10), Some(Place::Port(ACCESS_10)));
    rb.datapath.run(ACCESS_10, &ethernet(NOBODY, moving.inner_source, 0x0800, &[0; 46])).unwrap();
    assert_eq!((far(&rb), rb.place_of(moving.inner_source, 10)), (12_287, Some(Place::Port(ACCESS_10))));
}

#[test]
fn egress_to_where_the_station_is_not() {
    let Some(mut rb) = rbridge() else { return };
    // Unknown, or behind another RBridge: to all native ports of the VLAN.
    for destination in [NOBODY, FAR_STATION] {
        let frame =
            unicast(LINK_A, WIDE, OWN).with(|f| (f.inner_destination, f.inner_source) = (destination, SERVER_MAC));
        rb.sends(LINK_A, &frame.bytes(), "egress_flood", &frame.clone().marked(LINK_A).bytes());
    }
    rb.drops(LINK_A, &unicast(LINK_A, WIDE, OWN).with(|f| f.control = 40).bytes(), "no_receiver");
    let long = |payload| unicast(LINK_A, WIDE, OWN).with(|f| f.payload = vec![7; payload]);
    let longest = long(1500);
    rb.sends(LINK_A, &longest.bytes(), "egress", &longest.untagged());
    rb.drops(LINK_A, &long(1501).bytes(), "too_long");
}

#[test]
fn what_must_not_be_inside() {
    let Some(mut rb) = rbridge() else { return };
    for frame in [unicast(LINK_A, FAR, OWN), multicast(LINK_A, FAR, NEAR)] {
        let with = |change: &dyn Fn(&mut Frame)| frame.clone().with(change).bytes();
        rb.drops(LINK_A, &with(&|f| f.label = 0x893b), "fine_grained");
        for label in [0x0800, 0x88a8, 0x22f3] {
            rb.drops(LINK_A, &with(&|f| f.label = label), "no_label");
        }
        for vlan in [0, 0xfff, 0xe000, 0xffff] {
            rb.drops(LINK_A, &with(&|f| f.control = vlan), "bad_vlan");
        }
        for kind in [0x22f3, 0x22f4] {
            rb.drops(LINK_A, &with(&|f| f.kind = kind), "trill_in_trill");
        }
        for source in [[0; 6], BROADCAST, [0x03, 0, 0, 0, 0, 1]] {
            rb.drops(LINK_A, &with(&|f| f.inner_source = source), "bad_source");
        }
    }
    for group in [BROADCAST, [0x01, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]] {
        rb.drops(LINK_A, &unicast(LINK_A, FAR, OWN).with(|f| f.inner_destination = group).bytes(), "inner_group");
    }
}

#[test]
fn esadi_and_channel_messages_go_to_the_daemon() {
    let Some(mut rb) = rbridge() else { return };
    for kind in [0x22f4, 0x8946] {
        let inside = |f: Frame| f.with(|f| (f.inner_destination, f.kind) = (ALL_EGRESS, kind)).bytes();
        rb.passes(LINK_A, &inside(multicast(LINK_A, FAR, NEAR)), "channel");
        rb.passes(LINK_A, &inside(unicast(LINK_A, FAR, OWN)), "channel");
        rb.passes(LINK_A, &inside(unicast(LINK_A, FAR, 0xffc0)), "channel");
        // What we sent to ourselves comes back (RFC 7175 section 4), but not by a tree.
        rb.passes(LINK_A, &inside(unicast(LINK_A, OWN, OWN)), "channel");
        rb.drops(LINK_A, &inside(unicast(LINK_A, OWN, NEAR)), "own_ingress");
        rb.drops(LINK_A, &inside(multicast(LINK_A, OWN, OWN)), "own_ingress");
        // For others it is a frame like any other.
        let onward = unicast(LINK_A, FAR, NEAR).with(|f| (f.inner_destination, f.kind) = (ALL_EGRESS, kind));
        rb.sends(LINK_A, &onward.bytes(), "transit", &forwarded(&onward, LINK_A, neighbor_mac(LINK_A)));
        // And the tree's checks hold for it too.
        rb.drops(LINK_B, &inside(multicast(LINK_B, FAR, NEAR)), "rpf");
    }
}

/// A tree's frame as it goes on, for several ports.
fn copied(frame: &Frame, port: u8) -> Vec<u8> {
    frame.clone().with(|f| f.flags -= 1).marked(port).bytes()
}

#[test]
fn step_10_the_tree_and_where_it_comes_from() {
    let Some(mut rb) = rbridge() else { return };
    let frame = multicast(LINK_A, FAR, NEAR);
    rb.sends(LINK_A, &frame.bytes(), "tree_flood", &copied(&frame, LINK_A));
    assert_eq!(rb.place_of(FAR_STATION, 10), Some(Place::RBridge(FAR)));
    let from_wide = multicast(LINK_B, WIDE, NEAR);
    rb.sends(LINK_B, &from_wide.bytes(), "tree_flood", &copied(&from_wide, LINK_B));

    rb.drops(LINK_B, &multicast(LINK_B, FAR, NEAR).bytes(), "rpf");
    rb.drops(LINK_A, &multicast(LINK_A, WIDE, NEAR).bytes(), "rpf");
    rb.drops(LINK_A, &multicast(LINK_A, FAR, WIDE).bytes(), "not_on_tree");
    rb.drops(LINK_B, &multicast(LINK_B, FAR, WIDE).bytes(), "rpf");
    rb.drops(LINK_A, &multicast(LINK_A, FAR, FAR).bytes(), "unknown_tree");
    rb.drops(LINK_A, &multicast(LINK_A, UNKNOWN, NEAR).bytes(), "unknown_ingress");
    // Nobody is in VLAN 40; of VLAN 25 only whoever sent it.
    rb.drops(LINK_A, &multicast(LINK_A, FAR, NEAR).with(|f| f.control = 40).bytes(), "no_receiver");
    rb.drops(LINK_A, &multicast(LINK_A, FAR, NEAR).with(|f| f.control = 25).bytes(), "no_receiver");
    // Without stations of the VLAN here the frame goes on, and nothing is learned.
    rb.datapath.change(|fib| drop(fib.ports.remove(&ACCESS_20))).unwrap();
    rb.datapath.change(|fib| drop(fib.ports.remove(&TRUNK))).unwrap();
    let onward = multicast(LINK_B, WIDE, NEAR).with(|f| (f.control, f.inner_source) = (20, SERVER_MAC));
    let alone = onward.clone().with(|f| (f.source, f.flags) = (port_mac(LINK_A), f.flags - 1));
    rb.sends(LINK_B, &onward.bytes(), "tree_flood", &alone.bytes());
    assert_eq!(rb.place_of(SERVER_MAC, 20), None);
    // The last hop is the sender's to take; the copy dies at the next RBridge.
    let last = multicast(LINK_A, FAR, NEAR).with(|f| f.flags = MULTI | 1);
    rb.sends(LINK_A, &last.bytes(), "tree_flood", &copied(&last, LINK_A));
}

#[test]
fn an_unknown_stations_frame_comes_by_the_tree_too() {
    let Some(mut rb) = rbridge() else { return };
    let frame = multicast(LINK_A, FAR, NEAR).with(|f| f.inner_destination = NOBODY);
    rb.sends(LINK_A, &frame.bytes(), "tree_flood", &copied(&frame, LINK_A));
}

#[test]
fn an_interface_that_is_no_port() {
    let Some(mut rb) = rbridge() else { return };
    rb.datapath.change(|fib| fib.ports.retain(|port, _| *port != LINK_A && *port != LINK_B)).unwrap_err();
    rb.datapath
        .change(|fib| {
            fib.routes.clear();
            (fib.own_trees, fib.trees) = Default::default();
            fib.ports.get_mut(&ACCESS_10).unwrap().mac = MacAddress([2; 6]);
        })
        .unwrap();
    rb.drops(LINK_A, &unicast(LINK_A, FAR, NEAR).bytes(), "unknown_egress");
    assert!(rb.datapath.run(9, &[0; 64]).unwrap_err().to_string().contains("no port 9"));
}

/// RFC 7780 section 2.3.2: no check of the reverse path, stations get the frame, and nobody else.
#[test]
fn who_is_overloaded_checks_no_tree_and_forwards_on_none() {
    let Some(mut rb) = rbridge() else { return };
    // In VLAN 30 there is one port to stations, and the tree goes on by the other link.
    let in_30 = |ingress, root| multicast(LINK_B, ingress, root).with(|f| f.control = 30);
    rb.drops(LINK_B, &in_30(FAR, NEAR).bytes(), "rpf");
    rb.datapath.change(|fib| fib.overloaded = true).unwrap();
    for (ingress, root) in [(FAR, NEAR), (NEAR, WIDE), (FAR, UNKNOWN)] {
        rb.sends(LINK_B, &in_30(ingress, root).bytes(), "tree_flood", &in_30(ingress, root).untagged());
    }
    assert_eq!(rb.place_of(FAR_STATION, 30), Some(Place::RBridge(FAR)));
    let lost = in_30(UNKNOWN, NEAR).with(|f| f.inner_source = LOST_STATION);
    rb.sends(LINK_B, &lost.bytes(), "tree_flood", &lost.untagged());
    assert_eq!(rb.place_of(LOST_STATION, 30), None, "no way leads to who has sent it");
    rb.datapath.change(|fib| fib.overloaded = false).unwrap();
    rb.drops(LINK_B, &in_30(FAR, NEAR).bytes(), "rpf");
}
