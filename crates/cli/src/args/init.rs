//! Flags of `weft init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weft_node::init::Network;

use super::OutputFlag;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weft init vl2 --print-example > hosts.toml
  weft init vl2 hosts.toml --out fabric
  scp -pr fabric/srv1/. root@srv1:/etc/weft
  ssh root@srv1 'sh /etc/weft/network.sh && sh /etc/weft/enable.sh'

A file for a campus of two RBridges:
  mtu = 1500
  links = [[\"s1:eth2\", \"s2:eth2\"]]
  [[rbridge]]
  name = \"s1\"
  access = { eth1 = 10 }
  [[rbridge]]
  name = \"s2\"
  access = { eth1 = 10 }

Each host has a folder with its settings, its own keys (mode 0600), what configures its interfaces, and a README; `operator` has the
secrets that others are derived from, and stays with you. Nothing is written unless all of it is right. DIR must be empty, or written by
`weft init` before: then its secrets stay, and all else is made anew; a host's file that was changed meanwhile is refused, with its name
and line, but for --force. Exit code 2: the file is wrong, with its line and key.";

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Which network
    #[arg(value_enum)]
    pub(crate) network: NetworkChoice,
    /// TOML file that says which hosts there are; `--print-example` shows one
    #[arg(value_name = "HOSTS", required_unless_present = "print_example")]
    pub(crate) hosts: Option<PathBuf>,
    /// Folder for the hosts' folders
    #[arg(long, value_name = "DIR", required_unless_present = "print_example")]
    pub(crate) out: Option<PathBuf>,
    /// Replace files that were changed since `weft init` wrote them
    #[arg(long)]
    pub(crate) force: bool,
    /// Print an example of the file and leave
    #[arg(long)]
    pub(crate) print_example: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NetworkChoice {
    /// Directory servers, agents, ToRs and Intermediates
    Vl2,
    /// VTEPs
    Vxlan,
    /// A campus of RBridges
    Trill,
}

impl From<NetworkChoice> for Network {
    fn from(choice: NetworkChoice) -> Self {
        match choice {
            NetworkChoice::Vl2 => Self::Vl2,
            NetworkChoice::Vxlan => Self::Vxlan,
            NetworkChoice::Trill => Self::Trill,
        }
    }
}
