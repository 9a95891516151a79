//! IPv4 headers as literal bytes, both ways. The literal checksums were computed by an independent implementation.

use super::*;

/// UDP from 192.168.0.1 to 192.168.0.199, as [`Header::new`] fills it in.
const PACKET: [u8; 22] = [
    0x45, 0x00, 0x00, 0x16, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0xbe, // 22 bytes, DF, TTL 64, UDP, checksum
    0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7, // addresses
    0xaa, 0xbb,
];

/// Every field set to something that is not its neighbour.
const FULL: [u8; 24] = [
    0x45, 0xb9, 0x00, 0x18, 0x12, 0x34, 0x21, 0x23, // TOS, 24 bytes, identification, MF and offset
    0x11, 0x06, 0x4d, 0xc1, // TTL 17, TCP, checksum
    20, 0, 0, 7, 20, 0, 0, 9, // addresses
    1, 2, 3, 4,
];

fn header() -> Header {
    Header::new(Ipv4Addr::new(192, 168, 0, 1), Ipv4Addr::new(192, 168, 0, 199), protocol::UDP, 2)
}

fn full() -> Header {
    Header {
        tos: 0xb9,
        identification: 0x1234,
        dont_fragment: false,
        more_fragments: true,
        fragment_offset_units: 0x123,
        ttl: 17,
        protocol: protocol::TCP,
        source: Ipv4Addr::new(20, 0, 0, 7),
        destination: Ipv4Addr::new(20, 0, 0, 9),
        payload_len: 4,
    }
}

#[test]
fn deconstruct() {
    let view = View::new(&FULL).unwrap();
    assert_eq!((view.header_len(), view.total_len()), (20, 24));
    assert_eq!((view.tos(), view.dscp(), view.ecn()), (0xb9, 46, Ecn::Ect1));
    assert_eq!(view.identification(), 0x1234);
    assert_eq!((view.dont_fragment(), view.more_fragments(), view.fragment_offset_bytes()), (false, true, 0x123 * 8));
    assert!(view.is_fragment());
    assert_eq!((view.ttl(), view.protocol(), view.checksum()), (17, 6, 0x4dc1));
    assert_eq!((view.source(), view.destination()), (Ipv4Addr::new(20, 0, 0, 7), Ipv4Addr::new(20, 0, 0, 9)));
    assert_eq!(view.payload(), [1, 2, 3, 4]);
    assert_eq!(view.verify_checksum(), Ok(()));
}

#[test]
fn parse() {
    assert_eq!(Header::parse(&PACKET), Ok(header()));
    assert_eq!(Header::parse(&FULL), Ok(full()));
}

#[test]
fn emit() {
    for (header, packet) in [(header(), &PACKET[..]), (full(), &FULL[..])] {
        let mut buffer = [0xa5; 22];
        header.emit_into(&mut buffer);
        assert_eq!(buffer[..20], packet[..20]);
        assert_eq!(buffer[20..], [0xa5, 0xa5]);
    }
}

#[test]
fn padding_is_cut_off() {
    let mut padded = PACKET.to_vec();
    padded.resize(46, 0);
    let view = View::new(&padded).unwrap();
    assert_eq!((view.as_bytes(), view.payload()), (&PACKET[..], &[0xaa, 0xbb][..]));
}

#[test]
fn options_are_skipped_by_the_view_and_refused_by_the_value() {
    let mut packet = vec![0x46, 0, 0, 25, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0x94, 4, 0, 0, 0x77];
    let checksum = checksum::of(&packet[..24]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let view = View::new(&packet).unwrap();
    assert_eq!((view.header_len(), view.payload()), (24, &[0x77][..]));
    assert_eq!(view.verify_checksum(), Ok(()));
    assert_eq!(Header::parse(&packet), Err(ParseError::Length { expected_bytes: 20, found_bytes: 24 }));
}

#[test]
fn malformed_packets_are_refused_with_the_reason() {
    let changed = |offset: usize, value: u8| {
        let mut packet = PACKET;
        packet[offset] = value;
        Header::parse(&packet).unwrap_err()
    };
    assert_eq!(changed(0, 0x65), ParseError::Version(6));
    assert_eq!(changed(0, 0x44), ParseError::Length { expected_bytes: 20, found_bytes: 16 });
    assert_eq!(changed(0, 0x4f), ParseError::Truncated { needed_bytes: 60, found_bytes: 22 });
    assert_eq!(changed(3, 19), ParseError::Length { expected_bytes: 20, found_bytes: 19 });
    assert_eq!(changed(3, 23), ParseError::Truncated { needed_bytes: 23, found_bytes: 22 });
    assert_eq!(changed(8, 63), ParseError::Checksum(0xb8be));
    assert_eq!(changed(11, 0xbf), ParseError::Checksum(0xb8bf));
    for found_bytes in 0..20 {
        let error = Header::parse(&PACKET[..found_bytes]).unwrap_err();
        assert_eq!(error, ParseError::Truncated { needed_bytes: 20, found_bytes });
    }
    // The reserved flag, with a checksum that fits it.
    let mut reserved = PACKET;
    reserved[6] = 0xc0;
    reserved[10..12].copy_from_slice(&0x38be_u16.to_be_bytes());
    assert_eq!(Header::parse(&reserved), Err(ParseError::Reserved));
}

#[test]
fn prefix_needs_the_header_only() {
    assert_eq!(View::of_prefix(&PACKET[..20]).unwrap().payload(), []);
    assert!(View::new(&PACKET[..20]).is_err());
}

#[test]
fn every_single_bit_error_in_a_header_is_noticed() {
    for bit in 0..160 {
        let mut packet = FULL;
        packet[bit / 8] ^= 0x80 >> (bit % 8);
        assert!(Header::parse(&packet).is_err(), "bit {bit}");
    }
}

#[test]
fn ecn_of_every_tos() {
    for tos in 0..=255 {
        assert_eq!(Ecn::of_tos(tos) as u8, tos & 3);
        assert_eq!(Ecn::Ce.in_tos(tos), tos | 3);
        assert_eq!(Ecn::NotEct.in_tos(tos), tos & 0xfc);
    }
}

#[test]
fn set_ecn_keeps_the_checksum_right_and_a_wrong_one_wrong() {
    for ecn in Ecn::ALL {
        let mut packet = FULL;
        set_ecn(&mut packet, ecn).unwrap();
        assert_eq!(Header::parse(&packet), Ok(Header { tos: 0xb8 | ecn as u8, ..full() }));
        let mut damaged = FULL;
        damaged[8] ^= 1;
        set_ecn(&mut damaged, ecn).unwrap();
        assert_eq!(Header::parse(&damaged).unwrap_err().reason(), "checksum");
    }
    let mut unchanged = FULL;
    set_ecn(&mut unchanged, Ecn::Ect1).unwrap();
    assert_eq!(unchanged, FULL);
    assert!(set_ecn(&mut [0x45; 19], Ecn::Ce).is_err());
}
