//! IPv4 prefixes.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String")]
pub struct Prefix {
    /// Its network address; bits beyond the length are zero.
    pub network: Ipv4Addr,
    /// Its length in bits, 0 to 32.
    pub length: u8,
}

/// A text that is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a prefix; write for example `20.0.0.0/8`, with no bits set beyond the length")]
pub struct ParsePrefixError(pub String);

impl Prefix {
    /// Whether the length is at most 32 and no bit beyond it is set.
    pub fn is_valid(self) -> bool {
        self.length <= 32 && u32::from(self.network) & !self.mask() == 0
    }

    /// Whether the address lies in the prefix.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask() == u32::from(self.network)
    }

    /// Whether the two have an address in common: one of them contains the other.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }

    /// How many addresses it has.
    pub fn size(self) -> u64 {
        1u64 << (32 - u32::from(self.length.min(32)))
    }

    /// Its last address.
    pub fn last(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) | !self.mask())
    }

    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length.min(32))).unwrap_or(0)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.network, self.length)
    }
}

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (network, length) = text.split_once('/')?;
            let prefix = Self { network: network.parse().ok()?, length: length.parse().ok()? };
            prefix.is_valid().then_some(prefix)
        };
        parse().ok_or_else(|| ParsePrefixError(text.to_owned()))
    }
}

impl TryFrom<String> for Prefix {
    type Error = ParsePrefixError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_contains_its_first_and_last_address_and_no_neighbour() {
        let rack = prefix("10.64.3.0/24");
        let inside = ["10.64.3.0", "10.64.3.255"].map(|text| rack.contains(text.parse().unwrap()));
        let outside = ["10.64.2.255", "10.64.4.0"].map(|text| rack.contains(text.parse().unwrap()));
        assert_eq!((inside, outside), ([true; 2], [false; 2]));
        assert_eq!((rack.size(), rack.last()), (256, Ipv4Addr::new(10, 64, 3, 255)));
        assert!(prefix("0.0.0.0/0").contains(Ipv4Addr::BROADCAST));
        assert_eq!((prefix("0.0.0.0/0").size(), prefix("1.2.3.4/32").size()), (1 << 32, 1));
    }

    #[test]
    fn overlap_is_seen_from_both_sides() {
        for (a, b, overlap) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("0.0.0.0/0", "10.0.0.0/8", true),
            ("10.0.0.0/8", "11.0.0.0/8", false),
            ("10.64.0.0/10", "10.128.0.0/10", false),
            ("100.64.0.0/10", "100.0.0.0/8", true),
        ] {
            assert_eq!(prefix(a).overlaps(prefix(b)), overlap, "{a} {b}");
            assert_eq!(prefix(b).overlaps(prefix(a)), overlap, "{b} {a}");
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/-1", "10.0.0/8", "a/8", "10.0.0.0/8/8"] {
            assert_eq!(text.parse::<Prefix>(), Err(ParsePrefixError(text.to_owned())));
        }
    }
}
