//! Figures of the analyses that compare the points of a sweep.

use super::plots::{Figure, figure};
use super::{Mark, RowChart};
use crate::analysis::{Input, ecmp};
use crate::metric::Findings;

/// Counted, drawn and simulated probabilities side by side.
pub(super) fn ecmp(input: &Input<'_>, findings: &Findings) -> Vec<Figure> {
    let row = |label: &String, kind: &str| {
        let estimate = findings.metrics.get(&format!("{kind}.{label}"))?;
        let interval = estimate.interval.map(|interval| (interval.low, interval.high));
        Some((format!("{label}, {}", kind.replace('_', " ")), estimate.value, Mark::Dot { interval }))
    };
    let kinds = ["closed_form", "monte_carlo", "simulated"];
    let labels = input.spec.labels_of(ecmp::UPLINKS_AXIS);
    let chart = RowChart {
        title: "Probability of full throughput".into(),
        x_label: "probability (dot, line: interval)".into(),
        rows: labels.iter().flat_map(|label| kinds.iter().filter_map(move |kind| row(label, kind))).collect(),
        ..RowChart::default()
    };
    vec![figure("Probability of full throughput", "The simulated share is from records/flows.csv.", chart.render())]
}
