//! A whole TRILL data frame, checked once: outer Ethernet, header, inner Ethernet with its label (RFC 6325 section 4.1).
//!
//! ```text
//! outer destination 6, source 6 | [8100 TCI] | 22f3 | header 6 or 10 | inner destination 6, source 6 | label | Ethertype | payload
//! label: 8100 TCI (VLAN)   or   893b TCI 893b TCI (fine-grained, RFC 7172 section 2.3)
//! ```

use super::{ETHERTYPE, Header};
use crate::bytes::{array, u16_at};
use crate::error::{ParseError, need};
use crate::ethernet::{self, MacAddress, ethertype};
use crate::vlan::TAG_LEN;

/// Ethertype of both halves of a fine-grained label (RFC 7172 section 2.3).
pub const FINE_GRAINED: u16 = 0x893b;
/// Ethertype of an RBridge Channel message (RFC 7178 section 7.2).
pub const RBRIDGE_CHANNEL: u16 = 0x8946;

const VLAN_MASK: u16 = 0x0fff;
const PRIORITY_SHIFT: u16 = 13;

/// Which of the customers' networks an inner frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// A VLAN tag.
    Vlan {
        /// VLAN, 0 to 4095; 0 and 4095 name none.
        vlan: u16,
        /// Priority, 0 to 7.
        priority: u8,
    },
    FineGrained {
        /// Label, 24 bits.
        label: u32,
        /// Priority in transit, 0 to 7.
        priority: u8,
        /// Priority that the frame came with, 0 to 7.
        priority_original: u8,
    },
}

/// A data frame whose every length and fixed field is right.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    outer: &'a [u8],
    header: Header,
    inner: &'a [u8],
    label: Label,
    label_len: usize,
}

impl<'a> View<'a> {
    /// Looks at a frame that starts with its outer destination. At most one outer VLAN tag is taken off.
    ///
    /// # Errors
    /// Truncated anywhere before the inner payload, [`ParseError::Protocol`] for another Ethertype or an inner frame
    /// without a label, and those of [`Header::parse`].
    pub fn new(outer: &'a [u8]) -> Result<Self, ParseError> {
        need(outer, ethernet::HEADER_LEN)?;
        let mut at = ethernet::HEADER_LEN;
        let mut kind = u16_at(outer, 12);
        if kind == ethertype::VLAN {
            at += TAG_LEN;
            need(outer, at)?;
            kind = u16_at(outer, at - 2);
        }
        if kind != ETHERTYPE {
            return Err(ParseError::Protocol(kind));
        }
        let header = Header::parse(&outer[at..])?;
        let inner = &outer[at + header.buffer_len()..];
        let (label, label_len) = read_label(inner)?;
        Ok(Self { outer, header, inner, label, label_len })
    }

    /// Outer destination.
    pub fn outer_destination(&self) -> MacAddress {
        MacAddress(array(self.outer, 0))
    }

    /// Outer source: the RBridge that sent the frame over this link.
    pub fn outer_source(&self) -> MacAddress {
        MacAddress(array(self.outer, 6))
    }

    /// VLAN of the outer tag, if there is one.
    pub fn outer_vlan(&self) -> Option<u16> {
        (u16_at(self.outer, 12) == ethertype::VLAN).then(|| u16_at(self.outer, 14) & VLAN_MASK)
    }

    /// The TRILL header.
    pub fn header(&self) -> Header {
        self.header
    }

    /// Inner destination.
    pub fn inner_destination(&self) -> MacAddress {
        MacAddress(array(self.inner, 0))
    }

    /// Inner source.
    pub fn inner_source(&self) -> MacAddress {
        MacAddress(array(self.inner, 6))
    }

    /// The inner frame's label.
    pub fn label(&self) -> Label {
        self.label
    }

    /// What the inner payload is.
    pub fn inner_ethertype(&self) -> u16 {
        u16_at(self.inner, self.payload_offset() - 2)
    }

    /// The inner payload, padding included.
    pub fn payload(&self) -> &'a [u8] {
        &self.inner[self.payload_offset()..]
    }

    fn payload_offset(&self) -> usize {
        ethernet::HEADER_LEN + self.label_len
    }
}

/// The label behind the inner addresses and its length in bytes.
fn read_label(inner: &[u8]) -> Result<(Label, usize), ParseError> {
    need(inner, ethernet::HEADER_LEN + TAG_LEN)?;
    let (kind, control) = (u16_at(inner, 12), u16_at(inner, 14));
    let priority = (control >> PRIORITY_SHIFT) as u8;
    match kind {
        ethertype::VLAN => Ok((vlan_label(control), TAG_LEN)),
        FINE_GRAINED => {
            need(inner, ethernet::HEADER_LEN + 2 * TAG_LEN)?;
            let (second_kind, second) = (u16_at(inner, 16), u16_at(inner, 18));
            if second_kind != FINE_GRAINED {
                return Err(ParseError::Protocol(second_kind));
            }
            let label = u32::from(control & VLAN_MASK) << 12 | u32::from(second & VLAN_MASK);
            let priority_original = (second >> PRIORITY_SHIFT) as u8;
            Ok((Label::FineGrained { label, priority, priority_original }, 2 * TAG_LEN))
        }
        other => Err(ParseError::Protocol(other)),
    }
}

pub(super) fn vlan_label(control: u16) -> Label {
    Label::Vlan { vlan: control & VLAN_MASK, priority: (control >> PRIORITY_SHIFT) as u8 }
}

/// The inner frame with its label, as it goes behind the header.
///
/// Values that do not fit their field lose their upper bits.
pub fn emit_inner(destination: MacAddress, source: MacAddress, label: Label, kind: u16, payload: &[u8]) -> Vec<u8> {
    let control = |priority: u8, id: u16| (u16::from(priority & 7) << PRIORITY_SHIFT | id & VLAN_MASK).to_be_bytes();
    let mut frame = [destination.0, source.0].concat();
    let mut tag = |kind: u16, control: [u8; 2]| {
        frame.extend_from_slice(&kind.to_be_bytes());
        frame.extend_from_slice(&control);
    };
    match label {
        Label::Vlan { vlan, priority } => tag(ethertype::VLAN, control(priority, vlan)),
        Label::FineGrained { label, priority, priority_original } => {
            tag(FINE_GRAINED, control(priority, (label >> 12) as u16));
            tag(FINE_GRAINED, control(priority_original, label as u16));
        }
    }
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
