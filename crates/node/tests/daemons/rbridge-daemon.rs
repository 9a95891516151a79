//! A `weft node rbridge --config FILE` as small as tests need it, to be killed.

use std::path::Path;
use std::process::ExitCode;

use weft_node::rbridge;
use weft_node::stop::Stop;
use weft_node::{NodeError, read_settings};

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: rbridge-daemon FILE");
        return ExitCode::FAILURE;
    };
    match run(Path::new(&file)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &Path) -> Result<(), NodeError> {
    rbridge::run(&|| read_settings(file), &Stop::on_signals()?)
}
