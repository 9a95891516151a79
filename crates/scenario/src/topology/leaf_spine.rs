//! A leaf-spine fabric: every leaf has the same number of links to every spine, servers hang below the leaves.

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams};
use super::{Fabric, FabricSpec, Role, TopologyError};

/// Most leaves or spines of a fabric.
const TIER_MAX: u32 = 1024;
/// Most links between a leaf and a spine.
const PARALLEL_MAX: u32 = 64;

/// What may be chosen about a leaf-spine fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafSpineParams {
    /// How many spines.
    pub spines: u32,
    /// How many leaves.
    pub leaves: u32,
    /// Servers below each leaf.
    pub servers_per_leaf: u32,
    /// Links between a leaf and a spine. A leaf has this many times `spines` uplinks.
    pub links_per_pair: u32,
    /// Rates and buffers.
    pub links: LinkParams,
}

impl Default for LeafSpineParams {
    fn default() -> Self {
        Self { spines: 2, leaves: 2, servers_per_leaf: 2, links_per_pair: 1, links: LinkParams::default() }
    }
}

/// Builds the fabric: `spine1`.., `leaf1`.., servers `s1`... It has no Intermediates and no directory server, so it
/// carries every overlay but VL2's.
pub fn leaf_spine(params: &LeafSpineParams) -> Result<Fabric, TopologyError> {
    FabricSpec::LeafSpine(params.clone()).size()?;
    let mut builder = Builder::new(&params.links);
    let spines = builder.tier("spine", Role::Spine, params.spines);
    let leaves = builder.tier("leaf", Role::Leaf, params.leaves);
    builder.link_all(&spines, &leaves, params.links_per_pair);
    builder.servers(&leaves, &vec![params.servers_per_leaf; leaves.len()]);
    builder.finish("leaf-spine")
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &LeafSpineParams) -> Result<(), TopologyError> {
    for (parameter, value) in [("spines", params.spines), ("leaves", params.leaves)] {
        if !(1..=TIER_MAX).contains(&value) {
            return Err(TopologyError::BadParameter { parameter, value: value.into(), reason: "choose 1 to 1024" });
        }
    }
    if !(1..=HOSTS_PER_TOR_MAX).contains(&params.servers_per_leaf) {
        let (value, reason) = (params.servers_per_leaf.into(), "choose 1 to 252");
        return Err(TopologyError::BadParameter { parameter: "servers_per_leaf", value, reason });
    }
    if !(1..=PARALLEL_MAX).contains(&params.links_per_pair) {
        let (value, reason) = (params.links_per_pair.into(), "choose 1 to 64");
        return Err(TopologyError::BadParameter { parameter: "links_per_pair", value, reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{LinkId, NodeId};
    use crate::units::{BitsPerSec, Nanos};

    #[test]
    fn every_leaf_meets_every_spine_once() {
        let params = LeafSpineParams { spines: 3, leaves: 5, servers_per_leaf: 4, ..LeafSpineParams::default() };
        let fabric = leaf_spine(&params).unwrap();
        assert_eq!(fabric.links().len(), 3 * 5 + 5 * 4);
        for leaf in fabric.with_role(Role::Leaf) {
            let mut far: Vec<&str> = fabric
                .links_of(leaf)
                .iter()
                .map(|link| fabric.node(fabric.link(*link).far_end(leaf).unwrap().node).name.as_str())
                .filter(|name| name.starts_with("spine"))
                .collect();
            far.sort_unstable();
            assert_eq!(far, ["spine1", "spine2", "spine3"]);
            assert_eq!(fabric.links_of(leaf).len(), 3 + 4);
        }
        assert_eq!(fabric.servers().count(), 20);
    }

    /// The fabric of the leaf-spine paper's slide "Impact of Link Speed": 100 servers, no oversubscription.
    #[test]
    fn the_papers_uplinks_are_as_fast_as_the_servers_of_a_leaf() {
        for (spines, links_per_pair, core_gbps) in [(20, 1, 10), (4, 5, 10), (5, 1, 40), (2, 1, 100)] {
            let mut params = LeafSpineParams {
                spines,
                links_per_pair,
                leaves: 5,
                servers_per_leaf: 20,
                ..LeafSpineParams::default()
            };
            params.links.server_rate = BitsPerSec(10_000_000_000);
            params.links.core_rate = BitsPerSec(core_gbps * 1_000_000_000);
            params.links.delay = Nanos(1_000);
            let fabric = leaf_spine(&params).unwrap();
            let rate = |leaf: NodeId, up: bool| -> u64 {
                let links = fabric.links_of(leaf).iter().map(|link| fabric.link(*link));
                links.filter(|link| (link.b.node == leaf) == up).map(|link| link.spec.rate.0).sum()
            };
            assert_eq!(fabric.servers().count(), 100);
            assert!(fabric.with_role(Role::Leaf).all(|leaf| rate(leaf, true) == rate(leaf, false)));
            assert!(fabric.links().iter().all(|link| link.spec.delay == Nanos(1_000)));
        }
    }

    #[test]
    fn parallel_links_have_interfaces_of_their_own() {
        let params = LeafSpineParams { links_per_pair: 3, ..LeafSpineParams::default() };
        let fabric = leaf_spine(&params).unwrap();
        let names: Vec<String> = (0..4).map(|link| fabric.link_name(LinkId(link))).collect();
        let expected = ["leaf1 - leaf1:spine1", "leaf1-2 - leaf1:spine1-2", "leaf1-3 - leaf1:spine1-3"];
        assert_eq!(names[..3], expected.map(|name| format!("spine1:{name}")));
        assert_eq!(names[3], "spine1:leaf2 - leaf2:spine1");
    }

    #[test]
    fn a_missing_or_absurd_tier_is_refused() {
        for (spines, leaves, servers_per_leaf, links_per_pair) in [
            (0, 1, 1, 1),
            (1, 0, 1, 1),
            (1, 1, 0, 1),
            (1025, 1, 1, 1),
            (1, u32::MAX, 1, 1),
            (1, 1, 1, 0),
            (1, 1, 1, 65),
        ] {
            let links = LinkParams::default();
            let params = LeafSpineParams { spines, leaves, servers_per_leaf, links_per_pair, links };
            assert!(matches!(leaf_spine(&params), Err(TopologyError::BadParameter { .. })), "{params:?}");
        }
    }
}
