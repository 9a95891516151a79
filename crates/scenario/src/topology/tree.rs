//! A conventional tree with oversubscription at the first-level switch (VL2 2, 5.1): the network VL2 replaces.
//!
//! Every rack has one uplink. With 20 servers per rack and 1:20 it is as fast as one server link, so in a shuffle among
//! 75 servers the flows from the 55 servers outside a rack to the 20 inside share one server's rate: "11x longer".

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams, check_counts};
use super::{Fabric, LinkSpec, Role, TopologyError};
use crate::units::BitsPerSec;

/// Most servers of a tree.
const SERVERS_MAX: u32 = 200_000;

/// What may be chosen about a tree. The core rate of `links` is not used: rates follow from the oversubscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeParams {
    /// How many servers; the last rack may be partly filled.
    pub servers: u32,
    /// Servers per rack; the paper has 20.
    pub servers_per_rack: u32,
    /// Rates of a full rack's servers over the rate of its uplink; the paper has 1:5 to 1:20 (section 2) and 1:20 (5.1).
    pub oversubscription: u32,
    /// How many Aggregations the racks are dealt out to. The link from each to the core is as fast as its racks' uplinks
    /// together, so nothing above the first level is oversubscribed.
    pub aggregations: u32,
    /// Rates and buffers.
    pub links: LinkParams,
}

impl Default for TreeParams {
    fn default() -> Self {
        Self { servers: 75, servers_per_rack: 20, oversubscription: 20, aggregations: 2, links: LinkParams::default() }
    }
}

impl TreeParams {
    /// Rate of a rack's uplink.
    pub fn uplink_rate(&self) -> BitsPerSec {
        let rack = u128::from(self.links.server_rate.0) * u128::from(self.servers_per_rack);
        BitsPerSec(u64::try_from(rack / u128::from(self.oversubscription.max(1))).unwrap_or(u64::MAX))
    }
}

/// Builds the tree: `core1`, `agg1`.., `tor1`.., servers `s1`... It has no Intermediates and no directory server.
pub fn tree(params: &TreeParams) -> Result<Fabric, TopologyError> {
    check(params)?;
    let racks = params.servers.div_ceil(params.servers_per_rack);
    let uplink = core_spec(params, params.uplink_rate().0);
    let mut builder = Builder::new(&params.links);
    let core = builder.node("core1", Role::Core);
    let aggregations = builder.tier("agg", Role::Aggregation, params.aggregations.min(racks));
    let tors = builder.tier("tor", Role::Tor, racks);
    for (place, aggregation) in aggregations.iter().enumerate() {
        let below = tors.iter().skip(place).step_by(aggregations.len()).count() as u64;
        builder.link_with(core, *aggregation, core_spec(params, uplink.rate.0.saturating_mul(below)));
    }
    for (aggregation, tor) in aggregations.iter().cycle().zip(&tors) {
        builder.link_with(*aggregation, *tor, uplink.clone());
    }
    let per_rack: Vec<u32> =
        (0..racks).map(|rack| params.servers_per_rack.min(params.servers - rack * params.servers_per_rack)).collect();
    builder.servers(&tors, &per_rack);
    builder.finish("tree")
}

fn core_spec(params: &TreeParams, rate: u64) -> LinkSpec {
    LinkSpec { rate: BitsPerSec(rate), ..params.links.core_spec() }
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &TreeParams) -> Result<(), TopologyError> {
    let limits = [
        ("servers", params.servers, SERVERS_MAX, "choose 1 to 200000"),
        ("servers_per_rack", params.servers_per_rack, HOSTS_PER_TOR_MAX, "choose 1 to 252"),
        ("oversubscription", params.oversubscription, 1_000_000, "1 means none; choose 1 to 1000000"),
        ("aggregations", params.aggregations, 1024, "choose 1 to 1024"),
    ];
    check_counts(&limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_between(fabric: &Fabric, upper: &str, lower: &str) -> u64 {
        let node = fabric.find(lower).unwrap();
        let link = fabric.links_of(node).iter().map(|link| fabric.link(*link));
        link.into_iter().find(|link| fabric.node(link.a.node).name == upper).unwrap().spec.rate.0
    }

    #[test]
    fn the_papers_rack_has_an_uplink_as_fast_as_one_server() {
        let fabric = tree(&TreeParams::default()).unwrap();
        assert_eq!(fabric.with_role(Role::Tor).count(), 4);
        assert_eq!(fabric.servers().count(), 75);
        for (agg, tor) in [("agg1", "tor1"), ("agg2", "tor2"), ("agg1", "tor3"), ("agg2", "tor4")] {
            assert_eq!(rate_between(&fabric, agg, tor), 20_000_000);
        }
        assert_eq!(rate_between(&fabric, "core1", "agg1"), 40_000_000);
        let below: Vec<usize> = fabric.with_role(Role::Tor).map(|tor| fabric.links_of(tor).len() - 1).collect();
        assert_eq!(below, [20, 20, 20, 15]);
    }

    #[test]
    fn an_uneven_number_of_racks_is_dealt_out_and_the_core_keeps_up() {
        let params = TreeParams { servers: 12, servers_per_rack: 4, oversubscription: 2, ..TreeParams::default() };
        let fabric = tree(&params).unwrap();
        assert_eq!(rate_between(&fabric, "agg1", "tor3"), 40_000_000);
        assert_eq!(rate_between(&fabric, "core1", "agg1"), 80_000_000);
        assert_eq!(rate_between(&fabric, "core1", "agg2"), 40_000_000);
    }

    #[test]
    fn what_makes_no_tree_is_refused() {
        let good = TreeParams::default();
        for params in [
            TreeParams { servers: 0, ..good.clone() },
            TreeParams { servers_per_rack: 0, ..good.clone() },
            TreeParams { servers_per_rack: 253, ..good.clone() },
            TreeParams { oversubscription: 0, ..good.clone() },
            TreeParams { aggregations: 0, ..good.clone() },
        ] {
            assert!(matches!(tree(&params), Err(TopologyError::BadParameter { .. })), "{params:?}");
        }
        let slow =
            TreeParams { oversubscription: 1_000_000, links: LinkParams::for_server_rate(BitsPerSec(1)), ..good };
        assert!(matches!(tree(&slow), Err(TopologyError::ZeroRate(_))));
    }
}
