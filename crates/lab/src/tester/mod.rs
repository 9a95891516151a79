//! The test centre: measures any layer-2 path between two ports, veth ends or real NICs.
//!
//! | module | what it is for | IO |
//! | --- | --- | --- |
//! | [`measure`] | throughput, latency, loss and soak, as `weft measure` prints them | yes |
//! | [`path`] | ports, generator and analysers: one trial | yes |
//! | [`bed`] | the tester's own paths: its floor, and a device of known cost | yes |
//! | [`port`] | an interface here or in a namespace | yes |
//! | [`rate`], [`stream`] | frame sizes, bits per second; stations and streams from a seed | no |
//! | [`account`], [`latency`] | what became of every frame; latency histograms | no |
//! | [`search`] | throughput, loss curve, back-to-back as state machines | no |
//! | [`compare`], [`gate`], [`cost`] | two paths beside each other; quiet phases; CPU per frame | no |

pub mod account;
pub mod bed;
pub mod compare;
pub mod cost;
mod error;
pub mod gate;
pub mod latency;
pub mod measure;
mod packet;
pub mod path;
pub mod port;
pub mod rate;
pub mod search;
pub mod stream;

pub use error::TesterError;
