//! Known answers: hand-made gaps and series of a shuffle whose links fail and return.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{EventRow, GapRow, LinkRow, ProgressRow, Records};

use crate::analysis::testing::{self, SECOND, fabric, plan_text, trial};
use crate::metric::{Findings, Problem};
use crate::plan::{Mode, Plan, PlanSpec};

const TABLES: &str = r#"
[workload.all]
kind = "shuffle"
bytes_per_flow = "1 MB"
[sampling]
interval = "1 s"
probes = { flows = 20, interval = "10 ms" }
time_limit = "40 s"
[[claims]]
id = "efficiency"
relation = "info"
unit = "ratio"
"#;

const FAULTS: &str = r#"
[[fault]]
at = "10 s"
lasts = "20 s"
kind = "switch-down"
node = "int1"
[[fault]]
at = "20 s"
lasts = "10 s"
kind = "link-silent"
a = "int2"
b = "agg1"
"#;

/// The questions are those of the shipped plan.
fn text(faults: &str) -> String {
    let (measured, questions) = testing::questions_of("vl2/fig13-convergence");
    plan_text(&format!("{measured}\noverlays = [\"vl2\"]"), &format!("{TABLES}{faults}{questions}"))
}

/// Four servers of 40 Mbit/s each and links of 10 Mbit/s between switches, so that the network is the bound.
fn spec() -> PlanSpec {
    let text = text(FAULTS).replace("\"10 Mbit/s\"", "\"40 Mbit/s\"").replace("\"100 Mbit/s\"", "\"10 Mbit/s\"");
    Plan::parse("test.toml", &text).unwrap().for_mode(Mode::Default).clone()
}

fn event(time_s: u64, kind: &str, subject: &str) -> EventRow {
    EventRow { time_ns: time_s * SECOND, kind: kind.into(), subject: subject.into() }
}

/// One rate of payload over 40 s; the silent link carries nothing while it is silent and for 2 s after.
fn records() -> Records {
    let goodput_bps = 40e6;
    let progress = |second: u64| ProgressRow {
        time_ns: second * SECOND,
        received_bytes: (second as f64 * goodput_bps / 8.0) as u64,
        flows_done: 0,
    };
    let sent = |second: u64| second.min(20) + second.saturating_sub(32);
    let link = |second: u64| LinkRow {
        time_ns: second * SECOND,
        node: "int2".into(),
        interface: "agg1".into(),
        peer: "agg1".into(),
        class: "any".into(),
        sent_bytes: sent(second) * 1_000_000,
        dropped_frames: 0,
    };
    let gap = |time_ms: u64, outage_ms: u64| GapRow {
        from: 0,
        to: 1,
        time_ns: time_ms * 1_000_000,
        lost: 1,
        outage_ns: outage_ms * 1_000_000,
    };
    Records {
        progress: (1..=40).map(progress).collect(),
        links: (1..=40).map(link).collect(),
        core_waits: (1..=40).map(|second| testing::waiting(second, 0.25)).collect(),
        gaps: vec![gap(5_000, 900), gap(10_010, 20), gap(10_020, 30), gap(20_100, 200), gap(31_000, 700)],
        events: vec![
            event(10, "fault", "int1"),
            event(20, "fault", "int2-agg1"),
            event(30, "repair", "int1"),
            event(30, "repair", "int2-agg1"),
            event(31, "routes-restored", "int2-agg1"),
        ],
        facts: vec![("probes.flows".into(), 20.0)],
        ..Records::default()
    }
}

fn analyse(records: Records) -> Findings {
    let spec = spec();
    let fabric = fabric(&spec);
    let trials = [trial(1, Overlay::Vl2, "all", records)];
    testing::run(&spec, &[fabric], &trials)
}

#[track_caller]
fn close(findings: &Findings, name: &str, want: f64) {
    let got = findings.metrics.get(name).unwrap_or_else(|| panic!("no {name}")).value;
    assert!((got - want).abs() < 1e-6, "{name}: {got} instead of {want}");
}

#[test]
fn goodput_is_held_against_what_the_links_that_are_left_could_carry() {
    let found = analyse(records());
    assert_eq!(found.problems, []);
    // Uplinks of the ToRs: three at agg1 and agg2, two at agg3; nine links to Intermediates, then six, then five.
    let headers = 2920.0 / 3154.0;
    let all = 40.0 / ((30.0 + 30.0 + 20.0) * headers);
    let without_one = 40.0 / ((20.0 + 20.0 + 20.0) * headers);
    let and_a_link = 40.0 / ((10.0 + 20.0 + 20.0) * headers);
    // The repair of the switch is over as it begins: it is no phase. The last repair's is.
    let mut efficiencies = [all, without_one, and_a_link, all];
    efficiencies.sort_by(f64::total_cmp);
    close(&found, "efficiency", (efficiencies[1] + efficiencies[2]) / 2.0);
    close(&found, "efficiency_worst", all);
    close(&found, "efficiency_scarcest", and_a_link);
    close(&found, "oversubscription", 9.0 / 5.0);
    close(&found, "cpu_wait", 0.25);
}

#[test]
fn an_outage_is_the_worst_flow_s_soon_after_the_failure() {
    let found = analyse(records());
    close(&found, "outage_link_down_s", 0.03);
    close(&found, "outage_silent_s", 0.2);
    close(&found, "unseen_failures", 0.0);
    let unseen = analyse(Records { gaps: Vec::new(), ..records() });
    close(&unseen, "unseen_failures", 2.0);
    // At most the time between two datagrams, where both ends see a link go; a silent one is not found so fast.
    close(&unseen, "outage_link_down_s", 0.01);
    assert!(!unseen.metrics.contains_key("outage_silent_s"), "nothing lost is no short outage");
    let crosses_nothing = |found: &Findings| found.problems.iter().any(|one| one.text().contains("cross"));
    assert!(crosses_nothing(&unseen) && !crosses_nothing(&found), "{:?}", unseen.problems);
    let without = analyse(Records { gaps: Vec::new(), facts: Vec::new(), ..records() });
    close(&without, "unseen_failures", 0.0);
    assert!(!without.metrics.contains_key("outage_link_down_s"), "nobody looked");
}

#[test]
fn a_link_is_restored_when_it_carries_what_it_carries_later() {
    let found = analyse(records());
    // It carries its later rate from 32 s on; a stretch of a second with nine tenths of it begins a tenth before.
    close(&found, "restoration_s", 1.9);
    close(&found, "unrestored_links", 0.0);
    close(&found, "routes_restored_s", 1.0);
    let never = Records {
        links: records()
            .links
            .into_iter()
            .map(|row| LinkRow { sent_bytes: row.time_ns.min(20 * SECOND), ..row })
            .collect(),
        ..records()
    };
    // Its phase is ten seconds long.
    let never = analyse(never);
    close(&never, "restoration_s", 10.0);
    close(&never, "unrestored_links", 1.0);
    // Keep-alives of routing are no use of a link.
    let idle =
        |row: LinkRow| LinkRow { sent_bytes: row.time_ns.min(20 * SECOND) / 1_000 + row.time_ns / SECOND, ..row };
    let idle = analyse(Records { links: records().links.into_iter().map(idle).collect(), ..records() });
    close(&idle, "unrestored_links", 1.0);
    let unused = |row: LinkRow| LinkRow { sent_bytes: 0, ..row };
    let unused = analyse(Records { links: records().links.into_iter().map(unused).collect(), ..records() });
    assert!(!unused.metrics.contains_key("restoration_s"), "a link that nobody used before says nothing");
    close(&unused, "unrestored_links", 0.0);
}

#[test]
fn daemons_that_were_late_make_the_run_invalid() {
    let with = |time_s: u64, subject: &str| {
        let mut records = records();
        records.events.push(event(time_s, "adjacency", subject));
        analyse(records).problems
    };
    assert_eq!(with(11, "agg2:int1 Full -> Deleted (InactivityTimer)"), []);
    assert_eq!(with(21, "agg1:int2 Full -> Deleted (BFD)"), []);
    assert_eq!(with(35, "int2:agg1 Full -> Init (1-Way)"), [], "it comes back");
    assert_eq!(with(11, "agg1:int3 Init -> Full (LoadingDone)"), [], "nothing was lost");
    for (time_s, subject) in [(11, "agg1:int3 Full -> Deleted (BFD)"), (11, "agg1:int2 Full -> Deleted (BFD)")] {
        assert!(matches!(with(time_s, subject)[..], [Problem::Invalid(_)]), "{subject} at {time_s} s");
    }
}
