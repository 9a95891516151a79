//! VXLAN: an Ethernet frame in UDP with a 24-bit network number (RFC 7348 section 5).
//!
//! ```text
//! 0 flags (bit 3: the VNI is valid)   1 reserved (3)   4 VNI (3)   7 reserved
//! ```

use crate::bytes::u32_at;
use crate::error::{ParseError, need};
use crate::{ethernet, ipv4, udp};

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 8;
/// So much longer is a VM's IP packet in the underlay, bytes: its own Ethernet header, VXLAN, UDP and IPv4.
pub const OVERHEAD_BYTES: usize = ethernet::HEADER_LEN + HEADER_LEN + udp::HEADER_LEN + ipv4::HEADER_LEN;
/// Destination port of the UDP datagrams (RFC 7348 section 5).
pub const UDP_PORT: u16 = 4789;
/// Largest VNI.
pub const VNI_MAX: u32 = 0x00ff_ffff;
/// "I": the VNI is valid.
const VALID: u8 = 1 << 3;

/// The header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// VXLAN network identifier; of more than 24 bits the lower 24 are sent.
    pub vni: u32,
}

impl Header {
    /// Reads the header at the start of `bytes`. Reserved bits are ignored, as the RFC asks.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 8 bytes, [`ParseError::Kind`] without the valid bit.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        if bytes[0] & VALID == 0 {
            return Err(ParseError::Kind(u16::from(bytes[0])));
        }
        Ok(Self { vni: u32_at(bytes, 4) >> 8 })
    }

    /// The header's bytes.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [_, high, middle, low] = self.vni.to_be_bytes();
        [VALID, 0, 0, 0, high, middle, low, 0]
    }
}

/// The source port that carries a flow's hash, so that routers spread flows over equal paths: 49152 to 65535, as section 5
/// asks.
pub fn source_port(flow_hash: u32) -> u16 {
    0xc000 | (flow_hash & 0x3fff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_rfc_7348_comes_back() {
        let header = Header { vni: 0x01_02_03 };
        assert_eq!(header.to_bytes(), [8, 0, 0, 0, 1, 2, 3, 0]);
        assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
        assert_eq!(Header::parse(&[0xff, 9, 9, 9, 1, 2, 3, 9]), Ok(header), "reserved bits are ignored");
    }

    #[test]
    fn a_header_that_is_short_or_names_no_network_is_refused() {
        assert!(Header::parse(&[8; 7]).is_err());
        assert!(Header::parse(&[0xf7, 0, 0, 0, 1, 2, 3, 0]).is_err());
    }

    #[test]
    fn source_ports_are_dynamic_ones() {
        assert_eq!([0, 0x1234_5678, u32::MAX].map(source_port), [49152, 0xd678, 65535]);
    }
}
