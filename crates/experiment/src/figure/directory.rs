//! Figures of the directory system: percentiles over the load, distributions beside the paper's points (VL2 Figure 14).

use super::plots::{Figure, figure};
use super::{Level, LineChart, Series, Span};
use crate::analysis::Input;
use crate::analysis::directory::{self, Distribution, LOOKUP, PUSHED, Step, UPDATE, VISIBLE, lookup, update};
use crate::analysis::series::Cumulative;
use crate::stats;

/// Shares of requests with these ends are drawn on a logarithmic axis.
const PERCENTILES: [(f64, &str); 3] = [(0.01, "p1"), (0.5, "p50"), (0.99, "p99")];

/// Look-ups: latency over the offered load, then the distributions of the other workloads.
pub(super) fn lookups(input: &Input<'_>) -> Vec<Figure> {
    let steps = Step::all(input, LOOKUP);
    let mut figures = percentiles(input, &steps, "Look-up latency over the load", "look-ups/s", 10.0);
    figures.push(distributions(input, &steps, "Look-ups in the paper's mix (Figure 14a)", lookup::ACCEPTABLE_MS));
    let updates = Step::all(input, UPDATE);
    figures.push(distributions(input, &updates, "Updates in the paper's mix (Figure 14b)", update::PAPER_P99_MS));
    figures
}

/// The load that one server carries.
pub(super) fn sizing(input: &Input<'_>) -> Vec<Figure> {
    percentiles(input, &Step::all(input, LOOKUP), "Look-up latency over the load", "look-ups/s", 10.0)
}

/// Updates: latency over the offered load, and with something killed.
pub(super) fn updates(input: &Input<'_>) -> Vec<Figure> {
    let steps = Step::all(input, UPDATE);
    let mut figures = percentiles(input, &steps, "Update latency over the load", "updates/s", update::PAPER_P99_MS);
    figures.push(distributions(input, &steps, "Updates with something killed (Figure 14b)", update::PAPER_P99_MS));
    figures
}

/// One figure for each workload that raises its load.
fn percentiles(input: &Input<'_>, steps: &[Step<'_>], title: &str, unit: &str, level_ms: f64) -> Vec<Figure> {
    let ramp = |name: &&String| directory::spec_of(input.spec, name).is_some_and(directory::is_ramp);
    let draw = |workload: &String| {
        let line = |(ratio, label): (f64, &str)| {
            let mut points: Vec<(f64, Vec<f64>)> = Vec::new();
            for step in steps.iter().filter(|step| step.trial.key.workload == *workload) {
                let Some(ms) = step.latencies().percentile_ms(ratio) else { continue };
                let offered = step.row.offered_per_s as f64 / 1e3;
                match points.iter_mut().find(|point| point.0 == offered) {
                    Some(point) => point.1.push(ms),
                    None => points.push((offered, vec![ms])),
                }
            }
            let median = |(offered, values): (f64, Vec<f64>)| Some((offered, stats::median(&values)?.log10()));
            Series { label: label.to_owned(), points: points.into_iter().filter_map(median).collect() }
        };
        let title = format!("{title}: {workload}");
        let chart = LineChart {
            title: title.clone(),
            x_label: format!("offered load (1000 {unit})"),
            y_label: "log10 of latency in ms".into(),
            y_low: Some(-2.0),
            series: PERCENTILES.map(line).to_vec(),
            levels: vec![Level { value: level_ms.log10(), label: format!("paper: {level_ms:.0} ms") }],
            ..LineChart::default()
        };
        let caption =
            "Median over the repetitions, from records/latencies.csv. Requests without an answer took the timeout.";
        figure(&title, caption, chart.render())
    };
    input.spec.workload.keys().filter(ramp).map(draw).collect()
}

/// Distributions of the workloads that do not raise their load, all repetitions together.
fn distributions(input: &Input<'_>, steps: &[Step<'_>], title: &str, level_ms: f64) -> Figure {
    let mut series = Vec::new();
    for workload in input.spec.workload.keys() {
        let of = |step: &&Step<'_>| step.trial.key.workload == *workload && !directory::is_ramp(step.spec);
        let points = cumulative(steps.iter().filter(of).map(Step::latencies));
        if !points.is_empty() {
            series.push(Series { label: workload.clone(), points: logarithmic(points) });
        }
    }
    let marks = [Series { label: format!("paper: {level_ms:.0} ms"), points: vertical(level_ms) }];
    let series = if series.is_empty() { series } else { series.into_iter().chain(marks).collect() };
    let chart = LineChart {
        title: title.to_owned(),
        x_label: "log10 of latency in us".into(),
        y_label: "share of all requests at or below".into(),
        series,
        ..LineChart::default()
    };
    let caption =
        "From records/latencies.csv and directory.csv; a line that ends below 1 has requests without an answer.";
    figure(title, caption, chart.render())
}

/// From issue until visible, until pushed and until acknowledged.
pub(super) fn convergence(input: &Input<'_>) -> Vec<Figure> {
    let steps = Step::all(input, UPDATE);
    let line = |(kind, label): (&str, &str)| {
        let points = cumulative(steps.iter().map(|step| step.distribution(kind, None)));
        Series { label: label.to_owned(), points: logarithmic(points) }
    };
    let kinds = [(VISIBLE, "every server answers with it"), (PUSHED, "a subscriber has it"), (UPDATE, "acknowledged")];
    let mut series: Vec<Series> = kinds.into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
    if !series.is_empty() {
        let paper = logarithmic(vec![(100.0, 0.7), (530.0, 0.99)]);
        series.push(Series { label: "paper: 70 % in 100 ms, 99 % in 530 ms".into(), points: paper });
    }
    let title = "Convergence of updates (Figure 14c)";
    let chart = LineChart {
        title: title.into(),
        x_label: "log10 of the time since the update was issued in us".into(),
        y_label: "share of updates at or below".into(),
        series,
        ..LineChart::default()
    };
    vec![figure(title, "All repetitions, from records/latencies.csv.", chart.render())]
}

/// Payload that arrived at the server that moved.
pub(super) fn migration(input: &Input<'_>) -> Vec<Figure> {
    let draw = |trial: &crate::analysis::TrialRecords| {
        let rates = Cumulative::of_payload(&trial.records).rates(0.1);
        let span = |row: &weft_scenario::record::MigrationRow| Span {
            from: row.left_ns as f64 / 1e9,
            to: row.arrived_ns.max(row.last_stale_ns) as f64 / 1e9,
            label: "moving".into(),
        };
        let title = format!("Goodput of the moving server, trial {}", trial.key.trial);
        let chart = LineChart {
            title: title.clone(),
            x_label: "time (s)".into(),
            y_label: "goodput (Mbit/s)".into(),
            series: vec![Series {
                label: "received".into(),
                points: rates.into_iter().map(|(time, bytes)| (time, bytes * 8e-6)).collect(),
            }],
            spans: trial.records.migrations.iter().map(span).collect(),
            ..LineChart::default()
        };
        figure(&title, "From records/progress.csv and migrations.csv.", chart.render())
    };
    input.trials.iter().map(draw).collect()
}

/// Shares of all requests of several distributions together.
fn cumulative(parts: impl Iterator<Item = Distribution>) -> Vec<(f64, f64)> {
    let parts: Vec<Distribution> = parts.collect();
    Distribution::together(&parts).cumulative()
}

/// Milliseconds as the logarithm of microseconds, so that an axis from 0 begins at 1 us.
fn logarithmic(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.into_iter().map(|(ms, share)| ((ms * 1e3).max(1.0).log10(), share)).collect()
}

fn vertical(ms: f64) -> Vec<(f64, f64)> {
    logarithmic(vec![(ms, 0.0), (ms, 1.0)])
}
