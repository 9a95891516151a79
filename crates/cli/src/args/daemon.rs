//! Flags of what all daemons have: `weft show`, `weft reload`, `weft stop`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use weft_node::DaemonKind;

use super::OutputFlag;

/// Which daemon of a kind.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Its control socket, `socket` in its settings [default: /run/weft/DAEMON.sock]
    #[arg(long, value_name = "PATH", env = "WEFT_SOCKET", conflicts_with = "node")]
    pub(crate) socket: Option<PathBuf>,
    /// The one of a lab's node, by the node's name in the fabric
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Which lab; needed only while several are up
    #[arg(long, value_name = "NAME", requires = "node")]
    pub(crate) lab: Option<String>,
}

/// A daemon, as in `weft node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DaemonChoice {
    /// VL2 agent of a server
    Agent,
    /// Directory server
    Directory,
    /// VL2's Intermediate or ToR
    Switch,
    /// VL2's ToR reporter
    Tor,
    /// VXLAN tunnel end point
    Vtep,
    /// RBridge of a TRILL campus
    Rbridge,
}

impl From<DaemonChoice> for DaemonKind {
    fn from(choice: DaemonChoice) -> Self {
        match choice {
            DaemonChoice::Agent => Self::Agent,
            DaemonChoice::Directory => Self::Directory,
            DaemonChoice::Switch => Self::Switch,
            DaemonChoice::Tor => Self::Tor,
            DaemonChoice::Vtep => Self::Vtep,
            DaemonChoice::Rbridge => Self::Rbridge,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OneDaemon {
    /// Which kind
    pub(crate) daemon: DaemonChoice,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// What is shown of which daemon, and how.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs<W: ValueEnum + Default + Send + Sync + 'static> {
    /// What of it
    #[arg(value_enum, default_value_t)]
    pub(crate) what: W,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShowCommand {
    /// A VL2 agent: its mappings, what became of frames and questions
    #[command(after_help = "\
Examples:
  weft show agent
  weft show agent mappings --node s1 -o json | jq '.mappings[].aa'")]
    Agent(ShowArgs<AgentWhat>),
    /// A directory server: its table in numbers, look-ups, updates, corrections
    #[command(after_help = "Example:\n  weft show directory -o json | jq .lookups")]
    Directory(ShowArgs<What>),
    /// An Intermediate or ToR: what became of packets, every reason of a drop
    #[command(after_help = "\
Examples:
  weft show switch
  weft show switch --node int1 -o csv")]
    Switch(ShowArgs<What>),
    /// A ToR reporter: what became of its packets and reports
    #[command(after_help = "Example:\n  weft show tor --node tor1")]
    Tor(ShowArgs<What>),
    /// A VXLAN tunnel end point: segments, stations, peers
    #[command(after_help = "\
Examples:
  weft show vtep vni
  weft show vtep fdb --vni 100 -o json
  weft show vtep config > vtep.toml      keep what was changed while it ran")]
    Vtep {
        #[command(flatten)]
        show: ShowArgs<VtepWhat>,
        /// Of `fdb`, this segment only
        #[arg(long, value_name = "VNI")]
        vni: Option<u32>,
    },
    /// An RBridge: adjacencies, routes, trees, stations
    #[command(after_help = "\
Examples:
  weft show rbridge adjacency
  weft show rbridge route --node s1 -o json | jq '.routes[] | {hostname, hops: [.hops[].interface]}'
  weft show rbridge counters --lab blue --node s1 -o json      with the zeros")]
    Rbridge(ShowArgs<RBridgeWhat>),
}

/// What of a directory server, switch or ToR reporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// What happened, by name; the table leaves zeros out
    #[default]
    Counters,
    /// The settings in force, as TOML
    Config,
}

/// What of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentWhat {
    /// What became of frames and questions; the table leaves zeros out
    #[default]
    Counters,
    /// Where its server's packets to each AA are tunnelled
    Mappings,
    /// The settings in force, as TOML
    Config,
}

/// What of a VTEP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VtepWhat {
    /// What became of frames, by outcome, and of questions to the directory; the table leaves zeros out
    #[default]
    Counters,
    /// Segments with their ports, policies and traffic
    Vni,
    /// Forwarding entries: where each MAC is
    Fdb,
    /// Other VTEPs and the traffic with them
    Peers,
    /// The settings in force, as TOML
    Config,
}

/// What of an RBridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RBridgeWhat {
    /// What became of frames, port by port, and of IS-IS; the table leaves zeros out
    #[default]
    Counters,
    /// Links to other RBridges: how far the two ends know of each other
    Adjacency,
    /// Shared links: DRB, Designated VLAN, who serves end stations of which VLAN
    Shared,
    /// The link state database: every RBridge's LSPs
    Lsdb,
    /// Who holds which nickname
    Nickname,
    /// Next hops to every egress RBridge
    Route,
    /// Distribution trees and their branches here
    Tree,
    /// From which port frames of each tree and ingress are accepted
    Rpf,
    /// IP multicast groups, and who listens to them
    Groups,
    /// Where each station is
    Fdb,
    /// The settings in force, as TOML
    Config,
}
