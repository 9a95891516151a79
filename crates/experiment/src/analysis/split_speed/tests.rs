//! Splits and completion times that are known.

use weft_scenario::record::{FlowRow, LinkRow, Records};

use super::*;
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, analyse};
use crate::plan::{Mode, Plan};

const PLAN: &str = r#"
id = "test/split"
paper = "VL2"
figure = "Figure 0"
title = "split"
engines = ["sim"]
expected_s = 1
analysis = "split-speed"
overlays = ["routed"]
sampling = { interval = "1 ms", time_limit = "1 s", warm_up = "2 ms", split_interval = "2 ms" }

[workload.background]
kind = "traffic"
duration = "10 ms"
background = { sizes = "web-search", load_percent = 30 }

[[sweep.balance.variant]]
id = "flow"
[[sweep.balance.variant]]
id = "flowlet"
[sweep.balance.variant.switching]
load_balance = { flowlet = { gap = "500 us" } }

[[sweep.ratio.variant]]
id = "1"
fabric = { generator = "leaf-spine", spines = 4, leaves = 2, servers_per_leaf = 4, server_rate = "10 Gbit/s", core_rate = "10 Gbit/s" }
[[sweep.ratio.variant]]
id = "2"
fabric = { generator = "leaf-spine", spines = 2, leaves = 2, servers_per_leaf = 4, server_rate = "10 Gbit/s", core_rate = "20 Gbit/s" }

[[claims]]
id = "jain_split.2.flow"
relation = ">="
want = 0.9
unit = "index"
"#;

fn spec() -> PlanSpec {
    Plan::parse("p.toml", PLAN).unwrap().for_mode(Mode::Default).clone()
}

/// Leaf 1 sends three times as much to spine 1 as to the others; leaf 2 splits evenly. Flows take twice as long on the
/// slow core, and a tenth less with flowlets there.
fn known(key: &TrialKey) -> Records {
    let [balance, ratio] = key.point.as_slice() else { panic!("{key:?}") };
    let (spines, took) = if ratio == "1" { (4, 2_000) } else { (2, 1_000) };
    let took = if balance == "flowlet" && ratio == "1" { took * 9 / 10 } else { took };
    let flow = |number: u64| {
        let start = 2_000_000 + number * 1_000;
        FlowRow { ideal_ns: Some(500), ..testing::flow(1_000, start, Some(start + took)) }
    };
    let mut links = Vec::new();
    for (time_ms, leaf, spine) in (0..=10).flat_map(|t| (1..=2).flat_map(move |l| (1..=spines).map(move |s| (t, l, s))))
    {
        let factor = if leaf == 1 && spine == 1 { 3 } else { 1 };
        let interface = format!("spine{spine}");
        let (node, peer, class) = (format!("leaf{leaf}"), format!("spine{spine}"), "any".to_owned());
        let (time_ns, sent_bytes) = (time_ms * 1_000_000, time_ms * 1_000 * factor);
        links.push(LinkRow { time_ns, node, interface, peer, class, sent_bytes, dropped_frames: 0 });
    }
    Records { flows: (0..300).map(flow).collect(), links, ..Records::default() }
}

#[test]
fn the_worst_leaf_and_paired_times() {
    let findings = analyse(&spec(), known);
    assert_eq!(findings.problems, []);
    let value = |name: &str| findings.metrics[name].value;
    // (3 + 1)^2 / (2 x (9 + 1)) and (3 + 3)^2 / (4 x (9 + 3)).
    assert!((value("jain_split.2.flow") - 0.8).abs() < 1e-9 && (value("jain_split.1.flow") - 0.75).abs() < 1e-9);
    assert_eq!(findings.metrics["jain_split.2.flow"].n, 4);
    assert!((value("mean_slowdown.1.flow") - 4.0).abs() < 1e-9);
    assert!((value("mean_over_fastest.1.flow") - 2.0).abs() < 1e-9);
    assert!((value("mean_over_fastest.1.flowlet") - 1.8).abs() < 1e-9);
    assert!((value("flowlet_over_flow.1") - 0.9).abs() < 1e-9 && (value("flowlet_over_flow.2") - 1.0).abs() < 1e-9);
    assert!(!findings.metrics.contains_key("mean_over_fastest.2.flow"));
    let known_names = names(&spec());
    assert!(findings.metrics.keys().all(|name| known_names.contains(name)));
}

#[test]
fn a_split_that_was_not_recorded_fails() {
    let findings = analyse(&spec(), |key| Records { links: Vec::new(), ..known(key) });
    assert_eq!(findings.problems.len(), 4);
}
