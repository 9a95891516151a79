//! What larger VLANs save: latency and CPU by the share of traffic that crosses VLANs.
//!
//! Of N hosts that all send to each other alike, in VLANs of s hosts each, the share 1 - (s - 1)/(N - 1) of the traffic
//! crosses. Its mean latency is then (1 - share) times that within a VLAN and share times that between VLANs, a straight
//! line, unless one kind of frame waits for the other. The line is fitted in each round, whose turns follow each other closely;
//! the estimates are over rounds.

use std::collections::BTreeMap;

use weft_scenario::record::VlanMixRow;
use weft_scenario::workload::trill::{VlanMixSpec, Way, vlan_hosts};

use super::vlan_mixes;
use crate::analysis::trials::{cell, put_empty, trials};
use crate::analysis::{Input, MetricInfo};
use crate::metric::{Findings, Limit, Table};
use crate::plan::PlanSpec;

/// What this analysis yields, with the way behind the name, then the percentage that crosses where it is that one's.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "mean_us", meaning: "mean one-way latency of all frames, us" },
    MetricInfo { name: "mean_net_us", meaning: "the same without the test centre's own floor, us" },
    MetricInfo { name: "p50_us", meaning: "median one-way latency of all frames, us" },
    MetricInfo { name: "cpu_ns", meaning: "CPU time per frame of all switches and routers on its way, ns" },
    MetricInfo {
        name: "growth",
        meaning: "mean latency if everything crosses over that if nothing does, by the line fitted to all shares",
    },
    MetricInfo { name: "growth_net", meaning: "the same without the test centre's own floor" },
    MetricInfo { name: "p50_growth", meaning: "median latency at the largest share over that at the smallest" },
    MetricInfo { name: "cpu_growth", meaning: "as `growth`, of CPU time per frame" },
    MetricInfo { name: "step", meaning: "mean latency at a share over that at the next smaller one" },
    MetricInfo {
        name: "router_over_routed",
        meaning: "mean latency by a router behind one RBridge over that routed at the ingress RBridge, at a share",
    },
    MetricInfo { name: "lost", meaning: "frames that did not arrive, of all sent" },
    MetricInfo { name: "quiet", meaning: "turns in which the machine was quiet before and after, of all" },
];

/// The turns of a round: by way and percentage.
type Round<'a> = BTreeMap<(&'a str, u32), &'a VlanMixRow>;

/// A number of a round, if it holds it.
type Number<'a> = Box<dyn Fn(&Round<'_>) -> Option<f64> + 'a>;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-vlan-size", &["vlan-mix"])?;
    match vlan_mixes(spec).collect::<Vec<_>>()[..] {
        [(_, mix)] if mix.crossing_percent.len() > 1 && mix.crossing_percent.is_sorted() => Ok(()),
        _ => Err("analysis `trill-vlan-size` takes one workload, with several `crossing_percent` in order".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    vlan_mixes(spec).flat_map(|(_, mix)| metrics(mix)).map(|(name, _)| name).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    put_empty(&mut findings, input, |trial| trial.records.vlan_mixes.is_empty());
    for (workload, mix) in vlan_mixes(input.spec) {
        let rounds: Vec<Round<'_>> =
            trials(input, workload).flat_map(|trial| rounds(&trial.records.vlan_mixes)).collect();
        for (name, number) in metrics(mix) {
            let samples: Vec<f64> = rounds.iter().filter_map(&number).filter(|value| value.is_finite()).collect();
            findings.put(&name, &samples, Limit::PinnedCore);
        }
        let table = table(&findings, mix);
        findings.tables.push(table);
    }
    findings
}

fn rounds(rows: &[VlanMixRow]) -> Vec<Round<'_>> {
    let mut rounds: BTreeMap<u32, Round<'_>> = BTreeMap::new();
    for row in rows {
        rounds.entry(row.round).or_default().insert((&row.way, row.crossing_percent), row);
    }
    rounds.into_values().collect()
}

fn metrics(mix: &VlanMixSpec) -> Vec<(String, Number<'_>)> {
    let mut all: Vec<(String, Number<'_>)> = mix.ways.iter().flat_map(|way| of_way(mix, way.name())).collect();
    if [Way::TrillRouter, Way::TrillRouted].iter().all(|way| mix.ways.contains(way)) {
        all.extend(mix.crossing_percent.iter().map(|percent| {
            let mean = move |round: &Round<'_>, way: Way| mean_us(round.get(&(way.name(), *percent))?);
            let ratio: Number<'_> =
                Box::new(move |round| Some(mean(round, Way::TrillRouter)? / mean(round, Way::TrillRouted)?));
            (format!("router_over_routed.{percent}"), ratio)
        }));
    }
    all
}

fn of_way<'a>(mix: &'a VlanMixSpec, way: &'static str) -> Vec<(String, Number<'a>)> {
    let percents = &mix.crossing_percent;
    let mut all: Vec<(String, Number<'a>)> = Vec::new();
    for percent in percents {
        for (name, of) in OF_TURN {
            let number: Number<'a> = Box::new(move |round| of(round.get(&(way, *percent))?));
            all.push((format!("{name}.{way}.{percent}"), number));
        }
    }
    for (name, of) in OF_LINE {
        let number: Number<'a> = Box::new(move |round| line_growth(&points(round, way, percents, of)?));
        all.push((format!("{name}.{way}"), number));
    }
    let ends = (percents[0], percents[percents.len() - 1]);
    let p50_growth: Number<'a> =
        Box::new(move |round| Some(p50_us(round.get(&(way, ends.1))?)? / p50_us(round.get(&(way, ends.0))?)?));
    all.push((format!("p50_growth.{way}"), p50_growth));
    for pair in percents.windows(2) {
        let step: Number<'a> =
            Box::new(move |round| Some(mean_us(round.get(&(way, pair[1]))?)? / mean_us(round.get(&(way, pair[0]))?)?));
        all.push((format!("step.{way}.{}", pair[1]), step));
    }
    for (name, of) in OF_ROUND {
        let number: Number<'a> = Box::new(move |round| {
            let turns = percents.iter().map(|percent| of(round.get(&(way, *percent))?));
            crate::stats::mean(&turns.collect::<Option<Vec<f64>>>()?)
        });
        all.push((format!("{name}.{way}"), number));
    }
    all
}

/// A number of one turn.
type OfTurn = fn(&VlanMixRow) -> Option<f64>;

const OF_TURN: [(&str, OfTurn); 4] =
    [("mean_us", mean_us), ("mean_net_us", mean_net_us), ("p50_us", p50_us), ("cpu_ns", cpu_ns)];
const OF_LINE: [(&str, OfTurn); 3] = [("growth", mean_us), ("growth_net", mean_net_us), ("cpu_growth", cpu_ns)];
const OF_ROUND: [(&str, OfTurn); 2] = [("lost", lost), ("quiet", |row| Some(f64::from(row.quiet)))];

fn mean_us(row: &VlanMixRow) -> Option<f64> {
    (row.received_frames > 0).then(|| row.latency_mean_ns / 1e3)
}

fn mean_net_us(row: &VlanMixRow) -> Option<f64> {
    Some(mean_us(row)? - row.floor_mean_ns / 1e3).filter(|us| *us > 0.0)
}

fn p50_us(row: &VlanMixRow) -> Option<f64> {
    (row.received_frames > 0).then(|| row.latency_p50_ns as f64 / 1e3)
}

fn cpu_ns(row: &VlanMixRow) -> Option<f64> {
    Some(row.chain_ns_per_frame - row.tester_ns_per_frame).filter(|ns| *ns > 0.0)
}

fn lost(row: &VlanMixRow) -> Option<f64> {
    (row.sent_frames > 0).then(|| 1.0 - row.received_frames as f64 / row.sent_frames as f64)
}

/// Share, 0 to 1, and number of every turn of a way; `None` if one is missing.
fn points(round: &Round<'_>, way: &str, percents: &[u32], of: OfTurn) -> Option<Vec<(f64, f64)>> {
    percents.iter().map(|percent| Some((f64::from(*percent) / 100.0, of(round.get(&(way, *percent))?)?))).collect()
}

/// The least-squares line's value at 1 over that at 0.
fn line_growth(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let sum = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (x, y) = (sum(|point| point.0) / n, sum(|point| point.1) / n);
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
    let at_0 = y - slope * x;
    (spread > 0.0 && at_0 > 0.0).then(|| (at_0 + slope) / at_0)
}

fn table(findings: &Findings, mix: &VlanMixSpec) -> Table {
    let hosts = f64::from(mix.stations);
    let mut headings: Vec<String> = ["crosses (%)", "hosts in a VLAN"].map(str::to_owned).into();
    for way in mix.ways.iter().map(|way| way.name()) {
        headings
            .extend(["mean (us)", "without floor (us)", "median (us)", "CPU (ns)"].map(|of| format!("{way}, {of}")));
    }
    let row = |percent: &u32| {
        let size = vlan_hosts(hosts, f64::from(*percent) / 100.0);
        let cells = mix
            .ways
            .iter()
            .flat_map(|way| OF_TURN.map(|(name, _)| cell(findings, &format!("{name}.{}.{percent}", way.name()))));
        [percent.to_string(), format!("{size:.0}")].into_iter().chain(cells).collect()
    };
    Table {
        title: format!(
            "By the share that crosses VLANs: 1 - (s - 1)/(N - 1) of uniform traffic of N = {hosts} hosts in VLANs of s"
        ),
        headings,
        rows: mix.crossing_percent.iter().map(row).collect(),
    }
}
