//! Frames of links without outer headers: in and out, with and without, every way to be dropped, and what keeps its header.

mod common;

use common::ethernet;
use common::trill::*;
use weft_datapath::trill::{Elision, Place, PortKind};

/// `LINK_A` and `LINK_B` as they are set.
fn with(a: Elision, b: Elision) -> Option<RBridge> {
    let mut rb = rbridge()?;
    set(&mut rb, LINK_A, a);
    set(&mut rb, LINK_B, b);
    Some(rb)
}

fn set(rb: &mut RBridge, number: u8, elision: Elision) {
    rb.datapath.change(|fib| fib.ports.get_mut(&number).unwrap().kind = link(number, elision)).unwrap();
}

/// One hop further.
fn onward(frame: &Frame, port: u8) -> Frame {
    frame.clone().with(|f| (f.destination, f.source, f.flags) = (neighbor_mac(port), port_mac(port), f.flags - 1))
}

#[test]
fn a_frame_by_hand_is_14_bytes_shorter() {
    let Some(mut rb) = with(Elision::Agreed, Elision::Agreed) else { return };
    let plain = ethernet(FAR_STATION, NEAR_STATION, 0x0800, &[0x45; 46]);
    let encapsulated = [
        &FAR_STATION[..],
        &NEAR_STATION,
        &[0x88, 0xb5],
        &[0x00, HOP_COUNT, 0x00, 0x33, 0x00, 0x11], // to FAR, from us
        &[0x00, 20, 0x08, 0x00],                    // VLAN 20
        &[0x45; 46],
    ]
    .concat();
    assert_eq!(encapsulated.len(), plain.len() + 10);
    rb.sends(ACCESS_20, &plain, "ingress", &encapsulated);
    let full =
        [&[0; 12][..], &[0x22, 0xf3], &encapsulated[14..20], &encapsulated[..12], &[0x81, 0], &encapsulated[20..]];
    assert_eq!(full.concat().len(), encapsulated.len() + 14);
}

#[test]
fn ingress_to_next_hops_with_and_without() {
    use Elision::{Agreed, Offered};
    for (a, b) in [(Agreed, Agreed), (Agreed, Offered), (Offered, Agreed), (Offered, Offered)] {
        let Some(mut rb) = with(a, b) else { return };
        let mut used = [0; 2];
        // FAR has two next hops, A and B in this order; flows take both. By a port with tags and by one without.
        for (port, kind, flow) in [ACCESS_10, TRUNK]
            .into_iter()
            .flat_map(|port| (0..12_u8).map(move |flow| (port, [0x0800, 0x1234][flow as usize % 2], flow)))
        {
            let source = [2, 6, 6, 6, port, flow];
            let (flags, control) = (u16::from(HOP_COUNT), if port == TRUNK { 0xe00a } else { 10 });
            let mut frame = unicast(LINK_A, OWN, FAR).with(|f| {
                (f.flags, f.control, f.kind) = (flags, control, kind);
                (f.inner_destination, f.inner_source) = (FAR_STATION, source);
                f.payload = [&common::Ipv4::default().bytes()[..], &[flow; 40]].concat();
                f.payload[20..22].copy_from_slice(&[flow, port]);
            });
            let hop = common::trill_model::choice(SEED, &frame.inner(), 2);
            let (to, elision) = [(LINK_A, a), (LINK_B, b)][hop];
            (frame.destination, frame.source) = (neighbor_mac(to), port_mac(to));
            let native = match port {
                TRUNK => tagged(FAR_STATION, source, control, kind, &frame.payload),
                _ => ethernet(FAR_STATION, source, kind, &frame.payload),
            };
            let expected = if elision == Agreed { frame.elided() } else { frame.bytes() };
            rb.sends(port, &native, "ingress", &expected);
            used[hop] += 1;
        }
        assert!(used.iter().all(|flows| *flows > 2), "{used:?}");
        let long = |payload| ethernet(FAR_STATION, NEAR_STATION, 0x0800, &vec![7; payload]);
        let (outcome, _) = rb.run(ACCESS_10, &long(1614 - 38));
        assert_eq!(outcome, "ingress");
        rb.drops(ACCESS_10, &long(1614 - 37), "too_long");
    }
}

#[test]
fn transit_between_links_with_and_without() {
    for (a, b) in [
        (Elision::Off, Elision::Agreed),
        (Elision::Offered, Elision::Agreed),
        (Elision::Agreed, Elision::Agreed),
        (Elision::Agreed, Elision::Offered),
        (Elision::Agreed, Elision::Off),
    ] {
        let Some(mut rb) = with(a, b) else { return };
        for flags in [1, 2, 63, 0x3001] {
            let frame = unicast(LINK_B, FAR, NEAR).with(|f| f.flags = flags);
            let sent = onward(&frame, LINK_A);
            let expected = if a == Elision::Agreed { sent.elided() } else { sent.bytes() };
            rb.sends(LINK_B, &frame.bytes(), "transit", &expected);
            if b != Elision::Off {
                rb.sends(LINK_B, &frame.elided(), "transit", &expected);
            }
        }
    }
}

#[test]
fn a_flow_keeps_its_path_whichever_way_it_comes() {
    let Some(mut rb) = with(Elision::Agreed, Elision::Agreed) else { return };
    let kinds = [0x0800, 0x86dd, 0x1234];
    for (kind, flow) in kinds.into_iter().flat_map(|kind| (0..40_u8).map(move |flow| (kind, flow))) {
        let frame = unicast(LINK_A, NEAR, FAR).with(|f| {
            f.kind = kind;
            f.payload = [&common::Ipv4::default().bytes()[..], &[flow; 40]].concat();
            f.payload[20..22].copy_from_slice(&[flow, flow ^ 7]);
            f.inner_source[5] = flow;
        });
        let (_, full) = rb.run(LINK_A, &frame.bytes());
        let (_, short) = rb.run(LINK_A, &frame.elided());
        assert_eq!(full.bytes, short.bytes, "{kind:#x} {flow}");
        let hop = common::trill_model::choice(SEED, &frame.inner(), 2) as u8;
        // One neighbour takes frames without header, the other one not any more: so the path shows.
        set(&mut rb, LINK_B, Elision::Offered);
        let (_, short) = rb.run(LINK_A, &frame.elided());
        assert_eq!(short.bytes.len(), frame.elided().len() + 14 * usize::from(hop), "{kind:#x} {flow}");
        set(&mut rb, LINK_B, Elision::Agreed);
    }
}

#[test]
fn egress_delivers_and_learns() {
    let Some(mut rb) = with(Elision::Agreed, Elision::Off) else { return };
    let frame = unicast(LINK_A, WIDE, OWN).with(|f| f.inner_source = NOBODY);
    // Twice: the first frame teaches, the second takes the short way.
    for _ in 0..2 {
        rb.sends(LINK_A, &frame.elided(), "egress", &frame.untagged());
    }
    assert_eq!(rb.place_of(NOBODY, 10), Some(Place::RBridge(WIDE)));
    let to_trunk = frame.clone().with(|f| (f.inner_destination, f.control) = (SECOND_STATION, 0xa00a));
    rb.sends(LINK_A, &to_trunk.elided(), "egress", &to_trunk.inner());
    let unknown = frame.with(|f| f.inner_destination = [2, 7, 7, 7, 7, 7]);
    rb.sends(LINK_A, &unknown.elided(), "egress_flood", &unknown.marked(LINK_A).bytes());
}

#[test]
fn trees_and_what_is_copied() {
    let Some(mut rb) = with(Elision::Agreed, Elision::Agreed) else { return };
    // Each copy loses its header as it leaves, which live frames show.
    let sent = |frame: &Frame| frame.clone().with(|f| f.flags -= 1).marked(LINK_A).bytes();
    let frame = multicast(LINK_A, FAR, NEAR);
    rb.sends(LINK_A, &frame.elided(), "tree_flood", &sent(&frame));
    let unknown = multicast(LINK_A, FAR, NEAR).with(|f| f.inner_destination = NOBODY);
    rb.sends(LINK_A, &unknown.elided(), "tree_flood", &sent(&unknown));
    rb.drops(LINK_B, &multicast(LINK_B, FAR, NEAR).elided(), "rpf");
}

#[test]
fn what_the_short_form_cannot_say_keeps_its_header() {
    let Some(mut rb) = with(Elision::Agreed, Elision::Agreed) else { return };
    let frames = [
        unicast(LINK_B, FAR, NEAR).with(|f| f.flags_word = Some(1)),
        unicast(LINK_B, FAR, NEAR).with(|f| f.label = 0x893b),
        unicast(LINK_B, FAR, NEAR).with(|f| f.inner_destination = ALL_EGRESS),
        unicast(LINK_B, FAR, NEAR).with(|f| f.inner_destination = [1, 0x80, 0xc2, 0, 0, 0x0e]),
    ];
    for frame in frames {
        rb.sends(LINK_B, &frame.bytes(), "transit", &onward(&frame, LINK_A).bytes());
    }
}

#[test]
fn every_way_to_be_dropped() {
    let Some(mut rb) = with(Elision::Offered, Elision::Off) else { return };
    let frame = unicast(LINK_A, FAR, WIDE);
    rb.drops(LINK_B, &unicast(LINK_B, FAR, NEAR).elided(), "not_agreed");
    rb.drops(LINK_B, &multicast(LINK_B, FAR, NEAR).elided(), "not_agreed");
    assert_eq!(rb.count(LINK_B, "not_agreed"), 2);
    for length in 14..24 {
        rb.drops(LINK_A, &frame.elided()[..length], "malformed");
    }
    for length in 24..frame.elided().len() {
        let (outcome, _) = rb.run(LINK_A, &frame.elided()[..length]);
        assert_eq!(outcome, "transit", "{length}");
    }
    for frame in [frame, multicast(LINK_A, FAR, NEAR)] {
        let with = |change: &dyn Fn(&mut Frame)| frame.clone().with(change).elided();
        for version in 1..4 {
            rb.drops(LINK_A, &with(&|f| f.flags |= version << 14), "bad_version");
        }
        for bit in 6..11 {
            rb.drops(LINK_A, &with(&|f| f.flags |= 1 << bit), "reserved_bits");
        }
        rb.drops(LINK_A, &with(&|f| f.flags &= !63), "hop_count");
        rb.drops(LINK_A, &with(&|f| f.inner_destination = ALL_EGRESS), "other_group");
        rb.drops(LINK_A, &with(&|f| f.ingress = OWN), "own_ingress");
        rb.drops(LINK_A, &with(&|f| f.ingress = 0xffc0), "reserved_ingress");
        rb.drops(LINK_A, &with(&|f| f.egress = 0xffff), "reserved_egress");
    }
    rb.drops(LINK_A, &unicast(LINK_A, NEAR, UNKNOWN).elided(), "unknown_egress");
    for (change, why) in [
        (&(|f: &mut Frame| f.control = 0) as &dyn Fn(&mut Frame), "bad_vlan"),
        (&|f: &mut Frame| f.kind = 0x22f3, "trill_in_trill"),
        (&|f: &mut Frame| f.inner_source = BROADCAST, "bad_source"),
        (&|f: &mut Frame| f.inner_destination = BROADCAST, "inner_group"),
        (&|f: &mut Frame| f.payload = vec![7; 1501], "too_long"),
    ] {
        rb.drops(LINK_A, &unicast(LINK_A, FAR, OWN).with(change).elided(), why);
    }
    // The limit is that of the frame with its header: no link takes more for leaving it out.
    let long = |payload| unicast(LINK_A, FAR, NEAR).with(|f| f.payload = vec![7; payload]);
    set(&mut rb, LINK_A, Elision::Agreed);
    let longest = long(1614 - 38);
    rb.sends(LINK_A, &longest.elided(), "transit", &onward(&longest, LINK_A).elided());
    rb.drops(LINK_A, &long(1614 - 37).elided(), "too_long");
    rb.passes(LINK_A, &ethernet([1, 0x80, 0xc2, 0, 0, 0], neighbor_mac(LINK_A), 0x88b5, &[0; 46]), "l2_control");
    // Without a neighbour nothing is taken.
    let alone = PortKind::Link { designated_vlan: DESIGNATED_VLAN, neighbor: None, elision: Elision::Offered };
    rb.datapath.change(|fib| fib.ports.get_mut(&LINK_A).unwrap().kind = alone).unwrap();
    rb.drops(LINK_A, &unicast(LINK_A, FAR, WIDE).elided(), "no_adjacency");
    // To stations the Ethertype is like any other.
    let theirs = ethernet(SECOND_STATION, NEAR_STATION, 0x88b5, &[0; 46]);
    assert_eq!(rb.run(ACCESS_10, &theirs).0, "switched");
}
