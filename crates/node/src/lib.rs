//! What is deployed: the VL2 agent, the directory server, the VTEP and the RBridge as daemons, each one short event loop
//! around a machine of `weft-control`.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`agent`] | `weft node agent`: misses, look-ups, mappings into the data path (VL2 4.2.1) |
//! | [`directory`] | `weft node directory`: look-ups over UDP, updates over a Unix socket (VL2 4.3) |
//! | [`vtep`] | `weft node vtep`: VXLAN tunnel end point of a virtual switch or a ToR (RFC 7348) |
//! | [`rbridge`] | `weft node rbridge`: an RBridge of a TRILL campus (RFC 6325) |
//! | [`switch`] | `weft node switch`: the data path of an Intermediate or ToR that runs Linux (VL2 4.2) |
//! | [`tor`] | `weft node tor`: reports packets for AAs that are not behind the ToR (VL2 4.3.2) |
//! | [`store`] | where the directory's log lives; redb is built in |
//! | [`certs`] | certificates for sessions over TLS |
//! | [`client`] | asks a directory server: administration and look-ups |
//! | [`init`] | `weft init`: settings, keys and certificates of a whole deployment |
//! | [`key`] | key files: agents' keys from the servers' secret |
//! | [`datagrams`] | UDP in batches, for who asks or answers a lot |
//! | [`socket`] | how every daemon is asked and told while it runs |
//! | [`web`] | HTTP within limits |
//! | [`stop`] | ends a daemon on SIGTERM, SIGINT or by hand, and has it read its settings again |
//!
//! A daemon acts in the network namespace of the thread that runs it.

mod aa_block;
pub mod agent;
mod cards;
pub mod certs;
pub mod client;
mod descriptors;
pub mod directory;
mod error;
pub mod init;
pub mod key;
mod left;
mod poll;
pub mod rbridge;
mod run_folder;
mod runner;
mod service;
mod settings_file;
mod silence;
pub mod socket;
pub mod stop;
pub mod store;
pub mod switch;
mod sys;
mod tcp;
mod threads;
mod tls;
pub mod tor;
mod udp;
pub mod vtep;
mod watch;
pub mod web;
mod xdp;

/// What a daemon says of its own state whatever the level of the log: that it is ready, that its directory answers again.
pub const READY_LOG: &str = "weft::ready";
/// Target of the lines that say what people or programs changed of a daemon, and who: they are told as well.
pub const CHANGES_LOG: &str = "weft::changes";

pub use error::NodeError;
pub use runner::{DaemonKind, Load};
pub use settings_file::{judge as judge_settings, read as read_settings, to_text as settings_text};
pub use sys::datagrams;
pub use tls::TlsFiles;
