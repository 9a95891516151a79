//! Two engines with known differences.

use weft_scenario::record::{CpuRow, FlowRow, Records};

use super::*;
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, COMPARISON_PLAN, SECOND, analyse};
use crate::plan::{Mode, Plan};

fn spec() -> PlanSpec {
    let second = "[workload.two]\nkind = \"permutation\"\nbytes_per_flow = \"1 MB\"\nshift = 1\n[[claims]]";
    let text = COMPARISON_PLAN.replace("[[claims]]", second).replace("expected_s", "repetitions = 3\nexpected_s");
    Plan::parse("p.toml", &text).unwrap().for_mode(Mode::Default).clone()
}

/// The simulator is 4 % faster in workload `one` and 10 % slower in workload `two`.
fn known(key: &TrialKey) -> Records {
    let took = match (key.point[0].as_str(), key.workload.as_str()) {
        ("lab", _) => 1000,
        (_, "one") => 960,
        _ => 1100,
    };
    let flow = |number: u64| -> FlowRow { testing::flow(1_000_000, 0, Some((took + number) * 1_000_000)) };
    Records { flows: (0..100).map(flow).collect(), ..Records::default() }
}

#[test]
fn errors_are_distances_from_one_and_the_worst_workload_counts() {
    let findings = analyse(&spec(), known);
    assert_eq!(findings.problems, []);
    let value = |name: &str| findings.metrics[name].value;
    assert!((value("goodput_ratio.one") - 1099.0 / 1059.0).abs() < 1e-9);
    assert!((value("goodput_error.one") - 40.0 / 1059.0).abs() < 1e-9);
    assert!((value("goodput_error") - 100.0 / 1199.0).abs() < 1e-9);
    assert!((value("p99_fct_error") - (1198.01 / 1098.01 - 1.0)).abs() < 1e-9);
    assert!((value("mean_fct_ratio.two") - 1149.5 / 1049.5).abs() < 1e-9);
    assert_eq!(findings.metrics["goodput_error"].n, 3);
    let known_names = names(&spec());
    assert!(findings.metrics.keys().all(|name| known_names.contains(name)));
    assert_eq!(findings.tables[0].rows.len(), 12);
}

#[test]
fn a_lab_without_cpu_says_nothing() {
    let findings = analyse(&spec(), |key| {
        let cpu = vec![CpuRow { time_ns: SECOND / 2, core: 0, idle_ratio: 0.01, softirq_ratio: 0.9 }];
        Records { cpu: if key.point[0] == "lab" { cpu } else { Vec::new() }, ..known(key) }
    });
    assert_eq!(findings.metrics["goodput_error"].limited_by, Limit::Cpu);
}
