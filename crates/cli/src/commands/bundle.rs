//! `weft bundle`: one archive for a bug report.

use std::path::PathBuf;
use std::process::ExitCode;

use weft_lab::LabError;

use crate::args::BundleArgs;
use crate::exit::{self, Failure};
use crate::output;
use crate::progress::TerminalProgress;

pub(crate) fn bundle(args: BundleArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let out = args.out.unwrap_or_else(|| PathBuf::from("weft-bundle.tar.gz"));
    let progress = TerminalProgress::new(quiet)?;
    let written = weft_lab::bundle::write(&out, &progress);
    progress.finish();
    let names = written.map_err(|error| match error {
        LabError::Interrupted => Failure::new(exit::INTERRUPTED, "interrupted; no archive was written"),
        error => super::lab::failure(error),
    })?;
    let (out, count) = (out.display(), names.len());
    output::print_line(&format!(
        "{out}: {count} files; keys, passwords and certificates are not in it, addresses and names are: look through it \
         before you hand it on (tar -tzf {out})"
    ))?;
    Ok(ExitCode::SUCCESS)
}
