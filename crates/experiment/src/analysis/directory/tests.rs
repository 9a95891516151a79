//! Known latencies and counts make known metrics; what is missing or disturbed is said.

use weft_scenario::record::{DirectoryRow, EventRow, LatencyRow, MigrationRow, ProgressRow, Records};

use super::*;
use crate::analysis::TrialKey;
use crate::analysis::testing::{self, plan_text};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::{Mode, Plan, PlanSpec};

const SAMPLING: &str = "[sampling]\ninterval = \"1 s\"\ntime_limit = \"60 s\"\n";

fn tables(workloads: &str, claim: &str) -> String {
    format!("{workloads}\n{SAMPLING}[[claims]]\nid = \"{claim}\"\nrelation = \"info\"\nunit = \"x\"\n")
}

fn spec(analysis: &str, workloads: &str, claim: &str) -> PlanSpec {
    read(analysis, workloads, claim).expect("a valid test plan").for_mode(Mode::Default).clone()
}

fn read(analysis: &str, workloads: &str, claim: &str) -> Result<Plan, crate::plan::PlanError> {
    let keys = format!("analysis = \"{analysis}\"\noverlays = [\"vl2\"]\nrepetitions = 3");
    Plan::parse("test.toml", &plan_text(&keys, &tables(workloads, claim)))
}

const RAMP: &str = "[workload.ramp]\nkind = \"directory\"\nmappings = 10\nservers = 1\nduration = \"1 s\"\n\
                    lookups = { per_s = [1000, 2000, 4000] }\n";
const MIX: &str = "[workload.mix]\nkind = \"directory\"\nmappings = 10\nservers = 2\nduration = \"1 s\"\n\
                   lookups = { per_s = [1000] }\nupdates = { per_s = [100], clients = 2 }\n";

/// A step in which all but `unanswered` of the requests took `latency_ms`.
fn push_step(records: &mut Records, kind: &str, step: u32, per_s: u64, latency_ms: u64, unanswered: u64) {
    let row = DirectoryRow {
        kind: kind.into(),
        step,
        offered_per_s: per_s,
        wall_ns: 1_000_000_000,
        sent: per_s,
        messages: per_s * 2,
        answered: per_s - unanswered,
        unanswered,
        server_cpu_ns: per_s * 1_000,
        ..DirectoryRow::default()
    };
    records.directory.push(row);
    push_latency(records, kind, step, None, latency_ms, per_s - unanswered);
}

fn push_latency(records: &mut Records, kind: &str, step: u32, server: Option<&str>, latency_ms: u64, requests: u64) {
    records.latencies.push(LatencyRow {
        kind: kind.into(),
        step,
        server: server.map(str::to_owned),
        latency_at_most_ns: latency_ms * 1_000_000,
        requests,
    });
}

fn value(findings: &Findings, name: &str) -> f64 {
    findings.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", findings.metrics.keys())).value
}

#[test]
fn unanswered_requests_are_the_slowest() {
    let distribution = Distribution::new([(3_000_000, 40), (1_000_000, 50), (1_000_000, 8)], 2, 2_000_000_000);
    assert_eq!(distribution.total(), 100);
    let at = |ratio| distribution.percentile_ms(ratio).unwrap();
    assert_eq!((at(0.0), at(0.58), at(0.59), at(0.98), at(0.99)), (1.0, 1.0, 3.0, 3.0, 2000.0));
    assert_eq!(distribution.share_within_ms(2.0), Some(0.58));
    assert_eq!(distribution.cumulative(), [(1.0, 0.58), (3.0, 0.98)]);
    assert_eq!(Distribution::default().percentile_ms(0.5), None);
    assert_eq!(Distribution::together(&[distribution.clone(), distribution]).total(), 200);
}

#[test]
fn the_rate_that_counts_is_the_highest_that_was_carried() {
    let spec = spec("directory-lookup", &format!("{RAMP}{MIX}"), "lookups_per_server");
    let findings = testing::analyse(&spec, |key: &TrialKey| {
        let mut records = Records::default();
        if key.workload == "mix" {
            push_step(&mut records, LOOKUP, 1, 1000, 5, 100);
            push_step(&mut records, UPDATE, 1, 100, 40, 0);
        } else {
            push_step(&mut records, LOOKUP, 1, 1000, 1, 0);
            push_step(&mut records, LOOKUP, 2, 2000, 10, 0);
            push_step(&mut records, LOOKUP, 3, 4000, 11, 0);
        }
        records
    });
    assert_eq!(findings.problems, []);
    assert_eq!(value(&findings, "lookups_per_server"), 2000.0);
    assert_eq!(value(&findings, "p99_ms.ramp.4000"), 11.0);
    assert_eq!((value(&findings, "p50_ms.mix"), value(&findings, "p99_ms.mix")), (5.0, 2000.0));
    assert_eq!((value(&findings, "within_10ms.mix"), value(&findings, "answered.mix")), (0.9, 0.9));
    assert_eq!((value(&findings, "update_p99_ms.mix"), value(&findings, "acknowledged_lost")), (40.0, 0.0));
    for name in findings.metrics.keys() {
        assert!(spec.analysis.metric_names(&spec).contains(name), "{name} is not announced");
        assert!(spec.analysis.meaning(name).is_some(), "{name} has no meaning");
    }
}

#[test]
fn a_load_that_was_not_offered_or_not_answered_does_not_count() {
    let spec = spec("directory-lookup", RAMP, "lookups_per_server");
    let findings = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, LOOKUP, 1, 1000, 1, 0);
        push_step(&mut records, LOOKUP, 2, 2000, 1, 21);
        push_step(&mut records, LOOKUP, 3, 4000, 1, 0);
        records.directory[2].sent = 3000;
        records.directory[2].answered = 3000;
        records
    });
    assert_eq!(value(&findings, "lookups_per_server"), 1000.0);
}

#[test]
fn foreign_work_excuses_a_tail_and_wrong_answers_fail_the_run() {
    let spec = spec("directory-lookup", MIX, "lookups_per_server");
    let run = |change: fn(&mut DirectoryRow)| {
        testing::analyse(&spec, |_| {
            let mut records = Records::default();
            push_step(&mut records, LOOKUP, 1, 1000, 1, 0);
            change(&mut records.directory[0]);
            records
        })
    };
    assert_eq!(run(|_| ()).metrics["p99_ms.mix"].limited_by, Limit::SharedCores);
    assert_eq!(run(|row| row.foreign_cpu_ratio = 0.2).metrics["p99_ms.mix"].limited_by, Limit::OtherWork);
    assert_eq!(run(|row| row.skipped = 100).metrics["p99_ms.mix"].limited_by, Limit::OtherWork);
    let problems = run(|row| row.wrong = 1).problems;
    assert!(matches!(&problems[..], [Problem::Failed(text)] if text.starts_with("3 look-ups were answered")));
}

#[test]
fn what_was_never_sent_was_not_answered() {
    let spec = spec("directory-lookup", MIX, "lookups_per_server");
    let findings = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, LOOKUP, 1, 1000, 1, 0);
        records.directory[0].skipped = 1000;
        records
    });
    assert_eq!([value(&findings, "answered.mix"), value(&findings, "within_10ms.mix")], [0.5, 0.5]);
    assert_eq!(value(&findings, "p99_ms.mix"), 2000.0);
}

#[test]
fn the_worst_kill_counts_and_a_kill_that_did_not_happen_is_said() {
    let kill = "[workload.kill]\nkind = \"directory\"\nmappings = 10\nservers = 3\nduration = \"2 s\"\n\
                updates = { per_s = [100], clients = 2 }\nkill = { what = \"store-leader\", at = \"1 s\" }\n";
    let spec = spec("directory-update", kill, "leader_kill_resume_s");
    let run = |killed: bool| {
        testing::analyse(&spec, |key| {
            let mut records = Records::default();
            push_step(&mut records, UPDATE, 1, 100, 2, 0);
            records.directory[0].longest_gap_ns = u64::from(key.repetition) * 100_000_000;
            records.directory[0].lost = u64::from(key.repetition == 2);
            if killed {
                let (kind, subject) = ("fault".to_owned(), "etcd leader".to_owned());
                records.events.push(EventRow { time_ns: 1, kind, subject });
            }
            records
        })
    };
    let findings = run(true);
    assert_eq!(findings.problems, []);
    assert_eq!((value(&findings, "leader_kill_resume_s"), value(&findings, "acknowledged_lost")), (0.3, 1.0));
    assert_eq!(findings.metrics["leader_kill_resume_s"].n, 3);
    assert!(run(false).problems.iter().any(|problem| problem.text().contains("killed nothing")));
}

#[test]
fn convergence_is_what_every_server_shows() {
    let updates = "[workload.all]\nkind = \"directory\"\nmappings = 10\nservers = 3\nduration = \"1 s\"\n\
                   updates = { per_s = [100], clients = 2, until_visible = true }\n";
    let spec = spec("directory-convergence", updates, "visible_p99_ms");
    let findings = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, UPDATE, 1, 100, 2, 0);
        push_latency(&mut records, VISIBLE, 1, None, 4, 98);
        push_latency(&mut records, VISIBLE, 1, None, 700, 2);
        push_latency(&mut records, VISIBLE, 1, Some("dir1"), 1, 100);
        push_latency(&mut records, PUSHED, 1, None, 5, 100);
        records
    });
    assert_eq!((value(&findings, "visible_p50_ms"), value(&findings, "visible_p99_ms")), (4.0, 700.0));
    assert_eq!((value(&findings, "visible_within_530ms"), value(&findings, "pushed_p99_ms")), (0.98, 5.0));
    let nothing = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, UPDATE, 1, 100, 2, 0);
        records
    });
    assert!(nothing.problems.iter().any(|problem| problem.text().contains("did not see any update")));
}

#[test]
fn a_data_centre_needs_what_the_division_says() {
    let spec = spec("directory-sizing", RAMP, "servers_needed");
    let findings = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, LOOKUP, 1, 1000, 1, 0);
        push_step(&mut records, LOOKUP, 2, 2000, 1, 0);
        push_step(&mut records, LOOKUP, 3, 4000, 20, 0);
        records
    });
    assert_eq!((value(&findings, "servers_needed"), value(&findings, "servers_percent")), (500.0, 0.5));
    assert_eq!((value(&findings, "lookups_per_cpu_s"), value(&findings, "cores_needed")), (1e6, 1.0));
    let slow = testing::analyse(&spec, |_| Records::default());
    assert!(slow.problems.iter().any(|problem| problem.text().contains("no load was carried")));
}

#[test]
fn a_move_is_judged_by_its_worst() {
    let moves = "[workload.move]\nkind = \"migration\"\nfrom = 0\nmoves = 1\nto_rack_of = 2\nat = \"1 s\"\nduration = \"3 s\"\n";
    let spec = spec("migration", moves, "packets_lost");
    let findings = testing::analyse(&spec, |key| {
        let row = MigrationRow {
            left_ns: 1_000_000_000,
            arrived_ns: 1_200_000_000,
            told_ns: 1_210_000_000,
            last_stale_ns: 1_210_000_000 + u64::from(key.repetition) * 1_000_000,
            stale_packets: 90,
            lost_packets: u64::from(key.repetition),
            silence_ns: 300_000_000,
        };
        let progress = [(1, 100), (2, 100), (3, if key.repetition == 1 { 100 } else { 200 })];
        let progress = progress.map(|(second, received_bytes)| ProgressRow {
            time_ns: second * 1_000_000_000,
            received_bytes,
            flows_done: 0,
        });
        Records { migrations: vec![row], progress: progress.to_vec(), ..Records::default() }
    });
    assert_eq!((value(&findings, "packets_lost"), value(&findings, "stale_ms")), (3.0, 3.0));
    assert_eq!((value(&findings, "down_ms"), value(&findings, "unfinished")), (200.0, 1.0));
    let nothing = testing::analyse(&spec, |_| Records::default());
    assert!(nothing.problems.iter().any(|problem| problem.text().contains("moved nothing")));
}

#[test]
fn plans_that_cannot_answer_are_refused() {
    let refusal = |analysis: &str, workloads: &str, claim: &str| {
        read(analysis, workloads, claim).expect_err("it is wrong").to_string()
    };
    let shuffle = "[workload.all]\nkind = \"shuffle\"\nbytes_per_flow = \"1 MB\"\n";
    for (analysis, workloads, claim, says) in [
        ("directory-lookup", shuffle, "lookups_per_server", "needs workloads of kind `directory`"),
        ("directory-update", RAMP, "updates_per_s", "needs `updates` in every workload"),
        ("directory-convergence", MIX, "visible_p99_ms", "needs `updates.until_visible`"),
        ("directory-sizing", MIX, "servers_needed", "needs a workload with several rates"),
        ("migration", RAMP, "packets_lost", "needs workloads of kind `migration`"),
        ("outage", RAMP, "recovery_time", "needs workloads of kind `shuffle`"),
        ("directory-lookup", RAMP, "p99_ms.ramp.3000", "yields no metric `p99_ms.ramp.3000`"),
    ] {
        let message = refusal(analysis, workloads, claim);
        assert!(message.contains(says), "wanted `{says}`, got `{message}`");
    }
}
