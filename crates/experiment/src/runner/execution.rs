//! Runs all trials of a plan: on engines that want it one after another on a network that stays up, on the others each
//! by itself on several workers.
//!
//! If any run can stand by itself, all finished runs are kept in a [`WorkFolder`] until the last one is done, and a
//! later call with the same plan, mode, seed, engines and version runs only what is missing.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;
use weft_scenario::engine::{Engine, EngineError, Progress, Session};
use weft_scenario::topology::{Fabric, to_yaml};

use super::schedule::{Batch, Job, Network, batches};
use super::workers::{self, Shared, Task};
use super::{RunError, RunOptions};
use crate::analysis::TrialRecords;
use crate::plan::{Plan, PlanSpec};
use crate::run_folder::{FinishedRun, Manifest, RunFolder, WorkFolder};

/// Everything that the trials of one run need.
#[derive(Clone, Copy)]
pub(super) struct Execution<'a> {
    pub(super) plan: &'a Plan,
    pub(super) spec: &'a PlanSpec,
    pub(super) fabrics: &'a [Fabric],
    pub(super) engines: &'a [&'a dyn Engine],
    pub(super) options: &'a RunOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) folder: &'a RunFolder,
}

impl<'a> Execution<'a> {
    /// Runs what is not there yet and writes all rows to the run folder. The work folder comes back too: it is removed
    /// when the run folder has its final name.
    pub(super) fn run(&self, manifest: &mut Manifest) -> Result<(Vec<TrialRecords>, Option<WorkFolder>), RunError> {
        let batches = batches(self.spec, self.fabrics, self.options.seed);
        let work = match self.engines.iter().any(|engine| engine.parallel().is_some()) {
            true => Some(WorkFolder::open(self.options.out.as_deref(), self.plan.id(), &self.key())?),
            false => None,
        };
        let mut finished = self.kept(&batches, work.as_ref())?;
        let fresh = self.run_missing(&batches, work.as_ref());
        finished.extend(fresh.map_err(|error| self.explain(error, work.as_ref()))?);
        finished.sort_by_key(|run| run.trial.key.trial);
        for run in &mut finished {
            if let Some(work) = &work {
                work.append_to(run.trial.key.trial, &self.folder.records())?;
            }
            manifest.add_facts(&self.spec.axes, &run.trial.key, std::mem::take(&mut run.session_facts));
        }
        Ok((finished.into_iter().map(|run| run.trial).collect(), work))
    }

    /// Everything that decides what the runs yield.
    fn key(&self) -> String {
        let mut hasher = SipHasher13::new();
        (self.plan.text(), self.options.mode as u8, self.options.seed, &self.spec.runs_on).hash(&mut hasher);
        (env!("CARGO_PKG_VERSION"), option_env!("WEFT_GIT_REVISION")).hash(&mut hasher);
        // Between two revisions a developer's program changes without its version.
        let program = std::env::current_exe().and_then(|path| path.metadata()).ok();
        program.map(|program| (program.len(), program.modified().ok())).hash(&mut hasher);
        for fabric in self.fabrics {
            to_yaml(fabric).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }

    /// The runs that an earlier call has left.
    fn kept(&self, batches: &[Batch<'_>], work: Option<&WorkFolder>) -> Result<Vec<FinishedRun>, RunError> {
        let Some(work) = work else { return Ok(Vec::new()) };
        let numbers = batches.iter().flat_map(|batch| &batch.jobs).map(|job| job.key.trial);
        let kept: Vec<u32> = numbers.filter(|number| work.has(*number)).collect();
        if !kept.is_empty() {
            self.progress.note(&format!("{} of {} runs are there from before", kept.len(), self.spec.trials()));
        }
        let kinds = self.spec.analysis.reads();
        Ok(kept.into_iter().map(|number| work.load(&self.spec.axes, number, kinds)).collect::<Result<_, _>>()?)
    }

    fn run_missing(&self, batches: &[Batch<'_>], work: Option<&WorkFolder>) -> Result<Vec<FinishedRun>, RunError> {
        let mut finished = Vec::new();
        let mut tasks = Vec::new();
        for batch in batches {
            let missing = batch.jobs.iter().filter(|job| work.is_none_or(|work| !work.has(job.key.trial)));
            let engine = |network| engine_of(network, self.spec, self.engines).parallel();
            match (batch.networks.iter().map(engine).collect::<Option<Vec<_>>>(), work) {
                (Some(engines), Some(_)) => tasks.extend(missing.map(|job| Task {
                    network: batch.networks[job.network],
                    job,
                    engine: engines[job.network],
                })),
                _ => finished.extend(self.one_after_another(batch, missing.collect(), work)?),
            }
        }
        if let Some(work) = work.filter(|_| !tasks.is_empty()) {
            let workers = self.options.workers.unwrap_or_else(cores);
            let (axes, kinds) = (self.spec.axes.as_slice(), self.spec.analysis.reads());
            let shared = Shared { axes, kinds, work, progress: self.progress, workers };
            finished.extend(workers::run_all(&tasks, shared)?);
        }
        Ok(finished)
    }

    /// Brings the networks of a batch up, runs its jobs in order and takes the networks down.
    fn one_after_another(
        &self,
        batch: &Batch<'_>,
        jobs: Vec<&Job>,
        work: Option<&WorkFolder>,
    ) -> Result<Vec<FinishedRun>, RunError> {
        let mut finished = Vec::new();
        if jobs.is_empty() {
            return Ok(finished);
        }
        let mut sessions: Vec<Box<dyn Session + 'a>> = Vec::new();
        for network in &batch.networks {
            let engine = engine_of(network, self.spec, self.engines);
            sessions.push(engine.prepare(&network.scenario()?, self.progress)?);
        }
        for job in jobs {
            finished.push(self.one(job, sessions[job.network].as_mut(), work)?);
        }
        sessions.into_iter().try_for_each(|session| session.close())?;
        Ok(finished)
    }

    fn one(&self, job: &Job, session: &mut dyn Session, work: Option<&WorkFolder>) -> Result<FinishedRun, RunError> {
        if self.progress.interrupted() {
            return Err(EngineError::Interrupted.into());
        }
        let (key, planned) = (job.key.clone(), self.spec.trials());
        let overlay = key.overlay.name();
        let detail = format!("{} of {planned}: {}, {overlay}, seed {}", key.trial, key.workload, key.seed);
        self.progress.phase("trial", &detail);
        let records = session.run(&job.trial)?;
        let mut run = FinishedRun { trial: TrialRecords { key, records }, session_facts: session.facts() };
        match work {
            Some(work) => work.keep(&self.spec.axes, &run)?,
            None => self.folder.write_trial(&self.spec.axes, &run.trial)?,
        }
        run.trial.records.keep(self.spec.analysis.reads());
        Ok(run)
    }

    /// Says what is kept of a run that did not finish.
    fn explain(&self, error: RunError, work: Option<&WorkFolder>) -> RunError {
        let Some((work, kept)) = work.map(|work| (work, work.count())).filter(|(_, kept)| *kept > 0) else {
            return error;
        };
        let (planned, work) = (self.spec.trials(), work.path().to_owned());
        if let RunError::Engine(EngineError::Interrupted) = error {
            return RunError::Stopped { kept, planned, work };
        }
        self.progress.note(&format!("{kept} of {planned} runs are kept in {}", work.display()));
        error
    }
}

/// The engine that a network is for: the one that its point names, where engines are an axis, else the only one.
pub(super) fn engine_of<'a>(network: &Network<'_>, spec: &PlanSpec, engines: &[&'a dyn Engine]) -> &'a dyn Engine {
    let wanted = network.point.engine(&spec.axes);
    let of_point = engines.iter().find(|engine| Some(engine.name()) == wanted);
    of_point.or(engines.first()).copied().expect("a plan without this engine was refused")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
