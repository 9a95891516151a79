//! The VLAN tag of IEEE 802.1Q: four bytes between the Ethernet header's addresses and its type. And sets of VLANs.
//!
//! ```text
//! destination 6, source 6 | 0x8100 2, priority 3 bits, drop eligible 1 bit, VLAN ID 12 bits | type 2 ...
//! ```

mod set;

use std::fmt;
use std::str::FromStr;

use crate::ethernet::ethertype;

pub use set::VlanSet;

/// Length of the tag, bytes.
pub const TAG_LEN: usize = 4;

/// Where the tag is in a frame.
const TAG_AT: usize = 12;

/// The largest VLAN ID.
pub const VLAN_MAX: u16 = 4094;

/// A VLAN ID, 1 to 4094. 0 says that a tag has a priority only, and 4095 is reserved (IEEE 802.1Q table 9-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(u16);

/// What is no VLAN ID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no VLAN ID; write a number from 1 to 4094")]
pub struct VlanError {
    text: String,
}

impl VlanId {
    /// `None` for 0 and for more than 4094.
    pub fn new(number: u16) -> Option<Self> {
        (1..=VLAN_MAX).contains(&number).then_some(Self(number))
    }

    /// As a number.
    pub fn get(self) -> u16 {
        self.0
    }

    /// The frame with a tag of this VLAN and priority 0; one that is too short for addresses stays as it is.
    pub fn tag(self, frame: &[u8]) -> Vec<u8> {
        let Some((addresses, rest)) = frame.split_at_checked(TAG_AT) else { return frame.to_vec() };
        [addresses, &ethertype::VLAN.to_be_bytes(), &self.0.to_be_bytes(), rest].concat()
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl FromStr for VlanId {
    type Err = VlanError;

    fn from_str(text: &str) -> Result<Self, VlanError> {
        text.parse().ok().and_then(Self::new).ok_or_else(|| VlanError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_are_vlans_and_their_neighbours_are_not() {
        let given = ["0", "1", "4094", "4095", "65536", "-1", "x"].map(|text| text.parse().map(VlanId::get).ok());
        assert_eq!(given, [None, Some(1), Some(4094), None, None, None, None]);
        assert!("4095".parse::<VlanId>().unwrap_err().to_string().contains("`4095`"));
    }

    #[test]
    fn a_tag_is_behind_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let tagged = VlanId::new(0x123).unwrap().tag(&frame);
        assert_eq!(tagged.len(), frame.len() + TAG_LEN);
        assert_eq!(
            (&tagged[..12], &tagged[12..16], &tagged[16..]),
            (&frame[..12], &[0x81, 0, 1, 0x23][..], &frame[12..])
        );
    }
}
