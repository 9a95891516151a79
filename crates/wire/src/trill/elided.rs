//! A TRILL data frame without its outer Ethernet header: no RFC's, for links where one receiver is and both ends agreed.
//!
//! ```text
//! inner destination 6, source 6 | 88b5 | header 6 | TCI 2 | Ethertype | payload
//! ```
//!
//! The inner frame's own addresses come first, and [`ETHERTYPE`] stands where its tag would say 8100: so the frame is a
//! correct Ethernet frame, and exactly the outer header's 14 bytes shorter. RFC 6361 does the like on PPP. What the short form
//! cannot say goes with its outer header: a flags word, a fine-grained label, an inner destination within
//! 01-80-C2-00-xx-xx.

use super::frame::{self, Label};
use super::{HEADER_LEN, Header, OVERHEAD_BYTES};
use crate::bytes::{array, u16_at};
use crate::error::{ParseError, need};
use crate::ethernet::{self, MacAddress};

/// The first Ethertype that IEEE 802 sets aside for local experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// Length up to the inner payload, bytes.
pub const LEN: usize = OVERHEAD_BYTES;
/// So much shorter is a frame without its outer header, bytes.
pub const SAVED_LEN: usize = ethernet::HEADER_LEN;

/// Of a full frame without outer tag: its header, the inner addresses, and what follows the inner tag's Ethertype.
const FULL_HEADER_AT: usize = ethernet::HEADER_LEN;
const FULL_INNER_AT: usize = FULL_HEADER_AT + HEADER_LEN;
const FULL_CONTROL_AT: usize = FULL_INNER_AT + ethernet::HEADER_LEN;
const CONTROL_AT: usize = ethernet::HEADER_LEN + HEADER_LEN;

/// A frame in the short form whose every length and fixed field is right.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> View<'a> {
    /// Looks at a frame that starts with its inner destination.
    ///
    /// # Errors
    /// Truncated anywhere before the inner payload, [`ParseError::Protocol`] for another Ethertype, those of
    /// [`Header::parse`], and [`ParseError::Reserved`] for a flags word, which the short form does not have.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, LEN)?;
        let kind = u16_at(bytes, 12);
        if kind != ETHERTYPE {
            return Err(ParseError::Protocol(kind));
        }
        let header = Header::parse(&bytes[ethernet::HEADER_LEN..])?;
        if header.flags.is_some() {
            return Err(ParseError::Reserved);
        }
        Ok(Self { bytes, header })
    }

    /// The TRILL header.
    pub fn header(&self) -> Header {
        self.header
    }

    /// Inner destination.
    pub fn inner_destination(&self) -> MacAddress {
        MacAddress(array(self.bytes, 0))
    }

    /// Inner source.
    pub fn inner_source(&self) -> MacAddress {
        MacAddress(array(self.bytes, 6))
    }

    /// The inner frame's label, always a VLAN.
    pub fn label(&self) -> Label {
        frame::vlan_label(u16_at(self.bytes, CONTROL_AT))
    }

    /// What the inner payload is.
    pub fn inner_ethertype(&self) -> u16 {
        u16_at(self.bytes, LEN - 2)
    }

    /// The inner payload, padding included.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[LEN..]
    }
}

/// The short form of a data frame without outer tag; `None` for one that has to keep its outer header.
///
/// # Errors
/// Those of [`frame::View::new`].
pub fn emit(full: &[u8]) -> Result<Option<Vec<u8>>, ParseError> {
    let view = frame::View::new(full)?;
    let has_form = matches!(view.label(), Label::Vlan { .. }) && view.header().flags.is_none();
    if !has_form || view.outer_vlan().is_some() || is_bridge_group(view.inner_destination()) {
        return Ok(None);
    }
    let macs = &full[FULL_INNER_AT..FULL_INNER_AT + 12];
    let header = &full[FULL_HEADER_AT..FULL_INNER_AT];
    Ok(Some([macs, &ETHERTYPE.to_be_bytes(), header, &full[FULL_CONTROL_AT..]].concat()))
}

/// 01-80-C2-00-xx-xx: what equipment between the ends might take for its own.
fn is_bridge_group(destination: MacAddress) -> bool {
    destination.0[..4] == [0x01, 0x80, 0xc2, 0]
}
