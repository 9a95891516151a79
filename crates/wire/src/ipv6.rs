//! The IPv6 header (RFC 8200, section 3), without extension headers.

use std::net::Ipv6Addr;

use crate::bytes::{array, put, u16_at, u32_at};
use crate::error::{ParseError, need};

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 40;
/// The flow label has 20 bits.
pub const FLOW_LABEL_MAX: u32 = 0xf_ffff;

/// Offsets inside the header.
mod field {
    pub(super) const VERSION_CLASS_LABEL: usize = 0;
    pub(super) const PAYLOAD_LENGTH: usize = 4;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SOURCE: usize = 8;
    pub(super) const DESTINATION: usize = 24;
}

/// An IPv6 header as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// The same for all packets of a flow (RFC 6437), at most [`FLOW_LABEL_MAX`]; 0: none.
    pub flow_label: u32,
    /// Length of what follows the header, bytes.
    pub payload_len: u16,
    /// Protocol of the payload: see [`crate::ipv4::protocol`].
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Header {
    /// A header without class and label, hop limit 64.
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload_len: u16) -> Self {
        Self { traffic_class: 0, flow_label: 0, payload_len, next_header, hop_limit: 64, source, destination }
    }

    /// Reads the header of a whole packet. Bytes after the packet's end (Ethernet padding) are nobody's.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] for a packet that is shorter than it says, [`ParseError::Version`].
    pub fn parse(packet: &[u8]) -> Result<Self, ParseError> {
        need(packet, HEADER_LEN)?;
        let first = u32_at(packet, field::VERSION_CLASS_LABEL);
        if first >> 28 != 6 {
            return Err(ParseError::Version((first >> 28) as u8));
        }
        let payload_len = u16_at(packet, field::PAYLOAD_LENGTH);
        need(packet, HEADER_LEN + usize::from(payload_len))?;
        Ok(Self {
            traffic_class: (first >> 20) as u8,
            flow_label: first & FLOW_LABEL_MAX,
            payload_len,
            next_header: packet[field::NEXT_HEADER],
            hop_limit: packet[field::HOP_LIMIT],
            source: array::<16>(packet, field::SOURCE).into(),
            destination: array::<16>(packet, field::DESTINATION).into(),
        })
    }

    /// Length of the header, bytes.
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the first 40 bytes of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter.
    pub fn emit_into(&self, buffer: &mut [u8]) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & FLOW_LABEL_MAX;
        put(buffer, field::VERSION_CLASS_LABEL, &first.to_be_bytes());
        put(buffer, field::PAYLOAD_LENGTH, &self.payload_len.to_be_bytes());
        buffer[field::NEXT_HEADER] = self.next_header;
        buffer[field::HOP_LIMIT] = self.hop_limit;
        put(buffer, field::SOURCE, &self.source.octets());
        put(buffer, field::DESTINATION, &self.destination.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; HEADER_LEN] = [
        0x6a, 0xb1, 0x23, 0x45, 0x00, 0x03, 17, 63, // version, class, label; length, UDP, hops
        0x20, 0x01, 0x00, 0x02, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, // 2001:2:0:1::7
        0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x57, 0x54, 0, 9, // ff15::5754:9
    ];

    fn header() -> Header {
        let ends = ["2001:2:0:1::7", "ff15::5754:9"].map(|text| text.parse().unwrap());
        Header { traffic_class: 0xab, flow_label: 0x1_2345, hop_limit: 63, ..Header::new(ends[0], ends[1], 17, 3) }
    }

    #[test]
    fn bytes_are_those_of_rfc_8200_section_3() {
        let mut buffer = [0xff; HEADER_LEN];
        header().emit_into(&mut buffer);
        assert_eq!(buffer, BYTES);
        let padded = [&BYTES[..], &[1, 2, 3, 0, 0]].concat();
        assert_eq!(Header::parse(&padded), Ok(header()));
    }

    #[test]
    fn what_is_no_whole_packet_is_refused() {
        let whole = [&BYTES[..], &[1, 2, 3]].concat();
        for length in 0..whole.len() {
            assert!(matches!(Header::parse(&whole[..length]), Err(ParseError::Truncated { .. })), "{length} bytes");
        }
        let mut other = whole;
        other[0] = 0x45;
        assert_eq!(Header::parse(&other), Err(ParseError::Version(4)));
    }
}
