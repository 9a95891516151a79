//! The control plane of RBridges: its table, its rules step by step, bad input, and whole campuses in virtual time.

mod authentication;
mod bad_input;
mod broadcast;
mod campus;
mod cases;
mod fragments;
mod net;
mod oracle;
mod peer;
mod table;
mod topology;
mod victim;
