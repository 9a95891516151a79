//! The simulator's benchmark: packet-hops per CPU second and memory on its reference jobs, against floors.
//!
//! Every run is a child process of its own ([`child`]), so that no run inherits another's memory; rounds are interleaved
//! and the median counts, so that a moment of a busy machine does not.

pub mod child;
pub mod daytone;
mod floors;
mod measure;
mod ns3;
mod program;
mod usage;

use serde::Serialize;
use weft_scenario::engine::{EngineError, Progress};
use weft_scenario::judge::Check;

pub use daytone::DaytoneRow;
pub use measure::{JobRow, SweepRow};
pub use ns3::Ns3Row;

/// Everything that was measured.
#[derive(Serialize)]
pub struct SimBench {
    schema_version: u32,
    rounds: u32,
    /// What was asked for, in the order of the jobs.
    pub jobs: Vec<JobRow>,
    /// If it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepRow>,
    /// If it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vs_ns3: Option<Ns3Row>,
    /// If it was asked for, a row for each network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vs_daytone: Vec<DaytoneRow>,
    /// Every floor that what was measured can be held against.
    pub checks: Vec<Check>,
}

/// What is measured beside the jobs.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// How often each job runs.
    pub rounds: u32,
    /// Whether many runs side by side are measured too.
    pub sweep: bool,
    /// Whether ns-3 is.
    pub vs_ns3: bool,
    /// Whether daytone is.
    pub vs_daytone: bool,
}

/// Measures these jobs.
pub fn run(names: &[&str], extent: Extent, progress: &dyn Progress) -> Result<SimBench, EngineError> {
    let rounds = extent.rounds;
    // Whatever is missing for the comparison is said before minutes of measuring.
    let daytone = extent.vs_daytone.then(|| daytone::Daytone::find(progress)).transpose()?;
    let ns3 = extent.vs_ns3.then(|| ns3::Driver::build(progress)).transpose()?;
    let jobs = measure::jobs(names, rounds, progress)?;
    let sweep = extent.sweep.then(|| measure::sweep(rounds, progress)).transpose()?;
    let vs_ns3 = ns3.map(|driver| driver.compare(rounds, progress)).transpose()?;
    let vs_daytone = daytone.map(|daytone| daytone.compare(rounds, progress)).transpose()?.unwrap_or_default();
    let checks = floors::checks(&jobs, sweep.as_ref(), vs_ns3.as_ref(), &vs_daytone);
    Ok(SimBench { schema_version: 4, rounds, jobs, sweep, vs_ns3, vs_daytone, checks })
}

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
}
