//! What a port of a shared link takes and gives: frames between RBridges of its neighbours alone, those of end stations only in
//! the VLANs that it carries, and only while the daemon says so.

mod common;

use common::trill::{
    ACCESS_10, BROADCAST, FAR, FAR_STATION, Frame, HOP_COUNT, LINK_A, NEAR, NEAR_STATION, NOBODY, OWN, RBridge, hop,
    port, port_mac, rbridge, station, unicast,
};
use weft_datapath::frame::Verdict;
use weft_datapath::trill::abi::SHARERS;
use weft_datapath::trill::{Place, PortKind};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanSet;

const SHARED: u8 = 7;
/// Two stations on the shared link.
const HERE: [u8; 6] = [0x02, 0, 0, 0, 0x70, 0x01];
const THERE: [u8; 6] = [0x02, 0, 0, 0, 0x70, 0x02];
/// Never.
const OVER: u64 = 0;
const FOR_EVER: u64 = u64::MAX;

/// Of the neighbours on the link; even numbers are theirs, odd ones nobody's.
fn sharer(number: usize) -> [u8; 6] {
    // Neither the first nor the last byte alone puts them in order.
    [0x02, (number * 37 % 256) as u8, 0x70, (number / 2) as u8, (number % 2) as u8, (255 - number) as u8]
}

/// With a full shared link that carries VLAN 10, without tags, and 20.
fn with_shared_link() -> Option<RBridge> {
    let mut rb = rbridge()?;
    rb.datapath.set_port(SHARED, &port(SHARED, PortKind::shared(10))).unwrap();
    rb.datapath
        .change(|fib| {
            fib.ports.get_mut(&SHARED).unwrap().kind = PortKind::Shared {
                untagged: 10,
                designated_vlan: 10,
                carried: VlanSet::of_ranges(&[(10, 10), (20, 20)]),
                neighbors: (0..SHARERS).map(|number| MacAddress(sharer(2 * number))).collect(),
            };
            fib.routes.insert(NEAR, vec![hop(SHARED, sharer(0))]);
        })
        .unwrap();
    for (mac, vlan) in [(HERE, 10), (THERE, 10), (HERE, 20)] {
        rb.datapath.maps().set_station(&station(mac, vlan, Place::Port(SHARED))).unwrap();
    }
    rb.datapath.maps().set_access_until(FOR_EVER).unwrap();
    Some(rb)
}

fn from(neighbor: [u8; 6], egress: u16) -> Frame {
    Frame { source: neighbor, ..unicast(SHARED, FAR, egress) }
}

/// A frame of a station, with a tag or without.
fn native(to: [u8; 6], from: [u8; 6], tag: Option<u16>) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend(tag.into_iter().flat_map(|vlan| [0x81, 0, (vlan >> 8) as u8, vlan as u8]));
    frame.extend([0x08, 0x00]);
    frame.extend([0x55; 60]);
    frame
}

#[test]
fn frames_of_each_neighbour_are_taken_and_of_nobody_else() {
    let Some(mut rb) = with_shared_link() else { return };
    for number in 0..2 * SHARERS {
        let frame = from(sharer(number), OWN).bytes();
        if number % 2 == 0 {
            assert_eq!(rb.run(SHARED, &frame).0, "egress", "neighbour {number}");
        } else {
            rb.drops(SHARED, &frame, "no_adjacency");
        }
    }
    // A few of these addresses as the lowest and the highest that there can be.
    rb.drops(SHARED, &from([0; 6], OWN).bytes(), "no_adjacency");
    rb.drops(SHARED, &from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff], OWN).bytes(), "no_adjacency");
    // On a bridge that has forgotten them, frames for other RBridges come as well.
    let other = Frame { destination: sharer(4), ..from(sharer(2), OWN) };
    rb.drops(SHARED, &other.bytes(), "not_for_us");
    let without = |fib: &mut weft_datapath::trill::Fib| {
        fib.ports.get_mut(&SHARED).unwrap().kind = PortKind::shared(10);
    };
    rb.datapath.change(without).unwrap();
    rb.drops(SHARED, &from(sharer(2), OWN).bytes(), "no_adjacency");
}

#[test]
fn what_a_shared_link_takes() {
    let Some(mut rb) = with_shared_link() else { return };
    // In transit: out by the port that it came by, to a neighbour on the same link.
    let frame = from(sharer(2), NEAR);
    let (outcome, output) = rb.run(SHARED, &frame.bytes());
    assert_eq!((outcome, output.verdict), ("transit", Verdict::Redirect));
    let gone = Frame { destination: sharer(0), source: port_mac(SHARED), flags: frame.flags - 1, ..frame };
    common::assert_frame(&output.bytes, &gone.bytes());
    // IS-IS and BPDUs are the daemon's, in any VLAN; the stack leaves the tag in the frame.
    for (tag, kept) in
        [(&[][..], &[][..]), (&[0x81, 0, 0xe0, 10], &[0x91, 0, 0xe0, 10]), (&[0x81, 0, 0, 20], &[0x91, 0, 0, 20])]
    {
        let is_is = |to: &[u8], tag: &[u8]| [to, &sharer(2), tag, &[0x22, 0xf4], &[0x83; 60]].concat();
        for to in [[0x01, 0x80, 0xc2, 0, 0, 0x41], port_mac(SHARED)] {
            let (outcome, output) = rb.run(SHARED, &is_is(&to, tag));
            assert_eq!((outcome, output.verdict), ("is_is", Verdict::Next));
            common::assert_frame(&output.bytes, &is_is(&to, kept));
        }
        rb.drops(SHARED, &is_is(&sharer(4), tag), "not_for_us");
        rb.drops(SHARED, &is_is(&[0x01, 0x80, 0xc2, 0, 0, 0x42], tag), "other_group");
    }
    rb.passes(SHARED, &[&[0x01, 0x80, 0xc2, 0, 0, 0][..], &HERE, &[0, 38], &[0x42; 60]].concat(), "l2_control");

    // Of stations: in VLANs that are carried, and no other.
    for tag in [None, Some(0), Some(10), Some(20)] {
        assert_eq!(rb.run(SHARED, &native(FAR_STATION, NOBODY, tag)).0, "ingress", "{tag:?}");
        assert_eq!(rb.run(SHARED, &native(BROADCAST, NOBODY, tag)).0, "ingress_flood", "{tag:?}");
    }
    rb.drops(SHARED, &native(BROADCAST, NOBODY, Some(30)), "not_forwarder");
    rb.drops(SHARED, &native(FAR_STATION, NOBODY, Some(4095)), "not_forwarder");
    rb.drops(SHARED, &native(THERE, HERE, None), "same_port");
    assert_eq!(rb.place_of(NOBODY, 10), Some(Place::Port(SHARED)));
    assert_eq!(rb.place_of(NOBODY, 30), None, "what is not ours to carry teaches nothing");
}

/// Frames between RBridges are taken in the Designated VLAN alone, with its tag or, where frames of no tag are in it, without.
#[test]
fn only_in_the_designated_vlan_are_frames_of_rbridges_taken() {
    let Some(mut rb) = with_shared_link() else { return };
    let plain = from(sharer(2), OWN).bytes();
    let tagged = |vlan: u16| [&plain[..12], &[0x81, 0, 0xe0 | (vlan >> 8) as u8, vlan as u8], &plain[12..]].concat();
    for designated in [10, 20, 3000] {
        rb.datapath
            .change(|fib| match &mut fib.ports.get_mut(&SHARED).unwrap().kind {
                PortKind::Shared { designated_vlan, .. } => *designated_vlan = designated,
                _ => unreachable!("it is a shared link"),
            })
            .unwrap();
        for vlan in [10, 20, 30, 3000] {
            let came = rb.run(SHARED, &tagged(vlan)).0;
            assert_eq!(came, if vlan == designated { "egress" } else { "outer_vlan" }, "{vlan} of {designated}");
        }
        for untagged in [&plain, &tagged(0)] {
            assert_eq!(rb.run(SHARED, untagged).0, if designated == 10 { "egress" } else { "outer_vlan" });
        }
    }
}

#[test]
fn what_a_shared_link_gives() {
    let Some(mut rb) = with_shared_link() else { return };
    let payload = native(HERE, NEAR_STATION, None);
    rb.sends(ACCESS_10, &payload, "switched", &payload);
    // Out of TRILL, also by the port that it came by; with a tag where the VLAN has one.
    for (vlan, tag) in [(10, &[][..]), (20, &[0x81, 0, 0, 20][..])] {
        let frame = Frame { inner_destination: HERE, control: vlan, ..from(sharer(2), OWN) };
        let (outcome, output) = rb.run(SHARED, &frame.bytes());
        assert_eq!((outcome, output.verdict), ("egress", Verdict::Redirect));
        let head = [&HERE[..], &FAR_STATION, tag, &[0x08, 0x00]].concat();
        common::assert_frame(&output.bytes, &[&head[..], &frame.payload].concat());
    }
    // Into it: to the neighbour that the route names.
    rb.datapath.maps().set_station(&station(NOBODY, 10, Place::RBridge(NEAR))).unwrap();
    let (outcome, output) = rb.run(ACCESS_10, &native(NOBODY, NEAR_STATION, None));
    assert_eq!(outcome, "ingress");
    assert_eq!(output.bytes[..16], [&sharer(0)[..], &port_mac(SHARED), &[0x22, 0xf3, 0, HOP_COUNT]].concat()[..16]);
}

#[test]
fn without_its_daemon_it_carries_no_stations_frames_and_goes_on_between_rbridges() {
    let Some(mut rb) = with_shared_link() else { return };
    rb.datapath.maps().set_access_until(OVER).unwrap();
    rb.drops(SHARED, &native(FAR_STATION, NOBODY, None), "not_forwarder");
    rb.drops(SHARED, &native(BROADCAST, NOBODY, Some(20)), "not_forwarder");
    let frame = Frame { inner_destination: HERE, ..from(sharer(2), OWN) };
    assert_eq!(rb.run(SHARED, &frame.bytes()).0, "egress_flood", "to other ports; the copy for the link is none");
    assert_eq!(rb.run(ACCESS_10, &native(HERE, NEAR_STATION, None)).0, "ingress_flood");
    assert_eq!(rb.run(SHARED, &from(sharer(2), NEAR).bytes()).0, "transit");
    assert_eq!(rb.run(SHARED, &from(sharer(2), OWN).bytes()).0, "egress", "to a station at a port of its own");
    assert_eq!(rb.run(ACCESS_10, &native(FAR_STATION, NEAR_STATION, None)).0, "ingress");
    assert_eq!(rb.run(LINK_A, &unicast(LINK_A, FAR, OWN).bytes()).0, "egress");
}
