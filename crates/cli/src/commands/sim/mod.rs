//! `weft sim`: one scenario in the simulator, summed up by flow completion times.

mod load;
mod show;
mod watcher;

use std::path::PathBuf;
use std::process::ExitCode;

use weft_experiment::analysis::completion::size_divisor;
use weft_experiment::analysis::{TrialKey, TrialRecords, class_summary};
use weft_experiment::page::Replays;
use weft_experiment::run_folder::RunFolder;
use weft_experiment::sim_report::SimRun;
use weft_scenario::engine::Progress;
use weft_sim::{Outcome, SimError};

use crate::args::{Output, SimArgs};
use crate::exit::{self, Failure};
use crate::output;
use crate::progress::TerminalProgress;
use load::Loaded;
use show::Summary;
use watcher::{Capture, Trace, Watcher};

pub(crate) fn sim(args: &SimArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if args.trace.is_some() && args.output.output == Output::Csv {
        return Err(Failure::usage(
            "--trace is for people (-o table) and programs (-o json); it has no place among CSV rows",
        ));
    }
    let loaded = load::load(args)?;
    let folder = args.out.clone().map(RunFolder::begin).transpose().map_err(Failure::failed)?;
    let capture = args.write.as_deref().zip(args.capture.as_deref());
    let capture = capture.map(|(file, port)| Capture::create(file, port)).transpose()?;
    let trace = args.trace.map(|target| Trace::begin(args.output.output, &loaded.job, target.flow)).transpose()?;
    let progress = TerminalProgress::new(quiet || trace.is_some())?;
    loaded.note.iter().for_each(|note| progress.note(note));
    let mut watcher = Watcher::new(&progress, &loaded.job, trace, capture);
    let outcome = weft_sim::run(&loaded.job, &mut watcher);
    progress.finish();
    let outcome = watcher.check(outcome)?;
    watcher.say_pace(&outcome);
    let (trace, capture) = watcher.into_parts();
    let (summary, written) = finish(&loaded, args, &outcome, folder, trace)?;
    capture.map_or(Ok(()), Capture::keep)?;
    show::print(&summary, args.output.output)?;
    if let Some((folder, replays)) = written.filter(|_| args.output.output == Output::Table) {
        output::print_line(&super::run::where_to_look(&folder, &replays))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes rows and report, if they are wanted, and sums up.
fn finish(
    loaded: &Loaded,
    args: &SimArgs,
    outcome: &Outcome,
    folder: Option<RunFolder>,
    trace: Option<Trace>,
) -> Result<(Summary, Option<(PathBuf, Replays)>), Failure> {
    let records = weft_sim::records(&loaded.job, outcome);
    let fct = class_summary::by_class(&records.flows, size_divisor(&loaded.workload));
    let key = TrialKey {
        trial: 1,
        repetition: 1,
        seed: args.seed,
        overlay: loaded.job.settings.overlay,
        workload: loaded.workload_name.clone(),
        point: Vec::new(),
    };
    let summary = Summary::new(args, loaded, outcome, fct, trace);
    if let Some(folder) = folder {
        let spec = loaded.single.as_spec(&format!("{} on {}", loaded.workload_name, loaded.job.fabric.name()));
        let command_line: Vec<String> = std::env::args().collect();
        let run = SimRun {
            scenario: &args.scenario,
            spec: &spec,
            fabric: &loaded.job.fabric,
            trial: TrialRecords { key, records },
            command_line: &command_line,
        };
        let written = run.write(folder, &summary).map_err(Failure::failed)?;
        return Ok((summary, Some(written)));
    }
    Ok((summary, None))
}

/// A simulation's failure with the exit code that its kind has.
fn failure(error: SimError) -> Failure {
    match error {
        SimError::Interrupted => Failure::new(exit::INTERRUPTED, "interrupted; nothing was written"),
        SimError::Unbalanced { .. } => Failure::failed(error),
        refused => Failure::usage(refused),
    }
}
