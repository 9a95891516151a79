//! `weft run`: plans, each on one engine, their claims or metrics on standard output.

mod forecast;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::junit;
use weft_experiment::memory;
use weft_experiment::page::Replays;
use weft_experiment::plan::{self, Mode, Plan};
use weft_experiment::run_folder::{FolderError, Shard};
use weft_experiment::runner::{self, RunError, RunOptions, RunOutcome, ShardOutcome};
use weft_experiment::summary::{RunSummary, StepTaken};
use weft_experiment::table;
use weft_experiment::verdict::Verdict;
use weft_model::{CALC, CalcEngine};
use weft_scenario::engine::{DirectoryStore, Engine, EngineError, Progress};
use weft_sim::SimEngine;

use crate::args::{EngineChoice, Output, RunArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn run(args: &RunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    // Every plan is read before the first runs, so that a slip of the pen in the last is found at once.
    let plans = load_all(args)?;
    if args.dry_run {
        return forecast::dry_run(args, &plans);
    }
    if let (Some(shard), [plan]) = (args.shard, plans.as_slice()) {
        return run_shard(args, plan, shard, quiet);
    }
    if args.shard.is_some() {
        return Err(Failure::usage("--shard is a part of one plan; name one"));
    }
    let ids: Vec<&str> = plans.iter().map(Plan::id).collect();
    let twice = ids.iter().enumerate().find(|(number, id)| ids[..*number].contains(id));
    if let (Some((_, id)), Some(out)) = (twice, &args.out) {
        let out = out.display();
        return Err(Failure::usage(format!(
            "two plans are called `{id}`, and --out {out} has one folder for each; run them apart"
        )));
    }
    let mut outcomes: Vec<RunOutcome> = Vec::new();
    for plan in &plans {
        let out = match plans.len() {
            1 => args.out.clone(),
            _ => args.out.as_ref().map(|out| out.join(plan.id().replace('/', "-"))),
        };
        let outcome = run_one(args, plan, out, quiet)?;
        if args.output.output != Output::Json || plans.len() == 1 {
            print_claims(&outcome, args.output.output)?;
        }
        outcomes.push(outcome);
    }
    let summaries: Vec<RunSummary> = outcomes.into_iter().map(|outcome| outcome.summary).collect();
    if summaries.len() > 1 && args.output.output == Output::Json {
        let runs = serde_json::json!({ "schema_version": 1, "runs": summaries });
        output::print_line(&runs.to_string())?;
    }
    if let Some(file) = &args.junit {
        let failed = |error| Failure::failed(format!("cannot write {}: {error}", file.display()));
        std::fs::write(file, junit::document(&summaries)).map_err(failed)?;
    }
    Ok(exit_code(&summaries, args.allow_inconclusive))
}

/// All plans, or what is wrong with each that cannot be run.
fn load_all(args: &RunArgs) -> Result<Vec<Plan>, Failure> {
    let mut settings = args.set.set.clone();
    if let Some(store) = args.directory {
        let setting = format!("directory={}", DirectoryStore::from(store).name());
        settings.push(setting.parse().map_err(Failure::usage)?);
    }
    let mode = Mode::asked(args.quick, args.full);
    let (plans, wrong): (Vec<_>, Vec<_>) =
        args.plans.iter().map(|name| plan::load_with(name, mode, &settings)).partition(Result::is_ok);
    match wrong.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect::<Vec<_>>() {
        none if none.is_empty() => Ok(plans.into_iter().filter_map(Result::ok).collect()),
        all => Err(Failure::usage(all.join("\n"))),
    }
}

fn options(args: &RunArgs, out: Option<PathBuf>) -> RunOptions {
    RunOptions {
        mode: Mode::asked(args.quick, args.full),
        step: None,
        seed: args.seed,
        out,
        command_line: std::env::args().collect(),
        workers: args.workers.map(|workers| workers as usize),
        available_memory: memory::available(),
    }
}

fn wanted(args: &RunArgs) -> Option<&'static str> {
    match args.engine {
        EngineChoice::Auto => None,
        EngineChoice::Lab => Some("lab"),
        EngineChoice::Sim => Some("sim"),
    }
}

fn run_shard(args: &RunArgs, plan: &Plan, shard: Shard, quiet: bool) -> Result<ExitCode, Failure> {
    let (progress, options) = (TerminalProgress::new(quiet)?, options(args, args.out.clone()));
    let engine = engine(runner::shard_engine(wanted(args), plan, options.mode).map_err(failure)?)?;
    let outcome = runner::run_shard(plan, engine.as_ref(), shard, &options, &progress);
    progress.finish();
    show_shard(shard, &outcome.map_err(failure)?, args.output.output)
}

fn run_one(args: &RunArgs, plan: &Plan, out: Option<PathBuf>, quiet: bool) -> Result<RunOutcome, Failure> {
    let (progress, mut options) = (TerminalProgress::new(quiet)?, options(args, out));
    let choice = runner::choose(wanted(args), plan, options.mode, &engine).map_err(failure)?;
    if let Some(why) = &choice.why {
        progress.note(why);
    }
    #[cfg(feature = "lab")]
    let _watched = watched(args, &choice.engines)?;
    let chosen: Vec<&dyn Engine> = choice.engines.iter().map(AsRef::as_ref).collect();
    let outcome = step(args, plan, &chosen, &options, &progress).and_then(|step| {
        options.step = step;
        runner::run(plan, &chosen, &options, &progress)
    });
    progress.finish();
    outcome.map_err(failure)
}

/// The rates that were asked for, or that are looked for.
fn step(
    args: &RunArgs,
    plan: &Plan,
    engines: &[&dyn Engine],
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Option<StepTaken>, RunError> {
    match args.step.as_deref() {
        None => Ok(None),
        Some(plan::AUTO) => runner::find_step(plan, engines, options, progress).map(Some),
        Some(name) => {
            let why = format!("step `{name}`, as it was asked for");
            Ok(Some(StepTaken { name: Some(name.to_owned()), why }))
        }
    }
}

/// Shows labs of the run, if that is wanted and there will be any.
#[cfg(feature = "lab")]
fn watched(args: &RunArgs, engines: &[Box<dyn Engine>]) -> Result<Option<super::lab::Watched>, Failure> {
    if !args.watch {
        return Ok(None);
    }
    if engines.iter().all(|engine| engine.name() != "lab") {
        let why =
            "--watch shows labs, and this plan runs in virtual time: open the page that the run leaves (`watch:`)";
        return Err(Failure::usage(format!("{why}, or add --engine lab")));
    }
    super::lab::Watched::start().map(Some)
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
    Err(EngineError::NotFit { what, remedy: "build it with the default features".to_owned() })
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
    print_claims(outcome, format)?;
    Ok(exit_code(std::slice::from_ref(&outcome.summary), allow_inconclusive))
}

fn print_claims(outcome: &RunOutcome, format: Output) -> Result<(), Failure> {
    let summary = &outcome.summary;
    if let (Output::Table, Some(cpu)) = (format, &summary.cpu) {
        output::print_line(&format!("{cpu}\n"))?;
    }
    if !summary.is_judged() {
        return print_metrics(outcome, format);
    }
    output::print(format, &claims(summary), summary)?;
    if summary.hides_required() {
        eprintln!("weft: warning: a required claim is inconclusive; `why` says what hid the answer");
    }
    if format == Output::Table {
        let (counts, look) = (summary.counts(), where_to_look(&outcome.run_dir, &outcome.replays));
        let (rates, single) = (rates(summary), single(summary));
        output::print_line(&format!("\n{single}{}\n{counts}; * required\n{rates}{look}", summary.headline()))?;
    }
    Ok(())
}

fn claims(summary: &RunSummary) -> Rows {
    let mut rows = Rows::new(&table::HEADINGS);
    for row in table::claims_table(summary) {
        rows.push(row.cells().map(str::to_owned).to_vec());
    }
    rows
}

/// What a run of which nothing is judged read: metrics by variant for people, a row for each number for programs.
fn print_metrics(outcome: &RunOutcome, format: Output) -> Result<(), Failure> {
    let summary = &outcome.summary;
    for problem in &summary.problems {
        eprintln!("weft: warning: {problem}");
    }
    if format != Output::Table {
        let (header, all) = table::metric_rows(summary);
        return output::print(format, &Rows { header, rows: all }, summary);
    }
    if !summary.claims.is_empty() {
        output::print(format, &claims(summary), summary)?;
        output::print_line("")?;
    }
    for (number, table) in table::metric_tables(summary, output::width()).into_iter().enumerate() {
        if number > 0 {
            output::print_line("")?;
        }
        output::print(format, &Rows { header: table.headings, rows: table.rows }, summary)?;
    }
    let intervals = table::metric_intervals(summary).map(|said| format!("{said}\n")).unwrap_or_default();
    let look = where_to_look(&outcome.run_dir, &outcome.replays);
    let counts = if summary.claims.is_empty() { String::new() } else { format!("{}\n", summary.counts()) };
    let (rates, single) = (rates(summary), single(summary));
    output::print_line(&format!("\n{intervals}{single}{}\n{counts}{rates}{look}", summary.headline()))
}

/// The line about numbers that one repetition gave.
fn single(summary: &RunSummary) -> String {
    table::single_samples(summary).map(|said| format!("{said}\n")).unwrap_or_default()
}

/// The line that says which of the plan's rates ran and why, where that was asked for or looked for.
fn rates(summary: &RunSummary) -> String {
    summary.step.as_ref().map(|step| format!("rates: {}\n", step.why)).unwrap_or_default()
}

/// The report of a run folder, and what of the run can be watched.
pub(super) fn where_to_look(folder: &Path, replays: &Replays) -> String {
    let report = format!("report: {}", folder.join("report.html").display());
    [Some(report), replays.line(folder)].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// The worst that any of the runs comes to.
fn exit_code(runs: &[RunSummary], allow_inconclusive: bool) -> ExitCode {
    let any = |is: fn(&RunSummary) -> bool| runs.iter().any(is);
    match () {
        () if any(|run| run.verdict() == Verdict::Fail) => ExitCode::from(exit::CLAIM_FAILED),
        () if any(RunSummary::hides_required) && !allow_inconclusive => ExitCode::from(exit::INCONCLUSIVE),
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
        | RunError::NoStep { .. }
        | RunError::StepsElsewhere { .. }
        | RunError::NoShards { .. }
        | RunError::TooManyShards { .. }
        | RunError::Folder(FolderError::OtherShard { .. }) => Failure::usage(error),
        RunError::Folder(_) | RunError::Query(_) | RunError::Report(_) => Failure::failed(error),
    }
}
