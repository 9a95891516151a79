//! The conventional network (VL2 2, Figure 1) in ports and dollars.
//!
//! Traffic goes ToR, Aggregation, access router, core router; each tier pays for the ports below it and above it. Four
//! designs differ in what they ask of it:
//!
//! | design | ToR's uplinks | above them |
//! | --- | --- | --- |
//! | `conventional` | as VL2's: 2 x 10 Gb/s for 20 servers | both of a pair carry traffic |
//! | `conventional-spare` | twice that | each of a pair can carry all (section 2's 1:1 redundancy, at most 50 % used) |
//! | `present` | 1:5, in links of 1 Gb/s ("1 to 4 Gbps of up-link for 20 servers") | both carry traffic |
//! | `present-spare` | twice that | each of a pair can carry all |
//!
//! Oversubscription beyond the ToR's is put half (by ratio) on the Aggregations' uplinks and half on the access routers'.

use weft_scenario::record::NetworkRow;
use weft_scenario::workload::model::CostSpec;

use super::{CORE_OVER_SERVER, tors_and_cables_usd};

/// Oversubscription of the present network's ToRs.
const PRESENT_TOR: u32 = 5;
/// Switches of a tier come in pairs.
const PAIR: u64 = 2;

struct Design {
    name: &'static str,
    tor_oversubscription: u32,
    uplink_gbps: u32,
    spare: u64,
}

const DESIGNS: [Design; 4] = [
    Design { name: "conventional", tor_oversubscription: 1, uplink_gbps: CORE_OVER_SERVER, spare: 1 },
    Design { name: "conventional-spare", tor_oversubscription: 1, uplink_gbps: CORE_OVER_SERVER, spare: 2 },
    Design { name: "present", tor_oversubscription: PRESENT_TOR, uplink_gbps: 1, spare: 1 },
    Design { name: "present-spare", tor_oversubscription: PRESENT_TOR, uplink_gbps: 1, spare: 2 },
];

/// The designs that can have this oversubscription: the present network is never below its ToRs' 1:5.
pub fn networks(spec: &CostSpec, servers: u32, oversubscription: u32) -> Vec<NetworkRow> {
    let possible = DESIGNS.iter().filter(|design| design.tor_oversubscription <= oversubscription);
    possible.map(|design| row(design, spec, servers, oversubscription)).collect()
}

fn row(design: &Design, spec: &CostSpec, servers: u32, oversubscription: u32) -> NetworkRow {
    let tors = u64::from(servers.div_ceil(spec.servers_per_tor));
    let above = f64::from(oversubscription) / f64::from(design.tor_oversubscription);
    let uplinks = tor_uplinks(design, spec.servers_per_tor);
    let rack_gbps = f64::from(spec.servers_per_tor * design.spare as u32) / f64::from(design.tor_oversubscription);
    let total_gbps = tors as f64 * rack_gbps;
    let aggregation_up = core_ports(total_gbps / above.sqrt());
    let access_up = core_ports(total_gbps / above);
    let from_tors = tors * uplinks;
    // Both ends of what leads up, from the Aggregations and from the access routers.
    let upper_ports = 2 * aggregation_up + 2 * access_up;
    let prices = &spec.prices;
    let tor_port = if design.uplink_gbps == 1 { prices.conventional_1g } else { prices.conventional_10g };
    let chassis = u64::from(prices.conventional_10g.ports);
    let cables = from_tors + aggregation_up + access_up;
    NetworkRow {
        design: design.name.into(),
        servers,
        oversubscription,
        actual_oversubscription: oversubscription.into(),
        servers_most: 0,
        switch_ports: prices.conventional_10g.ports,
        tors,
        aggregations: pairs_of(from_tors, tor_port.ports.into()).max(pairs_of(aggregation_up, chassis)),
        upper_switches: pairs_of(aggregation_up + access_up, chassis) + pairs_of(access_up, chassis),
        ports: from_tors + upper_ports,
        server_links: servers.into(),
        cables,
        switches_usd: from_tors as f64 * tor_port.usd_per_port()
            + upper_ports as f64 * prices.conventional_10g.usd_per_port(),
        tors_and_cables_usd: tors_and_cables_usd(prices, tors, cables),
    }
}

/// Uplinks of a ToR: as many to each of the two Aggregations.
fn tor_uplinks(design: &Design, servers_per_tor: u32) -> u64 {
    let gbps = servers_per_tor * design.spare as u32;
    let each = gbps.div_ceil(design.tor_oversubscription * 2 * design.uplink_gbps);
    PAIR * u64::from(each.max(1))
}

/// Ports of 10 Gb/s that carry so much; one for each of a pair at least.
fn core_ports(gbps: f64) -> u64 {
    ((gbps / f64::from(CORE_OVER_SERVER)).ceil() as u64).max(PAIR)
}

/// Chassis for so many ports, in pairs.
fn pairs_of(ports: u64, chassis: u64) -> u64 {
    ports.div_ceil(PAIR * chassis).max(1) * PAIR
}

#[cfg(test)]
mod tests {
    use weft_scenario::workload::model::{Prices, SwitchPrice};

    use super::*;

    /// A dollar a port, so that dollars are ports.
    fn spec() -> CostSpec {
        let port = |ports| SwitchPrice { ports, usd: f64::from(ports) };
        let prices = Prices { conventional_10g: port(100), conventional_1g: port(10), ..Prices::default() };
        CostSpec { servers: vec![], oversubscription: vec![], servers_per_tor: 20, prices }
    }

    fn of(design: &str, oversubscription: u32) -> Option<NetworkRow> {
        networks(&spec(), 20_000, oversubscription).into_iter().find(|row| row.design == design)
    }

    #[test]
    fn without_oversubscription_each_tor_needs_ten_ports_above_it() {
        // Aggregation, access: 2 down and 2 up each; core: 2 down. 1000 ToRs.
        let row = of("conventional", 1).unwrap();
        assert_eq!((row.ports, row.switches_usd, row.tors, row.cables), (10_000, 10_000.0, 1000, 6000));
        assert_eq!(of("conventional-spare", 1).unwrap().ports, 20_000);
        assert!(of("present", 1).is_none() && of("present", 4).is_none());
    }

    #[test]
    fn oversubscription_leaves_the_ports_to_the_tors() {
        // 1:4 leaves 1000 of 2000 ports above the Aggregations and 500 above the access routers, each at both ends.
        assert_eq!(of("conventional", 4).unwrap().ports, 2000 + 2 * 1000 + 2 * 500);
        // Present: 4 x 1 Gb/s a ToR; 4000 Gb/s at the top of 1:5, so 400 ports on both tiers.
        assert_eq!(of("present", 5).unwrap().ports, 4000 + 2 * 400 + 2 * 400);
        assert_eq!(of("present-spare", 5).unwrap().ports, 2 * (4000 + 2 * 400 + 2 * 400));
        let most = of("conventional", 1000).unwrap();
        assert_eq!(most.ports, 2000 + 2 * 64 + 2 * 2, "2000 / sqrt(1000) = 63.2; one port for each of a pair");
    }

    #[test]
    fn switches_come_in_pairs() {
        let row = of("conventional", 1).unwrap();
        assert_eq!(row.aggregations, 20, "2000 ports of 100 down, as many up on other cards");
        assert!(row.upper_switches.is_multiple_of(2));
    }
}
