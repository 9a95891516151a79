//! What can be computed about a network without sending a packet.
//!
//! * [`cost`]: what VL2 and conventional networks of a size cost (VL2 6)
//! * [`link_use`]: how loaded links are under VLB, adaptive and the best oblivious routing (VL2 6, Figure 15)
//! * [`availability`]: what servers can send while devices fail (VL2 3.4)
//! * [`flow_log`]: flow logs to records, the user's and generated ones (VL2 3.1 to 3.3)
//!
//! [`CalcEngine`] is the engine of plans without packets. No files, no clock; randomness from a seed only.

#![forbid(unsafe_code)]

pub mod availability;
mod calc;
pub mod cost;
pub mod flow_log;
pub mod link_use;

use weft_scenario::engine::{EngineError, Progress};
use weft_scenario::record::Records;
use weft_scenario::topology::Fabric;
use weft_scenario::workload::ModelSpec;

pub use calc::{CALC, CalcEngine};

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The fabric is not of the kind that the question is about.
    #[error("{0}")]
    Shape(String),
    /// No network of these switches has so many servers.
    #[error("{0}")]
    TooLarge(String),
    /// The settings make no sense on this fabric.
    #[error("{0}")]
    Setting(String),
    /// No solution satisfies a linear program.
    #[error("the linear program of {place} is infeasible: {why}")]
    Infeasible {
        place: String,
        /// What cannot be satisfied.
        why: String,
    },
    /// The solver gave up.
    #[error("the solver could not solve the linear program of {place}: {why}")]
    Solver {
        place: String,
        /// What the solver said.
        why: String,
    },
}

impl From<ModelError> for EngineError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Interrupted => Self::Interrupted,
            ModelError::Solver { .. } => Self::Failed(error.to_string()),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

/// Answers one question about a fabric. The same seed gives the same records.
fn run(spec: &ModelSpec, fabric: &Fabric, seed: u64, progress: &dyn Progress) -> Result<Records, ModelError> {
    match spec {
        ModelSpec::Cost(spec) => cost::run(spec),
        ModelSpec::LinkUse(spec) => link_use::run(spec, fabric, seed, progress),
        ModelSpec::Availability(spec) => availability::run(spec, fabric, seed, progress),
    }
}
