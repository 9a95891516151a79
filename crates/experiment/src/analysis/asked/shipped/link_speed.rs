//! Completion times that are known multiples of the ideal switch's (leaf-spine/link-speed).

use weft_scenario::record::{FlowRow, Records};
use weft_scenario::workload::FlowClass;

use crate::analysis::TrialKey;
use crate::analysis::completion::SizeClass;
use crate::analysis::testing::{self, SWEEP_PLAN, analyse};
use crate::metric::Problem;
use crate::plan::PlanSpec;

fn spec() -> PlanSpec {
    testing::asking(SWEEP_PLAN, "leaf-spine/link-speed", "over_oq.large.mean.10g")
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
    let worst = metric("over_oq.large.mean.10g");
    assert!((worst.value - 1.4).abs() < 1e-6 && worst.n == 500, "{worst:?}");
    let interval = worst.interval.unwrap();
    assert!((interval.low - 1.4).abs() < 1e-6 && (interval.high - 1.4).abs() < 1e-6);
    assert_eq!(metric("worst_load.large.mean.10g").value, 70.0);
    assert!((metric("over_oq.large.p99.10g").value - 1.4).abs() < 1e-6);
    for name in ["over_oq.small.mean.10g", "over_oq.query.mean.10g", "over_oq.medium.p99.40g", "over_oq.large.mean.40g"]
    {
        assert!((metric(name).value - 1.0).abs() < 1e-9, "{name}");
    }
    assert!(!findings.metrics.keys().any(|name| name.ends_with(".oq")));
    // Two loads, three fabrics, four classes.
    assert_eq!(findings.tables[0].rows.len(), 24);
    assert_eq!(findings.tables[0].rows[0][..5], ["background", "large", "30", "10g", "500"].map(str::to_owned));
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
    assert_eq!(findings.metrics["worst_load.large.mean.10g"].value, 30.0);
    assert_eq!(findings.metrics["over_oq.large.mean.10g"].n, 200);
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
    assert_eq!(findings.metrics["over_oq.large.mean.10g"].n, 200);
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
    assert_eq!(
        open.problems[0],
        Problem::Failed("1 of 1000 flows of trial 5 did not end within the time limit".into())
    );
    let others = analyse(&spec(), |key| {
        let mut records = known(key);
        if key.point[0] == "40g" {
            records.flows.remove(7);
        }
        records
    });
    let texts: Vec<&str> = others.problems.iter().map(Problem::text).collect();
    assert_eq!(
        texts,
        [9, 10, 11, 12].map(|trial| format!("trial {trial} did not carry the flows of the ideal switch"))
    );
}
