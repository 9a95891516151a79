//! What a directory server decides about its copy of the replicated state (VL2 4.3.2), without the store, the threads and
//! the clock: those carry what is said here and say what became of it. So what ships is what the seeded simulator drives.
//!
//! * [`Queue`]: requests share records; each is answered once, in time, and with what is true
//! * [`Follow`]: where the table gets its next records from: the log, or a snapshot if it lags behind a compaction
//! * [`Upkeep`], [`Comparison`]: when a snapshot is due; whether the table is still what the store holds
//! * [`Health`]: what is wrong, and what of that makes a server unfit
//! * [`Committed`]: what subscribers are told of a record

mod committed;
mod follow;
mod health;
mod queue;
mod upkeep;

pub use committed::Committed;
pub use follow::{Follow, Todo};
pub use health::{Health, Part};
pub use queue::{Bounds, Done, Next, Queue, Settled, foresee, weight};
pub use upkeep::{Comparison, Upkeep, UpkeepBounds};

use std::fmt::Display;

use super::Refusal;

/// The verdicts on a record's requests, in their order.
pub type Verdicts = Vec<Result<u64, Refusal>>;

/// Why nothing is done any more.
const STOPS: &str = "the server stops";

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It changes nothing, and will not.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Too much is waiting.
    #[error("{0}")]
    Busy(String),
    /// The store did not take it, or not in time; the text says if it may have been carried out all the same.
    #[error("{0}")]
    Store(String),
}

impl Failure {
    /// It may have been carried out.
    fn unknown(why: impl Display) -> Self {
        Self::Store(format!("whether the update was carried out is unknown: {why}; read the mapping, then decide"))
    }

    /// The server ends, and has not begun with it.
    pub fn stops() -> Self {
        Self::Store(format!("{STOPS}, nothing was changed; ask another one"))
    }
}
