//! A leaf-spine fabric: every leaf has one link to every spine, servers hang below the leaves.

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams};
use super::{Fabric, Role, TopologyError};

/// Most leaves or spines of a fabric.
const TIER_MAX: u32 = 1024;

/// What may be chosen about a leaf-spine fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafSpineParams {
    /// How many spines: the number of paths between two leaves.
    pub spines: u32,
    /// How many leaves.
    pub leaves: u32,
    /// Servers below each leaf.
    pub servers_per_leaf: u32,
    /// Rates and buffers.
    pub links: LinkParams,
}

impl Default for LeafSpineParams {
    fn default() -> Self {
        Self { spines: 2, leaves: 2, servers_per_leaf: 2, links: LinkParams::default() }
    }
}

/// Builds the fabric: `spine1`.., `leaf1`.., servers `s1`... It has no Intermediates and no directory server, so it
/// carries every overlay but VL2's.
pub fn leaf_spine(params: &LeafSpineParams) -> Result<Fabric, TopologyError> {
    for (parameter, value) in [("spines", params.spines), ("leaves", params.leaves)] {
        if !(1..=TIER_MAX).contains(&value) {
            return Err(TopologyError::BadParameter { parameter, value: value.into(), reason: "choose 1 to 1024" });
        }
    }
    if !(1..=HOSTS_PER_TOR_MAX).contains(&params.servers_per_leaf) {
        let (value, reason) = (params.servers_per_leaf.into(), "choose 1 to 252");
        return Err(TopologyError::BadParameter { parameter: "servers_per_leaf", value, reason });
    }
    let mut builder = Builder::new(&params.links);
    let spines = builder.tier("spine", Role::Spine, params.spines);
    let leaves = builder.tier("leaf", Role::Leaf, params.leaves);
    builder.link_all(&spines, &leaves);
    builder.servers(&leaves, &vec![params.servers_per_leaf; leaves.len()]);
    builder.finish("leaf-spine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_meets_every_spine_once() {
        let params = LeafSpineParams { spines: 3, leaves: 5, servers_per_leaf: 4, links: LinkParams::default() };
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

    #[test]
    fn a_missing_or_absurd_tier_is_refused() {
        for (spines, leaves, servers_per_leaf) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1025, 1, 1), (1, u32::MAX, 1)] {
            let params = LeafSpineParams { spines, leaves, servers_per_leaf, links: LinkParams::default() };
            assert!(matches!(leaf_spine(&params), Err(TopologyError::BadParameter { .. })), "{params:?}");
        }
    }
}
