//! How long flows stand still when a middle switch is lost.

use weft_scenario::record::SwitchLossRow;
use weft_scenario::workload::trill::{SwitchLoss, Way};

use super::{Metric, convergences};
use crate::analysis::trials::{cell, put_empty};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;

/// What this analysis yields, with the way and how the switch was lost behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "outage_s", meaning: "time of the frames that the worst flow lost, s" },
    MetricInfo { name: "hit_share", meaning: "flows that lost frames, of all" },
    MetricInfo { name: "lost", meaning: "frames that did not arrive" },
    MetricInfo { name: "recovery_s", meaning: "what the timers of a spanning tree add up to, s" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-convergence", &["convergence"])?;
    let mut seen = std::collections::BTreeSet::new();
    match convergences(spec).flat_map(|(_, one)| one.ways.iter().map(|way| way.name())).all(|way| seen.insert(way)) {
        true => Ok(()),
        false => Err("analysis `trill-convergence` takes every way in one workload only".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    super::names_of(&metrics(spec))
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = super::estimates(input, &metrics(input.spec));
    put_empty(&mut findings, input, |trial| trial.records.switch_losses.is_empty());
    let row = |(way, loss): (Way, SwitchLoss)| {
        let (way, loss) = (way.name(), loss.name());
        let metrics = METRICS.iter().map(|metric| cell(&findings, &format!("{}.{way}.{loss}", metric.name)));
        [way.to_owned(), loss.to_owned()].into_iter().chain(metrics).collect()
    };
    let rows = cases(input.spec).into_iter().map(|(_, way, loss)| row((way, loss))).collect();
    let headings = ["way", "loss", "outage (s)", "flows hit", "frames lost", "timers (s)"].map(str::to_owned).to_vec();
    findings.tables.push(Table { title: "A middle switch is lost".into(), headings, rows });
    findings
}

/// Every workload with its ways and all losses, also those that a mode of the plan leaves out.
pub fn cases(spec: &PlanSpec) -> Vec<(&str, Way, SwitchLoss)> {
    let mut all = Vec::new();
    for (workload, one) in convergences(spec) {
        all.extend(one.ways.iter().flat_map(|way| SwitchLoss::ALL.map(|loss| (workload, *way, loss))));
    }
    all
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    let of = |(workload, way, loss): (_, Way, SwitchLoss)| {
        let name = |metric: &str| format!("{metric}.{}.{}", way.name(), loss.name());
        let row = move |trial: &TrialRecords| row(trial, way, loss).cloned();
        [
            Metric::new(name("outage_s"), workload, move |trial| Some(row(trial)?.outage_ns as f64 / 1e9)),
            Metric::new(name("hit_share"), workload, move |trial| {
                row(trial).map(|row| f64::from(row.hit_flows) / f64::from(row.flows.max(1)))
            }),
            Metric::new(name("lost"), workload, move |trial| Some(row(trial)?.lost_frames as f64)),
            Metric::new(name("recovery_s"), workload, move |trial| Some(row(trial)?.recovery_s as f64)),
        ]
    };
    cases(spec).into_iter().flat_map(of).collect()
}

fn row(trial: &TrialRecords, way: Way, loss: SwitchLoss) -> Option<&SwitchLossRow> {
    trial.records.switch_losses.iter().find(|row| row.way == way.name() && row.loss == loss.name())
}
