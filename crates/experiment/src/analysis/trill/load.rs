//! Delivered over offered load, from half of one path to more than four.

use weft_scenario::workload::trill::{CrossingSpec, LAYER1_EXTRA_BYTES, Offer, Way, path_gain_limit};

use super::{Metric, crossing, crossings, delivered, received_per_s, table_by_size};
use crate::analysis::trials::put_empty;
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::Findings;
use crate::plan::PlanSpec;

/// From this size on headers hardly matter: what the claim on four paths is about, bytes.
const LARGE_BYTES: u32 = 512;

/// What this analysis yields, with the way and the size behind the name, then the load in percent of one path.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "delivered", meaning: "received of sent" },
    MetricInfo {
        name: "most_paths",
        meaning: "most that was delivered at any load, frames with preamble and gap over the rate of one path's line",
    },
    MetricInfo { name: "trill_over_stp", meaning: "most that TRILL delivered over most that spanning tree delivered" },
    MetricInfo { name: "trill_over_stp_large", meaning: "the same, the least of all sizes from 512 bytes on" },
    MetricInfo {
        name: "gain_limit",
        meaning: "computed: as many paths, less the share of a line that TRILL's 24 bytes take",
    },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-load", &["crossing"])?;
    match spec.workload.len() == 1 && crossings(spec).all(|(_, crossing)| crossing.link.is_some()) {
        true => Ok(()),
        false => Err("analysis `trill-load` takes one workload, with a `link`".to_owned()),
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
    for (_, spec) in crossings(input.spec) {
        let most = spec.ways.iter().map(|way| way.name());
        let mut columns: Vec<_> =
            most.map(|way| (format!("{way} (paths)"), format!("most_paths.{way}.{{}}"))).collect();
        columns.push(("TRILL over spanning tree".into(), "trill_over_stp.{}".into()));
        columns.push(("computed limit".into(), "gain_limit.{}".into()));
        findings.tables.push(table_by_size(&findings, "Most that was delivered".into(), &spec.frame_bytes, &columns));
    }
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    crossings(spec).flat_map(|(workload, spec)| of_workload(workload, spec)).collect()
}

fn of_workload<'a>(workload: &'a str, spec: &'a CrossingSpec) -> Vec<Metric<'a>> {
    let most = move |trial: &TrialRecords, way, bytes| most_per_s(trial, spec, way, bytes);
    let gain = move |trial: &TrialRecords, bytes| Some(most(trial, Way::Trill, bytes)? / most(trial, Way::Stp, bytes)?);
    let mut all = Vec::new();
    for bytes in &spec.frame_bytes {
        for way in &spec.ways {
            let name = way.name();
            for offer in spec.offers(*bytes) {
                let metric = format!("delivered.{name}.{bytes}.{}", offer.label());
                all.push(Metric::new(metric, workload, move |trial| delivered(crossing(trial, *way, *bytes, offer)?)));
            }
            all.push(Metric::new(format!("most_paths.{name}.{bytes}"), workload, move |trial| {
                let bits = f64::from(bytes + LAYER1_EXTRA_BYTES) * 8.0;
                Some(most(trial, *way, *bytes)? * bits / spec.link?.rate.0 as f64)
            }));
        }
        all.push(Metric::new(format!("trill_over_stp.{bytes}"), workload, move |trial| gain(trial, *bytes)));
        let limit = path_gain_limit(*bytes, spec.network.paths());
        all.push(Metric::new(format!("gain_limit.{bytes}"), workload, move |_| Some(limit)));
    }
    all.push(Metric::new("trill_over_stp_large".into(), workload, move |trial| {
        let large = spec.frame_bytes.iter().filter(|bytes| **bytes >= LARGE_BYTES);
        large.map(|bytes| gain(trial, *bytes)).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
    }));
    all
}

/// The highest rate that arrived at any load, frames per second; `None` if the highest load was not offered, because then more
/// might have arrived.
pub(super) fn most_per_s(trial: &TrialRecords, spec: &CrossingSpec, way: Way, bytes: u32) -> Option<f64> {
    let offers = spec.offers(bytes);
    let rate = |offer: &Offer| received_per_s(crossing(trial, way, bytes, *offer)?);
    let highest = offers.iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    rate(highest)?;
    offers.iter().filter_map(rate).reduce(f64::max)
}
