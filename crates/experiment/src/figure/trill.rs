//! Figures of the TRILL papers: latency and throughput by size, load, paths, CPU, and the fast path.

use super::plots::{Figure, figure};
use super::{Level, LineChart, Mark, RowChart, Series};
use crate::analysis::Input;
use crate::analysis::trill::{convergence, costs, crossings, paths, vlan_mixes};
use crate::metric::Findings;

const FROM_CROSSINGS: &str = "Median over the repetitions, from records/crossings.csv.";
const FROM_CHAINS: &str = "Median over the repetitions, from records/chains.csv.";

/// A line through the values of metrics, one for each x.
fn line(findings: &Findings, label: String, metrics: impl Iterator<Item = (f64, String)>) -> Series {
    let point = |(x, name): (f64, String)| Some((x, findings.metrics.get(&name)?.value));
    Series { label, points: metrics.filter_map(point).collect() }
}

/// A line for each name: the metric whose name has the size in place of `{}`.
fn by_size(findings: &Findings, title: &str, y_label: &str, sizes: &[u32], lines: &[(String, String)]) -> Figure {
    let series = |(label, name): &(String, String)| {
        let metrics = sizes.iter().map(|bytes| (f64::from(*bytes), name.replace("{}", &bytes.to_string())));
        line(findings, label.clone(), metrics)
    };
    let chart = LineChart {
        title: title.to_owned(),
        x_label: "size of frames with FCS (bytes)".into(),
        y_label: y_label.to_owned(),
        series: lines.iter().map(series).collect(),
        ..LineChart::default()
    };
    figure(title, FROM_CROSSINGS, chart.render())
}

/// Median latency by size, a figure for each workload.
pub(super) fn latency(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let of_workload = |(workload, spec): (&str, &weft_scenario::workload::trill::CrossingSpec)| {
        let Some(offer) = spec.offers(spec.frame_bytes[0]).into_iter().next() else { unreachable!("it was checked") };
        let name = |way: &str| format!("p50_us.{workload}.{way}.{{}}.{}", offer.label());
        let lines: Vec<_> = spec.ways.iter().map(|way| (way.name().to_owned(), name(way.name()))).collect();
        by_size(findings, &format!("Latency by size, {workload}"), "median latency (us)", &spec.frame_bytes, &lines)
    };
    crossings(input.spec).map(of_workload).collect()
}

/// Frames received by size, a figure for each workload.
pub(super) fn throughput(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let of_workload = |(workload, spec): (&str, &weft_scenario::workload::trill::CrossingSpec)| {
        let name = |way: &str| (way.to_owned(), format!("received_per_s.{workload}.{way}.{{}}"));
        let lines: Vec<_> = spec.ways.iter().map(|way| name(way.name())).collect();
        by_size(findings, &format!("Frames received, {workload}"), "frames per second", &spec.frame_bytes, &lines)
    };
    crossings(input.spec).map(of_workload).collect()
}

/// Delivered over offered load.
pub(super) fn load(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let mut series = Vec::new();
    for (_, spec) in crossings(input.spec) {
        for (way, bytes) in spec.ways.iter().flat_map(|way| spec.frame_bytes.iter().map(move |bytes| (way, bytes))) {
            let name = way.name();
            let points = spec.offers(*bytes).into_iter().filter_map(|offer| {
                let offered = f64::from(offer.load_percent) / 100.0;
                let share = findings.metrics.get(&format!("delivered.{name}.{bytes}.{}", offer.label()))?.value;
                Some((offered, offered * share))
            });
            series.push(Series { label: format!("{name}, {bytes} B"), points: points.collect() });
        }
    }
    let chart = LineChart {
        title: "Delivered over offered load".into(),
        x_label: "offered (times one path)".into(),
        y_label: "delivered (times one path)".into(),
        series,
        levels: vec![Level { value: 1.0, label: "one path".into() }],
        ..LineChart::default()
    };
    vec![figure("Delivered over offered load", FROM_CROSSINGS, chart.render())]
}

/// Share of every path in the first trial.
pub(super) fn paths(input: &Input<'_>) -> Vec<Figure> {
    let mut rows = Vec::new();
    for way in crossings(input.spec).flat_map(|(_, spec)| &spec.ways) {
        for (switch, share) in input.trials.first().and_then(|trial| paths::shares(trial, *way)).unwrap_or_default() {
            rows.push((format!("{}, {switch}", way.name()), share * 100.0, Mark::Bar { tick: None }));
        }
    }
    let chart = RowChart {
        title: "Frames by path".into(),
        x_label: "share of all frames (percent)".into(),
        rows,
        levels: vec![(25.0, "even".into())],
        ..RowChart::default()
    };
    vec![figure("Frames by path", "First repetition, from records/path_shares.csv.", chart.render())]
}

/// How long flows stood still.
pub(super) fn convergence(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let row =
        |(_, way, loss): (&str, weft_scenario::workload::trill::Way, weft_scenario::workload::trill::SwitchLoss)| {
            let estimate = findings.metrics.get(&format!("outage_s.{}.{}", way.name(), loss.name()))?;
            let label = format!("{}, {}", way.name(), loss.name());
            // Milliseconds beside half a minute.
            Some((label, (estimate.value.max(1e-3) * 1e3).log10(), Mark::Bar { tick: None }))
        };
    let chart = RowChart {
        title: "Outage when a middle switch is lost".into(),
        x_label: "log10 of ms".into(),
        rows: convergence::cases(input.spec).into_iter().filter_map(row).collect(),
        ..RowChart::default()
    };
    let from = "Worst flow, median over the repetitions, from records/switch_losses.csv.";
    vec![figure("Outage when a middle switch is lost", from, chart.render())]
}

/// How much longer elephants take than alone.
pub(super) fn elephants(findings: &Findings) -> Vec<Figure> {
    let row = |(name, estimate): (&String, &crate::metric::Estimate)| {
        let interval = estimate.interval.map(|interval| (interval.low, interval.high));
        Some((name.strip_prefix("mean_slowdown.")?.to_owned(), estimate.value, Mark::Dot { interval }))
    };
    let chart = RowChart {
        title: "Completion of elephants over that alone".into(),
        x_label: "mean of all elephants (dot: median, line: interval)".into(),
        rows: findings.metrics.iter().filter_map(row).collect(),
        levels: vec![(1.0, "alone".into())],
        ..RowChart::default()
    };
    vec![figure("Completion of elephants over that alone", "From records/flows.csv.", chart.render())]
}

/// Without outer headers beside with them: what full lines deliver, latency, CPU time.
pub(super) fn elision(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let of_workload = |(workload, spec): (&str, &weft_scenario::workload::trill::CrossingSpec)| {
        let mut lines = vec![("latency".to_owned(), format!("latency_ratio.{workload}.{{}}"))];
        if spec.link.is_some() {
            lines.push(("most delivered".to_owned(), format!("most_gain.{workload}.{{}}")));
            lines.push(("most delivered, computed".to_owned(), "gain_limit.{}".to_owned()));
        }
        let title = format!("Without outer header over with it, {workload}");
        by_size(findings, &title, "ratio", &spec.frame_bytes, &lines)
    };
    let mut figures: Vec<Figure> = crossings(input.spec).map(of_workload).collect();
    if costs(input.spec).count() > 0 {
        figures.push(cost_of_switches(input, findings));
    }
    figures
}

/// What elephants deliver together, and the slowest of them.
pub(super) fn multipath(findings: &Findings) -> Vec<Figure> {
    let row = |(name, estimate): (&String, &crate::metric::Estimate)| {
        let (of, split) = name.split_once('.')?;
        let what = match of {
            "delivered" => "all together",
            "least" => "the slowest",
            _ => return None,
        };
        let interval = estimate.interval.map(|interval| (interval.low, interval.high));
        Some((format!("{split}, {what}"), estimate.value, Mark::Dot { interval }))
    };
    let chart = RowChart {
        title: "Elephants by the kernel's TCP".into(),
        x_label: "share of a path of its own for each (dot: median, line: interval)".into(),
        rows: findings.metrics.iter().filter_map(row).collect(),
        levels: vec![(1.0, "a path each".into())],
        ..RowChart::default()
    };
    vec![figure("Elephants by the kernel's TCP", "From records/elephants.csv.", chart.render())]
}

/// Latency and CPU time by the share of traffic that crosses VLANs.
pub(super) fn vlan_size(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let chart = |title: &str, y_label: &str, metrics: &[(&str, &str)]| {
        let mut series = Vec::new();
        for (_, mix) in vlan_mixes(input.spec) {
            for (way, (metric, what)) in mix.ways.iter().flat_map(|way| metrics.iter().map(move |one| (way, one))) {
                let name = |percent: &u32| (f64::from(*percent), format!("{metric}.{}.{percent}", way.name()));
                let label = format!("{}{what}", way.name());
                series.push(line(findings, label, mix.crossing_percent.iter().map(name)));
            }
        }
        let x_label = "share of traffic that crosses VLANs (percent)".into();
        let chart =
            LineChart { title: title.to_owned(), x_label, y_label: y_label.to_owned(), series, ..LineChart::default() };
        figure(title, "Median over the rounds, from records/vlan_mixes.csv.", chart.render())
    };
    vec![
        chart("Latency by what crosses VLANs", "latency (us)", &[("mean_us", ", mean"), ("p50_us", ", median")]),
        chart("CPU time by what crosses VLANs", "ns per frame, all switches", &[("cpu_ns", "")]),
    ]
}

/// CPU time of the edge switches.
pub(super) fn cpu(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let mut series = Vec::new();
    for (_, spec) in costs(input.spec) {
        for (switch, way) in ["s1", "s2"].into_iter().flat_map(|switch| spec.ways.iter().map(move |way| (switch, way)))
        {
            let name = way.name();
            let metric = |rate: &u32| (f64::from(*rate), format!("cpu_percent.{switch}.{name}.{rate}"));
            series.push(line(findings, format!("{switch}, {name}"), spec.per_s.iter().map(metric)));
        }
    }
    let chart = LineChart {
        title: "CPU use of the edge switches".into(),
        x_label: "frames per second".into(),
        y_label: "percent of one core".into(),
        series,
        ..LineChart::default()
    };
    vec![figure("CPU use of the edge switches (TRILL-overhead, Figure 4)", FROM_CHAINS, chart.render())]
}

/// What a core forwards, and what a frame costs at each switch.
pub(super) fn fast_path(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    vec![
        by_way(input, findings, "Frames live on one core", "million frames per second", &["live_mpps"]),
        cost_of_switches(input, findings),
    ]
}

fn cost_of_switches(input: &Input<'_>, findings: &Findings) -> Figure {
    let metrics = ["encapsulation_ns", "transit_ns", "decapsulation_ns"];
    by_way(input, findings, "CPU time of every switch", "ns per frame (dot: median, line: interval)", &metrics)
}

/// A dot for each way, size and metric of the workloads with the chain cut.
fn by_way(input: &Input<'_>, findings: &Findings, title: &str, x_label: &str, metrics: &[&str]) -> Figure {
    let mut rows = Vec::new();
    for (_, spec) in costs(input.spec) {
        for (way, bytes) in spec.ways.iter().flat_map(|way| spec.frame_bytes.iter().map(move |bytes| (way, bytes))) {
            for metric in metrics {
                let Some(estimate) = findings.metrics.get(&format!("{metric}.{}.{bytes}", way.name())) else {
                    continue;
                };
                let interval = estimate.interval.map(|interval| (interval.low, interval.high));
                let what = metric.trim_end_matches("_ns").trim_end_matches("_mpps");
                rows.push((format!("{}, {bytes} B, {what}", way.name()), estimate.value, Mark::Dot { interval }));
            }
        }
    }
    let chart = RowChart { title: title.to_owned(), x_label: x_label.to_owned(), rows, ..RowChart::default() };
    figure(title, FROM_CHAINS, chart.render())
}
