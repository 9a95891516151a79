//! Flags of `weft measure`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use weft_lab::tester::sizes::{self, Sizes};
use weft_scenario::units::Nanos;
use weft_wire::ethernet::MacAddress;

use super::ResultFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum MeasureCommand {
    /// The highest rate without loss, by frame size
    #[command(after_help = "\
Examples:
  weft measure throughput --tx eth1 --rx eth2
  weft measure throughput --tx eth1 --rx eth2 --size 64,1518 --method rfc2544 -o json
  weft measure throughput --tx red:g0 --rx blue:k0 --streams 1000 --cost   in namespaces; with CPU per frame
  weft measure throughput --tx eth1 --rx eth2 --ip 6 --groups 8            IPv6, with multicast
  weft measure throughput --tx eth1 --rx eth2 --size imix,imix:128x5,1518x5   mixes, in turns within one trial

What limited a rate is in the last column: `device` (it lost frames above), `link` (the line is full), `generator` (weft
can send no more), `cpu` (path and generator share a core) or `asked`. Only `device` and `link` say something about the
path's own limit.")]
    Throughput {
        #[command(flatten)]
        ports: PortArgs,
        /// How the rate is searched
        #[arg(long, value_enum, default_value_t)]
        method: MethodChoice,
        /// Also measure the path's CPU time per frame, by difference (takes some seconds for each size)
        #[arg(long)]
        cost: bool,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// One-way latency at fixed rates, with the tester's own floor
    #[command(after_help = "\
Examples:
  weft measure latency --tx eth1 --rx eth2 --rate 10000,100000
  weft measure latency --tx eth1 --rx eth2 --size 512 --trial 5s -o csv

Latency is from the start of sending to complete reception. `floor` is the same over a veth pair of weft's own, at the same
size and rate in the same run; `net` is without it.")]
    Latency {
        #[command(flatten)]
        ports: PortArgs,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// Loss by offered rate, from the highest rate down (RFC 2544 26.3)
    #[command(after_help = "\
Examples:
  weft measure loss --tx eth1 --rx eth2 --rate 1000000
  weft measure loss --tx eth1 --rx eth2 --back-to-back           the longest burst without loss")]
    Loss {
        #[command(flatten)]
        ports: PortArgs,
        /// The longest burst without loss instead (RFC 2544 26.4)
        #[arg(long)]
        back_to_back: bool,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// One rate for a long time, a row for every trial's length
    #[command(after_help = "\
Examples:
  weft measure soak --tx eth1 --rx eth2 --rate 50000 --duration 60min --trial 10s
  weft measure soak --tx eth1 --rx eth2 --size 64,512,1518 --duration 5min -o csv > soak.csv

Ctrl-C ends it with the rows so far, and exit code 130.")]
    Soak {
        #[command(flatten)]
        ports: PortArgs,
        /// How long in all, for example 30s or 10min
        #[arg(long, default_value = "60s", value_name = "TIME")]
        duration: Time,
        #[command(flatten)]
        results: ResultFlags,
    },
    /// Frames of a capture file at a rate: what arrives, what is lost
    #[command(after_help = "\
Examples:
  weft measure replay --frames web.pcap --tx eth1 --rx eth2 --rate 10000,100000
  weft measure replay --frames web.pcapng --tx red:g0 --rx blue:k0 --rounds 1     every frame once

Frames go out of --tx as they are, addresses and all, one after the other at an even rate (not at the times of the capture): use a
network where nobody minds. Those shorter than Ethernet allows are padded to 60 bytes. --rx knows them again by a digest of their
bytes, so the path must deliver them unchanged; what was changed counts as lost, and as foreign. They have no room for a time: for
latency see `weft measure latency`.")]
    Replay {
        #[command(flatten)]
        replay: ReplayArgs,
        #[command(flatten)]
        results: ResultFlags,
    },
}

/// What is replayed, and where.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Whole Ethernet frames, pcap or pcapng; up to 16384 frames in 64 MiB
    #[arg(long, value_name = "FILE")]
    pub(crate) frames: PathBuf,
    /// Sending port: an interface, or NAMESPACE:INTERFACE
    #[arg(long, value_name = "IF")]
    pub(crate) tx: String,
    /// Receiving port
    #[arg(long, value_name = "IF")]
    pub(crate) rx: String,
    /// Rates, frames per second, a trial for each [default: as fast as possible]
    #[arg(long, value_name = "PPS", value_delimiter = ',')]
    pub(crate) rate: Vec<f64>,
    /// Length of one trial; after the last frame the first one follows
    #[arg(long, default_value = "500ms", value_name = "TIME")]
    pub(crate) trial: Time,
    /// Send the file so many times in a trial, however long that takes
    #[arg(long, value_name = "N", conflicts_with = "trial", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: Option<u64>,
}

/// How a rate is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodChoice {
    /// Most of several trials decide: no-drop rate, and partial-drop rate at 0.5 %
    #[default]
    Ndr,
    /// Bisection with one trial for each rate (RFC 2544 26.1)
    Rfc2544,
}

/// What stations speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IpChoice {
    /// IPv4
    #[default]
    #[value(name = "4")]
    V4,
    /// IPv6
    #[value(name = "6")]
    V6,
}

/// Ports and what is sent between them.
#[derive(Debug, Args)]
pub(crate) struct PortArgs {
    /// Sending port: an interface, or NAMESPACE:INTERFACE
    #[arg(long, value_name = "IF")]
    pub(crate) tx: String,
    /// Receiving port; more than one for groups: unicast goes to the first
    #[arg(long, value_name = "IF", required = true, value_delimiter = ',')]
    pub(crate) rx: Vec<String>,
    /// Frame sizes with FCS, bytes; `imix`: 7 frames of 64, 4 of 570, 1 of 1518 bytes in turns; imix:BYTESxFRAMES,...: another mix
    /// [default: the smallest that the probe leaves (64; 84 over IPv6; 4 more with a VLAN tag), 128, 256, 512, 1024, 1280, 1450, 1518]
    #[arg(long, value_name = "SIZE,...")]
    pub(crate) size: Vec<SizeList>,
    /// Rates, frames per second; searches begin at the largest [default: found out]
    #[arg(long, value_name = "PPS", value_delimiter = ',')]
    pub(crate) rate: Vec<f64>,
    /// Length of one trial
    #[arg(long, default_value = "500ms", value_name = "TIME")]
    pub(crate) trial: Time,
    /// What stations speak: IPv4, of 198.18.0.0/15, or IPv6, of 2001:2::/48
    #[arg(long, value_enum, default_value_t)]
    pub(crate) ip: IpChoice,
    /// Unicast streams, each between two stations of its own
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub(crate) streams: u16,
    /// Multicast streams, each to a group of its own
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) groups: u16,
    /// Broadcast streams (IPv4 only)
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) broadcasts: u16,
    /// VLANs that streams take in turn [default: frames without a tag]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) vlan: Vec<u16>,
    /// MAC of the router, if the device under test is one
    #[arg(long, value_name = "MAC")]
    pub(crate) gateway: Option<MacAddress>,
    /// Seed of the stations' addresses and ports
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Sizes and mixes as people write them.
#[derive(Clone, Debug)]
pub(crate) struct SizeList(pub(crate) Vec<Sizes>);

impl FromStr for SizeList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        sizes::list(text).map(Self)
    }
}

/// A span of time as people write it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = weft_scenario::units::ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Nanos>().map(|nanos| Self(Duration::from_nanos(nanos.0)))
    }
}
