//! The test bed of the VL2 paper (5): 3 Intermediate, 3 Aggregation and 4 ToR switches, 75 servers.
//!
//! Its wiring does not follow from D_A and D_I, so it is written out: every Aggregation switch has a link to every
//! Intermediate, every ToR has two uplinks, and the eight uplinks are spread 3/3/2 over the Aggregation switches.

use std::cmp::Reverse;

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams};
use super::{Fabric, Role, TopologyError};

/// Which two Aggregation switches each ToR is linked to, counted from 0.
const UPLINKS: [[usize; 2]; 4] = [[0, 1], [1, 2], [2, 0], [0, 1]];

/// What may be chosen about the test bed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestbedParams {
    /// Servers below each of the four ToRs. The paper's 75 servers are 19, 19, 19 and 18.
    pub servers_per_tor: [u32; 4],
    /// Rates and buffers.
    pub links: LinkParams,
}

impl Default for TestbedParams {
    fn default() -> Self {
        Self { servers_per_tor: [19, 19, 19, 18], links: LinkParams::default() }
    }
}

/// Builds the test bed: `int1`..`int3`, `agg1`..`agg3`, `tor1`..`tor4`, servers `s1`.. and the directory server `dir1`
/// below the ToR with the fewest servers (the last of them).
pub fn vl2_testbed(params: &TestbedParams) -> Result<Fabric, TopologyError> {
    check(params)?;
    let mut builder = Builder::new(&params.links);
    let intermediates = builder.tier("int", Role::Intermediate, 3);
    let aggregations = builder.tier("agg", Role::Aggregation, 3);
    let tors = builder.tier("tor", Role::Tor, 4);
    builder.link_all(&intermediates, &aggregations, 1);
    for (tor, uplinks) in tors.iter().zip(UPLINKS) {
        for aggregation in uplinks {
            builder.link(aggregations[aggregation], *tor);
        }
    }
    builder.servers(&tors, &params.servers_per_tor);
    let emptiest = (0..4).min_by_key(|tor| (params.servers_per_tor[*tor], Reverse(*tor))).unwrap_or(3);
    builder.directory(tors[emptiest]);
    builder.finish("vl2-testbed")
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &TestbedParams) -> Result<(), TopologyError> {
    let refuse =
        |parameter, value: u32, reason| Err(TopologyError::BadParameter { parameter, value: u64::from(value), reason });
    match params.servers_per_tor.iter().max() {
        Some(0) | None => {
            refuse("servers_per_tor", 0, "a fabric without servers carries nothing; give one ToR a server")
        }
        Some(&most) if most > HOSTS_PER_TOR_MAX => refuse("servers_per_tor", most, "a rack has room for 252 servers"),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;

    fn bed() -> Fabric {
        vl2_testbed(&TestbedParams::default()).unwrap()
    }

    fn degree_to(fabric: &Fabric, node: NodeId, role: Role) -> usize {
        let far = |link| fabric.link(link).far_end(node).unwrap().node;
        fabric.links_of(node).iter().filter(|link| fabric.node(far(**link)).role == role).count()
    }

    #[test]
    fn it_has_the_papers_switches_and_servers() {
        let fabric = bed();
        let count = |role| fabric.with_role(role).count();
        assert_eq!(
            [Role::Intermediate, Role::Aggregation, Role::Tor, Role::Server, Role::Directory].map(count),
            [3, 3, 4, 75, 1]
        );
        assert_eq!(fabric.links().len(), 9 + 8 + 75 + 1);
    }

    #[test]
    fn seventeen_links_end_at_the_aggregations_spread_3_3_2() {
        let fabric = bed();
        let downlinks: Vec<usize> =
            fabric.with_role(Role::Aggregation).map(|agg| degree_to(&fabric, agg, Role::Tor)).collect();
        assert_eq!(downlinks, [3, 3, 2]);
        for agg in fabric.with_role(Role::Aggregation) {
            assert_eq!(degree_to(&fabric, agg, Role::Intermediate), 3);
        }
        for tor in fabric.with_role(Role::Tor) {
            assert_eq!(degree_to(&fabric, tor, Role::Aggregation), 2);
        }
    }

    #[test]
    fn servers_fill_the_tors_in_order_and_the_directory_is_where_there_is_room() {
        let fabric = bed();
        let below = |host: &str| {
            let (edge, _) = fabric.edge_of(fabric.find(host).unwrap()).unwrap();
            fabric.node(edge).name.clone()
        };
        assert_eq!(
            [below("s1"), below("s19"), below("s20"), below("s75"), below("dir1")],
            ["tor1", "tor1", "tor2", "tor4", "tor4"]
        );
        assert_eq!(fabric.link_name(fabric.links_of(fabric.find("s17").unwrap())[0]), "tor1:s17 - s17:eth0");
        assert_eq!(fabric.link_name(crate::id::LinkId(0)), "int1:agg1 - agg1:int1");
    }

    #[test]
    fn links_are_fast_in_the_core_and_carry_both_outer_headers() {
        let fabric = bed();
        for (index, link) in fabric.links().iter().enumerate() {
            let to_host = !fabric.node(link.b.node).role.is_switch();
            let expected = if to_host { (20_000_000, 4_000_000) } else { (200_000_000, 16_000_000) };
            assert_eq!((link.spec.rate.0, link.spec.buffer.0), expected, "link {index}");
            assert_eq!((link.spec.mtu_bytes, link.spec.delay.0), (1600, 0));
        }
    }

    #[test]
    fn a_bed_without_servers_or_with_an_overfull_rack_is_refused() {
        for servers_per_tor in [[0; 4], [1, 1, 1, 253]] {
            let params = TestbedParams { servers_per_tor, ..TestbedParams::default() };
            assert!(matches!(vl2_testbed(&params), Err(TopologyError::BadParameter { .. })));
        }
        assert!(vl2_testbed(&TestbedParams { servers_per_tor: [1, 0, 0, 0], ..TestbedParams::default() }).is_ok());
    }
}
