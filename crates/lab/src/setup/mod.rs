//! The numbers of `weft bench setup`: how long it takes until something stands, beside ceilings. A lab of the paper's testbed
//! comes up and goes down again; 1,054 RBridges find all their ways (`campus`); a month of failures of 106 switches is calculated.

mod campus;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_control::NS_PER_S;
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, EngineError, Overlay, Progress, Scenario, Transport};
use weft_scenario::judge::Check;
use weft_scenario::switching::Switching;
use weft_scenario::topology::{ClosParams, from_yaml, vl2_clos};
use weft_scenario::workload::model::{AvailabilitySpec, FailureModel};
use weft_testbed::cpu;

use self::campus::Campus;
pub use self::campus::failures;
use crate::directory::usage::machine_busy_ns;
use crate::options::LabOptions;
use crate::process::ProcessId;
use crate::up::up_owned;

/// Version of [`SetupReport`]'s fields.
pub const SCHEMA_VERSION: u32 = 2;

const FABRIC: &str = include_str!("../../../../fabrics/vl2-testbed.yaml");
/// Ports of a switch in the fat tree: 500 RBridges, 4,000 links.
const TREE_PORTS: usize = 20;
/// Ports of a switch in VL2's Clos: 1,054 RBridges, 3,844 links.
const CLOS_PORTS: usize = 62;
/// By then RBridges that started within a second have long converged.
const CAMPUS_NS: u64 = 20 * NS_PER_S;

/// What is measured.
#[derive(Clone, Debug)]
pub struct SetupOptions {
    /// The `weft` program that the lab's daemons are started from.
    pub weft_binary: PathBuf,
    /// How often the lab comes up and goes down; the slowest counts.
    pub rounds: u32,
}

/// All numbers.
#[derive(Clone, Debug, Serialize)]
pub struct SetupReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    pub lab: LabNumbers,
    /// RBridges' IS-IS in virtual time: a fat tree, and VL2's Clos.
    pub campuses: [CampusNumbers; 2],
    /// A month of failures.
    pub month: MonthNumbers,
    /// Every ceiling with our number.
    pub checks: Vec<Check>,
}

/// A VL2 lab of the paper's testbed, links shaped and measured, routes converged, first ping answered.
#[derive(Clone, Debug, Serialize)]
pub struct LabNumbers {
    pub nodes: usize,
    /// Seconds until it is up, by round.
    pub up_s: Vec<f64>,
    /// Seconds until nothing of it is left, by round.
    pub down_s: Vec<f64>,
}

/// RBridges that start within a second.
#[derive(Clone, Debug, Serialize)]
pub struct CampusNumbers {
    /// How they are linked.
    pub shape: &'static str,
    pub rbridges: usize,
    #[serde(flatten)]
    pub took: Took,
    /// When a route was changed for the last time, in the RBridges' own seconds.
    pub settled_s: f64,
    /// PDUs that arrived.
    pub pdus: u64,
    /// Times that an RBridge computed its routes and trees.
    pub computations: usize,
    /// CPU time of one, in a database of all: the median of the last ones of all RBridges.
    pub computation_ms: f64,
    /// Pairs whose route is not all of the shortest ways.
    pub wrong_routes: u64,
}

/// Failures of a month and the network's capacity between them.
#[derive(Clone, Debug, Serialize)]
pub struct MonthNumbers {
    pub switches: usize,
    /// States of the network, one after another.
    pub states: usize,
    #[serde(flatten)]
    pub took: Took,
}

/// What one thread's work took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Took {
    /// Seconds of the clock.
    pub wall_s: f64,
    /// Seconds of a core.
    pub cpu_s: f64,
}

impl Took {
    fn by<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<(T, Self), EngineError> {
        let (start, before_ns) = (Instant::now(), cpu::this_thread_ns());
        let result = work()?;
        let cpu_s = (cpu::this_thread_ns() - before_ns) as f64 / 1e9;
        Ok((result, Self { wall_s: start.elapsed().as_secs_f64(), cpu_s }))
    }

    /// What may have made it slow: it waited for a core.
    fn doubt(self) -> Option<&'static str> {
        (self.cpu_s < 0.95 * self.wall_s).then_some(OTHER_WORK)
    }
}

const OTHER_WORK: &str = "other work on this machine";

/// Measures everything.
pub fn run(options: &SetupOptions, progress: &dyn Progress) -> Result<SetupReport, EngineError> {
    let (lab, is_disturbed) = lab(options, progress)?;
    let mut report = SetupReport {
        schema_version: SCHEMA_VERSION,
        lab,
        campuses: [
            campus("fat tree", Campus::fat_tree(TREE_PORTS), progress)?,
            campus("VL2's Clos", Campus::clos(CLOS_PORTS), progress)?,
        ],
        month: month(progress)?,
        checks: Vec::new(),
    };
    report.checks = checks(&report, is_disturbed);
    Ok(report)
}

fn checks(report: &SetupReport, is_disturbed: bool) -> Vec<Check> {
    let doubt = is_disturbed.then_some(OTHER_WORK);
    let worst = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let SetupReport { lab, campuses, month, .. } = report;
    let named = |what: &str| format!("lab of {} nodes {what}, slowest", lab.nodes);
    let of_campus = |campus: &CampusNumbers| {
        let what = format!("{} RBridges ({}) converge, CPU", campus.rbridges, campus.shape);
        [
            Check::at_most(what, campus.took.cpu_s, 60.0, "s"),
            Check::at_most("  one computation of routes and trees, median", campus.computation_ms, 10.0, "ms"),
            Check::at_most("  their routes that are not the shortest ways", campus.wrong_routes as f64, 0.0, "routes"),
        ]
    };
    let mut checks = vec![
        Check::at_most(named("up"), worst(&lab.up_s), 10.0, "s").unless(doubt),
        Check::at_most(named("down"), worst(&lab.down_s), 2.0, "s").unless(doubt),
    ];
    checks.extend(campuses.iter().flat_map(of_campus));
    checks.push(
        Check::at_most(format!("a month of failures of {} switches", month.switches), month.took.wall_s, 60.0, "s")
            .unless(month.took.doubt()),
    );
    checks
}

/// And whether somebody else was at work before a round began.
fn lab(options: &SetupOptions, progress: &dyn Progress) -> Result<(LabNumbers, bool), EngineError> {
    let fabric = from_yaml(FABRIC, "vl2-testbed.yaml").expect("the file is among our tests");
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).expect("the testbed has addresses");
    let mut numbers = LabNumbers { nodes: fabric.nodes().len(), up_s: Vec::new(), down_s: Vec::new() };
    let scenario = Scenario {
        fabric,
        addresses,
        overlay: Overlay::Vl2,
        directory: DirectoryStore::default(),
        transport: Transport::default(),
        switching: Switching::default(),
        shaped: true,
    };
    let name = Some(format!("setup{}", std::process::id()));
    let lab_options = LabOptions { name, ..LabOptions::new(&options.weft_binary) };
    let mut is_disturbed = false;
    for _ in 0..options.rounds {
        is_disturbed |= others_are_at_work();
        let start = Instant::now();
        let lab = up_owned(&scenario, &lab_options, Some(ProcessId::own()), progress)?;
        numbers.up_s.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        lab.take_down()?;
        numbers.down_s.push(start.elapsed().as_secs_f64());
    }
    Ok((numbers, is_disturbed))
}

/// Whether the cores had more than a little to do in a moment without us.
fn others_are_at_work() -> bool {
    const MOMENT: Duration = Duration::from_millis(500);
    const DISTURBED: f64 = 0.05;
    let (before, start) = (machine_busy_ns(), Instant::now());
    std::thread::sleep(MOMENT);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let capacity_ns = start.elapsed().as_nanos() as f64 * cores as f64;
    (machine_busy_ns() - before) as f64 > DISTURBED * capacity_ns
}

fn campus(shape: &'static str, mut campus: Campus, progress: &dyn Progress) -> Result<CampusNumbers, EngineError> {
    progress.phase("IS-IS", &format!("{} RBridges in virtual time", campus.len()));
    let ((), took) = Took::by(|| campus.run_to(CAMPUS_NS, progress))?;
    let mut last_ns = campus.computations_ns[campus.computations_ns.len().saturating_sub(campus.len())..].to_vec();
    last_ns.sort_unstable();
    Ok(CampusNumbers {
        shape,
        rbridges: campus.len(),
        computations: campus.computations_ns.len(),
        computation_ms: last_ns.get(last_ns.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e6),
        took,
        settled_s: campus.changed_ns as f64 / 1e9,
        pdus: campus.pdus,
        wrong_routes: campus.wrong(),
    })
}

fn month(progress: &dyn Progress) -> Result<MonthNumbers, EngineError> {
    let params = ClosParams { aggregation_ports: 20, intermediate_ports: 16, ..ClosParams::with_ports(16) };
    let fabric = vl2_clos(&params).expect("the paper's rules allow these ports");
    progress.phase("failures", &format!("a month of {} switches", fabric.switches().count()));
    let spec = AvailabilitySpec { failures: FailureModel::default() };
    let (records, took) = Took::by(|| Ok(weft_model::availability::run(&spec, &fabric, 1, progress)?))?;
    Ok(MonthNumbers { switches: fabric.switches().count(), states: records.availability.len(), took })
}
