//! Frames received per unit of time at the workload's first load, by size: TRILL beside spanning tree.

use weft_scenario::workload::trill::{CrossingSpec, LAYER1_EXTRA_BYTES, Way};

use super::{Metric, crossing, crossings, delivered, received_per_s, table_by_size};
use crate::analysis::trials::put_empty;
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::Findings;
use crate::plan::PlanSpec;

/// What this analysis yields, with the workload behind the name, then the way and the size where it is that one's.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "received_per_s", meaning: "frames received per second" },
    MetricInfo { name: "delivered", meaning: "received of sent; without a size the least of all" },
    MetricInfo { name: "received_ratio", meaning: "frames received per second with TRILL over spanning tree" },
    MetricInfo {
        name: "offered_of_line",
        meaning: "what is offered, with preamble and gap, over the rate of one path's line: above 1 it cannot arrive",
    },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-throughput", &["crossing"])?;
    match crossings(spec).all(|(_, crossing)| crossing.link.is_some()) {
        true => Ok(()),
        false => Err("analysis `trill-throughput` needs workloads with a `link`".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    super::names_of(&metrics(spec))
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = super::estimates(input, &metrics(input.spec));
    put_empty(&mut findings, input, |trial| trial.records.crossings.is_empty());
    for (workload, spec) in crossings(input.spec) {
        let mut columns: Vec<(String, String)> = Vec::new();
        for way in spec.ways.iter().map(|way| way.name()) {
            columns.push((format!("{way} (frames/s)"), format!("received_per_s.{workload}.{way}.{{}}")));
            columns.push((format!("{way}, of sent"), format!("delivered.{workload}.{way}.{{}}")));
        }
        columns.push(("TRILL over spanning tree".into(), format!("received_ratio.{workload}.{{}}")));
        columns.push(("offered over one line".into(), format!("offered_of_line.{workload}.{{}}")));
        let title = format!("Frames received, `{workload}`");
        findings.tables.push(table_by_size(&findings, title, &spec.frame_bytes, &columns));
    }
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    crossings(spec).flat_map(|(workload, spec)| of_workload(workload, spec)).collect()
}

fn of_workload<'a>(workload: &'a str, spec: &'a CrossingSpec) -> Vec<Metric<'a>> {
    let first = |bytes| spec.offers(bytes)[0];
    let rate = move |trial: &TrialRecords, way, bytes| received_per_s(crossing(trial, way, bytes, first(bytes))?);
    let share = move |trial: &TrialRecords, way, bytes| delivered(crossing(trial, way, bytes, first(bytes))?);
    let mut all = Vec::new();
    for way in &spec.ways {
        let name = |metric: &str| format!("{metric}.{workload}.{}", way.name());
        for bytes in &spec.frame_bytes {
            let sized = |metric: &str| format!("{}.{bytes}", name(metric));
            all.push(Metric::new(sized("received_per_s"), workload, move |trial| rate(trial, *way, *bytes)));
            all.push(Metric::new(sized("delivered"), workload, move |trial| share(trial, *way, *bytes)));
        }
        all.push(Metric::new(name("delivered"), workload, move |trial| {
            let shares = spec.frame_bytes.iter().map(|bytes| share(trial, *way, *bytes));
            shares.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
        }));
    }
    for bytes in &spec.frame_bytes {
        if spec.ways.contains(&Way::Trill) && spec.ways.contains(&Way::Stp) {
            all.push(Metric::new(format!("received_ratio.{workload}.{bytes}"), workload, move |trial| {
                Some(rate(trial, Way::Trill, *bytes)? / rate(trial, Way::Stp, *bytes)?)
            }));
        }
        all.push(Metric::new(format!("offered_of_line.{workload}.{bytes}"), workload, move |_| {
            let line = f64::from(bytes + LAYER1_EXTRA_BYTES) * 8.0 * first(*bytes).per_s;
            Some(line / spec.link?.rate.0 as f64)
        }));
    }
    all
}
