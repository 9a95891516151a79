//! ICMP "fragmentation needed" (RFC 792, RFC 1191): how a sender learns that its packets do not fit the fabric.

use std::net::Ipv4Addr;

use crate::bytes::put;
use crate::checksum;
use crate::error::{ParseError, need};
use crate::ipv4::{self, protocol};

/// Length of the ICMP header, bytes.
pub const HEADER_LEN: usize = 8;

/// ICMP type "destination unreachable" (RFC 792).
pub const DESTINATION_UNREACHABLE: u8 = 3;

/// Code "fragmentation needed and DF set" (RFC 1191).
pub const FRAGMENTATION_NEEDED: u8 = 4;

/// An error message is at most this long, bytes, IPv4 header included (RFC 1812, section 4.3.2.3).
pub const ERROR_LEN_MAX: usize = 576;

/// Precedence "internetwork control", which error messages carry (RFC 1812, section 4.3.2.5).
const TOS_INTERNETWORK_CONTROL: u8 = 0xc0;

/// Why no ICMP error may be sent about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IcmpError {
    /// The packet is no IPv4 packet.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A rule of RFC 1122, section 3.2.2 forbids it, so that errors cannot breed errors.
    #[error("no ICMP error may answer {0}")]
    Forbidden(&'static str),
}

/// A checked look at an ICMP message.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Looks at a message that starts after the IPv4 header. The checksum is not verified.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 8 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        Ok(Self { bytes })
    }

    /// Type of the message.
    pub fn message_type(&self) -> u8 {
        self.bytes[0]
    }

    /// Code that refines the type.
    pub fn code(&self) -> u8 {
        self.bytes[1]
    }

    /// MTU of the link that the packet did not fit, bytes; `None` for every other kind of message.
    pub fn next_hop_mtu(&self) -> Option<u16> {
        let needed = (self.message_type(), self.code()) == (DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED);
        needed.then(|| u16::from_be_bytes([self.bytes[6], self.bytes[7]]))
    }

    /// The start of the packet that an error message is about, or the data of another message.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}

/// The packet from `reporter` that tells the sender of `too_big` to use at most `mtu_bytes` per packet.
///
/// It quotes as much of `too_big` as fits [`ERROR_LEN_MAX`]; of `too_big` only the header and 8 bytes have to be there.
///
/// # Errors
/// [`IcmpError::Forbidden`] for a packet that no ICMP error may answer: an ICMP error itself, a fragment other than the
/// first, a packet from or to more than one station; [`IcmpError::Parse`] for what is no IPv4 packet.
pub fn fragmentation_needed(too_big: &[u8], reporter: Ipv4Addr, mtu_bytes: u16) -> Result<Vec<u8>, IcmpError> {
    let view = ipv4::View::of_prefix(too_big)?;
    need(too_big, view.header_len() + 8)?;
    if let Some(what) = forbidden(&view) {
        return Err(IcmpError::Forbidden(what));
    }
    let total_len = view.total_len().max(view.header_len() + 8);
    let quote_len = too_big.len().min(total_len).min(ERROR_LEN_MAX - ipv4::HEADER_LEN - HEADER_LEN);
    let mut packet = vec![0; ipv4::HEADER_LEN + HEADER_LEN + quote_len];
    let header = ipv4::Header {
        tos: TOS_INTERNETWORK_CONTROL,
        dont_fragment: false,
        ..ipv4::Header::new(reporter, view.source(), protocol::ICMP, (HEADER_LEN + quote_len) as u16)
    };
    header.emit_into(&mut packet);
    let message = &mut packet[ipv4::HEADER_LEN..];
    put(message, 0, &[DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED]);
    put(message, 6, &mtu_bytes.to_be_bytes());
    put(message, HEADER_LEN, &too_big[..quote_len]);
    let checksum = checksum::of(message);
    put(message, 2, &checksum.to_be_bytes());
    Ok(packet)
}

/// The rule of RFC 1122, section 3.2.2 that forbids an error about `packet`, if there is one.
fn forbidden(packet: &ipv4::View<'_>) -> Option<&'static str> {
    if packet.fragment_offset_bytes() != 0 {
        return Some("a fragment other than the first");
    }
    if packet.protocol() == protocol::ICMP && !is_query(packet.payload()) {
        return Some("an ICMP error");
    }
    if !is_one_station(packet.source()) {
        return Some("a source address that is not one station");
    }
    if packet.destination().is_multicast() || packet.destination().is_broadcast() {
        return Some("a packet to many stations");
    }
    None
}

/// Whether an ICMP message is known to be a question or its answer (echo, timestamp); all else may be an error.
fn is_query(message: &[u8]) -> bool {
    matches!(message.first(), Some(0 | 8 | 13 | 14))
}

fn is_one_station(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORTER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);

    fn packet(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 20 + payload.len()];
        let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
        ipv4::Header::new(source, destination, protocol, payload.len() as u16).emit_into(&mut bytes);
        bytes[20..].copy_from_slice(payload);
        bytes
    }

    #[test]
    fn message_whole() {
        let too_big = packet([20, 0, 0, 7], [20, 0, 0, 9], protocol::UDP, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut expected = vec![
            0x45, 0xc0, 0x00, 0x38, 0x00, 0x00, 0x00, 0x00, 0x40, 0x01, 0x51, 0xfe, // IPv4, 56 bytes, ICMP
            20, 0, 0, 1, 20, 0, 0, 7, // from the reporter to the sender
            0x03, 0x04, 0xe7, 0x33, 0x00, 0x00, 0x05, 0xb4, // fragmentation needed, checksum, next-hop MTU 1460
        ];
        expected.extend_from_slice(&too_big);
        let message = fragmentation_needed(&too_big, REPORTER, 1460).unwrap();
        ipv4::View::new(&message).unwrap().verify_checksum().unwrap();
        assert_eq!(checksum::of(&message[20..]), 0);
        assert_eq!(message, expected);
    }

    #[test]
    fn deconstruct() {
        let too_big = packet([20, 0, 0, 7], [20, 0, 0, 9], protocol::UDP, &[0x55; 8]);
        let message = fragmentation_needed(&too_big, REPORTER, 1500).unwrap();
        let view = View::new(&message[20..]).unwrap();
        assert_eq!((view.message_type(), view.code(), view.next_hop_mtu()), (3, 4, Some(1500)));
        assert_eq!(view.payload(), too_big);
        assert_eq!(View::new(&[8, 0, 0, 0, 0, 1, 0, 9]).unwrap().next_hop_mtu(), None);
        assert!(View::new(&message[20..27]).is_err());
    }

    #[test]
    fn quotes_as_much_as_576_bytes_hold() {
        let too_big = packet([20, 0, 0, 7], [20, 0, 0, 9], protocol::TCP, &[0x77; 1500]);
        let message = fragmentation_needed(&too_big, REPORTER, 1460).unwrap();
        assert_eq!(message.len(), 576);
        assert_eq!(message[28..], too_big[..548]);
        assert_eq!(checksum::of(&message[20..]), 0);
        // Padding after the packet's end is not part of it.
        let mut padded = packet([20, 0, 0, 7], [20, 0, 0, 9], protocol::UDP, &[1; 10]);
        padded.resize(46, 0);
        assert_eq!(fragmentation_needed(&padded, REPORTER, 1460).unwrap().len(), 28 + 30);
    }

    #[test]
    fn errors_about_errors_are_forbidden() {
        let refused = |packet: &[u8]| match fragmentation_needed(packet, REPORTER, 1460) {
            Err(IcmpError::Forbidden(what)) => what,
            other => panic!("{other:?}"),
        };
        let (here, there, data) = ([20, 0, 0, 7], [20, 0, 0, 9], [0; 8]);
        assert_eq!(refused(&packet(here, there, protocol::ICMP, &[3, 4, 0, 0, 0, 0, 0, 0])), "an ICMP error");
        assert_eq!(refused(&packet(here, there, protocol::ICMP, &[5, 0, 0, 0, 0, 0, 0, 0])), "an ICMP error");
        assert!(fragmentation_needed(&packet(here, there, protocol::ICMP, &[8; 8]), REPORTER, 1460).is_ok());
        let many = "a packet to many stations";
        assert_eq!(refused(&packet(here, [224, 0, 0, 5], protocol::UDP, &data)), many);
        assert_eq!(refused(&packet(here, [255; 4], protocol::UDP, &data)), many);
        for source in [[0; 4], [127, 0, 0, 1], [224, 0, 0, 5], [255; 4]] {
            assert_eq!(
                refused(&packet(source, there, protocol::UDP, &data)),
                "a source address that is not one station"
            );
        }
        let mut fragment = packet(here, there, protocol::UDP, &data);
        fragment[7] = 1;
        assert_eq!(refused(&fragment), "a fragment other than the first");
        fragment[6..8].copy_from_slice(&[0x20, 0]);
        assert!(fragmentation_needed(&fragment, REPORTER, 1460).is_ok(), "the first fragment may be answered");
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let good = packet([20, 0, 0, 7], [20, 0, 0, 9], protocol::UDP, &[0; 8]);
        for len in 0..good.len() {
            let error = fragmentation_needed(&good[..len], REPORTER, 1460).unwrap_err();
            assert!(matches!(error, IcmpError::Parse(ParseError::Truncated { .. })), "{len}: {error:?}");
        }
    }
}
