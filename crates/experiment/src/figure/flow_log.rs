//! Figures of flow logs: VL2's Figures 2, 3 and 4, for plans and for `weft analyse`.

use weft_scenario::record::Records;

use super::plots::{Figure, figure};
use super::{Level, LineChart, Scale, Series};
use crate::analysis::Input;
use crate::analysis::flow_log::{concurrency, matrices, sizes};
use crate::stats;

/// Numbers of clusters that are drawn; beyond, the error only falls towards 0.
const CLUSTERS_DRAWN: u32 = 300;
/// Intervals of the course of the clusters that are drawn.
const INTERVALS_DRAWN: usize = 300;
/// The paper's fitting error with 50 to 60 clusters.
const PAPER_ERROR: f64 = 0.6;

/// A log and what it is called.
pub type Log<'a> = (String, &'a Records);

/// The logs of a plan's first repetition, one for each workload.
pub(super) fn logs<'a>(input: &Input<'a>) -> Vec<Log<'a>> {
    let first = input.trials.iter().filter(|trial| trial.key.repetition == 1);
    first.map(|trial| (trial.key.workload.clone(), &trial.records)).collect()
}

/// Flows and bytes by size (Figure 2).
pub fn by_size(logs: &[Log<'_>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (log, records) in logs {
        let (flows, bytes) = sizes::totals(&records.flow_sizes);
        let x = |bytes_at_most: u64| (bytes_at_most.max(1) as f64).min(1e18);
        let mut upto = (0.0, 0.0);
        let (mut density, mut cumulative) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for row in &records.flow_sizes {
            let share = (row.flows as f64 / flows.max(1) as f64, row.bytes as f64 / bytes.max(1) as f64);
            upto = (upto.0 + share.0, upto.1 + share.1);
            let x = x(row.bytes_at_most);
            density.0.push((x, share.0));
            density.1.push((x, share.1));
            cumulative.0.push((x, upto.0));
            cumulative.1.push((x, upto.1));
        }
        let chart = |title: &str, y_label: &str, (flows, bytes): (Vec<_>, Vec<_>), levels| {
            let line = |label: &str, points| Series { label: label.to_owned(), points };
            let mark = |label: &str, bytes: f64| line(label, vec![(bytes, 0.0), (bytes, 1.0)]);
            let mut series = vec![line("flows", flows), line("bytes", bytes)];
            if title.starts_with("Share") {
                series.extend([mark("paper: 100 MB", 1e8), mark("paper: 1 GB", 1e9)]);
            }
            let drawn = LineChart {
                title: format!("{title} ({log})"),
                x_label: "size of the flow (bytes)".into(),
                x_scale: Scale::Log,
                y_label: y_label.into(),
                series,
                levels,
                ..LineChart::default()
            };
            let caption = "From records/flow_sizes.csv; twenty bins to a factor of ten.";
            figure(&drawn.title, caption, drawn.render())
        };
        figures.push(chart("Flows and bytes by size", "share of flows, of bytes, in a bin", density, Vec::new()));
        let level = Level { value: 0.99, label: "paper: 99 % of flows below 100 MB".into() };
        figures.push(chart("Share of flows and bytes up to a size", "share at or below", cumulative, vec![level]));
    }
    figures
}

/// Flows that servers have at once (Figure 3).
pub fn at_once(logs: &[Log<'_>]) -> Vec<Figure> {
    let line = |(log, records): &Log<'_>, cumulative: bool| {
        let mut upto = 0.0;
        let point = |(flows, share): (u32, f64)| {
            upto += share;
            (f64::from(flows), if cumulative { upto } else { share })
        };
        Series { label: log.clone(), points: (0u32..).zip(concurrency::shares(records)).map(point).collect() }
    };
    let chart = |title: &str, y_label: &str, cumulative: bool| {
        let mut series: Vec<Series> = logs.iter().map(|log| line(log, cumulative)).collect();
        let top = series.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
        if top > 0.0 {
            let mark =
                |label: &str, flows| Series { label: label.to_owned(), points: vec![(flows, 0.0), (flows, top)] };
            series.extend([mark("paper: mode at about 10", 10.0), mark("paper: 80, for 5 % of the time", 80.0)]);
        }
        let chart = LineChart {
            title: title.into(),
            x_label: "flows that a server has at once".into(),
            y_label: y_label.into(),
            series,
            ..LineChart::default()
        };
        figure(title, "Share of all servers' time, from records/concurrency.csv.", chart.render())
    };
    vec![
        chart("Flows at once: how often", "share of time", false),
        chart("Flows at once: distribution", "share of time at or below", true),
    ]
}

/// The fitting error and the course of the clusters (Section 3.3 and Figure 4).
pub fn over_time(logs: &[Log<'_>]) -> Vec<Figure> {
    let mut figures = vec![fitting(logs)];
    for (log, records) in logs {
        let clusters = matrices::clusters(records);
        figures.push(course(log, &clusters));
        figures.push(runs(log, &clusters));
        figures.push(returns(log, &clusters));
    }
    figures
}

fn fitting(logs: &[Log<'_>]) -> Figure {
    let line = |(log, records): &Log<'_>| {
        let drawn = records.fitting.iter().filter(|row| row.clusters <= CLUSTERS_DRAWN);
        Series { label: log.clone(), points: drawn.map(|row| (f64::from(row.clusters), row.error_ratio)).collect() }
    };
    let chart = LineChart {
        title: "Fitting error by number of clusters".into(),
        x_label: "clusters".into(),
        y_label: "fitting error".into(),
        series: logs.iter().map(line).collect(),
        levels: vec![Level { value: PAPER_ERROR, label: "paper: 60 % with 50 to 60 clusters".into() }],
        ..LineChart::default()
    };
    let caption = "Of what the representatives hold, the share that the matrices which they stand for do not, from \
                   records/fitting.csv. The paper does not say over what its error is a share.";
    figure("Fitting error by number of clusters", caption, chart.render())
}

fn course(log: &str, clusters: &[u32]) -> Figure {
    let points = clusters.iter().take(INTERVALS_DRAWN).enumerate().map(|(now, one)| (now as f64, f64::from(*one)));
    let chart = LineChart {
        title: format!("Cluster of each interval (Figure 4a, {log})"),
        x_label: "interval".into(),
        y_label: "cluster, numbered as they appear".into(),
        series: vec![Series { label: log.to_owned(), points: points.collect() }],
        ..LineChart::default()
    };
    figure(&chart.title, "The first 300 intervals, from records/matrices.csv.", chart.render())
}

fn runs(log: &str, clusters: &[u32]) -> Figure {
    let lengths = stats::sorted(&matrices::run_lengths(clusters).into_iter().map(f64::from).collect::<Vec<_>>());
    let at = |percent: u32| {
        let share = f64::from(percent) / 100.0;
        Some((share, stats::percentile_of_sorted(&lengths, share)?))
    };
    let chart = LineChart {
        title: format!("Length of runs (Figure 4b, {log})"),
        x_label: "share of runs".into(),
        y_label: "intervals in one cluster, at most".into(),
        series: vec![Series { label: log.to_owned(), points: (0..=100).filter_map(at).collect() }],
        ..LineChart::default()
    };
    figure(&chart.title, "The paper's is 1 up to the 60th percentile.", chart.render())
}

fn returns(log: &str, clusters: &[u32]) -> Figure {
    let repeats = matrices::repeats(clusters);
    let count = |time: u32| f64::from(repeats.get(&time).copied().unwrap_or(0));
    let last = repeats.keys().last().copied().unwrap_or(0);
    let chart = LineChart {
        title: format!("Time until a cluster returns (Figure 4c, {log})"),
        x_label: "intervals".into(),
        y_label: "returns".into(),
        series: vec![Series {
            label: log.to_owned(),
            points: (1..=last).map(|time| (f64::from(time), count(time))).collect(),
        }],
        ..LineChart::default()
    };
    figure(&chart.title, "The paper's has a mode at one interval and no other structure.", chart.render())
}
