//! The test centre: measures any layer-2 path between two ports, veth ends or real NICs.
//!
//! | module | what it is for | IO |
//! | --- | --- | --- |
//! | [`measure`] | throughput, latency, loss and soak, as `weft measure` prints them | yes |
//! | [`replay`] | frames of a capture file, sent as they are: `weft measure replay` | yes |
//! | [`reference`], [`find`] | the face for experiments with paths of their own: a rate, a frame's cost, the throughput | yes |
//! | [`path`] | ports, generator and analysers: one trial | yes |
//! | [`bed`] | the tester's own paths: its floor, and a device of known cost | yes |
//! | [`port`] | an interface here or in a namespace | yes |
//! | [`rate`], [`sizes`], [`stream`] | frame sizes, mixes of them, bits per second; stations and streams from a seed | no |
//! | [`account`], [`latency`] | what became of every frame; latency histograms | no |
//! | [`own`] | what the tester itself costs, and its floor: `weft bench tester` | yes |
//! | `experiment` | what experiments on beds of their own share | no |
//! | [`usage`] | CPU and memory of servers and VMs, with quotas | yes |
//! | [`search`] | throughput, loss curve, back-to-back as state machines | no |
//! | [`gate`], [`cost`] | quiet phases; CPU per frame | no |

pub mod account;
pub mod bed;
pub mod cost;
mod error;
pub(crate) mod experiment;
pub mod find;
pub mod gate;
pub mod latency;
pub mod measure;
pub mod own;
mod packet;
pub mod path;
pub mod port;
pub mod rate;
pub mod reference;
pub mod replay;
pub mod search;
pub mod sizes;
pub mod stream;
pub mod usage;

pub use error::TesterError;
