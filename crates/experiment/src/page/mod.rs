//! The fabric page: one offline HTML file on which a trial is replayed, beside the report.
//!
//! * [`choice`]: which trials have one; [`written`] writes them
//! * [`document`]: what the page shows, from a fabric and a trial's rows; [`picture`] folds large fabrics, [`layout`] says where nodes stand, [`chunk`] what happened when,
//!   `flows` where some of them go and why
//! * `page.html`, `page.css`, `js/`: the page itself; `vendor/`: its libraries, fetched by `scripts/page/vendor.sh`
//!
//! The page reads a document and can take more chunks of the same shape later: a live source needs no other renderer.

pub mod choice;
pub mod chunk;
pub(crate) mod difference;
pub mod document;
mod events;
mod flows;
pub mod layout;
pub mod live;
pub mod picture;

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minijinja::{Environment, Value, context};
use sha2::{Digest, Sha256};
use weft_scenario::record::{DaemonRow, EventRow, LinkRow, MigrationRow, ReplayRow, RowKind, WayRow, WindowRow};
use weft_scenario::topology::Fabric;

use crate::analysis::{TrialKey, TrialRecords};
use crate::plan::{Axis, PlanSpec};
use crate::report::ReportError;
use crate::run_folder::{read_keys, read_some_trials, write_synced};
use document::Document;

/// The rows that a page is made of.
pub const READS: &[RowKind] = &[
    ReplayRow::KIND,
    DaemonRow::KIND,
    LinkRow::KIND,
    EventRow::KIND,
    MigrationRow::KIND,
    WayRow::KIND,
    WindowRow::KIND,
];

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = concat!(include_str!("vendor/uPlot.min.css"), "\n", include_str!("page.css"));
/// Libraries first, then our own in the order in which they need each other.
const SCRIPT: &str = concat!(
    include_str!("vendor/d3-dispatch.min.js"),
    include_str!("vendor/d3-selection.min.js"),
    include_str!("vendor/d3-drag.min.js"),
    include_str!("vendor/d3-color.min.js"),
    include_str!("vendor/d3-interpolate.min.js"),
    include_str!("vendor/d3-timer.min.js"),
    include_str!("vendor/d3-ease.min.js"),
    include_str!("vendor/d3-transition.min.js"),
    include_str!("vendor/d3-zoom.min.js"),
    include_str!("vendor/uPlot.iife.min.js"),
    "\n",
    include_str!("js/words.js"),
    include_str!("js/model.js"),
    include_str!("js/palette.js"),
    include_str!("js/geometry.js"),
    include_str!("js/painter.js"),
    include_str!("js/view.js"),
    include_str!("js/timeline.js"),
    include_str!("js/plots.js"),
    include_str!("js/lists.js"),
    include_str!("js/follow.js"),
    include_str!("js/live.js"),
    include_str!("js/main.js"),
);

/// A page beside the report.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shown {
    /// Its file in the run folder.
    pub file: String,
    /// Which trial it is, in words.
    pub label: String,
}

/// What a report says of pages: where they are, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Replays {
    pub pages: Vec<Shown>,
    /// One sentence, where a network is too large for a page.
    pub note: Option<String>,
}

impl Replays {
    /// A line with the first page of a run folder, and how many more there are.
    pub fn line(&self, folder: &Path) -> Option<String> {
        let first = folder.join(&self.pages.first()?.file);
        let more = match self.pages.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("watch: {}{more}", first.display()))
    }
}

/// The page of a document. Text of people is nowhere but in its title and in the document, escaped.
pub fn render(document: &Document) -> Result<String, ReportError> {
    let data = serde_json::to_string(document).expect("a document is plain data").replace('<', "\\u003c");
    rendered(&document.title, &document.subtitle, &data, false)
}

/// The page of a network that runs: it asks whoever served it for the document, and for what comes next.
pub fn render_live() -> Result<String, ReportError> {
    rendered("A lab", "", "null", true)
}

fn rendered(title: &str, subtitle: &str, data: &str, live: bool) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_template("page", TEMPLATE)?;
    let safe = |text: &str| Value::from_safe_string(text.to_owned());
    let (style, script) = (format!("\n{STYLE}"), format!("\n{SCRIPT}"));
    Ok(environment.get_template("page")?.render(context! {
        title => title, subtitle => subtitle, live => live,
        style_digest => safe(&digest(&style)), script_digest => safe(&digest(&script)),
        style => safe(&style), script => safe(&script), document => safe(data),
    })?)
}

/// As a policy names what it allows.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Writes the pages of the trials in a run folder that should have one.
pub fn written(folder: &Path, spec: &PlanSpec, fabrics: &[Fabric]) -> Result<Replays, ReportError> {
    let Chosen { trials, note } = Chosen::of(folder, spec, fabrics)?;
    let mut replays = Replays { pages: Vec::new(), note };
    if trials.is_empty() {
        return Ok(replays);
    }
    let records = folder.join("records");
    let wanted = |key: &TrialKey| trials.iter().any(|one| one.trial == key.trial);
    for trial in read_some_trials(&records, &spec.axes, READS, &wanted)? {
        let point = spec.points.iter().zip(fabrics).find(|(point, _)| point.labels == trial.key.point);
        let Some((point, fabric)) = point else { continue };
        let own = PlanSpec { runs_on: spec.runs_on.clone(), ..point.spec.clone() };
        replays.pages.extend(one(folder, &own, &spec.axes, fabric, &trial)?);
    }
    Ok(replays)
}

/// The pages of a run folder that are there.
pub fn found(folder: &Path, spec: &PlanSpec, fabrics: &[Fabric]) -> Result<Replays, ReportError> {
    let Chosen { trials, note } = Chosen::of(folder, spec, fabrics)?;
    let shown = |key: &TrialKey| Shown { file: file(key), label: document::label(&spec.axes, key) };
    let pages = trials.iter().map(shown).filter(|shown| folder.join(&shown.file).is_file()).collect();
    Ok(Replays { pages, note })
}

/// Trials of a run that should have a page.
struct Chosen {
    trials: Vec<TrialKey>,
    note: Option<String>,
}

impl Chosen {
    fn of(folder: &Path, spec: &PlanSpec, fabrics: &[Fabric]) -> Result<Self, ReportError> {
        let records = folder.join("records");
        // Nothing is missed where nothing is said about links, as by a calculation.
        let has_links = [LinkRow::KIND, ReplayRow::KIND].iter().any(|kind| records.join(kind.file()).is_file());
        if !(spec.sampling.replay && has_links) {
            return Ok(Self { trials: Vec::new(), note: None });
        }
        let keys = read_keys(&records, &spec.axes)?;
        let place = |key: &TrialKey| spec.points.iter().position(|point| point.labels == key.point);
        let fabric = |key: &TrialKey| fabrics.get(place(key)?);
        let chosen = choice::chosen(keys.iter().filter_map(|key| Some((key, fabric(key)?))));
        let note = choice::note(fabrics.iter());
        Ok(Self { trials: keys.into_iter().filter(|key| chosen.contains(&key.trial)).collect(), note })
    }
}

/// The file of a trial's page.
fn file(key: &TrialKey) -> String {
    format!("replay-{}.html", key.trial)
}

/// Writes the page of one trial if its rows say anything about links over time.
pub fn one(
    folder: &Path,
    spec: &PlanSpec,
    axes: &[Axis],
    fabric: &Fabric,
    trial: &TrialRecords,
) -> Result<Option<Shown>, ReportError> {
    let Some(document) = Document::of(spec, axes, fabric, trial) else { return Ok(None) };
    let file = file(&trial.key);
    write_synced(&folder.join(&file), &render(&document)?)?;
    Ok(Some(Shown { file, label: document.label }))
}

#[cfg(test)]
mod tests;
