//! The TRILL papers' experiments: one module per question, and what they share.
//!
//! * [`latency`]: TRILL beside spanning tree and beside layer 2 at the same hook (Table 1); between VLANs (Table 2)
//! * [`throughput`]: frames received per unit time by size (the plot captioned as Figure 2)
//! * [`load`]: delivered over offered load, up to more than four paths
//! * [`paths`]: how flows spread over four next hops, and whether they stay in order
//! * [`convergence`]: how long flows stand still when a middle switch is lost
//! * [`cpu`]: CPU use of S1 and S2 within a VLAN and between VLANs (Figure 4)
//! * [`elephants`]: few large flows on four paths, whole, as flowlets, and in subflows
//! * [`elision`]: frames without outer headers beside frames with them
//! * [`multipath`]: the same with real kernels: TCP, multipath TCP, stripes
//! * [`vlan_size`]: the share of traffic that crosses VLANs, which follows from their size, against latency and CPU
//! * [`fast_path`]: the fast-path paper's Table I, with latency, encapsulation and decapsulation
//!
//! Metrics are functions of one trial's rows, made from the plan: what a plan may claim and what is computed cannot differ.
//! Comparisons are made within a trial, between runs that took turns.

pub mod convergence;
pub mod cpu;
pub mod elephants;
pub mod elision;
pub mod fast_path;
pub mod latency;
pub mod load;
pub mod multipath;
pub mod paths;
pub mod throughput;
pub mod vlan_size;

use weft_scenario::record::{ChainRow, CrossingRow};
use weft_scenario::workload::trill::{
    ConvergenceSpec, CostSpec, CrossingSpec, ElephantSpec, Offer, SpreadSpec, VlanMixSpec, Way,
};
use weft_scenario::workload::{TrillSpec, Workload};

use super::trials::{cell, put};
use super::{Input, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// A number of a trial's rows, if they hold it.
type Number<'a> = Box<dyn Fn(&TrialRecords) -> Option<f64> + 'a>;

/// A metric of one workload as a function of a trial's rows.
struct Metric<'a> {
    name: String,
    workload: &'a str,
    number: Number<'a>,
}

impl<'a> Metric<'a> {
    fn new(name: String, workload: &'a str, number: impl Fn(&TrialRecords) -> Option<f64> + 'a) -> Self {
        Self { name, workload, number: Box::new(number) }
    }
}

fn names_of(metrics: &[Metric<'_>]) -> Vec<String> {
    metrics.iter().map(|metric| metric.name.clone()).collect()
}

/// The median of every metric over the repetitions.
fn estimates(input: &Input<'_>, metrics: &[Metric<'_>]) -> Findings {
    let mut findings = Findings::default();
    for metric in metrics {
        put(&mut findings, input, metric.workload, &metric.name, &metric.number);
    }
    findings
}

/// The workloads of a plan in which frames cross.
pub fn crossings(spec: &PlanSpec) -> impl Iterator<Item = (&str, &CrossingSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Trill(TrillSpec::Crossing(crossing)) => Some((name.as_str(), crossing)),
        _ => None,
    })
}

/// Those with the chain cut.
pub fn costs(spec: &PlanSpec) -> impl Iterator<Item = (&str, &CostSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Trill(TrillSpec::Cost(cost)) => Some((name.as_str(), cost)),
        _ => None,
    })
}

/// Those in which a switch is lost.
pub fn convergences(spec: &PlanSpec) -> impl Iterator<Item = (&str, &ConvergenceSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Trill(TrillSpec::Convergence(convergence)) => Some((name.as_str(), convergence)),
        _ => None,
    })
}

/// Those in which work is spread over CPUs.
pub fn spreads(spec: &PlanSpec) -> impl Iterator<Item = (&str, &SpreadSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Trill(TrillSpec::Spread(spread)) => Some((name.as_str(), spread)),
        _ => None,
    })
}

/// Those of which a share crosses VLANs.
pub fn vlan_mixes(spec: &PlanSpec) -> impl Iterator<Item = (&str, &VlanMixSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Trill(TrillSpec::VlanMix(mix)) => Some((name.as_str(), mix)),
        _ => None,
    })
}

/// Those with few large flows.
pub fn elephants_of(spec: &PlanSpec) -> impl Iterator<Item = (&str, &ElephantSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Trill(TrillSpec::Elephants(elephants)) => Some((name.as_str(), elephants)),
        _ => None,
    })
}

/// Whether all workloads are of these experiments and there is no sweep.
fn check_only(spec: &PlanSpec, analysis: &str, experiments: &[&str]) -> Result<(), String> {
    let right = |workload: &Workload| matches!(workload, Workload::Trill(one) if experiments.contains(&one.name()));
    if spec.workload.values().all(right) && spec.axes.is_empty() {
        return Ok(());
    }
    let wanted: Vec<String> = experiments.iter().map(|name| format!("`experiment = \"{name}\"`")).collect();
    Err(format!("analysis `{analysis}` needs workloads with {} and no sweep", wanted.join(" or ")))
}

/// The row of a way at a size and a rate.
fn crossing(trial: &TrialRecords, way: Way, bytes: u32, offer: Offer) -> Option<&CrossingRow> {
    let is_it = |row: &&CrossingRow| {
        row.way == way.name()
            && row.frame_bytes == bytes
            && row.load_percent == offer.load_percent
            && (row.asked_per_s - offer.per_s).abs() <= offer.per_s * 1e-9
    };
    trial.records.crossings.iter().find(is_it)
}

/// Less than this share of the rate that was asked for is another load, of which a share or a rate would say nothing.
const OFFERED_LEAST: f64 = 0.9;

/// Whether the generator sent what it was asked to: other work on the machine takes its core away.
fn was_offered(row: &CrossingRow) -> bool {
    let offered = row.sent_frames as f64 * 1e9 / row.wall_ns.max(1) as f64;
    row.sent_frames > 0 && row.wall_ns > 0 && offered >= row.asked_per_s * OFFERED_LEAST
}

/// Received of sent, 0 to 1; `None` if less was offered.
fn delivered(row: &CrossingRow) -> Option<f64> {
    was_offered(row).then(|| row.received_frames as f64 / row.sent_frames as f64)
}

/// Frames received per second of sending; `None` if less was offered.
fn received_per_s(row: &CrossingRow) -> Option<f64> {
    was_offered(row).then(|| row.received_frames as f64 * 1e9 / row.wall_ns as f64)
}

/// The row of a chain that ends behind a switch; no way and no switch: the test centre alone.
fn chain_ns(trial: &TrialRecords, way: &str, until: &str, bytes: u32) -> Option<f64> {
    let is_it = |row: &&ChainRow| row.way == way && row.until == until && row.frame_bytes == bytes;
    trial.records.chains.iter().find(is_it).map(|row| row.chain_ns_per_frame)
}

/// CPU time per frame at a switch: what its chain takes more than the one before.
fn switch_ns(trial: &TrialRecords, way: Way, switch: &str, bytes: u32) -> Option<f64> {
    let before = match switch {
        "s1" => chain_ns(trial, "", "", bytes),
        "middle" => chain_ns(trial, way.name(), "s1", bytes),
        _ => chain_ns(trial, way.name(), "middle", bytes),
    };
    Some(chain_ns(trial, way.name(), switch, bytes)? - before?).filter(|ns| *ns > 0.0)
}

/// CPU time per frame of all switches.
fn path_ns(trial: &TrialRecords, way: Way, bytes: u32) -> Option<f64> {
    Some(chain_ns(trial, way.name(), "s2", bytes)? - chain_ns(trial, "", "", bytes)?).filter(|ns| *ns > 0.0)
}

/// Mean over all sizes; `None` if one has no number.
fn mean_of_sizes(sizes: &[u32], number: impl Fn(u32) -> Option<f64>) -> Option<f64> {
    stats::mean(&sizes.iter().map(|bytes| number(*bytes)).collect::<Option<Vec<f64>>>()?)
}

/// One row for each size, one column for each metric; `metrics`: heading and name without the size.
fn table_by_size(findings: &Findings, title: String, sizes: &[u32], metrics: &[(String, String)]) -> Table {
    let row = |bytes: &u32| {
        let cells = metrics.iter().map(|(_, name)| cell(findings, &name.replace("{}", &bytes.to_string())));
        std::iter::once(bytes.to_string()).chain(cells).collect()
    };
    let headings = std::iter::once("size (B)".to_owned()).chain(metrics.iter().map(|(heading, _)| heading.clone()));
    Table { title, headings: headings.collect(), rows: sizes.iter().map(row).collect() }
}

#[cfg(test)]
mod tests;
