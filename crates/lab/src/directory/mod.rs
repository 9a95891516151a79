//! Loads on a directory system and what they measure (VL2 5.5): in a lab for plans, on loopback for `weft bench directory`.
//!
//! * [`tier`]: a directory tier that runs, wherever it does, with what can be broken in it
//! * `in_lab`: the tier of a lab; `etcd`: nodes of its store
//! * [`bed`]: such a tier on loopback, without a network of its own; `apart`: with one link between it and who asks
//! * `step`: one step of a load: look-ups, updates and something killed, all at once
//! * `visible`: updates, and when each is visible at every server and at a subscriber
//! * `usage`: CPU time of servers, of the store and of everything else
//! * `echo`: what the machine makes of datagrams that are only sent back
//! * `rows`: what comes of it as rows of records
//! * [`bench`](mod@bench): the numbers of `weft bench directory`
//! * [`fabric`]: those of `weft bench directory fabric`, with an agent for every server of a data centre

mod apart;
pub mod bed;
pub mod bench;
mod echo;
pub(crate) mod etcd;
pub mod fabric;
mod in_lab;
mod rows;
mod step;
pub mod tier;
pub(crate) mod usage;
mod visible;

pub(crate) use in_lab::LabTier;
pub use step::run;
