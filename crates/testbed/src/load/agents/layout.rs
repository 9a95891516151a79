//! Who has which AA behind which ToR, in addresses that loopback has.

use std::net::Ipv4Addr;

/// LA of the first server's agent, and of the first ToR.
const FIRST_LA: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);
const FIRST_TOR_LA: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);

/// A data centre of whole racks; the last one may have fewer servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    agents: u32,
    rack: u32,
    aas_each: u32,
}

impl Layout {
    /// So many servers, each with an agent and as many of the AAs; `rack` of them are behind a ToR.
    pub fn new(agents: u32, aas: u32, rack: u32) -> Self {
        let (agents, rack) = (agents.max(1), rack.max(1));
        Self { agents, rack, aas_each: (aas / agents).max(1) }
    }

    /// LA of the first agent; the others' follow.
    pub fn first_la(&self) -> Ipv4Addr {
        FIRST_LA
    }

    /// How many racks there are.
    pub fn racks(&self) -> u32 {
        self.agents.div_ceil(self.rack)
    }

    /// LA of a rack's ToR.
    pub fn tor_la(&self, rack: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(FIRST_TOR_LA) + rack)
    }

    /// AAs of a rack that has all its servers; those of the first rack are the first ones.
    pub fn aas_of_a_rack(&self) -> u32 {
        self.rack * self.aas_each
    }

    /// LAs of the ToR and of the host that the AA with this number is behind.
    pub fn place_of(&self, number: u32) -> (Ipv4Addr, Ipv4Addr) {
        // What is left over when AAs are dealt out evenly is the last server's.
        let server = (number / self.aas_each).min(self.agents - 1);
        (self.tor_la(server / self.rack), Ipv4Addr::from(u32::from(FIRST_LA) + server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aa_is_some_servers_and_every_server_is_behind_one_tor() {
        let layout = Layout::new(100, 2007, 40);
        let la = |k: u32| Ipv4Addr::from(u32::from(FIRST_LA) + k);
        assert_eq!(layout.place_of(0), (FIRST_TOR_LA, la(0)));
        assert_eq!(layout.place_of(799), (FIRST_TOR_LA, la(39)));
        assert_eq!(layout.place_of(800), (layout.tor_la(1), la(40)));
        assert_eq!(layout.place_of(2006), (layout.tor_la(2), la(99)), "of what is left over");
        assert_eq!((layout.racks(), layout.aas_of_a_rack(), layout.first_la()), (3, 800, la(0)));
    }
}
