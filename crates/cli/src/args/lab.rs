//! Flags of the verbs that need the lab: `lab`, `node`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weft_lab::CapturePorts;
use weft_scenario::units::{BitsPerSec, Nanos, Percent};

use super::{DirectoryChoice, OutputFlag, OverlayChoice, VtepArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Bring a fabric up and leave it up
    #[command(after_help = "\
Examples:
  weft lab up vl2-testbed                  a fabric that comes with weft (3 + 3 + 4 switches, 75 servers)
  weft lab up trill-s1-s6                  a campus of six RBridges; --overlay bridge: the same with a spanning tree
  weft lab up my-fabric.yaml --name blue   your own file of nodes and links
  weft lab up fat-tree:k=4                 a generator with its parameters; `weft fabric list` shows all")]
    Up {
        /// Short name of a fabric (vl2-testbed, vl2-4servers, ...), path of a YAML file, or generator with its parameters
        fabric: String,
        /// Name of the lab [default: the fabric's name]
        #[arg(long, visible_alias = "lab")]
        name: Option<String>,
        /// How servers reach each other [default: rbridge among RBridges, vl2 where there are Intermediates, else routed]
        #[arg(long, value_enum)]
        overlay: Option<OverlayChoice>,
        /// What keeps the mappings of VL2's directory; `etcd3` and `etcd5` add directory servers until there are three or five
        #[arg(long, value_enum, default_value_t)]
        directory: DirectoryChoice,
        /// Do not shape links to their declared rate and buffer
        #[arg(long)]
        unshaped: bool,
    },
    /// Take a lab down
    #[command(after_help = "\
Examples:
  weft lab down vl2-4servers
  weft lab down --all          every lab of this machine, and what killed runs left; lists them and asks
  weft lab down --all --yes    the same in a script

Labs that a run is at work with (weft run, measure, bench) are spared by --all and named; end the run, or name its lab.")]
    Down {
        #[command(flatten)]
        lab: LabName,
        /// Every lab that no run is at work with, and whatever a killed run left behind
        #[arg(long, conflicts_with_all = ["name", "lab"])]
        all: bool,
        /// Do not ask
        #[arg(long, short, requires = "all")]
        yes: bool,
    },
    /// Show the labs that are up, or the nodes of one
    #[command(after_help = "\
Examples:
  weft lab ps
  weft lab ps vl2-4servers                                  its nodes with roles and addresses
  weft lab ps vl2-4servers -o json | jq -r '.nodes[].name'")]
    Ps {
        #[command(flatten)]
        lab: LabName,
        #[command(flatten)]
        output: OutputFlag,
    },
    /// Run a command on a node
    #[command(after_help = "\
Examples:
  weft lab exec s1 ping -c 3 s4
  weft lab exec tor1 vtysh -c 'show ip ospf neighbor'
  weft lab exec --lab blue s1 -- ip route    options of `exec` stand before the node; `--` may stand before the command

There the nodes of the lab are known by their names, `hostname` is the node's, `vtysh` talks to the node's own daemons, `/sys` shows
the node's interfaces, and `weft` is on the PATH. The exit code is the command's.")]
    Exec {
        /// Name of the lab; needed only if several are up
        #[arg(long)]
        lab: Option<String>,
        /// The node
        node: String,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Open a shell on a node, with the names of lab and node in its prompt
    #[command(after_help = "\
Examples:
  weft lab shell s1
  weft lab shell --lab blue tor1
  echo hostname | weft lab shell s1

The shell is that of $SHELL, and finds there what a command of `weft lab exec` finds. Its exit code is that of the last command.")]
    Shell {
        /// Name of the lab; needed only if several are up
        #[arg(long)]
        lab: Option<String>,
        /// The node
        node: String,
    },
    /// List the logs of a lab's daemons, or show those of a node
    #[command(after_help = "\
Examples:
  weft lab logs                        which there are, and where
  weft lab logs tor1                   all daemons of a node, each line with its daemon
  weft lab logs tor1 ospfd -n 20       the last lines of one
  weft lab logs s1 agent -f            and what comes, until Ctrl-C or the end of the lab
  weft lab logs tor1 -o json | jq -r '.lines[].line'")]
    Logs {
        /// Name of the lab; needed only if several are up
        #[arg(long)]
        lab: Option<String>,
        /// The node
        node: Option<String>,
        /// Only this daemon: zebra, ospfd, agent, switch, vtep, rbridge, directory, ..
        daemon: Option<String>,
        /// Only the last lines of each log
        #[arg(long, short = 'n', value_name = "N", requires = "node")]
        lines: Option<usize>,
        /// Go on with what comes; with -o json an object for each line
        #[arg(long, short, requires = "node")]
        follow: bool,
        #[command(flatten)]
        output: OutputFlag,
    },
    /// Take a switch or a link down; both ends see it
    #[command(after_help = "\
Examples:
  weft lab fail int1                a switch, with all its links
  weft lab fail tor1 agg1           the link between two nodes, or all of them if there are several
  weft lab repair tor1 agg1

It stays so until it is repaired, also after this command. What was found says how long routes took.")]
    Fail(FaultArgs),
    /// Let a switch or a link lose everything, and stay up: nobody is told
    #[command(after_help = "\
Examples:
  weft lab silence tor1 agg1
  weft lab repair tor1 agg1")]
    Silence(FaultArgs),
    /// Make a link worse: it loses frames, carries less, is late
    #[command(after_help = "\
Examples:
  weft lab impair tor1 agg1 --loss 1%            one frame in a hundred, each way; which ones is up to --seed
  weft lab impair tor1 agg1 --rate 10Mbit/s      the slower link, with the same buffer
  weft lab impair s1 tor1 --loss 30% --one-way   only what s1 sends
  weft lab impair tor1 agg1 --delay 5ms --jitter 1ms
  weft lab repair tor1 agg1

It takes the place of what was worse there before. Delays are the kernel's network emulator's (module sch_netem).")]
    Impair {
        /// The two ends of the link
        #[arg(num_args = 2, required = true, value_names = ["A", "B"])]
        ends: Vec<String>,
        #[command(flatten)]
        how: ImpairArgs,
        #[command(flatten)]
        common: LiveArgs,
    },
    /// Mend what `fail`, `silence` and `impair` have done
    #[command(after_help = "\
Examples:
  weft lab repair tor1 agg1
  weft lab repair --all")]
    Repair {
        /// A switch, or the two ends of a link
        #[arg(num_args = 1..=2, required_unless_present = "all", conflicts_with = "all")]
        what: Vec<String>,
        /// Everything that is broken or worse than it should be in this lab
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        common: LiveArgs,
    },
    /// Make another fabric of a lab while it is up, by the difference
    #[command(after_help = "\
Examples:
  weft lab apply my-fabric.yaml         nodes and links that are new come, those that are gone go, all others are not touched
  weft lab apply my-fabric.yaml -o json | jq -r '.come[]'

New nodes and links stand at the end of the file, so that those that stay keep their addresses; a file that would change what stays is refused.")]
    Apply {
        /// Short name of a fabric, path of a YAML file, or generator with its parameters
        fabric: String,
        #[command(flatten)]
        common: LiveArgs,
    },
    /// Take a server of a VL2 lab to another rack: its address and its connections stay
    #[command(after_help = "\
Examples:
  weft lab move s1 tor2
  weft lab move s1 tor1       home again

Its LA is another one, its AA is not; the directory is told, and senders that still use the old place are corrected by its ToR.")]
    Move {
        /// The server
        server: String,
        /// The edge switch that it is to be at
        edge: String,
        #[command(flatten)]
        common: LiveArgs,
    },
    /// Check a lab: daemons, shortest ways and their width, loops, who answers whom, packet length; exit code 3 if one fails
    #[command(after_help = "\
Examples:
  weft lab validate                        what every lab must do
  weft lab validate checks.toml            and what this file wants beside that
  weft lab validate -o json | jq '.checks[] | select(.passed == false)'

A file of checks, every part optional:
  within_s = 5                             until every switch has its ways [default: 10]
  mtu = 1500                               longest packet between all servers, bytes
  [[reach]]
  from = \"s1\"
  to = \"s4\"
  answers = true                           false: they must not reach each other
  [[width]]
  from = \"tor1\"
  to = \"tor4\"
  least = 3                                equal ways
  [[path]]
  from = \"tor1\"
  to = \"tor4\"
  most_hops = 4
  through = [\"agg1\"]
  avoids = [\"int3\"]

What `weft lab fail` and `silence` have broken is taken into account: the rest of the lab must do without it.")]
    Validate {
        /// A file of checks
        checks: Option<PathBuf>,
        #[command(flatten)]
        common: LiveArgs,
    },
    /// Show a lab in a browser as it is now, and break and mend it there
    #[command(after_help = "\
Examples:
  weft lab watch                     prints an address for a browser of this machine
  weft lab watch --listen 127.0.0.1:8080
  ssh -L 8080:127.0.0.1:8080 HOST    the same from elsewhere

Programs use the same verbs: POST /api/v1/fail and so on, with `Authorization: Bearer TOKEN`; /openapi.json lists them.
Who has the address with its token may change the lab. Ctrl-C ends it; the lab stays.")]
    Watch {
        #[command(flatten)]
        lab: LabName,
        /// Where to listen; port 0 is any that is free
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
        listen: std::net::SocketAddr,
        #[command(flatten)]
        output: OutputFlag,
    },
    /// Record the frames of interfaces in one pcapng file, until Ctrl-C or a limit
    #[command(after_help = "\
Examples:
  weft lab capture tor1:agg1 -w shuffle.pcapng --count 100
  weft lab capture tor1:agg1 agg1 s1:tor1 -w path.pcapng     one port, all of a node, what leads to a neighbour
  weft lab capture --all --snap 128 -w all.pcapng            both ends of every link
  weft lab capture s1:eth0 -w - | wireshark -k -i -
Frames are in the order of their times. At its end the file says of each port what the capture has lost, and what the
lab's data path and queues have dropped there meanwhile, by reason.
Between RBridges, whose frames no packet socket sees, the first 480 bytes of each frame come from their data paths.")]
    Capture {
        /// The ports: NODE:INTERFACE, NODE:NEIGHBOUR, or NODE for all of its ports
        #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "PORT")]
        ports: Vec<CapturePorts>,
        /// Both ends of every link
        #[arg(long)]
        all: bool,
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
        /// Keep so many bytes of each frame [default: all]
        #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(14..))]
        snap: Option<u32>,
    },
}

/// A lab by its name, as it stands or behind `--lab`.
#[derive(Args, Debug)]
pub(crate) struct LabName {
    /// Name of the lab
    #[arg(value_name = "LAB")]
    name: Option<String>,
    /// Name of the lab, as other commands take it
    #[arg(long, value_name = "LAB", conflicts_with = "name")]
    lab: Option<String>,
}

impl LabName {
    /// The name, if one was given.
    pub(crate) fn given(self) -> Option<String> {
        self.name.or(self.lab)
    }
}

#[derive(Args, Debug)]
pub(crate) struct FaultArgs {
    /// A switch, or the two ends of a link
    #[arg(num_args = 1..=2, required = true)]
    pub(crate) what: Vec<String>,
    #[command(flatten)]
    pub(crate) common: LiveArgs,
}

/// How much worse a link becomes.
#[derive(Args, Debug)]
pub(crate) struct ImpairArgs {
    /// Share of the frames that is lost, such as 1%
    #[arg(long, value_name = "PERCENT")]
    pub(crate) loss: Option<Percent>,
    /// The link's rate, such as 10Mbit/s
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<BitsPerSec>,
    /// How much later frames come, such as 5ms
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<Nanos>,
    /// How much more or less than that, by chance
    #[arg(long, value_name = "TIME", requires = "delay")]
    pub(crate) jitter: Option<Nanos>,
    /// Share of the frames that is not delayed and overtakes others, such as 5%
    #[arg(long, value_name = "PERCENT", requires = "delay")]
    pub(crate) reorder: Option<Percent>,
    /// Decides which frames are lost [default: chance does, and `weft lab ps` says it]
    #[arg(long, value_name = "N", requires = "loss")]
    pub(crate) seed: Option<u64>,
    /// Only what the first node sends to the second
    #[arg(long)]
    pub(crate) one_way: bool,
}

/// Of every verb that changes a lab.
#[derive(Args, Debug)]
pub(crate) struct LiveArgs {
    /// Name of the lab; needed only if several are up
    #[arg(long)]
    pub(crate) lab: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// VL2 agent of one server: resolves AAs at the directory and loads the data path
    #[command(after_help = "\
Examples:
  weft node agent --print-example > agent.toml
  weft node agent --config agent.toml")]
    Agent(DaemonArgs),
    /// Directory server: answers lookups of AA-to-LA mappings
    #[command(after_help = "\
Examples:
  weft node directory --print-example > directory.toml
  weft node directory --config directory.toml
  weft show directory                                    in another terminal")]
    Directory(DaemonArgs),
    /// Intermediate or ToR that runs Linux: takes VL2's headers off, as eBPF on its ports
    #[command(after_help = "\
Examples:
  weft node switch --print-example > switch.toml
  weft node switch --config switch.toml
  weft node switch --config switch.toml --remove     take it off again

SIGTERM ends the daemon: with a pin directory its data path stays at work, without one it goes.")]
    Switch {
        #[command(flatten)]
        daemon: DaemonArgs,
        /// Take the data path off all ports, pins included, and leave
        #[arg(long, requires = "config")]
        remove: bool,
    },
    /// ToR switch: reports packets for AAs that are not behind it, so that stale agents are corrected
    #[command(after_help = "\
Examples:
  weft node tor --print-example > tor.toml
  weft node tor --config tor.toml")]
    Tor(DaemonArgs),
    /// VXLAN tunnel end point (RFC 7348) of a virtual switch or a ToR, as eBPF on its ports
    #[command(after_help = "\
Examples:
  weft node vtep --local 10.64.0.2 --uplink eth0 --peer 10.64.0.3 --vni 100 --port vm1
  weft node vtep --local 10.64.0.2 --uplink eth0 --flood 239.1.1.1 --vni 100-199 --port vm1=100 --port vm2=101
  weft node vtep --config vtep.toml --pin-dir /run/weft/bpf/vtep     frames pass while the daemon restarts
  weft show vtep fdb                                                 in another terminal

SIGHUP reads the file again; only what differs is touched. SIGTERM ends the daemon: with a pin directory its data path
stays at work for the next one, without one it goes. `weft stop vtep` removes it in any case.")]
    Vtep(Box<VtepArgs>),
    /// RBridge of a TRILL campus (RFC 6325): IS-IS here, forwarding on XDP at its ports
    #[command(after_help = "\
Examples:
  weft node rbridge --print-example > s1.toml
  weft node rbridge --config s1.toml
  weft show rbridge route                 in another terminal

SIGTERM ends the daemon: with a pin directory its data path stays at work for the next one, which takes it over without a
lost frame; without one other RBridges are told first, then it goes. `weft stop rbridge` removes it in any case.")]
    Rbridge(DaemonArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// TOML file with the daemon's settings; `--print-example` shows one. SIGHUP or `weft reload` reads it again
    #[arg(long, value_name = "FILE", required_unless_present = "print_example")]
    pub(crate) config: Option<PathBuf>,
    /// Print an example of the settings and leave
    #[arg(long)]
    pub(crate) print_example: bool,
}
