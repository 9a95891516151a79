//! Flags of `weft calc`.

use clap::{Args, Subcommand};
use weft_scenario::workload::model::SwitchPrice;

use super::OutputFlag;

/// What can be computed.
#[derive(Debug, Subcommand)]
pub(crate) enum CalcCommand {
    /// Switches, cables and cost of VL2 and conventional networks of a size (VL2 6)
    #[command(after_help = "\
Examples:
  weft calc cost --servers 35000
  weft calc cost --servers 3000,100000 --oversubscription 1,5,23
  weft calc cost --servers 20000 --switch 32:9000 --switch 64:24000 --tor-usd 4000 --cable-usd 90 -o csv

Without prices they are those of 2009: 24 ports of 10 Gb/s for 6000 dollars and 144 for 75000 (VL2 6), conventional
routers with 128 for 700000 and 48 ports of 1 Gb/s for 7000 (Al-Fares et al., SIGCOMM 2008), ToRs and cables left out.")]
    Cost(CostArgs),
}

/// Flags of `weft calc cost`.
#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// Numbers of servers
    #[arg(long, required = true, value_delimiter = ',', value_name = "N")]
    pub(crate) servers: Vec<u32>,
    /// Oversubscriptions, 1 for none
    #[arg(long, value_delimiter = ',', default_value = "1,23,240", value_name = "N")]
    pub(crate) oversubscription: Vec<u32>,
    /// Servers of 1 Gb/s below each ToR
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) servers_per_tor: u32,
    /// A switch for VL2: ports of 10 Gb/s and dollars; may be given several times, the cheapest network is built
    #[arg(long, value_parser = switch_price, value_name = "PORTS:USD")]
    pub(crate) switch: Vec<SwitchPrice>,
    /// A conventional router: ports of 10 Gb/s and dollars
    #[arg(long, value_parser = switch_price, value_name = "PORTS:USD")]
    pub(crate) conventional_10g: Option<SwitchPrice>,
    /// A conventional Aggregation: ports of 1 Gb/s and dollars
    #[arg(long, value_parser = switch_price, value_name = "PORTS:USD")]
    pub(crate) conventional_1g: Option<SwitchPrice>,
    /// A ToR, dollars
    #[arg(long, default_value_t = 0.0, value_name = "USD")]
    pub(crate) tor_usd: f64,
    /// A cable between switches, dollars
    #[arg(long, default_value_t = 0.0, value_name = "USD")]
    pub(crate) cable_usd: f64,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

fn switch_price(text: &str) -> Result<SwitchPrice, String> {
    let wrong = || format!("`{text}` is no switch; write PORTS:USD, for example 144:75000");
    let (ports, usd) = text.split_once(':').ok_or_else(wrong)?;
    Ok(SwitchPrice { ports: ports.parse().map_err(|_| wrong())?, usd: usd.parse().map_err(|_| wrong())? })
}
