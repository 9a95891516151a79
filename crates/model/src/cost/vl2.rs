//! The cheapest VL2 network for a number of servers.
//!
//! Figure 5 gives D_A D_I / 4 ToRs of 20 servers: 103,680 servers of 144-port switches. The "slight variation" for 200 K
//! is not described; here each ToR's two uplinks go to two separate Clos networks (planes) of the same kind, which is
//! twice as many ToRs at the same oversubscription, with every ToR still on two Aggregations.
//!
//! Oversubscription is put between Aggregations and Intermediates: an Aggregation has more ports down than up. Every
//! Aggregation has equally many links to every Intermediate, so that VLB splits evenly.

use weft_scenario::record::NetworkRow;
use weft_scenario::workload::model::{CostSpec, SwitchPrice};

use super::{CORE_OVER_SERVER, TOR_UPLINKS, tors_and_cables_usd};
use crate::ModelError;

/// Planes that are tried.
const PLANES: [u64; 2] = [1, 2];
/// Fewer Aggregations or Intermediates would not survive a failure.
const LEAST: u64 = 2;

/// A Clos network in numbers; of each plane there are `planes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
    /// Separate networks.
    pub planes: u64,
    /// Aggregations of one plane.
    pub aggregations: u64,
    /// Intermediates of one plane.
    pub intermediates: u64,
    /// Ports of an Aggregation to ToRs.
    pub down: u64,
    /// Ports of an Aggregation to Intermediates.
    pub up: u64,
}

impl Clos {
    /// The smallest network of switches with `ports` ports for so many ToRs; `None` if it needs more ports.
    pub fn smallest(tors: u64, ports: u64, oversubscription: u64, planes: u64) -> Option<Self> {
        let up = ports.div_ceil(oversubscription + 1).max(LEAST);
        let down = ports.checked_sub(up).filter(|down| *down > 0)?;
        let least = if planes == 1 { LEAST } else { 1 };
        let aggregations = (tors * TOR_UPLINKS).div_ceil(planes).div_ceil(down).max(least);
        let even = |count: &u64| up.is_multiple_of(*count) && aggregations * (up / count) <= ports;
        let intermediates = (LEAST..=up).find(even)?;
        Some(Self { planes, aggregations, intermediates, down, up })
    }

    /// All switches of all planes.
    pub fn switches(&self) -> u64 {
        self.planes * (self.aggregations + self.intermediates)
    }
}

/// The cheapest network of the kinds of switches that have a price.
pub fn cheapest(spec: &CostSpec, servers: u32, oversubscription: u32) -> Result<NetworkRow, ModelError> {
    let tors = u64::from(servers.div_ceil(spec.servers_per_tor));
    let of_kind = |switch: &SwitchPrice| {
        let ports = u64::from(switch.ports);
        let found = PLANES.iter().find_map(|planes| Clos::smallest(tors, ports, u64::from(oversubscription), *planes));
        found.map(|clos| row(spec, servers, oversubscription, switch, clos))
    };
    let rows = spec.prices.commodity.iter().filter_map(of_kind);
    rows.min_by(|a, b| a.switches_usd.total_cmp(&b.switches_usd)).ok_or_else(|| {
        let kinds: Vec<String> = spec.prices.commodity.iter().map(|switch| switch.ports.to_string()).collect();
        ModelError::TooLarge(format!(
            "no VL2 network of switches with {} ports has {servers} servers at 1:{oversubscription}; name a larger switch",
            kinds.join(" or ")
        ))
    })
}

fn row(spec: &CostSpec, servers: u32, oversubscription: u32, switch: &SwitchPrice, clos: Clos) -> NetworkRow {
    let tors = u64::from(servers.div_ceil(spec.servers_per_tor));
    let cables = tors * TOR_UPLINKS + clos.planes * clos.aggregations * clos.up;
    let racks = f64::from(spec.servers_per_tor) / (TOR_UPLINKS * u64::from(CORE_OVER_SERVER)) as f64;
    let ports = u64::from(switch.ports);
    NetworkRow {
        design: "vl2".into(),
        servers,
        oversubscription,
        actual_oversubscription: racks.max(1.0) * (clos.down as f64 / clos.up as f64).max(1.0),
        servers_most: most_tors(clos, ports) * u64::from(spec.servers_per_tor),
        switch_ports: switch.ports,
        tors,
        aggregations: clos.planes * clos.aggregations,
        upper_switches: clos.planes * clos.intermediates,
        ports: clos.switches() * ports,
        server_links: servers.into(),
        cables,
        switches_usd: clos.switches() as f64 * switch.usd,
        tors_and_cables_usd: tors_and_cables_usd(&spec.prices, tors, cables),
    }
}

/// ToRs of as many Aggregations as an Intermediate has ports, with one link to each.
fn most_tors(clos: Clos, ports: u64) -> u64 {
    clos.planes * ports * clos.down / TOR_UPLINKS
}

#[cfg(test)]
mod tests {
    use weft_scenario::workload::model::Prices;

    use super::*;

    fn spec() -> CostSpec {
        CostSpec { servers: vec![], oversubscription: vec![], servers_per_tor: 20, prices: Prices::default() }
    }

    #[test]
    fn whole_networks_are_those_of_the_generator() {
        let of = |servers| cheapest(&spec(), servers, 1).unwrap();
        let small = of(2880);
        assert_eq!((small.aggregations, small.upper_switches, small.tors, small.switch_ports), (24, 12, 144, 24));
        assert_eq!((small.servers_most, small.switches_usd, small.ports), (2880, 36.0 * 6000.0, 36 * 24));
        assert_eq!(small.cables, 288 + 288);
        let large = of(103_680);
        assert_eq!((large.aggregations, large.upper_switches, large.tors), (144, 72, 5184));
        assert_eq!((large.servers_most, large.switches_usd), (103_680, 216.0 * 75_000.0));
        assert_eq!(large.actual_oversubscription, 1.0);
    }

    #[test]
    fn two_planes_connect_200_thousand() {
        let row = cheapest(&spec(), 200_000, 1).unwrap();
        assert_eq!((row.servers_most, row.aggregations, row.upper_switches), (207_360, 2 * 139, 2 * 72));
        assert_eq!(cheapest(&spec(), 207_360, 1).unwrap().aggregations, 288);
        let error = cheapest(&spec(), 207_361, 1).unwrap_err().to_string();
        assert!(error.starts_with("no VL2 network of switches with 24 or 144 ports has 207361 servers"), "{error}");
    }

    #[test]
    fn thirty_five_thousand_servers_need_49_aggregations_and_36_intermediates() {
        // 3500 uplinks of ToRs at 72 an Aggregation; 72 uplinks dealt out evenly, 2 to each, use 98 of 144 ports.
        let row = cheapest(&spec(), 35_000, 1).unwrap();
        assert_eq!((row.aggregations, row.upper_switches, row.switches_usd), (49, 36, 85.0 * 75_000.0));
        let over = cheapest(&spec(), 35_000, 23).unwrap();
        assert_eq!((over.aggregations, over.upper_switches, over.actual_oversubscription), (26, 2, 23.0));
    }

    #[test]
    fn tors_and_cables_are_a_sum_of_their_own() {
        let prices = Prices { tor_usd: 1000.0, cable_usd: 10.0, ..Prices::default() };
        let row = cheapest(&CostSpec { prices, ..spec() }, 2880, 1).unwrap();
        assert_eq!(row.tors_and_cables_usd, 144.0 * 1000.0 + 576.0 * 10.0);
        assert_eq!(row.switches_usd, 216_000.0);
    }

    #[test]
    fn every_port_count_is_kept() {
        for (tors, ports, over) in [(1, 24, 1), (7, 24, 3), (150, 144, 1), (1750, 144, 240), (5000, 144, 5)] {
            let clos = Clos::smallest(tors, ports, over, 1).unwrap();
            assert!(clos.up + clos.down <= ports && clos.aggregations * clos.down >= tors * 2);
            assert!(clos.aggregations * (clos.up / clos.intermediates) <= ports);
            assert!(clos.down <= over * clos.up, "{clos:?}");
        }
    }
}
