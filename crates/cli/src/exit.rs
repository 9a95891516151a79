//! Exit codes, and how a failure is told: one line with what, why and what to do.

use std::io::Write;
use std::process::ExitCode;

use weft_scenario::engine::EngineError;

use crate::args::LogFormat;

/// What a process that fails says of it, whatever the level of the log.
pub(crate) const FAILURE_LOG: &str = "weft::failure";

/// The run or command failed.
pub(crate) const FAILED: u8 = 1;
/// The command line or a file that it names is wrong.
pub(crate) const USAGE: u8 = 2;
/// A claim or check failed.
pub(crate) const CLAIM_FAILED: u8 = 3;
/// This machine lacks something: kernel, rights or a program.
pub(crate) const NOT_FIT: u8 = 4;
/// Something hides the answer to what a plan has to show.
pub(crate) const INCONCLUSIVE: u8 = 5;
/// Interrupted and cleaned up.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why weft stops, and with which exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl std::fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }

    pub(crate) fn failed(message: impl std::fmt::Display) -> Self {
        Self::new(FAILED, message)
    }

    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self::new(USAGE, message)
    }

    /// The failure of a command that the user has asked to stop.
    pub(crate) fn interrupted(self) -> Self {
        match self.code {
            INTERRUPTED => self,
            _ => Self::new(INTERRUPTED, format_args!("interrupted: {}", self.message)),
        }
    }

    /// Tells it on standard error.
    pub(crate) fn report(&self, format: LogFormat) -> ExitCode {
        match format {
            // A terminal that has gone changes nothing of the exit code.
            LogFormat::Text => {
                let _ = writeln!(std::io::stderr(), "weft: {}", self.message);
            }
            LogFormat::Json => tracing::error!(target: FAILURE_LOG, exit_code = self.code, "{}", self.message),
        }
        ExitCode::from(self.code)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let code = match error {
            EngineError::NotFit { .. } => NOT_FIT,
            EngineError::Interrupted => INTERRUPTED,
            EngineError::Refused(_) => USAGE,
            EngineError::Failed(_) => FAILED,
        };
        Self::new(code, error)
    }
}

/// What an engine says of something beside it that failed.
impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.message)
    }
}

/// Why a daemon does not start: its settings, or the machine.
#[cfg(feature = "lab")]
pub(crate) fn of_daemon(error: &weft_node::NodeError) -> Failure {
    use weft_node::NodeError::{Config, ConfigFile, KeyFile};
    Failure::new(
        if matches!(error, Config { .. } | ConfigFile { .. } | KeyFile { .. }) { USAGE } else { NOT_FIT },
        error,
    )
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error)
    }
}
