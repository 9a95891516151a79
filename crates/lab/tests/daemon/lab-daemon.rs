//! A `weft` as small as tests of the lab need it: the daemons of `weft node` and the workers of traffic, nothing else.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use weft_node::stop::Stop;
use weft_node::{Load, NodeError, read_settings};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    if let ["internal", "traffic-worker", ..] = texts[..] {
        return weft_lab::traffic::worker_main(arguments.into_iter().skip(2));
    }
    if let ["internal", "vm", ..] = texts[..] {
        return weft_lab::frames::vm::worker_main(arguments.into_iter().skip(2));
    }
    let outcome = match texts[..] {
        ["node", "agent", "--config", file] => daemon(Path::new(file), weft_node::agent::run),
        ["node", "directory", "--config", file] => daemon(Path::new(file), weft_node::directory::run),
        ["node", "tor", "--config", file] => daemon(Path::new(file), weft_node::tor::run),
        ["node", "rbridge", "--config", file] => daemon(Path::new(file), weft_node::rbridge::run),
        ["node", "vtep", "--config", file] => daemon(Path::new(file), weft_node::vtep::run),
        _ => {
            eprintln!("usage: lab-daemon node agent|directory|rbridge|tor|vtep --config FILE");
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn daemon<C: DeserializeOwned>(
    file: &Path,
    run: fn(&Load<'_, C>, &Stop) -> Result<(), NodeError>,
) -> Result<(), NodeError> {
    run(&|| read_settings(file), &Stop::on_signals()?)
}
