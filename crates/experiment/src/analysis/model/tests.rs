//! Known answers from records made up by hand.

use weft_scenario::record::{AvailabilityRow, FailureRow, LinkUseRow, NetworkRow, Records, RoutedMatrixRow};

use crate::analysis::testing::analyse;
use crate::metric::Findings;
use crate::plan::{Mode, Plan, PlanSpec};

fn spec(analysis: &str, question: &str, sweep: &str, claim: &str) -> PlanSpec {
    let text = format!(
        r#"
id = "test/model"
paper = "VL2"
figure = "Figure 0"
title = "a calculation"
engines = ["calc"]
expected_s = 1
analysis = "{analysis}"
overlays = ["vl2"]
sampling = {{ interval = "1 s", time_limit = "1 s" }}
[fabric]
generator = "vl2-clos"
aggregation_ports = 4
intermediate_ports = 4
[workload.one]
kind = "model"
{question}
{sweep}
[[claims]]
id = "{claim}"
relation = "info"
unit = "ratio"
"#
    );
    Plan::parse("p.toml", &text).unwrap().for_mode(Mode::Default).clone()
}

fn value(findings: &Findings, metric: &str) -> f64 {
    findings.metrics.get(metric).unwrap_or_else(|| panic!("{metric}")).value
}

#[test]
fn costs_are_compared_at_the_same_size() {
    let spec = spec(
        "cost-scale",
        "question = \"cost\"\nservers = [100]\noversubscription = [1, 240]",
        "",
        "vl2_saving.100.240",
    );
    let row = |design: &str, oversubscription, switches_usd| NetworkRow {
        design: design.into(),
        servers: 100,
        oversubscription,
        tors: 5,
        ports: 20,
        cables: 20,
        switches_usd,
        ..NetworkRow::default()
    };
    let networks = vec![
        row("vl2", 1, 1000.0),
        row("vl2", 240, 300.0),
        row("conventional", 1, 14_000.0),
        row("conventional", 240, 600.0),
        row("present", 240, 3000.0),
        row("present-spare", 240, 6000.0),
    ];
    let facts = vec![("generator.servers.24-ports".to_owned(), 2880.0)];
    let findings =
        analyse(&spec, |_| Records { networks: networks.clone(), facts: facts.clone(), ..Records::default() });
    assert_eq!(findings.problems, []);
    assert_eq!(value(&findings, "generator_servers.24-ports"), 2880.0);
    assert_eq!(value(&findings, "conventional_over_vl2.100.1"), 14.0);
    assert_eq!(value(&findings, "conventional_over_vl2.100.240"), 2.0);
    assert!((value(&findings, "vl2_saving.100.240") - 0.7).abs() < 1e-12);
    assert_eq!(
        (value(&findings, "present_over_vl2.100.240"), value(&findings, "capacity_per_dollar.100.240")),
        (3.0, 720.0)
    );
    assert_eq!(value(&findings, "present_spare_over_vl2.100.240"), 6.0);
    assert!((value(&findings, "present_spare_port_usd.100.240") - (7000.0 / 48.0 - 250.0)).abs() < 1e-9);
    // 20 ports of 1 Gb/s at 7000/48 dollars are among the 3000; for 1000 in all each may cost 100 dollars less.
    assert!((value(&findings, "present_port_usd.100.240") - (7000.0 / 48.0 - 100.0)).abs() < 1e-9);
    assert_eq!(value(&findings, "fat_tree_cables.100.1"), 10.0);
    assert!(!findings.metrics.contains_key("present_over_vl2.100.1"), "section 2's network begins at 1:5");
}

#[test]
fn links_are_compared_by_their_worst_their_median_and_matrix_by_matrix() {
    let spec = spec("link-use", "question = \"link-use\"\nmatrices = {}", "", "vlb_worst");
    let uses = |routing: &str, uses: [f64; 3]| {
        let row = |use_ratio| LinkUseRow { routing: routing.into(), use_ratio, ..LinkUseRow::default() };
        uses.map(row).to_vec()
    };
    let matrices = |routing: &str, uses: [f64; 2]| {
        let row = |use_ratio| RoutedMatrixRow { routing: routing.into(), use_ratio, ..RoutedMatrixRow::default() };
        uses.map(row).to_vec()
    };
    let records = Records {
        link_uses: [
            uses("vlb", [0.6, 0.2, 0.4]),
            uses("adaptive", [0.5, 0.4, 0.3]),
            uses("oblivious", [0.5, 0.5, 0.1]),
        ]
        .concat(),
        routed_matrices: [
            matrices("vlb", [0.6, 0.3]),
            matrices("adaptive", [0.5, 0.2]),
            matrices("oblivious", [0.5, 0.19]),
        ]
        .concat(),
        ..Records::default()
    };
    let findings = analyse(&spec, |_| records.clone());
    assert_eq!(findings.problems, []);
    for (metric, wanted) in [
        ("vlb_worst", 1.2),
        ("oblivious_worst", 1.0),
        ("vlb_median", 1.0),
        ("oblivious_median", 1.25),
        ("vlb_worst_matrix", 1.5),
        ("vlb_mean_matrix", 1.35),
        ("below_optimum", 0.05),
        ("adaptive_use", 0.5),
    ] {
        assert!((value(&findings, metric) - wanted).abs() < 1e-9, "{metric}: {}", value(&findings, metric));
    }
}

const SWEEP: &str = r#"
[[sweep.network.variant]]
id = "a"
fabric = { aggregation_ports = 4 }
[[sweep.network.variant]]
id = "b"
fabric = { aggregation_ports = 8 }
"#;

#[test]
fn time_counts_and_dead_tors_are_not_held_against_a_network() {
    let spec = spec("availability", "question = \"availability\"", SWEEP, "lost.a");
    let hour = 3_600_000_000_000;
    let findings = analyse(&spec, |key| {
        let row = |lasts: u64, servers_ratio, capacity_ratio| AvailabilityRow {
            lasts_ns: lasts * hour,
            servers_ratio,
            demand_ratio: servers_ratio,
            capacity_ratio,
            ..AvailabilityRow::default()
        };
        // Whole capacity is 0.5. For 6 h half of the servers are dead, and the network gives the others all they had
        // ("a") or half of it ("b").
        let hurt = if key.point[0] == "a" { 0.25 } else { 0.125 };
        let facts = [("whole", 0.5), ("one_down.top", 0.45), ("one_down.aggregation", 0.25)];
        Records {
            availability: vec![row(18, 1.0, 0.5), row(6, 0.5, hurt), row(12, 0.5, 0.2)],
            failures: vec![FailureRow { takes_group: 1, ..FailureRow::default() }, FailureRow::default()],
            facts: facts.map(|(name, value)| (format!("availability.{name}"), value)).to_vec(),
            ..Records::default()
        }
    });
    assert_eq!(findings.problems, []);
    // 12 h at 0.8 of what the living had.
    for (metric, wanted) in [
        ("lost.a", 12.0 * 0.2 / 36.0),
        ("lost.b", (12.0 * 0.2 + 6.0 * 0.5) / 36.0),
        ("lost_over.a", 1.0),
        ("lost_over.b", 5.4 / 2.4),
        ("below_90_h.a", 12.0),
        ("below_90_h.b", 18.0),
        ("below_50_h.b", 0.0),
        ("lowest.b", 0.25),
        ("failures.a", 2.0),
        ("group_failures.a", 1.0),
        ("one_top_lost.a", 0.1),
        ("one_aggregation_lost.a", 0.5),
        ("absolute.a", 0.5),
        ("mean_capacity.a", (18.0 + 6.0 * 0.5 + 12.0 * 0.4) / 36.0),
    ] {
        assert!((value(&findings, metric) - wanted).abs() < 1e-9, "{metric}: {}", value(&findings, metric));
    }
}

#[test]
fn a_question_that_another_analysis_answers_is_refused() {
    let text = |analysis: &str, question: &str| {
        std::panic::catch_unwind(|| spec(analysis, question, "", "vlb_worst"))
            .err()
            .map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    };
    let refused = text("link-use", "question = \"availability\"").expect("refused");
    assert!(refused.contains("analysis `link-use` takes one workload of kind `model` with the question `link-use`"));
}
