//! Completion times and goodput of whatever flows there are: for scenarios that ask no paper's question.
//!
//! Every workload, overlay and place of a sweep is a group with metrics of its own, `METRIC.WORKLOAD[.OVERLAY][.PLACE..]`;
//! the overlay is named where the plan has several. Samples are the repetitions.

use weft_scenario::engine::Overlay;
use weft_scenario::record::FlowRow;
use weft_scenario::workload::Workload;

use super::class_summary::{ClassSummary, by_class};
use super::completion::{self, size_divisor};
use super::series::Window;
use super::{Input, MetricInfo, TrialKey, TrialRecords, cpu};
use crate::metric::{Findings, Limit, Table};
use crate::plan::PlanSpec;
use crate::stats;
use crate::table::plain;

/// What this analysis yields for each group, as the median of its repetitions.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "goodput", meaning: "payload received / time from the first start to the last end, bit/s" },
    MetricInfo { name: "mean_fct_ms", meaning: "mean completion time of a flow, from its start to its last byte" },
    MetricInfo { name: "p50_fct_ms", meaning: "median completion time" },
    MetricInfo { name: "p99_fct_ms", meaning: "99th percentile of the completion times" },
    MetricInfo {
        name: "mean_slowdown",
        meaning: "mean of completion time / alone on the idle network; simulator only",
    },
    MetricInfo { name: "p99_slowdown", meaning: "its 99th percentile; simulator only" },
    MetricInfo { name: "jain_flows", meaning: "Jain's index over bytes / completion time of all flows" },
    MetricInfo { name: "retransmitted_segments", meaning: "segments sent again, all flows" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let ends = |workload: &Workload| {
        matches!(
            workload,
            Workload::Shuffle { .. } | Workload::Permutation { .. } | Workload::Flows { .. } | Workload::Traffic(_)
        )
    };
    match spec.workload.iter().find(|(_, workload)| !ends(workload)) {
        None => Ok(()),
        Some((name, workload)) => Err(format!(
            "analysis `flow-summary` needs flows that end; workload `{name}` is of kind `{}`, and it takes `shuffle`, \
             `permutation`, `flows` and `traffic`",
            workload.kind()
        )),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = Vec::new();
    for point in &spec.points {
        for overlay in &point.spec.overlays {
            for workload in point.spec.workload.keys() {
                let group = group(spec, workload, *overlay, &point.labels);
                names.extend(METRICS.iter().map(|metric| format!("{}.{group}", metric.name)));
            }
        }
    }
    names
}

/// `WORKLOAD[.OVERLAY][.PLACE..]`.
fn group(spec: &PlanSpec, workload: &str, overlay: Overlay, places: &[String]) -> String {
    let several = spec.points.iter().any(|point| point.spec.overlays.len() > 1 || point.spec.overlays != spec.overlays);
    let overlay = several.then(|| overlay.name());
    let places = places.iter().map(String::as_str);
    std::iter::once(workload).chain(overlay).chain(places).collect::<Vec<_>>().join(".")
}

/// The trials of every group, in the order in which they ran.
pub fn groups<'a>(input: &Input<'a>) -> Vec<(String, Vec<&'a TrialRecords>)> {
    let mut groups: Vec<(String, Vec<&TrialRecords>)> = Vec::new();
    for trial in input.trials {
        let TrialKey { workload, overlay, point, .. } = &trial.key;
        let name = group(input.spec, workload, *overlay, point);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, trials)) => trials.push(trial),
            None => groups.push((name, vec![trial])),
        }
    }
    groups
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    let mut rows = Vec::new();
    for (group, trials) in groups(input) {
        let limit = if trials.iter().any(|trial| is_cpu_bound(trial)) { Limit::Cpu } else { Limit::Link };
        let numbers: Vec<_> = trials.iter().map(|trial| numbers(input, trial)).collect();
        for (place, metric) in METRICS.iter().enumerate() {
            let samples: Vec<f64> = numbers.iter().filter_map(|numbers| numbers[place]).collect();
            findings.put(&format!("{}.{group}", metric.name), &samples, limit);
        }
        let flows: Vec<FlowRow> = trials.iter().flat_map(|trial| measured(input, trial)).collect();
        rows.extend(by_class(&flows, divisor(input, trials[0])).iter().map(|class| row(&group, class)));
    }
    findings.tables.push(table(rows));
    findings
}

/// The metrics of one trial, in the order of [`METRICS`].
fn numbers(input: &Input<'_>, trial: &TrialRecords) -> [Option<f64>; METRICS.len()] {
    let flows = measured(input, trial);
    let classes = by_class(&flows, divisor(input, trial));
    let of_all = |number: fn(&ClassSummary) -> Option<f64>| classes.first().and_then(number);
    let ms = |us: Option<f64>| us.map(|us| us / 1e3);
    [
        goodput_bps(&flows),
        ms(of_all(|all| all.mean_fct_us)),
        ms(of_all(|all| all.p50_fct_us)),
        ms(of_all(|all| all.p99_fct_us)),
        of_all(|all| all.mean_slowdown),
        of_all(|all| all.p99_slowdown),
        stats::jain(&completion::goodputs(&flows)),
        Some(flows.iter().map(|flow| flow.retransmits).sum::<u64>() as f64),
    ]
}

fn measured(input: &Input<'_>, trial: &TrialRecords) -> Vec<FlowRow> {
    completion::measured(input, trial).cloned().collect()
}

fn divisor(input: &Input<'_>, trial: &TrialRecords) -> u32 {
    let workload = input.at(&trial.key).and_then(|(spec, _)| spec.workload.get(&trial.key.workload));
    workload.map_or(1, size_divisor)
}

fn goodput_bps(flows: &[FlowRow]) -> Option<f64> {
    let begin = flows.iter().map(|flow| flow.start_ns).min()?;
    let end = flows.iter().filter_map(|flow| flow.end_ns).max().filter(|end| *end > begin)?;
    let bytes: u64 = flows.iter().map(|flow| flow.bytes_received).sum();
    Some(bytes as f64 * 8e9 / (end - begin) as f64)
}

fn is_cpu_bound(trial: &TrialRecords) -> bool {
    let end_ns = trial.records.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap_or(0);
    let window = Window { from_s: 0.0, to_s: end_ns as f64 / 1e9 };
    cpu::limit(&trial.records.cpu, window, Limit::Link) == Limit::Cpu
}

fn row(group: &str, class: &ClassSummary) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), plain);
    let ms = |us: Option<f64>| number(us.map(|us| us / 1e3));
    vec![
        group.to_owned(),
        class.class.to_owned(),
        class.flows.to_string(),
        class.ended.to_string(),
        ms(class.mean_fct_us),
        ms(class.p50_fct_us),
        ms(class.p99_fct_us),
        number(class.mean_slowdown),
        number(class.p99_slowdown),
    ]
}

fn table(rows: Vec<Vec<String>>) -> Table {
    let headings = [
        "group",
        "class",
        "flows",
        "ended",
        "mean FCT (ms)",
        "p50 FCT (ms)",
        "p99 FCT (ms)",
        "mean slowdown",
        "p99 slowdown",
    ];
    let title = "Completion times by class of sizes, all repetitions together".to_owned();
    Table { title, headings: headings.map(str::to_owned).to_vec(), rows }
}

#[cfg(test)]
mod tests {
    use weft_scenario::record::Records;

    use super::*;
    use crate::analysis::testing::{self, SECOND, plan_text};
    use crate::plan::{Mode, Plan};

    const TABLES: &str = r#"
[workload.near]
kind = "permutation"
bytes_per_flow = "1 MB"
shift = 1
[sweep.size]
sets = ["workload.near.bytes_per_flow"]
values = ["1 MB", "4 MB"]
[sampling]
interval = "1 s"
time_limit = "60 s"
[[claims]]
id = "p99_fct_ms.near.4MB"
relation = "<="
want = 4000.0
unit = "ms"
"#;

    fn plan(keys: &str, tables: &str) -> Result<PlanSpec, String> {
        let text = plan_text(&format!("analysis = \"flow-summary\"\n{keys}"), tables);
        Plan::parse("p.toml", &text).map(|plan| plan.for_mode(Mode::Default).clone()).map_err(|error| error.to_string())
    }

    /// Two flows of a second's distance that take `seconds` and twice that.
    fn two_flows(bytes: u64, seconds: u64) -> Records {
        let flow = |to: u32, start_ns: u64, seconds: u64| FlowRow {
            to,
            bytes_asked: bytes,
            bytes_received: bytes,
            start_ns,
            end_ns: Some(start_ns + seconds * SECOND),
            retransmits: 3,
            ..FlowRow::default()
        };
        Records { flows: vec![flow(1, SECOND, seconds), flow(2, 2 * SECOND, 2 * seconds)], ..Records::default() }
    }

    #[test]
    fn each_place_of_a_sweep_has_metrics_of_its_own() {
        let spec = plan("overlays = [\"vl2\"]\nrepetitions = 3", TABLES).unwrap();
        let findings = testing::analyse(&spec, |key| {
            if key.point[0] == "4MB" { two_flows(4_000_000, 2) } else { two_flows(1_000_000, 1) }
        });
        let value = |name: &str| findings.metrics[name].value;
        assert_eq!((value("mean_fct_ms.near.1MB"), value("mean_fct_ms.near.4MB")), (1500.0, 3000.0));
        // 8 MB from second 1 to second 6.
        assert_eq!((value("goodput.near.4MB"), value("retransmitted_segments.near.4MB")), (12_800_000.0, 6.0));
        assert!((value("jain_flows.near.1MB") - 0.9).abs() < 1e-9);
        assert_eq!(findings.metrics["p50_fct_ms.near.1MB"].n, 3);
        assert!(!findings.metrics.contains_key("mean_slowdown.near.1MB"), "nobody knows the idle network's time");
        assert_eq!(findings.problems, []);
        let table = &findings.tables[0];
        assert_eq!(table.rows[0][..5], ["near.1MB", "all", "6", "6", "1500"]);
        assert!(table.rows.iter().all(|row| row.len() == table.headings.len()));
    }

    #[test]
    fn overlays_are_named_where_there_are_several() {
        let tables = TABLES.replace("p99_fct_ms.near.4MB", "p99_fct_ms.near.routed.4MB");
        let spec = plan("overlays = [\"vl2\", \"routed\"]", &tables).unwrap();
        let names = names(&spec);
        assert_eq!(names.len(), 2 * 2 * METRICS.len());
        assert!(names.contains(&"goodput.near.vl2.1MB".to_owned()), "{names:?}");
    }

    #[test]
    fn a_metric_without_its_place_is_answered_with_those_that_there_are() {
        for (written, meant) in [
            ("p99_fct_ms.near.4 MB", "did you mean `p99_fct_ms.near.4MB`?"),
            ("p99_fct_ms", "did you mean `p99_fct_ms.near.1MB` or `p99_fct_ms.near.4MB`?"),
            ("colour", "retransmitted_segments; with its workload and place: goodput.near.1MB"),
        ] {
            let error = plan("overlays = [\"vl2\"]", &TABLES.replace("p99_fct_ms.near.4MB", written)).unwrap_err();
            assert!(error.ends_with(meant), "{error}");
        }
    }

    #[test]
    fn flows_that_do_not_end_fail_the_run() {
        let spec = plan("overlays = [\"vl2\"]", TABLES).unwrap();
        let findings = testing::analyse(&spec, |_| {
            let mut records = two_flows(1_000_000, 1);
            records.flows[0].end_ns = None;
            records
        });
        assert_eq!(findings.problems.len(), 2, "{:?}", findings.problems);
    }

    #[test]
    fn workloads_without_an_end_are_refused() {
        let endless = "kind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"1 s\"";
        let tables = TABLES.replace("kind = \"permutation\"\nbytes_per_flow = \"1 MB\"\nshift = 1", endless);
        let tables = tables.replace("[\"workload.near.bytes_per_flow\"]", "[\"workload.near.flows\"]");
        let tables = tables.replace("[\"1 MB\", \"4 MB\"]", "[1, 2]");
        let error = plan("overlays = [\"vl2\"]", &tables).unwrap_err();
        assert!(error.contains("needs flows that end; workload `near` is of kind `one-to-one`"), "{error}");
    }
}
