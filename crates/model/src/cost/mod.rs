//! What networks cost: VL2's Clos of commodity switches beside the conventional design (VL2 4.1, 6).
//!
//! * [`vl2`]: the cheapest Clos of one kind of switch for a number of servers
//! * [`conventional`]: pairs of Aggregations, access and core routers (Figure 1)
//!
//! As in the paper, switches between the ToRs count and ToRs and cables are a sum of their own, 0 unless they have a
//! price. VL2's switches are bought whole. Conventional ones are chassis with line cards, so their ports are bought.

pub mod conventional;
pub mod vl2;

use weft_scenario::record::{NetworkRow, Records};
use weft_scenario::topology::{ClosParams, Role, vl2_clos};
use weft_scenario::workload::model::{CostSpec, Prices};

use crate::ModelError;

/// Rate of a link between switches over that of a server's: 10 Gb/s over 1 Gb/s.
const CORE_OVER_SERVER: u32 = 10;
/// Uplinks of a VL2 ToR.
const TOR_UPLINKS: u64 = 2;

/// Prices every network of the specification, and counts the servers of the largest Clos of each kind of switch.
pub fn run(spec: &CostSpec) -> Result<Records, ModelError> {
    let mut records = Records::default();
    for servers in &spec.servers {
        for oversubscription in &spec.oversubscription {
            records.networks.extend(networks(spec, *servers, *oversubscription)?);
        }
    }
    for switch in &spec.prices.commodity {
        let servers = generated_servers(switch.ports, spec.servers_per_tor)?;
        records.facts.push((format!("generator.servers.{}-ports", switch.ports), servers as f64));
    }
    Ok(records)
}

/// All designs for so many servers at one oversubscription; an error names what cannot be built.
pub fn networks(spec: &CostSpec, servers: u32, oversubscription: u32) -> Result<Vec<NetworkRow>, ModelError> {
    let vl2 = vl2::cheapest(spec, servers, oversubscription)?;
    let conventional = conventional::networks(spec, servers, oversubscription);
    Ok(std::iter::once(vl2).chain(conventional).collect())
}

/// Servers of the network that the topology generator builds of switches with so many ports everywhere.
fn generated_servers(ports: u32, servers_per_tor: u32) -> Result<usize, ModelError> {
    let params = ClosParams { servers_per_tor, ..ClosParams::with_ports(ports) };
    let fabric = vl2_clos(&params).map_err(|error| ModelError::Shape(error.to_string()))?;
    Ok(fabric.with_role(Role::Server).count())
}

/// What ToRs and cables cost.
fn tors_and_cables_usd(prices: &Prices, tors: u64, cables: u64) -> f64 {
    tors as f64 * prices.tor_usd + cables as f64 * prices.cable_usd
}
