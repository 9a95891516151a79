//! `weft node`: runs a daemon in the foreground until SIGTERM or SIGINT.

use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_node::rbridge::{self, RBridgeConfig};
use weft_node::stop::Stop;
use weft_node::{NodeError, read_settings, settings_text, switch};

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
        NodeCommand::Rbridge(args) => daemon(&args, RBridgeConfig::example(), rbridge::run),
    }
}

fn daemon<C: DeserializeOwned + Serialize>(
    args: &DaemonArgs,
    example: C,
    run: impl FnOnce(&C, &Stop) -> Result<(), NodeError>,
) -> Result<ExitCode, Failure> {
    let Some(path) = args.config.as_deref().filter(|_| !args.print_example) else {
        output::print_line(&settings_text(&example))?;
        return Ok(ExitCode::SUCCESS);
    };
    let stop = Stop::on_signals().map_err(Failure::failed)?;
    let outcome = read_settings(path).and_then(|config| run(&config, &stop));
    outcome.map_err(|error| exit::of_daemon(&error))?;
    Ok(ExitCode::SUCCESS)
}
