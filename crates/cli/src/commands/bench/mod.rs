//! `weft bench`: our own speed, as ratios against a baseline in the same run, and against floors.

#[cfg(feature = "lab")]
mod campus;
#[cfg(feature = "lab")]
mod datapath;
#[cfg(feature = "lab")]
mod directory;
#[cfg(feature = "lab")]
mod fabric;
#[cfg(feature = "lab")]
mod isolation;
#[cfg(feature = "lab")]
mod setup;
pub(crate) mod sim;
#[cfg(feature = "lab")]
mod tester;

use std::process::ExitCode;

#[cfg(feature = "lab")]
use weft_lab::doctor::{Use, require_use};

#[cfg(feature = "lab")]
use super::saving::Saving;
use crate::args::BenchCommand;
#[cfg(feature = "lab")]
use crate::args::BenchDirectoryPart;
use crate::exit::Failure;

pub(crate) fn bench(command: BenchCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        #[cfg(feature = "lab")]
        BenchCommand::Datapath { repeat, rounds, results } => {
            require(Use::BenchDatapath)?;
            datapath::datapath(&weft_testbed::bench::BenchOptions { repeat, rounds }, Saving::begin(&results)?)
        }
        #[cfg(feature = "lab")]
        BenchCommand::Directory(args) => match &args.part {
            None => directory::directory(&args, quiet),
            Some(BenchDirectoryPart::Fabric(args)) => fabric::fabric(args, quiet),
        },
        #[cfg(feature = "lab")]
        BenchCommand::Campus { rbridges, failures, interval_ms, seed, results } => {
            let options = weft_lab::setup::failures::FailuresOptions { rbridges, failures, interval_ms, seed };
            campus::campus(&options, Saving::begin(&results)?, quiet)
        }
        #[cfg(feature = "lab")]
        BenchCommand::Isolation { quick, rounds, results } => {
            require(Use::VtepLab)?;
            isolation::isolation(quick, rounds, Saving::begin(&results)?, quiet)
        }
        #[cfg(feature = "lab")]
        BenchCommand::Setup { rounds, results } => setup::setup(rounds, Saving::begin(&results)?, quiet),
        #[cfg(feature = "lab")]
        BenchCommand::Tester { results } => {
            require(Use::Measure)?;
            tester::tester(Saving::begin(&results)?, quiet)
        }
        BenchCommand::Sim(args) => sim::sim(&args, quiet),
    }
}

/// Refuses what this machine's kernel does not take.
#[cfg(feature = "lab")]
fn require(wanted: Use) -> Result<(), Failure> {
    require_use(wanted).map_err(super::lab::failure)
}
