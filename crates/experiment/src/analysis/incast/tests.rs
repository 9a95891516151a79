//! Queries whose completion is known.

use weft_scenario::record::{FlowRow, Records};
use weft_scenario::workload::FlowClass;

use super::*;
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, analyse};
use crate::plan::{Mode, Plan};

const PLAN: &str = r#"
id = "test/incast"
paper = "Leaf-spine"
figure = "Figure 0"
title = "incast"
engines = ["sim"]
expected_s = 1
analysis = "incast"
overlays = ["routed"]
sampling = { interval = "1 ms", time_limit = "1 s" }
fabric = { generator = "leaf-spine", spines = 2, leaves = 2, servers_per_leaf = 8 }

[workload.queries]
kind = "traffic"
duration = "10 ms"
background = { sizes = "web-search", load_percent = 10 }
query = { fan_in = 2, response = "1 MB", rate = { load-percent = 10 } }

[sweep.load]
sets = ["workload.queries.background.load_percent"]
values = [10, 30]

[sweep.fan-in]
sets = ["workload.queries.query.fan_in"]
values = [2, 4]

[[sweep.buffers.variant]]
id = "none"
[[sweep.buffers.variant]]
id = "leaf"
[[sweep.buffers.variant]]
id = "spine"

[[claims]]
id = "leaf_over_spine"
relation = "<="
want = 1.0
unit = "ratio"
"#;

fn spec() -> PlanSpec {
    Plan::parse("p.toml", PLAN).unwrap().for_mode(Mode::Default).clone()
}

/// 300 queries of two responses each; the later one ends after 1 ms, or after half of that with buffers at leaves, or
/// after 0.8 of it if the fan-in is 4 and the load 30.
fn known(key: &TrialKey) -> Records {
    let [buffers, fan_in, load] = key.point.as_slice() else { panic!("{key:?}") };
    let factor = match (buffers.as_str(), fan_in.as_str(), load.as_str()) {
        ("leaf", "4", "30") => 0.8,
        ("leaf", ..) => 0.5,
        _ => 1.0,
    };
    let response = |request: u32, part: u64| {
        let start = u64::from(request) * 10_000 + part * 100;
        let end = start + if part == 0 { 1_000 } else { (1e6 * factor) as u64 - 100 };
        FlowRow { class: FlowClass::Query, request: Some(request), ..testing::flow(500_000, start, Some(end)) }
    };
    let responses = (0..300).flat_map(|request| [response(request, 0), response(request, 1)]);
    let background = testing::flow(1_000, 0, Some(999_999_999));
    Records { flows: responses.chain([background]).collect(), ..Records::default() }
}

#[test]
fn a_query_is_complete_with_its_last_response_and_the_worst_place_counts() {
    let findings = analyse(&spec(), known);
    assert_eq!(findings.problems, []);
    let value = |name: &str| findings.metrics[name].value;
    assert!((value("leaf_over_spine") - 0.8).abs() < 1e-9);
    assert!((value("leaf_over_spine.2") - 0.5).abs() < 1e-9 && (value("leaf_over_spine.4") - 0.8).abs() < 1e-9);
    assert!((value("leaf_over_none") - 0.8).abs() < 1e-9 && (value("spine_over_none") - 1.0).abs() < 1e-9);
    assert!((value("leaf_over_spine_p99") - 0.8).abs() < 1e-9);
    let worst = &findings.metrics["leaf_over_spine"];
    assert!(worst.n == 300 && worst.interval.is_some_and(|interval| interval.high < 0.81), "{worst:?}");
    assert!(!findings.metrics.contains_key("both_over_leaf"), "the plan has no such place");
    let known_names = names(&spec());
    assert!(findings.metrics.keys().all(|name| known_names.contains(name)));
    let mean_and_n = |row: &Vec<String>| (row[4].clone(), row[5].clone());
    assert_eq!(findings.tables[0].rows.len(), 12);
    assert_eq!(mean_and_n(&findings.tables[0].rows[0]), ("300".into(), "1".into()));
}

#[test]
fn few_queries_make_no_claim_and_open_ones_fail() {
    let few = analyse(&spec(), |key| {
        let mut records = known(key);
        records.flows.truncate(2 * 199);
        records
    });
    assert!(few.metrics.is_empty() && few.problems.is_empty());
    let open = analyse(&spec(), |key| {
        let mut records = known(key);
        records.flows[3].end_ns = if key.point[0] == "spine" { None } else { records.flows[3].end_ns };
        records
    });
    assert!(open.problems.iter().any(|problem| problem.text().contains("did not see the same queries")));
}

#[test]
fn drops_are_counted_by_tier_and_once() {
    let fabric = spec().build_fabrics().unwrap().remove(0);
    let row = |time_ns, node: &str, interface: &str, dropped_frames| LinkRow {
        time_ns,
        node: node.into(),
        interface: interface.into(),
        peer: "any".into(),
        class: "any".into(),
        sent_bytes: 0,
        dropped_frames,
    };
    let rows = [row(1, "leaf1", "a", 3), row(2, "leaf1", "a", 5), row(2, "leaf2", "a", 1), row(2, "spine1", "a", 7)];
    assert_eq!(dropped_frames(&rows, &fabric, Role::Leaf), 6);
    assert_eq!(dropped_frames(&rows, &fabric, Role::Spine), 7);
}
