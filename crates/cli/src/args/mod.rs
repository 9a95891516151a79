//! The command line: every verb, its flags and its examples. No logic.

mod analyse;
mod bench;
mod calc;
mod cluster;
#[cfg(feature = "lab")]
mod daemon;
#[cfg(feature = "lab")]
mod directory;
mod fabric;
#[cfg(feature = "lab")]
mod init;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lab")]
mod measure;
mod sim;
#[cfg(feature = "lab")]
mod vtep;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use weft_experiment::comparison::Bar;
use weft_experiment::plan::Setting;
use weft_experiment::run_folder::Shard;
use weft_scenario::engine::{DirectoryStore, Overlay};
use weft_scenario::units::Percent;

pub(crate) use analyse::{AnalyseArgs, FormatChoice, GenerateArgs, RackArgs};
pub(crate) use bench::{BenchCommand, BenchSimArgs, InternalCommand, PeerChoice};
#[cfg(feature = "lab")]
pub(crate) use bench::{BenchDirectoryArgs, BenchDirectoryPart, BenchFabricArgs};
pub(crate) use calc::{CalcCommand, CostArgs};
pub(crate) use cluster::{ClusterCommand, FetchArgs, StatusArgs, SubmitArgs};
#[cfg(feature = "lab")]
pub(crate) use daemon::{AgentWhat, OneDaemon, RBridgeWhat, ShowArgs, ShowCommand, VtepWhat, What, Which};
#[cfg(feature = "lab")]
pub(crate) use directory::{AdminArgs, CertsArgs, DirectoryCommand, KeyArgs, PolicyCommand, SessionArgs, SetArgs};
pub(crate) use fabric::{DrawingFormat, FabricCommand};
#[cfg(feature = "lab")]
pub(crate) use init::InitArgs;
#[cfg(feature = "lab")]
pub(crate) use lab::{DaemonArgs, ImpairArgs, LabCommand, LabName, LiveArgs, NodeCommand};
#[cfg(feature = "lab")]
pub(crate) use measure::{IpChoice, MeasureCommand, MethodChoice, PortArgs, ReplayArgs};
pub(crate) use sim::{SimArgs, TrafficArgs, WorkloadChoice};
#[cfg(feature = "lab")]
pub(crate) use vtep::{AddCommand, AddVniArgs, AttachArg, HookArg, RemoveCommand, VtepArgs, VtepCommand, VtepFlags};

/// Where flags stand that every command has: behind its own.
const LAST: usize = 900;

/// Builds, runs and measures large virtual layer-2 data-centre fabrics on Linux.
#[derive(Debug, Parser)]
#[command(name = "weft", version, about, propagate_version = true, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Say less: no progress, only results and errors
    #[arg(short, long, global = true, display_order = LAST)]
    pub(crate) quiet: bool,
    /// Say more (repeat for even more); RUST_LOG overrides it
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = LAST)]
    pub(crate) verbose: u8,
    /// How the log on standard error is written
    #[arg(long, value_enum, global = true, default_value_t, env = "WEFT_LOG_FORMAT", display_order = LAST)]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// A JSON object on each line
    Json,
}

const EXAMPLES: &str = "\
Examples:
  weft doctor                              what this machine can and cannot do
  weft run vl2/fig09-shuffle               one figure of a paper, its number beside ours
  weft sim vl2-testbed --workload shuffle  one scenario in the simulator; needs no root
  weft cluster submit leaf-spine/queues --on slurm   its trials on a cluster; one run comes back
  weft lab up vl2-4servers                 a fabric of namespaces that stays up
  weft lab exec s1 ping -c 3 s4            a command on one of its servers
  weft lab down vl2-4servers               nothing is left behind
  weft help terms                          what AA, ToR, VTEP, Jain, \"limited by\" .. are

Exit codes: 0 ok, 1 failed, 2 usage, 3 a claim or check failed, 4 this machine lacks something,
5 a required claim is inconclusive, 130 interrupted";

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

/// Settings that are laid over a plan or a scenario.
#[derive(Debug, Args)]
pub(crate) struct SetFlag {
    /// Another value for a key of the file, for instance transport.rto_min="10 ms"; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Setting>,
}

/// Flags of measurements: how they are printed, and where they are kept.
#[derive(Debug, Args)]
pub(crate) struct ResultFlags {
    #[command(flatten)]
    pub(crate) output: OutputFlag,
    /// Folder for rows, manifest and report, which `weft trend` takes; it must not be there yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run plans: tables or figures of a paper
    #[command(after_help = "\
Examples:
  weft run vl2/fig09-shuffle
  weft run vl2/fig12-mice leaf-spine/queues --quick --junit results.xml     one after another; the worst exit code counts
  weft run vl2/fig10-vlb-fairness --quick -o json
  weft run my-plan.toml --dry-run                     all mistakes with their lines; else trials, time, memory, what is judged
  weft run my-plan.toml --engine lab --seed 7 --out results/today
  weft run my-plan.toml --set switching.load_balance=packet-spray --set 'sweep.load.values=[30, 60, 90]'
  weft run leaf-spine/queues --shard 2/8 --out sweep/2    one part of it, here or on another machine; see weft merge

Exit code 3: a claim failed. 5: none failed, and something hides the answer to a required one; 0 with --allow-inconclusive. A claim
that `differs` holds our own floor, but not the paper's direction or size: that is a result, and fails nothing. Where nothing is judged
the metrics are printed, by variant of the sweep.

--set takes dotted keys; members of lists stand in them by their `id` or their number from 0. A value is TOML, or a text without quotes.
It is laid over the plan as its mode and engine have it, checked like the file, and kept in the run folder.")]
    Run(Box<RunArgs>),
    /// Make one run of all its shards (`weft run --shard`): the same rows, summary and report as from one machine
    #[command(after_help = "\
Examples:
  weft merge sweep/1 sweep/2 sweep/3 --out results/sweep
  weft merge sweep/* -o json

Shards of another plan, mode, seed, version or network are refused, and what is missing is named with the command that runs it. The
shards stay. Exit codes are those of `weft run`.")]
    Merge(MergeArgs),
    /// The trials of a plan on somebody's scheduler: Slurm, Kubernetes, GNU parallel
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Run one scenario in the simulator and sum up its flow completion times
    #[command(after_help = "\
Examples:
  weft sim web-search-dctcp --out results/first                     a leaf-spine with DCTCP at 60 % load: rows, report, replay
  weft sim leaf-spine-small --workload permutation --bytes 10MB
  weft sim leaf-spine-small --workload web-search --load 60% --duration 20s --out results/today
  weft sim leaf-spine-small --workload shuffle --trace flow=17
  weft sim --fabric fat-tree:k=4,server_rate=10G --workload web-search --load 80% --duration 5ms
  weft sim web-search-dctcp --fabric fat-tree:k=8,server_rate=10G    its traffic on another network
  weft sim my-scenario.toml --seed 7 --capture leaf1:spine1 -w uplink.pcapng -o json
  weft sim my-scenario.toml --set transport.congestion_control=dctcp --set switching.ecn_threshold='97500 B'

--set takes dotted keys of the scenario; a value is TOML, or a text without quotes. It is checked like the file.")]
    Sim(Box<SimArgs>),
    /// Calculations about networks that need no packets
    #[command(subcommand)]
    Calc(CalcCommand),
    /// What a flow log says: flow sizes, flows at once, traffic between racks
    #[command(after_help = analyse::EXAMPLES)]
    Analyse(Box<AnalyseArgs>),
    /// List every plan with its paper, engines, expected time and claims
    #[command(after_help = "\
Examples:
  weft list
  weft list vxlan                        only plans with the word in their name, paper or figure
  weft list --claims vl2/fig09-shuffle   what is judged, beside what the paper says
  weft list my-plan.toml                 a file of your own, or everything that is wrong with it
  weft list -o json | jq -r '.plans[] | select(.expected_quick_s <= 30) | .plan'")]
    List(ListArgs),
    /// What runs and measurements read over builds or kernels, and where that changed
    #[command(after_help = "\
Examples:
  for i in 1 2 3 4 5; do weft bench sim --jobs r1w --out pace/$i; done     the same again with each build
  weft trend pace/*
  weft trend before/* after/* --by folder --fail-if-worse
  weft trend nightly/* --by kernel -o json | jq '.rows[] | select(.change == \"worse\")'

Runs of one build are a group; the mean of a group is held against that of the group before. A change is marked if the interval
of their ratio leaves out 1 and it is at least --least. What differs from run to run makes the interval, so a group of one run is
never judged (`?`), and five are better than two. Of equal builds one comparison in a thousand marks anything.")]
    Trend(TrendArgs),
    /// Draw the report of finished runs again, from their raw records; several: claim by claim beside each other
    #[command(after_help = "\
Examples:
  weft report results/today                             results/today/report.html, drawn again
  weft report results/yesterday results/today           what changed, and results/yesterday/side-by-side.html
  weft report before after -o json | jq '.readings[] | select(.apart)'
  weft report before after --fail-if 'goodput_efficiency < 0.97'

A difference counts where `apart` says yes: the intervals of the two runs have nothing in common. --fail-if names a claim and what
its number over that of the first run may not be: exit code 3 if it is, and the runs are apart or have no interval; 5 if it is, and
the intervals hide whether it is; 1 if a run does not have the number.")]
    Report(ReportArgs),
    /// Ask the rows of a finished run in SQL (`weft run`, `weft sim --out`)
    #[command(after_help = "\
Without a question it lists the tables with their columns; docs/records.md says what they mean. A question reads, and nothing else.
Beside SQLite's functions there are median(x), quantile(x, ratio), stddev(x) and jain(x).

Examples, on a run of vl2/fig09-shuffle:
  weft query RUN 'select trial, count(*) as flows, jain(bytes_received * 8e9 / (end_ns - start_ns)) as jain from flows group by trial'
  weft query RUN 'select quantile((end_ns - start_ns) / 1e9, 0.99) as p99_s, max(retransmits) as most_retransmits from flows'
  weft query RUN 'select node, peer, max(sent_bytes) * 8e9 / max(time_ns) as bit_per_s from links group by trial, node, peer order by bit_per_s desc limit 5' -o csv")]
    Query(QueryArgs),
    /// Make, check and draw fabrics: files of nodes and links
    #[command(subcommand)]
    Fabric(FabricCommand),
    /// A fabric of network namespaces that stays up
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(LabCommand),
    /// The daemons that a deployment runs
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Node(NodeCommand),
    /// Write the settings, keys and certificates of a whole deployment, a folder for each host
    #[cfg(feature = "lab")]
    #[command(after_help = init::EXAMPLES)]
    Init(InitArgs),
    /// Read and change AA-to-LA mappings, the policy, and what servers and agents need to trust each other
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Directory(DirectoryCommand),
    /// Show a daemon that runs: what happened, what it knows, its settings
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Show(ShowCommand),
    /// Have a daemon read its settings again; only what differs is touched
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft reload agent
  weft reload rbridge --node s1

Frames pass meanwhile. Settings that cannot work, or cannot change while the daemon runs, are refused with their name, and all
stays as it was. SIGHUP does the same; the daemon's log says how it went.")]
    Reload(OneDaemon),
    /// End a daemon and remove its data path, pins included
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft stop vtep
  weft stop rbridge --socket /run/weft/s1.sock

It has ended when this returns. Without the removal: SIGTERM. A data path that a daemon with this socket left at work, ended by SIGTERM or
killed, is removed as well.")]
    Stop(OneDaemon),
    /// Change a VXLAN tunnel end point that runs (`weft node vtep`)
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Vtep(VtepCommand),
    /// The test centre: measure any layer-2 path between two ports
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Measure(MeasureCommand),
    /// Measure our own speed, as ratios against a baseline in the same run
    #[command(subcommand)]
    Bench(BenchCommand),
    /// What this machine can and cannot do, with the fix for each line
    #[command(after_help = "\
Examples:
  weft doctor
  weft doctor --path                                              with frames through a small lab; needs root
  weft doctor -o json | jq '.checks[] | select(.verdict != \"pass\")'
  weft doctor -o json | jq '.uses[] | select(.possible | not)'

Exit code 0: as root, a lab of some kind can run here; for other users, the simulator works. 4: neither, or frames of --path did
not come through. Without root the table has one line for all that passes and one for all that lacks root; -o json has each.")]
    Doctor(DoctorArgs),
    /// Put everything about this machine and its daemons into one archive for a bug report, without secrets
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bundle
  weft bundle --out /tmp/srv7.tar.gz && tar -tzf /tmp/srv7.tar.gz

In it: version, kernel, what the doctor says, settings, what each daemon shows, its metrics, the journal of its unit, names of pins,
links and routes of interfaces that settings name. Run it as root: others may ask no daemon.")]
    Bundle(BundleArgs),
    /// Explain a command, or with `terms` the words of the field: AA, ToR, VTEP, Jain, slowdown, "limited by" ..
    #[command(after_help = "Examples:\n  weft help terms\n  weft help lab up")]
    Help {
        /// A command, or `terms`
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Print shell completions
    #[command(after_help = "\
Examples:
  weft completions bash > /etc/bash_completion.d/weft
  weft completions zsh > /usr/local/share/zsh/site-functions/_weft")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    #[command(after_help = "Example:\n  weft man /usr/local/share/man/man1")]
    Man {
        /// The folder; made if it is missing
        dir: PathBuf,
    },
    /// Parts of weft that weft starts itself
    #[command(subcommand, hide = true)]
    Internal(InternalCommand),
}

/// How servers reach each other: a word of [`Overlay::ALL`]. Plain switches live as long as the process that made them, so
/// they are nobody's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverlayChoice(Overlay);

impl ValueEnum for OverlayChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<OverlayChoice>> = LazyLock::new(|| {
            let lasting = Overlay::ALL
                .iter()
                .map(|word| word.overlay)
                .filter(|overlay| !matches!(overlay, Overlay::Layer2 { .. }));
            lasting.map(OverlayChoice).collect()
        });
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let word = Overlay::ALL.iter().find(|word| word.overlay == self.0)?;
        Some(PossibleValue::new(word.name).help(word.about).aliases(word.aliases))
    }
}

impl From<OverlayChoice> for Overlay {
    fn from(OverlayChoice(overlay): OverlayChoice) -> Self {
        overlay
    }
}

/// What keeps the mappings of a VL2 network's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectoryChoice {
    /// A store built into each directory server
    #[default]
    Embedded,
    /// Three directory servers on three etcd nodes
    Etcd3,
    /// Five directory servers on five etcd nodes
    Etcd5,
}

impl From<DirectoryChoice> for DirectoryStore {
    fn from(choice: DirectoryChoice) -> Self {
        match choice {
            DirectoryChoice::Embedded => Self::Embedded,
            DirectoryChoice::Etcd3 => Self::Etcd3,
            DirectoryChoice::Etcd5 => Self::Etcd5,
        }
    }
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
    /// Short names of plans (see `weft list`) or paths of TOML files
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) plans: Vec<String>,
    /// Which engine
    #[arg(long, value_enum, default_value_t, env = "WEFT_ENGINE")]
    pub(crate) engine: EngineChoice,
    /// What keeps a VL2 directory's mappings, whatever the plan says
    #[arg(long, value_enum)]
    pub(crate) directory: Option<DirectoryChoice>,
    /// The plan's small variant
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The plan's large variant
    #[arg(long)]
    pub(crate) full: bool,
    /// Lower rates of the plan (`[[steps]]`) for a lab on a machine with little CPU; `auto` tries for some seconds each, the plan's
    /// own first, and takes the highest that the machine has time for
    #[arg(long, value_name = "NAME|auto", conflicts_with_all = ["shard", "dry_run"])]
    pub(crate) step: Option<String>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) set: SetFlag,
    /// Run nothing: say everything that is wrong with the plans, or how many trials they have, what they take and what is judged
    #[arg(long, conflicts_with_all = ["shard", "junit", "out", "allow_inconclusive"])]
    pub(crate) dry_run: bool,
    /// Runs side by side in the simulator; results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: Option<u32>,
    /// Run the i-th of n parts of the trials into a folder that `weft merge` takes, in the simulator; the same command goes on
    /// where it was stopped
    #[arg(long, value_name = "i/n", conflicts_with_all = ["directory", "allow_inconclusive"])]
    pub(crate) shard: Option<Shard>,
    /// Folder for the results, with a folder for each of several plans; it must not be there yet [default: run/PLAN-TIME, of a
    /// shard run/PLAN-shard-i-of-n]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Show the lab of the run in a browser meanwhile
    #[cfg(feature = "lab")]
    #[arg(long, conflicts_with = "shard")]
    pub(crate) watch: bool,
    /// Also write the claims as JUnit's XML
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    pub(crate) junit: Option<PathBuf>,
    /// Exit code 0 also where something hides the answer to a required claim (5 without it)
    #[arg(long)]
    pub(crate) allow_inconclusive: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Folders of the shards, in any order
    #[arg(required = true, value_name = "SHARD")]
    pub(crate) shards: Vec<PathBuf>,
    /// Folder for the results; it must not be there yet [default: run/PLAN-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Exit code 0 also where something hides the answer to a required claim (5 without it)
    #[arg(long)]
    pub(crate) allow_inconclusive: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only plans with this word in their name, paper or figure; or the path of a plan's file
    pub(crate) word: Option<String>,
    /// A line for each claim that is judged
    #[arg(long)]
    pub(crate) claims: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run folders; runs of one plan are held against the first of them
    #[arg(required = true, value_name = "DIR")]
    pub(crate) runs: Vec<PathBuf>,
    /// What a claim's number over the first run's may not be, for instance `goodput < 0.97`; may be given again
    #[arg(long, value_name = "CLAIM < RATIO")]
    pub(crate) fail_if: Vec<Bar>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

/// What makes runs a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByChoice {
    /// The program: version, revision, digest
    #[default]
    Build,
    /// The kernel's release
    Kernel,
    /// The folder that their folders lie in
    Folder,
}

#[derive(Debug, Args)]
pub(crate) struct TrendArgs {
    /// Folders of `weft run`, `weft measure --out`, `weft bench --out`
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// What is held against each other
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: ByChoice,
    /// Smaller changes are not marked
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub(crate) least: Percent,
    /// Only rows that are marked
    #[arg(long)]
    pub(crate) changes: bool,
    /// Exit code 3 if anything is worse than in the group before
    #[arg(long)]
    pub(crate) fail_if_worse: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// The run's folder
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The question: one `select`
    #[arg(value_name = "SQL")]
    pub(crate) sql: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The archive, which must not be there yet [default: weft-bundle.tar.gz]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also bring up a small lab and send real frames: checksum, MTU, segmentation, spread over the paths
    #[arg(long)]
    pub(crate) path: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[cfg(all(test, feature = "lab"))]
mod tests;
