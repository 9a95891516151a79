//! Why a measurement could not be made, one line each.

use weft_datapath::DatapathError;
use weft_scenario::engine::EngineError;

use crate::error::LabError;

/// Why the test centre stopped.
#[derive(Debug, thiserror::Error)]
pub enum TesterError {
    /// Something was asked that cannot be measured.
    #[error("{0}")]
    Refused(String),
    /// The user asked to stop.
    #[error("interrupted; the ports are as they were")]
    Interrupted,
    /// Namespaces, links or sockets.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The programs.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// No frame arrived at all, so there is nothing to measure.
    #[error("{0}")]
    NoPath(String),
}

impl From<TesterError> for EngineError {
    fn from(error: TesterError) -> Self {
        match error {
            TesterError::Refused(why) => Self::Refused(why),
            TesterError::Interrupted => Self::Interrupted,
            TesterError::Lab(error) => error.into(),
            TesterError::Datapath(error) => match error {
                DatapathError::NoRights { .. } => Self::NotFit {
                    what: "the test centre loads eBPF programs, which this process may not".to_owned(),
                    remedy: "run it with sudo".to_owned(),
                },
                DatapathError::NoEbpf { .. } => {
                    Self::NotFit { what: error.to_string(), remedy: "see: weft doctor".to_owned() }
                }
                DatapathError::NoInterface { .. } => Self::Refused(error.to_string()),
                other => Self::Failed(other.to_string()),
            },
            TesterError::NoPath(why) => Self::Failed(why),
        }
    }
}
