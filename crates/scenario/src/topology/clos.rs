//! The VL2 Clos network from the switches' port counts (VL2 4.1, Figure 5).
//!
//! | tier | switches | ports used on each |
//! | --- | --- | --- |
//! | Intermediate | D_A / 2 | D_I: one to every Aggregation |
//! | Aggregation | D_I | D_A: half up to every Intermediate, half down to ToRs |
//! | ToR | D_A D_I / 4 | two up, to two different Aggregations, and one for each server |
//!
//! The capacity between any two tiers is then D_A D_I / 2 core links in each direction. With 20 servers per ToR and a
//! core ten times as fast as the servers nothing is oversubscribed.

use super::builder::{Builder, HOSTS_PER_TOR_MAX, LinkParams};
use super::{Fabric, FabricSpec, Role, TopologyError};

/// Ports of the largest switch that is accepted; beyond it the addressing's blocks are too small.
const PORTS_MAX: u32 = 254;

/// What may be chosen about a VL2 Clos network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosParams {
    /// Ports of an Aggregation switch (D_A): even.
    pub aggregation_ports: u32,
    /// Ports of an Intermediate switch (D_I): at least 2, and D_A D_I must be a multiple of 4.
    pub intermediate_ports: u32,
    /// Servers below each ToR; the paper has 20.
    pub servers_per_tor: u32,
    /// Rates and buffers.
    pub links: LinkParams,
}

impl ClosParams {
    /// A network of switches with `ports` ports everywhere and the paper's 20 servers per ToR.
    pub fn with_ports(ports: u32) -> Self {
        Self { aggregation_ports: ports, intermediate_ports: ports, servers_per_tor: 20, links: LinkParams::default() }
    }

    /// How many Intermediates the network has: D_A / 2.
    pub fn intermediates(&self) -> u32 {
        self.aggregation_ports / 2
    }

    /// How many Aggregations the network has: D_I.
    pub fn aggregations(&self) -> u32 {
        self.intermediate_ports
    }

    /// How many ToRs the network has: D_A D_I / 4.
    pub fn tors(&self) -> u32 {
        self.aggregation_ports * self.intermediate_ports / 4
    }
}

/// Builds the network: `int1`.., `agg1`.., `tor1`.., servers `s1`.. and the directory server `dir1` below the last ToR.
pub fn vl2_clos(params: &ClosParams) -> Result<Fabric, TopologyError> {
    FabricSpec::Vl2Clos(params.clone()).size()?;
    let mut builder = Builder::new(&params.links);
    let intermediates = builder.tier("int", Role::Intermediate, params.intermediates());
    let aggregations = builder.tier("agg", Role::Aggregation, params.aggregations());
    let tors = builder.tier("tor", Role::Tor, params.tors());
    builder.link_all(&intermediates, &aggregations, 1);
    // Uplinks are dealt out in turn: two in a row end at different switches, and every switch gets D_A / 2 of them.
    let mut next = aggregations.iter().cycle();
    for tor in &tors {
        for aggregation in next.by_ref().take(2) {
            builder.link(*aggregation, *tor);
        }
    }
    builder.servers(&tors, &vec![params.servers_per_tor; tors.len()]);
    if let Some(last) = tors.last() {
        builder.directory(*last);
    }
    builder.finish("vl2-clos")
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &ClosParams) -> Result<(), TopologyError> {
    let refuse =
        |parameter, value: u32, reason| Err(TopologyError::BadParameter { parameter, value: u64::from(value), reason });
    let ClosParams { aggregation_ports: d_a, intermediate_ports: d_i, servers_per_tor, .. } = *params;
    if !(2..=PORTS_MAX).contains(&d_a) || !d_a.is_multiple_of(2) {
        return refuse(
            "aggregation_ports",
            d_a,
            "half of an Aggregation's ports go up; choose an even number, 2 to 254",
        );
    }
    if !(2..=PORTS_MAX).contains(&d_i) {
        return refuse("intermediate_ports", d_i, "a ToR needs two Aggregations, one per port; choose 2 to 254");
    }
    if !(d_a * d_i).is_multiple_of(4) {
        let reason = "aggregation_ports x intermediate_ports / 4 ToRs must be a whole number; choose a multiple of 4";
        return refuse("aggregation_ports x intermediate_ports", d_a * d_i, reason);
    }
    if !(1..=HOSTS_PER_TOR_MAX).contains(&servers_per_tor) {
        return refuse("servers_per_tor", servers_per_tor, "a rack has room for 1 to 252 servers and the directory");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::NodeId;

    fn degree_to(fabric: &Fabric, node: NodeId, role: Role) -> u32 {
        let far = |link| fabric.link(link).far_end(node).unwrap().node;
        fabric.links_of(node).iter().filter(|link| fabric.node(far(**link)).role == role).count() as u32
    }

    fn counts(fabric: &Fabric) -> [usize; 4] {
        [Role::Intermediate, Role::Aggregation, Role::Tor, Role::Server].map(|role| fabric.with_role(role).count())
    }

    #[test]
    fn switches_with_24_ports_connect_about_3_thousand_servers() {
        assert_eq!(counts(&vl2_clos(&ClosParams::with_ports(24)).unwrap()), [12, 24, 144, 2880]);
    }

    #[test]
    fn switches_with_144_ports_connect_more_than_100_thousand_servers() {
        let fabric = vl2_clos(&ClosParams::with_ports(144)).unwrap();
        assert_eq!(counts(&fabric), [72, 144, 5184, 103_680]);
    }

    #[test]
    fn port_counts_that_leave_ports_over_are_refused() {
        for (d_a, d_i, servers) in
            [(0, 4, 1), (3, 4, 1), (4, 0, 1), (4, 1, 1), (2, 3, 1), (256, 4, 1), (4, 4, 0), (4, 4, 253)]
        {
            let params = ClosParams {
                aggregation_ports: d_a,
                intermediate_ports: d_i,
                servers_per_tor: servers,
                links: LinkParams::default(),
            };
            let error = vl2_clos(&params).unwrap_err();
            assert!(matches!(error, TopologyError::BadParameter { .. }), "{d_a} {d_i} {servers}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn every_port_is_used_as_figure_5_says(half in 1u32..9, d_i in 2u32..13, servers_per_tor in 1u32..5) {
            let d_a = 2 * half;
            prop_assume!(d_a * d_i % 4 == 0);
            let params = ClosParams {
                aggregation_ports: d_a,
                intermediate_ports: d_i,
                servers_per_tor,
                links: LinkParams::default(),
            };
            let fabric = vl2_clos(&params).unwrap();
            let tors = d_a * d_i / 4;
            let expected = [d_a / 2, d_i, tors, tors * servers_per_tor].map(|count| count as usize);
            prop_assert_eq!(counts(&fabric), expected);
            for int in fabric.with_role(Role::Intermediate) {
                prop_assert_eq!(fabric.links_of(int).len() as u32, d_i);
                prop_assert_eq!(degree_to(&fabric, int, Role::Aggregation), d_i);
            }
            for agg in fabric.with_role(Role::Aggregation) {
                prop_assert_eq!(degree_to(&fabric, agg, Role::Intermediate), d_a / 2);
                prop_assert_eq!(degree_to(&fabric, agg, Role::Tor), d_a / 2);
            }
            for tor in fabric.with_role(Role::Tor) {
                prop_assert_eq!(degree_to(&fabric, tor, Role::Aggregation), 2);
                prop_assert_eq!(degree_to(&fabric, tor, Role::Server), servers_per_tor);
            }
            let between = |upper: Role| fabric.links().iter().filter(|link| fabric.node(link.a.node).role == upper).count();
            prop_assert_eq!(between(Role::Intermediate) as u32, d_a * d_i / 2);
            prop_assert_eq!(between(Role::Aggregation) as u32, d_a * d_i / 2);
        }
    }
}
