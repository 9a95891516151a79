//! Known latencies and counts make known metrics; what is missing or disturbed is said (vl2/fig14-*, directory-sizing, migration).

use weft_scenario::record::{DirectoryRow, DirectoryTickRow, EventRow, LatencyRow, MigrationRow, ProgressRow, Records};

use super::{close, shipped, value};
use crate::analysis::TrialKey;
use crate::analysis::testing;
use crate::metric::{Limit, Problem};
use crate::verdict::{Verdict, judge};

/// A tier's process that is killed, started again and ready while a load of three seconds goes on.
fn push_kill(records: &mut Records, ready_ns: u64) {
    for (time_ns, kind) in [(1_000_000_000, "fault"), (2_000_000_000, "repair"), (ready_ns, "ready")] {
        records.events.push(EventRow { time_ns, kind: kind.to_owned(), subject: "etcd of dir1".to_owned() });
    }
    for number in 0..30 {
        let time_ns = 300_000_000 + number * 100_000_000;
        let worst_ns = if time_ns < 1_000_000_000 { 3_000_000 } else { 7_000_000 };
        let kind = "update".to_owned();
        records.directory_ticks.push(DirectoryTickRow {
            kind,
            step: 1,
            time_ns,
            sent: 1,
            answered: 1,
            failed: 0,
            worst_ns,
        });
    }
}

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

#[test]
fn the_rate_that_counts_is_the_highest_that_was_carried() {
    let found = testing::analyse(&shipped("vl2/fig14-lookup"), |key: &TrialKey| {
        let mut records = Records::default();
        if key.workload == "one-server" {
            push_step(&mut records, "lookup", 1, 5000, 1, 0);
            push_step(&mut records, "lookup", 2, 17000, 10, 0);
            push_step(&mut records, "lookup", 3, 33000, 11, 0);
            push_step(&mut records, "lookup", 4, 50000, 1, 501);
            push_step(&mut records, "lookup", 5, 100_000, 1, 0);
            records.directory[4].sent = 90_000;
            records.directory[4].answered = 90_000;
        } else {
            if key.workload == "mix-3-kill" {
                push_kill(&mut records, 2_100_000_000);
            }
            push_step(&mut records, "lookup", 1, 32000, 5, 3200);
            push_step(&mut records, "update", 1, 4000, 40, 0);
        }
        records
    });
    assert_eq!(found.problems, []);
    // More was too slow, not answered, or not offered.
    close(&found, "lookups_per_server", 17000.0);
    close(&found, "p99_ms.one-server.33000", 11.0);
    close(&found, "p50_ms.mix-1.32000", 5.0);
    close(&found, "p99_ms.mix-1.32000", 2000.0);
    close(&found, "within_10ms.mix-1.32000", 0.9);
    close(&found, "answered.mix-1.32000", 0.9);
    close(&found, "update_p99_ms.mix-3.4000", 40.0);
    close(&found, "acknowledged_lost", 0.0);
}

#[test]
fn foreign_work_excuses_a_tail_and_wrong_answers_fail_the_run() {
    let run = |change: fn(&mut DirectoryRow)| {
        testing::analyse(&shipped("vl2/fig14-lookup"), |key| {
            let mut records = Records::default();
            if key.workload == "mix-3-kill" {
                push_kill(&mut records, 2_100_000_000);
            }
            push_step(&mut records, "lookup", 1, 1000, 1, 0);
            change(&mut records.directory[0]);
            records
        })
    };
    let limit = |change| run(change).metrics["p99_ms.mix-1.1000"].limited_by;
    assert_eq!(limit(|_| ()), Limit::SharedCores);
    assert_eq!(limit(|row| row.foreign_cpu_ratio = 0.2), Limit::OtherWork);
    assert_eq!(limit(|row| row.skipped = 100), Limit::OtherWork);
    let problems = run(|row| row.wrong = 1).problems;
    assert!(matches!(&problems[..], [Problem::Failed(text)] if text.contains("look-ups were answered with")));
    // What was never sent was not answered.
    let skipped = run(|row| row.skipped = 1000);
    assert_eq!([value(&skipped, "answered.mix-1.1000"), value(&skipped, "within_10ms.mix-1.1000")], [0.5, 0.5]);
    assert_eq!(value(&skipped, "p99_ms.mix-1.1000"), 2000.0);
}

/// A light neighbour takes little time and adds much to a tail; an echo of a bare socket says so.
#[test]
fn a_tail_that_an_echo_has_too_is_not_judged() {
    let spec = shipped("vl2/fig14-lookup");
    let verdict = |p99_ms: u64, echo_p99_ns: u64| {
        let found = testing::analyse(&spec, |key| {
            let mut records = Records::default();
            if key.workload == "mix-3-kill" {
                push_kill(&mut records, 2_100_000_000);
            }
            push_step(&mut records, "lookup", 1, 50_000, p99_ms, 0);
            records.directory[0].echo_p99_ns = echo_p99_ns;
            records
        });
        let claim = spec.claims.iter().find(|claim| claim.id == "p99_ms.one-server.50000").unwrap();
        let judged = judge(claim, &found);
        (judged.verdict, judged.reason.unwrap_or_default())
    };
    assert_eq!(verdict(4, 150_000).0, Verdict::Fail, "the directory is slow");
    let (disturbed, why) = verdict(4, 2_000_000);
    assert_eq!((disturbed, why.contains("other work")), (Verdict::Inconclusive, true), "{why}");
    assert_eq!(verdict(1, 2_000_000).0, Verdict::Pass, "it is fast all the same");
    assert_eq!(verdict(1, 150_000).0, Verdict::Pass);
}

#[test]
fn the_worst_kill_counts_and_a_kill_that_did_not_happen_is_said() {
    let run = |ready_ns: Option<u64>| {
        testing::analyse(&shipped("vl2/fig14-update"), |key| {
            let mut records = Records::default();
            push_step(&mut records, "update", 1, 2000, 2, 0);
            records.directory[0].longest_gap_ns = u64::from(key.repetition) * 100_000_000;
            records.directory[0].lost = u64::from(key.workload == "ramp" && key.repetition == 1);
            if let Some(ready_ns) = ready_ns {
                push_kill(&mut records, ready_ns);
            }
            records
        })
    };
    let found = run(Some(2_200_000_000));
    assert_eq!(found.problems, []);
    let repetitions = shipped("vl2/fig14-update").repetitions;
    close(&found, "resume_s.leader-kill", 0.1 * f64::from(repetitions));
    close(&found, "return_worst_ms.leader-kill", 7.0);
    close(&found, "before_worst_ms.leader-kill", 3.0);
    close(&found, "acknowledged_lost", 1.0);
    assert_eq!(found.metrics["resume_s.leader-kill"].n, repetitions as usize);
    // Nothing was killed, or it was not back in time.
    for ready_ns in [None, Some(3_200_000_000)] {
        let problems = run(ready_ns).problems;
        assert!(problems.iter().any(|problem| problem.text().contains("saw no kill and return")), "{problems:?}");
    }
}

#[test]
fn convergence_is_what_every_server_shows() {
    let spec = shipped("vl2/fig14-convergence");
    let found = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, "update", 1, 100, 2, 0);
        push_latency(&mut records, "visible", 1, None, 4, 98);
        push_latency(&mut records, "visible", 1, None, 700, 2);
        push_latency(&mut records, "visible", 1, Some("dir1"), 1, 100);
        push_latency(&mut records, "pushed", 1, None, 5, 100);
        records
    });
    assert_eq!(found.problems, []);
    assert_eq!((value(&found, "visible_p50_ms"), value(&found, "visible_p99_ms")), (4.0, 700.0));
    assert_eq!((value(&found, "visible_within_530ms"), value(&found, "pushed_p99_ms")), (0.98, 5.0));
    let nothing = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, "update", 1, 100, 2, 0);
        records
    });
    assert!(nothing.problems.iter().any(|problem| problem.text().contains("did not see any update")));
}

#[test]
fn a_data_centre_needs_what_the_division_says() {
    let spec = shipped("vl2/directory-sizing");
    let found = testing::analyse(&spec, |_| {
        let mut records = Records::default();
        push_step(&mut records, "lookup", 1, 1000, 1, 0);
        push_step(&mut records, "lookup", 2, 2000, 1, 0);
        push_step(&mut records, "lookup", 3, 4000, 20, 0);
        records
    });
    assert_eq!((value(&found, "servers_needed"), value(&found, "servers_percent")), (500.0, 0.5));
    assert_eq!(value(&found, "cores_needed"), 1.0);
    let slow = testing::analyse(&spec, |_| Records::default());
    assert!(slow.problems.iter().any(|problem| problem.text().contains("no load was carried")));
}

#[test]
fn a_move_is_judged_by_its_worst() {
    let spec = shipped("vl2/migration");
    let found = testing::analyse(&spec, |key| {
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
    let repetitions = f64::from(spec.repetitions);
    assert_eq!((value(&found, "packets_lost"), value(&found, "stale_ms")), (repetitions, repetitions));
    assert_eq!((value(&found, "down_ms"), value(&found, "unfinished")), (200.0, 1.0));
    let nothing = testing::analyse(&spec, |_| Records::default());
    assert!(nothing.problems.iter().any(|problem| problem.text().contains("moved nothing")));
}
