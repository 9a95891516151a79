//! A full mesh: every edge switch has a link to every other, servers hang below each. With one server each it is the network of
//! "Improving TRILL Mesh Network's Throughput Using Smart NICs" (2018, Figure 1), whose servers have an RBridge each.

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams, check_counts};
use super::{Fabric, Role, TopologyError};

/// Most switches: each has a port to each of the others.
const LEAVES_MAX: u32 = 128;

/// What may be chosen about a full mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshParams {
    /// How many switches.
    pub leaves: u32,
    /// Servers below each.
    pub servers_per_leaf: u32,
    /// Rates and buffers.
    pub links: LinkParams,
}

impl Default for MeshParams {
    fn default() -> Self {
        Self { leaves: 4, servers_per_leaf: 1, links: LinkParams::default() }
    }
}

/// Builds the fabric: `leaf1`.., servers `s1`... As a leaf-spine fabric it carries every overlay but VL2's.
pub fn mesh(params: &MeshParams) -> Result<Fabric, TopologyError> {
    check(params)?;
    let mut builder = Builder::new(&params.links);
    let leaves = builder.tier("leaf", Role::Leaf, params.leaves);
    for (place, leaf) in leaves.iter().enumerate() {
        for other in &leaves[place + 1..] {
            builder.link(*leaf, *other);
        }
    }
    builder.servers(&leaves, &vec![params.servers_per_leaf; leaves.len()]);
    builder.finish("mesh")
}

pub(super) fn check(params: &MeshParams) -> Result<(), TopologyError> {
    check_counts(&[
        ("leaves", params.leaves, LEAVES_MAX, "choose 1 to 128"),
        ("servers_per_leaf", params.servers_per_leaf, HOSTS_PER_TOR_MAX, "choose 1 to 252"),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_switch_has_a_link_to_every_other() {
        let fabric = mesh(&MeshParams { leaves: 5, servers_per_leaf: 2, ..MeshParams::default() }).unwrap();
        let between = fabric.links().iter().filter(|link| fabric.node(link.b.node).role == Role::Leaf);
        let pairs: BTreeSet<_> = between.clone().map(|link| (link.a.node, link.b.node)).collect();
        assert_eq!((pairs.len(), between.count()), (10, 10), "5 x 4 / 2, none twice");
        assert!(fabric.with_role(Role::Leaf).all(|leaf| fabric.links_of(leaf).len() == 4 + 2));
        assert_eq!((fabric.servers().count(), fabric.links().len()), (10, 20));
    }

    #[test]
    fn no_mesh_and_one_beyond_all_ports_are_refused() {
        for (leaves, servers_per_leaf) in [(0, 1), (129, 1), (4, 0), (4, 253), (u32::MAX, u32::MAX)] {
            let params = MeshParams { leaves, servers_per_leaf, ..MeshParams::default() };
            assert!(matches!(mesh(&params), Err(TopologyError::BadParameter { .. })), "{params:?}");
        }
    }
}
