//! Flags of `weft analyse`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weft_model::flow_log::places::Block;
use weft_scenario::units::Nanos;

use super::OutputFlag;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weft analyse flows.csv
  weft analyse flows.csv --inside 10.20.0.0/16 --rack-prefix 26 --out results/today
  nfdump -R /var/cache/nfdump -O tstart -N -6 -o extended | weft analyse - -o json
  yafscii --tabular --print-header --in flows.yaf --out - | weft analyse - --reorder 5min
  weft analyse --generate --duration 1440min --write flows.csv --out results/generated

A CSV log has a header; its columns may stand in any order and have other names (docs/analyse.md):
  start_s,end_s,from,to,bytes
  1250503200.125,1250503201.5,10.0.0.1,10.0.1.7,52000";

#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    /// Flow log as text; `-` is standard input
    #[arg(required_unless_present = "generate", conflicts_with = "generate")]
    pub(crate) flows: Option<PathBuf>,
    /// How the log is written [default: what its first line says]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatChoice>,
    /// How far a flow may start before one of an earlier line; more is refused
    #[arg(long, value_name = "TIME", default_value = "0 s")]
    pub(crate) reorder: Nanos,
    /// Length of the interval of one matrix
    #[arg(long, value_name = "TIME", default_value = "100 s")]
    pub(crate) interval: Nanos,
    /// Into how many clusters the course of the traffic is put
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clusters: u32,
    /// Leave out the matrices between racks
    #[arg(long)]
    pub(crate) no_matrices: bool,
    /// Folder for the records, the summary and a page with the figures; it must not be there yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
    #[command(flatten)]
    pub(crate) racks: RackArgs,
    // Last: its heading would hold for what follows.
    #[command(flatten)]
    pub(crate) generate: GenerateArgs,
}

/// Which addresses are servers, and of which rack.
#[derive(Debug, Args)]
#[command(next_help_heading = "Racks")]
pub(crate) struct RackArgs {
    /// A block of addresses that are servers (repeat for more) [default: private addresses]
    #[arg(long, value_name = "BLOCK", conflicts_with = "racks")]
    pub(crate) inside: Vec<Block>,
    /// Bits of an IPv4 address that name the rack
    #[arg(long, value_name = "BITS", default_value_t = 24, value_parser = clap::value_parser!(u8).range(..=32), conflicts_with = "racks")]
    pub(crate) rack_prefix: u8,
    /// Bits of an IPv6 address that name the rack
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u8).range(..=128), conflicts_with = "racks")]
    pub(crate) rack_prefix_v6: u8,
    /// File of lines `BLOCK NAME`; addresses in none of the blocks are outside
    #[arg(long, value_name = "FILE")]
    pub(crate) racks: Option<PathBuf>,
}

/// A generated log in the place of a file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Generated log")]
pub(crate) struct GenerateArgs {
    /// Generate a log with the statistics that VL2 publishes
    #[arg(long)]
    pub(crate) generate: bool,
    /// How long it is
    #[arg(long, value_name = "TIME", default_value = "60 min", requires = "generate")]
    pub(crate) duration: Nanos,
    /// Racks
    #[arg(long, value_name = "N", default_value_t = 75, value_parser = clap::value_parser!(u32).range(1..=65_536), requires = "generate")]
    pub(crate) rack_count: u32,
    /// Servers of a rack
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=250), requires = "generate")]
    pub(crate) servers_per_rack: u32,
    /// Seed of everything random
    #[arg(long, default_value_t = 1, requires = "generate")]
    pub(crate) seed: u64,
    /// Write the log as CSV
    #[arg(short, long, value_name = "FILE", requires = "generate")]
    pub(crate) write: Option<PathBuf>,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatChoice {
    /// Columns named by a header: CSV, `nfdump -o csv`, rwcut, yafscii --tabular
    Csv,
    /// Columns with the names of IPFIX information elements; read like csv
    Ipfix,
    /// nfdump -o line, long or extended
    Nfdump,
}
