//! Where an AA is: its locator.

use std::net::Ipv4Addr;

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
