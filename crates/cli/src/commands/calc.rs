//! `weft calc`: what can be computed about a network.

use std::process::ExitCode;

use serde::Serialize;
use weft_scenario::record::NetworkRow;
use weft_scenario::workload::model::{CostSpec, Prices};

use crate::args::{CalcCommand, CostArgs};
use crate::exit::Failure;
use crate::output::{self, Rows};

pub(crate) fn calc(command: &CalcCommand) -> Result<ExitCode, Failure> {
    match command {
        CalcCommand::Cost(args) => cost(args),
    }
}

#[derive(Serialize)]
struct Costs<'a> {
    schema_version: u32,
    prices: &'a Prices,
    networks: &'a [NetworkRow],
}

fn cost(args: &CostArgs) -> Result<ExitCode, Failure> {
    let spec = cost_spec(args);
    spec.check().map_err(Failure::usage)?;
    let mut networks = Vec::new();
    for servers in &spec.servers {
        for oversubscription in &spec.oversubscription {
            let of_size = weft_model::cost::networks(&spec, *servers, *oversubscription).map_err(Failure::usage)?;
            networks.extend(of_size);
        }
    }
    let mut rows = Rows::new(&HEADINGS);
    networks.iter().for_each(|row| rows.push(cells(row).to_vec()));
    let json = Costs { schema_version: 1, prices: &spec.prices, networks: &networks };
    output::print(args.output.output, &rows, &json)?;
    Ok(ExitCode::SUCCESS)
}

fn cost_spec(args: &CostArgs) -> CostSpec {
    let default = Prices::default();
    CostSpec {
        servers: args.servers.clone(),
        oversubscription: args.oversubscription.clone(),
        servers_per_tor: args.servers_per_tor,
        prices: Prices {
            commodity: if args.switch.is_empty() { default.commodity } else { args.switch.clone() },
            conventional_10g: args.conventional_10g.unwrap_or(default.conventional_10g),
            conventional_1g: args.conventional_1g.unwrap_or(default.conventional_1g),
            tor_usd: args.tor_usd,
            cable_usd: args.cable_usd,
        },
    }
}

/// Headings of a table of networks.
const HEADINGS: [&str; 12] = [
    "design",
    "servers",
    "oversubscription",
    "has 1:",
    "ToRs",
    "Aggregations",
    "above",
    "ports",
    "server links",
    "cables",
    "switches ($)",
    "ToRs and cables ($)",
];

/// One line of it.
fn cells(row: &NetworkRow) -> [String; 12] {
    [
        row.design.clone(),
        row.servers.to_string(),
        format!("1:{}", row.oversubscription),
        format!("{:.2}", row.actual_oversubscription),
        row.tors.to_string(),
        row.aggregations.to_string(),
        row.upper_switches.to_string(),
        row.ports.to_string(),
        row.server_links.to_string(),
        row.cables.to_string(),
        format!("{:.0}", row.switches_usd),
        format!("{:.0}", row.tors_and_cables_usd),
    ]
}
