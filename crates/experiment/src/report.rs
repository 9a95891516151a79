//! The report: one page that opens without a network, drawn from a run or redrawn from run folders.

use std::path::{Path, PathBuf};

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use weft_scenario::record::LinkRow;
use weft_scenario::topology::Fabric;

use crate::analysis::{Input, TrialKey, cpu};
use crate::figure;
use crate::metric::{Estimate, Findings};
use crate::page::{self, Replays};
use crate::plan::{PlanError, PlanSpec};
use crate::query::load::read_fabric;
use crate::query::{Database, QueryError};
use crate::run_folder::{
    FolderError, Manifest, read_keys, read_some_trials, read_trials, record_files, shell_words, write_synced,
};
use crate::summary::RunSummary;
use crate::{comparison, table, what_ran};

/// The page's frame; figures and tables are filled in.
const TEMPLATE: &str = include_str!("report.html");
/// What pages look like.
pub(crate) const STYLE: &str = include_str!("report.css");
/// The page of several runs, beside the first of them.
const SIDE_BY_SIDE: &str = "side-by-side.html";

/// Why a report could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No run folder was given.
    #[error("no run folder given; name one or more, for instance `weft report run/vl2-fig09-shuffle-...`")]
    Nothing,
    /// A folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The plan kept in the folder cannot be read any more.
    #[error("{}: {source}; read it with the weft that wrote it", folder.display())]
    Plan {
        folder: PathBuf,
        /// What is wrong with its plan.
        source: PlanError,
    },
    /// The run's rows make no tables.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The page's template failed.
    #[error("cannot draw the report: {0}")]
    Template(#[from] minijinja::Error),
}

/// One run on the page.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Its claims.
    pub summary: &'a RunSummary,
    /// Its circumstances.
    pub manifest: &'a Manifest,
    /// Its plan, network and records.
    pub input: Input<'a>,
    /// Its metrics.
    pub findings: &'a Findings,
    /// The files of its rows.
    pub files: Vec<String>,
    /// What links to its files begin with: empty where the page lies in the run folder, else a path that ends in `/`.
    pub link_base: String,
    /// Its trials that can be watched.
    pub replays: Replays,
}

/// The page for one or more runs.
pub fn render(runs: &[Run<'_>]) -> Result<String, ReportError> {
    render_beside(runs, None)
}

/// The same, with a picture of what the runs do otherwise.
fn render_beside(runs: &[Run<'_>], picture: Option<figure::Figure>) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_template("report", TEMPLATE)?;
    let summaries: Vec<RunSummary> = runs.iter().map(|run| run.summary.clone()).collect();
    let beside: Vec<_> = comparison::readings(&summaries).iter().map(comparison::cells).collect();
    let manifests: Vec<&Manifest> = runs.iter().map(|run| run.manifest).collect();
    let settings = comparison::differences(&manifests);
    let runs: Vec<Value> = runs.iter().map(run_values).collect();
    let comparison = context! { headings => Serde(comparison::HEADINGS), rows => Serde(beside), settings => Serde(settings), picture => picture.map(figure_value) };
    let style = Value::from_safe_string(STYLE.to_owned());
    Ok(environment.get_template("report")?.render(context! { runs, comparison, style })?)
}

fn run_values(run: &Run<'_>) -> Value {
    let Run { summary, manifest, input, findings, .. } = run;
    let claims: Vec<Value> = table::claims_table(summary)
        .into_iter()
        .zip(&input.spec.claims)
        .map(|(row, claim)| {
            let meaning = meaning(input, claim.metric());
            context! { row => Serde(row), claim => Serde(claim), meaning }
        })
        .collect();
    let figures: Vec<Value> = figure::figures(input).into_iter().map(figure_value).collect();
    let network = figure::fabric::drawn(input.fabrics).map(figure_value);
    let unit =
        |name: &str| input.spec.claims.iter().find(|claim| claim.metric() == name).map(|claim| claim.unit.as_str());
    let metric = |(name, estimate): (&String, &Estimate)| {
        let value = table::quantity(estimate.value, unit(name).unwrap_or_default());
        context! { name, meaning => meaning(input, name), value }
    };
    let metrics: Vec<Value> = findings.metrics.iter().map(metric).collect();
    let has_plan = manifest.scenario.is_none();
    let tables = table::metric_tables(summary, usize::MAX);
    let has_remarks = input.spec.claims.iter().any(|claim| {
        [&claim.paper_text, &claim.because, &claim.note].into_iter().any(Option::is_some) || !claim.baseline.is_empty()
    });
    context! {
        paper => input.spec.paper.as_str(), figure => input.spec.figure.as_str(), title => input.spec.title.as_str(),
        verdict => if summary.is_judged() { summary.verdict().word() } else { "" }, counts => summary.counts(),
        headline => if has_plan { summary.headline() } else { scenario_headline(findings) },
        network, replays => Serde(&run.replays), has_remarks, has_plan, is_judged => summary.is_judged(),
        ran => Serde(what_ran::lines(input.spec, input.fabrics, manifest.seed)),
        problems => findings.problems.iter().map(|problem| problem.text().to_owned()).collect::<Vec<_>>(),
        summary => Serde(summary), manifest => Serde(manifest), claims, figures, metrics,
        tables => Serde(&findings.tables),
        metric_table => Serde(tables), intervals => table::metric_intervals(summary),
        command => command_line(manifest),
        files => run.files.clone(), base => run.link_base.as_str(),
    }
}

/// Numbers and completion times of the flows of a scenario that ended.
fn scenario_headline(findings: &Findings) -> String {
    let of = |id: &str| {
        let found = findings.metrics.iter().find(|(name, _)| name.split('.').next() == Some(id));
        found.map(|(_, estimate)| estimate.value)
    };
    let told = |id: &str, words: &str, unit: &str| {
        of(id).map(|value| format!(", {words} {}", table::quantity(value, unit))).unwrap_or_default()
    };
    let times = told("mean_fct_ms", "mean completion time", "ms")
        + &told("p99_fct_ms", "99th percentile", "ms")
        + &told("mean_slowdown", "mean slowdown", "ratio");
    let (all, ended) = (of("flows").unwrap_or_default(), of("flows_ended").unwrap_or_default());
    match () {
        () if all == 0.0 => "No flow was asked for.".to_owned(),
        () if all == 1.0 => format!("{} flow ended{times}.", if ended == 1.0 { "The one" } else { "No" }),
        () if all == ended => format!("All {all} flows ended{times}."),
        () => format!("{ended} of {all} flows ended{times}."),
    }
}

/// What a metric is, in words.
fn meaning<'a>(input: &Input<'a>, name: &'a str) -> &'a str {
    let asked = input.spec.metric_of(name).map(|(metric, _)| metric.meaning.as_str());
    asked.or_else(|| input.spec.analysis.meaning(name)).unwrap_or_default()
}

/// A figure for a template.
pub(crate) fn figure_value(figure: figure::Figure) -> Value {
    context! { title => figure.title, caption => figure.caption, svg => Value::from_safe_string(figure.svg) }
}

/// How to do it again: as it was called, or where only the plan matters, so that equal runs have equal pages, by the plan.
fn command_line(manifest: &Manifest) -> String {
    if !manifest.reproducible {
        return shell_words(&manifest.command_line);
    }
    let plan = manifest.plan_word();
    let file = Path::new(plan).file_name().filter(|_| plan.ends_with(".toml")).and_then(|name| name.to_str());
    shell_words(&manifest.command(file.unwrap_or(plan)))
}

/// Everything about a run that its folder holds, analysed anew.
struct Stored {
    manifest: Manifest,
    spec: PlanSpec,
    fabrics: Vec<Fabric>,
    trials: Vec<crate::analysis::TrialRecords>,
    database: Database,
}

impl Stored {
    fn read(folder: &Path) -> Result<Self, ReportError> {
        let path = folder.join("manifest.json");
        let manifest = Manifest::read(folder)?;
        let malformed = |message: &str| FolderError::Malformed { path: path.clone(), message: message.to_owned() };
        let spec = manifest.spec().map_err(|source| ReportError::Plan { folder: folder.to_owned(), source })?;
        let spec = spec.ok_or_else(|| malformed("its plan does not run on its engine"))?;
        if manifest.fabrics.len() != spec.points.len() {
            return Err(malformed("`fabrics` does not name a file for every point of the plan").into());
        }
        let fabrics = manifest.fabrics.iter().map(|file| read_fabric(folder, file)).collect::<Result<_, _>>()?;
        let trials = read_trials(&folder.join("records"), &spec.axes, spec.analysis.reads())?;
        let database = Database::with_spec(folder, &manifest.fabrics, &spec)?;
        Ok(Self { manifest, spec, fabrics, trials, database })
    }

    fn input(&self) -> Input<'_> {
        Input { spec: &self.spec, fabrics: &self.fabrics, trials: &self.trials, database: Some(&self.database) }
    }

    fn summary(&self, folder: &Path, findings: &Findings) -> Result<RunSummary, QueryError> {
        let cpu = cpu::told(&self.database, &self.trials)?;
        Ok(RunSummary { cpu, ..RunSummary::of(&self.spec, &self.manifest, findings, folder) })
    }
}

/// Draws the report of run folders from their records, without running anything. One folder: its `report.html` and
/// `summary.json` are written anew. Several: one page shows them side by side; it lies in the first folder.
pub fn redraw(folders: &[PathBuf]) -> Result<Redrawn, ReportError> {
    let stored = folders.iter().map(|folder| Stored::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let findings: Vec<Findings> = stored.iter().map(|run| run.input().spec.analysis.run(&run.input())).collect();
    let summaries: Vec<RunSummary> = stored
        .iter()
        .zip(folders)
        .zip(&findings)
        .map(|((run, folder), findings)| run.summary(folder, findings))
        .collect::<Result<_, _>>()?;
    let runs: Vec<Run<'_>> = stored
        .iter()
        .zip(&summaries)
        .zip(&findings)
        .zip(folders)
        .map(|(((run, summary), findings), folder)| {
            let (link_base, files) = (link_base(&folders[0], folder), record_files(&folder.join("records"))?);
            // Of several runs only the page of all is written.
            let replays = match folders.len() {
                1 => page::written(folder, &run.spec, &run.fabrics)?,
                _ => page::found(folder, &run.spec, &run.fabrics)?,
            };
            let (manifest, input) = (&run.manifest, run.input());
            Ok(Run { summary, manifest, input, findings, files, link_base, replays })
        })
        .collect::<Result<_, ReportError>>()?;
    let page = render_beside(&runs, difference(folders, &stored)?)?;
    let (Some(first), Some(summary)) = (folders.first(), summaries.first()) else { return Err(ReportError::Nothing) };
    let path = first.join(if folders.len() == 1 { "report.html" } else { SIDE_BY_SIDE });
    write_synced(&path, &page)?;
    if folders.len() == 1 {
        let json = serde_json::to_string_pretty(summary)
            .map_err(|error| FolderError::Malformed { path: first.join("summary.json"), message: error.to_string() })?;
        write_synced(&first.join("summary.json"), &format!("{json}\n"))?;
    }
    Ok(Redrawn { page: path, summaries })
}

/// Two runs on one network, the second minus the first, at the first place of their sweeps.
fn difference(folders: &[PathBuf], stored: &[Stored]) -> Result<Option<figure::Figure>, ReportError> {
    let ([one, other], [first, second]) = (folders, stored) else { return Ok(None) };
    let Some(fabric) = first.fabrics.first().filter(|fabric| second.fabrics.first() == Some(fabric)) else {
        return Ok(None);
    };
    let trials = |folder: &Path, run: &Stored| {
        let (records, axes) = (folder.join("records"), &run.spec.axes);
        let first = read_keys(&records, axes)?.into_iter().next();
        let setting = |key: &TrialKey| (key.point.clone(), key.workload.clone(), key.overlay);
        let wanted = move |key: &TrialKey| first.as_ref().is_some_and(|first| setting(first) == setting(key));
        read_some_trials(&records, axes, &[LinkRow::KIND], &wanted)
    };
    Ok(page::difference::drawn(fabric, &trials(one, first)?, &trials(other, second)?))
}

/// What [`redraw`] made.
#[derive(Clone, Debug)]
pub struct Redrawn {
    pub page: PathBuf,
    /// The claims of each folder's run, judged anew.
    pub summaries: Vec<RunSummary>,
}

/// From the page in the first folder to another folder: beside it where both have one parent, else its full path.
fn link_base(first: &Path, folder: &Path) -> String {
    let full = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (first, folder) = (full(first), full(folder));
    match folder.file_name() {
        _ if folder == first => String::new(),
        Some(name) if folder.parent() == first.parent() => format!("../{}/", name.to_string_lossy()),
        _ => format!("{}/", folder.display()),
    }
}
