//! TRILL's header between the outer and the inner Ethernet header (RFC 6325 section 3).
//!
//! ```text
//! 0 version (2) reserved (2) M (1) options length (5) hop count (6)   2 egress nickname   4 ingress nickname
//! ```

use crate::bytes::u16_at;
use crate::error::{ParseError, need};

/// Length of the header without options, bytes.
pub const HEADER_LEN: usize = 6;
/// Length of the VLAN tag that every inner frame carries (RFC 6325 section 4.1.1), bytes.
pub const INNER_TAG_LEN: usize = 4;
/// Ethertype of a TRILL data frame (RFC 6325 section 7.2).
pub const ETHERTYPE: u16 = 0x22f3;
/// Largest hop count.
pub const HOP_COUNT_MAX: u8 = 0x3f;

const VERSION_SHIFT: u16 = 14;
const MULTI_DESTINATION: u16 = 1 << 11;
const OPTIONS: u16 = 0x1f << 6;

/// The header without options as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// "M": the frame is for many; the egress nickname is the root of a tree.
    pub multi_destination: bool,
    /// RBridges that may still forward the frame, at most [`HOP_COUNT_MAX`].
    pub hop_count: u8,
    /// Nickname of the RBridge, or of the tree's root, that the frame goes to.
    pub egress: u16,
    /// Nickname of the RBridge that the frame came in at.
    pub ingress: u16,
}

impl Header {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 6 bytes, [`ParseError::Version`] other than 0, [`ParseError::Reserved`] for options.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        let word = u16_at(bytes, 0);
        if word >> VERSION_SHIFT != 0 {
            return Err(ParseError::Version((word >> VERSION_SHIFT) as u8));
        }
        if word & OPTIONS != 0 {
            return Err(ParseError::Reserved);
        }
        Ok(Self {
            multi_destination: word & MULTI_DESTINATION != 0,
            hop_count: word as u8 & HOP_COUNT_MAX,
            egress: u16_at(bytes, 2),
            ingress: u16_at(bytes, 4),
        })
    }

    /// The header's bytes.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let many = if self.multi_destination { MULTI_DESTINATION } else { 0 };
        let word = (many | u16::from(self.hop_count & HOP_COUNT_MAX)).to_be_bytes();
        let (egress, ingress) = (self.egress.to_be_bytes(), self.ingress.to_be_bytes());
        [word[0], word[1], egress[0], egress[1], ingress[0], ingress[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_rfc_6325_comes_back() {
        let header = Header { multi_destination: true, hop_count: 0x3f, egress: 0x0102, ingress: 0xa0b0 };
        assert_eq!(header.to_bytes(), [0x08, 0x3f, 1, 2, 0xa0, 0xb0]);
        assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
        let unicast = Header { multi_destination: false, hop_count: 1, ..header };
        assert_eq!(Header::parse(&unicast.to_bytes()), Ok(unicast));
    }

    #[test]
    fn other_versions_options_and_short_headers_are_refused() {
        for first in [[0x40, 0], [0x00, 0x40], [0x04, 0]] {
            assert!(Header::parse(&[first[0], first[1], 0, 1, 0, 2]).is_err(), "{first:x?}");
        }
        assert!(Header::parse(&[0; 5]).is_err());
    }
}
