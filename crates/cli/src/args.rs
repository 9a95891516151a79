//! The command line: every verb, its flags and its examples. No logic.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Builds, runs and measures large virtual layer-2 data-centre fabrics on Linux.
#[derive(Debug, Parser)]
#[command(name = "weft", version, about, propagate_version = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Say less: no progress, only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more (repeat for even more); RUST_LOG overrides it
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  weft doctor                              what this machine can and cannot do
  weft run vl2/fig09-shuffle               one figure of a paper, its number beside ours
  weft lab up vl2-4servers                 a fabric of namespaces that stays up
  weft lab exec s1 -- ping -c 3 20.0.0.4   a command on one of its servers
  weft lab down --all                      nothing is left behind

Exit codes: 0 ok, 1 failed, 2 usage, 3 a claim or check failed, 4 this machine lacks something, 130 interrupted";

/// How results are printed on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// One JSON object with `schema_version`
    Json,
    /// Comma-separated rows with a header
    Csv,
}

/// The flag that every command with results has.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputFlag {
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t, env = "WEFT_OUTPUT")]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one plan: a table or figure of a paper
    #[command(after_help = "\
Examples:
  weft run vl2/fig09-shuffle
  weft run vl2/fig10-vlb-fairness --quick -o json
  weft run my-plan.toml --engine lab --seed 7 --out results/today")]
    Run(RunArgs),
    /// List every plan with its paper, engines, claims and expected time
    List(OutputFlag),
    /// Draw the report of finished runs again, from their raw records
    Report(ReportArgs),
    /// A fabric of network namespaces that stays up
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(LabCommand),
    /// The daemons that a deployment runs
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Node(NodeCommand),
    /// Read and change AA-to-LA mappings
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Directory(DirectoryCommand),
    /// Measure our own speed, as ratios against a baseline in the same run
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Bench(BenchCommand),
    /// What this machine can and cannot do, with the fix for each line
    Doctor(DoctorArgs),
    /// Print shell completions
    #[command(after_help = "Example:\n  weft completions bash > /etc/bash_completion.d/weft")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    Man {
        /// The folder; made if it is missing
        dir: PathBuf,
    },
    /// Parts of weft that weft starts itself
    #[cfg(feature = "lab")]
    #[command(subcommand, hide = true)]
    Internal(InternalCommand),
}

/// Which engine runs a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// The lab where it can run, else the simulator; one line says which and why
    #[default]
    Auto,
    /// Namespaces, the kernel's TCP and eBPF on this machine; refuses with the reason where that cannot be
    Lab,
    /// Packets in virtual time; needs no privileges
    Sim,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Short name of a plan (see `weft list`) or path of a TOML file
    pub(crate) plan: String,
    /// Which engine
    #[arg(long, value_enum, default_value_t, env = "WEFT_ENGINE")]
    pub(crate) engine: EngineChoice,
    /// The plan's small variant
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The plan's large variant
    #[arg(long)]
    pub(crate) full: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder for the results [default: run/PLAN-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run folders
    #[arg(required = true, value_name = "DIR")]
    pub(crate) runs: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also bring up a small lab and send real frames: checksum, MTU, segmentation, spread over the paths
    #[arg(long)]
    pub(crate) path: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Bring a fabric up and leave it up
    #[command(after_help = "\
Examples:
  weft lab up vl2-testbed                  a fabric that comes with weft (3 + 3 + 4 switches, 75 servers)
  weft lab up my-fabric.yaml --name blue   your own file of nodes and links")]
    Up {
        /// Short name of a fabric (vl2-testbed, vl2-4servers, ...) or path of a YAML file
        fabric: String,
        /// Name of the lab [default: the fabric's name]
        #[arg(long)]
        name: Option<String>,
        /// How servers reach each other
        #[arg(long, value_enum, default_value_t)]
        overlay: OverlayChoice,
        /// Do not shape links to their declared rate and buffer
        #[arg(long)]
        unshaped: bool,
    },
    /// Take a lab down
    Down {
        /// Name of the lab
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// Every lab, and whatever a killed run left behind
        #[arg(long)]
        all: bool,
    },
    /// Show the labs that are up and their nodes
    Ps {
        /// Only this lab
        name: Option<String>,
        #[command(flatten)]
        output: OutputFlag,
    },
    /// Run a command on a node
    #[command(after_help = "Example:\n  weft lab exec s1 -- ping -c 3 20.0.0.4")]
    Exec {
        /// Name of the lab; needed only if several are up
        #[arg(long)]
        lab: Option<String>,
        /// The node
        node: String,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Draw a fabric
    Graph {
        /// Short name of a fabric or path of a YAML file
        fabric: String,
        /// The drawing's format
        #[arg(long, value_enum, default_value_t)]
        format: GraphFormat,
    },
    /// Record the frames of one interface as pcapng, until Ctrl-C or a limit
    #[command(after_help = "\
Examples:
  weft lab capture tor1:agg1 -w shuffle.pcapng --count 100
  weft lab capture s1:eth0 -w - | wireshark -k -i -")]
    Capture {
        /// The interface, as NODE:INTERFACE
        port: String,
        /// The file; `-` is standard output
        #[arg(short, value_name = "FILE")]
        write: PathBuf,
        /// Name of the lab; needed only if several are up
        #[arg(long)]
        lab: Option<String>,
        /// Stop after this many frames
        #[arg(long)]
        count: Option<u64>,
        /// Stop after this many seconds
        #[arg(long)]
        seconds: Option<f64>,
    },
}

/// How servers of a lab reach each other.
#[cfg(feature = "lab")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverlayChoice {
    /// VL2 agents and a directory
    #[default]
    Vl2,
    /// No overlay: plain routing by LA
    Routed,
    /// The kernel's VXLAN device
    KernelVxlan,
}

/// Formats of `weft lab graph`.
#[cfg(feature = "lab")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Text for the terminal
    #[default]
    Text,
    /// Graphviz
    Dot,
    /// A picture
    Svg,
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// VL2 agent of one server: resolves AAs at the directory and loads the data path
    Agent(DaemonArgs),
    /// Directory server: answers lookups of AA-to-LA mappings
    Directory(DaemonArgs),
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// JSON file with the daemon's settings; `--print-example` shows one
    #[arg(long, value_name = "FILE", required_unless_present = "print_example")]
    pub(crate) config: Option<PathBuf>,
    /// Print an example of the settings and leave
    #[arg(long)]
    pub(crate) print_example: bool,
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The directory server's admin socket [default: that of the one lab that is up]
    #[arg(long, value_name = "PATH", env = "WEFT_DIRECTORY_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum DirectoryCommand {
    /// Show where an AA is, or all mappings
    #[command(after_help = "Examples:\n  weft directory get 20.0.0.7\n  weft directory get -o csv > mappings.csv")]
    Get {
        /// The AA; without it all mappings
        aa: Option<std::net::Ipv4Addr>,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Say where an AA is: the LA of its ToR and the anycast LA to use
    #[command(after_help = "Example:\n  weft directory set 20.0.0.7 --tor 10.1.0.2 --anycast 10.255.255.1")]
    Set {
        /// The AA
        aa: std::net::Ipv4Addr,
        /// LA of the ToR
        #[arg(long)]
        tor: std::net::Ipv4Addr,
        /// Anycast LA of the Intermediates to use
        #[arg(long)]
        anycast: std::net::Ipv4Addr,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Forget an AA
    Del {
        /// The AA
        aa: std::net::Ipv4Addr,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// State of a directory server
    Status {
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Nanoseconds per packet of each eBPF program, relative to a layer-2 switch program
    Datapath {
        /// Packets per measurement
        #[arg(long, default_value_t = 500_000)]
        repeat: u32,
        /// Interleaved rounds; the median counts
        #[arg(long, default_value_t = 11)]
        rounds: u32,
        /// Also send live frames over veth pairs
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        output: OutputFlag,
    },
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum InternalCommand {
    /// One server's traffic in a lab run
    TrafficWorker {
        /// What the lab passes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
}
