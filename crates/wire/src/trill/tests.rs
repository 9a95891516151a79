//! The header against bytes written down by hand from the RFCs.

use super::*;

#[test]
fn the_header_of_rfc_6325_comes_back() {
    let header = Header { multi_destination: true, hop_count: 0x3f, ..Header::unicast(0xa0b0, 0x0102) };
    assert_eq!(header.to_bytes(), [0x08, 0x3f, 1, 2, 0xa0, 0xb0]);
    assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
    let unicast = Header { multi_destination: false, hop_count: 1, ..header };
    assert_eq!(Header::parse(&unicast.to_bytes()), Ok(unicast));
}

#[test]
fn the_bits_of_rfc_7780_have_their_places() {
    let header = Header { alert: true, hop_count: 2, ..Header::unicast(1, 2) };
    assert_eq!(header.to_bytes()[..2], [0x20, 0x02]);
    let colored = Header { alert: false, color: true, ..header };
    assert_eq!(colored.to_bytes()[..2], [0x10, 0x02]);
    let flagged = Header { flags: Some(FlagsWord(0x8000_0001)), ..header };
    assert_eq!(flagged.to_bytes(), [0x20, 0x42, 0, 2, 0, 1, 0x80, 0, 0, 1]);
    for header in [header, colored, flagged] {
        assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
    }
}

#[test]
fn other_versions_reserved_bits_and_short_headers_are_refused() {
    assert_eq!(Header::parse(&[0x40, 0, 0, 1, 0, 2]), Err(ParseError::Version(1)));
    for first in [[0x04, 0], [0x02, 0], [0x01, 0], [0x00, 0x80]] {
        assert_eq!(Header::parse(&[first[0], first[1], 0, 1, 0, 2]), Err(ParseError::Reserved), "{first:x?}");
    }
    let flagged = Header { flags: Some(FlagsWord(7)), ..Header::unicast(1, 2) }.to_bytes();
    for len in 0..flagged.len() {
        assert!(matches!(Header::parse(&flagged[..len]), Err(ParseError::Truncated { .. })), "{len} bytes");
    }
}

#[test]
fn critical_flags_stop_who_must_know_them() {
    let stops = |bits| (FlagsWord(bits).stops_transit(), FlagsWord(bits).stops_egress());
    assert_eq!(stops(1 << 31), (true, true));
    assert_eq!(stops(1 << 30), (false, true));
    assert_eq!(stops(0x3fff_ffff), (false, false));
}

#[test]
fn sixteen_group_addresses_are_trills() {
    assert!(is_trill_group(ALL_RBRIDGES) && is_trill_group(ALL_IS_IS_RBRIDGES) && is_trill_group(ALL_EGRESS_RBRIDGES));
    assert!(is_trill_group(MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x4f])));
    assert!(!is_trill_group(MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x50])));
    assert!(!is_trill_group(MacAddress([0x01, 0x80, 0xc2, 0, 0, 0])));
}
