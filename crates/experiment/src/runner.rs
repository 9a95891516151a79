//! Runs a plan: scenarios are brought up, trials run in order, every trial's rows go to the run folder at once, and
//! only a run that is complete is analysed and given its final name.

use std::path::PathBuf;

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{Engine, EngineError, Overlay, Progress, Scenario, Session, Trial};
use weft_scenario::topology::{Fabric, to_yaml};

use crate::analysis::{Input, TrialKey, TrialRecords};
use crate::plan::{self, Mode, Plan, PlanSpec};
use crate::report;
use crate::run_folder::{FABRIC_FILE, FolderError, Manifest, RunFolder};
use crate::summary::{RunSummary, SCHEMA_VERSION};
use crate::verdict;

/// What the user chose for a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// How much of the plan runs.
    pub mode: Mode,
    /// Seed of the first repetition.
    pub seed: u64,
    /// The run folder; without it `run/PLAN-TIME` below the current directory.
    pub out: Option<PathBuf>,
    /// The command line, for the manifest and the report.
    pub command_line: Vec<String>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Its claims and verdicts.
    pub summary: RunSummary,
    /// Its folder.
    pub run_dir: PathBuf,
}

/// Why a run did not finish. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan does not name this engine.
    #[error("plan `{plan}` cannot run in engine `{engine}`; it can in: {offered}")]
    EngineNotOffered {
        /// The plan.
        plan: String,
        /// The engine that was asked for.
        engine: String,
        /// The plan's engines.
        offered: String,
    },
    /// The plan's network cannot be described.
    #[error("plan `{plan}`: {message}")]
    Scenario {
        /// The plan.
        plan: String,
        /// What is wrong.
        message: String,
    },
    /// The engine gave up; see [`EngineError`] for the exit code.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The run folder could not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The report could not be drawn.
    #[error(transparent)]
    Report(#[from] report::ReportError),
}

/// Runs a plan from start to report.
pub fn run(
    plan: &Plan,
    engine: &dyn Engine,
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<RunOutcome, RunError> {
    let spec = plan.for_mode(options.mode);
    check_engine(spec, engine)?;
    let fabric = build_fabric(spec)?;
    let mut manifest = Manifest::new(plan, engine.name(), options);
    let mut folder = RunFolder::create(options.out.as_deref(), plan.id(), &manifest)?;
    folder.write_text(FABRIC_FILE, &to_yaml(&fabric))?;
    let mut run =
        Run { spec, fabric: &fabric, engine, progress, options, folder: &mut folder, manifest: &mut manifest };
    let trials = run.trials()?;
    progress.phase("report", plan.id());
    manifest.finish(&trials);
    let input = Input { spec, fabric: &fabric, trials: &trials };
    let findings = spec.analysis.run(&input);
    let summary = RunSummary {
        schema_version: SCHEMA_VERSION,
        plan: plan.id().to_owned(),
        engine: engine.name().to_owned(),
        seed: options.seed,
        claims: verdict::judge_all(&spec.claims, &findings),
        run_dir: folder.final_path().display().to_string(),
    };
    folder.write_json("summary.json", &summary)?;
    let link_base = String::new();
    let shown = report::Run { summary: &summary, manifest: &manifest, input, findings: &findings, link_base };
    let page = report::render(&[shown])?;
    folder.write_text("report.html", &page)?;
    let run_dir = folder.finish(&manifest)?;
    Ok(RunOutcome { summary, run_dir })
}

fn check_engine(spec: &PlanSpec, engine: &dyn Engine) -> Result<(), RunError> {
    if spec.engines.iter().any(|offered| offered == engine.name()) {
        return Ok(());
    }
    Err(RunError::EngineNotOffered {
        plan: spec.id.clone(),
        engine: engine.name().to_owned(),
        offered: spec.engines.join(", "),
    })
}

fn scenario_error(spec: &PlanSpec, error: impl std::fmt::Display) -> RunError {
    RunError::Scenario { plan: spec.id.clone(), message: error.to_string() }
}

fn build_fabric(spec: &PlanSpec) -> Result<Fabric, RunError> {
    let fabric = spec.fabric.as_ref().ok_or_else(|| scenario_error(spec, "the plan names no scenario"))?;
    fabric.build(&plan::fabric_text).map_err(|error| scenario_error(spec, error))
}

/// One run in progress.
struct Run<'a> {
    spec: &'a PlanSpec,
    fabric: &'a Fabric,
    engine: &'a dyn Engine,
    progress: &'a dyn Progress,
    options: &'a RunOptions,
    folder: &'a mut RunFolder,
    manifest: &'a mut Manifest,
}

type Sessions<'a> = Vec<(Overlay, Box<dyn Session + 'a>)>;

impl<'a> Run<'a> {
    /// Runs every trial. Interleaved, all overlays are up at once and take turns within each repetition; otherwise one
    /// overlay is up at a time.
    fn trials(&mut self) -> Result<Vec<TrialRecords>, RunError> {
        let overlays = self.spec.overlays.as_slice();
        let groups = if self.spec.interleave { vec![overlays] } else { overlays.chunks(1).collect() };
        let mut trials = Vec::new();
        for group in groups {
            let mut sessions = self.bring_up(group)?;
            for repetition in 1..=self.spec.repetitions {
                self.round(repetition, &mut sessions, &mut trials)?;
            }
            for (overlay, session) in sessions {
                self.manifest.add_facts(overlay, session.facts());
                session.close()?;
            }
        }
        Ok(trials)
    }

    fn bring_up(&self, overlays: &[Overlay]) -> Result<Sessions<'a>, RunError> {
        let mut sessions = Sessions::new();
        for overlay in overlays {
            let addresses = AddressPlan::new(self.fabric, AddressingOptions::default())
                .map_err(|error| scenario_error(self.spec, error))?;
            let scenario = Scenario {
                fabric: self.fabric.clone(),
                addresses,
                overlay: *overlay,
                transport: self.spec.transport.clone(),
                shaped: self.spec.shaped,
            };
            sessions.push((*overlay, self.engine.prepare(&scenario, self.progress)?));
        }
        Ok(sessions)
    }

    fn round(
        &mut self,
        repetition: u32,
        sessions: &mut Sessions<'a>,
        trials: &mut Vec<TrialRecords>,
    ) -> Result<(), RunError> {
        let spec = self.spec;
        let planned = spec.overlays.len() * spec.workload.len() * spec.repetitions as usize;
        for (workload_name, workload) in &spec.workload {
            for (overlay, session) in sessions.iter_mut() {
                if self.progress.interrupted() {
                    return Err(EngineError::Interrupted.into());
                }
                let seed = self.options.seed.wrapping_add(u64::from(repetition - 1));
                let number = trials.len() as u32 + 1;
                let key =
                    TrialKey { trial: number, repetition, seed, overlay: *overlay, workload: workload_name.clone() };
                let overlay = crate::table::overlay_name(*overlay);
                self.progress
                    .phase("trial", &format!("{number} of {planned}: {workload_name}, {overlay}, seed {seed}"));
                let records = session.run(&self.trial(workload_name, workload.clone(), seed))?;
                let trial = TrialRecords { key, records };
                self.folder.write_trial(&trial)?;
                trials.push(trial);
            }
        }
        Ok(())
    }

    fn trial(&self, name: &str, workload: weft_scenario::workload::Workload, seed: u64) -> Trial {
        let sampling = &self.spec.sampling;
        Trial {
            workload,
            faults: self.spec.fault.clone(),
            seed,
            sample_interval: sampling.interval,
            tcp_interval: sampling.tcp_interval,
            time_limit: sampling.time_limit,
            pin_and_measure_cost: sampling.measure_cpu_cost.iter().any(|pinned| pinned == name),
        }
    }
}

#[cfg(test)]
mod tests;
