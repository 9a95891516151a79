//! Flags of `weft bench`, and of the parts that benchmarks and labs start themselves.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ResultFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Nanoseconds per packet of each eBPF program, relative to a layer-2 switch program
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bench datapath
  weft bench datapath --rounds 21 -o json

The programs alone. With real frames: `weft run trill/fastpath-table1` and `vxlan/encapsulations`, with TCP: `vxlan/tcp`.")]
    Datapath {
        /// Packets per measurement; a hundredth of them at TC, where each is a new frame
        #[arg(long, default_value_t = 500_000)]
        repeat: u32,
        /// Interleaved rounds; the median counts
        #[arg(long, default_value_t = 11)]
        rounds: u32,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// What the test centre itself costs, its latency floor and how evenly it sends
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bench tester
  weft bench tester -o json

What encapsulations cost on this machine: weft run vxlan/encapsulations --quick")]
    Tester {
        #[command(flatten)]
        results: ResultFlags,
    },
    /// Look-ups per CPU second, updates, convergence and failover of the directory, on loopback
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bench directory -o json
  weft bench directory --quick --store embedded
  weft bench directory fabric              a data centre of 100,000 servers and 2 M AAs after a power cut")]
    Directory(BenchDirectoryArgs),
    /// How long it takes until a lab of the paper's testbed, 1,054 RBridges' routes and a month of failures are there
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bench setup
  weft bench setup --rounds 1 -o json

A lab of `vl2-testbed` comes up and goes down; RBridges speak IS-IS in virtual time; the failures are those of `vl2/failures`.")]
    Setup {
        /// How often the lab comes up and goes down; the slowest counts
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// How soon the last RBridge of a random campus has new routes, when links fail one after another
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bench campus
  weft bench campus --rbridges 300 --failures 20 --seed 7 -o json
  weft bench campus --interval-ms 200       the next failure comes while RBridges still hold back after the last one

RBridges speak IS-IS in virtual time, with the daemon's usual timers; links take a millisecond, and what a computation takes is measured here.
Both ends see at once that a link is down.")]
    Campus {
        /// RBridges, with twice as many links
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(4..=1000))]
        rbridges: u16,
        /// Links that fail and stay down
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
        failures: u16,
        /// From one failure to the next, ms
        #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(150..=600_000))]
        interval_ms: u32,
        /// Names the campus and its failures
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// What a tenant that misbehaves, or a VTEP that is no peer, does to another tenant of the same two VTEPs
    #[cfg(feature = "lab")]
    #[command(after_help = "\
Examples:
  weft bench isolation
  weft bench isolation --quick -o json

An attack is compared with as many frames per second that everybody expects. Connections that exhaust a directory server:
`weft bench directory`.")]
    Isolation {
        /// Shorter rounds
        #[arg(long)]
        quick: bool,
        /// Interleaved rounds; the median counts
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// Packet-hops per CPU second and memory of the simulator on its reference jobs
    #[command(after_help = "\
Examples:
  weft bench sim -o json
  weft bench sim --sweep --vs ns3            the same, 8 runs side by side, and ns-3 on a tenth of r1a
  weft bench sim --jobs fat32 --vs daytone   fat trees of up to 8,192 servers, also in daytone")]
    Sim(BenchSimArgs),
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchDirectoryArgs {
    #[command(subcommand)]
    pub(crate) part: Option<BenchDirectoryPart>,
    /// Shorter rounds and a tenth of the million mappings
    #[arg(long)]
    pub(crate) quick: bool,
    /// Interleaved rounds; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// AAs that have a mapping
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1024..=4_000_000))]
    pub(crate) mappings: u32,
    /// What keeps the mappings while updates are measured
    #[arg(long, value_enum, default_value_t = super::DirectoryChoice::Etcd3)]
    pub(crate) store: super::DirectoryChoice,
    #[command(flatten)]
    pub(crate) results: ResultFlags,
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum BenchDirectoryPart {
    /// The directory of a whole data centre: all agents ask at once, a server starts from nothing, restarts, a rack moves
    #[command(after_help = "\
Examples:
  weft bench directory fabric
  weft bench directory fabric --questions 1 -o json
  weft bench directory fabric --card
  weft bench directory fabric --agents 10000 --aas 200000 --rack 20 --rounds 1
  weft bench directory fabric --servers 1 --store embedded      one server with its own store; nothing restarts beside it

Every agent has its own LA and key on loopback and asks by the rules of `weft node agent`: two servers at a time, again after 20 ms, 40 ms
and so on. Servers and store have one CPU, the agents another. 100,000 agents take up to 1 GB of memory.")]
    Fabric(BenchFabricArgs),
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct BenchFabricArgs {
    /// Servers of the data centre, each with an agent
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(4..=1_000_000))]
    pub(crate) agents: u32,
    /// AAs that have a mapping; each server has as many
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u32).range(4..=8_000_000))]
    pub(crate) aas: u32,
    /// AAs that each agent asks for first, in one datagram
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=40))]
    pub(crate) questions: u16,
    /// Directory servers
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=7))]
    pub(crate) servers: u8,
    /// Servers of a rack
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rack: u32,
    /// What keeps the mappings
    #[arg(long, value_enum, default_value_t = super::DirectoryChoice::Etcd3)]
    pub(crate) store: super::DirectoryChoice,
    /// Also ask for one AA each over a link, without and with a card that answers by XDP: needs root
    #[arg(long)]
    pub(crate) card: bool,
    /// Rounds of each measurement; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) results: ResultFlags,
}

#[derive(Debug, Args)]
pub(crate) struct BenchSimArgs {
    /// Interleaved rounds; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Only these jobs: r1a, r1b, r1w, r1a_shared, hosts1600, fat32
    #[arg(long, value_delimiter = ',', value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Also run 8 jobs one after another and on 2 workers
    #[arg(long)]
    pub(crate) sweep: bool,
    /// Also measure VL2 at size: 103,680 servers at rest, and permutations of 1,600, 20,480 and 103,680 servers beside r1a
    #[arg(long)]
    pub(crate) scale: bool,
    /// Also run these simulators on the same
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SIMULATOR")]
    pub(crate) vs: Vec<PeerChoice>,
    /// The same as `--vs ns3`
    #[arg(long, hide = true)]
    pub(crate) vs_ns3: bool,
    #[command(flatten)]
    pub(crate) results: ResultFlags,
}

/// Another simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerChoice {
    /// ns-3 (Debian's libns3-dev) on r1a with a tenth of its packets
    Ns3,
    /// daytone (`pip install --target ~/.cache/weft/daytone daytone`) on fat trees of 128, 1,024 and 8,192 servers
    Daytone,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InternalCommand {
    /// One server's traffic in a lab run
    #[cfg(feature = "lab")]
    TrafficWorker {
        /// What the lab passes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// A VM of the VXLAN draft's experiments
    #[cfg(feature = "lab")]
    Vm {
        /// What the lab passes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// Runs a job of `weft bench sim` and prints its result and cost
    SimJob {
        /// Name of the job; `idle` runs nothing
        job: String,
        /// How often it runs
        #[arg(long, default_value_t = 1)]
        runs: u32,
        /// How many runs go on side by side
        #[arg(long, default_value_t = 1)]
        workers: u32,
        /// The job's packets are divided by this
        #[arg(long, default_value_t = 1)]
        divisor: u32,
    },
    /// Runs a job of `weft bench sim` and prints the mean delay of each of its streams of datagrams
    StreamDelays {
        /// Name of the job
        job: String,
        /// The job's packets are divided by this
        #[arg(long, default_value_t = 1)]
        divisor: u32,
    },
    /// Writes the network of a job of `weft bench sim` as daytone's configuration
    DaytoneConfig {
        /// Name of the job, one of those on fat trees
        job: String,
        /// The configuration
        file: PathBuf,
        /// Folder that daytone is told to write into
        results: PathBuf,
        /// The job's packets are divided by this
        #[arg(long, default_value_t = 1)]
        divisor: u32,
    },
}
