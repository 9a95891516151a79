//! Flags of `weft node vtep` and `weft vtep`.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Which;

/// What a VTEP is: a file, flags, or a file that flags add to.
#[derive(Debug, Args)]
pub(crate) struct VtepArgs {
    /// TOML file with the VTEP's settings; `--print-example` shows one. SIGHUP or `weft reload vtep` reads it again
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print an example of the settings and leave
    #[arg(long)]
    pub(crate) print_example: bool,
    #[command(flatten)]
    pub(crate) flags: VtepFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VtepFlags {
    /// Our address as a VTEP
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) local: Option<Ipv4Addr>,
    /// Interface towards the underlay (repeat for more)
    #[arg(long, value_name = "IF")]
    pub(crate) uplink: Vec<String>,
    /// Another VTEP (repeat for more)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Ipv4Addr>,
    /// A segment, or several as FIRST-LAST (repeat for more)
    #[arg(long, value_name = "VNI")]
    pub(crate) vni: Vec<String>,
    /// An access port; with several segments as IF=VNI (repeat for more)
    #[arg(long, value_name = "IF[=VNI]")]
    pub(crate) port: Vec<String>,
    /// An access port with many segments, told apart by VLAN tags (repeat for more); ranges as 100-199=10100-10199
    #[arg(long, value_name = "IF:VLAN=VNI[,..]")]
    pub(crate) trunk: Vec<String>,
    /// Where frames to many go: peers, nowhere, a multicast group, or some peers with commas [default: peers]
    #[arg(long, value_name = "WHERE")]
    pub(crate) flood: Option<String>,
    /// UDP port of the tunnels [default: 4789]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) udp_port: Option<u16>,
    /// Where the programs are attached [default: tc]
    #[arg(long, value_enum)]
    pub(crate) hook: Option<HookArg>,
    /// How the programs are put on interfaces [default: link]
    #[arg(long, value_enum)]
    pub(crate) attach: Option<AttachArg>,
    /// Directory in a bpffs where the data path stays while the daemon restarts
    #[arg(long, value_name = "DIR")]
    pub(crate) pin_dir: Option<PathBuf>,
    /// Its control socket [default: /run/weft/vtep.sock]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Where a VTEP's programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookArg {
    /// Behind the driver: super frames stay whole
    Tc,
    /// In the driver: the most packets per second
    Xdp,
}

/// How a VTEP's programs are put on interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AttachArg {
    /// By links: go with the daemon
    Link,
    /// By classic filters: quicker with thousands of ports
    Filter,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VtepCommand {
    /// Add something while it runs; it lasts until the next reload or restart
    #[command(subcommand)]
    Add(AddCommand),
    /// Remove something while it runs
    #[command(subcommand)]
    Remove(RemoveCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum AddCommand {
    /// Segments
    #[command(after_help = "\
Examples:
  weft vtep add vni 100
  weft vtep add vni 1000-5999 --flood 239.1.1.1 --age 600
  weft vtep add vni 7 --directory true --flood nowhere")]
    Vni(AddVniArgs),
    /// An access port, or more VLANs for one that is there
    #[command(after_help = "\
Examples:
  weft vtep add port vm1 --vni 100
  weft vtep add port trunk1 --vlan 10=5010 --vlan 100-199=10100-10199")]
    Port {
        /// Its interface
        interface: String,
        /// Its segment; of a trunk that of frames without a VLAN tag
        #[arg(long, value_name = "VNI", required_unless_present = "vlan")]
        vni: Option<u32>,
        /// A VLAN of a trunk with its segment, or as many of both as ranges (repeat for more)
        #[arg(long, value_name = "VLAN=VNI")]
        vlan: Vec<String>,
        /// Carry frames with a VLAN tag instead of dropping them
        #[arg(long, conflicts_with = "vlan")]
        keep_tags: bool,
        #[command(flatten)]
        vtep: Which,
    },
    /// Another VTEP
    #[command(after_help = "Example:\n  weft vtep add peer 10.64.0.4")]
    Peer {
        /// Its address
        peer: Ipv4Addr,
        #[command(flatten)]
        vtep: Which,
    },
    /// A forwarding entry that does not age; one that is there is replaced
    #[command(after_help = "\
Examples:
  weft vtep add entry 02:00:00:00:00:09 --vni 100 --peer 10.64.0.3 --ip 192.168.0.9
  weft vtep add entry 02:00:00:00:00:08 --vni 100 --port vm1")]
    Entry {
        /// The MAC
        mac: String,
        /// Its segment
        #[arg(long, value_name = "VNI")]
        vni: u32,
        /// The VTEP that it is behind
        #[arg(long, value_name = "ADDRESS", required_unless_present = "port", conflicts_with = "port")]
        peer: Option<Ipv4Addr>,
        /// The access port that it is behind
        #[arg(long, value_name = "IF")]
        port: Option<String>,
        /// The VLAN of that port, if it is a trunk
        #[arg(long, value_name = "VLAN", requires = "port")]
        vlan: Option<u16>,
        /// Answer ARP for this address with the MAC
        #[arg(long, value_name = "ADDRESS")]
        ip: Option<Ipv4Addr>,
        #[command(flatten)]
        vtep: Which,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddVniArgs {
    /// The VNI, or several as FIRST-LAST
    pub(crate) vni: String,
    /// Where frames to many go: peers, nowhere, a multicast group, or some peers with commas
    #[arg(long, value_name = "WHERE")]
    pub(crate) flood: Option<String>,
    /// Peers that may send into it, with commas [default: those of a list in --flood, else all]
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    pub(crate) members: Option<Vec<Ipv4Addr>>,
    /// Learn MACs from frames
    #[arg(long, value_name = "BOOL")]
    pub(crate) learn: Option<bool>,
    /// How long a silent MAC is kept, seconds; 0: for ever
    #[arg(long, value_name = "SECONDS")]
    pub(crate) age: Option<u32>,
    /// Answer ARP from what is known
    #[arg(long, value_name = "BOOL")]
    pub(crate) answer_arp: Option<bool>,
    /// Ask the directory where addresses are
    #[arg(long, value_name = "BOOL")]
    pub(crate) directory: Option<bool>,
    /// With the directory: flood what it is asked for instead of letting it wait
    #[arg(long, value_name = "BOOL")]
    pub(crate) flood_misses: Option<bool>,
    /// Frames to unknown MACs flooded per second; 0: none
    #[arg(long, value_name = "N")]
    pub(crate) unknown_per_s: Option<u32>,
    /// Broadcast and group frames flooded per second
    #[arg(long, value_name = "N")]
    pub(crate) broadcast_per_s: Option<u32>,
    #[command(flatten)]
    pub(crate) vtep: Which,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RemoveCommand {
    /// Segments, with everything learned in them; their ports must have gone before
    #[command(after_help = "Example:\n  weft vtep remove vni 1000-5999")]
    Vni {
        /// The VNI, or several as FIRST-LAST
        vni: String,
        #[command(flatten)]
        vtep: Which,
    },
    /// An access port, or some VLANs of a trunk
    #[command(after_help = "\
Examples:
  weft vtep remove port vm1
  weft vtep remove port trunk1 --vlan 10 --vlan 100-199")]
    Port {
        /// Its interface
        interface: String,
        /// Only this VLAN of it, or these as FIRST-LAST (repeat for more)
        #[arg(long, value_name = "VLAN")]
        vlan: Vec<String>,
        #[command(flatten)]
        vtep: Which,
    },
    /// Another VTEP
    #[command(after_help = "Example:\n  weft vtep remove peer 10.64.0.4")]
    Peer {
        /// Its address
        peer: Ipv4Addr,
        #[command(flatten)]
        vtep: Which,
    },
    /// A forwarding entry that does not age
    #[command(after_help = "Example:\n  weft vtep remove entry 02:00:00:00:00:09 --vni 100")]
    Entry {
        /// The MAC
        mac: String,
        /// Its segment
        #[arg(long, value_name = "VNI")]
        vni: u32,
        #[command(flatten)]
        vtep: Which,
    },
}
