//! The numbers of `weft bench directory`: our directory on this machine's loopback, beside floors and a baseline of the
//! same run. Servers and store are pinned to one CPU and the load to another, rounds are interleaved, medians count.
//!
//! * `lookups`: answers per CPU second of the server, latencies at a fixed rate
//! * `card`: answers per CPU second of the XDP program alone
//! * `updates`: updates and bulk changes per second, visibility, a killed leader
//! * `size`: a million mappings; garbage
//! * `abuse`: one service beyond all its limits, beside another
//! * `idle`: connections that say nothing, as many as a port takes
//! * `echo`: the baseline: a socket that sends datagrams back and does nothing else
//! * `checks`: every floor with our number

mod abuse;
mod card;
mod checks;
mod echo;
mod idle;
mod lookups;
mod size;
mod updates;

use std::path::PathBuf;

use serde::Serialize;
use weft_node::NodeError;
use weft_scenario::engine::{DirectoryStore, Progress};
use weft_scenario::judge::Check;
use weft_testbed::bench::median;

use super::bed::BedOptions;
use super::usage;
use crate::error::LabError;

pub use abuse::AbuseNumbers;
pub use card::CardLookups;
pub use checks::{FOREIGN_WORK, LATE_ECHO, SLOWER_MACHINE};
pub use echo::Baseline;
pub use idle::IdleNumbers;
pub use lookups::LookupNumbers;
pub use size::{GarbageNumbers, MillionNumbers};
pub use updates::{ConvergenceNumbers, FailoverNumbers, UpdateNumbers};

/// Version of [`BenchReport`]'s fields.
pub const SCHEMA_VERSION: u32 = 6;

/// What is measured.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The `weft` program that servers are started from.
    pub weft_binary: PathBuf,
    /// Shorter rounds and a tenth of the million mappings.
    pub quick: bool,
    /// Interleaved rounds.
    pub rounds: u32,
    /// AAs that have a mapping while look-ups and updates are measured.
    pub mappings: u32,
    /// What keeps the mappings while updates are measured.
    pub store: DirectoryStore,
}

/// All numbers, medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The circumstances.
    pub machine: MachineNumbers,
    /// Look-ups by shape of the load.
    pub lookups: Vec<LookupNumbers>,
    /// Look-ups at the card, by size of the table; none where eBPF is not permitted.
    pub card: Vec<CardLookups>,
    pub updates: UpdateNumbers,
    /// From the issue of an update until a look-up answers with it, at every server.
    pub convergence: ConvergenceNumbers,
    /// What killed leaders cost; without a store that has one, nothing.
    pub failover: Option<FailoverNumbers>,
    /// A large directory.
    pub million: MillionNumbers,
    /// Datagrams that are no questions.
    pub garbage: GarbageNumbers,
    /// A service that takes more than its share.
    pub abuse: AbuseNumbers,
    /// Connections that say nothing, by port.
    pub idle: Vec<IdleNumbers>,
    /// What the same datagrams cost without a directory.
    pub baseline: Baseline,
    /// Every floor with our number.
    pub checks: Vec<Check>,
}

/// Where the numbers were taken.
#[derive(Clone, Debug, Serialize)]
pub struct MachineNumbers {
    /// Cores that this process may use.
    pub cores: usize,
    /// CPU of servers and store; `None`: not pinned.
    pub server_cpu: Option<usize>,
    pub load_cpu: Option<usize>,
    /// Load average over one minute before and after.
    pub load_average: [f64; 2],
    /// The largest share of the cores' time that somebody else used in a round.
    pub foreign_cpu_ratio: f64,
}

/// Runs everything.
pub fn run(options: &BenchOptions, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let bench = Bench::new(options, progress);
    let before = usage::load_average();
    let (lookups, baseline) = lookups::measure(&bench)?;
    let card = card::measure(&bench, &lookups)?;
    let updates = updates::measure(&bench)?;
    let (million, garbage) = size::measure(&bench)?;
    let abuse = abuse::measure(&bench)?;
    let idle = idle::measure(&bench)?;
    let others = lookups.iter().map(|one| one.foreign_cpu_ratio).chain(idle.iter().map(|one| one.foreign_cpu_ratio));
    let foreign = others.fold(updates.foreign_cpu_ratio, f64::max);
    let mut report = BenchReport {
        schema_version: SCHEMA_VERSION,
        machine: MachineNumbers {
            cores: cores(),
            server_cpu: bench.server_cpu,
            load_cpu: bench.load_cpu,
            load_average: [before, usage::load_average()],
            foreign_cpu_ratio: foreign,
        },
        lookups,
        card,
        updates: updates.updates,
        convergence: updates.convergence,
        failover: updates.failover,
        million,
        garbage,
        abuse,
        idle,
        baseline,
        checks: Vec::new(),
    };
    report.checks = checks::of(&report, options);
    Ok(report)
}

/// What all parts share.
pub(super) struct Bench<'a> {
    options: &'a BenchOptions,
    progress: &'a dyn Progress,
    server_cpu: Option<usize>,
    load_cpu: Option<usize>,
}

impl<'a> Bench<'a> {
    /// On a machine with one core nothing is pinned.
    fn new(options: &'a BenchOptions, progress: &'a dyn Progress) -> Self {
        let several = cores() > 1;
        Self { options, progress, server_cpu: several.then_some(0), load_cpu: several.then_some(1) }
    }

    fn bed(&self, servers: usize, store: DirectoryStore, lookup_threads: Option<usize>, pinned: bool) -> BedOptions {
        BedOptions {
            weft_binary: self.options.weft_binary.clone(),
            servers,
            store,
            lookup_threads,
            cpu: self.server_cpu.filter(|_| pinned),
        }
    }

    fn go_on(&self) -> Result<(), LabError> {
        if self.progress.interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    }
}

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn failed(error: &NodeError) -> LabError {
    LabError::DirectoryLoad(error.to_string())
}
