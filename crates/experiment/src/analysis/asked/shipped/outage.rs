//! One outage with a known course (vl2/intermediate-outage).

use weft_scenario::engine::Overlay;
use weft_scenario::record::{EventRow, FlowRow, ProgressRow, Records};

use super::close;
use crate::analysis::testing::{self, SECOND, trial};
use crate::metric::{Findings, Problem};
use crate::plan::PlanSpec;

fn spec() -> PlanSpec {
    let text = testing::plan_text(
        "overlays = [\"vl2\"]",
        r#"
[workload.all]
kind = "shuffle"
bytes_per_flow = "1 MB"
[[fault]]
at = "10 s"
lasts = "12 s"
kind = "switch-down"
node = "int1"
[sampling]
interval = "100 ms"
time_limit = "60 s"
[[metrics]]
"#,
    );
    testing::asking(&text, "vl2/intermediate-outage", "recovery_time")
}

/// Goodput 100 before; 40 for 4 s, then 75 while the outage lasts; 50 for 2 s after the repair, then 130 for 3 s, then
/// 100 to the end at 40 s.
fn records() -> Records {
    let rate = |tenth: u64| match tenth {
        0..100 => 100,
        100..140 => 40,
        140..220 => 75,
        220..240 => 50,
        240..270 => 130,
        _ => 100,
    };
    let mut received_bytes = 0;
    let mut progress = Vec::new();
    for tenth in 0..400 {
        received_bytes += rate(tenth) * 1_000;
        progress.push(ProgressRow { time_ns: (tenth + 1) * SECOND / 10, received_bytes, flows_done: 0 });
    }
    let flow = |end_ns| FlowRow { bytes_received: received_bytes / 2, ..testing::flow(0, 0, end_ns) };
    let event =
        |time_s: u64, kind: &str| EventRow { time_ns: time_s * SECOND, kind: kind.into(), subject: "int1".into() };
    let events = vec![event(10, "fault"), event(10, "adjacency"), event(22, "repair"), event(23, "routes-restored")];
    Records { progress, flows: vec![flow(Some(40 * SECOND)), flow(None)], events, ..Records::default() }
}

fn run(records: Records) -> Findings {
    let spec = spec();
    let fabric = testing::fabric(&spec);
    let trials = [trial(1, Overlay::Vl2, "all", records)];
    testing::run(&spec, std::slice::from_ref(&fabric), &trials)
}

#[test]
fn each_stretch_is_measured_against_the_time_before() {
    let findings = run(records());
    assert_eq!(findings.problems, [], "a lost neighbour belongs to a fault");
    close(&findings, "settled_goodput_ratio", 0.75);
    close(&findings, "dip_goodput_ratio", 0.40);
    // The second from 23.5 to 24.5 carries (50 + 130) / 2 = 90.
    close(&findings, "recovery_time", 1.5);
    close(&findings, "routes_restored_time", 1.0);
    // 0.5 s at 50, 3 s at 130 and 1.5 s at 100.
    close(&findings, "after_goodput_ratio", (0.5 * 0.5 + 3.0 * 1.3 + 1.5) / 5.0);
    close(&findings, "unfinished_flows", 1.0);
}

#[test]
fn a_fabric_that_never_comes_back_has_no_short_recovery() {
    let mut records = records();
    let lost = records.progress[220].received_bytes;
    for row in &mut records.progress[220..] {
        row.received_bytes = lost;
    }
    records.flows.clear();
    let findings = run(records);
    assert!(findings.metrics["recovery_time"].value > 10.0);
}

#[test]
fn a_run_without_its_fault_is_invalid() {
    let mut records = records();
    records.events.clear();
    let findings = run(records);
    assert_eq!(findings.problems, [Problem::Invalid("trial 1 recorded no fault that was repaired".into())]);
}
