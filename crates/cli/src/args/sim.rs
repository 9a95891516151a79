//! Flags of `weft sim`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use weft_scenario::units::{Bytes, Nanos, Percent, named};

use super::{OutputFlag, OverlayChoice, SetFlag};

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// A scenario (TOML file, or the short name of one that is shipped: web-search-dctcp), or a fabric as --fabric takes it
    #[arg(required_unless_present = "fabric")]
    pub(crate) scenario: Option<String>,
    /// The fabric: short name, YAML file, or generator such as fat-tree:k=8 (`weft fabric list` shows all); beside a scenario
    /// in the place of its own
    #[arg(long)]
    pub(crate) fabric: Option<String>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) set: SetFlag,
    /// Run folder for rows, scenario, network, summary and report, which `weft query`, `report` and `trend` take; it must not be there yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print what happens to one flow, by its place in the order of starts, from 0
    #[arg(long, value_name = "flow=N")]
    pub(crate) trace: Option<TraceTarget>,
    /// Write the packets that leave a node by one interface; needs --write
    #[arg(long, value_name = "NODE:IF", requires = "write")]
    pub(crate) capture: Option<String>,
    /// The pcapng file for --capture
    #[arg(short, long, value_name = "FILE", requires = "capture")]
    pub(crate) write: Option<PathBuf>,
    /// Threads of the run, which change nothing but how long it takes [default: 1, and from 10,000 servers on as many as there are
    /// cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
    // Last: its heading would hold for what follows.
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
}

impl SimArgs {
    /// What was named: the scenario, else the fabric.
    pub(crate) fn named(&self) -> &str {
        self.scenario.as_deref().or(self.fabric.as_deref()).unwrap_or_default()
    }
}

/// What happens on a fabric; a TOML file says it itself.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic on a fabric")]
pub(crate) struct TrafficArgs {
    /// Who sends what to whom
    #[arg(long, value_enum, conflicts_with = "flows")]
    pub(crate) workload: Option<WorkloadChoice>,
    /// Flow file: lines of `start_ps from to packets spine`
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    /// Payload of each flow (permutation, shuffle) [default: 1 MB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bytes: Option<Bytes>,
    /// Distance between sender and receiver (permutation) [default: half of the servers]
    #[arg(long, value_name = "N")]
    pub(crate) shift: Option<u32>,
    /// Share of what every server's link can carry, such as 80% (web-search, data-mining) [default: 50%]
    #[arg(long, value_name = "PERCENT", value_parser = named::whole::<Percent, u32>)]
    pub(crate) load: Option<u32>,
    /// How long flows arrive (web-search, data-mining, query) [default: what a server's link needs for 100 MB: 80 ms at 10
    /// Gbit/s, 40 s at 20 Mbit/s]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Nanos>,
    /// How many servers one query asks (query) [default: 20, or all others]
    #[arg(long, value_name = "N")]
    pub(crate) fan_in: Option<u32>,
    /// Payload of all responses to a query together (query) [default: 1 MB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) response: Option<Bytes>,
    /// Mean time between two queries of a server (query) [default: so that responses are a tenth of what its link can
    /// carry]
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<Nanos>,
    /// How servers reach each other [default: rbridge among RBridges, vl2 where there are Intermediates, else routed]
    #[arg(long, value_enum)]
    pub(crate) overlay: Option<OverlayChoice>,
    /// Cut the run after this simulated time [default: 100 s]
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<Nanos>,
}

/// Workloads that have a name of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadChoice {
    /// Every server sends one flow, each to another
    Permutation,
    /// Every server sends to every other, all at once
    Shuffle,
    /// Background flows with the sizes of a web search (DCTCP, 2010)
    WebSearch,
    /// Background flows with the sizes of data mining (VL2, 2009)
    DataMining,
    /// Servers ask many others at once, which answer together
    Query,
}

/// `flow=17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceTarget {
    /// The flow's place in the order of starts, from 0.
    pub(crate) flow: u32,
}

impl FromStr for TraceTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("flow=").and_then(|number| number.parse().ok());
        number.map(|flow| Self { flow }).ok_or_else(|| "write for example flow=17".to_owned())
    }
}
