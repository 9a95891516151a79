//! The conventional network with redundant pairs (VL2 2, Figure 1): what a data centre had before VL2.
//!
//! ```text
//!            core1 .. coreC            all access routers on every core router
//!           /   |   \
//!      access1 access2   ..            a pair for each layer-2 domain
//!         |  X  |
//!       agg1   agg2      ..            a pair for some racks; pairs are dealt out to the domains
//!         | \ / |
//!        tor1 tor2 ..                  each on both Aggregations of its pair
//! ```
//!
//! Every tier has its own oversubscription, so that the paper's "1:5 at the ToR, 1:240 at the top" can be written down.
//! Two links between the same switches are one link of their summed rate here.

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams, check_counts};
use super::{Fabric, FabricSpec, LinkSpec, Role, TopologyError};
use crate::id::NodeId;
use crate::units::BitsPerSec;

/// Most ToRs of such a network.
const TORS_MAX: u32 = 10_000;

/// What may be chosen about a conventional network. The core rate of `links` is not used: rates follow from the
/// oversubscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConventionalParams {
    /// How many ToRs.
    pub tors: u32,
    /// Servers below each ToR; the paper has 20 to 40.
    pub servers_per_tor: u32,
    /// Pairs of Aggregations, to which ToRs are dealt out in turn.
    pub aggregation_pairs: u32,
    /// Pairs of access routers, one for each layer-2 domain, to which pairs of Aggregations are dealt out in turn.
    pub access_pairs: u32,
    /// Core routers.
    pub cores: u32,
    /// Rates of a rack's servers over the rate of its uplinks together.
    pub tor_oversubscription: u32,
    /// Rates that an Aggregation pair has from below over the rate of its uplinks together.
    pub aggregation_oversubscription: u32,
    /// The same of a pair of access routers.
    pub access_oversubscription: u32,
    /// Rates and buffers.
    pub links: LinkParams,
}

impl Default for ConventionalParams {
    /// Section 3.1's 75 racks of 20 servers under about 25 switches, with section 2's 1:5 and 1:240.
    fn default() -> Self {
        Self {
            tors: 75,
            servers_per_tor: 20,
            aggregation_pairs: 9,
            access_pairs: 2,
            cores: 2,
            tor_oversubscription: 5,
            aggregation_oversubscription: 8,
            access_oversubscription: 6,
            links: LinkParams::default(),
        }
    }
}

/// Builds the network: `core1`.., `access1`.., `agg1`.., `tor1`.., servers `s1`... Numbers 1 and 2 are the first pair.
pub fn conventional(params: &ConventionalParams) -> Result<Fabric, TopologyError> {
    FabricSpec::Conventional(params.clone()).size()?;
    let mut builder = Builder::new(&params.links);
    let cores = builder.tier("core", Role::Core, params.cores);
    let accesses = builder.tier("access", Role::Access, 2 * params.access_pairs);
    let aggregations = builder.tier("agg", Role::Aggregation, 2 * params.aggregation_pairs);
    let tors = builder.tier("tor", Role::Tor, params.tors);
    let rates = Rates::new(params);
    for (domain, pair) in accesses.chunks(2).enumerate() {
        link_group(&mut builder, params, &cores, pair, rates.above_access(domain as u32));
    }
    for (number, pair) in aggregations.chunks(2).enumerate() {
        let domain = number % params.access_pairs as usize;
        link_group(&mut builder, params, &accesses[2 * domain..][..2], pair, rates.above_aggregation(number as u32));
    }
    for (number, tor) in tors.iter().enumerate() {
        let pair = number % params.aggregation_pairs as usize;
        link_group(&mut builder, params, &aggregations[2 * pair..][..2], &[*tor], rates.above_tor());
    }
    builder.servers(&tors, &vec![params.servers_per_tor; tors.len()]);
    builder.finish("conventional")
}

/// Links all upper with all lower switches; together the links have this rate.
fn link_group(
    builder: &mut Builder<'_>,
    params: &ConventionalParams,
    uppers: &[NodeId],
    lowers: &[NodeId],
    rate: BitsPerSec,
) {
    let each = BitsPerSec(rate.0 / (uppers.len() * lowers.len()) as u64);
    for upper in uppers {
        for lower in lowers {
            builder.link_with(*upper, *lower, LinkSpec { rate: each, ..params.links.core_spec() });
        }
    }
}

/// What the uplinks of one group of switches carry together.
struct Rates<'a>(&'a ConventionalParams);

impl<'a> Rates<'a> {
    fn new(params: &'a ConventionalParams) -> Self {
        Self(params)
    }

    fn above_tor(&self) -> BitsPerSec {
        let rack = u128::from(self.0.links.server_rate.0) * u128::from(self.0.servers_per_tor);
        rate(rack / u128::from(self.0.tor_oversubscription))
    }

    fn above_aggregation(&self, pair: u32) -> BitsPerSec {
        let below = u128::from(self.above_tor().0) * u128::from(dealt(self.0.tors, self.0.aggregation_pairs, pair));
        rate(below / u128::from(self.0.aggregation_oversubscription))
    }

    fn above_access(&self, domain: u32) -> BitsPerSec {
        let pairs = (domain..self.0.aggregation_pairs).step_by(self.0.access_pairs as usize);
        let below: u128 = pairs.map(|pair| u128::from(self.above_aggregation(pair).0)).sum();
        rate(below / u128::from(self.0.access_oversubscription))
    }
}

fn rate(bits_per_s: u128) -> BitsPerSec {
    BitsPerSec(u64::try_from(bits_per_s).unwrap_or(u64::MAX))
}

/// How many of `count` things the group number `group` of `groups` gets when they are dealt out in turn.
fn dealt(count: u32, groups: u32, group: u32) -> u32 {
    count / groups + u32::from(group < count % groups)
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &ConventionalParams) -> Result<(), TopologyError> {
    let limits = [
        ("tors", params.tors, TORS_MAX, "choose 1 to 10000"),
        ("servers_per_tor", params.servers_per_tor, HOSTS_PER_TOR_MAX, "choose 1 to 252"),
        ("aggregation_pairs", params.aggregation_pairs, params.tors, "choose 1 to the number of ToRs"),
        ("access_pairs", params.access_pairs, params.aggregation_pairs, "choose 1 to the number of Aggregation pairs"),
        ("cores", params.cores, 64, "choose 1 to 64"),
        ("tor_oversubscription", params.tor_oversubscription, 1000, "1 means none; choose 1 to 1000"),
        ("aggregation_oversubscription", params.aggregation_oversubscription, 1000, "1 means none; choose 1 to 1000"),
        ("access_oversubscription", params.access_oversubscription, 1000, "1 means none; choose 1 to 1000"),
    ];
    check_counts(&limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rate of all links from the tier above into one switch.
    fn uplinks(fabric: &Fabric, name: &str) -> u64 {
        let node = fabric.find(name).unwrap();
        let up = fabric.links_of(node).iter().map(|link| fabric.link(*link)).filter(|link| link.b.node == node);
        up.map(|link| link.spec.rate.0).sum()
    }

    #[test]
    fn figure_1_has_pairs_below_the_core_and_one_to_240_at_the_top() {
        let links = LinkParams::for_server_rate(BitsPerSec(1_000_000_000));
        let fabric = conventional(&ConventionalParams { links, ..ConventionalParams::default() }).unwrap();
        let count = |role| fabric.with_role(role).count();
        assert_eq!([Role::Core, Role::Access, Role::Aggregation, Role::Tor].map(count), [2, 4, 18, 75]);
        assert_eq!((fabric.switches().count(), count(Role::Server)), (99, 1500));
        // 20 servers of 1 Gb/s, 1:5: 4 Gb/s of uplink, "1 to 4 Gbps of up-link for 20 servers".
        assert_eq!(uplinks(&fabric, "tor75"), 4_000_000_000);
        let of_tier = |prefix: &str, many: u32| (1..=many).map(|n| uplinks(&fabric, &format!("{prefix}{n}"))).sum();
        let (tors, aggs, accesses): (u64, u64, u64) = (of_tier("tor", 75), of_tier("agg", 18), of_tier("access", 4));
        assert_eq!((tors, aggs), (300_000_000_000, 37_500_000_000));
        // Rates are whole bits per second, so a few are lost in divisions.
        assert!(accesses.abs_diff(6_250_000_000) < 100, "{accesses}");
        assert_eq!(1_500_000_000_000 / 240, 6_250_000_000u64);
    }

    #[test]
    fn every_switch_below_the_core_has_two_ways_up() {
        let fabric = conventional(&ConventionalParams::default()).unwrap();
        for role in [Role::Tor, Role::Aggregation, Role::Access] {
            for switch in fabric.with_role(role) {
                let up = fabric.links_of(switch).iter().filter(|link| fabric.link(**link).b.node == switch).count();
                assert_eq!(up, 2, "{}", fabric.node(switch).name);
            }
        }
    }

    #[test]
    fn what_makes_no_network_is_refused_by_name() {
        let good = ConventionalParams::default();
        for (params, parameter) in [
            (ConventionalParams { tors: 0, ..good.clone() }, "tors"),
            (ConventionalParams { servers_per_tor: 253, ..good.clone() }, "servers_per_tor"),
            (ConventionalParams { aggregation_pairs: 76, ..good.clone() }, "aggregation_pairs"),
            (ConventionalParams { access_pairs: 10, ..good.clone() }, "access_pairs"),
            (ConventionalParams { cores: 0, ..good.clone() }, "cores"),
            (ConventionalParams { access_oversubscription: 0, ..good.clone() }, "access_oversubscription"),
        ] {
            let error = conventional(&params).unwrap_err().to_string();
            assert!(error.contains(&format!("`{parameter}`")) || error.contains(parameter), "{error}");
        }
    }
}
