//! The one binary of weft: reads flags, calls the rooms below, prints, and leaves with the right exit code.

mod args;
mod commands;
mod exit;
mod log;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, InternalCommand};
use exit::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let format = cli.log_format;
    log::start(cli.verbose, format);
    match dispatch(cli) {
        Ok(code) => code,
        Err(failure) if progress::was_interrupted() => failure.interrupted().report(format),
        Err(failure) => failure.report(format),
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    let quiet = cli.quiet;
    match cli.command {
        Command::Run(args) => commands::run::run(&args, quiet),
        Command::Merge(args) => commands::merge::merge(&args, quiet),
        Command::Cluster(command) => commands::cluster::cluster(command, quiet),
        Command::Sim(args) => commands::sim::sim(&args, quiet),
        Command::Calc(command) => commands::calc::calc(&command),
        Command::Analyse(args) => commands::analyse::analyse(&args, quiet),
        Command::List(args) => commands::list::list(&args),
        Command::Trend(args) => commands::trend::trend(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Query(args) => commands::query::query(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args, quiet),
        #[cfg(feature = "lab")]
        Command::Bundle(args) => commands::bundle::bundle(args, quiet),
        Command::Help { words } => commands::help::help(&words),
        Command::Completions { shell } => commands::help::completions(shell),
        Command::Man { dir } => commands::help::man(&dir),
        Command::Fabric(command) => commands::fabric::fabric(&command),
        #[cfg(feature = "lab")]
        Command::Lab(command) => commands::lab::lab(command, quiet),
        #[cfg(feature = "lab")]
        Command::Node(command) => commands::daemon::node(command),
        #[cfg(feature = "lab")]
        Command::Init(args) => commands::init::init(&args),
        #[cfg(feature = "lab")]
        Command::Directory(command) => commands::directory::directory(command, quiet),
        #[cfg(feature = "lab")]
        Command::Show(command) => commands::daemon::show(command),
        #[cfg(feature = "lab")]
        Command::Reload(args) => commands::daemon::reload(args),
        #[cfg(feature = "lab")]
        Command::Stop(args) => commands::daemon::stop(args),
        #[cfg(feature = "lab")]
        Command::Vtep(command) => commands::vtep::vtep(command),
        #[cfg(feature = "lab")]
        Command::Measure(command) => commands::measure::measure(command, quiet),
        Command::Bench(command) => commands::bench::bench(command, quiet),
        Command::Internal(command) => internal(command),
    }
}

fn internal(command: InternalCommand) -> Result<ExitCode, Failure> {
    match command {
        #[cfg(feature = "lab")]
        InternalCommand::TrafficWorker { args } => Ok(weft_lab::traffic::worker_main(args)),
        #[cfg(feature = "lab")]
        InternalCommand::Vm { args } => Ok(weft_lab::frames::vm::worker_main(args)),
        InternalCommand::SimJob { job, runs, workers, divisor } => {
            commands::bench::sim::job(&job, runs, workers, divisor)
        }
        InternalCommand::StreamDelays { job, divisor } => commands::bench::sim::delays(&job, divisor),
        InternalCommand::DaytoneConfig { job, file, results, divisor } => {
            commands::bench::sim::network(&job, &file, &results, divisor)
        }
    }
}
