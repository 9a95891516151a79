//! What a workload must know about a fabric's servers: how fast each one's link is and which rack it is in.

use std::collections::BTreeMap;

use crate::topology::Fabric;
use crate::units::BitsPerSec;

/// The servers of a fabric, numbered as in [`Fabric::servers`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers(Vec<Server>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Server {
    rate: BitsPerSec,
    rack: u32,
}

impl Servers {
    /// The servers of this fabric; those below one edge switch are a rack.
    pub fn of(fabric: &Fabric) -> Self {
        let mut racks = BTreeMap::new();
        let server = |(edge, link)| {
            let next = racks.len() as u32;
            Server { rate: fabric.link(link).spec.rate, rack: *racks.entry(edge).or_insert(next) }
        };
        Self(fabric.servers().filter_map(|server| fabric.edge_of(server)).map(server).collect())
    }

    /// Servers whose links are alike, `per_rack` to a rack; 0 puts all into one.
    pub fn alike(count: u32, rate: BitsPerSec, per_rack: u32) -> Self {
        Self((0..count).map(|number| Server { rate, rack: number.checked_div(per_rack).unwrap_or(0) }).collect())
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Rate of a server's link.
    pub fn rate(&self, server: u32) -> BitsPerSec {
        self.0[server as usize].rate
    }

    /// Number of a server's rack.
    pub fn rack(&self, server: u32) -> u32 {
        self.0[server as usize].rack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{TestbedParams, vl2_testbed};

    #[test]
    fn racks_are_what_hangs_below_one_switch() {
        let servers = Servers::of(&vl2_testbed(&TestbedParams::default()).unwrap());
        assert_eq!(servers.count(), 75);
        let racks: Vec<u32> = [0, 18, 19, 37, 38, 56, 57, 74].map(|server| servers.rack(server)).to_vec();
        assert_eq!(racks, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(servers.rate(74), BitsPerSec(20_000_000));
    }

    #[test]
    fn alike_servers_fill_rack_after_rack() {
        let servers = Servers::alike(5, BitsPerSec(7), 2);
        assert_eq!((0..5).map(|server| servers.rack(server)).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        assert_eq!(Servers::alike(3, BitsPerSec(7), 0).rack(2), 0);
    }
}
