//! Distributions that can be worked by hand (leaf-spine/queues).

use weft_scenario::record::{QueueRow, Records};

use super::{close, shipped, value};
use crate::analysis::testing::analyse;

fn row(node: &str, peer: &str, bytes_at_most: u64, time_ns: u64) -> QueueRow {
    let (node, peer, interface, class) = (node.into(), peer.into(), "any".into(), "any".into());
    QueueRow { node, interface, peer, class, bytes_at_most, time_ns }
}

/// Leaf ports are empty for 90 % of the time; spine ports for 80 % at load 32 and like the leaves' at all others.
fn known(load: &str) -> Records {
    let spine = if load == "32" { 800 } else { 900 };
    let queues = vec![
        row("leaf1", "spine1", 0, 900),
        row("leaf1", "spine1", 1_000, 60),
        row("leaf2", "spine1", 0, 900),
        row("leaf2", "spine1", 4_000, 140),
        row("spine1", "leaf1", 0, spine),
        row("spine1", "leaf1", 1_000, 30 + (900 - spine)),
        row("spine1", "leaf1", 4_000, 70),
        row("leaf1", "s1", 1_000_000, 1_000),
        row("s1", "leaf1", 1_000_000, 1_000),
    ];
    Records { queues, ..Records::default() }
}

#[test]
fn tiers_are_compared_and_the_load_where_they_differ_most_counts() {
    let findings = analyse(&shipped("leaf-spine/queues"), |key| known(&key.point[0]));
    assert_eq!(findings.problems, []);
    close(&findings, "queue_distance", 0.1);
    assert_eq!((findings.metrics["queue_distance"].n, value(&findings, "leaf_p99")), (3, 4_000.0));
    // (60 x 1000 + 140 x 4000) / 2000 and (130 x 1000 + 70 x 4000) / 1000.
    close(&findings, "leaf_over_spine_mean", 310.0 / 410.0);
    let distances: Vec<&str> = findings.tables[0].rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(distances, ["0", "0", "0.100", "0"]);
}

#[test]
fn queues_that_were_not_recorded_fail() {
    let findings = analyse(&shipped("leaf-spine/queues"), |_| Records::default());
    assert_eq!(findings.problems.len(), 4);
    assert!(findings.metrics.is_empty());
}
