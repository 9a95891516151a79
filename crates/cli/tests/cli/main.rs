//! The binary from the outside: what people type, what they get, and what is left behind.

mod analyse;
mod bad_input;
mod cluster;
mod common;
#[cfg(feature = "lab")]
mod docs;
#[cfg(feature = "lab")]
mod environment;
mod fabric;
#[cfg(feature = "lab")]
mod inside;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lab")]
mod live;
#[cfg(feature = "lab")]
mod mutations;
mod own_plans;
#[cfg(feature = "lab")]
mod package;
#[cfg(feature = "lab")]
mod private;
mod results;
#[cfg(feature = "lab")]
mod safety;
mod shards;
mod sim;
mod sim_folder;
#[cfg(feature = "lab")]
mod terminal;
#[cfg(feature = "lab")]
mod vtep;
#[cfg(feature = "lab")]
mod watch;
