//! The IPv4 header (RFC 791), its checksum (RFC 1071, RFC 1624) and its ECN field (RFC 3168).

use std::net::Ipv4Addr;

use crate::bytes::{ipv4_at, put, u16_at};
use crate::checksum;
use crate::error::{ParseError, need};

/// Length of a header without options, bytes.
pub const HEADER_LEN: usize = 20;

/// Length of the longest packet, bytes.
pub const PACKET_LEN_MAX: usize = 65_535;

/// Protocol numbers that weft handles (IANA "Assigned Internet Protocol Numbers").
pub mod protocol {
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// IPv4 in IPv4 (RFC 2003).
    pub const IPV4: u8 = 4;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// OSPF (RFC 2328).
    pub const OSPF: u8 = 89;
}

/// Offsets inside the header.
mod field {
    pub(super) const VERSION_IHL: usize = 0;
    pub(super) const TOS: usize = 1;
    pub(super) const TOTAL_LENGTH: usize = 2;
    pub(super) const IDENTIFICATION: usize = 4;
    pub(super) const FLAGS_OFFSET: usize = 6;
    pub(super) const TTL: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: usize = 10;
    pub(super) const SOURCE: usize = 12;
    pub(super) const DESTINATION: usize = 16;
}

const RESERVED_FLAG: u16 = 0x8000;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// The ECN field: the low two bits of the type-of-service byte (RFC 3168, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender's transport does not understand ECN.
    NotEct = 0b00,
    /// ECN-capable transport, code point 1.
    Ect1 = 0b01,
    /// ECN-capable transport, code point 0.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// All four code points, in the order of RFC 6040's tables.
    pub const ALL: [Self; 4] = [Self::NotEct, Self::Ect0, Self::Ect1, Self::Ce];

    /// The ECN field of a type-of-service byte.
    pub const fn of_tos(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The type-of-service byte `tos` with its ECN field replaced by this one.
    pub const fn in_tos(self, tos: u8) -> u8 {
        tos & !0b11 | self as u8
    }
}

/// A checked look at an IPv4 packet, options included.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Looks at a whole packet. Bytes after the packet's end (Ethernet padding) are cut off.
    ///
    /// The checksum is not verified: see [`View::verify_checksum`].
    ///
    /// # Errors
    /// Those of [`View::of_prefix`]; [`ParseError::Length`] when the total length does not even cover the header;
    /// [`ParseError::Truncated`] when it reaches beyond `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let prefix = Self::of_prefix(bytes)?;
        let total = prefix.total_len();
        if total < prefix.header_len() {
            return Err(ParseError::Length { expected_bytes: prefix.header_len(), found_bytes: total });
        }
        need(bytes, total)?;
        Ok(Self { bytes: &bytes[..total] })
    }

    /// Looks at a packet of which only the header has to be there, as in a truncated capture or an ICMP quotation.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::Version`], or [`ParseError::Length`] for a header length below 20
    /// bytes.
    pub fn of_prefix(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        let view = Self { bytes };
        let version = bytes[field::VERSION_IHL] >> 4;
        if version != 4 {
            return Err(ParseError::Version(version));
        }
        if view.header_len() < HEADER_LEN {
            return Err(ParseError::Length { expected_bytes: HEADER_LEN, found_bytes: view.header_len() });
        }
        need(bytes, view.header_len())?;
        Ok(view)
    }

    /// Length of the header with its options, bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes[field::VERSION_IHL] & 0x0f) * 4
    }

    /// The type-of-service byte: DSCP and ECN.
    pub fn tos(&self) -> u8 {
        self.bytes[field::TOS]
    }

    /// The differentiated services code point, 0 to 63 (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.tos() >> 2
    }

    /// The ECN field.
    pub fn ecn(&self) -> Ecn {
        Ecn::of_tos(self.tos())
    }

    /// Length of header and payload as the header says, bytes.
    pub fn total_len(&self) -> usize {
        u16_at(self.bytes, field::TOTAL_LENGTH).into()
    }

    /// The number that the fragments of one packet share.
    pub fn identification(&self) -> u16 {
        u16_at(self.bytes, field::IDENTIFICATION)
    }

    /// Whether routers must not fragment the packet.
    pub fn dont_fragment(&self) -> bool {
        self.flags_offset() & DONT_FRAGMENT != 0
    }

    /// Whether fragments follow this one.
    pub fn more_fragments(&self) -> bool {
        self.flags_offset() & MORE_FRAGMENTS != 0
    }

    /// Where this fragment's payload belongs, bytes.
    pub fn fragment_offset_bytes(&self) -> usize {
        usize::from(self.flags_offset() & OFFSET_MASK) * 8
    }

    /// Whether this is a part of a larger packet.
    pub fn is_fragment(&self) -> bool {
        self.flags_offset() & (MORE_FRAGMENTS | OFFSET_MASK) != 0
    }

    /// Hops left.
    pub fn ttl(&self) -> u8 {
        self.bytes[field::TTL]
    }

    /// Protocol of the payload: see [`protocol`].
    pub fn protocol(&self) -> u8 {
        self.bytes[field::PROTOCOL]
    }

    /// The header checksum as received.
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, field::CHECKSUM)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, field::SOURCE)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, field::DESTINATION)
    }

    /// The bytes after the header; after [`View::of_prefix`] possibly fewer than the packet had.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }

    /// The whole packet: header and payload.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the header checksum sums up.
    ///
    /// # Errors
    /// [`ParseError::Checksum`] with the checksum as received.
    pub fn verify_checksum(&self) -> Result<(), ParseError> {
        match checksum::of(&self.bytes[..self.header_len()]) {
            0 => Ok(()),
            _ => Err(ParseError::Checksum(self.checksum())),
        }
    }

    fn flags_offset(&self) -> u16 {
        u16_at(self.bytes, field::FLAGS_OFFSET)
    }
}

/// An IPv4 header without options, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Type of service: DSCP and ECN.
    pub tos: u8,
    /// The number that the fragments of one packet share.
    pub identification: u16,
    /// Whether routers must not fragment the packet.
    pub dont_fragment: bool,
    /// Whether fragments follow this one.
    pub more_fragments: bool,
    /// Where this fragment's payload belongs, in units of 8 bytes, below 8192.
    pub fragment_offset_units: u16,
    /// Hops left.
    pub ttl: u8,
    /// Protocol of the payload: see [`protocol`].
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Length of what follows the header, bytes, at most 65515.
    pub payload_len: u16,
}

impl Header {
    /// A header for a whole packet that must not be fragmented, TTL 64.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload_len: u16) -> Self {
        Self {
            tos: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset_units: 0,
            ttl: 64,
            protocol,
            source,
            destination,
            payload_len,
        }
    }

    /// Reads and verifies the header of a whole packet.
    ///
    /// # Errors
    /// Those of [`View::new`], a wrong checksum, the reserved flag set, or options ([`ParseError::Length`]), which
    /// this value cannot hold.
    pub fn parse(packet: &[u8]) -> Result<Self, ParseError> {
        let view = View::new(packet)?;
        view.verify_checksum()?;
        if view.header_len() != HEADER_LEN {
            return Err(ParseError::Length { expected_bytes: HEADER_LEN, found_bytes: view.header_len() });
        }
        if view.flags_offset() & RESERVED_FLAG != 0 {
            return Err(ParseError::Reserved);
        }
        Ok(Self {
            tos: view.tos(),
            identification: view.identification(),
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset_units: view.flags_offset() & OFFSET_MASK,
            ttl: view.ttl(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            payload_len: (view.total_len() - HEADER_LEN) as u16,
        })
    }

    /// Length of the header, bytes.
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header with its checksum to the first 20 bytes of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter.
    pub fn emit_into(&self, buffer: &mut [u8]) {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let flags_offset = flag(self.dont_fragment, DONT_FRAGMENT)
            | flag(self.more_fragments, MORE_FRAGMENTS)
            | self.fragment_offset_units & OFFSET_MASK;
        let total_len = self.payload_len.saturating_add(HEADER_LEN as u16);
        buffer[field::VERSION_IHL] = 0x45;
        buffer[field::TOS] = self.tos;
        put(buffer, field::TOTAL_LENGTH, &total_len.to_be_bytes());
        put(buffer, field::IDENTIFICATION, &self.identification.to_be_bytes());
        put(buffer, field::FLAGS_OFFSET, &flags_offset.to_be_bytes());
        buffer[field::TTL] = self.ttl;
        buffer[field::PROTOCOL] = self.protocol;
        put(buffer, field::CHECKSUM, &[0, 0]);
        put(buffer, field::SOURCE, &self.source.octets());
        put(buffer, field::DESTINATION, &self.destination.octets());
        let checksum = checksum::of(&buffer[..HEADER_LEN]);
        put(buffer, field::CHECKSUM, &checksum.to_be_bytes());
    }
}

/// Replaces the ECN field of the packet in `packet` and adjusts its checksum by the difference (RFC 1624), so that a
/// header that was damaged before stays visibly damaged.
///
/// # Errors
/// Those of [`View::of_prefix`].
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> Result<(), ParseError> {
    let view = View::of_prefix(packet)?;
    let before = u16_at(packet, field::VERSION_IHL);
    let checksum = view.checksum();
    packet[field::TOS] = ecn.in_tos(packet[field::TOS]);
    let after = u16_at(packet, field::VERSION_IHL);
    if before != after {
        put(packet, field::CHECKSUM, &checksum::replaced(checksum, before, after).to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
