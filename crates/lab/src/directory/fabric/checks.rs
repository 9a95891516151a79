//! What is wanted of each number.

use weft_scenario::judge::Check;

use super::FabricReport;
use crate::directory::bench::FOREIGN_WORK;

/// Above this share of foreign work a missed limit says nothing.
const DISTURBED: f64 = 0.05;
/// Until the last agent is answered: the paper's response timeout (VL2 5.5).
const ANSWERED_MS: f64 = 2000.0;

pub(super) fn of(report: &FabricReport) -> Vec<Check> {
    let wall = (report.machine.foreign_cpu_ratio > DISTURBED).then_some(FOREIGN_WORK);
    let FabricReport { outage, start, rack, .. } = report;
    let mut checks = vec![
        Check::at_most("outage, the last agent answered", outage.worst_ms, ANSWERED_MS, "ms").unless(wall),
        Check::at_most("outage, agents without an answer", outage.unanswered as f64, 0.0, "agents").unless(wall),
        Check::at_least("filled by a client over a start from nothing", start.filled_over_ready, 1.0, "ratio"),
        Check::at_most("memory of a mapping", start.bytes_per_mapping, 300.0, "bytes"),
        Check::at_most("rack, the last AA visible everywhere", rack.visible_last_ms, 1000.0, "ms").unless(wall),
        Check::at_most("rack, AAs never visible", rack.never_visible as f64, 0.0, "AAs").unless(wall),
        Check::at_most("rack, the last stale mapping corrected", rack.corrected_last_ms, 1000.0, "ms").unless(wall),
        Check::at_most("rack, stale mappings not corrected", rack.uncorrected as f64, 0.0, "mappings").unless(wall),
    ];
    if let Some(restart) = &report.restart {
        let unanswered = restart.unanswered as f64;
        checks.push(Check::at_most("restart, look-ups without an answer", unanswered, 0.0, "look-ups").unless(wall));
    }
    if let Some(card) = &report.card {
        let unanswered = card.with.unanswered as f64;
        checks
            .push(Check::at_most("card, the last agent answered", card.with.worst_ms, ANSWERED_MS, "ms").unless(wall));
        checks.push(Check::at_most("card, agents without an answer", unanswered, 0.0, "agents").unless(wall));
        checks.push(Check::at_least("card, questions answered there", card.at_card_ratio, 0.99, "ratio"));
    }
    checks
}
