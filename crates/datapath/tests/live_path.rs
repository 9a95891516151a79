//! Real packets over A - ToR - Intermediate - ToR - B: one hop for the servers, super frames whole, nothing lost.

mod common;

use std::time::{Duration, Instant};

use common::bed::{Attached, Bed};
use common::netns::link;
use common::tap::Tap;
use common::traffic::{Icmp, received, transfer};
use common::*;

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

fn bed(test: &str) -> Option<(Bed, Attached)> {
    if !weft_needs::root() {
        return None;
    }
    let bed = Bed::new(test);
    let attached = bed.attach()?;
    Some((bed, attached))
}

fn count_of(counters: Vec<(&'static str, u64)>, wanted: &str) -> u64 {
    counters.iter().find(|(name, _)| *name == wanted).expect("a counter of this name").1
}

#[test]
fn the_very_first_packet_arrives_and_every_ttl_is_kept() {
    let Some((bed, attached)) = bed("ttl") else { return };
    let a = Icmp::open(&bed.a, WAIT);
    let b = Icmp::open(&bed.b, WAIT);
    for (sequence, ttl) in (1..).zip([1, 2, 64, 255]) {
        let answer = a.ping(PEER_AA, ttl, sequence, 56).unwrap_or_else(|| panic!("no answer at TTL {ttl}"));
        assert_eq!(answer.ttl, 64, "the answer's TTL, as B's kernel set it");
        assert_eq!(b.receive(8, sequence).expect("B saw the request").ttl, ttl);
    }
    assert_eq!(count_of(attached.a.counters().unwrap(), "arp_answered"), 1);
    assert_eq!(count_of(attached.a.counters().unwrap(), "encapsulated"), 4);
    assert_eq!(count_of(attached.intermediate.counters().unwrap(), "forwarded"), 8);
    assert_eq!(count_of(attached.tor2.counters().unwrap(), "delivered"), 4);
    assert_eq!(count_of(attached.tor1.counters().unwrap(), "delivered"), 4);
    assert_eq!(count_of(attached.tor1.counters().unwrap(), "forwarded"), 4);
    assert_eq!(count_of(attached.tor2.counters().unwrap(), "forwarded"), 4);
}

#[test]
fn the_largest_packet_fits_and_is_not_fragmented() {
    let Some((bed, attached)) = bed("mtu") else { return };
    let a = Icmp::open(&bed.a, WAIT);
    let answer = a.ping(PEER_AA, 64, 1, 1500 - 28).expect("1500 bytes arrive");
    assert_eq!(answer.icmp.len(), 1480);
    assert_eq!(count_of(attached.a.counters().unwrap(), "encapsulated"), 1);
    assert_eq!(count_of(attached.tor2.counters().unwrap(), "fragment"), 0);
    // Fragments of the server's own making are ordinary packets to the fabric.
    assert_eq!(a.ping(PEER_AA, 64, 2, 4000).expect("three fragments arrive").icmp.len(), 4008);
}

#[test]
fn tcp_crosses_the_fabric_in_whole_super_frames() {
    let Some((bed, attached)) = bed("tcp") else { return };
    const BYTES: usize = 256 << 20;
    let (total, time) = transfer(&bed.a, &bed.b, PEER_AA, BYTES);
    assert_eq!(total, BYTES);
    let (bytes, frames) = received(&bed.intermediate, "left");
    let mean = bytes / frames;
    eprintln!(
        "{:.1} Gbit/s, {mean} bytes in the mean frame at the Intermediate",
        BYTES as f64 * 8e-9 / time.as_secs_f64()
    );
    assert!(mean > 10_000, "super frames were cut up: {mean} bytes in the mean frame");
    assert_eq!(count_of(attached.a.counters().unwrap(), "mtu_exceeded"), 0);
}

#[test]
fn las_stay_reachable_beside_the_overlay() {
    let Some((bed, attached)) = bed("la") else { return };
    let a = Icmp::open(&bed.a, WAIT);
    for (sequence, la) in (1..).zip(["10.64.0.1", "10.1.0.1"]) {
        assert!(a.ping(la.parse().unwrap(), 64, sequence, 56).is_some(), "{la} answers");
    }
    assert_eq!(count_of(attached.a.counters().unwrap(), "encapsulated"), 0);
}

#[test]
fn what_has_no_mapping_comes_out_at_the_agents_end_of_the_veth() {
    let Some((bed, attached)) = bed("miss") else { return };
    assert!(Icmp::open(&bed.a, WAIT).ping(PEER_AA, 64, 1, 56).is_some());
    let a = Icmp::open(&bed.a, Duration::from_millis(200));
    attached.a.remove(PEER_AA).unwrap();
    let (_, before) = received(&bed.a, "weft-up1");
    assert!(a.ping(PEER_AA, 64, 2, 56).is_none());
    assert!(a.ping(std::net::Ipv4Addr::new(20, 9, 9, 9), 64, 3, 56).is_none());
    let (_, after) = received(&bed.a, "weft-up1");
    assert!(after >= before + 2, "{before} frames, then {after}");
    assert_eq!(count_of(attached.a.counters().unwrap(), "packet_miss"), 1);
    assert!(count_of(attached.a.counters().unwrap(), "arp_miss") >= 1);
}

#[test]
fn a_wrong_mapping_ends_at_the_tor_with_a_reason() {
    let Some((bed, attached)) = bed("wrong") else { return };
    let nowhere = std::net::Ipv4Addr::new(20, 0, 0, 77);
    attached.a.set(nowhere, &common::bed::B_MAPPING).unwrap();
    let a = Icmp::open(&bed.a, Duration::from_millis(300));
    assert!(a.ping(nowhere, 64, 1, 56).is_none());
    assert_eq!(count_of(attached.tor2.counters().unwrap(), "no_such_host"), 1);
    assert_eq!(count_of(attached.intermediate.counters().unwrap(), "forwarded"), 1, "it did not come back");
}

/// The kernel keeps a tag beside the frame, which then looks like one without: what a server's bridge hands on, and what comes in
/// at a port of the ToR.
#[test]
fn a_tag_beside_the_frame_is_no_way_by_the_agent_or_the_tor() {
    let Some((bed, attached)) = bed("beside") else { return };
    let for_b = Ipv4 { source: MY_AA, destination: PEER_AA, ..Ipv4::default() }.bytes();
    let encapsulated = wrapped(&for_b, "100.64.3.7".parse().unwrap(), PEER_TOR, 0);
    let tagged =
        |vlan: u8, packet: &[u8]| ethernet(GATEWAY_MAC, OTHER_MAC, 0x8100, &[&[0, vlan, 8, 0][..], packet].concat());
    let wait_for = |what: &dyn Fn() -> u64, count| {
        let begin = Instant::now();
        while what() < count {
            assert!(begin.elapsed() < WAIT, "{} of {count}", what());
            std::thread::yield_now();
        }
    };
    link((&bed.a, "x0"), (&bed.a, "x1"), 1500);
    bed.a.ip("link add br0 type bridge mcast_snooping 0");
    for command in ["eth0 master br0", "x0 master br0", "br0 up"] {
        bed.a.ip(&format!("link set {command}"));
    }
    Tap::open(&bed.a, "x1", WAIT).send(&tagged(5, &for_b));
    wait_for(&|| count_of(attached.a.counters().unwrap(), "tagged"), 1);

    let fabric = Tap::open(&bed.intermediate, "right", WAIT);
    fabric.send(&tagged(5, &encapsulated));
    fabric.send(&tagged(0, &encapsulated));
    // At the port of a server that goes past its agent.
    drop(attached.b);
    Tap::open(&bed.b, "eth0", WAIT).send(&tagged(5, &encapsulated));
    wait_for(&|| count_of(attached.tor2.counters().unwrap(), "tagged"), 3);
    assert_eq!(count_of(attached.tor2.counters().unwrap(), "delivered"), 0);
}
