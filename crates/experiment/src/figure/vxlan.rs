//! Figures of the VXLAN draft: what a server carries and costs, what VXLAN adds, and what thousands of segments take.

use std::collections::BTreeMap;

use super::plots::{Figure, figure};
use super::{Level, LineChart, Mark, RowChart, Series};
use crate::analysis::Input;
use crate::analysis::vxlan::{
    benchmarks, loss_ratio, matrices, model_a, received_per_s, scales, server_pairs, vm_cpu_share,
};
use crate::metric::Findings;
use crate::stats;

/// What the draft accepts as loss.
const DRAFT_LOSS: f64 = 0.02;
/// The load of a VM above which the draft sees it.
const DRAFT_VM_CPU: f64 = 0.9;
/// The draft's mean increase of server 1's CPU from its printed table, percent.
const DRAFT_INCREASE_PERCENT: f64 = 6.25;

/// Model A: received over offered, and CPU by size.
pub(super) fn model_a(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (_, benchmark) in benchmarks(input.spec) {
        for bytes in std::iter::once(&0).chain(&benchmark.frame_bytes) {
            let of = |metric: &str| findings.metrics.get(&format!("{metric}.{bytes}")).map(|estimate| estimate.value);
            if let (Some(server), vm) = (of("server_mhz"), of("vm_mhz")) {
                rows.push((format!("{bytes} B, tick: its VMs"), server, Mark::Bar { tick: vm }));
            }
        }
        series.extend(benchmark.frame_bytes.iter().map(|bytes| offered_line(input, *bytes)));
    }
    let bend = LineChart {
        title: "Received over offered".into(),
        x_label: "offered (times the benchmark of the size)".into(),
        y_label: "received (times the most received)".into(),
        series,
        ..LineChart::default()
    };
    let cost = RowChart {
        title: "CPU of the server at its benchmark".into(),
        x_label: "MHz of a core (bar: server, tick: its VMs)".into(),
        rows,
        ..RowChart::default()
    };
    vec![
        figure(
            "The inflection point (VXLAN draft, 2.5)",
            "Median over the repetitions, from records/offered.csv, without the search's own trials.",
            bend.render(),
        ),
        figure("CPU of the server by size of frames", "From records/servers.csv.", cost.render()),
    ]
}

/// What arrives over what is offered, both as multiples.
fn offered_line(input: &Input<'_>, bytes: u32) -> Series {
    let mut points: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for trial in input.trials {
        let rows =
            || trial.records.offered.iter().filter(|row| row.kind == model_a::OFFERED && row.frame_bytes == bytes);
        let Some(most) = rows().map(received_per_s).reduce(f64::max).filter(|most| *most > 0.0) else { continue };
        for row in rows().filter(|row| row.offered_percent > 0) {
            points.entry(row.offered_percent).or_default().push(received_per_s(row) / most);
        }
    }
    let median = |(percent, values): (u32, Vec<f64>)| Some((f64::from(percent) / 100.0, stats::median(&values)?));
    Series { label: format!("{bytes} B"), points: points.into_iter().filter_map(median).collect() }
}

/// Model B: CPU increase, and loss over the VMs' CPU.
pub(super) fn model_b(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for (workload, servers) in server_pairs(input.spec) {
        for path in &servers.paths {
            let name = path.name();
            for server in ["server1", "server2"] {
                let metric = format!("cpu_increase_percent.{workload}.{name}.{server}");
                if let Some(estimate) = findings.metrics.get(&metric) {
                    let interval = estimate.interval.map(|interval| (interval.low, interval.high));
                    rows.push((format!("{workload}, {name}, {server}"), estimate.value, Mark::Dot { interval }));
                }
            }
            let points = loss_points(input, workload, name);
            if !points.is_empty() {
                lines.push(Series { label: format!("{workload}, {name}"), points });
            }
        }
    }
    let low = rows.iter().map(|row| row.1).fold(0.0, f64::min);
    let increase = RowChart {
        title: "CPU increase with VXLAN".into(),
        x_label: "percent of the same server without (dot: median, line: interval)".into(),
        x_low: (low / 5.0).floor() * 5.0,
        rows,
        levels: vec![(DRAFT_INCREASE_PERCENT, "draft: 6.25 %".into())],
    };
    if !lines.is_empty() {
        let points = vec![(DRAFT_VM_CPU, 0.0), (DRAFT_VM_CPU, 1.0)];
        lines.push(Series { label: "draft: VM at 90 %".into(), points });
    }
    let loss = LineChart {
        title: "Loss over the receiving VMs' CPU".into(),
        x_label: "share of a core that the VMs had".into(),
        y_label: "lost of sent".into(),
        series: lines,
        levels: vec![Level { value: DRAFT_LOSS, label: "draft: 2 %".into() }],
        ..LineChart::default()
    };
    vec![
        figure("CPU increase with VXLAN (VXLAN draft, 3.1 a)", "From records/servers.csv.", increase.render()),
        figure("Loss over the VMs' CPU (VXLAN draft, 3.1 c)", "From records/offered.csv.", loss.render()),
    ]
}

/// Share of a core and loss, in order of the share.
fn loss_points(input: &Input<'_>, workload: &str, path: &str) -> Vec<(f64, f64)> {
    let trials = input.trials.iter().filter(|trial| trial.key.workload == workload);
    let rows = trials.flat_map(|trial| &trial.records.offered);
    let rows = rows.filter(|row| row.kind == model_a::OFFERED && row.path == path);
    let mut points: Vec<(f64, f64)> = rows.filter_map(|row| Some((vm_cpu_share(row), loss_ratio(row)?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Every way: cost by size, and what encapsulation adds.
pub(super) fn encapsulations(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let mut extra = Vec::new();
    let mut series = Vec::new();
    for (_, matrix) in matrices(input.spec) {
        for path in &matrix.paths {
            let name = path.name();
            if let Some(estimate) = findings.metrics.get(&format!("extra_ns.{name}")) {
                let interval = estimate.interval.map(|interval| (interval.low, interval.high));
                extra.push((format!("{name} over {}", path.plain().name()), estimate.value, Mark::Dot { interval }));
            }
            let point = |bytes: &u32| {
                let estimate = findings.metrics.get(&format!("path_ns.{name}.{bytes}"))?;
                Some((f64::from(*bytes), estimate.value))
            };
            series
                .push(Series { label: name.to_owned(), points: matrix.frame_bytes.iter().filter_map(point).collect() });
        }
    }
    let cost = LineChart {
        title: "CPU time per frame".into(),
        x_label: "size of frames with FCS (bytes)".into(),
        y_label: "ns per frame between the test centre's ports".into(),
        series,
        ..LineChart::default()
    };
    let low = extra.iter().map(|row| row.1).fold(0.0, f64::min);
    let extra = RowChart {
        title: "What encapsulation adds".into(),
        x_label: "ns per frame over the plain switch at the same hook (dot: median, line: interval)".into(),
        x_low: (low / 100.0).floor() * 100.0,
        rows: extra,
        ..RowChart::default()
    };
    vec![
        figure("What encapsulation adds", "Mean of all sizes, from records/chains.csv.", extra.render()),
        figure("CPU time per frame by size", "From records/chains.csv.", cost.render()),
    ]
}

/// Set-up, memory and cost over the number of segments.
pub(super) fn segments(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let chart = |title: &str, metric: &str, y_label: &str, logarithmic: bool| {
        let mut series = Vec::new();
        for (_, scale) in scales(input.spec) {
            for store in &scale.stores {
                let point = |count: &u32| {
                    let value = findings.metrics.get(&format!("{metric}.{}.{count}", store.name()))?.value;
                    let y = if logarithmic { value.max(1e-3).log10() } else { value };
                    Some((f64::from(*count).log10(), y))
                };
                series.push(Series {
                    label: store.name().to_owned(),
                    points: scale.segments.iter().filter_map(point).collect(),
                });
            }
        }
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "log10 of the number of segments".into(),
            y_label: y_label.to_owned(),
            y_low: logarithmic.then_some(-3.0),
            series,
            ..LineChart::default()
        };
        figure(title, "Median over the repetitions, from records/segments.csv.", chart.render())
    };
    vec![
        chart("Time to set segments up", "setup_ms", "log10 of ms", true),
        chart("Memory of segments", "memory_mb", "log10 of MB", true),
        chart("CPU time per frame over the number of segments", "frame_ns", "ns per frame", false),
    ]
}
