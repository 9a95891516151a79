//! Runs and measurements over builds or kernels: what each group of them read, and where that changed.
//!
//! The repetitions within one run share its machine's mood, so its interval says nothing of what differs from run to run. A change
//! is therefore told by runs alone: the ratio of the mean of one group over that of the group before, with an interval by the
//! delta method (Student's quantile, degrees of freedom of Welch). It is one if the interval leaves out 1 and the ratio is at
//! least so far from it as is asked. The interval's coverage is such that one comparison of two equal groups marks anything with a
//! probability of [`FALSE_ALARM`] at most, over all metrics together (Bonferroni). A group of one run has no spread, so nothing
//! is said of it.

mod read;

use std::path::PathBuf;

use serde::Serialize;
use weft_scenario::judge::Relation;

pub use read::read;

use crate::measurement::Reading;
use crate::stats;

/// How often a comparison of two equal groups marks a change somewhere.
pub const FALSE_ALARM: f64 = 0.001;

/// What makes runs a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One program: version, revision and digest.
    #[default]
    Build,
    Kernel,
    /// The folder that their folders lie in.
    Folder,
}

/// A run or measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub folder: PathBuf,
    /// What was measured; only the same is held together.
    pub subject: String,
    /// When it began; groups stand in the order of their first.
    pub started_utc: String,
    pub build: String,
    pub kernel: String,
    pub readings: Vec<Reading>,
}

impl Point {
    fn group(&self, by: By) -> String {
        match by {
            By::Build => self.build.clone(),
            By::Kernel => self.kernel.clone(),
            By::Folder => {
                let parent = self.folder.parent().filter(|parent| !parent.as_os_str().is_empty());
                parent.map_or_else(|| ".".to_owned(), |parent| parent.display().to_string())
            }
        }
    }
}

/// Whether a group reads something else than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Better,
    Worse,
    /// Another number, of which neither side is good.
    Other,
    /// Nothing that the runs show.
    None,
    /// One of the two groups has a single run.
    Unknown,
}

impl Change {
    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Other => "changed",
            Self::None => "-",
            Self::Unknown => "?",
        }
    }
}

/// What one group of runs reads for one metric.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Row {
    pub subject: String,
    pub metric: String,
    /// The build, kernel or folder.
    pub group: String,
    pub runs: usize,
    /// Mean of the runs.
    pub value: f64,
    pub unit: String,
    /// Of the mean, 95 % by Student's t; of a single run the interval that it has itself.
    pub interval: Option<[f64; 2]>,
    /// The value / that of the group before; `null` for the first, and over 0.
    pub over_before: Option<f64>,
    /// Interval of that ratio, of the coverage that decides.
    pub over_before_interval: Option<[f64; 2]>,
    /// `null` for the first group.
    pub change: Option<Change>,
}

/// The series of every metric, in the order of the first run that has it.
pub fn rows(points: &[Point], by: By, least: f64) -> Vec<Row> {
    let mut points: Vec<&Point> = points.iter().collect();
    points.sort_by(|one, other| one.started_utc.cmp(&other.started_utc));
    let subjects = in_order(points.iter().map(|point| point.subject.as_str()));
    subjects.into_iter().flat_map(|subject| of_subject(&points, subject, by, least)).collect()
}

fn of_subject(points: &[&Point], subject: &str, by: By, least: f64) -> Vec<Row> {
    let points: Vec<&Point> = points.iter().copied().filter(|point| point.subject == subject).collect();
    let names: Vec<String> = points.iter().map(|point| point.group(by)).collect();
    let groups = in_order(names.iter().map(String::as_str));
    let metrics = in_order(points.iter().flat_map(|point| &point.readings).map(|reading| reading.id.as_str()));
    let confidence = 1.0 - FALSE_ALARM / metrics.len().max(1) as f64;
    let mut rows = Vec::new();
    for metric in metrics {
        let mut before: Option<Vec<f64>> = None;
        for group in &groups {
            let find = |point: &'_ Point| point.readings.iter().find(|reading| reading.id == metric).cloned();
            let of_group = points.iter().zip(&names).filter(|(_, name)| name == group).map(|(point, _)| *point);
            let readings: Vec<Reading> = of_group.filter_map(find).collect();
            let values: Vec<f64> = readings.iter().map(|reading| reading.value).collect();
            let (Some(first), Some(value)) = (readings.first(), stats::mean(&values)) else { continue };
            let spread = stats::mean_interval(&values).map(|interval| [interval.low, interval.high]);
            let compared = before.as_ref().map(|before| compare(&values, before, first.relation, confidence, least));
            rows.push(Row {
                subject: subject.to_owned(),
                metric: metric.to_owned(),
                group: (*group).to_owned(),
                runs: values.len(),
                value,
                unit: first.unit.clone(),
                interval: spread.or(first.interval.filter(|_| values.len() == 1)),
                over_before: compared.as_ref().and_then(|compared| compared.ratio),
                over_before_interval: compared.as_ref().and_then(|compared| compared.interval),
                change: compared.map(|compared| compared.change),
            });
            before = Some(values);
        }
    }
    rows
}

struct Compared {
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    change: Change,
}

fn compare(after: &[f64], before: &[f64], relation: Relation, confidence: f64, least: f64) -> Compared {
    let means = stats::mean(after).zip(stats::mean(before)).filter(|(_, before)| *before > 0.0);
    let ratio = means.map(|(after, before)| after / before);
    let Some((ratio, (_, interval))) = ratio.zip(stats::ratio_of_means_at(after, before, confidence)) else {
        // Nothing is over 0: what was 0 in all runs and no longer is has changed.
        let is_whole = after.len() > 1 && before.len() > 1 && before.iter().all(|value| *value == 0.0);
        let change = match after.iter().filter(|value| **value != 0.0).count() {
            _ if !is_whole => Change::Unknown,
            0 => Change::None,
            some if some == after.len() => of_side(relation, after[0] > 0.0),
            _ => Change::None,
        };
        return Compared { ratio, interval: None, change };
    };
    let away = (ratio - 1.0).abs();
    let change = match away >= least && (interval.low > 1.0 || interval.high < 1.0) {
        true => of_side(relation, ratio > 1.0),
        false => Change::None,
    };
    Compared { ratio: Some(ratio), interval: Some([interval.low, interval.high]), change }
}

fn of_side(relation: Relation, is_more: bool) -> Change {
    match (relation, is_more) {
        (Relation::AtLeast, true) | (Relation::AtMost, false) => Change::Better,
        (Relation::AtLeast, false) | (Relation::AtMost, true) => Change::Worse,
        (Relation::Info, _) => Change::Other,
    }
}

/// Each name once, as it comes.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.fold(Vec::new(), |mut seen, name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
        seen
    })
}

#[cfg(test)]
mod tests;
