//! The Internet checksum (RFC 1071) and its change by difference (RFC 1624).

use std::net::{Ipv4Addr, Ipv6Addr};

/// The checksum of `bytes`, an odd last byte padded with zero. Over bytes that hold their own checksum it is 0.
pub fn of(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// The checksum of a TCP or UDP `segment` with the pseudo-header of its IPv4 addresses (RFC 768, RFC 9293).
pub fn of_segment(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, segment: &[u8]) -> u16 {
    let addresses = sum(&source.octets()) + sum(&destination.octets());
    !fold(addresses + u64::from(protocol) + segment.len() as u64 + sum(segment))
}

/// The checksum of a TCP or UDP `segment` with the pseudo-header of its IPv6 addresses (RFC 8200, section 8.1).
pub fn of_ipv6_segment(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, segment: &[u8]) -> u16 {
    let addresses = sum(&source.octets()) + sum(&destination.octets());
    !fold(addresses + u64::from(next_header) + segment.len() as u64 + sum(segment))
}

/// The checksum once it covers `more` as well, which begin at an even place.
pub fn extended(checksum: u16, more: &[u8]) -> u16 {
    !fold(u64::from(!checksum) + sum(more))
}

/// The checksum after the 16-bit word `before` in the bytes it covers became `after` (RFC 1624, equation 3).
pub fn replaced(checksum: u16, before: u16, after: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!before) + u64::from(after))
}

fn sum(bytes: &[u8]) -> u64 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let pairs: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    pairs + last.first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// Adds the carries back in until 16 bits are left.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(of(&bytes), !0xddf2);
    }

    #[test]
    fn odd_length_pads_with_zero() {
        assert_eq!(of(&[0x12, 0x34, 0x56]), of(&[0x12, 0x34, 0x56, 0x00]));
        assert_eq!(of(&[]), 0xffff);
    }

    #[test]
    fn example_of_rfc_1624_section_4() {
        // The case that equation 1 of RFC 1141 gets wrong: the result must be 0x0000, not 0xffff.
        assert_eq!(replaced(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn replaced_equals_summed_anew() {
        let mut bytes = [0x45, 0x00, 0x12, 0x34, 0xab, 0xcd];
        let before = of(&bytes);
        for tos in 0..=255 {
            bytes[1] = tos;
            assert_eq!(replaced(before, 0x4500, 0x4500 | u16::from(tos)), of(&bytes), "tos {tos:#04x}");
        }
    }

    #[test]
    fn segment_with_pseudo_header() {
        // Known answers of an independent implementation, even and odd length.
        let segment = [0x80, 0x1b, 0x00, 0x35, 0x00, 0x0c, 0x00, 0x00, b'w', b'e', b'f', b't', b'!'];
        let (source, destination) = (Ipv4Addr::new(192, 168, 170, 8), Ipv4Addr::new(192, 168, 170, 20));
        assert_eq!(of_segment(source, destination, 17, &segment[..12]), 0xcc3d);
        assert_eq!(of_segment(source, destination, 6, &segment), 0xab47);
    }

    #[test]
    fn ipv6_segment_with_pseudo_header() {
        // Known answers of an independent implementation, even and odd length.
        let segment = [0x80, 0x1b, 0x00, 0x35, 0x00, 0x0c, 0x00, 0x00, b'w', b'e', b'f', b't', b'!'];
        let [source, destination] = ["2001:2:0:1::7", "ff15::5754:9"].map(|text| text.parse().unwrap());
        assert_eq!(of_ipv6_segment(source, destination, 17, &segment[..12]), 0x2b2e);
        assert_eq!(of_ipv6_segment(source, destination, 6, &segment), 0xa38);
    }

    #[test]
    fn extended_is_the_checksum_of_all() {
        let bytes = [0x12, 0x34, 0xff, 0xfe, 0x80, 0x00, 0x01];
        for place in [0, 2, 4, 6] {
            assert_eq!(extended(of(&bytes[..place]), &bytes[place..]), of(&bytes), "{place}");
        }
    }
}
