//! TRILL's header between the outer and the inner Ethernet header (RFC 6325 section 3 as updated by RFC 7780 section 10).
//!
//! ```text
//! 0 V=0 (2) A (1) C (1) M (1) RESV=0 (4) F (1) hop count (6)   2 egress nickname   4 ingress nickname   [6 flags word, if F]
//! ```
//!
//! The flags word (RFC 7780 section 10.3) says in three summary bits who must understand the rest:
//!
//! ```text
//! 0 CHbH  1 CItE  2 CRSV   3-7 critical hop by hop   8-13 non-critical hop by hop   14-16 extended hop count
//! 17-20 non-critical reserved   21-26 critical ingress to egress   27-31 non-critical ingress to egress
//! ```
//!
//! [`frame`] reads a whole data frame, inner label included, [`elided`] one without outer header, [`channel`] messages between
//! RBridges inside one; [`nickname`] names the values that are no RBridge's.

pub mod channel;
pub mod elided;
pub mod frame;
pub mod nickname;

use crate::bytes::{put, u16_at, u32_at};
use crate::error::{ParseError, need};
use crate::ethernet::{self, MacAddress};

/// Length of the header without a flags word, bytes.
pub const HEADER_LEN: usize = 6;
/// Length of the flags word, bytes.
pub const FLAGS_LEN: usize = 4;
/// Length of the VLAN tag that every inner frame carries (RFC 6325 section 4.1.1), bytes.
pub const INNER_TAG_LEN: usize = 4;
/// So much longer is a payload in a TRILL data frame than in an ordinary frame, bytes: TRILL header, inner Ethernet header and
/// inner tag.
pub const OVERHEAD_BYTES: usize = HEADER_LEN + ethernet::HEADER_LEN + INNER_TAG_LEN;
/// Ethertype of a TRILL data frame (RFC 6325 section 7.2).
pub const ETHERTYPE: u16 = 0x22f3;
/// Largest hop count.
pub const HOP_COUNT_MAX: u8 = 0x3f;
/// Outer destination of every multi-destination data frame (RFC 6325 section 7.1).
pub const ALL_RBRIDGES: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x40]);
/// Destination of every multicast TRILL IS-IS frame (RFC 6325 section 7.1).
pub const ALL_IS_IS_RBRIDGES: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x41]);
/// Inner destination of ESADI and RBridge Channel frames to every egress (RFC 7178 section 2.1.2).
pub const ALL_EGRESS_RBRIDGES: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x42]);

const VERSION_SHIFT: u16 = 14;
const ALERT: u16 = 1 << 13;
const COLOR: u16 = 1 << 12;
const MULTI_DESTINATION: u16 = 1 << 11;
const RESERVED: u16 = 0xf << 7;
const FLAGS: u16 = 1 << 6;

/// Whether `destination` is one of the sixteen group addresses set aside for TRILL (RFC 6325 section 7.1).
///
/// Those without a meaning here must be discarded as an outer destination (RFC 6325 section 1.4, "TRILL other").
pub fn is_trill_group(destination: MacAddress) -> bool {
    let [head @ .., last] = destination.0;
    head == [0x01, 0x80, 0xc2, 0, 0] && last & 0xf0 == 0x40
}

/// The flags word (RFC 7780 section 10.3), as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct FlagsWord(pub u32);

impl FlagsWord {
    const CRITICAL_HOP_BY_HOP: u32 = 1 << 31;
    const CRITICAL_INGRESS_TO_EGRESS: u32 = 1 << 30;

    /// Whether a transit RBridge that knows none of the flags must drop the frame (RFC 6325 section 3.8).
    pub const fn stops_transit(self) -> bool {
        self.0 & Self::CRITICAL_HOP_BY_HOP != 0
    }

    /// Whether an egress RBridge that knows none of the flags must drop the frame (RFC 6325 section 3.8).
    pub const fn stops_egress(self) -> bool {
        self.0 & (Self::CRITICAL_HOP_BY_HOP | Self::CRITICAL_INGRESS_TO_EGRESS) != 0
    }
}

/// The header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// "A", alert: the frame carries an OAM message (RFC 7455 section 3.2). Never part of a flow's hash.
    pub alert: bool,
    /// "C", color: which of two trees (RFC 7780 section 10). Never part of a flow's hash.
    pub color: bool,
    /// "M": the frame is for many; the egress nickname is the root of a tree.
    pub multi_destination: bool,
    /// RBridges that may still forward the frame, at most [`HOP_COUNT_MAX`].
    pub hop_count: u8,
    /// Nickname of the RBridge, or of the tree's root, that the frame goes to.
    pub egress: u16,
    /// Nickname of the RBridge that the frame came in at.
    pub ingress: u16,
    /// The flags word, if there is one.
    pub flags: Option<FlagsWord>,
}

impl Header {
    /// A header for one egress, with the largest hop count and no flags.
    pub const fn unicast(ingress: u16, egress: u16) -> Self {
        let hop_count = HOP_COUNT_MAX;
        Self { alert: false, color: false, multi_destination: false, hop_count, egress, ingress, flags: None }
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 6 bytes, or 10 with a flags word; [`ParseError::Version`] other than 0;
    /// [`ParseError::Reserved`] if a RESV bit is set (RFC 7780 section 10: the frame must be dropped).
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        let word = u16_at(bytes, 0);
        if word >> VERSION_SHIFT != 0 {
            return Err(ParseError::Version((word >> VERSION_SHIFT) as u8));
        }
        if word & RESERVED != 0 {
            return Err(ParseError::Reserved);
        }
        let mut flags = None;
        if word & FLAGS != 0 {
            need(bytes, HEADER_LEN + FLAGS_LEN)?;
            flags = Some(FlagsWord(u32_at(bytes, HEADER_LEN)));
        }
        Ok(Self {
            alert: word & ALERT != 0,
            color: word & COLOR != 0,
            multi_destination: word & MULTI_DESTINATION != 0,
            hop_count: word as u8 & HOP_COUNT_MAX,
            egress: u16_at(bytes, 2),
            ingress: u16_at(bytes, 4),
            flags,
        })
    }

    /// Length of the header, bytes: 6, or 10 with a flags word.
    pub const fn buffer_len(&self) -> usize {
        if self.flags.is_some() { HEADER_LEN + FLAGS_LEN } else { HEADER_LEN }
    }

    /// Writes the header to the start of `buffer`. A hop count above [`HOP_COUNT_MAX`] loses its upper bits.
    ///
    /// # Panics
    /// When `buffer` is shorter than [`Header::buffer_len`].
    pub fn emit_into(&self, buffer: &mut [u8]) {
        let bit = |set: bool, mask: u16| if set { mask } else { 0 };
        let word = bit(self.alert, ALERT)
            | bit(self.color, COLOR)
            | bit(self.multi_destination, MULTI_DESTINATION)
            | bit(self.flags.is_some(), FLAGS)
            | u16::from(self.hop_count & HOP_COUNT_MAX);
        put(buffer, 0, &word.to_be_bytes());
        put(buffer, 2, &self.egress.to_be_bytes());
        put(buffer, 4, &self.ingress.to_be_bytes());
        if let Some(FlagsWord(flags)) = self.flags {
            put(buffer, HEADER_LEN, &flags.to_be_bytes());
        }
    }

    /// The header's bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.buffer_len()];
        self.emit_into(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests;
