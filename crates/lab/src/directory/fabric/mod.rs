//! The numbers of `weft bench directory fabric`: the directory of a whole data centre of the paper's size (VL2 4.3.2, 5.5), with
//! as many agents as it has servers, on this machine's loopback. Servers and store are pinned to one CPU and the agents to
//! another.
//!
//! * `layout`: who has which AA behind which ToR
//! * `outage`: all agents ask at one instant, beside the same datagrams that are only sent back
//! * `start`: a server that starts from nothing, and one that restarts while it is asked
//! * `rack`: a rack's AAs move at once; agents hear of it by what goes astray
//! * `card`: all agents ask over a link, without and with a card that answers before the server
//! * `checks`: what is wanted of each number

mod card;
mod checks;
mod layout;
mod outage;
mod rack;
mod start;

use std::path::PathBuf;

use serde::Serialize;
use weft_scenario::engine::{DirectoryStore, Progress};
use weft_scenario::judge::Check;
use weft_testbed::load::agents;

use super::bed::{Bed, BedOptions};
use super::bench::{MachineNumbers, cores, failed};
use super::tier::fill_with;
use super::usage::{self, Usage};
use crate::error::LabError;
use layout::Layout;

pub use card::{CardOutage, CardSide};
pub use outage::{OutageNumbers, PAPER_LOOKUPS_PER_S, PAPER_SERVERS};
pub use rack::RackNumbers;
pub use start::{RestartNumbers, StartNumbers};

/// Version of [`FabricReport`]'s fields.
pub const SCHEMA_VERSION: u32 = 1;

/// What is measured.
#[derive(Clone, Debug)]
pub struct FabricOptions {
    /// The `weft` program that servers are started from.
    pub weft_binary: PathBuf,
    /// Servers of the data centre, each with an agent.
    pub agents: u32,
    /// AAs that have a mapping; each server has as many.
    pub aas: u32,
    /// AAs that each agent asks for first.
    pub questions: usize,
    /// Directory servers.
    pub servers: usize,
    /// Servers of a rack.
    pub rack: u32,
    /// What keeps the mappings.
    pub store: DirectoryStore,
    /// Also at the card, in namespaces.
    pub card: bool,
    /// Rounds of each measurement but the first start; medians count.
    pub rounds: u32,
}

/// All numbers.
#[derive(Clone, Debug, Serialize)]
pub struct FabricReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The circumstances.
    pub machine: MachineNumbers,
    pub agents: u32,
    /// AAs with a mapping.
    pub mappings: u32,
    /// Directory servers.
    pub servers: usize,
    /// `etcd3`, `etcd5` or `embedded`.
    pub store: &'static str,
    /// All agents ask at once.
    pub outage: OutageNumbers,
    /// A directory server starts from nothing.
    pub start: StartNumbers,
    /// A directory server restarts while it is asked; none where there is no other.
    pub restart: Option<RestartNumbers>,
    /// A rack moves.
    pub rack: RackNumbers,
    /// All agents ask at once over a link, without and with a card; none where that was not asked for.
    pub card: Option<CardOutage>,
    /// What is wanted of each number.
    pub checks: Vec<Check>,
}

/// What all parts share.
struct Run<'a> {
    options: &'a FabricOptions,
    progress: &'a dyn Progress,
    layout: Layout,
    /// CPUs of servers and store, and of the agents; on a machine with one core nothing is pinned.
    cpus: [Option<usize>; 2],
}

/// Runs everything.
pub fn run(options: &FabricOptions, progress: &dyn Progress) -> Result<FabricReport, LabError> {
    check(options)?;
    let several = cores() > 1;
    let cpus = [several.then_some(0), several.then_some(1)];
    let run = Run { options, progress, layout: Layout::new(options)?, cpus };
    let load_before = usage::load_average();
    progress.phase("servers", &format!("{} directory servers, store {}", options.servers, options.store.name()));
    let bed_options = BedOptions {
        weft_binary: options.weft_binary.clone(),
        servers: options.servers,
        store: options.store,
        lookup_threads: Some(1),
        cpu: cpus[0],
    };
    let mut bed = Bed::start_for(run.layout.racks(), &bed_options, progress)?;
    let before = Usage::read(&bed, options.servers);
    let empty = start::Memory::of_last(&bed);
    progress.phase("fill", &format!("{} mappings", options.aas));
    let filling = std::time::Instant::now();
    fill_with(&bed, options.aas, |number| run.layout.mapping(number), progress)?;
    let filled_s = filling.elapsed().as_secs_f64();
    let outage = outage::measure(&run, &bed)?;
    let rack = rack::measure(&run, &bed)?;
    let start = start::measure(&run, &mut bed, &empty, filled_s)?;
    let restart = if options.servers > 1 { Some(start::restart(&run, &mut bed)?) } else { None };
    let others = Usage::read(&bed, options.servers).since(&before).foreign_ratio();
    drop(bed);
    let card = if options.card { Some(card::measure(&run)?) } else { None };
    let mut report = FabricReport {
        schema_version: SCHEMA_VERSION,
        machine: MachineNumbers {
            cores: cores(),
            server_cpu: cpus[0],
            load_cpu: cpus[1],
            load_average: [load_before, usage::load_average()],
            foreign_cpu_ratio: outage.foreign_cpu_ratio.max(others),
        },
        agents: options.agents,
        mappings: options.aas,
        servers: options.servers,
        store: options.store.name(),
        outage,
        start,
        restart,
        rack,
        card,
        checks: Vec::new(),
    };
    report.checks = checks::of(&report);
    Ok(report)
}

/// Before anything is made.
fn check(options: &FabricOptions) -> Result<(), LabError> {
    let FabricOptions { agents, aas, rack, servers, .. } = *options;
    let refused = |why: String| Err(LabError::DirectoryLoad(why));
    if aas < agents {
        return refused(format!("{aas} AAs are fewer than the {agents} agents, each of which has one; raise --aas"));
    }
    if rack.saturating_mul(2) > agents {
        return refused(format!("{agents} agents are less than two racks of {rack}; lower --rack or raise --agents"));
    }
    if servers > 1 && options.store == DirectoryStore::Embedded {
        return refused(format!("{servers} directory servers need one store: --store etcd3, or --servers 1"));
    }
    agents::check_room(agents).map_err(|error| failed(&error))
}

impl Run<'_> {
    fn go_on(&self) -> Result<(), LabError> {
        if self.progress.interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    }
}
