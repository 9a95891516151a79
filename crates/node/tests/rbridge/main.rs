//! `weft node rbridge` on real paths: four RBridges in a square with hosts at their ports, over cuts, restarts and crashes,
//! read by tshark, and against input that cannot work.

mod authentication;
mod bad_input;
mod bed;
mod cards;
#[path = "../common/mod.rs"]
mod common;
mod forwarding;
mod groups;
mod life;
#[path = "../net/mod.rs"]
mod net;
mod shared;
mod shared_vlans;
mod trees;
