//! Flags of `weft trill`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFlag;

/// Which RBridge.
#[derive(Debug, Args)]
pub(crate) struct RBridgeSocket {
    /// Unix socket of the RBridge [default: /run/weft/rbridge.sock]
    #[arg(long, value_name = "PATH", env = "WEFT_RBRIDGE_SOCKET", conflicts_with = "node")]
    pub(crate) socket: Option<PathBuf>,
    /// An RBridge of a lab by its name in the fabric
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Which lab; needed only while several are up
    #[arg(long, value_name = "NAME", requires = "node")]
    pub(crate) lab: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrillCommand {
    /// Show the state of an RBridge
    #[command(subcommand)]
    Show(TrillShowCommand),
    /// End the daemon and remove its data path, pins included; other RBridges are told at once
    #[command(after_help = "Example:\n  weft trill stop")]
    Stop {
        #[command(flatten)]
        rbridge: RBridgeSocket,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TrillShowArgs {
    #[command(flatten)]
    pub(crate) rbridge: RBridgeSocket,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrillShowCommand {
    /// Links to other RBridges: how far the two ends know of each other
    #[command(after_help = "Example:\n  weft trill show adjacency --node s1")]
    Adjacency(TrillShowArgs),
    /// The link state database: every RBridge's LSPs
    #[command(after_help = "Example:\n  weft trill show lsdb --node s1 -o json")]
    Lsdb(TrillShowArgs),
    /// Who holds which nickname
    #[command(after_help = "Example:\n  weft trill show nickname --node s1")]
    Nickname(TrillShowArgs),
    /// Next hops to every egress RBridge
    #[command(after_help = "\
Examples:
  weft trill show route
  weft trill show route --node s1 -o json | jq '.routes[] | {hostname, hops: [.hops[].interface]}'")]
    Route(TrillShowArgs),
    /// Distribution trees and their branches here
    #[command(after_help = "Example:\n  weft trill show tree --node s1")]
    Tree(TrillShowArgs),
    /// From which port frames of each tree and ingress are accepted
    #[command(after_help = "Example:\n  weft trill show rpf --node s1")]
    Rpf(TrillShowArgs),
    /// Where each station is
    #[command(after_help = "Example:\n  weft trill show fdb --socket /run/weft/rbridge.sock -o csv")]
    Fdb(TrillShowArgs),
    /// What became of frames, port by port, and of IS-IS; the table leaves zeros out
    #[command(after_help = "\
Examples:
  weft trill show counters --node s1
  weft trill show counters --lab blue --node s1 -o json   with the zeros")]
    Counters(TrillShowArgs),
}
