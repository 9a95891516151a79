//! Runs a plan: scenarios are brought up, trials run, every trial's rows go to disk at once, and only a run that is
//! complete is analysed and given its final name.
//!
//! * [`choose`]: on which engine
//! * [`find_step`]: which of its rates the machine has time for
//! * `schedule`: which trials there are, in which order
//! * [`forecast()`]: what a run would be, without running it
//! * `fit`: whether the machine has what they take
//! * `execution`: one after another on a network that stays up, or each by itself on several `workers`
//! * `conclusion`: rows, summary and report of what has run
//! * [`run_shard`], [`merge`]: a part of a run on a machine of its own, and one run of all parts

mod choice;
mod conclusion;
mod execution;
mod fit;
mod forecast;
mod schedule;
mod shards;
mod step;
mod workers;

use std::path::PathBuf;

use weft_scenario::engine::{Engine, EngineError, Progress};
use weft_scenario::units::Bytes;

pub use self::choice::{Choice, MakeEngine, choose};
use self::conclusion::Conclusion;
use self::execution::{Execution, Rows};
pub use self::forecast::{EngineForecast, Forecast, forecast};
pub use self::shards::{MergeError, ShardOutcome, merge, run_shard, shard_engine};
pub use self::step::find_step;
use crate::page::Replays;
use crate::plan::{Mode, Plan, PlanSpec};
use crate::query::QueryError;
use crate::report;
use crate::run_folder::{FolderError, Manifest, RunFolder, WorkFolder, write_fabrics};
use crate::summary::{RunSummary, StepTaken};

/// What the user chose for a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// How much of the plan runs.
    pub mode: Mode,
    /// Which of the plan's rates; `None`: its own, and nobody looked whether they fit.
    pub step: Option<StepTaken>,
    /// Seed of the first repetition.
    pub seed: u64,
    /// The run folder; without it `run/PLAN-TIME` below the current directory.
    pub out: Option<PathBuf>,
    /// The command line, for the manifest and the report.
    pub command_line: Vec<String>,
    /// Runs side by side where the engine allows it; `None`: one for each core. Results do not depend on it.
    pub workers: Option<usize>,
    /// What the machine has for runs that say beforehand what they take ([`Engine::memory`]); `None`: nobody knows, and nothing is refused.
    pub available_memory: Option<Bytes>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Its claims and verdicts.
    pub summary: RunSummary,
    /// Its folder.
    pub run_dir: PathBuf,
    /// Its trials that can be watched.
    pub replays: Replays,
}

/// Why a run did not finish. Nothing of it is left behind, except runs of a sweep that were finished.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan does not name this engine.
    #[error("plan `{plan}` cannot run in engine `{engine}`; it can in: {offered}")]
    EngineNotOffered {
        plan: String,
        /// The engine that was asked for.
        engine: String,
        /// The plan's engines.
        offered: String,
    },
    /// The plan has no such step down from its own rates.
    #[error("plan `{plan}` has no step `{step}` in the lab; {known}")]
    NoStep {
        plan: String,
        step: String,
        /// What it has, or that it has none.
        known: String,
    },
    /// Steps are for the lab.
    #[error(
        "--step is for the lab, whose network runs in the machine's own time; engine `{engine}` has time for every rate"
    )]
    StepsElsewhere { engine: String },
    /// The plan compares engines, and one was asked for.
    #[error("plan `{plan}` compares {engines}; leave out --engine")]
    ComparesEngines {
        plan: String,
        /// The plan's engines.
        engines: String,
    },
    /// The plan's network cannot be described.
    #[error("plan `{plan}`: {message}")]
    Scenario { plan: String, message: String },
    /// The engine gave up; see [`EngineError`] for the exit code.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The user asked to stop a sweep of which some runs are finished: exit code 130.
    #[error("interrupted; {kept} of {planned} runs are kept in {}: the same command goes on from there", work.display())]
    Stopped {
        /// How many are finished.
        kept: usize,
        /// How many there are.
        planned: usize,
        work: PathBuf,
    },
    /// The lab is one machine.
    #[error(
        "plan `{plan}` in the lab runs on one machine: shards are for the simulator and calculations; run it whole"
    )]
    NoShards { plan: String },
    /// More parts than trials.
    #[error("plan `{plan}` has {planned} trials, so at most as many shards, not {shards}")]
    TooManyShards { plan: String, planned: usize, shards: u32 },
    /// The run folder could not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The run's rows make no tables.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The report could not be drawn.
    #[error(transparent)]
    Report(#[from] report::ReportError),
}

/// Runs a plan from start to report. `engines` is the one to run on, or all that the plan compares, in its order
/// ([`PlanSpec::runs_on`]).
pub fn run(
    plan: &Plan,
    engines: &[&dyn Engine],
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<RunOutcome, RunError> {
    let spec = spec_for(plan, engines, options.mode, options.step.as_ref())?;
    let scenario_error = |message| RunError::Scenario { plan: spec.id.clone(), message };
    let fabrics = spec.build_fabrics().map_err(scenario_error)?;
    fit::require(spec, &fabrics, engines)?;
    let batches = schedule::batches(spec, &fabrics, options.seed);
    let workers = fit::workers(spec, &batches, engines, options, progress)?;
    let mut manifest = Manifest::new(plan, spec, options);
    manifest.reproducible = engines.iter().all(|engine| engine.is_reproducible());
    let folder = RunFolder::create(options.out.as_deref(), plan.id(), &manifest)?;
    manifest.fabrics = write_fabrics(folder.path(), &fabrics)?;
    let work = match engines.iter().any(|engine| engine.parallel().is_some()) {
        true => {
            let key = execution::key(plan, spec, &fabrics, options);
            Some(WorkFolder::beside(options.out.as_deref(), plan.id(), &key)?)
        }
        false => None,
    };
    let rows = work.as_ref().map_or(Rows::Run(&folder), Rows::Work);
    let execution = Execution { spec, batches, engines, workers, progress, rows };
    let mut finished = execution.run()?;
    finished.extend(execution.kept()?);
    let conclusion = Conclusion { spec, fabrics: &fabrics, progress, folder, manifest };
    let outcome = conclusion.write(finished, &|_| work.as_ref())?;
    work.map_or(Ok(()), WorkFolder::remove)?;
    Ok(outcome)
}

/// Whether this machine can run the plan on these engines; see [`Engine::check_fit`].
pub fn check_fit(plan: &Plan, engines: &[&dyn Engine], mode: Mode) -> Result<(), RunError> {
    let spec = spec_for(plan, engines, mode, None)?;
    let scenario_error = |message| RunError::Scenario { plan: spec.id.clone(), message };
    fit::require(spec, &spec.build_fabrics().map_err(scenario_error)?, engines)
}

fn spec_for<'a>(
    plan: &'a Plan,
    engines: &[&dyn Engine],
    mode: Mode,
    step: Option<&StepTaken>,
) -> Result<&'a PlanSpec, RunError> {
    let names = engines.iter().map(|engine| engine.name()).collect::<Vec<_>>().join("+");
    if let Some(name) = step.and_then(|step| step.name.as_deref()) {
        return step::named(plan, mode, &names, name);
    }
    plan.for_engine(mode, &names).ok_or_else(|| {
        let preferred = plan.for_mode(mode);
        let separator = if preferred.compares_engines() { " and " } else { ", " };
        let offered = preferred.engines.join(separator);
        RunError::EngineNotOffered { plan: plan.id().to_owned(), engine: names, offered }
    })
}

#[cfg(test)]
mod tests;
