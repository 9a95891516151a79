//! `weft completions` and `weft man`: generated from the command line itself.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Failure;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "weft", &mut text);
    crate::output::print_line(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(dir: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::failed(format!("{}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
