//! A `weft` as small as tests of the lab need it: the daemons of `weft node` and the workers of traffic, nothing else.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use weft_node::NodeError;
use weft_node::rbridge::RBridgeConfig;
use weft_node::stop::{Hangup, Stop};
use weft_node::vtep::VtepConfig;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    if let ["internal", "traffic-worker", ..] = texts[..] {
        return weft_lab::traffic::worker_main(arguments.into_iter().skip(2));
    }
    if let ["internal", "vm", ..] = texts[..] {
        return weft_lab::vxlan::vm::worker_main(arguments.into_iter().skip(2));
    }
    let outcome = match texts[..] {
        ["node", "agent", "--config", file] => daemon(file, weft_node::agent::run),
        ["node", "directory", "--config", file] => daemon(file, weft_node::directory::run),
        ["node", "tor", "--config", file] => daemon(file, weft_node::tor::run),
        ["node", "rbridge", "--config", file] => rbridge(Path::new(file)),
        ["node", "vtep", "--config", file] => vtep(Path::new(file)),
        _ => Err("usage: lab-daemon node agent|directory|rbridge|tor|vtep --config FILE".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn rbridge(file: &Path) -> Result<(), String> {
    let told = |error: NodeError| error.to_string();
    let stop = Stop::on_signals().map_err(told)?;
    weft_node::rbridge::run(&RBridgeConfig::read(file).map_err(told)?, &stop).map_err(told)
}

fn vtep(file: &Path) -> Result<(), String> {
    let told = |error: NodeError| error.to_string();
    let (stop, hangup) = (Stop::on_signals().map_err(told)?, Hangup::on_signal().map_err(told)?);
    weft_node::vtep::run(&|| VtepConfig::read(file), &stop, &hangup).map_err(told)
}

fn daemon<C: DeserializeOwned>(file: &str, run: fn(&C, &Stop) -> Result<(), NodeError>) -> Result<(), String> {
    let text = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let config: C = serde_json::from_slice(&text).map_err(|error| format!("{file}: {error}"))?;
    let stop = Stop::on_signals().map_err(|error| error.to_string())?;
    run(&config, &stop).map_err(|error| error.to_string())
}
