//! A `weft node vtep --config FILE` as small as tests need it, to be killed.

use std::path::PathBuf;
use std::process::ExitCode;

use weft_node::stop::Stop;
use weft_node::vtep;
use weft_node::{NodeError, read_settings};

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: vtep-daemon FILE");
        return ExitCode::FAILURE;
    };
    match run(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &std::path::Path) -> Result<(), NodeError> {
    vtep::run(&|| read_settings(file), &Stop::on_signals()?)
}
