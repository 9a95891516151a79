//! Blocks of IPv4 addresses, with no bits beyond their length.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::str::FromStr;

use ipnet::Ipv4Net;

/// A block of addresses, written `20.0.0.0/8`. What [`Ipv4Net`] answers, it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(Ipv4Net);

/// Text that is no block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address block: {why}; write for example 20.0.0.0/8")]
pub struct BlockError {
    text: String,
    why: &'static str,
}

impl Block {
    /// The block of all addresses whose first `length` bits are those of `network`.
    ///
    /// # Panics
    /// A length above 32, or bits beyond it: for constants.
    pub const fn of(network: Ipv4Addr, length: u8) -> Self {
        let net = Ipv4Net::new_assert(network, length);
        assert!(network.to_bits().trailing_zeros() >= 32 - length as u32, "bits beyond the length are set");
        Self(net)
    }

    /// The block of this length that an address is in.
    ///
    /// # Panics
    /// A length above 32.
    pub fn around(address: Ipv4Addr, length: u8) -> Self {
        Self(Ipv4Net::new_assert(address, length).trunc())
    }

    /// The block of one address.
    pub fn host(address: Ipv4Addr) -> Self {
        Self(address.into())
    }

    /// Whether an address lies in it.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        self.0.contains(&address)
    }

    /// Whether any address lies in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.network()) || other.contains(self.network())
    }

    /// Its last address.
    pub fn last(self) -> Ipv4Addr {
        self.broadcast()
    }

    /// How many addresses it has.
    pub fn size(self) -> u64 {
        1 << (32 - self.prefix_len())
    }
}

impl Deref for Block {
    type Target = Ipv4Net;

    fn deref(&self) -> &Ipv4Net {
        &self.0
    }
}

impl FromStr for Block {
    type Err = BlockError;

    fn from_str(text: &str) -> Result<Self, BlockError> {
        let fault = |why| BlockError { text: text.to_owned(), why };
        let (network, length) = text.split_once('/').ok_or(fault("the `/` is missing"))?;
        let network = network.parse().map_err(|_| fault("the part before `/` is not an IPv4 address"))?;
        let length = length.parse().map_err(|_| fault("the part after `/` is not a length"))?;
        let net = Ipv4Net::new(network, length).map_err(|_| fault("the length is above 32"))?;
        if net.network() != network {
            return Err(fault("bits beyond the length are set"));
        }
        Ok(Self(net))
    }
}

impl fmt::Display for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        text.parse().unwrap()
    }

    #[test]
    fn a_block_holds_its_first_and_last_address_and_no_neighbour() {
        let rack = block("10.64.3.0/24");
        let inside = ["10.64.3.0", "10.64.3.255"].map(|text| rack.contains(text.parse().unwrap()));
        let outside = ["10.64.2.255", "10.64.4.0"].map(|text| rack.contains(text.parse().unwrap()));
        assert_eq!((inside, outside), ([true; 2], [false; 2]));
        assert_eq!((rack.size(), rack.last()), (256, Ipv4Addr::new(10, 64, 3, 255)));
        assert!(block("0.0.0.0/0").contains(Ipv4Addr::BROADCAST));
        assert_eq!((block("0.0.0.0/0").size(), block("1.2.3.4/32").size()), (1 << 32, 1));
        assert_eq!(Block::around(Ipv4Addr::new(10, 64, 3, 7), 24), rack);
        assert_eq!(
            (Block::host(Ipv4Addr::new(1, 2, 3, 4)), rack.to_string()),
            (block("1.2.3.4/32"), "10.64.3.0/24".into())
        );
    }

    #[test]
    fn overlap_is_seen_from_both_sides() {
        for (a, b, overlap) in [
            ("20.0.0.0/8", "20.0.0.0/8", true),
            ("20.0.0.0/8", "20.128.0.0/9", true),
            ("20.0.0.0/9", "20.128.0.0/9", false),
            ("20.0.0.0/8", "0.0.0.0/0", true),
            ("10.0.0.0/8", "11.0.0.0/8", false),
            ("100.64.0.0/10", "100.0.0.0/8", true),
        ] {
            assert_eq!(block(a).overlaps(block(b)), overlap, "{a} {b}");
            assert_eq!(block(b).overlaps(block(a)), overlap, "{b} {a}");
        }
    }

    #[test]
    fn what_is_no_block_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "`/` is missing"),
            ("20.0.0.0", "`/` is missing"),
            ("20.0.0/8", "not an IPv4 address"),
            ("20.0.0.0/x", "not a length"),
            ("20.0.0.0/-1", "not a length"),
            ("20.0.0.0/8/8", "not a length"),
            ("20.0.0.0/33", "above 32"),
            ("20.0.0.1/8", "bits beyond the length"),
        ] {
            let error = text.parse::<Block>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }
}
