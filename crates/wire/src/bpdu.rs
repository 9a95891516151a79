//! What an RBridge reads of a spanning tree's BPDU, which bridge is the root, and what it tells bridges: that stations are
//! elsewhere (IEEE 802.1D section 9.3, IEEE 802.1Q section 14; RFC 6325 sections 4.9.3.1 and 4.9.3.3).
//!
//! ```text
//!  0      LLC 42 42 03
//!  3      protocol 0 (2) | version (1) | type (1) | flags (1)
//!  8      root identifier: priority (2), address (6)
//! 16      root path cost (4) | bridge identifier (8) | port (2) | message age, max age, hello time, forward delay (2 each)
//! ```

use std::fmt;

use crate::bytes::{array, u16_at};
use crate::error::{ParseError, need};
use crate::ethernet::MacAddress;

/// Where bridges send BPDUs.
pub const GROUP: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0]);

/// Length of a configuration BPDU with LLC, bytes; those of later protocols begin alike.
pub const LEN_MIN: usize = 38;

const LLC: [u8; 3] = [0x42, 0x42, 0x03];
const CONFIGURATION: u8 = 0;
const RAPID: u8 = 2;
const TOPOLOGY_CHANGE: u8 = 0x80;
/// Flag of a configuration BPDU.
const ACKNOWLEDGES_CHANGE: u8 = 0x80;
/// Shortest Ethernet frame without its check sequence, bytes.
const FRAME_MIN: usize = 60;

/// A whole frame with a topology change notification (IEEE 802.1D section 9.3.2).
pub fn topology_change(source: MacAddress) -> Vec<u8> {
    const VERSION: u8 = 0;
    let [a, b, c] = LLC;
    let bpdu = [a, b, c, 0, 0, VERSION, TOPOLOGY_CHANGE];
    let mut frame = [&GROUP.0[..], &source.0, &(bpdu.len() as u16).to_be_bytes(), &bpdu].concat();
    frame.resize(FRAME_MIN, 0);
    frame
}

/// A bridge's identifier: priority, then address. The lower one is the root.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BridgeId(pub [u8; 8]);

impl BridgeId {
    /// Priority and system ID extension; the lower, the better.
    pub fn priority(self) -> u16 {
        u16_at(&self.0, 0)
    }

    /// The bridge's address.
    pub fn mac(self) -> MacAddress {
        MacAddress(array(&self.0, 2))
    }
}

impl fmt::Debug for BridgeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.priority(), self.mac())
    }
}

/// A checked look at a configuration BPDU of any version. That of MSTP has the root of the common tree (CIST) in the same place.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Looks at what follows a frame's length field; padding is left alone.
    ///
    /// # Errors
    /// [`ParseError::Truncated`]; [`ParseError::Protocol`] for another LLC or protocol; [`ParseError::Kind`] for a BPDU that names no
    /// root.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, LEN_MIN)?;
        if bytes[..3] != LLC {
            return Err(ParseError::Protocol(u16_at(bytes, 0)));
        }
        if u16_at(bytes, 3) != 0 {
            return Err(ParseError::Protocol(u16_at(bytes, 3)));
        }
        match bytes[6] {
            CONFIGURATION | RAPID => Ok(Self { bytes }),
            other => Err(ParseError::Kind(other.into())),
        }
    }

    /// Whether the sender has heard of a topology change from who is on this link.
    pub fn acknowledges_change(&self) -> bool {
        self.bytes[6] == CONFIGURATION && self.bytes[7] & ACKNOWLEDGES_CHANGE != 0
    }

    /// The bridge that the sender takes for the root.
    pub fn root(&self) -> BridgeId {
        BridgeId(array(self.bytes, 8))
    }
}
