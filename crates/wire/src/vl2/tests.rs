//! A whole stack as literal bytes, both ways, and the ECN tables of RFC 6040. The literal checksums were computed by an
//! independent implementation.

use super::*;
use crate::checksum;

/// AA 20.0.0.7 to AA 20.0.0.9: UDP 40000 to 5001 with 2 bytes, ECT(0), DSCP 46.
const INNER: [u8; 30] = [
    0x45, 0xba, 0x00, 0x1e, 0xab, 0xcd, 0x40, 0x00, 0x3f, 0x11, 0x67, 0x38, // 30 bytes, DF, TTL 63, UDP
    20, 0, 0, 7, 20, 0, 0, 9, 0x9c, 0x40, 0x13, 0x89, 0x00, 0x0a, 0x00, 0x00, 0x61, 0x62,
];
const TOR_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 3, 1);
const ANYCAST_LA: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

fn stack() -> Stack {
    Stack { source: Ipv4Addr::new(100, 91, 20, 241), anycast_la: ANYCAST_LA, tor_la: TOR_LA, ttl: 64, tos: 0xba }
}

/// The two outer headers around [`INNER`].
const OUTER: [u8; 40] = [
    0x45, 0xba, 0x00, 0x46, 0x00, 0x00, 0x40, 0x00, 0x40, 0x04, 0xb5, 0xae, // 70 bytes, DF, TTL 64, protocol 4
    100, 91, 20, 241, 10, 255, 0, 1, // hash > Intermediates
    0x45, 0xba, 0x00, 0x32, 0x00, 0x00, 0x40, 0x00, 0x40, 0x04, 0xb3, 0x81, // 50 bytes
    100, 91, 20, 241, 10, 64, 3, 1, // hash > ToR
];

fn whole() -> Vec<u8> {
    [&OUTER[..], &INNER].concat()
}

/// `packet` with its type of service replaced and its checksum made new.
fn with_tos(packet: &[u8], tos: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[1] = tos;
    packet[10..12].fill(0);
    let checksum = checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn encapsulate_whole() {
    assert_eq!(encapsulate(&INNER, &stack()).unwrap(), whole());
    let mut buffer = [0xa5; 42];
    stack().emit_into(&mut buffer, 30);
    assert_eq!(buffer[..40], OUTER);
    assert_eq!(buffer[40..], [0xa5, 0xa5]);
}

#[test]
fn deconstruct() {
    let packet = whole();
    let view = View::new(&packet).unwrap();
    assert_eq!((view.anycast.destination(), view.tor.destination()), (ANYCAST_LA, TOR_LA));
    assert_eq!((view.anycast.source(), view.tor.source()), (stack().source, stack().source));
    assert_eq!(view.inner.as_bytes(), INNER);
}

#[test]
fn parse() {
    assert_eq!(Stack::parse(&whole()).unwrap(), (stack(), &INNER[..]));
}

#[test]
fn stack_for_a_packet_carries_its_hash_and_tos() {
    let stack = Stack::for_packet(&INNER, TOR_LA, ANYCAST_LA).unwrap();
    let hash = flow_hash(&FiveTuple::of_ipv4(&INNER).unwrap());
    let expected = Stack { source: hash_source(hash), anycast_la: ANYCAST_LA, tor_la: TOR_LA, ttl: 64, tos: 0xba };
    assert_eq!(stack, expected);
    assert!(Stack::for_packet(&INNER[..19], TOR_LA, ANYCAST_LA).is_err());
}

#[test]
fn decapsulate_twice_gives_the_packet_back() {
    let after_intermediate = decapsulate_one(&whole()).unwrap();
    assert_eq!(after_intermediate, whole()[20..]);
    let after_tor = decapsulate_one(&after_intermediate).unwrap();
    assert_eq!(after_tor, INNER);
    assert_eq!(decapsulate_one(&after_tor), Err(DecapError::Parse(ParseError::Protocol(17))));
}

#[test]
fn ethernet_padding_is_not_part_of_the_packet() {
    let mut padded = whole();
    padded.resize(120, 0);
    assert_eq!(decapsulate_one(&padded).unwrap(), whole()[20..]);
    padded = INNER.to_vec();
    padded.resize(46, 0);
    assert_eq!(encapsulate(&padded, &stack()).unwrap(), whole());
}

/// RFC 6040, section 4.1, normal mode: the outer ECN field is a copy of the inner one, also for CE.
#[test]
fn encapsulation_copies_all_four_ecn_fields_outwards() {
    for ecn in Ecn::ALL {
        let inner = with_tos(&INNER, 0xb8 | ecn as u8);
        let stack = Stack::for_packet(&inner, TOR_LA, ANYCAST_LA).unwrap();
        let packet = encapsulate(&inner, &stack).unwrap();
        let view = View::new(&packet).unwrap();
        assert_eq!((view.anycast.ecn(), view.tor.ecn(), view.inner.ecn()), (ecn, ecn, ecn));
        assert_eq!((view.anycast.dscp(), view.tor.dscp()), (46, 46));
    }
}

/// RFC 6040, section 4.2, Figure 4, row by row: the ECN field that leaves the tunnel, or a drop.
#[test]
fn decapsulation_combines_all_sixteen_ecn_pairs() {
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    let outer = [NotEct, Ect0, Ect1, Ce];
    let figure_4 = [
        (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
        (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
        (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
        (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
    ];
    for (inside, row) in figure_4 {
        for (outside, expected) in outer.into_iter().zip(row) {
            let inner = with_tos(&INNER, 0xb8 | inside as u8);
            let tunnelled = encapsulate(&inner, &stack()).unwrap();
            let arriving = with_tos(&tunnelled[20..], outside as u8);
            let leaving = expected.map(|ecn| with_tos(&inner, 0xb8 | ecn as u8)).ok_or(DecapError::CongestionOnNotEct);
            assert_eq!(decapsulate_one(&arriving), leaving, "inner {inside:?}, outer {outside:?}");
        }
    }
}

#[test]
fn a_switch_that_marks_congestion_reaches_the_receiver_through_both_tunnels() {
    let marked = with_tos(&whole(), 0xbb);
    let after_intermediate = decapsulate_one(&marked).unwrap();
    let after_tor = decapsulate_one(&after_intermediate).unwrap();
    assert_eq!(after_tor, with_tos(&INNER, 0xbb));
}

#[test]
fn broken_stacks_are_refused_with_the_reason() {
    let changed = |offset: usize, value: u8| {
        let mut packet = whole();
        packet[offset] = value;
        let tos = packet[1];
        let packet = if offset < 20 && offset != 10 { with_tos(&packet, tos) } else { packet };
        decapsulate_one(&packet).unwrap_err().reason()
    };
    assert_eq!(changed(10, 0), "checksum");
    assert_eq!(changed(9, 17), "protocol");
    assert_eq!(changed(6, 0x20), "fragment");
    assert_eq!(changed(7, 1), "fragment");
    assert_eq!(changed(3, 71), "truncated");
    assert_eq!(changed(3, 49), "truncated");
    assert_eq!(changed(3, 19), "length");
    assert_eq!(changed(20, 0x65), "version");
    assert_eq!(changed(23, 51), "truncated");
    for len in 0..whole().len() {
        assert_eq!(decapsulate_one(&whole()[..len]).unwrap_err().reason(), "truncated", "{len} bytes");
    }
}

#[test]
fn stack_that_a_switch_has_touched_is_seen_but_not_taken_for_fresh() {
    let touched = {
        let mut packet = whole();
        packet[8] = 62;
        with_tos(&packet, 0xba)
    };
    assert_eq!(View::new(&touched).unwrap().anycast.ttl(), 62);
    assert_eq!(Stack::parse(&touched), Err(ParseError::Altered));
}

#[test]
fn ends_that_do_not_meet_are_refused() {
    let mut packet = whole();
    packet.push(0);
    packet[3] += 1;
    let packet = with_tos(&packet, 0xba);
    assert_eq!(View::new(&packet).unwrap_err(), ParseError::Length { expected_bytes: 51, found_bytes: 50 });
}

#[test]
fn what_does_not_fit_an_ipv4_packet_is_refused() {
    let fits = |len: usize| {
        let mut inner = vec![0; len];
        ipv4::Header::new(TOR_LA, TOR_LA, protocol::UDP, (len - 20) as u16).emit_into(&mut inner);
        encapsulate(&inner, &stack()).map(|packet| packet.len())
    };
    assert_eq!(fits(65_495), Ok(65_535));
    assert_eq!(fits(65_496), Err(ParseError::Length { expected_bytes: 65_535, found_bytes: 65_536 }));
}
