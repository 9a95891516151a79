//! Latency of TRILL beside spanning tree, beside layer 2 at the same hook, and between VLANs beside within one.

use weft_scenario::workload::trill::{CrossingSpec, Offer, Way};

use super::{Metric, crossing, crossings, delivered, mean_of_sizes, table_by_size};
use crate::analysis::trials::{put_empty, trials};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// What this analysis yields, with the workload behind the name, then the way, the size and the load or rate where it is
/// that one's. Ratios are at the workload's first load or rate: the paper's 0.8 of one path.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "p50_us", meaning: "median one-way latency, first byte sent to last byte received, us" },
    MetricInfo { name: "mean_us", meaning: "mean of the same, us" },
    MetricInfo { name: "loss", meaning: "lost of sent; without a size the mean of all" },
    MetricInfo {
        name: "trill_over_stp",
        meaning: "median latency of TRILL over that of spanning tree; without a size the mean of all ratios",
    },
    MetricInfo { name: "trill_over_stp_net", meaning: "the same without the test centre's own floor" },
    MetricInfo { name: "trill_over_stp_mean", meaning: "the same of mean latencies" },
    MetricInfo {
        name: "same_hook",
        meaning: "median latency of TRILL over that of layer-2 switches at the same hook; without a size the mean",
    },
    MetricInfo { name: "same_hook_net", meaning: "the same without the test centre's own floor" },
    MetricInfo { name: "same_hook_mean", meaning: "the same of mean latencies" },
    MetricInfo {
        name: "inter_over_intra",
        meaning: "median latency between VLANs, routed at the ingress RBridge, over that within one; mean of all sizes",
    },
    MetricInfo { name: "inter_over_intra_net", meaning: "the same without the test centre's own floor" },
    MetricInfo { name: "inter_over_intra_mean", meaning: "the same of mean latencies" },
    MetricInfo {
        name: "router_over_intra",
        meaning: "median latency between VLANs, by a router behind S3, over that within one; mean of all sizes",
    },
    MetricInfo { name: "router_over_intra_net", meaning: "the same without the test centre's own floor" },
    MetricInfo { name: "router_over_intra_mean", meaning: "the same of mean latencies" },
    MetricInfo { name: "inter_over_intra_at", meaning: "as `inter_over_intra`, at a load or rate: mean of all sizes" },
    MetricInfo {
        name: "router_over_intra_at",
        meaning: "as `router_over_intra`, at a load or rate: mean of all sizes",
    },
    MetricInfo { name: "trill_over_stp_at", meaning: "as `trill_over_stp`, at a load or rate: mean of all sizes" },
    MetricInfo { name: "same_hook_at", meaning: "as `same_hook`, at a load or rate: mean of all sizes" },
];

static PAIRS: [(&str, Way, Way); 4] = [
    ("trill_over_stp", Way::Trill, Way::Stp),
    ("same_hook", Way::Trill, Way::Layer2),
    ("inter_over_intra", Way::TrillRouted, Way::Trill),
    ("router_over_intra", Way::TrillRouter, Way::Trill),
];

/// Which number of a crossing, ns.
#[derive(Clone, Copy)]
enum Kind {
    P50,
    Net,
    Mean,
}

const KINDS: [(&str, Kind); 3] = [("", Kind::P50), ("_net", Kind::Net), ("_mean", Kind::Mean)];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-latency", &["crossing"])
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
        let offers = spec.offers(spec.frame_bytes[0]);
        let column = |way: &Way, offer: &Offer| {
            let (way, label) = (way.name(), offer.label());
            (format!("{way} at {label} (us)"), format!("p50_us.{workload}.{way}.{{}}.{label}"))
        };
        let columns: Vec<_> =
            spec.ways.iter().flat_map(|way| offers.iter().map(move |offer| column(way, offer))).collect();
        let title = format!("Median latency, `{workload}`");
        findings.tables.push(table_by_size(&findings, title, &spec.frame_bytes, &columns));
        findings.tables.extend(tables_by_rate(input, workload, spec));
    }
    findings
}

/// How much longer frames take between VLANs, by size and rate, as the overhead paper's Table 2: a mean for each row and
/// column. One table for each gateway, of workloads with several rates.
fn tables_by_rate(input: &Input<'_>, workload: &str, spec: &CrossingSpec) -> Vec<Table> {
    let between_vlans = pairs(spec).filter(|(_, over, _)| over.is_between_vlans());
    let several = spec.offers(spec.frame_bytes[0]).len() > 1;
    let tables = between_vlans.map(|(_, over, under)| table_by_rate(input, workload, spec, (*over, *under)));
    tables.filter(|_| several).collect()
}

fn table_by_rate(input: &Input<'_>, workload: &str, spec: &CrossingSpec, ways: (Way, Way)) -> Table {
    let rates = spec.offers(spec.frame_bytes[0]).len();
    let extra = |bytes: u32, place: usize| {
        let of = |trial: &TrialRecords| Some(ratio(trial, Kind::P50, ways, bytes, spec.offers(bytes)[place])? - 1.0);
        stats::median(&trials(input, workload).filter_map(of).collect::<Vec<f64>>())
    };
    let percent = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}", value * 100.0));
    let mean = |values: Vec<Option<f64>>| stats::mean(&values.into_iter().collect::<Option<Vec<f64>>>()?);
    let row = |bytes: &u32| {
        let cells: Vec<Option<f64>> = (0..rates).map(|place| extra(*bytes, place)).collect();
        let texts = cells.iter().copied().chain([mean(cells.clone())]).map(percent);
        std::iter::once(bytes.to_string()).chain(texts).collect()
    };
    let of_rate = |place| mean(spec.frame_bytes.iter().map(|bytes| extra(*bytes, place)).collect());
    let last = (0..rates).map(|place| percent(of_rate(place))).chain(["-".to_owned()]);
    let labels = spec.offers(spec.frame_bytes[0]).into_iter().map(|offer| offer.label());
    let headings = std::iter::once("size (B)".to_owned()).chain(labels).chain(["mean".to_owned()]);
    Table {
        title: format!("More median latency by {} than within a VLAN, percent, by rate, `{workload}`", ways.0.name()),
        headings: headings.collect(),
        rows: spec
            .frame_bytes
            .iter()
            .map(row)
            .chain([std::iter::once("mean".to_owned()).chain(last).collect()])
            .collect(),
    }
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    crossings(spec).flat_map(|(workload, spec)| of_workload(workload, spec)).collect()
}

fn of_workload<'a>(workload: &'a str, spec: &'a CrossingSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    for way in &spec.ways {
        all.extend(spec.frame_bytes.iter().flat_map(|bytes| of_size(workload, spec, *way, *bytes)));
        for (place, offer) in spec.offers(spec.frame_bytes[0]).iter().enumerate() {
            all.push(Metric::new(
                format!("loss.{workload}.{}.{}", way.name(), offer.label()),
                workload,
                move |trial| {
                    mean_of_sizes(&spec.frame_bytes, |bytes| loss(trial, *way, bytes, spec.offers(bytes)[place]))
                },
            ));
        }
    }
    for (name, over, under) in pairs(spec) {
        for (place, offer) in spec.offers(spec.frame_bytes[0]).iter().enumerate() {
            let metric = format!("{name}_at.{workload}.{}", offer.label());
            all.push(Metric::new(metric, workload, move |trial| {
                let of = |bytes| ratio(trial, Kind::P50, (*over, *under), bytes, spec.offers(bytes)[place]);
                mean_of_sizes(&spec.frame_bytes, of)
            }));
        }
        for (suffix, kind) in KINDS {
            let of = move |trial: &TrialRecords, bytes| {
                ratio(trial, kind, (*over, *under), bytes, *spec.offers(bytes).first()?)
            };
            all.push(Metric::new(format!("{name}{suffix}.{workload}"), workload, move |trial| {
                mean_of_sizes(&spec.frame_bytes, |bytes| of(trial, bytes))
            }));
            all.extend(spec.frame_bytes.iter().map(|bytes| {
                Metric::new(format!("{name}{suffix}.{workload}.{bytes}"), workload, move |trial| of(trial, *bytes))
            }));
        }
    }
    all
}

fn of_size<'a>(workload: &'a str, spec: &'a CrossingSpec, way: Way, bytes: u32) -> Vec<Metric<'a>> {
    let each = spec.offers(bytes).into_iter().flat_map(move |offer| {
        let name = |metric: &str| format!("{metric}.{workload}.{}.{bytes}.{}", way.name(), offer.label());
        [
            Metric::new(name("p50_us"), workload, move |trial| {
                Some(latency_ns(trial, way, bytes, offer, Kind::P50)? / 1e3)
            }),
            Metric::new(name("mean_us"), workload, move |trial| {
                Some(latency_ns(trial, way, bytes, offer, Kind::Mean)? / 1e3)
            }),
            Metric::new(name("loss"), workload, move |trial| loss(trial, way, bytes, offer)),
        ]
    });
    each.collect()
}

fn loss(trial: &TrialRecords, way: Way, bytes: u32, offer: Offer) -> Option<f64> {
    Some(1.0 - delivered(crossing(trial, way, bytes, offer)?)?)
}

fn latency_ns(trial: &TrialRecords, way: Way, bytes: u32, offer: Offer, kind: Kind) -> Option<f64> {
    let row = crossing(trial, way, bytes, offer).filter(|row| row.received_frames > 0)?;
    Some(match kind {
        Kind::P50 => row.latency_p50_ns as f64,
        Kind::Net => row.latency_p50_ns.checked_sub(row.floor_p50_ns).filter(|ns| *ns > 0)? as f64,
        Kind::Mean => row.latency_mean_ns,
    })
}

/// The comparisons that a workload has both ways for.
fn pairs(spec: &CrossingSpec) -> impl Iterator<Item = &'static (&'static str, Way, Way)> {
    PAIRS.iter().filter(|pair| [pair.1, pair.2].iter().all(|way| spec.ways.contains(way)))
}

fn ratio(trial: &TrialRecords, kind: Kind, ways: (Way, Way), bytes: u32, offer: Offer) -> Option<f64> {
    let of = |way| latency_ns(trial, way, bytes, offer, kind);
    Some(of(ways.0)? / of(ways.1)?)
}
