//! TCP as pure state machines: time and packets go in, decisions come out; the engine owns links, queues and timers.
//!
//! ```text
//!   Sender::poll --> Transmit --> network --> Receiver::on_data --> AckDecision
//!        ^                                          |
//!        |                                          v
//!   Sender::on_ack <------------ network <---- Receiver::ack
//! ```
//!
//! * Time is virtual, a `u64` of picoseconds below 2^60 (13 days) that never goes back. Sequence numbers count segments of one MSS from 0;
//!   whoever drives the machines knows how many bytes the last one has.
//! * As long as nothing was lost or reordered, an ACK takes a short path (`sender`). Otherwise an `episode` exists, a
//!   boxed state that `recovery` and `repair` work on and that goes away with the trouble.
//! * `scoreboard` knows every outstanding segment; `sacks`, `rack` and `probe` decide what is lost; `reduction` meters
//!   recovery; `rtt` holds the timeout; `congestion`, `cubic`, `hystart` and `dctcp` size the window.
//! * `receiver` and `out_of_order` are the other end.

mod ack;
mod config;
mod congestion;
mod cubic;
mod dctcp;
mod episode;
mod forward;
mod hystart;
mod out_of_order;
mod probe;
mod rack;
mod receiver;
mod recovery;
mod reduction;
mod repair;
mod rtt;
mod sacks;
mod scoreboard;
mod sender;
mod timer;
mod undo;
mod usage;
mod window;

pub use ack::{Ack, SackBlocks};
pub use config::{Config, LossDetection, RtoFloor};
pub use receiver::{AckDecision, Receiver};
pub use sender::{Sender, State, Transmit};
pub use timer::Expiry;

/// Picoseconds in a millisecond.
const MS: u64 = 1_000_000_000;
/// Picoseconds in a second.
const SECOND: u64 = 1_000 * MS;
