//! `weft sim`: one scenario in the simulator, summed up by flow completion times. With `--out` it is a plan with one trial.

#[cfg(test)]
mod flags;
mod load;
mod show;
mod watched;
mod watcher;

use std::process::ExitCode;

use weft_experiment::runner::{self, RunError, RunOptions, RunOutcome};
use weft_scenario::engine::{Engine, Progress};

use super::run;
use crate::args::{Output, SimArgs};
use crate::exit::Failure;
use crate::output;
use crate::progress::TerminalProgress;
use load::Loaded;
use watched::WatchedSim;
use watcher::Capture;

pub(crate) fn sim(args: &SimArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if args.trace.is_some() && args.output.output == Output::Csv {
        return Err(Failure::usage(
            "--trace is for people (-o table) and programs (-o json); it has no place among CSV rows",
        ));
    }
    let loaded = load::load(args)?;
    let capture = args.write.as_deref().zip(args.capture.as_deref());
    let capture = capture.map(|(file, port)| Capture::create(file, port)).transpose()?;
    let progress = TerminalProgress::new(quiet || args.trace.is_some())?;
    loaded.note.iter().for_each(|note| progress.note(note));
    let engine = WatchedSim::new(args, &loaded, &progress, capture);
    let ran = match &args.out {
        Some(_) => keep(args, &loaded, &engine, &progress).map(Some),
        None => look(&loaded, &engine, &progress).map(|()| None),
    };
    progress.finish();
    let kept = ran.map_err(run::failure)?;
    show::print(&engine.finish()?, args.output.output)?;
    if let Some(RunOutcome { run_dir, replays, .. }) = kept.filter(|_| args.output.output == Output::Table) {
        output::print_line(&run::where_to_look(&run_dir, &replays))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs it as a plan, into a folder.
fn keep(args: &SimArgs, loaded: &Loaded, engine: &dyn Engine, progress: &dyn Progress) -> Result<RunOutcome, RunError> {
    let title = format!("{} on {}", loaded.single.workload_name, loaded.scenario.fabric.name());
    let (seed, out, command_line) = (args.seed, args.out.clone(), std::env::args().collect());
    let options = RunOptions { seed, out, command_line, ..RunOptions::default() };
    runner::run(&loaded.single.plan(&title), &[engine], &options, progress)
}

/// Runs it and keeps nothing.
fn look(loaded: &Loaded, engine: &dyn Engine, progress: &dyn Progress) -> Result<(), RunError> {
    progress.phase("sim", loaded.scenario.fabric.name());
    let mut session = engine.prepare(&loaded.scenario, progress)?;
    session.run(&loaded.trial)?;
    Ok(session.close()?)
}
