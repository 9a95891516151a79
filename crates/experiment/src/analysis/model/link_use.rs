//! How much more loaded the links are under VLB than under the best that a routing can do (VL2 6, Figure 15).
//!
//! A link's use is its largest over all matrices; "worst" is the most loaded link of a routing and "median" the median
//! link, both over those of adaptive routing, as the paper normalises. A repetition is another day.

use weft_scenario::record::{LinkUseRow, Records};

use super::super::{Input, MetricInfo};
use crate::metric::{Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::stats;
use crate::table::plain;

/// What this analysis yields: `METRIC`, or `METRIC.PLACE` in a sweep.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "vlb_worst", meaning: "most loaded link with VLB / with adaptive routing" },
    MetricInfo { name: "vlb_flows_worst", meaning: "the same where VLB places whole flows by a hash" },
    MetricInfo { name: "oblivious_worst", meaning: "the same with the best oblivious routing" },
    MetricInfo { name: "vlb_median", meaning: "median link with VLB / with adaptive routing" },
    MetricInfo { name: "vlb_flows_median", meaning: "the same where VLB places whole flows" },
    MetricInfo { name: "oblivious_median", meaning: "the same with the best oblivious routing" },
    MetricInfo { name: "vlb_worst_matrix", meaning: "most loaded link with VLB / adaptive, worst of all matrices" },
    MetricInfo { name: "vlb_mean_matrix", meaning: "the same, mean over all matrices" },
    MetricInfo {
        name: "below_optimum",
        meaning: "by how much any routing is better than the program's optimum, most over all matrices: its error",
    },
    MetricInfo { name: "adaptive_use", meaning: "use of the most loaded link with adaptive routing" },
];

/// Routings in the order of the figure.
pub const ROUTINGS: [&str; 4] = ["vlb", "vlb-flows", "adaptive", "oblivious"];
const ADAPTIVE: &str = "adaptive";

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check(spec, "link-use", "link-use")
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let places = super::places(spec);
    METRICS.iter().flat_map(|metric| places.iter().map(|place| super::name_at(metric.name, place))).collect()
}

/// Uses of all links under a routing, in rising order.
pub fn sorted_uses(rows: &[LinkUseRow], routing: &str) -> Vec<f64> {
    stats::sorted(&rows.iter().filter(|row| row.routing == routing).map(|row| row.use_ratio).collect::<Vec<_>>())
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut table = table();
    for place in super::places(input.spec) {
        let trials = super::trials_at(input.trials, &place);
        if trials.iter().any(|trial| trial.records.link_uses.is_empty()) || trials.is_empty() {
            findings.problems.push(Problem::Failed(format!("nothing was routed at `{place}`")));
        }
        for metric in METRICS {
            let samples: Vec<f64> = trials
                .iter()
                .filter_map(|trial| value(&trial.records, metric.name))
                .filter(|it| it.is_finite())
                .collect();
            findings.put(&super::name_at(metric.name, &place), &samples, Limit::Computed);
        }
        let cell = |metric: &str| {
            let found = findings.metrics.get(&super::name_at(metric, &place));
            found.map_or_else(|| "-".to_owned(), |estimate| plain(estimate.value))
        };
        let metrics = METRICS.iter().map(|metric| cell(metric.name));
        table.rows.push(std::iter::once(place.clone()).chain(metrics).collect());
    }
    findings.tables.push(table);
    findings
}

fn value(records: &Records, metric: &str) -> Option<f64> {
    let over = |routing: &str, share: f64| {
        let at = |routing: &str| stats::percentile_of_sorted(&sorted_uses(&records.link_uses, routing), share);
        Some(at(routing)? / at(ADAPTIVE)?)
    };
    match metric {
        "vlb_worst" => over("vlb", 1.0),
        "vlb_flows_worst" => over("vlb-flows", 1.0),
        "oblivious_worst" => over("oblivious", 1.0),
        "vlb_median" => over("vlb", 0.5),
        "vlb_flows_median" => over("vlb-flows", 0.5),
        "oblivious_median" => over("oblivious", 0.5),
        "vlb_worst_matrix" => by_matrix(records, "vlb").into_iter().reduce(f64::max),
        "vlb_mean_matrix" => stats::mean(&by_matrix(records, "vlb")),
        "below_optimum" => {
            let others = ROUTINGS.iter().flat_map(|routing| by_matrix(records, routing));
            others.map(|ratio| (1.0 - ratio).max(0.0)).reduce(f64::max)
        }
        _ => sorted_uses(&records.link_uses, ADAPTIVE).last().copied(),
    }
}

/// Use of the most loaded link over that with adaptive routing, matrix by matrix.
pub fn by_matrix(records: &Records, routing: &str) -> Vec<f64> {
    let of = |routing: &str| {
        let routing = routing.to_owned();
        records.routed_matrices.iter().filter(move |row| row.routing == routing).map(|row| row.use_ratio)
    };
    of(routing).zip(of(ADAPTIVE)).filter(|(_, best)| *best > 0.0).map(|(used, best)| used / best).collect()
}

fn table() -> Table {
    let names = METRICS.iter().map(|metric| metric.name.replace('_', " "));
    Table {
        title: "Most loaded and median link by routing, over adaptive routing".into(),
        headings: std::iter::once("place".to_owned()).chain(names).collect(),
        rows: Vec::new(),
    }
}
