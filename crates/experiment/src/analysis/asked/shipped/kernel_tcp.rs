//! Two engines with known differences (validation/kernel-tcp).

use weft_scenario::record::{CpuRow, FlowRow, ProgressRow, Records};

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, SECOND, analyse};
use crate::metric::Limit;

/// The simulator is 4 % faster in the dumbbell and 10 % slower in the incast.
fn known(key: &TrialKey) -> Records {
    let took = match (key.point[0].as_str(), key.workload.as_str()) {
        ("lab", _) => 1000,
        (_, "dumbbell") => 960,
        _ => 1100,
    };
    let flow = |number: u64| -> FlowRow { testing::flow(1_000_000, 0, Some((took + number) * 1_000_000)) };
    Records { flows: (0..100).map(flow).collect(), ..Records::default() }
}

#[test]
fn errors_are_distances_from_one_and_the_worst_workload_counts() {
    let findings = analyse(&shipped("validation/kernel-tcp"), known);
    assert_eq!(findings.problems, []);
    close(&findings, "goodput_ratio.dumbbell", 1099.0 / 1059.0);
    close(&findings, "goodput_error", 100.0 / 1199.0);
    close(&findings, "p99_fct_error", 1198.01 / 1098.01 - 1.0);
    close(&findings, "mean_fct_ratio.incast", 1149.5 / 1049.5);
    assert_eq!(findings.metrics["goodput_error"].n, 5);
    assert_eq!(findings.tables[0].rows.len(), 20);
}

#[test]
fn a_lab_without_cpu_says_nothing() {
    let findings = analyse(&shipped("validation/kernel-tcp"), |key| {
        let busy = key.point[0] == "lab";
        let cpu = vec![CpuRow { time_ns: SECOND / 2, core: 0, idle_ratio: 0.01, softirq_ratio: 0.9 }];
        let progress = vec![ProgressRow { time_ns: SECOND, received_bytes: 1, flows_done: 0 }];
        Records { cpu: if busy { cpu } else { Vec::new() }, progress, ..known(key) }
    });
    assert_eq!(findings.metrics["goodput_error"].limited_by, Limit::Cpu);
}
