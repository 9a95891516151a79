//! Shuffles whose numbers can be worked out by hand (vl2/fig09-shuffle).

use weft_scenario::engine::Overlay;
use weft_scenario::record::{EventRow, OtherRow, Records};
use weft_scenario::topology::Fabric;

use super::close;
use crate::analysis::framing;
use crate::analysis::testing::{self, SECOND, even_shuffle, scale_link, trial};
use crate::metric::{Estimate, Findings, Limit, Problem};
use crate::verdict::{self, Verdict};

fn findings(change: impl Fn(&Fabric, &mut Records)) -> Findings {
    let spec = testing::asking(&testing::shuffle_plan_text(""), "vl2/fig09-shuffle", "jain_flows");
    let fabric = testing::fabric(&spec);
    let mut records = even_shuffle(&fabric, 1_000_000, 10);
    change(&fabric, &mut records);
    let trials = [trial(1, Overlay::Vl2, "all", records)];
    testing::run(&spec, std::slice::from_ref(&fabric), &trials)
}

#[test]
fn an_even_shuffle_gives_the_numbers_on_paper() {
    // 12 flows of 1 MB in 10 s are 9.6 Mbit/s, of 40 Mbit/s in all.
    let findings = findings(|_, _| {});
    assert_eq!(findings.problems, []);
    let line_rate = 9.6 / 40.0;
    close(&findings, "plateau_goodput", 9.6e6);
    close(&findings, "goodput_over_line_rate", line_rate);
    close(&findings, "goodput_efficiency", line_rate * 3154.0 / 2920.0);
    close(&findings, "whole_run_efficiency", line_rate * 3154.0 / 2920.0);
    close(&findings, "goodput_over_paper_bound", line_rate * 75.0 / 62.3);
    close(&findings, "jain_flows", 1.0);
    close(&findings, "flow_goodput_spread", 0.0);
    close(&findings, "jain_split_shuffle", 1.0);
    // 1 MB/s on 100 Mbit/s.
    close(&findings, "core_utilisation", 0.08);
    close(&findings, "core_utilisation_max", 0.08);
    close(&findings, "retransmitted_segments", 12.0);
    close(&findings, "shuffle_time", 10.0);
    close(&findings, "encapsulation_bound", 3154.0 / 3274.0);
    // Racks of one server: 1 x 3 flows of 1 MB at 10 Mbit/s are 2.4 s.
    close(&findings, "tree_slowdown", 0.24);
    assert_eq!(findings.metrics["goodput_efficiency"].limited_by, Limit::Link);
    assert_eq!(findings.metrics["encapsulation_bound"].limited_by, Limit::Computed);
}

#[test]
fn a_tail_costs_the_whole_run_and_not_the_plateau() {
    let findings = findings(|_, records| records.flows[0].end_ns = Some(20 * SECOND));
    close(&findings, "plateau_goodput", 9.6e6);
    close(&findings, "shuffle_time", 20.0);
    close(&findings, "whole_run_efficiency", 4.8 / 40.0 * 3154.0 / 2920.0);
}

#[test]
fn jain_weighs_each_flow_by_its_own_time() {
    // Six flows take twice as long: goodputs 1 and 1/2, (6 + 3)^2 / (12 (6 + 1.5)).
    let findings = findings(|_, records| {
        for flow in records.flows.iter_mut().take(6) {
            flow.end_ns = Some(20 * SECOND);
        }
    });
    close(&findings, "jain_flows", 81.0 / 90.0);
}

#[test]
fn the_worst_switch_decides_the_split() {
    let findings = findings(|fabric, records| scale_link(fabric, &mut records.links, "agg2", "int3", 2.0));
    close(&findings, "jain_split_shuffle", 16.0 / 18.0);
}

#[test]
fn an_unfinished_flow_fails_the_run() {
    let findings = findings(|_, records| records.flows[3].end_ns = None);
    assert_eq!(findings.problems, [Problem::Failed("1 of 12 flows of trial 1 did not finish".into())]);
}

#[test]
fn a_flow_that_ended_short_of_its_bytes_is_unfinished() {
    let findings = findings(|_, records| records.flows[3].bytes_received -= 1);
    assert_eq!(findings.problems, [Problem::Failed("1 of 12 flows of trial 1 did not finish".into())]);
}

/// A core may have no idle time because somebody else uses it, and the run have all that it needs.
#[test]
fn waiting_for_a_core_is_the_limit_and_a_busy_core_is_not() {
    let limit = |waits: f64| {
        let findings = findings(|_, records| {
            records.cpu.iter_mut().for_each(|row| row.idle_ratio = 0.0);
            records.core_waits = (1..=10).map(|second| testing::waiting(second, waits)).collect();
        });
        close(&findings, "cpu_wait", waits);
        findings.metrics["goodput_efficiency"].limited_by
    };
    assert_eq!((limit(0.3), limit(46.0)), (Limit::Link, Limit::Cpu));
}

#[test]
fn what_does_not_hold_on_a_machine_in_use_is_not_the_networks_fault() {
    let limit = |cpu_ns, wait_ms| {
        let other = OtherRow { process: "sh".into(), pid: 47, cpu_ns, wall_ns: 10 * SECOND, cores: 2 };
        let findings = findings(|_, records| {
            records.others.push(other.clone());
            records.core_waits[0] = testing::waiting(1, wait_ms);
        });
        findings.metrics["jain_flows"].limited_by
    };
    assert_eq!((limit(SECOND, 9.0), limit(SECOND + 1, 9.0)), (Limit::Link, Limit::OtherWork));
    assert_eq!(limit(SECOND + 1, 8.0), Limit::Link, "others took what the run did not need");
}

#[test]
fn where_the_kernel_does_not_say_who_waits_idle_time_is_the_limit() {
    let limit = |idle_ratio| {
        let findings = findings(|_, records| {
            records.core_waits.clear();
            records.cpu.iter_mut().for_each(|row| row.idle_ratio = idle_ratio);
        });
        assert!(!findings.metrics.contains_key("cpu_wait"));
        findings.metrics["goodput_efficiency"].limited_by
    };
    assert_eq!((limit(0.3), limit(0.01)), (Limit::Link, Limit::Cpu));
}

#[test]
fn route_changes_without_a_fault_make_the_run_invalid() {
    let event = EventRow { time_ns: 1, kind: "adjacency".into(), subject: "agg1".into() };
    let findings = findings(|_, records| records.events.push(event.clone()));
    assert!(matches!(&findings.problems[..], [Problem::Invalid(_)]));
}

#[test]
fn a_measured_ack_ratio_moves_the_bound() {
    let findings = findings(|_, records| records.facts.push(("acks_per_data_segment".into(), 1.0 / 6.8)));
    close(&findings, "encapsulation_bound", framing::encapsulation_bound(6.8));
}

/// 0.98 of the headers-only bound: possible with the lab's few ACKs, more than there can be with the paper's.
#[test]
fn a_plateau_above_what_its_acks_leave_is_no_pass() {
    let judged = |segments_per_ack: f64| {
        let mut found = findings(|_, records| {
            records.facts.push(("acks_per_data_segment".into(), 1.0 / segments_per_ack));
        });
        let three = Estimate::of_samples(&[0.98; 3], Limit::Link).expect("three samples");
        found.metrics.insert("goodput_efficiency".to_owned(), three);
        let claims = &super::shipped("vl2/fig09-shuffle").claims;
        let claim = claims.iter().find(|claim| claim.id == "goodput_efficiency").expect("it is the plan's");
        verdict::judge(claim, &found)
    };
    let [lab, paper] = [6.8, 2.0].map(judged);
    assert_eq!(lab.verdict, Verdict::Pass, "{lab:?}");
    assert_eq!(paper.verdict, Verdict::Inconclusive, "{paper:?}");
    assert!(format!("{paper:?}").contains("0.980 is more than there can be (0.968)"), "{paper:?}");
}

#[test]
fn no_records_are_an_error_and_not_a_number() {
    let findings = findings(|_, records| *records = Records::default());
    assert_eq!(findings.problems, [Problem::Failed("trial 1 has no flows".into())]);
}
