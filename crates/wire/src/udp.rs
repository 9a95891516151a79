//! The UDP header (RFC 768) over IPv4, and its checksum over IPv6.

use std::net::SocketAddrV4;

use crate::bytes::{put, u16_at};
use crate::checksum;
use crate::error::{ParseError, need};
use crate::ipv4::{self, protocol};

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 8;

/// Length of the longest payload of a packet without IPv4 options, bytes.
pub const PAYLOAD_LEN_MAX: usize = ipv4::PACKET_LEN_MAX - ipv4::HEADER_LEN - HEADER_LEN;

/// A checked look at a UDP datagram.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Looks at a datagram; bytes after its end are cut off. The checksum is not verified.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], or [`ParseError::Length`] for a length field that does not even cover the header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        let length = usize::from(u16_at(bytes, 4));
        if length < HEADER_LEN {
            return Err(ParseError::Length { expected_bytes: HEADER_LEN, found_bytes: length });
        }
        need(bytes, length)?;
        Ok(Self { bytes: &bytes[..length] })
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16_at(self.bytes, 0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.bytes, 2)
    }

    /// The checksum as received; 0 means that the sender made none.
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, 6)
    }

    /// The bytes after the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}

/// The checksum field once it covers `payload`, before which it covered addresses and header alone. 0, which says that there is
/// none, stays; one that comes out as 0 is sent as all ones (RFC 768; RFC 8200, section 8.1).
pub fn covering(checksum: u16, payload: &[u8]) -> u16 {
    match checksum::extended(checksum, payload) {
        _ if checksum == 0 => 0,
        0 => 0xffff,
        other => other,
    }
}

/// A whole IPv4 packet with `payload` from `source` to `destination`, both checksums set, TTL 64, DF set.
///
/// # Errors
/// [`ParseError::Length`] for a payload of more than [`PAYLOAD_LEN_MAX`] bytes.
pub fn packet(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) -> Result<Vec<u8>, ParseError> {
    if payload.len() > PAYLOAD_LEN_MAX {
        return Err(ParseError::Length { expected_bytes: PAYLOAD_LEN_MAX, found_bytes: payload.len() });
    }
    let length = (HEADER_LEN + payload.len()) as u16;
    let mut packet = vec![0; ipv4::HEADER_LEN + usize::from(length)];
    ipv4::Header::new(*source.ip(), *destination.ip(), protocol::UDP, length).emit_into(&mut packet);
    let segment = &mut packet[ipv4::HEADER_LEN..];
    put(segment, 0, &source.port().to_be_bytes());
    put(segment, 2, &destination.port().to_be_bytes());
    put(segment, 4, &length.to_be_bytes());
    put(segment, HEADER_LEN, payload);
    // RFC 768: a checksum that comes out as zero is sent as all ones.
    let checksum = match checksum::of_segment(*source.ip(), *destination.ip(), protocol::UDP, segment) {
        0 => 0xffff,
        other => other,
    };
    put(segment, 6, &checksum.to_be_bytes());
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn packet_whole() {
        let source = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 1), 40000);
        let destination = SocketAddrV4::new(Ipv4Addr::new(10, 64, 1, 2), 5300);
        let expected = [
            0x45, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x25, 0x4c, // IPv4, 31 bytes, UDP
            10, 64, 0, 1, 10, 64, 1, 2, // addresses
            0x9c, 0x40, 0x14, 0xb4, 0x00, 0x0b, 0x57, 0xfb, // UDP: ports, 11 bytes, checksum
            b'h', b'e', b'y',
        ];
        assert_eq!(packet(source, destination, b"hey").unwrap(), expected);
        let view = View::new(&expected[20..]).unwrap();
        assert_eq!((view.source_port(), view.destination_port()), (40000, 5300));
        assert_eq!((view.checksum(), view.payload()), (0x57fb, &b"hey"[..]));
    }

    #[test]
    fn zero_checksum_is_sent_as_ones() {
        // Everything but the last word sums to what that word's complement cancels.
        let end = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let without = packet(end, end, &[0, 0]).unwrap();
        let word = [without[26], without[27]];
        let cancelled = packet(end, end, &word).unwrap();
        assert_eq!(cancelled[26..28], [0xff, 0xff]);
    }

    #[test]
    fn lengths_are_checked() {
        let datagram = [0, 1, 0, 2, 0, 9, 0, 0, 0xaa, 0xbb];
        assert_eq!(View::new(&datagram).unwrap().payload(), [0xaa]);
        assert_eq!(View::new(&datagram[..8]).unwrap_err().reason(), "truncated");
        assert_eq!(View::new(&datagram[..7]).unwrap_err().reason(), "truncated");
        let short = [0, 1, 0, 2, 0, 7, 0, 0];
        assert_eq!(View::new(&short).unwrap_err().reason(), "length");
        let end = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
        assert_eq!(packet(end, end, &vec![0; PAYLOAD_LEN_MAX + 1]).unwrap_err().reason(), "length");
        assert_eq!(packet(end, end, &vec![0; PAYLOAD_LEN_MAX]).unwrap().len(), 65_535);
    }
}
