//! Figures of the analyses that compare the points of a sweep.

use super::plots::{Figure, figure};
use super::{Level, LineChart, Mark, RowChart, Series};
use crate::analysis::completion::{SAMPLES_MIN, SizeClass};
use crate::analysis::{Input, ecmp, fct, incast, queues, split_speed};
use crate::metric::{Estimate, Findings};
use crate::stats;

/// Shares of time below this are not drawn.
const SHARE_DECADES: f64 = 5.0;

/// Completion times over the load, one figure for each workload, class and statistic.
pub(super) fn fct(input: &Input<'_>) -> Vec<Figure> {
    let Ok(bins) = fct::bins(input) else { return Vec::new() };
    let mut figures = Vec::new();
    for workload in input.spec.workload.keys() {
        for class in SizeClass::ALL {
            let of = |bin: &&fct::Bin| bin.workload == *workload && bin.class == class && bin.n >= SAMPLES_MIN;
            let bins: Vec<&fct::Bin> = bins.iter().filter(of).collect();
            let mean = |bin: &fct::Bin| bin.mean_over_ideal.map(|ratio| ratio.value);
            figures.push(fct_over_load(input, &bins, &format!("{workload}, {}: mean FCT", class.name()), mean));
            let p99 = |bin: &fct::Bin| bin.p99_over_ideal;
            figures.push(fct_over_load(input, &bins, &format!("{workload}, {}: p99 FCT", class.name()), p99));
        }
    }
    figures
}

fn fct_over_load(
    input: &Input<'_>,
    bins: &[&fct::Bin],
    title: &str,
    ratio: impl Fn(&fct::Bin) -> Option<f64>,
) -> Figure {
    let line = |fabric: &String| {
        let points = bins.iter().filter(|bin| bin.fabric == *fabric);
        let points: Vec<_> = points.filter_map(|bin| Some((bin.load.parse().ok()?, ratio(bin)?))).collect();
        Series { label: fabric.clone(), points }
    };
    let fabrics = input.spec.labels_of(fct::FABRIC_AXIS).iter().filter(|fabric| *fabric != fct::IDEAL);
    let chart = LineChart {
        title: title.to_owned(),
        x_label: "load (%)".into(),
        y_label: "FCT / ideal output-queued switch".into(),
        series: fabrics.map(line).filter(|line| !line.points.is_empty()).collect(),
        levels: vec![Level { value: 1.0, label: "ideal switch".into() }],
        ..LineChart::default()
    };
    let caption =
        "The same flows on every fabric, from records/flows.csv. Loads with fewer than 200 flows are left out.";
    figure(title, caption, chart.render())
}

/// Distributions of the queues at both tiers, one figure for each load.
pub(super) fn queues(input: &Input<'_>) -> Vec<Figure> {
    let draw = |(load, tiers): (String, queues::Tiers)| {
        let line = |label: &str, lengths: &queues::Lengths| {
            let share = |(bytes, share): (u64, f64)| (bytes as f64 / 1e3, share.log10());
            let points = lengths.longer().into_iter().map(share).filter(|point| point.1 >= -SHARE_DECADES);
            Series { label: label.to_owned(), points: points.collect() }
        };
        let title = format!("Queues at load {load}");
        let chart = LineChart {
            title: title.clone(),
            x_label: "queue (kB)".into(),
            y_label: "log10 of the share of time in which a queue is longer".into(),
            y_low: Some(-SHARE_DECADES),
            series: vec![line("leaf fabric ports", &tiers.leaf), line("spine ports", &tiers.spine)],
            ..LineChart::default()
        };
        figure(&title, "All ports of a tier together, from records/queues.csv.", chart.render())
    };
    queues::by_load(input).into_iter().map(draw).collect()
}

/// Query completion times by buffers, one figure for each fan-in and load.
pub(super) fn incast(input: &Input<'_>) -> Vec<Figure> {
    let cells = incast::cells(input);
    let mut figures = Vec::new();
    for base in cells.iter().filter(|cell| cell.buffers == "leaf") {
        let same = |cell: &&incast::Cell| {
            (&cell.workload, &cell.fan_in, &cell.load) == (&base.workload, &base.fan_in, &base.load)
        };
        let row = |cell: &incast::Cell| {
            let (all, ms) = (cell.all_ns(), 1e-6);
            let tick = stats::percentile(&all, 0.99).map(|p99| p99 * ms);
            let mean = stats::mean(&all).map_or(f64::NAN, |mean| mean * ms);
            (format!("large buffers: {}", cell.buffers), mean, Mark::Bar { tick })
        };
        let title = format!("{}, fan-in {}, load {} %", base.workload, base.fan_in, base.load);
        let chart = RowChart {
            title: title.clone(),
            x_label: "query completion time in ms (bar: mean, tick: 99th percentile)".into(),
            rows: cells.iter().filter(same).map(row).collect(),
            ..RowChart::default()
        };
        figures.push(figure(&title, "The same queries everywhere, from records/flows.csv.", chart.render()));
    }
    figures
}

/// Counted, drawn and simulated probabilities side by side.
pub(super) fn ecmp(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let kinds = ["closed_form", "monte_carlo", "simulated"];
    let rows =
        dots(findings, input.spec.labels_of(ecmp::UPLINKS_AXIS), &kinds, |name, label| format!("{name}.{label}"));
    let chart = RowChart {
        title: "Probability of full throughput".into(),
        x_label: "probability (dot, line: interval)".into(),
        rows,
        ..RowChart::default()
    };
    vec![figure("Probability of full throughput", "The simulated share is from records/flows.csv.", chart.render())]
}

/// Fairness and completion times over the speed of the core.
pub(super) fn split_speed(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let over_ratio = |metric: &str, title: &str, y_label: &str, y_low: Option<f64>| {
        let line = |balance: &String| {
            let point = |ratio: &String| {
                let estimate = findings.metrics.get(&format!("{metric}.{ratio}.{balance}"))?;
                Some((ratio.parse().ok()?, estimate.value))
            };
            let points = input.spec.labels_of(split_speed::RATIO_AXIS).iter().filter_map(point).collect();
            Series { label: format!("per {balance}"), points }
        };
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "core rate / server rate".into(),
            y_label: y_label.to_owned(),
            y_low,
            series: input.spec.labels_of(split_speed::BALANCE_AXIS).iter().map(line).collect(),
            ..LineChart::default()
        };
        figure(title, "The same flows everywhere, from records/links.csv and records/flows.csv.", chart.render())
    };
    vec![
        over_ratio("jain_split", "Fairness of the split", "Jain's index, worst leaf", Some(0.5)),
        over_ratio("mean_slowdown", "Completion times", "mean slowdown", None),
    ]
}

/// Simulator over lab, for every workload.
pub(super) fn tcp_validation(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let workloads: Vec<String> = input.spec.workload.keys().cloned().collect();
    let kinds = ["goodput_ratio", "mean_fct_ratio", "p99_fct_ratio"];
    let chart = RowChart {
        title: "Simulator beside kernel".into(),
        x_label: "simulated / measured (dot: median, line: interval)".into(),
        rows: dots(findings, &workloads, &kinds, |name, label| format!("{name}.{label}")),
        levels: vec![(1.0, "the kernel".into())],
        ..RowChart::default()
    };
    vec![figure("Simulator beside kernel", "From records/flows.csv of both engines.", chart.render())]
}

/// A row with its interval for every metric of every label.
fn dots(
    findings: &Findings,
    labels: &[String],
    metrics: &[&str],
    name: impl Fn(&str, &str) -> String,
) -> Vec<(String, f64, Mark)> {
    let row = |metric: &str, label: &String| {
        let estimate: &Estimate = findings.metrics.get(&name(metric, label))?;
        let interval = estimate.interval.map(|interval| (interval.low, interval.high));
        Some((format!("{label}, {}", metric.replace('_', " ")), estimate.value, Mark::Dot { interval }))
    };
    labels.iter().flat_map(|label| metrics.iter().filter_map(move |metric| row(metric, label))).collect()
}
/// What moving large flows does for their completion times.
pub(super) fn elephants(findings: &Findings) -> Vec<Figure> {
    let row = |(name, estimate): (&String, &crate::metric::Estimate)| {
        let interval = estimate.interval.map(|interval| (interval.low, interval.high));
        Some((name.strip_prefix("mean_over_flow.")?.to_owned(), estimate.value, Mark::Dot { interval }))
    };
    let title = "Completion of large flows over that with whole flows";
    let chart = RowChart {
        title: title.into(),
        x_label: "mean over the draws (line: interval)".into(),
        rows: findings.metrics.iter().filter_map(row).collect(),
        levels: vec![(1.0, "one path for good".into())],
        ..RowChart::default()
    };
    vec![figure(
        title,
        "Mean completion time of each draw over the same draw's with whole flows, from records/flows.csv.",
        chart.render(),
    )]
}
