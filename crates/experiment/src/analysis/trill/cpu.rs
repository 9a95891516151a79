//! CPU use of the edge switches within a VLAN and between VLANs.

use weft_scenario::workload::trill::{CostSpec, Way};

use super::{Metric, costs, mean_of_sizes, switch_ns, table_by_size};
use crate::analysis::trials::{put_calibration, put_empty};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::Findings;
use crate::plan::PlanSpec;

/// What this analysis yields, with the switch (`s1`, `s2`) behind the name, then way, size and rate where it is that one's.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "frame_ns", meaning: "CPU time per frame at the switch, ns; without a size the mean of all" },
    MetricInfo {
        name: "extra_ns",
        meaning: "CPU time per frame between VLANs over that within one, ns; mean of all sizes",
    },
    MetricInfo {
        name: "inter_over_intra",
        meaning: "CPU time per frame between VLANs over that within one, mean of all sizes",
    },
    MetricInfo { name: "cpu_percent", meaning: "share of one core that the switch is busy with at a rate, percent" },
    MetricInfo {
        name: "extra_points",
        meaning: "percentage points of one core that a rate between VLANs takes more than within one",
    },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

const SWITCHES: [&str; 2] = ["s1", "s2"];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-cpu", &["cost"])?;
    match spec.workload.len() {
        1 => Ok(()),
        _ => Err("analysis `trill-cpu` takes one workload".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = super::names_of(&metrics(spec));
    names.push("calibration_error".to_owned());
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = super::estimates(input, &metrics(input.spec));
    put_empty(&mut findings, input, |trial| trial.records.chains.is_empty());
    put_calibration(&mut findings, input);
    for (_, spec) in costs(input.spec) {
        let column = |switch: &str, way: &Way| {
            (format!("{switch}, {} (ns)", way.name()), format!("frame_ns.{switch}.{}.{{}}", way.name()))
        };
        let columns: Vec<_> =
            SWITCHES.iter().flat_map(|switch| spec.ways.iter().map(move |way| column(switch, way))).collect();
        let title = "CPU time per frame at the edge switches".into();
        findings.tables.push(table_by_size(&findings, title, &spec.frame_bytes, &columns));
    }
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    costs(spec).flat_map(|(workload, spec)| of_workload(workload, spec)).collect()
}

fn of_workload<'a>(workload: &'a str, spec: &'a CostSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    for switch in SWITCHES {
        let mean = move |trial: &TrialRecords, way| {
            mean_of_sizes(&spec.frame_bytes, |bytes| switch_ns(trial, way, switch, bytes))
        };
        for way in &spec.ways {
            let name = way.name();
            all.push(Metric::new(format!("frame_ns.{switch}.{name}"), workload, move |trial| mean(trial, *way)));
            all.extend(spec.frame_bytes.iter().map(|bytes| {
                let metric = format!("frame_ns.{switch}.{name}.{bytes}");
                Metric::new(metric, workload, move |trial| switch_ns(trial, *way, switch, *bytes))
            }));
            all.extend(spec.per_s.iter().map(|rate| {
                let metric = format!("cpu_percent.{switch}.{name}.{rate}");
                Metric::new(metric, workload, move |trial| Some(percent_at(mean(trial, *way)?, *rate)))
            }));
        }
        if spec.ways.contains(&Way::Trill) && spec.ways.contains(&Way::TrillRouted) {
            let extra = move |trial: &TrialRecords| Some(mean(trial, Way::TrillRouted)? - mean(trial, Way::Trill)?);
            all.push(Metric::new(format!("extra_ns.{switch}"), workload, extra));
            all.push(Metric::new(format!("inter_over_intra.{switch}"), workload, move |trial| {
                Some(mean(trial, Way::TrillRouted)? / mean(trial, Way::Trill)?)
            }));
            all.extend(spec.per_s.iter().map(|rate| {
                let metric = format!("extra_points.{switch}.{rate}");
                Metric::new(metric, workload, move |trial| Some(percent_at(extra(trial)?, *rate)))
            }));
        }
    }
    all
}

fn percent_at(frame_ns: f64, per_s: u32) -> f64 {
    frame_ns * f64::from(per_s) * 1e-9 * 100.0
}
