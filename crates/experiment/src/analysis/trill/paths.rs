//! How flows spread over the next hops, and whether each stays in order.

use weft_scenario::record::CrossingRow;
use weft_scenario::workload::trill::{CrossingSpec, Way};

use super::{Metric, crossings};
use crate::analysis::trials::put_empty;
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;

/// A path with less than this share carries no flow: spanning tree's own messages.
const USED: f64 = 0.01;

/// What this analysis yields, with the way behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "share_error",
        meaning: "largest difference of a path's share of frames from an even one, over the even one",
    },
    MetricInfo { name: "paths_used", meaning: "paths that carry more than 1 % of the frames" },
    MetricInfo { name: "reordered", meaning: "frames that arrived after a later one of their flow" },
    MetricInfo { name: "lost", meaning: "frames that did not arrive" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-paths", &["crossing"])?;
    match spec.workload.len() {
        1 => Ok(()),
        _ => Err("analysis `trill-paths` takes one workload".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    super::names_of(&metrics(spec))
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = super::estimates(input, &metrics(input.spec));
    put_empty(&mut findings, input, |trial| trial.records.path_shares.is_empty());
    let ways: Vec<Way> = crossings(input.spec).flat_map(|(_, spec)| spec.ways.clone()).collect();
    let row = |(trial, way): (&TrialRecords, Way)| {
        let shares = shares(trial, way).unwrap_or_default();
        let text: Vec<String> =
            shares.iter().map(|(switch, share)| format!("{switch} {:.1} %", share * 100.0)).collect();
        vec![trial.key.repetition.to_string(), way.name().to_owned(), text.join(", ")]
    };
    let rows = input.trials.iter().flat_map(|trial| ways.iter().map(move |way| (trial, *way))).map(row).collect();
    let headings = ["repetition", "way", "share of frames"].map(str::to_owned).to_vec();
    findings.tables.push(Table { title: "Shares of the paths".into(), headings, rows });
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    crossings(spec).flat_map(|(workload, spec)| of_workload(workload, spec)).collect()
}

fn of_workload<'a>(workload: &'a str, spec: &'a CrossingSpec) -> Vec<Metric<'a>> {
    let each = spec.ways.iter().flat_map(move |way| {
        let name = |metric: &str| format!("{metric}.{}", way.name());
        [
            Metric::new(name("share_error"), workload, move |trial| {
                let shares = shares(trial, *way)?;
                let paths = shares.len() as f64;
                shares.iter().map(|(_, share)| (share * paths - 1.0).abs()).reduce(f64::max)
            }),
            Metric::new(name("paths_used"), workload, move |trial| {
                Some(shares(trial, *way)?.iter().filter(|(_, share)| *share > USED).count() as f64)
            }),
            Metric::new(name("reordered"), workload, move |trial| sum(trial, *way, |row| row.reordered_frames)),
            Metric::new(name("lost"), workload, move |trial| {
                sum(trial, *way, |row| row.sent_frames.saturating_sub(row.received_frames))
            }),
        ]
    });
    each.collect()
}

fn sum(trial: &TrialRecords, way: Way, of: impl Fn(&CrossingRow) -> u64) -> Option<f64> {
    let rows: Vec<u64> = trial.records.crossings.iter().filter(|row| row.way == way.name()).map(of).collect();
    (!rows.is_empty()).then(|| rows.iter().sum::<u64>() as f64)
}

/// Every middle switch with its share of all frames of a trial, in order of their names.
pub fn shares(trial: &TrialRecords, way: Way) -> Option<Vec<(String, f64)>> {
    let mut frames = std::collections::BTreeMap::<&str, u64>::new();
    for row in trial.records.path_shares.iter().filter(|row| row.way == way.name()) {
        *frames.entry(&row.switch).or_default() += row.frames;
    }
    let all = frames.values().sum::<u64>();
    let share = |(switch, frames): (&str, u64)| (switch.to_owned(), frames as f64 / all as f64);
    (all > 0).then(|| frames.into_iter().map(share).collect())
}
