//! TRILL without outer headers beside TRILL with them: bytes on the wire, what full lines deliver, latency, CPU time.

use weft_scenario::workload::trill::{CostSpec, CrossingSpec, Way, elision_gain_limit};

use super::load::most_per_s;
use super::{Metric, costs, crossing, crossings, delivered, mean_of_sizes, path_ns, switch_ns, table_by_size};
use crate::analysis::trials::{put_calibration, put_empty};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::Findings;
use crate::plan::PlanSpec;

/// What this analysis yields, with the workload behind the name, then the way, the size and the load where it is that one's;
/// the workload of costs has no name. Ratios are of frames without outer header to frames with it.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "link_bytes",
        meaning: "mean length of what the middle switches take from S1, as the kernel counts: without FCS",
    },
    MetricInfo { name: "saved_bytes", meaning: "so much shorter without outer header; the least of all sizes" },
    MetricInfo { name: "p50_us", meaning: "median one-way latency at the first load or rate, us" },
    MetricInfo { name: "latency_ratio", meaning: "median latency at the first load or rate; without a size the mean" },
    MetricInfo { name: "delivered", meaning: "received of sent" },
    MetricInfo { name: "most_gain", meaning: "most that was delivered at any load" },
    MetricInfo { name: "gain_limit", meaning: "computed: frames that a line takes, 10 bytes of TRILL instead of 24" },
    MetricInfo { name: "gain_of_limit", meaning: "the gain over that limit, the least of all sizes" },
    MetricInfo { name: "transit_ns", meaning: "CPU time per frame at the middle switch, ns" },
    MetricInfo { name: "encapsulation_ns", meaning: "CPU time per frame at S1, ns" },
    MetricInfo { name: "decapsulation_ns", meaning: "CPU time per frame at S2, ns" },
    MetricInfo { name: "transit_ratio", meaning: "CPU time per frame at the middle switch" },
    MetricInfo { name: "path_ratio", meaning: "CPU time per frame of all three switches" },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

const WAYS: [Way; 2] = [Way::Trill, Way::TrillElided];
const ROLES: [(&str, &str); 3] = [("encapsulation_ns", "s1"), ("transit_ns", "middle"), ("decapsulation_ns", "s2")];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-elision", &["crossing", "cost"])?;
    let mut ways = crossings(spec).map(|(_, spec)| &spec.ways).chain(costs(spec).map(|(_, spec)| &spec.ways));
    if ways.any(|ways| ways[..] != WAYS) {
        return Err("analysis `trill-elision` takes the ways `trill` and `trill-elided`".to_owned());
    }
    match costs(spec).count() {
        0 | 1 => Ok(()),
        _ => Err("analysis `trill-elision` takes one workload of costs".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = super::names_of(&metrics(spec));
    if costs(spec).count() > 0 {
        names.push("calibration_error".to_owned());
    }
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = super::estimates(input, &metrics(input.spec));
    put_empty(&mut findings, input, |trial| trial.records.chains.is_empty() && trial.records.crossings.is_empty());
    if costs(input.spec).count() > 0 {
        put_calibration(&mut findings, input);
    }
    for (workload, spec) in crossings(input.spec) {
        let column = |metric: &str, way: Way| {
            (format!("{metric}, {}", way.name()), format!("{metric}.{workload}.{}.{{}}", way.name()))
        };
        let mut columns: Vec<_> =
            ["link_bytes", "p50_us"].iter().flat_map(|metric| WAYS.map(|way| column(metric, way))).collect();
        columns.push(("latency ratio".into(), format!("latency_ratio.{workload}.{{}}")));
        if spec.link.is_some() {
            columns.push(("most delivered, ratio".into(), format!("most_gain.{workload}.{{}}")));
            columns.push(("computed limit".into(), "gain_limit.{}".into()));
        }
        findings.tables.push(table_by_size(&findings, format!("`{workload}`"), &spec.frame_bytes, &columns));
    }
    for (_, spec) in costs(input.spec) {
        let columns: Vec<_> = ROLES
            .iter()
            .flat_map(|(metric, _)| WAYS.map(|way| (*metric, way.name())))
            .map(|(metric, way)| (format!("{metric}, {way}"), format!("{metric}.{way}.{{}}")))
            .collect();
        findings.tables.push(table_by_size(&findings, "CPU time".into(), &spec.frame_bytes, &columns));
    }
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    let mut all: Vec<Metric<'_>> = crossings(spec).flat_map(|(workload, spec)| of_crossing(workload, spec)).collect();
    all.extend(costs(spec).flat_map(|(workload, spec)| of_cost(workload, spec)));
    all
}

fn of_crossing<'a>(workload: &'a str, spec: &'a CrossingSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    let sizes = &spec.frame_bytes;
    for (way, bytes) in WAYS.into_iter().flat_map(|way| sizes.iter().map(move |bytes| (way, *bytes))) {
        let name = |metric: &str| format!("{metric}.{workload}.{}.{bytes}", way.name());
        all.push(Metric::new(name("link_bytes"), workload, move |trial| link_bytes(trial, way, bytes)));
        all.push(Metric::new(name("p50_us"), workload, move |trial| Some(p50_ns(trial, spec, way, bytes)? / 1e3)));
        for offer in spec.offers(bytes) {
            let metric = format!("{}.{}", name("delivered"), offer.label());
            all.push(Metric::new(metric, workload, move |trial| delivered(crossing(trial, way, bytes, offer)?)));
        }
    }
    let saved =
        |trial: &TrialRecords, bytes| Some(link_bytes(trial, WAYS[0], bytes)? - link_bytes(trial, WAYS[1], bytes)?);
    all.push(Metric::new(format!("saved_bytes.{workload}"), workload, move |trial| least(sizes, |n| saved(trial, n))));
    let latency = move |trial: &TrialRecords, bytes| {
        Some(p50_ns(trial, spec, WAYS[1], bytes)? / p50_ns(trial, spec, WAYS[0], bytes)?)
    };
    all.push(Metric::new(format!("latency_ratio.{workload}"), workload, move |trial| {
        mean_of_sizes(sizes, |bytes| latency(trial, bytes))
    }));
    let gain = move |trial: &TrialRecords, bytes| {
        Some(most_per_s(trial, spec, WAYS[1], bytes)? / most_per_s(trial, spec, WAYS[0], bytes)?)
    };
    for bytes in sizes {
        let name = |metric: &str| format!("{metric}.{workload}.{bytes}");
        all.push(Metric::new(name("latency_ratio"), workload, move |trial| latency(trial, *bytes)));
        if spec.link.is_some() {
            all.push(Metric::new(name("most_gain"), workload, move |trial| gain(trial, *bytes)));
            let limit = elision_gain_limit(*bytes);
            all.push(Metric::new(format!("gain_limit.{bytes}"), workload, move |_| Some(limit)));
        }
    }
    if spec.link.is_some() {
        all.push(Metric::new(format!("gain_of_limit.{workload}"), workload, move |trial| {
            least(sizes, |bytes| Some(gain(trial, bytes)? / elision_gain_limit(bytes)))
        }));
    }
    all
}

fn of_cost<'a>(workload: &'a str, spec: &'a CostSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    for bytes in spec.frame_bytes.iter().copied() {
        for (way, (metric, switch)) in WAYS.into_iter().flat_map(|way| ROLES.map(move |role| (way, role))) {
            let name = format!("{metric}.{}.{bytes}", way.name());
            all.push(Metric::new(name, workload, move |trial| switch_ns(trial, way, switch, bytes)));
        }
        all.push(Metric::new(format!("transit_ratio.{bytes}"), workload, move |trial| {
            Some(switch_ns(trial, WAYS[1], "middle", bytes)? / switch_ns(trial, WAYS[0], "middle", bytes)?)
        }));
        all.push(Metric::new(format!("path_ratio.{bytes}"), workload, move |trial| {
            Some(path_ns(trial, WAYS[1], bytes)? / path_ns(trial, WAYS[0], bytes)?)
        }));
    }
    all
}

/// Over all loads: what else the switches say to each other is less than a byte then.
fn link_bytes(trial: &TrialRecords, way: Way, bytes: u32) -> Option<f64> {
    let rows = trial.records.path_shares.iter().filter(|row| row.way == way.name() && row.frame_bytes == bytes);
    let (frames, total) = rows.fold((0, 0), |(frames, total), row| (frames + row.frames, total + row.bytes));
    (frames > 0).then(|| total as f64 / frames as f64)
}

fn p50_ns(trial: &TrialRecords, spec: &CrossingSpec, way: Way, bytes: u32) -> Option<f64> {
    let offer = *spec.offers(bytes).first()?;
    let row = crossing(trial, way, bytes, offer).filter(|row| row.received_frames > 0)?;
    Some(row.latency_p50_ns as f64)
}

fn least(sizes: &[u32], number: impl Fn(u32) -> Option<f64>) -> Option<f64> {
    sizes.iter().map(|bytes| number(*bytes)).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}
