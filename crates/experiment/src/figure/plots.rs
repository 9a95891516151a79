//! Which figures an analysis shows, and what goes into them.

use std::collections::BTreeMap;

use weft_scenario::record::TcpRow;

use super::{Band, Level, LineChart, Series};
use super::{asked, flow_log};
use crate::analysis::{Analysis, Input, cpu};
use crate::stats;

/// A drawing with its heading and the sentence below it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// What is drawn and from which file.
    pub caption: String,
    /// The drawing.
    pub svg: String,
}

/// A figure from its parts.
pub(super) fn figure(title: &str, caption: &str, svg: String) -> Figure {
    Figure { title: title.to_owned(), caption: caption.to_owned(), svg }
}

/// The figures of a run.
pub fn figures(input: &Input<'_>) -> Vec<Figure> {
    let mut figures = match input.spec.analysis {
        Analysis::Asked => asked::figures(input),
        Analysis::FlowSizes => flow_log::by_size(&flow_log::logs(input)),
        Analysis::FlowConcurrency => flow_log::at_once(&flow_log::logs(input)),
        Analysis::TrafficMatrices => flow_log::over_time(&flow_log::logs(input)),
    };
    figures.extend(cpu_use(input));
    figures.extend(tcp_state(input));
    const DRAWN: [&str; 4] = ["class=\"line", "class=\"bar", "class=\"dot", "class=\"cell"];
    figures.retain(|figure| DRAWN.iter().any(|class| figure.svg.contains(class)));
    figures
}

fn cpu_use(input: &Input<'_>) -> Vec<Figure> {
    let (mut series, mut levels, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    for trial in input.trials.iter().take(1) {
        let mut by_core: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for row in &trial.records.cpu {
            by_core.entry(row.core).or_default().push((row.time_ns as f64 / 1e9, row.idle_ratio));
        }
        let idle = by_core.into_iter().map(|(core, points)| Series { label: format!("core {core} idles"), points });
        series.extend(idle);
        let points = cpu::waits_over_time(&trial.records.core_waits);
        match points.is_empty() {
            true => levels.push(Level { value: cpu::LEAST_IDLE_RATIO, label: "CPU-bound below".into() }),
            false => waits.push(Series { label: "programs wait".into(), points }),
        }
    }
    let idle = LineChart {
        title: "Idle share of the cores".into(),
        x_label: "time (s)".into(),
        y_label: "share".into(),
        series,
        levels,
        ..LineChart::default()
    };
    let caption = "First trial, from records/cpu.csv. Others may use what the run does not need.";
    let mut figures = vec![figure("CPU of this machine", caption, idle.render())];
    if !waits.is_empty() {
        let bound = Level { value: cpu::MOST_WAIT_MS, label: "CPU-bound above".into() };
        let chart = LineChart {
            title: "Waiting for a core".into(),
            x_label: "time (s)".into(),
            y_label: "mean wait (ms)".into(),
            series: waits,
            levels: vec![bound],
            ..LineChart::default()
        };
        let caption = "First trial, from records/core_waits.csv: how long programs of the run, and the kernel's threads that forward for it, \
                       waited for a core each time they became ready.";
        figures.push(figure("Waiting for the CPU of this machine", caption, chart.render()));
    }
    figures
}

/// Congestion window and smoothed round-trip time of the first trial's senders: median and middle 80 %.
fn tcp_state(input: &Input<'_>) -> Vec<Figure> {
    let Some(trial) = input.trials.first() else { return Vec::new() };
    let Some(interval) = input.spec.sampling.tcp_interval.filter(|interval| interval.0 > 0) else { return Vec::new() };
    // Senders are asked one after another, each at its own nanosecond: rows of one sampling belong together.
    let mut by_time: BTreeMap<u64, Vec<&TcpRow>> = BTreeMap::new();
    for row in &trial.records.tcp {
        let sampling = (row.time_ns + interval.0 / 2) / interval.0;
        by_time.entry(sampling * interval.0).or_default().push(row);
    }
    let chart = |title: &str, y_label: &str, value: fn(&TcpRow) -> f64| {
        let mut band = Band { points: Vec::new() };
        let mut middle = Series { label: "median".into(), points: Vec::new() };
        for (time_ns, rows) in &by_time {
            let sorted = stats::sorted(&rows.iter().map(|row| value(row)).collect::<Vec<_>>());
            let at = |share| stats::percentile_of_sorted(&sorted, share).unwrap_or(f64::NAN);
            let time_s = *time_ns as f64 / 1e9;
            band.points.push((time_s, at(0.1), at(0.9)));
            middle.points.push((time_s, at(0.5)));
        }
        let (x_label, title_text) = ("time (s)".to_owned(), title.to_owned());
        let (series, bands) = (vec![middle], vec![band]);
        let chart =
            LineChart { title: title_text, x_label, y_label: y_label.into(), series, bands, ..LineChart::default() };
        figure(title, "Median and middle 80 % of all senders, first trial, from records/tcp.csv.", chart.render())
    };
    vec![
        chart("Congestion window", "segments", |row| f64::from(row.cwnd_segments)),
        chart("Smoothed round-trip time", "ms", |row| row.srtt_ns as f64 / 1e6),
    ]
}
