//! Queries whose completion is known (leaf-spine/incast-buffers).

use weft_scenario::record::{FlowRow, Records};
use weft_scenario::workload::FlowClass;

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, analyse};
use crate::metric::Problem;

/// 300 queries of two responses each; the later one ends after 1 ms, or after half of that with buffers at leaves, or
/// after 0.8 of it if the fan-in is 60 and the load the highest.
fn known(key: &TrialKey) -> Records {
    let [buffers, fan_in, load] = key.point.as_slice() else { panic!("{key:?}") };
    let factor = match (buffers.as_str(), fan_in.as_str(), load.as_str()) {
        ("leaf", "60", "30") => 0.8,
        ("leaf", ..) => 0.5,
        _ => 1.0,
    };
    let response = |request: u32, part: u64| {
        let start = 100_000_000 + u64::from(request) * 10_000 + part * 100;
        let end = start + if part == 0 { 1_000 } else { (1e6 * factor) as u64 - 100 };
        FlowRow { class: FlowClass::Query, request: Some(request), ..testing::flow(500_000, start, Some(end)) }
    };
    let responses = (0..300).flat_map(|request| [response(request, 0), response(request, 1)]);
    let background = testing::flow(1_000, 0, Some(999_999_999));
    Records { flows: responses.chain([background]).collect(), ..Records::default() }
}

#[test]
fn a_query_is_complete_with_its_last_response_and_the_worst_place_counts() {
    let found = analyse(&shipped("leaf-spine/incast-buffers"), known);
    assert_eq!(found.problems, []);
    close(&found, "ratio.leaf_over_spine", 0.8);
    close(&found, "ratio_of_fan_in.leaf_over_spine.10", 0.5);
    close(&found, "ratio_of_fan_in.leaf_over_spine.60", 0.8);
    close(&found, "ratio.leaf_over_none", 0.8);
    close(&found, "ratio.spine_over_none", 1.0);
    close(&found, "ratio_p99.leaf_over_spine", 0.8);
    let worst = &found.metrics["ratio.leaf_over_spine"];
    assert!(worst.n.is_multiple_of(300) && worst.interval.is_some_and(|interval| interval.high < 0.81), "{worst:?}");
}

#[test]
fn few_queries_make_no_claim_and_other_ones_fail() {
    let spec = shipped("leaf-spine/incast-buffers");
    let few = analyse(&spec, |key| {
        let mut records = known(key);
        records.flows.truncate(2 * 10);
        records
    });
    assert!(few.metrics.is_empty() && few.problems.is_empty(), "{:?}", few.problems);
    let others = analyse(&spec, |key| {
        let mut records = known(key);
        if key.point[0] == "spine" {
            records.flows.truncate(500);
        }
        records
    });
    let texts: Vec<&str> = others.problems.iter().map(Problem::text).collect();
    assert!(texts.contains(&"buffers at leaf and at spine did not see the same queries"), "{texts:?}");
}
