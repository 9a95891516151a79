//! Runs trials of a plan: on engines that want it one after another on a network that stays up, on the others each
//! by itself on several workers.
//!
//! If any run can stand by itself, all finished runs are kept in a [`WorkFolder`] until the last one is done, and a
//! later call with the same plan, mode, seed, engines and version runs only what is missing.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;
use weft_scenario::engine::{Engine, EngineError, Progress, Session};
use weft_scenario::topology::{Fabric, to_yaml};

use super::schedule::{Batch, Job, Network};
use super::workers::{self, Shared, Task};
use super::{RunError, RunOptions};
use crate::analysis::TrialRecords;
use crate::plan::{Plan, PlanSpec};
use crate::run_folder::{FinishedRun, RunFolder, WorkFolder};

/// Everything that the trials of one run, or of a part of it, need.
pub(super) struct Execution<'a> {
    pub(super) spec: &'a PlanSpec,
    /// What is to run.
    pub(super) batches: Vec<Batch<'a>>,
    pub(super) engines: &'a [&'a dyn Engine],
    pub(super) workers: Option<usize>,
    pub(super) progress: &'a dyn Progress,
    pub(super) rows: Rows<'a>,
}

/// Where the rows of a finished run go.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// To a folder that keeps them for a later call.
    Work(&'a WorkFolder),
    /// Straight to the run folder.
    Run(&'a RunFolder),
}

impl Rows<'_> {
    fn have(&self, number: u32) -> bool {
        matches!(self, Self::Work(work) if work.has(number))
    }
}

/// Everything that decides what the runs yield.
pub(super) fn key(plan: &Plan, spec: &PlanSpec, fabrics: &[Fabric], options: &RunOptions) -> String {
    let mut hasher = SipHasher13::new();
    (plan.text(), plan.settings(), options.mode as u8, options.seed, &spec.runs_on).hash(&mut hasher);
    (env!("CARGO_PKG_VERSION"), option_env!("WEFT_GIT_REVISION")).hash(&mut hasher);
    // Between two revisions a developer's program changes without its version.
    let program = std::env::current_exe().and_then(|path| path.metadata()).ok();
    program.map(|program| (program.len(), program.modified().ok())).hash(&mut hasher);
    fabrics.iter().for_each(|fabric| to_yaml(fabric).hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

impl<'a> Execution<'a> {
    /// Runs what is not there yet, and returns that.
    pub(super) fn run(&self) -> Result<Vec<FinishedRun>, RunError> {
        let there = self.numbers().filter(|number| self.rows.have(*number)).count();
        if there > 0 {
            self.progress.note(&format!("{there} of {} runs are there from before", self.planned()));
        }
        self.run_missing().map_err(|error| self.explain(error))
    }

    /// The runs that an earlier call has left.
    pub(super) fn kept(&self) -> Result<Vec<FinishedRun>, RunError> {
        let Rows::Work(work) = self.rows else { return Ok(Vec::new()) };
        let kept = self.numbers().filter(|number| work.has(*number));
        let kinds = self.spec.analysis.reads();
        Ok(kept.map(|number| work.load(&self.spec.axes, number, kinds)).collect::<Result<_, _>>()?)
    }

    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.batches.iter().flat_map(|batch| &batch.jobs).map(|job| job.key.trial)
    }

    fn planned(&self) -> usize {
        self.numbers().count()
    }

    fn run_missing(&self) -> Result<Vec<FinishedRun>, RunError> {
        let mut finished = Vec::new();
        let mut tasks = Vec::new();
        for batch in &self.batches {
            let missing = batch.jobs.iter().filter(|job| !self.rows.have(job.key.trial));
            let engine = |network| engine_of(network, self.spec, self.engines).parallel();
            match (batch.networks.iter().map(engine).collect::<Option<Vec<_>>>(), self.rows) {
                (Some(engines), Rows::Work(_)) => tasks.extend(missing.map(|job| Task {
                    network: batch.networks[job.network],
                    job,
                    engine: engines[job.network],
                })),
                _ => finished.extend(self.one_after_another(batch, missing.collect())?),
            }
        }
        if let (false, Rows::Work(work)) = (tasks.is_empty(), self.rows) {
            let workers = self.workers.unwrap_or_else(cores).min(tasks.len());
            let threads = cores().div_euclid(workers.max(1)).max(1);
            let (axes, kinds) = (self.spec.axes.as_slice(), self.spec.analysis.reads());
            let shared = Shared { axes, kinds, work, progress: self.progress, workers, threads };
            finished.extend(workers::run_all(&tasks, shared)?);
        }
        Ok(finished)
    }

    /// Brings the networks of a batch up, runs its jobs in order and takes the networks down.
    fn one_after_another(&self, batch: &Batch<'_>, jobs: Vec<&Job>) -> Result<Vec<FinishedRun>, RunError> {
        let mut finished = Vec::new();
        if jobs.is_empty() {
            return Ok(finished);
        }
        let mut sessions: Vec<Box<dyn Session + 'a>> = Vec::new();
        for network in &batch.networks {
            let engine = engine_of(network, self.spec, self.engines);
            let mut session = engine.prepare(&network.scenario()?, self.progress)?;
            session.use_threads(cores());
            sessions.push(session);
        }
        for job in jobs {
            finished.push(self.one(job, sessions[job.network].as_mut())?);
        }
        sessions.into_iter().try_for_each(|session| session.close())?;
        Ok(finished)
    }

    fn one(&self, job: &Job, session: &mut dyn Session) -> Result<FinishedRun, RunError> {
        if self.progress.interrupted() {
            return Err(EngineError::Interrupted.into());
        }
        let (key, planned) = (job.key.clone(), self.planned());
        let overlay = key.overlay.name();
        let detail = format!("{} of {planned}: {}, {overlay}, seed {}", key.trial, key.workload, key.seed);
        self.progress.phase("trial", &detail);
        let records = session.run(&job.trial)?;
        let mut run = FinishedRun { trial: TrialRecords { key, records }, session_facts: session.facts() };
        match self.rows {
            Rows::Work(work) => work.keep(&self.spec.axes, &run)?,
            Rows::Run(folder) => folder.write_trial(&self.spec.axes, &run.trial)?,
        }
        run.trial.records.keep(self.spec.analysis.reads());
        Ok(run)
    }

    /// Says what is kept of a run that did not finish.
    fn explain(&self, error: RunError) -> RunError {
        let Rows::Work(folder) = self.rows else { return error };
        let (planned, kept, work) = (self.planned(), folder.count(), folder.path().to_owned());
        match error {
            _ if kept == 0 => error,
            RunError::Engine(EngineError::Interrupted) => RunError::Stopped { kept, planned, work },
            _ => {
                self.progress.note(&format!("{kept} of {planned} runs are kept in {}", work.display()));
                error
            }
        }
    }
}

/// The engine that a network is for: the one that its point names, where engines are an axis, else the only one.
pub(super) fn engine_of<'a>(network: &Network<'_>, spec: &PlanSpec, engines: &[&'a dyn Engine]) -> &'a dyn Engine {
    let wanted = network.point.engine(&spec.axes);
    let of_point = engines.iter().find(|engine| Some(engine.name()) == wanted);
    of_point.or(engines.first()).copied().expect("a plan without this engine was refused")
}

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
