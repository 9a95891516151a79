//! Every floor and ceiling of the directory with our number and a verdict.
//!
//! Look-ups are judged twice: over the baseline of the same round, which holds on any machine, and per CPU second, which
//! can only be missed where the machine is as fast as the one that the floors were set on.

use serde::Serialize;
use weft_scenario::engine::DirectoryStore;

use super::echo::REFERENCE_PER_CPU_S;
use super::{BenchOptions, BenchReport};

/// A floor or a ceiling and our number.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is measured.
    pub id: String,
    /// Our number.
    pub ours: f64,
    /// `>=` or `<=`.
    pub relation: &'static str,
    /// The floor or ceiling.
    pub want: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// `pass`, `fail`, or `inconclusive` where there is a doubt.
    pub verdict: &'static str,
    /// Why a number that misses its floor says nothing.
    pub doubt: Option<Doubt>,
}

/// What may hide the directory's own speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// Others used the cores during the measurement.
    ForeignWork,
    /// The baseline, which has none of our code, is slower here than where the floor was set.
    SlowerMachine,
}

/// Above this share of foreign work a missed floor says nothing.
const DISTURBED: f64 = 0.05;

/// All checks that the options allow.
pub(super) fn of(report: &BenchReport, options: &BenchOptions) -> Vec<Check> {
    let wall = (report.machine.foreign_cpu_ratio > DISTURBED).then_some(Doubt::ForeignWork);
    let speed = (report.baseline.datagrams_per_cpu_s < REFERENCE_PER_CPU_S).then_some(Doubt::SlowerMachine);
    let mut checks = Vec::new();
    for row in &report.lookups {
        let bursts = if row.gro { ", bursts" } else { "" };
        let id = format!("lookups, {} a datagram{bursts}", row.questions_per_datagram);
        if let Some(want) = row.want_per_cpu_s {
            let over = format!("{id}, over the baseline");
            checks.push(at_least(over, row.over_baseline, want / REFERENCE_PER_CPU_S, "ratio", None));
            checks.push(at_least(id, row.lookups_per_cpu_s, want, "per server CPU s", speed));
        }
        if row.questions_per_datagram == 1 && !row.gro {
            checks.push(at_most("look-up p99 at 50 K/s", row.p99_us, 1000.0, "us", wall));
        }
    }
    let updates = &report.updates;
    if options.store == DirectoryStore::Etcd3 {
        checks.push(at_least("single updates", updates.single_per_s, 60_000.0, "1/s", wall));
        checks.push(at_most("single update p99", updates.p99_ms, 100.0, "ms", wall));
        checks.push(at_least("bulk mappings", updates.mappings_per_s, 200_000.0, "1/s", wall));
    }
    checks.push(at_most("visible everywhere p99", report.convergence.p99_ms, 25.0, "ms", wall));
    if let Some(failover) = &report.failover {
        checks.push(at_most("leader kill to next commit, worst", failover.leader_kill_resume_s, 1.0, "s", wall));
        checks.push(at_most("acknowledged updates lost", failover.acknowledged_lost as f64, 0.0, "updates", None));
    }
    if !options.quick {
        checks.push(at_most("memory of 1 M mappings", report.million.memory_mb, 300.0, "MB", None));
        checks.push(at_most("cold start with 1 M mappings", report.million.cold_start_s, 5.0, "s", wall));
    }
    checks
}

fn at_least(id: impl Into<String>, ours: f64, want: f64, unit: &'static str, doubt: Option<Doubt>) -> Check {
    check(id.into(), ours, ">=", want, unit, ours >= want, doubt)
}

fn at_most(id: impl Into<String>, ours: f64, want: f64, unit: &'static str, doubt: Option<Doubt>) -> Check {
    check(id.into(), ours, "<=", want, unit, ours <= want, doubt)
}

fn check(
    id: String,
    ours: f64,
    relation: &'static str,
    want: f64,
    unit: &'static str,
    holds: bool,
    doubt: Option<Doubt>,
) -> Check {
    let doubt = doubt.filter(|_| !holds);
    let verdict = match (holds, doubt) {
        (true, _) => "pass",
        (false, Some(_)) => "inconclusive",
        (false, None) => "fail",
    };
    Check { id, ours, relation, want, unit, verdict, doubt }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_excuses_a_miss_and_changes_nothing_else() {
        let verdicts = |doubt| {
            [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)].map(|(ours, want)| {
                (at_least("x", ours, want, "", doubt).verdict, at_most("x", ours, want, "", doubt).verdict)
            })
        };
        assert_eq!(verdicts(None), [("fail", "pass"), ("pass", "pass"), ("pass", "fail")]);
        let doubtful = verdicts(Some(Doubt::SlowerMachine));
        assert_eq!(doubtful, [("inconclusive", "pass"), ("pass", "pass"), ("pass", "inconclusive")]);
        assert_eq!(at_least("x", 3.0, 2.0, "", Some(Doubt::ForeignWork)).doubt, None);
        assert_eq!(at_least("x", 1.0, 2.0, "", Some(Doubt::ForeignWork)).doubt, Some(Doubt::ForeignWork));
    }
}
