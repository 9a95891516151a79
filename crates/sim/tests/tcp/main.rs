//! Both ends of a TCP connection against a channel that loses, repeats and reorders, as a script or a seed says.

mod adversary;
mod channel;
mod connection;
mod ideal;
mod reno;
mod selective;
mod tail;
