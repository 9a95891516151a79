//! ARP for IPv4 over Ethernet (RFC 826): the question that the VL2 agent intercepts and answers itself (VL2 4.2.1).

use std::net::Ipv4Addr;

use crate::bytes::{array, ipv4_at, put, u16_at};
use crate::error::{ParseError, need};
use crate::ethernet::{self, MacAddress, ethertype};

/// Length of a packet, bytes.
pub const PACKET_LEN: usize = 28;

/// Offsets, with the field names of RFC 826.
mod field {
    pub(super) const HRD: usize = 0;
    pub(super) const PRO: usize = 2;
    pub(super) const HLN: usize = 4;
    pub(super) const OP: usize = 6;
    pub(super) const SHA: usize = 8;
    pub(super) const SPA: usize = 14;
    pub(super) const THA: usize = 18;
    pub(super) const TPA: usize = 24;
}

/// Hardware type of Ethernet.
const ETHERNET: u16 = 1;

/// Hardware and protocol address lengths, 6 and 4, as one number.
const ADDRESS_LENS: u16 = 0x0604;

/// Question or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Who has the target's address?
    Request = 1,
    /// The sender has it.
    Reply = 2,
}

/// A checked look at an ARP packet.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
    operation: Operation,
}

impl<'a> View<'a> {
    /// Looks at a packet that starts after the Ethernet header. Bytes after its end (padding) are ignored.
    ///
    /// # Errors
    /// [`ParseError::Truncated`]; [`ParseError::Protocol`] for another hardware or protocol type;
    /// [`ParseError::Length`] for other address lengths; [`ParseError::Kind`] for another operation.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, PACKET_LEN)?;
        for (offset, expected) in [(field::HRD, ETHERNET), (field::PRO, ethertype::IPV4)] {
            let found = u16_at(bytes, offset);
            if found != expected {
                return Err(ParseError::Protocol(found));
            }
        }
        if u16_at(bytes, field::HLN) != ADDRESS_LENS {
            let found_bytes = usize::from(bytes[field::HLN]) + usize::from(bytes[field::HLN + 1]);
            return Err(ParseError::Length { expected_bytes: 6 + 4, found_bytes });
        }
        let operation = match u16_at(bytes, field::OP) {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => return Err(ParseError::Kind(other)),
        };
        Ok(Self { bytes: &bytes[..PACKET_LEN], operation })
    }

    /// Question or answer.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Hardware address of the sender.
    pub fn sender_mac(&self) -> MacAddress {
        MacAddress(array(self.bytes, field::SHA))
    }

    /// IPv4 address of the sender.
    pub fn sender_ip(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, field::SPA)
    }

    /// Hardware address of the target; without meaning in a request.
    pub fn target_mac(&self) -> MacAddress {
        MacAddress(array(self.bytes, field::THA))
    }

    /// IPv4 address of the target.
    pub fn target_ip(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, field::TPA)
    }
}

/// An ARP packet as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Question or answer.
    pub operation: Operation,
    /// Hardware address of the sender.
    pub sender_mac: MacAddress,
    /// IPv4 address of the sender.
    pub sender_ip: Ipv4Addr,
    /// Hardware address of the target; zero in a request.
    pub target_mac: MacAddress,
    /// IPv4 address of the target.
    pub target_ip: Ipv4Addr,
}

impl Packet {
    /// The question of (`sender_mac`, `sender_ip`) who has `target_ip`.
    pub const fn request(sender_mac: MacAddress, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Self {
        Self { operation: Operation::Request, sender_mac, sender_ip, target_mac: MacAddress([0; 6]), target_ip }
    }

    /// The answer to this question: `mac` has the address asked for.
    #[must_use]
    pub const fn reply(&self, mac: MacAddress) -> Self {
        Self {
            operation: Operation::Reply,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
        }
    }

    /// Reads a packet that starts after the Ethernet header.
    ///
    /// # Errors
    /// Those of [`View::new`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let view = View::new(bytes)?;
        Ok(Self {
            operation: view.operation(),
            sender_mac: view.sender_mac(),
            sender_ip: view.sender_ip(),
            target_mac: view.target_mac(),
            target_ip: view.target_ip(),
        })
    }

    /// Length of the packet, bytes.
    pub const fn buffer_len(&self) -> usize {
        PACKET_LEN
    }

    /// Writes the packet to the first 28 bytes of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter.
    pub fn emit_into(&self, buffer: &mut [u8]) {
        put(buffer, field::HRD, &ETHERNET.to_be_bytes());
        put(buffer, field::PRO, &ethertype::IPV4.to_be_bytes());
        put(buffer, field::HLN, &ADDRESS_LENS.to_be_bytes());
        put(buffer, field::OP, &(self.operation as u16).to_be_bytes());
        put(buffer, field::SHA, &self.sender_mac.0);
        put(buffer, field::SPA, &self.sender_ip.octets());
        put(buffer, field::THA, &self.target_mac.0);
        put(buffer, field::TPA, &self.target_ip.octets());
    }

    /// The whole Ethernet frame: a request goes to all stations, a reply to its target.
    pub fn to_frame(&self) -> Vec<u8> {
        let destination = match self.operation {
            Operation::Request => MacAddress::BROADCAST,
            Operation::Reply => self.target_mac,
        };
        let mut packet = [0; PACKET_LEN];
        self.emit_into(&mut packet);
        ethernet::Header { destination, source: self.sender_mac, ethertype: ethertype::ARP }.emit_with(&packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [u8; 28] = [
        0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01, // Ethernet, IPv4, 6, 4, request
        0x02, 0x00, 0x00, 0x00, 0x00, 0x07, 20, 0, 0, 7, // sender
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 20, 0, 0, 9, // target
    ];
    const HOST: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 7]);
    const VIRTUAL: MacAddress = MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01]);

    fn request() -> Packet {
        Packet::request(HOST, Ipv4Addr::new(20, 0, 0, 7), Ipv4Addr::new(20, 0, 0, 9))
    }

    #[test]
    fn deconstruct() {
        let view = View::new(&REQUEST).unwrap();
        assert_eq!(view.operation(), Operation::Request);
        assert_eq!((view.sender_mac(), view.sender_ip()), (HOST, Ipv4Addr::new(20, 0, 0, 7)));
        assert_eq!((view.target_mac(), view.target_ip()), (MacAddress([0; 6]), Ipv4Addr::new(20, 0, 0, 9)));
    }

    #[test]
    fn parse_with_padding() {
        let mut padded = REQUEST.to_vec();
        padded.resize(46, 0);
        assert_eq!(Packet::parse(&padded), Ok(request()));
    }

    #[test]
    fn emit() {
        let mut buffer = [0xa5; 30];
        request().emit_into(&mut buffer);
        assert_eq!(buffer[..28], REQUEST);
        assert_eq!(buffer[28..], [0xa5, 0xa5]);
    }

    #[test]
    fn reply_frame_whole() {
        let expected = [
            0x02, 0x00, 0x00, 0x00, 0x00, 0x07, 0x02, 0x56, 0x4c, 0x32, 0x00, 0x01, 0x08, 0x06, // to the asker
            0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x02, // Ethernet, IPv4, 6, 4, reply
            0x02, 0x56, 0x4c, 0x32, 0x00, 0x01, 20, 0, 0, 9, // sender
            0x02, 0x00, 0x00, 0x00, 0x00, 0x07, 20, 0, 0, 7, // target
        ];
        assert_eq!(request().reply(VIRTUAL).to_frame(), expected);
        assert_eq!(request().to_frame()[..6], [0xff; 6]);
    }

    #[test]
    fn refuses_what_is_not_ipv4_over_ethernet() {
        let changed = |offset: usize, value: u8| {
            let mut bytes = REQUEST;
            bytes[offset] = value;
            View::new(&bytes).unwrap_err().reason()
        };
        assert_eq!(changed(1, 6), "protocol");
        assert_eq!(changed(2, 0x86), "protocol");
        assert_eq!(changed(4, 8), "length");
        assert_eq!(changed(5, 16), "length");
        assert_eq!(changed(7, 3), "kind");
        for len in 0..REQUEST.len() {
            assert_eq!(View::new(&REQUEST[..len]).unwrap_err().reason(), "truncated");
        }
    }
}
