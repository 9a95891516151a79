//! The report of one scenario in the simulator, without a plan around it: `weft sim --out`.

use std::path::PathBuf;

use weft_scenario::topology::{Fabric, to_yaml};

use crate::analysis::{Input, TrialRecords};
use crate::metric::Findings;
use crate::page::{self, Replays};
use crate::plan::PlanSpec;
use crate::query::Database;
use crate::report::{self, ReportError, Told};
use crate::run_folder::{Manifest, RunFolder, fabric_file, record_files, shell_words};
use crate::summary::{RunSummary, SCHEMA_VERSION};
use crate::table::plain;

/// A scenario that has run.
#[derive(Debug)]
pub struct SimRun<'a> {
    /// What it is called: its file, or the fabric's name.
    pub scenario: &'a str,
    /// What its report asks ([`crate::plan::SingleScenario::as_spec`]).
    pub spec: &'a PlanSpec,
    pub fabric: &'a Fabric,
    /// Its one trial.
    pub trial: TrialRecords,
    pub command_line: &'a [String],
}

impl SimRun<'_> {
    /// Writes rows, network, summary, report and what can be watched, and gives the folder its name.
    pub fn write<T: serde::Serialize>(self, folder: RunFolder, summary: &T) -> Result<(PathBuf, Replays), ReportError> {
        folder.write_trial(&[], &self.trial)?;
        folder.write_text("fabric.yaml", &to_yaml(self.fabric))?;
        folder.write_json("summary.json", summary)?;
        let pages = page::one(folder.path(), self.spec, &[], self.fabric, &self.trial)?;
        let note = page::choice::note(std::iter::once(self.fabric));
        let replays = Replays { pages: pages.into_iter().collect(), note };
        folder.write_text("report.html", &self.page(&folder, replays.clone())?)?;
        Ok((folder.complete()?, replays))
    }

    fn page(&self, folder: &RunFolder, replays: Replays) -> Result<String, ReportError> {
        let Self { spec, fabric, trial, .. } = self;
        let manifest = Manifest {
            plan: self.scenario.to_owned(),
            seed: trial.key.seed,
            reproducible: true,
            fabrics: vec![fabric_file(0)],
            ..Manifest::of_spec(spec)
        };
        let database = Database::with_spec(folder.path(), &manifest.fabrics, spec)?;
        let (fabrics, trials) = (std::slice::from_ref(*fabric), std::slice::from_ref(trial));
        let input = Input { spec, fabrics, trials, database: Some(&database) };
        let findings = spec.analysis.run(&input);
        let told = Told { headline: headline(trial, &findings), command: shell_words(self.command_line) };
        let summary = RunSummary {
            schema_version: SCHEMA_VERSION,
            plan: manifest.plan.clone(),
            engine: spec.runs_on.clone(),
            seed: manifest.seed,
            claims: Vec::new(),
            run_dir: folder.final_path().display().to_string(),
        };
        let files = record_files(&folder.records())?;
        let (summary, manifest, findings) = (&summary, &manifest, &findings);
        let (told, link_base) = (Some(told), String::new());
        report::render(&[report::Run { summary, manifest, input, findings, files, link_base, told, replays }])
    }
}

/// How many flows ended, and how fast they were.
fn headline(trial: &TrialRecords, findings: &Findings) -> String {
    let flows = &trial.records.flows;
    let ended = flows.iter().filter(|flow| flow.end_ns.is_some()).count();
    let of = |id: &str| findings.metrics.iter().find(|(name, _)| name.split('.').next() == Some(id));
    let number = |id: &str, words: &str| Some(format!("{words} {}", plain(of(id)?.1.value)));
    let speeds = [
        number("mean_fct_ms", "mean completion time (ms)"),
        number("p99_fct_ms", "99th percentile (ms)"),
        number("jain_flows", "Jain's index of their goodput"),
    ];
    let speeds: String = speeds.into_iter().flatten().map(|speed| format!(", {speed}")).collect();
    match flows.len() {
        0 => "No flow was asked for.".to_owned(),
        1 => format!("{} flow ended{speeds}.", if ended == 1 { "The one" } else { "No" }),
        all if all == ended => format!("All {all} flows ended{speeds}."),
        all => format!("{ended} of {all} flows ended{speeds}."),
    }
}
