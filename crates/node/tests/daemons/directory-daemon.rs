//! A `weft node directory --config FILE` as small as tests need it, with limits of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use weft_node::directory;
use weft_node::stop::Stop;
use weft_node::{NodeError, read_settings};

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: directory-daemon FILE");
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
    directory::run(&|| read_settings(file), &Stop::on_signals()?)
}
