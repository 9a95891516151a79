//! `weft cluster`: a plan's trials on somebody's scheduler.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::cluster::{self, ClusterError, Pods, Status, Submitted, Sweep, SweepOptions};
use weft_experiment::plan::{self, Mode};
use weft_experiment::run_folder::FolderError;
use weft_experiment::runner::RunOptions;

use super::{merge, run};
use crate::args::{ClusterCommand, FetchArgs, Output, StatusArgs, SubmitArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn cluster(command: ClusterCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        ClusterCommand::Submit(args) => submit(&args, quiet),
        ClusterCommand::Status(args) => status(&args, quiet),
        ClusterCommand::Fetch(FetchArgs { dir, out, allow_inconclusive, output }) => {
            let sweep = Sweep::read(&dir).map_err(failure)?;
            fetch(&sweep, out.as_deref(), &TerminalProgress::new(quiet)?, output.output, allow_inconclusive)
        }
        ClusterCommand::Cancel(args) => {
            let ended = cluster::cancel(&Sweep::read(&args.dir).map_err(failure)?).map_err(failure)?;
            output::print_line(&ended.map_or("no job is at work".to_owned(), |job| format!("ended job {job}")))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn submit(args: &SubmitArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let plan = plan::load(&args.plan).map_err(Failure::usage)?;
    let mode = Mode::asked(args.quick, args.full);
    let pods = args.claim.clone().zip(args.image.clone()).map(|(claim, image)| Pods { claim, image });
    let options = SweepOptions {
        on: args.on.into(),
        mode,
        seed: args.seed,
        shards: args.shards,
        jobs: args.jobs,
        tries: args.tries,
        out: args.out.clone(),
        options: args.options.clone(),
        program: args.program.clone(),
        pods,
    };
    let mut sweep = Sweep::new(&plan, &options).map_err(failure)?;
    let format = args.output.output;
    if args.dry_run {
        show_submitted(&sweep, &cluster::script(&sweep).map_err(failure)?, format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let submitted = cluster::submit(&mut sweep).map_err(failure)?;
    if !args.wait {
        show_submitted(&sweep, &submitted, format)?;
        return Ok(ExitCode::SUCCESS);
    }
    if format == Output::Table {
        show_submitted(&sweep, &submitted, format)?;
    }
    let progress = TerminalProgress::new(quiet)?;
    let ended = cluster::follow(&sweep, &progress);
    progress.finish();
    ended.map_err(failure)?;
    fetch(&sweep, None, &progress, format, args.allow_inconclusive)
}

/// What `weft cluster submit -o json` prints.
#[derive(Serialize)]
struct SubmittedSweep<'a> {
    schema_version: u32,
    folder: &'a Path,
    planned: usize,
    #[serde(flatten)]
    submitted: &'a Submitted,
}

fn show_submitted(sweep: &Sweep, submitted: &Submitted, format: Output) -> Result<(), Failure> {
    let (folder, planned) = (sweep.folder.as_path(), sweep.planned);
    if format != Output::Table {
        let mut rows = Rows::new(&["job", "shards", "planned", "folder"]);
        let (job, shards) = (submitted.job.clone().unwrap_or_default(), submitted.shards.len().to_string());
        rows.push(vec![job, shards, planned.to_string(), folder.display().to_string()]);
        return output::print(format, &rows, &SubmittedSweep { schema_version: 1, folder, planned, submitted });
    }
    if !submitted.script.is_empty() {
        output::print_line(&submitted.script)?;
    }
    match &submitted.job {
        Some(job) => output::print_line(&format!(
            "\njob {job}: {} of {} shards, {planned} trials in all; weft cluster status {}",
            submitted.shards.len(),
            sweep.shards,
            folder.display()
        )),
        None if submitted.shards.is_empty() => {
            output::print_line(&format!("every shard is whole; weft cluster fetch {}", folder.display()))
        }
        None => Ok(()),
    }
}

/// What `weft cluster status -o json` prints.
#[derive(Serialize)]
struct SweepStatus<'a> {
    schema_version: u32,
    plan: &'a str,
    #[serde(flatten)]
    status: &'a Status,
}

fn status(args: &StatusArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let sweep = Sweep::read(&args.dir).map_err(failure)?;
    if args.follow {
        let progress = TerminalProgress::new(quiet)?;
        let ended = cluster::follow(&sweep, &progress);
        progress.finish();
        ended.map_err(failure)?;
    }
    let status = cluster::status(&sweep).map_err(failure)?;
    let mut rows = Rows::new(&["shard", "trials", "planned", "state"]);
    for shard in &status.shards {
        rows.push(vec![
            shard.shard.to_string(),
            shard.trials.to_string(),
            shard.planned.to_string(),
            shard.state.clone(),
        ]);
    }
    let format = args.output.output;
    output::print(format, &rows, &SweepStatus { schema_version: 1, plan: &sweep.plan, status: &status })?;
    if format == Output::Table {
        let at_work = if status.at_work { "the scheduler is at work" } else { "the scheduler has nothing of it" };
        output::print_line(&format!("\n{} of {} trials are whole; {at_work}", status.trials, status.planned))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn fetch(
    sweep: &Sweep,
    out: Option<&Path>,
    progress: &TerminalProgress,
    format: Output,
    allow_inconclusive: bool,
) -> Result<ExitCode, Failure> {
    let options = RunOptions { command_line: std::env::args().collect(), ..RunOptions::default() };
    let outcome = cluster::fetch(sweep, out, &options, progress);
    progress.finish();
    run::show(&outcome.map_err(failure)?, format, allow_inconclusive)
}

/// A failure with the exit code that its kind has.
fn failure(error: ClusterError) -> Failure {
    match error {
        ClusterError::Run(error) => run::failure(error),
        ClusterError::Merge(error) => merge::failure(error),
        ClusterError::NoScheduler { .. } => Failure::new(exit::NOT_FIT, error),
        ClusterError::Left { .. } => Failure::new(exit::INTERRUPTED, error),
        ClusterError::NoPods
        | ClusterError::NoSweep(_)
        | ClusterError::OtherSweep { .. }
        | ClusterError::Folder(FolderError::NoShard(_)) => Failure::usage(error),
        ClusterError::Refused { .. }
        | ClusterError::AtWork { .. }
        | ClusterError::NotWhole { .. }
        | ClusterError::Folder(_) => Failure::failed(error),
    }
}
