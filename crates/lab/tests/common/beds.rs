//! Workloads on small labs, run as a plan would run them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_lab::LabEngine;
use weft_scenario::engine::{Engine, EngineError, Overlay, Scenario, Trial};
use weft_scenario::record::Records;
use weft_scenario::topology::Fabric;
use weft_scenario::units::Nanos;
use weft_scenario::workload::{End, FramesSpec, Layer, Workload};

use super::{Gone, Quiet, can_run, lab_name, options, scenario, traces};

/// One test at a time: they share cores. `None`, with the reason, where none can run.
pub(crate) fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    can_run().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Frames from port to port, for 20 ms at one rate.
pub(crate) fn frames_spec() -> FramesSpec {
    FramesSpec {
        frame_bytes: vec![64, 1518],
        stations: 64,
        from: End::Port,
        to: End::Port,
        receivers: 1,
        search: None,
        per_s: vec![20_000],
        load_percent: Vec::new(),
        path_rate: None,
        load_of: Layer::Layer1,
        trial: Some(Nanos(20_000_000)),
        crossing_percent: Vec::new(),
        cost: None,
        steady: None,
    }
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
        replay: false,
        probes: None,
    }
}

/// The records of some trials on one network, of which nothing is left afterwards.
pub(crate) fn try_run(test: &str, scenario: &Scenario, trials: &[Trial]) -> Result<Vec<Records>, EngineError> {
    let name = lab_name(test);
    let _gone = Gone(name.clone());
    let engine = LabEngine::new(options(&name), Vec::new());
    trials.iter().try_for_each(|trial| engine.check_fit(scenario, trial))?;
    let mut session = engine.prepare(scenario, &Quiet)?;
    let records = trials.iter().map(|trial| session.run(trial)).collect();
    session.close()?;
    assert_eq!(traces(&name), BTreeSet::new());
    records
}

/// Those of one workload.
pub(crate) fn run(test: &str, fabric: Fabric, overlay: Overlay, workload: Workload) -> Records {
    try_run(test, &scenario(fabric, overlay), &[trial(workload)]).unwrap().swap_remove(0)
}

pub(crate) fn fact(records: &Records, name: &str) -> f64 {
    records.fact(name).unwrap_or_else(|| panic!("no {name}"))
}
