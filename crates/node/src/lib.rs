//! What is deployed: the VL2 agent and the directory server as daemons, each one short event loop around a machine of
//! `weft-control`.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`agent`] | `weft node agent`: misses, look-ups, mappings into the data path (VL2 4.2.1) |
//! | [`directory`] | `weft node directory`: look-ups over UDP, updates over a Unix socket (VL2 4.3) |
//! | [`store`] | where the directory's log lives; redb is built in |
//! | [`client`] | asks a directory server: administration and look-ups |
//! | [`stop`] | ends a daemon on SIGTERM, SIGINT or by hand |
//!
//! A daemon acts in the network namespace of the thread that runs it.

#![warn(missing_docs)]

pub mod agent;
pub mod client;
pub mod directory;
mod error;
mod key;
mod poll;
pub mod stop;
pub mod store;
mod sys;
mod unix;

pub use error::NodeError;
