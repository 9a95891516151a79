//! `weft run`: one plan on one engine, its claims on standard output.

use std::process::ExitCode;

use weft_experiment::plan::{self, Mode};
use weft_experiment::runner::{self, RunError, RunOptions, RunOutcome};
use weft_experiment::table;
use weft_experiment::verdict::Verdict;
use weft_scenario::engine::{Engine, Progress};

use crate::args::{Output, RunArgs};
use crate::engines;
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn run(args: &RunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let plan = plan::load(&args.plan).map_err(Failure::usage)?;
    let plan = match args.directory {
        Some(store) => plan.with_directory(store.into()),
        None => plan,
    };
    let mode = match (args.quick, args.full) {
        (true, _) => Mode::Quick,
        (_, true) => Mode::Full,
        _ => Mode::Default,
    };
    let progress = TerminalProgress::new(quiet)?;
    let choice = engines::choose(args.engine, &plan, mode)?;
    if let Some(why) = &choice.why {
        progress.note(why);
    }
    let options = RunOptions {
        mode,
        seed: args.seed,
        out: args.out.clone(),
        command_line: std::env::args().collect(),
        workers: args.workers.map(|workers| workers as usize),
    };
    let chosen: Vec<&dyn Engine> = choice.engines.iter().map(AsRef::as_ref).collect();
    let outcome = runner::run(&plan, &chosen, &options, &progress);
    progress.finish();
    let outcome = outcome.map_err(failure)?;
    show(&outcome, args.output.output)?;
    Ok(exit_code(outcome.summary.verdict()))
}

fn show(outcome: &RunOutcome, format: Output) -> Result<(), Failure> {
    let summary = &outcome.summary;
    let mut rows = Rows::new(&table::HEADINGS);
    for row in table::claims_table(summary) {
        rows.push(row.cells().map(str::to_owned).to_vec());
    }
    output::print(format, &rows, summary)?;
    if summary.verdict() == Verdict::Inconclusive {
        eprintln!("weft: warning: a claim is inconclusive; the report says what hid the answer");
    }
    if format == Output::Table {
        output::print_line(&format!("\n* required\nreport: {}", outcome.run_dir.join("report.html").display()))?;
    }
    Ok(())
}

fn exit_code(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::Fail => ExitCode::from(exit::CLAIM_FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// A run's failure with the exit code that its kind has.
pub(crate) fn failure(error: RunError) -> Failure {
    match error {
        RunError::Engine(error) => error.into(),
        RunError::Stopped { .. } => Failure::new(exit::INTERRUPTED, error),
        RunError::EngineNotOffered { .. } | RunError::Scenario { .. } => Failure::usage(error),
        RunError::Folder(_) | RunError::Query(_) | RunError::Report(_) => Failure::failed(error),
    }
}
