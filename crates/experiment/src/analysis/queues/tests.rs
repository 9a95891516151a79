//! Distributions that can be worked by hand.

use proptest::prelude::*;
use weft_scenario::record::Records;

use super::*;
use crate::analysis::testing::analyse;
use crate::plan::{Mode, Plan};

const PLAN: &str = r#"
id = "test/queues"
paper = "Leaf-spine"
figure = "Figure 0"
title = "queues"
engines = ["sim"]
expected_s = 1
analysis = "queues"
overlays = ["routed"]
repetitions = 2
sampling = { interval = "1 ms", time_limit = "1 s" }
fabric = { generator = "leaf-spine", spines = 2, leaves = 2, servers_per_leaf = 8 }

[workload.background]
kind = "traffic"
duration = "10 ms"
background = { sizes = "web-search", load_percent = 10 }

[sweep.load]
sets = ["workload.background.background.load_percent"]
values = [10, 30]

[[claims]]
id = "queue_distance"
relation = "<="
want = 0.1
unit = "ratio"
"#;

fn spec() -> PlanSpec {
    Plan::parse("p.toml", PLAN).unwrap().for_mode(Mode::Default).clone()
}

fn row(node: &str, peer: &str, bytes_at_most: u64, time_ns: u64) -> QueueRow {
    let (node, peer, interface, class) = (node.into(), peer.into(), "any".into(), "any".into());
    QueueRow { node, interface, peer, class, bytes_at_most, time_ns }
}

/// Leaf ports are empty for 90 % of the time; spine ports for 80 % at load 30 and like the leaves' at load 10.
fn known(load: &str) -> Records {
    let spine = if load == "30" { 800 } else { 900 };
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
    let findings = analyse(&spec(), |key| known(&key.point[0]));
    assert_eq!(findings.problems, []);
    let value = |name: &str| findings.metrics[name].value;
    assert!(value("queue_distance.10").abs() < 1e-12);
    assert!((value("queue_distance.30") - 0.1).abs() < 1e-12);
    assert_eq!(findings.metrics["queue_distance"], findings.metrics["queue_distance.30"]);
    assert_eq!((findings.metrics["queue_distance"].n, value("leaf_p99")), (2, 4_000.0));
    // (60 x 1000 + 140 x 4000) / 2000 and (130 x 1000 + 70 x 4000) / 1000.
    assert!((value("leaf_mean") - 310.0).abs() < 1e-9 && (value("spine_mean") - 410.0).abs() < 1e-9);
    assert!((value("leaf_over_spine_mean") - 310.0 / 410.0).abs() < 1e-9);
    let known_names = names(&spec());
    assert!(findings.metrics.keys().all(|name| known_names.contains(name)));
}

#[test]
fn queues_that_were_not_recorded_fail() {
    let findings = analyse(&spec(), |_| Records::default());
    assert_eq!(findings.problems.len(), 2);
    assert!(findings.metrics.is_empty());
}

#[test]
fn the_complementary_distribution_falls_to_zero() {
    let lengths = Lengths([(0, 50), (10, 30), (20, 20)].into());
    assert_eq!(lengths.longer(), [(0, 0.5), (10, 0.2), (20, 0.0)]);
    assert_eq!(
        (lengths.percentile(0.5), lengths.percentile(0.51), lengths.percentile(1.0)),
        (Some(0.0), Some(10.0), Some(20.0))
    );
    assert_eq!((Lengths::default().mean(), Lengths::default().percentile(0.5)), (None, None));
    assert_eq!(lengths.distance(&Lengths::default()), None);
}

proptest! {
    #[test]
    fn the_distance_is_a_distance(
        a in prop::collection::btree_map(0u64..20, 1u128..100, 1..8),
        b in prop::collection::btree_map(0u64..20, 1u128..100, 1..8),
    ) {
        let (a, b) = (Lengths(a), Lengths(b));
        let apart = a.distance(&b).unwrap();
        prop_assert!((0.0..=1.0).contains(&apart));
        prop_assert_eq!(apart, b.distance(&a).unwrap());
        prop_assert_eq!(a.distance(&a), Some(0.0));
    }
}
