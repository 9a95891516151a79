//! The Ethernet II header (IEEE 802.3): 14 bytes, no tags, no frame check sequence.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::bytes::{array, put, u16_at};
use crate::error::{ParseError, need};

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 14;

/// EtherTypes that weft handles (IEEE registry).
pub mod ethertype {
    /// IPv4 (RFC 894).
    pub const IPV4: u16 = 0x0800;
    /// ARP (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// A VLAN tag follows (IEEE 802.1Q).
    pub const VLAN: u16 = 0x8100;
    /// IPv6 (RFC 2464).
    pub const IPV6: u16 = 0x86dd;
}

/// A 48-bit hardware address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Where Ethernet carries what is for a multicast group (RFC 1112 section 6.4).
    pub fn of_ipv4_group(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// Where Ethernet carries what is for an IPv6 multicast group (RFC 2464 section 7).
    pub fn of_ipv6_group(group: Ipv6Addr) -> Self {
        let [.., c, d, e, f] = group.octets();
        Self([0x33, 0x33, c, d, e, f])
    }

    /// Whether the address names a group (broadcast included).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Text that is not a hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address; write six hexadecimal bytes with colons, as in 02:56:4c:32:00:01")]
pub struct MacAddressError;

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<Self, MacAddressError> {
        let mut address = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut address {
            let part = parts.next().ok_or(MacAddressError)?;
            if part.len() != 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(MacAddressError);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| MacAddressError)?;
        }
        if parts.next().is_some() { Err(MacAddressError) } else { Ok(Self(address)) }
    }
}

/// A checked look at a frame.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Looks at a frame that starts with its destination address.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 14 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        Ok(Self { bytes })
    }

    /// Destination address.
    pub fn destination(&self) -> MacAddress {
        MacAddress(array(self.bytes, 0))
    }

    /// Source address.
    pub fn source(&self) -> MacAddress {
        MacAddress(array(self.bytes, 6))
    }

    /// What the payload is: see [`ethertype`].
    pub fn ethertype(&self) -> u16 {
        u16_at(self.bytes, 12)
    }

    /// The bytes after the header, padding included.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}

/// The header as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    pub destination: MacAddress,
    pub source: MacAddress,
    /// What the payload is: see [`ethertype`].
    pub ethertype: u16,
}

impl Header {
    /// Reads the header of a frame.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 14 bytes.
    pub fn parse(frame: &[u8]) -> Result<Self, ParseError> {
        let view = View::new(frame)?;
        Ok(Self { destination: view.destination(), source: view.source(), ethertype: view.ethertype() })
    }

    /// Length of the header, bytes.
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the first 14 bytes of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter.
    pub fn emit_into(&self, buffer: &mut [u8]) {
        put(buffer, 0, &self.destination.0);
        put(buffer, 6, &self.source.0);
        put(buffer, 12, &self.ethertype.to_be_bytes());
    }

    /// A frame of this header and `payload`, without padding.
    pub fn emit_with(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADER_LEN + payload.len()];
        self.emit_into(&mut frame);
        put(&mut frame, HEADER_LEN, payload);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 16] =
        [0x02, 0x56, 0x4c, 0x32, 0x00, 0x01, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x08, 0x00, 0xaa, 0xbb];

    fn header() -> Header {
        let destination = MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01]);
        let source = MacAddress([0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f]);
        Header { destination, source, ethertype: ethertype::IPV4 }
    }

    #[test]
    fn deconstruct() {
        let view = View::new(&FRAME).unwrap();
        assert_eq!(view.destination().to_string(), "02:56:4c:32:00:01");
        assert_eq!(view.source().to_string(), "0a:0b:0c:0d:0e:0f");
        assert_eq!(view.ethertype(), 0x0800);
        assert_eq!(view.payload(), [0xaa, 0xbb]);
    }

    #[test]
    fn parse() {
        assert_eq!(Header::parse(&FRAME), Ok(header()));
    }

    #[test]
    fn construct_and_emit() {
        let mut buffer = [0xa5; 16];
        header().emit_into(&mut buffer);
        assert_eq!(buffer[..14], FRAME[..14]);
        assert_eq!(buffer[14..], [0xa5, 0xa5]);
        assert_eq!(header().emit_with(&[0xaa, 0xbb]), FRAME);
    }

    #[test]
    fn every_shorter_frame_is_truncated() {
        for found_bytes in 0..HEADER_LEN {
            let error = View::new(&FRAME[..found_bytes]).unwrap_err();
            assert_eq!(error, ParseError::Truncated { needed_bytes: 14, found_bytes });
        }
    }

    #[test]
    fn addresses_from_text() {
        assert_eq!("02:56:4C:32:00:01".parse(), Ok(MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01])));
        for bad in
            ["", "02:56:4c:32:00", "02:56:4c:32:00:01:02", "2:56:4c:32:00:01", "02:56:4c:32:00:+1", "zz:0:0:0:0:0"]
        {
            assert_eq!(bad.parse::<MacAddress>(), Err(MacAddressError), "{bad:?}");
        }
    }

    #[test]
    fn groups() {
        assert!(MacAddress::BROADCAST.is_group());
        assert!(MacAddress([0x01, 0, 0x5e, 0, 0, 5]).is_group());
        let group = MacAddress::of_ipv4_group(Ipv4Addr::new(239, 129, 1, 2));
        assert_eq!(group.to_string(), "01:00:5e:01:01:02");
        assert!(!MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01]).is_group());
    }
}
