//! Workloads that bring servers or switches of their own: run as a plan would run them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_lab::{LabEngine, LabOptions, home};
use weft_scenario::engine::{Engine, EngineError, Overlay, Trial};
use weft_scenario::record::Records;
use weft_scenario::topology::{OutputQueuedParams, output_queued};
use weft_scenario::units::Nanos;
use weft_scenario::workload::Workload;

use super::{Quiet, can_run, daemon_program, scenario};

/// One test at a time: they share cores. `None`, with the reason, where none can run.
pub(crate) fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    can_run().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn trial(workload: Workload) -> Trial {
    Trial {
        workload,
        faults: Vec::new(),
        seed: 1,
        sample_interval: Nanos(1_000_000_000),
        tcp_interval: None,
        time_limit: Nanos(60_000_000_000),
        pin_and_measure_cost: false,
        probes: None,
    }
}

pub(crate) fn try_run(workload: Workload, overlay: Overlay) -> Result<Records, EngineError> {
    let fabric = output_queued(&OutputQueuedParams { servers: 2, ..OutputQueuedParams::default() }).unwrap();
    let engine = LabEngine::new(LabOptions::new(daemon_program()), Vec::new());
    let scenario = scenario(fabric, overlay);
    let trial = trial(workload);
    engine.check_fit(&scenario, &trial)?;
    let mut session = engine.prepare(&scenario, &Quiet)?;
    let records = session.run(&trial);
    session.close()?;
    records
}

/// The records of a workload, after which no namespace is left.
pub(crate) fn run_on_beds(workload: Workload) -> Records {
    let records = try_run(workload, Overlay::L2).unwrap();
    let own = format!("weft-tester-{}-", std::process::id());
    let left = home::names_in(std::path::Path::new(home::NETNS_DIR)).into_iter().filter(|name| name.starts_with(&own));
    assert_eq!(left.count(), 0, "namespaces are left");
    records
}

pub(crate) fn fact(records: &Records, name: &str) -> f64 {
    records.fact(name).unwrap_or_else(|| panic!("no {name}"))
}
