//! Completion times that are known multiples of the ideal switch's.

use weft_scenario::record::{FlowRow, Records};
use weft_scenario::workload::FlowClass;

use super::*;
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, SWEEP_PLAN, analyse};
use crate::plan::{Mode, Plan};

fn spec() -> PlanSpec {
    Plan::parse("p.toml", SWEEP_PLAN).unwrap().for_mode(Mode::Default).clone()
}

/// 250 flows of each class; a flow takes a microsecond for each kB on the ideal switch, times `factor`.
fn flows(factor: impl Fn(SizeClass) -> f64) -> Vec<FlowRow> {
    let sizes = [20_000, 1_000_000, 20_000_000, 2_000];
    let flow = |number: u64| {
        let class = SizeClass::ALL[(number % 4) as usize];
        let bytes = sizes[(number % 4) as usize] + number % 1000;
        let (start, ideal) = (number * 1_000, bytes);
        let end = start + (ideal as f64 * factor(class)) as u64;
        let query = class == SizeClass::Query;
        FlowRow {
            class: if query { FlowClass::Query } else { FlowClass::Background },
            request: query.then_some(number as u32),
            ideal_ns: Some(ideal),
            ..testing::flow(bytes, start, Some(end))
        }
    };
    (0..1000).map(flow).collect()
}

/// Large flows take 1.4 times as long on 10g at load 70 and 1.2 times at load 30; the others are like the ideal switch.
fn known(key: &TrialKey) -> Records {
    let factor = |class| match (class, key.point[0].as_str(), key.point[1].as_str()) {
        (SizeClass::Large, "10g", "70") => 1.4,
        (SizeClass::Large, "10g", "30") => 1.2,
        _ => 1.0,
    };
    Records { flows: flows(factor), ..Records::default() }
}

#[test]
fn the_worst_load_counts_and_is_named() {
    let findings = analyse(&spec(), known);
    assert_eq!(findings.problems, []);
    let metric = |name: &str| &findings.metrics[name];
    let worst = metric("large_mean_over_oq.10g");
    assert!((worst.value - 1.4).abs() < 1e-6 && worst.n == 500, "{worst:?}");
    let interval = worst.interval.unwrap();
    assert!((interval.low - 1.4).abs() < 1e-6 && (interval.high - 1.4).abs() < 1e-6);
    assert_eq!(metric("large_mean_over_oq_load.10g").value, 70.0);
    assert_eq!(metric("large_mean_over_oq.background.10g"), worst);
    assert!((metric("large_p99_over_oq.10g").value - 1.4).abs() < 1e-6);
    for name in ["small_mean_over_oq.10g", "query_mean_over_oq.10g", "medium_p99_over_oq.40g", "large_mean_over_oq.40g"]
    {
        assert!((metric(name).value - 1.0).abs() < 1e-9, "{name}");
    }
    assert!(!findings.metrics.keys().any(|name| name.ends_with(".oq")));
    let known = names(&spec());
    assert!(findings.metrics.keys().all(|name| known.contains(name)));
    // Two loads, three fabrics, four classes.
    assert_eq!(findings.tables[0].rows.len(), 24);
    assert_eq!(findings.tables[0].rows[0][..5], ["background", "small", "30", "oq", "500"].map(str::to_owned));
}

#[test]
fn a_bin_with_few_flows_makes_no_claim() {
    let findings = analyse(&spec(), |key| {
        let mut records = known(key);
        let mut large = 0;
        records.flows.retain(|flow| {
            large += u32::from(flow.bytes_asked > 10_000_000);
            flow.bytes_asked <= 10_000_000 || large <= if key.point[1] == "70" { 99 } else { 100 }
        });
        records
    });
    assert_eq!(findings.metrics["large_mean_over_oq_load.10g"].value, 30.0);
    assert_eq!(findings.metrics["large_mean_over_oq.10g"].n, 200);
}

#[test]
fn warm_up_and_late_flows_are_not_measured() {
    let mut spec = spec();
    for point in &mut spec.points {
        point.spec.sampling.warm_up = weft_scenario::units::Nanos(100_000);
        point.spec.sampling.measure_until = Some(weft_scenario::units::Nanos(499_000));
    }
    let findings = analyse(&spec, |key| {
        let mut records = known(key);
        records.flows[0].end_ns = None;
        records.flows[999].end_ns = None;
        records
    });
    assert_eq!(findings.problems, []);
    assert_eq!(findings.metrics["large_mean_over_oq.10g"].n, 200);
}

#[test]
fn what_is_not_comparable_fails() {
    let open = analyse(&spec(), |key| {
        let mut records = known(key);
        if key.point == ["10g", "30"] {
            records.flows[5].end_ns = None;
        }
        records
    });
    let texts: Vec<&str> = open.problems.iter().map(Problem::text).collect();
    let place = "(background fabric=10g load=30) did not end within the time limit";
    assert!(texts.len() == 2 && texts[0].starts_with("1 of 1000 flows of trial 5 ") && texts[0].ends_with(place));
    let others = analyse(&spec(), |key| {
        let mut records = known(key);
        if key.point[0] == "40g" {
            records.flows.remove(7);
        }
        records
    });
    assert!(
        others.problems[0].text().ends_with("did not carry the flows of the ideal switch"),
        "{:?}",
        others.problems
    );
}

#[test]
fn classes_are_on_the_papers_scale() {
    let flow = |bytes, class| FlowRow { class, ..testing::flow(bytes, 0, None) };
    let background = |bytes, divisor| SizeClass::of(&flow(bytes, FlowClass::Background), divisor);
    assert_eq!(background(99_999, 1), SizeClass::Small);
    assert_eq!(background(100_000, 1), SizeClass::Medium);
    assert_eq!(background(10_000_000, 1), SizeClass::Medium);
    assert_eq!(background(10_000_001, 1), SizeClass::Large);
    assert_eq!(background(1_000_001, 10), SizeClass::Large);
    assert_eq!(SizeClass::of(&flow(99_999_999, FlowClass::Query), 1), SizeClass::Query);
}
