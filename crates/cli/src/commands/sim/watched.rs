//! The simulator as an engine whose one trial is watched: its pace, the trace of a flow, the packets of a link, and what is printed of it.

use std::cell::RefCell;
use std::num::NonZeroU32;

use weft_experiment::analysis::class_summary;
use weft_experiment::analysis::completion::size_divisor;
use weft_scenario::engine::{Engine, EngineError, Progress, Scenario, Session, Trial};
use weft_scenario::record::Records;
use weft_scenario::units::Nanos;
use weft_sim::{Job, Outcome, PS_PER_NS, SimEngine, Source};

use super::load::Loaded;
use super::show::Summary;
use super::watcher::{Capture, Trace, Watcher};
use crate::args::SimArgs;
use crate::exit::Failure;
use crate::progress::TerminalProgress;

/// The simulator, and who watches.
pub(super) struct WatchedSim<'a> {
    engine: SimEngine,
    args: &'a SimArgs,
    loaded: &'a Loaded,
    progress: &'a TerminalProgress,
    capture: RefCell<Option<Capture>>,
    /// Of the trial that has run.
    summary: RefCell<Option<Summary>>,
}

impl<'a> WatchedSim<'a> {
    pub(super) fn new(
        args: &'a SimArgs,
        loaded: &'a Loaded,
        progress: &'a TerminalProgress,
        capture: Option<Capture>,
    ) -> Self {
        let (engine, capture, summary) = (SimEngine::default(), RefCell::new(capture), RefCell::new(None));
        Self { engine, args, loaded, progress, capture, summary }
    }

    /// Keeps the capture; what is printed.
    pub(super) fn finish(self) -> Result<Summary, Failure> {
        self.capture.into_inner().map_or(Ok(()), Capture::keep)?;
        Ok(self.summary.into_inner().expect("the trial has run"))
    }

    /// The request to the simulator.
    pub(super) fn job(&self, scenario: &Scenario, trial: &Trial) -> Result<Job, EngineError> {
        let mut job = self.engine.job(scenario, trial)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let usual = || weft_sim::threads(job.fabric.servers().count() as u64, cores);
        job.threads = self.args.threads.and_then(NonZeroU32::new).unwrap_or_else(usual);
        job.watch.trace_flow = self.args.trace.map(|target| target.flow);
        job.watch.capture = self.loaded.port;
        self.check_threads(&job)?;
        match (job.watch.trace_flow, &job.source) {
            (Some(flow), Source::Flows(flows)) if flow as usize >= flows.len() => {
                let flows = flows.len();
                Err(EngineError::Refused(format!("--trace flow={flow}: the {flows} flows are numbered from 0")))
            }
            _ => Ok(job),
        }
    }

    /// Refuses threads for a network that is not cut into parts.
    fn check_threads(&self, job: &Job) -> Result<(), EngineError> {
        let why = match (&self.args.trace, &self.args.capture) {
            (Some(_), _) => "--trace",
            (None, Some(_)) => "--capture",
            (None, None) => "the replay of a `mix` (--out)",
        };
        match self.args.threads {
            Some(threads) if threads > 1 && job.stays_whole() => Err(EngineError::Refused(format!(
                "--threads {threads} has no effect with {why}, for which one thread does all"
            ))),
            _ => Ok(()),
        }
    }
}

/// Refuses a fault that was to come after the last flow's end, which nobody could know before.
fn check_faults(job: &Job, outcome: &Outcome) -> Result<(), EngineError> {
    let Some(fault) = weft_sim::missed_fault(job, outcome) else { return Ok(()) };
    let end = Nanos(outcome.end_ps / PS_PER_NS);
    Err(EngineError::Refused(format!(
        "the fault at {} of {} has no effect: the last flow has ended at {end}; choose an earlier `at`, or flows that last longer \
         (nothing was written)",
        fault.at,
        fault.subject()
    )))
}

impl Engine for WatchedSim<'_> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn is_reproducible(&self) -> bool {
        self.engine.is_reproducible()
    }

    fn prepare<'b>(
        &'b self,
        scenario: &Scenario,
        progress: &'b dyn Progress,
    ) -> Result<Box<dyn Session + 'b>, EngineError> {
        let inner = self.engine.prepare(scenario, progress)?;
        Ok(Box::new(WatchedSession { engine: self, scenario: scenario.clone(), inner }))
    }
}

/// The network of the trial.
struct WatchedSession<'a> {
    engine: &'a WatchedSim<'a>,
    scenario: Scenario,
    inner: Box<dyn Session + 'a>,
}

impl Session for WatchedSession<'_> {
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError> {
        let WatchedSim { args, loaded, progress, capture, summary, .. } = self.engine;
        let job = self.engine.job(&self.scenario, trial)?;
        let trace = args.trace.map(|target| Trace::begin(args.output.output, &job, target.flow)).transpose()?;
        let mut watcher = Watcher::new(progress, &job, trace, capture.take());
        let outcome = weft_sim::run(&job, &mut watcher);
        let outcome = watcher.check(outcome)?;
        check_faults(&job, &outcome)?;
        watcher.say_pace(&outcome);
        let (trace, captured) = watcher.into_parts();
        let records = weft_sim::records(&job, &outcome);
        let fct = class_summary::by_class(&records.flows, size_divisor(&trial.workload));
        summary.replace(Some(Summary::new(args, loaded, &outcome, fct, trace)));
        capture.replace(captured);
        Ok(records)
    }

    fn facts(&self) -> Vec<(String, f64)> {
        self.inner.facts()
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        self.inner.close()
    }
}
