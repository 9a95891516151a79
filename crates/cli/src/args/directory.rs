//! Flags of `weft directory`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFlag;

/// Which directory server, and as whom.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// The server's `admin_socket` on this host [default: that of the daemon here, or of the one lab that is up]
    #[arg(long, value_name = "PATH", env = "WEFT_DIRECTORY_SOCKET", conflicts_with = "server")]
    pub(crate) socket: Option<PathBuf>,
    /// The first directory server of this lab; needed only while several are up
    #[arg(long, value_name = "NAME", conflicts_with_all = ["socket", "server"])]
    pub(crate) lab: Option<String>,
    /// The server's address for sessions over TLS
    #[arg(long, value_name = "ADDRESS:PORT", env = "WEFT_DIRECTORY_SERVER", requires = "tls_dir")]
    pub(crate) server: Option<SocketAddr>,
    /// Folder with ca.pem and our certificate (see `weft directory certs`)
    #[arg(long, value_name = "DIR", env = "WEFT_TLS_DIR")]
    pub(crate) tls_dir: Option<PathBuf>,
    /// Our certificate in that folder: NAME.pem and NAME.key
    #[arg(long = "as", value_name = "NAME", default_value = "operator", env = "WEFT_TLS_NAME")]
    pub(crate) identity: String,
}

#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DirectoryCommand {
    /// Show where an AA is, or all mappings
    #[command(after_help = "\
Examples:
  weft directory get 20.0.0.7
  weft directory get -o csv > mappings.csv
  weft directory get 20.0.0.7 --server 10.64.0.9:5310 --tls-dir /etc/weft/tls")]
    Get {
        /// The AA; without it all mappings
        aa: Option<Ipv4Addr>,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Say where an AA is: the LA of its ToR and the anycast LA to use
    #[command(after_help = "\
Examples:
  weft directory set 20.0.0.7 --tor 10.1.0.2 --anycast 10.255.255.1
  weft directory set 20.0.0.7 --tor 10.1.0.2 --anycast 10.255.255.1 --service 7 --host 10.64.2.7")]
    Set(SetArgs),
    /// Forget an AA
    #[command(after_help = "Example:\n  weft directory del 20.0.0.7")]
    Del {
        /// The AA
        aa: Ipv4Addr,
        /// Only if this is the current version
        #[arg(long, value_name = "N")]
        if_version: Option<u64>,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Move an AA to another ToR; its service and anycast LA stay
    #[command(after_help = "\
Examples:
  weft directory move 20.0.0.7 --tor 10.1.0.3
  weft directory move 20.0.0.7 --tor 10.1.0.3 --host 10.64.3.7 --if-version 41")]
    Move {
        /// The AA
        aa: Ipv4Addr,
        /// LA of its new ToR
        #[arg(long, value_name = "LA")]
        tor: Ipv4Addr,
        /// LA of its new host, so that its agent can be corrected
        #[arg(long, value_name = "LA")]
        host: Option<Ipv4Addr>,
        /// Only if this is the current version
        #[arg(long, value_name = "N")]
        if_version: Option<u64>,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Print changes as they are committed, until Ctrl-C
    #[command(after_help = "\
Examples:
  weft directory watch
  weft directory watch --from 41 -o json    one JSON object per change; nothing after revision 41 is missed")]
    Watch {
        /// Begin after this revision instead of now
        #[arg(long, value_name = "REVISION")]
        from: Option<u64>,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Show and change which services may look up which
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Set all mappings of a file: CSV with the header aa,tor_la,anycast_la,service[,host_la], or JSON lines
    #[command(after_help = "\
The whole file is checked first: a bad line is named and nothing is imported. After Ctrl-C it says how many are in; the
file may be imported again as a whole.

Examples:
  weft directory import mappings.csv
  weft directory export > all.csv && weft directory import all.csv --server 10.64.0.9:5310 --tls-dir tls")]
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Print all mappings as `import` reads them: CSV, or JSON lines with `-o json`
    #[command(after_help = "Example:\n  weft directory export > mappings.csv")]
    Export {
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// State of a directory server by a session, and so also of one elsewhere; `weft show directory` shows one here
    #[command(after_help = "\
Examples:
  weft directory status
  weft directory status --server 10.64.0.9:5310 --tls-dir /etc/weft/tls -o json")]
    Status {
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Derive an agent's or a switch's key from the directory servers' secret
    #[command(after_help = "\
Examples:
  weft directory key /etc/weft/directory.key --la 10.64.0.2 --service 7 --write /etc/weft/agent.key
  weft directory key /etc/weft/directory.key --la 10.1.0.2    a ToR's: service 0, printed")]
    Key(KeyArgs),
    /// Make a CA and certificates for sessions over TLS, or add to them
    #[command(after_help = "\
Servers get server.pem (`tls` in their settings), operators operator.pem, each service its own service-N.pem, valid for a
year. What is there already stays, except the servers' certificate and what ends within two months. Keep ca.key safe.

Examples:
  weft directory certs tls --address 10.64.0.9 --address 10.64.0.10
  weft directory certs tls --address 10.64.0.9 --service 7
  weft directory get --server 10.64.0.9:5310 --tls-dir tls --as service-7")]
    Certs(CertsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The AA
    pub(crate) aa: Ipv4Addr,
    /// LA of the ToR
    #[arg(long, value_name = "LA")]
    pub(crate) tor: Ipv4Addr,
    /// Anycast LA of the Intermediates to use
    #[arg(long, value_name = "LA")]
    pub(crate) anycast: Ipv4Addr,
    /// Whose it is
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) service: u32,
    /// LA of its host, so that its agent can be corrected
    #[arg(long, value_name = "LA")]
    pub(crate) host: Option<Ipv4Addr>,
    /// Only if this is the current version (0: never set)
    #[arg(long, value_name = "N")]
    pub(crate) if_version: Option<u64>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the rules that differ from the default: a service reaches itself and service 0, service 0 reaches all
    #[command(after_help = "Example:\n  weft directory policy list")]
    List {
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Let servers of one service look up AAs of another
    #[command(after_help = "Example:\n  weft directory policy allow 7 8 --both")]
    Allow {
        /// Whose servers ask
        from: u32,
        /// Whose AAs are asked for
        to: u32,
        /// Also the other way round: to talk, each must find the other
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// No longer let servers of one service look up AAs of another
    #[command(after_help = "Example:\n  weft directory policy deny 7 8")]
    Deny {
        /// Whose servers ask
        from: u32,
        /// Whose AAs are asked for
        to: u32,
        /// Also the other way round
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// File with the servers' secret: 32 hexadecimal digits, mode 0600
    pub(crate) secret: PathBuf,
    /// LA that the agent or switch sends from
    #[arg(long)]
    pub(crate) la: Ipv4Addr,
    /// Service of the agent's host; 0 for a switch
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) service: u32,
    /// Write the key to this file, mode 0600, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

#[derive(Debug, Args)]
pub(crate) struct CertsArgs {
    /// The folder; made if it is missing
    pub(crate) dir: PathBuf,
    /// Address that a server listens on (repeat for more); 127.0.0.1 is always there
    #[arg(long, value_name = "IP")]
    pub(crate) address: Vec<IpAddr>,
    /// Host name of a server (repeat for more)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Service that gets a certificate (repeat for more)
    #[arg(long, value_name = "N")]
    pub(crate) service: Vec<u32>,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}
