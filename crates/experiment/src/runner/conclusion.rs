//! What is made of trials that have run: the run folder's rows, summary and report. One run and the parts of one that are
//! merged end here alike.

use weft_scenario::engine::Progress;
use weft_scenario::topology::Fabric;

use super::{RunError, RunOutcome};
use crate::analysis::{Input, TrialRecords, cpu};
use crate::page;
use crate::plan::PlanSpec;
use crate::report;
use crate::run_folder::{FinishedRun, Manifest, RunFolder, WorkFolder, record_files};
use crate::summary::RunSummary;

/// What the run folder says beside its rows.
pub(super) struct Conclusion<'a> {
    pub(super) spec: &'a PlanSpec,
    pub(super) fabrics: &'a [Fabric],
    pub(super) progress: &'a dyn Progress,
    pub(super) folder: RunFolder,
    pub(super) manifest: Manifest,
}

impl Conclusion<'_> {
    /// Writes the rows of all trials, in order of their numbers, from the work folder that keeps each of them (`None`: they are
    /// in the run folder already), then all that follows from them.
    pub(super) fn write<'w>(
        mut self,
        mut finished: Vec<FinishedRun>,
        kept_in: &dyn Fn(u32) -> Option<&'w WorkFolder>,
    ) -> Result<RunOutcome, RunError> {
        finished.sort_by_key(|run| run.trial.key.trial);
        for run in &mut finished {
            if let Some(work) = kept_in(run.trial.key.trial) {
                work.append_to(run.trial.key.trial, &self.folder.records())?;
            }
            self.manifest.add_facts(&self.spec.axes, &run.trial.key, std::mem::take(&mut run.session_facts));
        }
        let trials: Vec<TrialRecords> = finished.into_iter().map(|run| run.trial).collect();
        self.conclude(&trials)
    }

    fn conclude(self, trials: &[TrialRecords]) -> Result<RunOutcome, RunError> {
        let Self { spec, fabrics, progress, folder, mut manifest } = self;
        progress.phase("report", &manifest.plan);
        manifest.finish(trials);
        let database = folder.database(&manifest, spec)?;
        let input = Input { spec, fabrics, trials, database: Some(&database) };
        let findings = spec.analysis.run(&input);
        let cpu = cpu::told(&database, trials)?;
        let summary = RunSummary { cpu, ..RunSummary::of(spec, &manifest, &findings, folder.final_path()) };
        folder.write_json("summary.json", &summary)?;
        let (files, link_base) = (record_files(&folder.records())?, String::new());
        let (manifest_now, findings) = (&manifest, &findings);
        let replays = page::written(folder.path(), spec, fabrics)?;
        let shown = report::Run {
            summary: &summary,
            manifest: manifest_now,
            input,
            findings,
            files,
            link_base,
            replays: replays.clone(),
        };
        folder.write_text("report.html", &report::render(&[shown])?)?;
        let run_dir = folder.finish(&manifest)?;
        Ok(RunOutcome { summary, run_dir, replays })
    }
}
