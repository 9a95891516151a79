//! `weft node`: runs a daemon in the foreground until SIGTERM or SIGINT.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_node::NodeError;
use weft_node::stop::Stop;
use weft_node::switch;

use crate::args::{DaemonArgs, NodeCommand};
use crate::exit::{self, Failure};
use crate::output;

pub(crate) fn node(command: NodeCommand) -> Result<ExitCode, Failure> {
    match command {
        NodeCommand::Agent(args) => daemon(&args, weft_node::agent::AgentConfig::example(), weft_node::agent::run),
        NodeCommand::Directory(args) => {
            daemon(&args, weft_node::directory::DirectoryConfig::example(), weft_node::directory::run)
        }
        NodeCommand::Switch { daemon: args, remove } => {
            daemon(&args, switch::SwitchConfig::example(), |config, stop| match remove {
                true => switch::remove(config),
                false => switch::run(config, stop),
            })
        }
        NodeCommand::Tor(args) => daemon(&args, weft_node::tor::TorConfig::example(), weft_node::tor::run),
        NodeCommand::Vtep(args) => super::vtep::run(&args),
        NodeCommand::Rbridge(args) => super::trill::run(&args),
    }
}

fn daemon<C: DeserializeOwned + Serialize>(
    args: &DaemonArgs,
    example: C,
    run: impl FnOnce(&C, &Stop) -> Result<(), NodeError>,
) -> Result<ExitCode, Failure> {
    let Some(path) = args.config.as_deref().filter(|_| !args.print_example) else {
        output::print_line(&serde_json::to_string_pretty(&example).map_err(Failure::failed)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let config: C = read_config(path)?;
    let stop = Stop::on_signals().map_err(Failure::failed)?;
    run(&config, &stop).map_err(|error| exit::of_daemon(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn read_config<C: DeserializeOwned>(path: &Path) -> Result<C, Failure> {
    let named = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| named(error.to_string()))
}
