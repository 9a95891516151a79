//! Where an address is: outside, or a server in a rack. Racks are blocks of addresses, by the length of their prefix or
//! from a file.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::End;

/// More servers than this are a mistake in the blocks.
pub const SERVERS_MAX: usize = 1 << 20;

/// A block of IPv4 or IPv6 addresses, `10.0.0.0/8`, with no bits beyond its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(IpNet);

/// A text that is no block of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no block of addresses; write for example `10.0.0.0/8`, without bits behind the prefix")]
pub struct ParseBlockError(String);

impl Block {
    /// The block of this length around an address; a length beyond the address is all of it.
    pub fn around(address: IpAddr, length: u8) -> Self {
        let address = address.to_canonical();
        let all = IpNet::from(address);
        Self(IpNet::new(address, length.min(all.max_prefix_len())).unwrap_or(all).trunc())
    }

    /// Whether an address is in it.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Block {
    type Err = ParseBlockError;

    fn from_str(text: &str) -> Result<Self, ParseBlockError> {
        let net: Option<IpNet> = text.parse().ok();
        net.filter(|net| net.trunc() == *net && net.addr().to_canonical() == net.addr())
            .map(Self)
            .ok_or_else(|| ParseBlockError(text.to_owned()))
    }
}

impl fmt::Display for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// How racks are told from addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RackRule {
    /// Addresses with the same prefix are a rack; those in none of the blocks are outside.
    Prefix {
        inside: Vec<Block>,
        /// Bits of the prefix of an IPv4 address.
        v4_bits: u8,
        /// Bits of the prefix of an IPv6 address.
        v6_bits: u8,
    },
    /// Named blocks, the longest first; addresses in none of them are outside.
    Named(Vec<(Block, String)>),
}

impl RackRule {
    /// Private addresses (RFC 1918, RFC 4193).
    pub fn private_blocks() -> Vec<Block> {
        let blocks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
        blocks.iter().map(|text| text.parse().expect("the blocks are constants")).collect()
    }

    /// Private addresses with a rack for each /24 and /64.
    pub fn private() -> Self {
        Self::Prefix { inside: Self::private_blocks(), v4_bits: 24, v6_bits: 64 }
    }

    /// Reads lines of `BLOCK NAME`; several blocks may have one name. `#` begins a comment.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut blocks: Vec<(Block, String)> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
            let [block, name] = words[..] else {
                return Err(format!(
                    "line {number}: `{line}` is no rack; write `BLOCK NAME`, such as `10.0.1.0/24 tor1`"
                ));
            };
            let block: Block = block.parse().map_err(|error| format!("line {number}: {error}"))?;
            if blocks.iter().any(|(known, _)| *known == block) {
                return Err(format!("line {number}: the block {block} is there already"));
            }
            blocks.push((block, name.to_owned()));
        }
        if blocks.is_empty() {
            return Err("no rack in it; write lines of `BLOCK NAME`, such as `10.0.1.0/24 tor1`".to_owned());
        }
        blocks.sort_by_key(|(block, _)| std::cmp::Reverse(block.0.prefix_len()));
        Ok(Self::Named(blocks))
    }
}

/// All servers and racks that were seen.
#[derive(Clone, Debug)]
pub struct Places {
    rule: RackRule,
    servers: HashMap<IpAddr, End>,
    racks: HashMap<String, u32>,
}

impl Places {
    /// Nobody was seen yet.
    pub fn new(rule: RackRule) -> Self {
        Self { rule, servers: HashMap::new(), racks: HashMap::new() }
    }

    /// Where an address is; says why there are too many.
    pub fn find(&mut self, address: IpAddr) -> Result<End, String> {
        if let Some(known) = self.servers.get(&address) {
            return Ok(*known);
        }
        let Some(name) = self.rack_name(address) else { return Ok(End::Outside) };
        if self.servers.len() == SERVERS_MAX {
            return Err(format!(
                "more than {SERVERS_MAX} addresses are servers; say with --inside or --racks which blocks are yours"
            ));
        }
        let next = self.racks.len() as u32;
        let rack = *self.racks.entry(name).or_insert(next);
        let end = End::Server { server: self.servers.len() as u32, rack };
        self.servers.insert(address, end);
        Ok(end)
    }

    /// How many racks were seen.
    pub fn racks(&self) -> usize {
        self.racks.len()
    }

    fn rack_name(&self, address: IpAddr) -> Option<String> {
        match &self.rule {
            RackRule::Prefix { inside, v4_bits, v6_bits } => {
                let bits = if address.to_canonical().is_ipv6() { *v6_bits } else { *v4_bits };
                let known = inside.iter().any(|block| block.contains(address));
                known.then(|| Block::around(address, bits).to_string())
            }
            RackRule::Named(blocks) => {
                blocks.iter().find(|(block, _)| block.contains(address)).map(|(_, name)| name.clone())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack(places: &mut Places, address: &str) -> Option<u32> {
        match places.find(address.parse().unwrap()).unwrap() {
            End::Server { rack, .. } => Some(rack),
            End::Outside => None,
        }
    }

    #[test]
    fn a_prefix_makes_racks_of_what_is_inside() {
        let mut places = Places::new(RackRule::private());
        for (address, expected) in [
            ("10.1.2.3", Some(0)),
            ("10.1.2.250", Some(0)),
            ("10.1.3.3", Some(1)),
            ("192.168.0.1", Some(2)),
            ("172.32.0.1", None),
            ("8.8.8.8", None),
            ("::ffff:10.1.2.9", Some(0)),
            ("fd00::1", Some(3)),
            ("fd00::ffff:0:0:1", Some(3)),
            ("fd00:0:0:1::1", Some(4)),
            ("2001:db8::1", None),
        ] {
            assert_eq!(rack(&mut places, address), expected, "{address}");
        }
        assert_eq!(places.racks(), 5);
    }

    #[test]
    fn the_longest_block_of_a_file_names_the_rack() {
        let rule =
            RackRule::parse("# racks\n10.0.0.0/8 rest\n10.0.1.0/24  tor1 # the first\n\n10.0.1.128/25,tor2\n").unwrap();
        let mut places = Places::new(rule);
        let racks = ["10.9.9.9", "10.0.1.1", "10.0.1.129", "10.0.1.2", "11.0.0.1"].map(|one| rack(&mut places, one));
        assert_eq!(racks, [Some(0), Some(1), Some(2), Some(1), None]);
    }

    #[test]
    fn what_is_no_rack_is_refused_with_its_line() {
        for (text, message) in [
            ("10.0.0.0/8", "line 1: `10.0.0.0/8` is no rack"),
            ("10.0.0.0/8 a b", "line 1"),
            ("\n10.0.0.1/8 a", "line 2: `10.0.0.1/8` is no block"),
            ("10.0.0.0/33 a", "line 1: `10.0.0.0/33` is no block"),
            ("rack a", "line 1: `rack` is no block"),
            ("10.0.0.0/8 a\n10.0.0.0/8 b", "line 2: the block 10.0.0.0/8 is there already"),
            ("# nothing", "no rack in it"),
        ] {
            let error = RackRule::parse(text).unwrap_err();
            assert!(error.starts_with(message), "wanted `{message}`, got `{error}`");
        }
    }
}
