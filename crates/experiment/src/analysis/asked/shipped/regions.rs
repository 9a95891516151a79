//! Statements that hold at known places (leaf-spine/regions).

use weft_scenario::record::{FlowRow, QueueRow, Records};
use weft_scenario::workload::FlowClass;

use super::{close, shipped, value};
use crate::analysis::TrialKey;
use crate::analysis::testing::{analyse, flow};

/// 100 large flows and 100 queries. Over 10 Gb/s large flows take 1.4 times as long as on the ideal switch, over 40 Gb/s as long,
/// with the largest window 1.3 times; large buffers at leaves halve queries there, and nothing helps with the smallest.
/// Spine ports queue as leaf ports do, or twice as much where queries are large.
fn known(key: &TrialKey) -> Records {
    let [network, window, response] = key.point.as_slice() else { panic!("{key:?}") };
    let (kind, _) = network.split_once('-').expect("kind and oversubscription");
    let large = match (kind, window.as_str()) {
        ("10g", _) => 1_400,
        ("40g", "2172") => 1_300,
        _ => 1_000,
    };
    let query = if kind == "leaf" && window != "44" { 500 } else { 1_000 };
    let start = |number: u64| 20_000_000 + number * 1_000;
    let flows = (0..100).flat_map(|number| {
        let start = start(number);
        let response = FlowRow {
            class: FlowClass::Query,
            request: Some(number as u32),
            ..flow(50_000, start, Some(start + query))
        };
        [flow(20_000_000, start, Some(start + large)), response]
    });
    let queue = |node: &str, peer: &str, bytes_at_most, time_ns| QueueRow {
        node: node.to_owned(),
        interface: peer.to_owned(),
        peer: peer.to_owned(),
        class: "any".to_owned(),
        bytes_at_most,
        time_ns,
    };
    let longer = if response == "20MB" { 2 } else { 1 };
    let queues = vec![
        queue("leaf1", "spine1", 0, 5_000),
        queue("leaf1", "spine1", 2_048, 1_000),
        queue("spine1", "leaf1", 0, 9_000),
        queue("spine1", "leaf1", 2_048 * longer, 1_000),
    ];
    Records { flows: flows.collect(), queues, ..Records::default() }
}

#[test]
fn a_statement_is_judged_at_every_place() {
    let found = analyse(&shipped("leaf-spine/regions"), known);
    assert_eq!(found.problems, []);
    close(&found, "slow_over_oq.1to1.44.2MB", 1.4);
    close(&found, "fast_over_oq.5to2.2172.6MB", 1.3);
    close(&found, "leaf_over_spine.1to1.350.20MB", 0.5);
    close(&found, "leaf_over_spine.1to1.44.20MB", 1.0);
    close(&found, "queue_distance.1to1.44.2MB", 0.0);
    close(&found, "queue_distance.5to2.2172.20MB", 1.0);
    let counts = |statement| ["holds", "fails"].map(|what| value(&found, &format!("{what}.{statement}")) as u32);
    // Of two oversubscriptions, three windows and three sizes of queries.
    assert_eq!(["slow", "fast", "queues", "buffers"].map(counts), [[18, 0], [12, 6], [12, 6], [12, 6]]);
    assert_eq!(found.tables[0].rows.len(), 4 * 18);
}

#[test]
fn few_flows_make_no_claim() {
    let found = analyse(&shipped("leaf-spine/regions"), |key| {
        let mut records = known(key);
        records.flows.truncate(20);
        records
    });
    assert!(!found.metrics.keys().any(|name| name.contains("over")), "{:?}", found.metrics.keys());
}
