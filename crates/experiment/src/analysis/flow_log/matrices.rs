//! How the traffic between racks changes (VL2 3.3, Figure 4): how well few matrices stand for all, how long the traffic
//! stays with one of the best clusters, and after what time it comes back to one.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_scenario::record::{FittingRow, FlowSizeRow, MatrixRow, Records};

use super::LogQuestion;
use crate::analysis::MetricInfo;
use crate::metric::Table;
use crate::stats;

/// A knee is looked for up to this share of all matrices: few clusters that stand for many.
const KNEE_WITHIN: usize = 4;
/// Percentile of the run lengths that the paper names.
const RUN_PERCENTILE: f64 = 0.6;
/// Numbers of clusters in the report's table.
const LISTED: [u32; 12] = [1, 2, 5, 10, 12, 20, 40, 50, 60, 80, 120, 200];

/// What this analysis yields; each for every workload, `METRIC.WORKLOAD`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "fitting_error_50", meaning: "with 50 clusters, what representatives hold and matrices do not" },
    MetricInfo { name: "fitting_error_60", meaning: "the same with 60 clusters" },
    MetricInfo { name: "excess_60", meaning: "with 60 clusters, the same difference over what the matrices hold" },
    MetricInfo { name: "gain_60_to_120", meaning: "by what share the error falls from 60 to 120 clusters" },
    MetricInfo { name: "knee", meaning: "number of clusters at which the error falls by the largest factor" },
    MetricInfo { name: "knee_factor", meaning: "that factor: error with one cluster less / error" },
    MetricInfo { name: "error_at_knee", meaning: "the error there" },
    MetricInfo { name: "run_length_p60", meaning: "intervals in one of the best clusters, 60th percentile of runs" },
    MetricInfo { name: "changes", meaning: "share of intervals whose cluster is not that of the interval before" },
    MetricInfo { name: "repeat_mode", meaning: "the most common time until a cluster returns, in intervals" },
    MetricInfo {
        name: "repeat_peak",
        meaning: "share of the most common time until a return, of those above 1 interval",
    },
];

/// The question of a plan.
pub(crate) const QUESTION: LogQuestion = LogQuestion {
    name: "traffic-matrices",
    metrics: METRICS,
    reads: &[FlowSizeRow::KIND, MatrixRow::KIND, FittingRow::KIND],
    by_workload: true,
    summary: |records| serde_json::to_value(MatrixSummary::of(records)),
    beyond: None,
    table: Some(table),
};

/// The numbers of one log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixSummary {
    pub matrices: usize,
    /// Pairs of racks that talk in an interval, mean.
    pub mean_pairs: Option<f64>,
    /// See [`METRICS`]; `None` with fewer matrices than clusters.
    pub fitting_error_50: Option<f64>,
    /// See [`METRICS`].
    pub fitting_error_60: Option<f64>,
    /// See [`METRICS`].
    pub excess_60: Option<f64>,
    /// See [`METRICS`].
    pub gain_60_to_120: Option<f64>,
    /// See [`METRICS`].
    pub knee: Option<u32>,
    /// See [`METRICS`].
    pub knee_factor: Option<f64>,
    /// See [`METRICS`].
    pub error_at_knee: Option<f64>,
    /// See [`METRICS`].
    pub run_length_p60: Option<f64>,
    /// See [`METRICS`].
    pub changes: Option<f64>,
    /// See [`METRICS`].
    pub repeat_mode: Option<u32>,
    /// See [`METRICS`].
    pub repeat_peak: Option<f64>,
}

impl MatrixSummary {
    /// Of a log's records.
    pub fn of(records: &Records) -> Self {
        let at = |clusters: u32| records.fitting.get(clusters as usize - 1);
        let error = |clusters: u32| at(clusters).map(|row| row.error_ratio);
        let clusters = clusters(records);
        let runs: Vec<f64> = run_lengths(&clusters).into_iter().map(f64::from).collect();
        let repeats = repeats(&clusters);
        let later: u32 = repeats.iter().filter(|(time, _)| **time > 1).map(|(_, count)| count).sum();
        let peak = repeats.iter().filter(|(time, _)| **time > 1).map(|(_, count)| *count).max();
        let pairs: Vec<f64> = records.matrices.iter().map(|row| f64::from(row.pairs)).collect();
        let knee = knee(&records.fitting);
        let most = repeats.iter().max_by_key(|(time, count)| (**count, std::cmp::Reverse(**time)));
        Self {
            matrices: records.matrices.len(),
            mean_pairs: stats::mean(&pairs),
            fitting_error_50: error(50),
            fitting_error_60: error(60),
            excess_60: at(60).map(|row| row.excess_ratio),
            gain_60_to_120: error(60).zip(error(120)).and_then(|(few, many)| super::share(few - many, few)),
            knee: knee.map(|(row, _)| row.clusters),
            knee_factor: knee.map(|(_, factor)| factor),
            error_at_knee: knee.map(|(row, _)| row.error_ratio),
            run_length_p60: stats::percentile(&runs, RUN_PERCENTILE),
            changes: super::share(runs.len().saturating_sub(1) as f64, clusters.len().saturating_sub(1) as f64),
            repeat_mode: most.map(|(time, _)| *time),
            repeat_peak: peak.map(|peak| f64::from(peak) / f64::from(later)),
        }
    }
}

/// The cluster of each interval, where all have one.
pub fn clusters(records: &Records) -> Vec<u32> {
    let clusters: Option<Vec<u32>> = records.matrices.iter().map(|row| row.cluster).collect();
    clusters.unwrap_or_default()
}

/// How many intervals each run in one cluster lasts (Figure 4b).
pub fn run_lengths(clusters: &[u32]) -> Vec<u32> {
    clusters.chunk_by(|a, b| a == b).map(|run| run.len() as u32).collect()
}

/// How often a cluster returned after so many intervals (Figure 4c); 1 within a run.
pub fn repeats(clusters: &[u32]) -> BTreeMap<u32, u32> {
    let (mut last, mut repeats) = (BTreeMap::new(), BTreeMap::new());
    for (cluster, now) in clusters.iter().zip(0u32..) {
        if let Some(before) = last.insert(*cluster, now) {
            *repeats.entry(now - before).or_insert(0) += 1;
        }
    }
    repeats
}

/// Where one more cluster helps most, and by what factor.
fn knee(fitting: &[FittingRow]) -> Option<(FittingRow, f64)> {
    let within = &fitting[..fitting.len() / KNEE_WITHIN];
    let factor = |pair: &[FittingRow]| match pair {
        [before, row] => super::share(before.error_ratio, row.error_ratio).map(|factor| (*row, factor)),
        _ => None,
    };
    within.windows(2).filter_map(factor).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.clusters.cmp(&a.0.clusters)))
}

/// The fitting error by number of clusters.
pub fn table(title: &str, records: &Records) -> Table {
    let plain = crate::table::plain;
    let row = |row: &FittingRow| vec![row.clusters.to_string(), plain(row.error_ratio), plain(row.excess_ratio)];
    Table {
        title: format!("Fitting error by number of clusters: {title}"),
        headings: ["clusters", "error / representatives", "error / matrices"].map(str::to_owned).to_vec(),
        rows: records.fitting.iter().filter(|row| LISTED.contains(&row.clusters)).map(row).collect(),
    }
}
