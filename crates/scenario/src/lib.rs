//! What we describe before anything runs, and what every run yields.
//!
//! Pure data and pure functions: no IO, no clock, no randomness except from a seed.
//!
//! * [`units`], [`id`]: rates, sizes, times, percentages and identifiers as types
//! * [`name`]: how fabrics, labs, nodes and interfaces may be called
//! * [`topology`]: a [`topology::Fabric`] of nodes and links, and the rules of a valid one
//! * [`addressing`]: AAs, LAs, anycast groups and link addresses derived from a fabric
//! * [`routing`]: equal-cost shortest paths between switches
//! * [`switching`], [`transport`]: how switches queue and spread, how hosts send
//! * [`workload`]: who sends how much to whom
//! * [`fault`]: what breaks when
//! * [`effect`]: which of all these settings have an effect, engine by engine
//! * [`record`]: the tidy rows that an engine returns
//! * [`judge`]: floors, ceilings and verdicts
//! * [`overlay`]: what carries packets or frames from server to server
//! * [`random`]: streams of random numbers from a seed
//! * [`machine`]: what engines ask of the machine that they run on
//! * [`engine`]: the contract between an experiment and an engine

pub mod addressing;
pub mod effect;
pub mod engine;
pub mod fault;
pub mod id;
pub mod judge;
pub mod machine;
pub mod name;
pub mod overlay;
pub mod random;
pub mod record;
pub mod routing;
pub mod switching;
pub mod topology;
pub mod transport;
pub mod units;
pub mod workload;
