//! `weft merge`: one run of all its shards.

use std::process::ExitCode;

use weft_experiment::runner::{self, MergeError, RunOptions};

use super::run;
use crate::args::MergeArgs;
use crate::exit::Failure;
use crate::progress::TerminalProgress;

pub(crate) fn merge(args: &MergeArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = TerminalProgress::new(quiet)?;
    let command_line = std::env::args().collect();
    let options = RunOptions { out: args.out.clone(), command_line, ..RunOptions::default() };
    let outcome = runner::merge(&args.shards, &options, &progress);
    progress.finish();
    run::show(&outcome.map_err(failure)?, args.output.output, args.allow_inconclusive)
}

/// A merge's failure with the exit code that its kind has.
pub(super) fn failure(error: MergeError) -> Failure {
    match error {
        MergeError::Run(error) => run::failure(error),
        MergeError::Folder(ref folder) if folder.is_misnamed() => Failure::usage(error),
        MergeError::Differs { .. } | MergeError::OtherWeft { .. } | MergeError::Twice { .. } => Failure::usage(error),
        MergeError::Missing { .. } | MergeError::Plan { .. } | MergeError::Folder(_) => Failure::failed(error),
    }
}
