//! `weft run`: one plan on one engine, its claims on standard output.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::plan::{self, Mode};
use weft_experiment::run_folder::{FolderError, Shard};
use weft_experiment::runner::{self, RunError, RunOptions, RunOutcome, ShardOutcome};
use weft_experiment::summary::RunSummary;
use weft_experiment::table;
use weft_experiment::verdict::Verdict;
use weft_model::{CALC, CalcEngine};
use weft_scenario::engine::{Engine, EngineError, Progress};
use weft_sim::SimEngine;

use crate::args::{EngineChoice, Output, RunArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn run(args: &RunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let plan = plan::load(&args.plan).map_err(Failure::usage)?;
    let plan = match args.directory {
        Some(store) => plan.with_directory(store.into()),
        None => plan,
    };
    let mode = Mode::asked(args.quick, args.full);
    let progress = TerminalProgress::new(quiet)?;
    let wanted = match args.engine {
        EngineChoice::Auto => None,
        EngineChoice::Lab => Some("lab"),
        EngineChoice::Sim => Some("sim"),
    };
    let options = RunOptions {
        mode,
        seed: args.seed,
        out: args.out.clone(),
        command_line: std::env::args().collect(),
        workers: args.workers.map(|workers| workers as usize),
    };
    if let Some(shard) = args.shard {
        let engine = engine(runner::shard_engine(wanted, &plan, mode).map_err(failure)?)?;
        let outcome = runner::run_shard(&plan, engine.as_ref(), shard, &options, &progress);
        progress.finish();
        return show_shard(shard, &outcome.map_err(failure)?, args.output.output);
    }
    let choice = runner::choose(wanted, &plan, mode, &engine).map_err(failure)?;
    if let Some(why) = &choice.why {
        progress.note(why);
    }
    let chosen: Vec<&dyn Engine> = choice.engines.iter().map(AsRef::as_ref).collect();
    let outcome = runner::run(&plan, &chosen, &options, &progress);
    progress.finish();
    let outcome = outcome.map_err(failure)?;
    show(&outcome, args.output.output, args.allow_inconclusive)
}

fn engine(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    match name {
        "lab" => lab_engine(),
        CALC => Ok(Box::new(CalcEngine)),
        _ => Ok(Box::new(SimEngine::default())),
    }
}

#[cfg(feature = "lab")]
fn lab_engine() -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(super::lab::engine()?))
}

#[cfg(not(feature = "lab"))]
fn lab_engine() -> Result<Box<dyn Engine>, EngineError> {
    let what = "this weft was built without the lab".to_owned();
    Err(EngineError::NotFit { what, remedy: "build it with the default features, or use --engine sim".to_owned() })
}

/// What `-o json` prints of a shard.
#[derive(Serialize)]
struct ShardRun<'a> {
    schema_version: u32,
    shard: Shard,
    trials: usize,
    planned: u32,
    folder: &'a Path,
}

fn show_shard(shard: Shard, outcome: &ShardOutcome, format: Output) -> Result<ExitCode, Failure> {
    let ShardOutcome { folder, trials, planned } = outcome;
    let (trials, planned) = (*trials, *planned);
    let mut rows = Rows::new(&["shard", "trials", "planned", "folder"]);
    rows.push(vec![shard.to_string(), trials.to_string(), planned.to_string(), folder.display().to_string()]);
    output::print(format, &rows, &ShardRun { schema_version: 1, shard, trials, planned, folder })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a run's claims; the exit code is what they come to.
pub(super) fn show(outcome: &RunOutcome, format: Output, allow_inconclusive: bool) -> Result<ExitCode, Failure> {
    let summary = &outcome.summary;
    let mut rows = Rows::new(&table::HEADINGS);
    for row in table::claims_table(summary) {
        rows.push(row.cells().map(str::to_owned).to_vec());
    }
    output::print(format, &rows, summary)?;
    if summary.hides_required() {
        eprintln!("weft: warning: a required claim is inconclusive; `why` says what hid the answer");
    }
    if format == Output::Table {
        let report = outcome.run_dir.join("report.html");
        output::print_line(&format!("\n{}; * required\nreport: {}", summary.counts(), report.display()))?;
    }
    Ok(exit_code(summary, allow_inconclusive))
}

fn exit_code(summary: &RunSummary, allow_inconclusive: bool) -> ExitCode {
    match () {
        () if summary.verdict() == Verdict::Fail => ExitCode::from(exit::CLAIM_FAILED),
        () if summary.hides_required() && !allow_inconclusive => ExitCode::from(exit::INCONCLUSIVE),
        () => ExitCode::SUCCESS,
    }
}

/// A run's failure with the exit code that its kind has.
pub(super) fn failure(error: RunError) -> Failure {
    match error {
        RunError::Engine(error) => error.into(),
        RunError::Stopped { .. } => Failure::new(exit::INTERRUPTED, error),
        RunError::EngineNotOffered { .. }
        | RunError::ComparesEngines { .. }
        | RunError::Scenario { .. }
        | RunError::NoShards { .. }
        | RunError::TooManyShards { .. }
        | RunError::Folder(FolderError::OtherShard { .. }) => Failure::usage(error),
        RunError::Folder(_) | RunError::Query(_) | RunError::Report(_) => Failure::failed(error),
    }
}
