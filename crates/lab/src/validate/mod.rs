//! Whether a lab does what its fabric promises: checks of the kernels' routes and of packets, with what is broken left out.
//!
//! * [`wanted`]: what is checked beside what every lab must do, from a file
//! * [`ways`]: next hops of all switches, as their kernels have them
//! * [`echoes`]: who answers whom, and how long packets may be

mod echoes;
mod wanted;
mod ways;

use serde::Serialize;
use weft_scenario::engine::Progress;
use weft_scenario::fault::FaultKind;

use crate::error::LabError;
use crate::faults;
use crate::up::Lab;
pub use wanted::{Wanted, WantedError};

/// Version of [`Validation`]'s fields.
pub const SCHEMA_VERSION: u32 = 1;

/// What was found.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Validation {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    pub lab: String,
    /// What people have broken in it; it is not held against the lab.
    pub broken: Vec<FaultKind>,
    pub checks: Vec<Finding>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// `processes`, `ways`, `converged`, `loops`, `reach`, `mtu`, `width` or `path`.
    pub check: &'static str,
    /// What it is about.
    pub subject: String,
    /// `None`: it cannot be told in this lab.
    pub passed: Option<bool>,
    /// What was seen.
    pub found: String,
}

impl Finding {
    fn of(check: &'static str, subject: impl Into<String>, passed: bool, found: impl Into<String>) -> Self {
        Self { check, subject: subject.into(), passed: Some(passed), found: found.into() }
    }
}

impl Validation {
    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed != Some(false))
    }
}

/// Checks a lab that is up.
///
/// # Errors
/// [`LabError`]: no such lab, or what is wanted names what it does not have.
pub fn validate(lab: &str, wanted: &Wanted, progress: &dyn Progress) -> Result<Validation, LabError> {
    let lab = Lab::open(lab)?;
    wanted.check(&lab)?;
    let broken = lab.state.faults.clone();
    let without = faults::links_of(&lab, broken.clone())?;
    let mut checks = vec![processes(&lab)];
    progress.phase("ways", "next hops of every switch");
    checks.extend(ways::check(&lab, &without, wanted, progress)?);
    progress.phase("echoes", "who answers whom");
    checks.extend(echoes::check(&lab, &without, wanted, progress)?);
    Ok(Validation { schema_version: SCHEMA_VERSION, lab: lab.state.lab, broken, checks })
}

/// Everything that the lab started runs.
fn processes(lab: &Lab) -> Finding {
    let all = &lab.state.processes;
    let gone = all.iter().filter(|process| !process.id.is_alive());
    let gone: Vec<String> = gone.map(|process| format!("{} of {}", process.daemon, process.node)).collect();
    let found = if gone.is_empty() { format!("{} run", all.len()) } else { format!("gone: {}", gone.join(", ")) };
    Finding::of("processes", "daemons", gone.is_empty(), found)
}
