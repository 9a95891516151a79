//! What each egress link carried over time, in both directions (VL2 4.2.3).

use super::plots::{Figure, figure};
use super::{LineChart, Series, Span};
use crate::analysis::{Input, TrialRecords, links};
use crate::query::derived::outage_windows;

/// Bins of a link's rate.
const BINS: f64 = 120.0;

/// Of the first trial of each workload.
pub(super) fn egress_links(input: &Input<'_>) -> Vec<Figure> {
    let first = |workload: &String| input.trials.iter().find(|trial| trial.key.workload == *workload);
    input.spec.workload.keys().filter_map(first).map(|trial| of_trial(input, trial)).collect()
}

fn of_trial(input: &Input<'_>, trial: &TrialRecords) -> Figure {
    let fabric = input.fabric();
    let outside = fabric.outside().map(|outside| fabric.node(outside.node).name.as_str()).unwrap_or_default();
    let series = links::all(&trial.records.links, fabric).into_iter();
    let lines = series.filter(|link| link.node == outside || link.peer == outside).map(|link| Series {
        label: format!("{} to {}", link.node, link.peer),
        points: link
            .sent
            .rates(link.sent.end() / BINS)
            .into_iter()
            .map(|(time, bytes)| (time, 8.0 * bytes / 1e6))
            .collect(),
    });
    let outages = outage_windows(&trial.records).into_iter();
    let title = format!("Egress links: {}", trial.key.workload);
    let chart = LineChart {
        title: title.clone(),
        x_label: "time (s)".into(),
        y_label: "sent (Mbit/s)".into(),
        series: lines.collect(),
        spans: outages.map(|span| Span { from: span.from_s, to: span.to_s, label: "one link down".into() }).collect(),
        ..LineChart::default()
    };
    figure(&title, "What each end of each egress link sent, first trial, from records/links.csv.", chart.render())
}
