//! Flags of `weft vl2`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFlag;

/// Which daemon.
#[derive(Debug, Args)]
pub(crate) struct Vl2Socket {
    /// Unix socket that its configuration names as `status_socket` [default: /run/weft/agent.sock, of a ToR
    /// /run/weft/tor.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "node")]
    pub(crate) socket: Option<PathBuf>,
    /// A server or ToR of a lab by its name in the fabric
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Which lab; needed only while several are up
    #[arg(long, value_name = "NAME", requires = "node")]
    pub(crate) lab: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Vl2Command {
    /// Show the state of an agent or a ToR
    #[command(subcommand)]
    Show(Vl2ShowCommand),
}

#[derive(Debug, Args)]
pub(crate) struct Vl2ShowArgs {
    #[command(flatten)]
    pub(crate) daemon: Vl2Socket,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Vl2ShowCommand {
    /// An agent's mappings: where its server's packets to each AA are tunnelled
    #[command(after_help = "\
Examples:
  weft vl2 show cache
  weft vl2 show cache --node s1 -o json | jq '.mappings[].aa'")]
    Cache(Vl2ShowArgs),
    /// What became of an agent's frames and questions; the table leaves zeros out
    #[command(after_help = "\
Examples:
  weft vl2 show agent --node s1
  weft vl2 show agent --socket /run/weft/agent.sock -o json")]
    Agent(Vl2ShowArgs),
    /// What became of a ToR's packets and reports; the table leaves zeros out
    #[command(after_help = "Example:\n  weft vl2 show tor --node tor1")]
    Tor(Vl2ShowArgs),
}
