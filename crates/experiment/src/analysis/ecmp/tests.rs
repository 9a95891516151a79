//! The paper's two places, with simulated runs made up.

use weft_scenario::record::{FlowRow, Records};

use super::*;
use crate::analysis::testing::{self, analyse};
use crate::plan::{Mode, Plan};

const PLAN: &str = r#"
id = "test/ecmp"
paper = "Leaf-spine"
figure = "Figure 0"
title = "chance"
engines = ["sim"]
expected_s = 1
analysis = "ecmp-probability"
overlays = ["routed"]
repetitions = 40
sampling = { interval = "1 ms", time_limit = "1 s" }

[workload.eleven]
kind = "flows"
flows = [{ from = 0, to = 20, bytes = 1000, start_ns = 0 }]

[[sweep.uplinks.variant]]
id = "20x10g"
[sweep.uplinks.variant.fabric]
generator = "leaf-spine"
spines = 20
leaves = 2
servers_per_leaf = 20
server_rate = "10 Gbit/s"
core_rate = "10 Gbit/s"

[[sweep.uplinks.variant]]
id = "2x100g"
[sweep.uplinks.variant.fabric]
generator = "leaf-spine"
spines = 2
leaves = 2
servers_per_leaf = 20
server_rate = "10 Gbit/s"
core_rate = "100 Gbit/s"

[[claims]]
id = "closed_form.20x10g"
relation = ">="
want = 0.03
unit = "ratio"
"#;

fn spec() -> PlanSpec {
    Plan::parse("p.toml", PLAN).unwrap().for_mode(Mode::Default).clone()
}

/// Eleven flows; on 20 slow links two of them share one except in every twentieth run.
fn known(key: &crate::analysis::TrialKey) -> Records {
    let shared = key.point[0] == "20x10g" && !key.repetition.is_multiple_of(20);
    let flow = |from: u32| {
        let took = if shared && from < 2 { 2_000 } else { 1_000 };
        FlowRow { from, to: from + 20, ideal_ns: Some(1_000), ..testing::flow(1_000, 0, Some(took)) }
    };
    Records { flows: (0..11).map(flow).collect(), ..Records::default() }
}

#[test]
fn the_papers_numbers_are_counted_drawn_and_compared_with_runs() {
    let findings = analyse(&spec(), known);
    assert_eq!(findings.problems, []);
    let metric = |name: &str| &findings.metrics[name];
    assert_eq!(format!("{:.4}", metric("closed_form.20x10g").value * 100.0), "3.2736");
    assert_eq!(format!("{:.3}", metric("closed_form.2x100g").value * 100.0), "99.902");
    for place in ["20x10g", "2x100g"] {
        let drawn = metric(&format!("monte_carlo.{place}"));
        let interval = drawn.interval.unwrap();
        assert!(drawn.n == 1_000_000 && interval.high - interval.low < 0.001, "{drawn:?}");
        assert!(metric(&format!("monte_carlo_deviation.{place}")).value < 4.0);
    }
    let simulated = metric("simulated.20x10g");
    assert_eq!((simulated.value, simulated.n), (0.05, 40));
    assert_eq!(metric("simulated.2x100g").value, 1.0);
    // 38 runs lose one of eleven rates.
    let expected = 1.0 - 38.0 / 40.0 / 11.0;
    assert!((metric("simulated_throughput.20x10g").value - expected).abs() < 1e-12);
    assert_eq!(findings.tables[0].rows.len(), 2);
    let known_names = names(&spec());
    assert!(findings.metrics.keys().all(|name| known_names.contains(name)));
}

#[test]
fn flows_that_do_not_fit_the_question_are_refused() {
    let of = |change: fn(&mut FlowRow)| {
        let findings = analyse(&spec(), |key| {
            let mut records = known(key);
            change(&mut records.flows[1]);
            records
        });
        findings.problems[0].text().to_owned()
    };
    assert_eq!(of(|flow| flow.from = 25), "uplinks 20x10g: the flows leave more than one leaf");
    assert_eq!(of(|flow| flow.from = 99), "uplinks 20x10g: a flow comes from a server that the fabric does not have");
    assert_eq!(of(|flow| flow.end_ns = None), "uplinks 20x10g: a flow did not end, or its ideal time is not known");
    assert!(analyse(&spec(), |_| Records::default()).problems[0].text().ends_with("there are no flows"));
}
