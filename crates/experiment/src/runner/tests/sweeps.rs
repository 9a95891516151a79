//! Sweeps over an engine whose records follow from scenario and seed: the number of workers changes nothing, and an
//! interrupted sweep goes on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use weft_scenario::record::FlowRow;
use weft_scenario::workload::{FlowClass, Servers};

use super::*;
use crate::analysis::testing::{COMPARISON_PLAN, SWEEP_PLAN, flow};

/// Yields the workload's own flows, each a microsecond a kB long, and counts its runs.
pub(super) struct CountingEngine {
    pub(super) name: &'static str,
    pub(super) alone: bool,
    pub(super) runs: AtomicUsize,
    pub(super) fail_from: usize,
}

impl CountingEngine {
    pub(super) fn new(name: &'static str, alone: bool) -> Self {
        Self { name, alone, runs: AtomicUsize::new(0), fail_from: usize::MAX }
    }
}

impl Engine for CountingEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parallel(&self) -> Option<&(dyn Engine + Sync)> {
        self.alone.then_some(self as &(dyn Engine + Sync))
    }

    fn prepare<'a>(&'a self, scenario: &Scenario, _: &'a dyn Progress) -> Result<Box<dyn Session + 'a>, EngineError> {
        Ok(Box::new(CountingSession { engine: self, scenario: scenario.clone() }))
    }
}

struct CountingSession<'a> {
    engine: &'a CountingEngine,
    scenario: Scenario,
}

impl Session for CountingSession<'_> {
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError> {
        if self.engine.runs.fetch_add(1, Ordering::Relaxed) >= self.engine.fail_from {
            return Err(EngineError::Interrupted);
        }
        let flows = trial.workload.open_loop_flows(&Servers::of(&self.scenario.fabric), trial.seed);
        let row = |spec: weft_scenario::workload::FlowSpec| {
            let end = spec.start_ns + spec.bytes + self.scenario.fabric.links().len() as u64;
            FlowRow { from: spec.from, to: spec.to, class: spec.class, ..flow(spec.bytes, spec.start_ns, Some(end)) }
        };
        let flows = flows.map_err(|error| EngineError::Failed(error.to_string()))?.into_iter().map(row).collect();
        Ok(Records { flows, facts: vec![("seed".into(), trial.seed as f64)], ..Records::default() })
    }

    fn facts(&self) -> Vec<(String, f64)> {
        vec![("links".into(), self.scenario.fabric.links().len() as f64)]
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}

pub(super) fn sweep_plan() -> Plan {
    Plan::parse("sweep.toml", SWEEP_PLAN).unwrap()
}

pub(super) fn with(out: &Path, seed: u64, workers: usize) -> RunOptions {
    RunOptions { seed, workers: Some(workers), ..options(out) }
}

/// The rows of a run folder, by file.
fn rows(out: &Path) -> BTreeMap<String, String> {
    let read = |name: String| (name.clone(), std::fs::read_to_string(out.join("records").join(name)).unwrap());
    entries(&out.join("records")).into_iter().map(read).collect()
}

#[test]
fn records_do_not_depend_on_the_workers_and_do_on_the_seed() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    let mut folders = Vec::new();
    for (name, seed, workers) in [("one", 1, 1), ("three", 1, 3), ("other", 2, 3)] {
        let engine = CountingEngine::new("sim", true);
        let outcome = run(&sweep_plan(), &[&engine], &with(&at(name), seed, workers), &Quiet::default()).unwrap();
        assert_eq!((engine.runs.into_inner(), outcome.run_dir), (12, at(name)));
        folders.push(rows(&at(name)));
    }
    assert_eq!(folders[0], folders[1]);
    assert_ne!(folders[0]["flows.csv"], folders[2]["flows.csv"]);
    assert_eq!(entries(parent.path()), ["one", "other", "three"]);
    let head = "trial,repetition,seed,overlay,workload,fabric,load,from,to,";
    assert!(folders[0]["flows.csv"].starts_with(head), "{}", &folders[0]["flows.csv"][..120]);
    assert!(folders[0]["trials.csv"].ends_with("\n12,2,2,routed,background,40g,70\n"));
}

#[test]
fn all_fabrics_carry_the_same_flows() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("r");
    run(&sweep_plan(), &[&CountingEngine::new("sim", true)], &with(&out, 1, 2), &Quiet::default()).unwrap();
    let spec = sweep_plan().for_mode(Mode::Default).clone();
    let trials =
        crate::run_folder::read_trials(&out.join("records"), &spec.axes, weft_scenario::record::RowKind::ALL).unwrap();
    let starts = |trial: usize| trials[trial].records.flows.iter().map(|flow| flow.start_ns).collect::<Vec<_>>();
    assert!(trials.iter().flat_map(|trial| &trial.records.flows).all(|flow| flow.class == FlowClass::Background));
    // Trials 1, 5 and 9 are the first repetition at load 30 on each fabric.
    assert!(!starts(0).is_empty() && starts(0) == starts(4) && starts(0) == starts(8));
    assert_ne!(starts(0), starts(1));
}

#[test]
fn each_network_is_written_once_and_redrawing_finds_it() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("r");
    let first = run(&sweep_plan(), &[&CountingEngine::new("sim", true)], &with(&out, 1, 2), &Quiet::default()).unwrap();
    let expected =
        ["fabric-2.yaml", "fabric-3.yaml", "fabric.yaml", "manifest.json", "records", "report.html", "summary.json"];
    assert_eq!(entries(&out), expected);
    let text = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    let manifest: Manifest = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest.fabrics[..3], ["fabric.yaml", "fabric.yaml", "fabric-2.yaml"]);
    assert_eq!(manifest.facts["routed fabric=40g load=70"]["links"], 6.0);
    let before = std::fs::read_to_string(out.join("report.html")).unwrap();
    report::redraw(std::slice::from_ref(&out)).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("report.html")).unwrap(), before);
    let again: RunSummary = serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(again, first.summary);
}

#[test]
fn an_interrupted_sweep_keeps_its_runs_and_goes_on() {
    let parent = tempfile::tempdir().unwrap();
    let (out, whole) = (parent.path().join("r"), parent.path().join("whole"));
    let stopped = CountingEngine { fail_from: 5, ..CountingEngine::new("sim", true) };
    let error = run(&sweep_plan(), &[&stopped], &with(&out, 1, 1), &Quiet::default()).unwrap_err();
    let RunError::Stopped { kept, planned, work } = &error else { panic!("{error}") };
    assert_eq!((*kept, *planned), (5, 12));
    assert!(error.to_string().starts_with("interrupted; 5 of 12 runs are kept in "), "{error}");
    assert_eq!(entries(parent.path()), [work.file_name().unwrap().to_str().unwrap()]);
    let other = CountingEngine::new("sim", true);
    run(&sweep_plan(), &[&other], &with(&parent.path().join("seed2"), 2, 1), &Quiet::default()).unwrap();
    assert_eq!(other.runs.into_inner(), 12, "another seed is another sweep");
    let resumed = CountingEngine::new("sim", true);
    run(&sweep_plan(), &[&resumed], &with(&out, 1, 2), &Quiet::default()).unwrap();
    assert_eq!(resumed.runs.into_inner(), 7);
    run(&sweep_plan(), &[&CountingEngine::new("sim", true)], &with(&whole, 1, 2), &Quiet::default()).unwrap();
    assert_eq!(rows(&out), rows(&whole));
    assert_eq!(entries(parent.path()), ["r", "seed2", "whole"]);
}

#[test]
fn a_sweep_stopped_before_its_first_run_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let stopped = Quiet { stop: AtomicBool::new(true) };
    let engine = CountingEngine::new("sim", true);
    let error = run(&sweep_plan(), &[&engine], &with(&parent.path().join("r"), 1, 2), &stopped).unwrap_err();
    assert!(matches!(error, RunError::Engine(EngineError::Interrupted)), "{error}");
    assert_eq!(entries(parent.path()), [""; 0]);
}

#[test]
fn a_serial_engine_sweeps_too() {
    let parent = tempfile::tempdir().unwrap();
    let (serial, parallel) = (parent.path().join("serial"), parent.path().join("parallel"));
    run(&sweep_plan(), &[&CountingEngine::new("sim", false)], &with(&serial, 1, 2), &Quiet::default()).unwrap();
    run(&sweep_plan(), &[&CountingEngine::new("sim", true)], &with(&parallel, 1, 2), &Quiet::default()).unwrap();
    assert_eq!(rows(&serial), rows(&parallel));
}

#[test]
fn a_comparison_runs_on_all_its_engines_or_not_at_all() {
    let parent = tempfile::tempdir().unwrap();
    let plan = Plan::parse("c.toml", COMPARISON_PLAN).unwrap();
    let (lab, sim) = (CountingEngine::new("lab", false), CountingEngine::new("sim", true));
    let options = options(&parent.path().join("r"));
    let error = run(&plan, &[&sim], &options, &Quiet::default()).unwrap_err();
    assert_eq!(error.to_string(), "plan `test/comparison` cannot run in engine `sim`; it can in: lab and sim");
    let outcome = run(&plan, &[&lab, &sim], &options, &Quiet::default()).unwrap();
    assert_eq!((lab.runs.into_inner(), sim.runs.into_inner()), (1, 1));
    assert_eq!(outcome.summary.engine, "lab+sim");
    assert_eq!((outcome.summary.claims[0].ours, outcome.summary.claims[0].verdict), (Some(0.0), Verdict::Pass));
    report::redraw(&[outcome.run_dir]).unwrap();
}
