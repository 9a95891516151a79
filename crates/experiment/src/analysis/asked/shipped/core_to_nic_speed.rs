//! Splits and completion times that are known (leaf-spine/core-to-nic-speed).

use weft_scenario::record::{FlowRow, LinkRow, Records};

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, analyse};

/// Leaf 1 sends three times as much to spine 1 as to the others; the other leaves split evenly. Flows take twice as long on the
/// slowest core, and a tenth less with flowlets there.
fn known(key: &TrialKey) -> Records {
    let [balance, ratio] = key.point.as_slice() else { panic!("{key:?}") };
    let spines = match ratio.as_str() {
        "1" => 20,
        "2" => 10,
        "4" => 5,
        _ => 2,
    };
    let took = if ratio == "1" { 2_000 } else { 1_000 };
    let took = if balance == "flowlet" && ratio == "1" { took * 9 / 10 } else { took };
    let flow = |number: u64| {
        let start = 50_000_000 + number * 1_000;
        FlowRow { ideal_ns: Some(500), ..testing::flow(1_000, start, Some(start + took)) }
    };
    let mut links = Vec::new();
    for (time_ms, leaf, spine) in (0..=50).flat_map(|t| (1..=5).flat_map(move |l| (1..=spines).map(move |s| (t, l, s))))
    {
        let factor = if leaf == 1 && spine == 1 { 3 } else { 1 };
        let interface = format!("spine{spine}");
        let (node, peer, class) = (format!("leaf{leaf}"), format!("spine{spine}"), "any".to_owned());
        let (time_ns, sent_bytes) = (time_ms * 10_000_000, time_ms * 1_000 * factor);
        links.push(LinkRow { time_ns, node, interface, peer, class, sent_bytes, dropped_frames: 0 });
    }
    Records { flows: (0..300).map(flow).collect(), links, ..Records::default() }
}

#[test]
fn the_worst_leaf_and_paired_times() {
    let findings = analyse(&shipped("leaf-spine/core-to-nic-speed"), known);
    assert_eq!(findings.problems, []);
    // (3 + 1)^2 / (2 x (9 + 1)) and (3 + 19)^2 / (20 x (9 + 19)).
    close(&findings, "jain_split.10.flow", 0.8);
    close(&findings, "jain_split.1.flow", 484.0 / 560.0);
    assert_eq!(findings.metrics["jain_split.10.flow"].n, 24, "three times 400 ms in parts of 50 ms");
    close(&findings, "mean_slowdown.1.flow", 4.0);
    assert_eq!(findings.metrics["mean_slowdown.1.flow"].n, 900);
    close(&findings, "mean_over_fastest.1.flow", 2.0);
    close(&findings, "mean_over_fastest.1.flowlet", 1.8);
    close(&findings, "flowlet_over_flow.1", 0.9);
    close(&findings, "flowlet_over_flow.2", 1.0);
    assert!(!findings.metrics.contains_key("mean_over_fastest.10.flow"));
}

#[test]
fn a_split_that_was_not_recorded_fails() {
    let findings = analyse(&shipped("leaf-spine/core-to-nic-speed"), |key| Records { links: Vec::new(), ..known(key) });
    assert_eq!(findings.problems.len(), 8);
}
