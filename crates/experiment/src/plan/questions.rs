//! What a plan asks of its rows, in SQL ([`crate::query`] has the tables).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde::Deserialize;

use super::PlanSpec;
use super::error::Problem;
use crate::metric::Limit;
use crate::query::{self, Database, QueryError};

/// A table of the plan's own that its questions share.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct View {
    pub id: String,
    /// What a row is.
    #[serde(default)]
    pub about: String,
    /// The question whose answer it is; it may ask views before it.
    pub sql: String,
}

/// A metric: every row of the answer is a sample in its column `value`; the columns before that name the place, which stands behind
/// the metric's name (`delivered.stp.512`). The estimate of a place is the median of its samples. A column `n` behind says how many
/// samples a value rests on that is all there is of its place; a last column `limited_by` says what limited it, and the worst of a place
/// counts.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricQuestion {
    pub id: String,
    /// What it is, with its denominator.
    pub meaning: String,
    /// Unit of its values: `ms`, `bit/s`, `ratio`. Without it the last word of the name is one: `p99_fct_ms`.
    #[serde(default)]
    pub unit: Option<String>,
    pub sql: String,
    /// What limits it on a machine with cores to spare.
    #[serde(default = "link")]
    pub limited_by: Limit,
    /// What limits it where the CPU of the machine was the bottleneck.
    #[serde(default = "cpu")]
    pub when_busy: Limit,
    /// Whether it has no spread, as a count of what must not be: then one sample is enough to judge. What is computed has none.
    #[serde(default)]
    pub exact: bool,
}

/// What makes a run worthless: every row of the answer is a sentence.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemQuestion {
    pub id: String,
    /// Whether the fabric did not do what was asked, or the run was not what the plan describes.
    pub verdict: ProblemVerdict,
    pub sql: String,
}

/// What could be wrong with a network, as a change of the rows that it would have: claims name the one that makes them fail
/// (`fails_when`), and a test holds them to it.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// What is wrong, in words.
    pub id: String,
    /// Statements that change rows (`update`, `insert`, `delete`), each up to a `;`.
    pub sql: String,
}

/// What a problem does to the claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemVerdict {
    /// They fail.
    Fail,
    /// They are inconclusive.
    Inconclusive,
}

/// A table of the report: the answer as it is.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableQuestion {
    pub id: String,
    /// Its heading.
    pub title: String,
    pub sql: String,
}

/// A figure of the report; a column `figure` makes one for each of its values.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureQuestion {
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What is drawn.
    #[serde(default)]
    pub caption: String,
    /// How it is drawn, and so which columns the answer has.
    pub kind: FigureKind,
    /// Name and unit of the x axis.
    pub x: String,
    /// Name and unit of the y axis, where there is one.
    #[serde(default)]
    pub y: String,
    /// The axis of the values begins here.
    pub low: Option<f64>,
    /// Axes on which equal distances are equal ratios; the answer holds the values themselves, above 0.
    pub log: Option<LogAxes>,
    pub sql: String,
    /// Values to compare with: `label`, `value`.
    pub levels: Option<String>,
    /// Stretches of x that are shaded: `label`, `low`, `high`; with a column `figure` in the figure of this name.
    pub spans: Option<String>,
}

/// Which axes of a figure are logarithmic; the one of bars and dots is `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogAxes {
    X,
    Y,
    Both,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Lines: `series`, `x`, `y`; with `low` and `high` a band.
    Lines,
    /// A bar for each row: `label`, `value`, and `tick` for a second value.
    Bars,
    /// A dot for each row: `label`, `value`, and its interval where it is an estimate.
    Dots,
    /// A cell for each row: its place `x` and `y`, whether something `holds` there (1, 0, or null: undecided), and `text`.
    Map,
}

impl FigureKind {
    /// The columns that it cannot do without.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Lines => &["series", "x", "y"],
            Self::Bars | Self::Dots => &["label", "value"],
            Self::Map => &["x", "y", "holds", "text"],
        }
    }
}

fn link() -> Limit {
    Limit::Link
}

fn cpu() -> Limit {
    Limit::Cpu
}

/// The column with the samples.
const VALUE: &str = "value";
/// The column with their number.
pub(crate) const COUNT: &str = "n";
/// The column with what limited them.
pub(crate) const LIMIT: &str = "limited_by";

impl MetricQuestion {
    /// The columns that name the place. An error if the samples are not the last.
    pub(crate) fn places(&self, mut columns: Vec<String>) -> Result<Vec<String>, String> {
        columns.pop_if(|last| last == LIMIT);
        columns.pop_if(|last| last == COUNT);
        match columns.pop_if(|last| last == VALUE) {
            Some(_) => Ok(columns),
            None => Err(format!(
                "its last column must be `{VALUE}`, with `{COUNT}` and `{LIMIT}` behind it where it has them; it has: {}",
                columns.join(", ")
            )),
        }
    }
}

impl MetricQuestion {
    /// The unit of its values; empty where nobody says one.
    pub fn unit(&self) -> &str {
        const LAST_WORDS: [(&str, &str); 9] = [
            ("ns", "ns"),
            ("us", "us"),
            ("ms", "ms"),
            ("s", "s"),
            ("bps", "bit/s"),
            ("pps", "frames/s"),
            ("bytes", "B"),
            ("percent", "%"),
            ("ratio", "ratio"),
        ];
        let last = self.id.rsplit_once('_').map_or("", |(_, last)| last);
        let of_name = LAST_WORDS.iter().find(|(word, _)| *word == last).map_or("", |(_, unit)| *unit);
        self.unit.as_deref().unwrap_or(of_name)
    }
}

impl PlanSpec {
    /// Whether the plan asks itself.
    pub fn asks(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// The metric that a name belongs to, and the place behind it.
    pub fn metric_of<'a>(&self, name: &'a str) -> Option<(&MetricQuestion, &'a str)> {
        let rest = |metric: &MetricQuestion| match name.strip_prefix(metric.id.as_str())? {
            "" => Some(""),
            rest => rest.strip_prefix('.'),
        };
        let found = self.metrics.iter().filter_map(|metric| Some((metric, rest(metric)?)));
        found.max_by_key(|(metric, _)| metric.id.len())
    }
}

/// Questions that are none, on tables without rows.
pub(super) fn check(spec: &PlanSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, metric) in spec.metrics.iter().enumerate() {
        if !seen.insert(&metric.id) {
            let message = format!("two metrics are called `{}`", metric.id);
            problems.push(Problem::of("metrics", &number.to_string(), "id", message));
        }
    }
    let database = match Database::empty(spec) {
        Ok(database) => database,
        Err(error) => {
            problems.push(view_at(spec, &error));
            return problems;
        }
    };
    let mut places = BTreeMap::new();
    for metric in &spec.metrics {
        let columns = database.columns(&metric.sql).map_err(|error| error.to_string());
        match columns.and_then(|columns| metric.places(columns)) {
            Ok(of_place) => drop(places.insert(metric.id.as_str(), of_place)),
            Err(error) => problems.push(wrong("metric", &metric.id, "sql", &error)),
        }
    }
    for claim in &spec.claims {
        for (key, name) in claim.metrics_by_key() {
            // Of a metric whose question is none that is said already.
            if spec.metric_of(name).is_some_and(|(metric, _)| !places.contains_key(metric.id.as_str())) {
                continue;
            }
            if let Err((error, axis)) = check_name(spec, &places, name) {
                let names = if name == claim.id { String::new() } else { format!(" names `{name}`") };
                let message = format!("claim `{}`{names}: {error}", claim.id);
                problems.push(Problem { axis, ..Problem::of("claims", &claim.id, key, message) });
            }
        }
    }
    let asked = |what: &'static str, id: &str, sql: &str| {
        database.columns(sql).map_err(|error| wrong(what, id, "sql", &error)).err()
    };
    problems.extend(spec.problems.iter().filter_map(|problem| asked("problem", &problem.id, &problem.sql)));
    problems.extend(spec.tables.iter().filter_map(|table| asked("table", &table.id, &table.sql)));
    let changed = |mutation: &Mutation| {
        database.check_change(&mutation.sql).map_err(|error| wrong("mutation", &mutation.id, "sql", &error)).err()
    };
    problems.extend(spec.mutations.iter().filter_map(changed));
    problems.extend(spec.figures.iter().filter_map(|figure| check_figure(&database, figure).err()));
    problems
}

fn check_figure(database: &Database, figure: &FigureQuestion) -> Result<(), Problem> {
    let needs = |key: &str, sql: &str, wanted: &[&str]| {
        let columns = database.columns(sql).map_err(|error| wrong("figure", &figure.id, key, &error))?;
        match wanted.iter().find(|name| !columns.iter().any(|column| column == *name)) {
            Some(name) => {
                let message = format!("figure `{}` needs a column `{name}`", figure.id);
                Err(Problem::of("figures", &figure.id, key, message))
            }
            None => Ok(()),
        }
    };
    needs("sql", &figure.sql, figure.kind.columns())?;
    figure.levels.as_deref().map_or(Ok(()), |sql| needs("levels", sql, &["label", "value"]))?;
    figure.spans.as_deref().map_or(Ok(()), |sql| needs("spans", sql, &["label", "low", "high"]))
}

/// Whether a metric of this name may come out of the plan's questions, whose places are given. What stands behind its name must be
/// there somewhere: a place of an axis, a workload, an overlay, a node of a fabric, or a value or word of the plan. An error says why, and
/// of which axis the place is.
fn check_name(
    spec: &PlanSpec,
    places: &BTreeMap<&str, Vec<String>>,
    name: &str,
) -> Result<(), (String, Option<String>)> {
    let Some((metric, place)) = spec.metric_of(name) else {
        let known: Vec<&str> = places.keys().copied().collect();
        let advice = super::meant::did_you_mean(name.split('.').next().unwrap_or(name), &known);
        let advice = advice.unwrap_or_else(|| match known.as_slice() {
            [] => "it asks none; add `questions = \"flow-summary\"`, or [[metrics]] of its own".to_owned(),
            _ => format!("it has: {}", known.join(", ")),
        });
        return Err((format!("the plan has no such metric; {advice}"), None));
    };
    let columns = &places[metric.id.as_str()];
    let parts: Vec<&str> =
        if place.is_empty() { Vec::new() } else { place.splitn(columns.len().max(1), '.').collect() };
    if parts.len() != columns.len() {
        let whole = std::iter::once(&metric.id).chain(columns).cloned().collect::<Vec<_>>().join(".");
        return Err((format!("the metric's name is `{whole}`"), None));
    }
    let Some((part, column)) = parts.iter().zip(columns).find(|(part, column)| !is_known(spec, column, part)) else {
        return Ok(());
    };
    let axis = spec.axes.iter().find(|axis| axis.name == *column).map(|axis| axis.name.clone());
    let there = places_of(spec, column).filter(|there| !there.is_empty());
    let there = there.map_or_else(String::new, |there| format!("; it has: {}", there.join(", ")));
    Err((format!("the plan has nothing called `{part}` for `{column}`{there}"), axis))
}

/// The places that the plan lists for a column of a metric's name; `None` if the column's values come out of rows.
fn places_of(spec: &PlanSpec, column: &str) -> Option<Vec<String>> {
    if spec.axes.iter().any(|axis| axis.name == column) {
        return Some(spec.labels_of(column).to_vec());
    }
    let points = || spec.points.iter().map(|point| &point.spec);
    let names: BTreeSet<String> = match column {
        "overlay" => points().flat_map(|spec| &spec.overlays).map(|overlay| overlay.name().to_owned()).collect(),
        "workload" => points().flat_map(|spec| spec.workload.keys().cloned()).collect(),
        _ => return None,
    };
    Some(names.into_iter().collect())
}

fn is_known(spec: &PlanSpec, column: &str, part: &str) -> bool {
    if let Some(there) = places_of(spec, column) {
        return there.iter().any(|place| place == part);
    }
    match column {
        "switch" => spec.build_fabrics().is_ok_and(|all| all.iter().any(|fabric| fabric.find(part).is_some())),
        _ => {
            let shared = query::derived::views(spec.measured.as_deref());
            let views = spec.views.iter().map(|view| view.sql.as_str());
            let metrics = spec.metrics.iter().map(|metric| metric.sql.as_str());
            let own = views.chain(metrics).chain(spec.tables.iter().map(|table| table.sql.as_str()));
            let mut texts = shared.iter().map(|(_, sql)| sql.as_str()).chain(own);
            let is_number = |text: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == part);
            let is_word =
                |text: &str| text.contains(&format!("'{part}'")) || (part.parse::<u64>().is_ok() && is_number(text));
            let mut settings = spec.points.iter().flat_map(|point| &point.settings);
            texts.any(is_word) || settings.any(|(_, value)| value.to_string() == part)
        }
    }
}

/// What is wrong with the statement at a key of a question of a kind: `metric`, `problem`, `table`, `mutation`, `figure`.
fn wrong(what: &str, id: &str, key: &str, error: &dyn Display) -> Problem {
    Problem::of(&format!("{what}s"), id, key, format!("{what} `{id}`: {error}"))
}

/// A view's error names it.
fn view_at(spec: &PlanSpec, error: &QueryError) -> Problem {
    let text = error.to_string();
    let to_blame = spec.views.iter().find(|view| text.starts_with(&format!("view `{}`", view.id)));
    match to_blame {
        Some(view) => Problem::of("views", &view.id, "sql", text),
        None => Problem::new(text, "measured"),
    }
}
