//! The all-to-all data shuffle (VL2 5.1, Figure 9).
//!
//! Goodput is payload at the receiving applications. The plateau is the time in which the bytes from 10 to 90 % of all
//! arrive. Efficiency divides goodput by what the servers' links could carry at most; the paper's own denominator also
//! deducts a limit of its NICs, so three are kept apart: headers only (2920/3154), raw line rate, and the paper's 62.3
//! of 75 Gb/s.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{FlowRow, Records};
use weft_scenario::topology::{Fabric, Role};

use super::series::{Cumulative, Window};
use super::{Input, MetricInfo, TrialRecords, cpu, framing, links};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::PlanSpec;
use crate::stats;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "goodput_efficiency", meaning: "plateau goodput / (all server rates x 2920/3154)" },
    MetricInfo { name: "whole_run_efficiency", meaning: "the same from time 0 to the end of the last flow" },
    MetricInfo { name: "goodput_over_line_rate", meaning: "plateau goodput / all server rates" },
    MetricInfo { name: "goodput_over_paper_bound", meaning: "plateau goodput / (all server rates x 62.3/75)" },
    MetricInfo {
        name: "encapsulation_bound",
        meaning: "most that 40 bytes of headers and our ACKs leave of 2920/3154",
    },
    MetricInfo { name: "plateau_goodput", meaning: "payload rate at the plateau, bit/s" },
    MetricInfo { name: "jain_flows", meaning: "Jain's index over bytes / completion time of all flows" },
    MetricInfo { name: "flow_goodput_spread", meaning: "standard deviation / mean of the flows' goodput" },
    MetricInfo {
        name: "jain_split_shuffle",
        meaning: "worst Jain index of an Aggregation's split, tenths of the plateau",
    },
    MetricInfo { name: "core_utilisation", meaning: "mean use of switch-to-switch links at the plateau" },
    MetricInfo { name: "core_utilisation_max", meaning: "use of the busiest switch-to-switch link at the plateau" },
    MetricInfo { name: "cpu_idle_busiest_core", meaning: "idle share of the busiest core at the plateau" },
    MetricInfo { name: "retransmitted_segments", meaning: "segments sent again, all flows" },
    MetricInfo { name: "shuffle_time", meaning: "time 0 to the end of the last flow, s" },
    MetricInfo { name: "tree_slowdown", meaning: "computed time on a 1:20 oversubscribed tree / ours" },
];

/// Parts that the plateau is cut into for the split.
const SPLIT_PARTS: usize = 10;
/// Servers in a rack of the conventional tree that the paper compares with.
const TREE_RACK: usize = 20;
/// Fact with the measured number of acknowledgements for one data segment, where an engine counts them.
const ACKS_PER_SEGMENT_FACT: &str = "acks_per_data_segment";

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_no_sweep(spec)
}

/// Runs the analysis over all trials; every metric is the median over them.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut shuffles = Vec::new();
    for trial in input.trials {
        match measure(trial, input.fabric()) {
            Ok(shuffle) => shuffles.push(shuffle),
            Err(problem) => findings.problems.push(problem),
        }
    }
    let cpu_bound = shuffles.iter().any(|shuffle| shuffle.limit == Limit::Cpu);
    let limit = if cpu_bound { Limit::Cpu } else { Limit::Link };
    for metric in METRICS {
        let samples: Vec<f64> = shuffles.iter().filter_map(|shuffle| shuffle.value(metric.name)).collect();
        let computed = metric.name == "encapsulation_bound";
        findings.put(metric.name, &samples, if computed { Limit::Computed } else { limit });
    }
    findings
}

/// The time in which the bytes from 10 to 90 % of all arrive. `None` if fewer arrived.
pub fn plateau(records: &Records) -> Option<Window> {
    let asked: u64 = records.flows.iter().map(|flow| flow.bytes_asked).sum();
    let payload = Cumulative::of_payload(records);
    let window = Window { from_s: payload.time_of(0.1 * asked as f64)?, to_s: payload.time_of(0.9 * asked as f64)? };
    (window.to_s > window.from_s).then_some(window)
}

/// Goodput of every finished flow in bits per second.
pub fn flow_goodputs(flows: &[FlowRow]) -> Vec<f64> {
    let goodput = |flow: &FlowRow| {
        let span = flow.end_ns?.checked_sub(flow.start_ns).filter(|span| *span > 0)?;
        Some(flow.bytes_received as f64 * 8e9 / span as f64)
    };
    flows.iter().filter_map(goodput).collect()
}

/// Sum of the rates of all servers' links, bits per second.
pub fn capacity_bps(fabric: &Fabric) -> f64 {
    fabric
        .servers()
        .filter_map(|server| fabric.edge_of(server))
        .map(|(_, link)| fabric.link(link).spec.rate.0 as f64)
        .sum()
}

/// The numbers of one trial.
struct Shuffle {
    limit: Limit,
    values: Vec<(&'static str, Option<f64>)>,
}

impl Shuffle {
    fn value(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == name)?.1
    }
}

fn measure(trial: &TrialRecords, fabric: &Fabric) -> Result<Shuffle, Problem> {
    let records = &trial.records;
    let number = trial.key.trial;
    if records.flows.is_empty() {
        return Err(Problem::Failed(format!("trial {number} has no flows")));
    }
    let complete = |flow: &&FlowRow| flow.end_ns.is_some() && flow.bytes_received >= flow.bytes_asked;
    let done = records.flows.iter().filter(complete).count();
    if done < records.flows.len() {
        let (open, all) = (records.flows.len() - done, records.flows.len());
        return Err(Problem::Failed(format!("{open} of {all} flows of trial {number} did not finish")));
    }
    let window = plateau(records)
        .ok_or_else(|| Problem::Failed(format!("trial {number} has no plateau: too few progress rows")))?;
    Ok(Shuffle {
        limit: cpu::limit(&records.cpu, window, Limit::Link),
        values: [rates(trial, fabric, window), fairness(records, fabric, window), rest(records, fabric, window)]
            .concat(),
    })
}

type Values = Vec<(&'static str, Option<f64>)>;

fn rates(trial: &TrialRecords, fabric: &Fabric, window: Window) -> Values {
    let payload = Cumulative::of_payload(&trial.records);
    let line_rate = capacity_bps(fabric);
    let plateau = payload.rate(window.from_s, window.to_s) * 8.0;
    let whole = payload.rate(0.0, payload.end()) * 8.0;
    let acks_per_segment = trial.records.fact(ACKS_PER_SEGMENT_FACT);
    let segments_per_ack = acks_per_segment.map_or(framing::PAPER_SEGMENTS_PER_ACK, f64::recip);
    let bound = (trial.key.overlay == Overlay::Vl2).then(|| framing::encapsulation_bound(segments_per_ack));
    let headers_only = line_rate * framing::headers_only_ratio();
    vec![
        ("goodput_efficiency", Some(plateau / headers_only)),
        ("whole_run_efficiency", Some(whole / headers_only)),
        ("goodput_over_line_rate", Some(plateau / line_rate)),
        ("goodput_over_paper_bound", Some(plateau / (line_rate * framing::PAPER_BOUND_OVER_LINE_RATE))),
        ("encapsulation_bound", bound),
        ("plateau_goodput", Some(plateau)),
        ("shuffle_time", Some(payload.end())),
        ("tree_slowdown", tree_time_s(&trial.records, fabric).map(|tree| tree / payload.end())),
    ]
}

fn fairness(records: &Records, fabric: &Fabric, window: Window) -> Values {
    let goodputs = flow_goodputs(&records.flows);
    let spread = stats::standard_deviation(&goodputs).zip(stats::mean(&goodputs)).map(|(sd, mean)| sd / mean);
    let series = links::all(&records.links, fabric);
    let worst_split = links::intermediate_links(&series)
        .values()
        .flat_map(|uplinks| window.parts(SPLIT_PARTS).filter_map(|part| links::split_index(uplinks, part)))
        .min_by(f64::total_cmp);
    vec![("jain_flows", stats::jain(&goodputs)), ("flow_goodput_spread", spread), ("jain_split_shuffle", worst_split)]
}

fn rest(records: &Records, fabric: &Fabric, window: Window) -> Values {
    let series = links::all(&records.links, fabric);
    let mut core = links::utilisations(&series, [Role::Aggregation, Role::Intermediate], window);
    core.extend(links::utilisations(&series, [Role::Tor, Role::Aggregation], window));
    vec![
        ("core_utilisation", stats::mean(&core)),
        ("core_utilisation_max", core.into_iter().max_by(f64::total_cmp)),
        ("cpu_idle_busiest_core", cpu::busiest_idle(&records.cpu, window)),
        ("retransmitted_segments", Some(records.flows.iter().map(|flow| flow.retransmits).sum::<u64>() as f64)),
    ]
}

/// How long the shuffle would take on a conventional tree, by the paper's arithmetic: one server's rate into each rack
/// carries what all servers outside send to all inside (75 servers: 55 x 20 flows). A fabric too small for such racks
/// takes its own largest rack instead. `None` if flows differ in size.
fn tree_time_s(records: &Records, fabric: &Fabric) -> Option<f64> {
    let servers = fabric.servers().count();
    let rack = if servers > 2 * TREE_RACK { TREE_RACK } else { largest_rack(fabric) };
    let bytes = records.flows.first()?.bytes_asked;
    let (_, link) = fabric.edge_of(fabric.servers().next()?)?;
    let rate = fabric.link(link).spec.rate.0 as f64;
    let alike = records.flows.iter().all(|flow| flow.bytes_asked == bytes);
    alike.then(|| (rack * (servers - rack)) as f64 * bytes as f64 * 8.0 / rate)
}

fn largest_rack(fabric: &Fabric) -> usize {
    let edges: Vec<_> = fabric.servers().filter_map(|server| fabric.edge_of(server)).map(|(edge, _)| edge).collect();
    edges.iter().map(|edge| edges.iter().filter(|other| *other == edge).count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
