//! A three-tier fat tree of equal switches (Al-Fares, Loukissas, Vahdat: "A Scalable, Commodity Data Center Network Architecture",
//! SIGCOMM 2008): k pods of k/2 Aggregations and k/2 ToRs, joined by (k/2)^2 cores.
//!
//! ```text
//!     core1 core2   core3 core4        the n-th k/2 of them are linked to the n-th Aggregation of every pod
//!         \ |           | /
//!         agg1         agg2   ..       each on all ToRs of its pod
//!          |  \       /  |
//!         tor1         tor2   ..
//! ```

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams, check_counts};
use super::{Fabric, FabricSpec, Role, TopologyError};

/// Most ports of a switch that are of use: a tree of such switches with one server below each ToR has nearly as many links as a
/// fabric may have.
const K_MAX: u32 = 126;

/// What may be chosen about a fat tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTreeParams {
    /// Ports of a switch, and so the number of pods; even.
    pub k: u32,
    /// Servers below each ToR; k/2 of them leave no port free and nothing oversubscribed.
    pub servers_per_tor: u32,
    /// Rates and buffers. In the paper all links are alike.
    pub links: LinkParams,
}

impl FatTreeParams {
    /// A tree of switches with so many ports, all of them in use.
    pub fn with_ports(k: u32) -> Self {
        let links = LinkParams::default();
        let links = LinkParams { core_rate: links.server_rate, ..links };
        Self { k, servers_per_tor: k / 2, links }
    }
}

/// Builds the tree: `core1`.., `agg1`.. and `tor1`.. pod by pod, servers `s1`... It has no Intermediates and no directory server, so
/// it carries every overlay but VL2's.
pub fn fat_tree(params: &FatTreeParams) -> Result<Fabric, TopologyError> {
    FabricSpec::FatTree(params.clone()).size()?;
    let half = params.k / 2;
    let mut builder = Builder::new(&params.links);
    let cores = builder.tier("core", Role::Core, half * half);
    let aggregations = builder.tier("agg", Role::Aggregation, params.k * half);
    let tors = builder.tier("tor", Role::Tor, params.k * half);
    let pods = aggregations.chunks(half as usize).zip(tors.chunks(half as usize));
    for (aggregations, tors) in pods {
        for (aggregation, above) in aggregations.iter().zip(cores.chunks(half as usize)) {
            builder.link_all(above, &[*aggregation], 1);
        }
        builder.link_all(aggregations, tors, 1);
    }
    builder.servers(&tors, &vec![params.servers_per_tor; tors.len()]);
    builder.finish("fat-tree")
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &FatTreeParams) -> Result<(), TopologyError> {
    if params.k % 2 == 1 {
        let reason = "half of a switch's ports lead up; choose an even number";
        return Err(TopologyError::BadParameter { parameter: "k", value: params.k.into(), reason });
    }
    check_counts(&[
        ("k", params.k, K_MAX, "choose an even number from 2 to 126"),
        ("servers_per_tor", params.servers_per_tor, HOSTS_PER_TOR_MAX, "choose 1 to 252"),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::id::NodeId;
    use crate::routing::EcmpRoutes;

    fn tree(k: u32) -> Fabric {
        fat_tree(&FatTreeParams::with_ports(k)).unwrap()
    }

    fn node(fabric: &Fabric, name: &str) -> NodeId {
        fabric.find(name).unwrap()
    }

    /// Names of the switches that a switch is linked to from below.
    fn above(fabric: &Fabric, name: &str) -> Vec<String> {
        let lower = node(fabric, name);
        let up = fabric.links_of(lower).iter().map(|link| fabric.link(*link)).filter(|link| link.b.node == lower);
        up.map(|link| fabric.node(link.a.node).name.clone()).collect()
    }

    #[test]
    fn every_port_of_every_switch_is_in_use() {
        for k in [2, 4, 6, 8] {
            let fabric = tree(k);
            let count = |role| fabric.with_role(role).count() as u32;
            let tiers = [Role::Core, Role::Aggregation, Role::Tor, Role::Server].map(count);
            assert_eq!(tiers, [k * k / 4, k * k / 2, k * k / 2, k * k * k / 4], "k = {k}");
            assert!(fabric.switches().all(|switch| fabric.links_of(switch).len() as u32 == k), "k = {k}");
        }
    }

    #[test]
    fn an_aggregation_has_its_cores_in_every_pod() {
        let fabric = tree(4);
        assert_eq!(above(&fabric, "tor1"), ["agg1", "agg2"]);
        assert_eq!(above(&fabric, "tor8"), ["agg7", "agg8"]);
        for (aggregation, cores) in [("agg1", ["core1", "core2"]), ("agg2", ["core3", "core4"])] {
            assert_eq!(above(&fabric, aggregation), cores);
        }
        assert_eq!(above(&fabric, "agg7"), ["core1", "core2"]);
    }

    #[test]
    fn there_are_as_many_ways_between_pods_as_cores() {
        let fabric = tree(8);
        let routes = EcmpRoutes::compute(&fabric, &BTreeSet::new());
        let [near, beside, far] = ["tor1", "tor2", "tor32"].map(|name| node(&fabric, name));
        let next = |at, to| routes.next_hops(at, to).len();
        assert_eq!((routes.distance(near, beside), routes.distance(near, far)), (Some(2), Some(4)));
        assert_eq!((next(near, beside), next(near, far)), (4, 4));
        assert_eq!(next(node(&fabric, "agg1"), far), 4);
        assert_eq!(next(node(&fabric, "core1"), far), 1);
    }

    #[test]
    fn what_makes_no_tree_is_refused_by_name() {
        for (k, servers_per_tor, message) in [
            (3, 1, "k = 3 makes no fabric: half of a switch's ports lead up; choose an even number"),
            (0, 1, "k = 0 makes no fabric: choose an even number from 2 to 126"),
            (128, 1, "k = 128 makes no fabric: choose an even number from 2 to 126"),
            (u32::MAX - 1, 1, "choose an even number from 2 to 126"),
            (4, 0, "servers_per_tor = 0 makes no fabric: choose 1 to 252"),
            (4, 253, "servers_per_tor = 253 makes no fabric: choose 1 to 252"),
            (126, 126, "the fabric would have 2000376 links"),
        ] {
            let error = fat_tree(&FatTreeParams { servers_per_tor, ..FatTreeParams::with_ports(k) }).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
