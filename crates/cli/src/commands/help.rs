//! `weft help`, `weft completions` and `weft man`: generated from the command line itself.

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

/// Words of the field that results and pages use.
const TERMS: &str = include_str!("terms.txt");

/// `weft help`: the commands, one of them, or the words.
pub(crate) fn help(words: &[String]) -> Result<ExitCode, Failure> {
    if words == ["terms"] {
        crate::output::print_line(TERMS)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = Cli::command();
    command.build();
    let mut found = &mut command;
    for word in words {
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            Failure::usage(format!(
                "there is no command `{}`; `weft --help` lists them, `weft help terms` explains words",
                words.join(" ")
            ))
        })?;
    }
    crate::output::print_line(&found.render_long_help().to_string())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(dir: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::failed(format!("{}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
