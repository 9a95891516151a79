//! Every floor and ceiling of the directory with our number and a verdict.
//!
//! Look-ups are judged twice: over the baseline of the same round, which holds on any machine, and per CPU second, which
//! can only be missed where the machine is as fast as the one that the floors were set on.

use weft_scenario::engine::DirectoryStore;
use weft_scenario::judge::Check;

use super::echo::REFERENCE_PER_CPU_S;
use super::{BenchOptions, BenchReport};

/// Others used the cores during the measurement.
pub const FOREIGN_WORK: &str = "other work on this machine";
/// The baseline, which has none of our code, is slower here than where the floor was set.
pub const SLOWER_MACHINE: &str = "a slower machine than the floor was set on";

/// An echo at the same rate, which has none of our code, was late, too.
pub const LATE_ECHO: &str = "other work on this machine: a bare socket's echo is late, too";

/// Look-ups at the card per CPU second.
const CARD_PER_CPU_S_MIN: f64 = 4e6;
/// The same over those of the server, which goes through the stack: less where memory is slow and calls are quick.
const CARD_OVER_SERVER_MIN: f64 = 5.0;

/// An echo that takes this share of what look-ups take was disturbed as they were.
const LATE_ECHO_RATIO: f64 = 0.25;
/// Above this share of foreign work a missed floor says nothing.
const DISTURBED: f64 = 0.05;

/// All checks that the options allow.
pub(super) fn of(report: &BenchReport, options: &BenchOptions) -> Vec<Check> {
    let wall = (report.machine.foreign_cpu_ratio > DISTURBED).then_some(FOREIGN_WORK);
    let speed = (report.baseline.datagrams_per_cpu_s < REFERENCE_PER_CPU_S).then_some(SLOWER_MACHINE);
    let mut checks = Vec::new();
    for row in &report.lookups {
        let bursts = if row.gro { ", bursts" } else { "" };
        let id = format!("lookups, {} a datagram{bursts}", row.questions_per_datagram);
        if let Some(want) = row.want_per_cpu_s {
            let over = format!("{id}, over the baseline");
            checks.push(Check::at_least(over, row.over_baseline, want / REFERENCE_PER_CPU_S, "ratio"));
            checks.push(Check::at_least(id, row.lookups_per_cpu_s, want, "per server CPU s").unless(speed));
        }
        if row.questions_per_datagram == 1 && !row.gro {
            let late = (row.echo_p99_us >= LATE_ECHO_RATIO * row.p99_us).then_some(LATE_ECHO);
            checks.push(Check::at_most("look-up p99 at 50 K/s", row.p99_us, 1000.0, "us").unless(wall.or(late)));
        }
    }
    // The larger table: a smaller one is quicker.
    if let Some(row) = report.card.iter().max_by_key(|row| row.numbers.mappings) {
        let id = format!("lookups at the card, {} mappings", row.numbers.mappings);
        checks.push(Check::at_least(format!("{id}, over the server"), row.over_server, CARD_OVER_SERVER_MIN, "ratio"));
        checks.push(Check::at_least(id, row.numbers.lookups_per_cpu_s, CARD_PER_CPU_S_MIN, "per CPU s").unless(speed));
    }
    let updates = &report.updates;
    if options.store == DirectoryStore::Etcd3 {
        checks.push(Check::at_least("single updates", updates.single_per_s, 60_000.0, "1/s").unless(wall));
        checks.push(Check::at_most("single update p99", updates.p99_ms, 100.0, "ms").unless(wall));
        checks.push(Check::at_least("bulk mappings", updates.mappings_per_s, 200_000.0, "1/s").unless(wall));
    }
    checks.push(Check::at_most("visible everywhere p99", report.convergence.p99_ms, 25.0, "ms").unless(wall));
    if let Some(failover) = &report.failover {
        checks.push(
            Check::at_most("leader kill to next commit, worst", failover.leader_kill_resume_s, 1.0, "s").unless(wall),
        );
        let unanswered = failover.unanswered as f64;
        checks.push(
            Check::at_most("updates unanswered when leaders are killed", unanswered, 0.0, "updates").unless(wall),
        );
        checks.push(Check::at_most("acknowledged updates lost", failover.acknowledged_lost as f64, 0.0, "updates"));
    }
    let garbage = &report.garbage;
    checks.push(Check::at_most("look-up p99 in a flood of garbage", garbage.p99_us_with, 1000.0, "us").unless(wall));
    checks.push(Check::at_most("look-ups unanswered in it", garbage.unanswered as f64, 0.0, "look-ups").unless(wall));
    let abuse = &report.abuse;
    checks
        .push(Check::at_most("update p99 beside abuse, over that without", abuse.p99_ratio, 2.0, "ratio").unless(wall));
    checks.push(Check::at_most("updates that failed beside abuse", abuse.failed as f64, 0.0, "updates").unless(wall));
    checks.push(Check::at_most("acknowledged updates lost beside abuse", abuse.lost as f64, 0.0, "updates"));
    for idle in &report.idle {
        let beside = format!("beside idle connections: {}", idle.port);
        checks.push(Check::at_most(format!("CPU per look-up {beside}"), idle.cpu_ratio, 1.1, "ratio").unless(wall));
        checks.push(Check::at_most(format!("admin socket {beside}"), idle.admin_ms_worst, 1000.0, "ms").unless(wall));
    }
    if !options.quick {
        checks.push(Check::at_most("memory of 1 M mappings", report.million.memory_mb, 300.0, "MB"));
        checks.push(Check::at_most("cold start with 1 M mappings", report.million.cold_start_s, 5.0, "s").unless(wall));
    }
    checks
}
