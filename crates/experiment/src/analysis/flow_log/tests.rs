//! Records by hand whose every number is known.

use weft_model::flow_log::fact;
use weft_scenario::record::{ConcurrencyRow, FittingRow, FlowSizeRow, MatrixRow, Records};

use super::concurrency::ConcurrencySummary;
use super::matrices::{MatrixSummary, repeats, run_lengths};
use super::sizes::SizeSummary;
use crate::analysis::testing::{FABRIC, plan_text};
use crate::analysis::{Analysis, TrialKey, TrialRecords, testing};
use crate::plan::{Mode, Plan, PlanSpec};

fn size(bytes_at_most: u64, flows: u64, bytes: u64) -> FlowSizeRow {
    FlowSizeRow { bytes_at_most, flows, bytes }
}

fn fitting(errors: &[f64]) -> Vec<FittingRow> {
    (1..)
        .zip(errors)
        .map(|(clusters, error)| FittingRow { clusters, error_ratio: *error, excess_ratio: *error })
        .collect()
}

fn course(clusters: &[u32]) -> Vec<MatrixRow> {
    let row = |(interval, cluster): (usize, &u32)| MatrixRow {
        interval: interval as u32,
        bytes: 10,
        pairs: 3,
        cluster: Some(*cluster),
    };
    clusters.iter().enumerate().map(row).collect()
}

#[test]
fn sizes_are_summed_up_as_the_paper_does() {
    let records = Records {
        flow_sizes: vec![
            size(1_000, 60, 50_000),
            size(100_000_000, 30, 950_000),
            size(112_200_000, 8, 8_000_000),
            size(1_000_000_000, 1, 500_000),
            size(10_000_000_000, 1, 500_000),
        ],
        facts: vec![(fact::BYTES_INSIDE.into(), 8e6), (fact::BYTES_CROSSING.into(), 2e6)],
        ..Records::default()
    };
    let expected = SizeSummary {
        flows: 100,
        bytes: 10_000_000,
        median_bytes: Some(1_000),
        flows_to_100_mb: Some(0.9),
        bytes_100_mb_to_1_gb: Some(0.85),
        bytes_mode: Some(112_200_000),
        flows_above_3_gb: Some(0.01),
        inside_over_outside: Some(4.0),
    };
    assert_eq!(SizeSummary::of(&records), expected);
    let nothing = SizeSummary::of(&Records::default());
    assert_eq!((nothing.median_bytes, nothing.flows_to_100_mb, nothing.inside_over_outside), (None, None, None));
}

#[test]
fn two_modes_and_the_valley_between_them_are_found() {
    // Half of the time 10 flows, 40 % 11, 10 % 80: smoothed over seven, 10 and 80 are the modes and 45 is empty.
    let row = |flows, server_s| ConcurrencyRow { flows, server_s };
    let records = Records { concurrency: vec![row(10, 500.0), row(11, 400.0), row(81, 100.0)], ..Records::default() };
    let found = ConcurrencySummary::of(&records);
    assert_eq!(found.mean_flows, Some(10.0 * 0.5 + 11.0 * 0.4 + 81.0 * 0.1));
    assert_eq!((found.median_flows, found.time_about_ten), (Some(10), Some(0.9)));
    assert_eq!((found.time_above_80, found.time_above_100), (Some(0.1), Some(0.0)));
    // Averages over seven neighbours are flat around a lone peak: the lowest of them is named.
    assert_eq!((found.first_mode, found.second_mode, found.valley_over_second_mode), (Some(8), Some(78), Some(0.0)));
    let low = ConcurrencySummary::of(&Records { concurrency: vec![row(3, 7.0)], ..Records::default() });
    assert_eq!((low.median_flows, low.second_mode, low.valley_over_second_mode), (Some(3), None, None));
    assert_eq!(ConcurrencySummary::of(&Records::default()).mean_flows, None);
}

#[test]
fn runs_and_returns_are_counted() {
    let clusters = [0, 0, 1, 0, 2, 2, 2, 1];
    assert_eq!(run_lengths(&clusters), [2, 1, 1, 3, 1]);
    // 0 returns after 1 and 2, 1 after 5, 2 after 1 and 1.
    assert_eq!(repeats(&clusters).into_iter().collect::<Vec<_>>(), [(1, 3), (2, 1), (5, 1)]);
    assert!(run_lengths(&[]).is_empty() && repeats(&[]).is_empty());
    let found = MatrixSummary::of(&Records { matrices: course(&clusters), ..Records::default() });
    assert_eq!((found.changes, found.repeat_mode, found.repeat_peak), (Some(4.0 / 7.0), Some(1), Some(0.5)));
    // Sorted runs are 1 1 1 2 3; their 60th percentile is at place 2.4.
    assert!((found.run_length_p60.unwrap() - 1.4).abs() < 1e-12 && found.mean_pairs == Some(3.0));
}

#[test]
fn the_knee_is_where_one_more_cluster_helps_most() {
    let mut errors: Vec<f64> = vec![0.9, 0.8, 0.7, 0.2];
    errors.extend((5..=400).map(|clusters| 0.2 * (400.0 - f64::from(clusters)) / 396.0));
    let found = MatrixSummary::of(&Records { fitting: fitting(&errors), ..Records::default() });
    assert_eq!((found.knee, found.error_at_knee), (Some(4), Some(0.2)));
    assert!((found.knee_factor.unwrap() - 3.5).abs() < 1e-12);
    assert_eq!(found.fitting_error_60, Some(0.2 * 340.0 / 396.0));
    assert!((found.gain_60_to_120.unwrap() - (340.0 - 280.0) / 340.0).abs() < 1e-12);
    // Too few matrices to ask for a knee, or for 60 clusters.
    let few = MatrixSummary::of(&Records { fitting: fitting(&[0.5, 0.1, 0.0]), ..Records::default() });
    assert_eq!((few.knee, few.fitting_error_60), (None, None));
}

const TABLES: &str = r#"
[workload.day]
kind = "flow-log"
duration = "30 s"
mean_lifetime = "10 s"
mean_phase = "20 s"
peer_racks = 2
outside_percent = 20
[sampling]
interval = "1 s"
time_limit = "30 s"
[[claims]]
id = "CLAIM"
relation = "info"
unit = "ratio"
"#;

fn spec(analysis: &str, claim: &str) -> PlanSpec {
    let keys = format!("analysis = \"{analysis}\"\noverlays = [\"routed\"]");
    let text = plan_text(&keys, &TABLES.replace("CLAIM", claim)).replace("[\"lab\"]", "[\"calc\"]");
    Plan::parse("test.toml", &text).unwrap().for_mode(Mode::Default).clone()
}

#[test]
fn metrics_have_the_names_that_plans_may_use() {
    let plans = [("flow-sizes", "median_size"), ("flow-concurrency", "mean_flows"), ("traffic-matrices", "knee.day")];
    for (analysis, claim) in plans {
        let spec = spec(analysis, claim);
        let fabrics = spec.build_fabrics().unwrap();
        let key = TrialKey {
            trial: 1,
            repetition: 1,
            seed: 1,
            overlay: spec.overlays[0],
            workload: "day".into(),
            point: Vec::new(),
        };
        let records = Records {
            flow_sizes: vec![size(1_000, 60, 50_000), size(10_000_000_000, 1, 500_000)],
            concurrency: vec![ConcurrencyRow { flows: 10, server_s: 5.0 }, ConcurrencyRow { flows: 80, server_s: 5.0 }],
            matrices: course(&[0, 1, 0, 1, 1]),
            fitting: fitting(&(0..200).map(|clusters| 1.0 / f64::from(clusters + 1)).collect::<Vec<_>>()),
            facts: [fact::BYTES_INSIDE, fact::BYTES_CROSSING, fact::OPEN_S].map(|name| (name.to_owned(), 1.0)).to_vec(),
            ..Records::default()
        };
        let trials = [TrialRecords { key, records }];
        let findings = testing::run(&spec, &fabrics, &trials);
        let mut names = spec.analysis.metric_names(&spec);
        names.sort();
        assert_eq!(findings.metrics.keys().cloned().collect::<Vec<_>>(), names);
        assert!(findings.problems.is_empty());
        let empty = [TrialRecords { records: Records::default(), ..trials[0].clone() }];
        let findings = testing::run(&spec, &fabrics, &empty);
        assert_eq!(findings.problems.len(), 1, "{}", spec.analysis.name());
    }
    assert_eq!(
        Analysis::FlowSizes.meaning("median_size").is_some(),
        Analysis::TrafficMatrices.meaning("knee.x").is_some()
    );
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let keys = "analysis = \"flow-sizes\"\noverlays = [\"routed\"]";
    let good = plan_text(keys, &TABLES.replace("CLAIM", "median_size")).replace("[\"lab\"]", "[\"calc\"]");
    assert!(good.contains(FABRIC) && Plan::parse("p.toml", &good).is_ok());
    let twice = TABLES.split("[sampling]").next().unwrap().replace("day", "night");
    for (from, to, message) in [
        ("[\"calc\"]", "[\"sim\"]", "need `engines = [\"calc\"]`"),
        ("[\"calc\"]", "[\"calc\", \"sim\"]", "need `engines = [\"calc\"]`"),
        ("[sampling]", &format!("{twice}[sampling]"), "takes one workload of kind `flow-log`"),
        ("duration = \"30 s\"", "duration = \"0 s\"", ""),
        ("outside_percent = 20", "outside_percent = 20\ncolour = 1", "unknown field `colour`"),
    ] {
        let text = good.replacen(from, to, 1);
        let refused = Plan::parse("p.toml", &text).map(|_| ()).map_err(|error| error.to_string());
        match message {
            "" => assert!(refused.is_ok(), "that needs the network, and is refused when the plan is loaded"),
            message => {
                let error = refused.unwrap_err();
                assert!(error.contains(message), "wanted `{message}`, got `{error}`");
            }
        }
    }
}
