//! `weft run`: one plan on one engine, its claims on standard output.

use std::process::ExitCode;

use weft_experiment::plan::{self, Mode, Plan};
use weft_experiment::runner::{self, RunError, RunOptions, RunOutcome};
use weft_experiment::table;
use weft_experiment::verdict::Verdict;
use weft_scenario::engine::{Engine, Progress};

use crate::args::{EngineChoice, Output, RunArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn run(args: &RunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let plan = plan::load(&args.plan).map_err(Failure::usage)?;
    let mode = match (args.quick, args.full) {
        (true, _) => Mode::Quick,
        (_, true) => Mode::Full,
        _ => Mode::Default,
    };
    let progress = TerminalProgress::new(quiet)?;
    let engine = choose_engine(args.engine, &plan, mode, &progress)?;
    let options = RunOptions { mode, seed: args.seed, out: args.out.clone(), command_line: std::env::args().collect() };
    let outcome = runner::run(&plan, engine.as_ref(), &options, &progress);
    progress.finish();
    let outcome = outcome.map_err(failure)?;
    show(&outcome, args.output.output)?;
    Ok(exit_code(outcome.summary.verdict()))
}

/// The engine that was asked for, or the one that can run here.
fn choose_engine(
    choice: EngineChoice,
    plan: &Plan,
    mode: Mode,
    progress: &dyn Progress,
) -> Result<Box<dyn Engine>, Failure> {
    let allowed = |name: &str| plan.for_mode(mode).engines.iter().any(|engine| engine == name);
    if choice == EngineChoice::Sim {
        let why = if allowed("sim") { "this build has none" } else { "this plan names only the lab" };
        return Err(Failure::new(
            exit::NOT_FIT,
            format!("the simulator cannot run {}: {why}; use --engine lab", plan.id()),
        ));
    }
    if !allowed("lab") {
        return Err(Failure::usage(format!(
            "{} does not run in the lab; its engines: {}",
            plan.id(),
            plan.for_mode(mode).engines.join(", ")
        )));
    }
    let engine = lab_engine()?;
    if choice == EngineChoice::Auto {
        progress.note("engine: lab (this machine can run it)");
    }
    Ok(engine)
}

#[cfg(feature = "lab")]
fn lab_engine() -> Result<Box<dyn Engine>, Failure> {
    Ok(Box::new(super::lab::engine()?))
}

#[cfg(not(feature = "lab"))]
fn lab_engine() -> Result<Box<dyn Engine>, Failure> {
    Err(Failure::new(exit::NOT_FIT, "this weft was built without the lab; build it with the default features"))
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
        output::print_line(&format!("\nreport: {}", outcome.run_dir.join("report.html").display()))?;
    }
    Ok(())
}

fn exit_code(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::Fail => ExitCode::from(exit::CLAIM_FAILED),
        _ => ExitCode::SUCCESS,
    }
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Engine(error) => error.into(),
        other => Failure::failed(other),
    }
}
