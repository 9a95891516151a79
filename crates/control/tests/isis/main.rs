//! The control plane of RBridges: its table, its rules step by step, bad input, and whole campuses in virtual time.

mod authentication;
mod bad_input;
mod broadcast;
mod campus;
mod cases;
mod fragments;
mod lan;
mod merge;
mod net;
mod oracle;
mod own_tree;
mod peer;
mod shared;
mod shared_campus;
mod shared_port;
mod shared_restart;
mod sz;
mod table;
mod topology;
mod traffic;
mod victim;
