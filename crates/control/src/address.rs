//! The address block of the AAs, and where an AA is: its locator.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The flat block that all AAs come from (VL2 4.2.1), written `20.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AaBlock {
    network: Ipv4Addr,
    length: u8,
}

/// Text that is no address block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address block: {why}; write for example 20.0.0.0/8")]
pub struct BlockError {
    text: String,
    why: &'static str,
}

impl AaBlock {
    /// The block of all addresses whose first `length` bits are those of `network`.
    ///
    /// # Errors
    /// A length above 32, or a network with bits beyond the length.
    pub fn new(network: Ipv4Addr, length: u8) -> Result<Self, BlockError> {
        let fault = |why| BlockError { text: format!("{network}/{length}"), why };
        if length > 32 {
            return Err(fault("the length is above 32"));
        }
        let block = Self { network, length };
        if u32::from(network) & !block.mask() != 0 {
            return Err(fault("bits beyond the length are set"));
        }
        Ok(block)
    }

    /// Whether the address lies in the block.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask() == u32::from(self.network)
    }

    /// Whether any address lies in both blocks.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }

    /// The block's first address.
    pub fn network(self) -> Ipv4Addr {
        self.network
    }

    /// The block's last address.
    pub fn last(self) -> Ipv4Addr {
        (u32::from(self.network) | !self.mask()).into()
    }

    /// How many leading bits are fixed, 0 to 32.
    pub fn length(self) -> u8 {
        self.length
    }

    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0)
    }
}

impl FromStr for AaBlock {
    type Err = BlockError;

    fn from_str(text: &str) -> Result<Self, BlockError> {
        let fault = |why| BlockError { text: text.to_owned(), why };
        let (network, length) = text.split_once('/').ok_or(fault("the `/` is missing"))?;
        let network = network.parse().map_err(|_| fault("the part before `/` is not an IPv4 address"))?;
        let length = length.parse().map_err(|_| fault("the part after `/` is not a length"))?;
        Self::new(network, length).map_err(|error| fault(error.why))
    }
}

impl fmt::Display for AaBlock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.network, self.length)
    }
}

/// Where packets for an AA go: both outer destinations of the VL2 stack (Figure 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locator {
    /// LA of the ToR switch of the server.
    pub tor_la: Ipv4Addr,
    /// Anycast LA of the Intermediate switches to bounce off.
    pub anycast_la: Ipv4Addr,
}

/// A locator and the version of the mapping that names it. Versions of one AA only rise, also over deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// Where the AA is.
    pub locator: Locator,
    /// Version of the mapping; 0 where it is not known.
    pub version: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_its_addresses_and_no_others() {
        let block: AaBlock = "20.0.0.0/8".parse().unwrap();
        assert!(block.contains(Ipv4Addr::new(20, 255, 255, 255)));
        assert!(!block.contains(Ipv4Addr::new(21, 0, 0, 0)));
        assert!("0.0.0.0/0".parse::<AaBlock>().unwrap().contains(Ipv4Addr::BROADCAST));
        assert!(!"20.0.0.1/32".parse::<AaBlock>().unwrap().contains(Ipv4Addr::new(20, 0, 0, 2)));
        assert_eq!(block.to_string(), "20.0.0.0/8");
    }

    #[test]
    fn overlap_is_seen_from_both_sides() {
        let block = |text: &str| text.parse::<AaBlock>().unwrap();
        for (a, b, overlap) in [
            ("20.0.0.0/8", "20.0.0.0/8", true),
            ("20.0.0.0/8", "20.128.0.0/9", true),
            ("20.0.0.0/9", "20.128.0.0/9", false),
            ("20.0.0.0/8", "0.0.0.0/0", true),
        ] {
            assert_eq!(block(a).overlaps(block(b)), overlap, "{a} {b}");
            assert_eq!(block(b).overlaps(block(a)), overlap, "{b} {a}");
        }
    }

    #[test]
    fn what_is_no_block_is_refused_with_the_reason() {
        for (text, why) in [
            ("20.0.0.0", "`/` is missing"),
            ("20.0.0/8", "not an IPv4 address"),
            ("20.0.0.0/x", "not a length"),
            ("20.0.0.0/33", "above 32"),
            ("20.0.0.1/8", "bits beyond the length"),
        ] {
            let error = text.parse::<AaBlock>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }
}
