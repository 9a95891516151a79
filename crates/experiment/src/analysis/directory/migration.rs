//! What an AA's move to another ToR costs while another server sends to it: packets that were dropped at the old ToR and
//! how long stale ones came (VL2 4.3.2).

use weft_scenario::record::MigrationRow;
use weft_scenario::workload::Workload;

use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;

/// What this analysis yields: the worst of all moves.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "packets_lost",
        meaning: "packets that the old ToR dropped after the directory was told, worst move",
    },
    MetricInfo {
        name: "stale_ms",
        meaning: "from telling the directory until the last packet at the old ToR, worst move, ms",
    },
    MetricInfo { name: "stale_packets", meaning: "packets that the old ToR dropped at all, worst move" },
    MetricInfo { name: "down_ms", meaning: "how long the server itself had no link while it moved, worst move, ms" },
    MetricInfo { name: "silence_ms", meaning: "longest time in which the receiver got nothing, worst move, ms" },
    MetricInfo { name: "unfinished", meaning: "transfers that did not go on after the move" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    match spec.workload.values().all(|workload| matches!(workload, Workload::Migration(_))) && spec.axes.is_empty() {
        true => Ok(()),
        false => Err("analysis `migration` needs workloads of kind `migration` and no sweep".into()),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    for trial in input.trials.iter().filter(|trial| trial.records.migrations.is_empty()) {
        findings.problems.push(Problem::Failed(format!("trial {} moved nothing", trial.key.trial)));
    }
    let rows: Vec<&MigrationRow> = input.trials.iter().flat_map(|trial| &trial.records.migrations).collect();
    let mut put = |name: &str, number: fn(&MigrationRow) -> f64| {
        if let Some(worst) = rows.iter().map(|row| number(row)).reduce(f64::max) {
            let estimate = Estimate { value: worst, interval: None, n: rows.len(), limited_by: Limit::OfferedLoad };
            findings.metrics.insert(name.to_owned(), estimate);
        }
    };
    put("packets_lost", |row| row.lost_packets as f64);
    put("stale_ms", stale_ms);
    put("stale_packets", |row| row.stale_packets as f64);
    put("down_ms", |row| row.arrived_ns.saturating_sub(row.left_ns) as f64 / 1e6);
    put("silence_ms", |row| row.silence_ns as f64 / 1e6);
    let unfinished = input.trials.iter().filter(|trial| !went_on(trial)).count();
    findings.metrics.insert("unfinished".into(), Estimate::exact(unfinished as f64, Limit::OfferedLoad));
    findings.tables.push(table(&rows));
    findings
}

fn stale_ms(row: &MigrationRow) -> f64 {
    row.last_stale_ns.saturating_sub(row.told_ns) as f64 / 1e6
}

/// Whether payload still arrived in the last row of progress after the move.
fn went_on(trial: &TrialRecords) -> bool {
    let (Some(row), Some(last)) = (trial.records.migrations.first(), trial.records.progress.last()) else {
        return false;
    };
    let before = trial.records.progress.iter().rfind(|progress| progress.time_ns <= row.arrived_ns);
    last.received_bytes > before.map_or(0, |progress| progress.received_bytes)
}

fn table(rows: &[&MigrationRow]) -> Table {
    let headings = [
        "move",
        "down (ms)",
        "stale packets",
        "after the directory was told",
        "last stale after that (ms)",
        "silence (ms)",
    ];
    let line = |(number, row): (usize, &&MigrationRow)| {
        let ms = |ns: u64| crate::table::plain(ns as f64 / 1e6);
        vec![
            (number + 1).to_string(),
            ms(row.arrived_ns.saturating_sub(row.left_ns)),
            row.stale_packets.to_string(),
            row.lost_packets.to_string(),
            crate::table::plain(stale_ms(row)),
            ms(row.silence_ns),
        ]
    };
    let rows = rows.iter().enumerate().map(line).collect();
    Table { title: "Moves".into(), headings: headings.map(str::to_owned).to_vec(), rows }
}
