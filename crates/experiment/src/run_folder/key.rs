//! The columns that every row begins with: which trial it belongs to and where on the sweep's axes that was.

use weft_scenario::record::Column;

use crate::analysis::TrialKey;

/// The columns that every file begins with; one column for each axis of the sweep follows.
pub(crate) const KEY_COLUMNS: [Column; 5] = [
    Column { name: "trial", holds: "whole number", about: "Number of the trial in the order of running, from 1." },
    Column { name: "repetition", holds: "whole number", about: "Number of the repetition, from 1." },
    Column { name: "seed", holds: "whole number", about: "The trial's seed." },
    Column { name: "overlay", holds: "text", about: "Its overlay, as in the plan." },
    Column { name: "workload", holds: "text", about: "Name of its workload in the plan." },
];

/// The cells of a key, the point's labels last.
pub(crate) fn key_cells(key: &TrialKey) -> Vec<String> {
    let fixed = [
        key.trial.to_string(),
        key.repetition.to_string(),
        key.seed.to_string(),
        key.overlay.name().to_owned(),
        key.workload.clone(),
    ];
    fixed.into_iter().chain(key.point.iter().cloned()).collect()
}

/// Reads what [`key_cells`] wrote.
pub(super) fn key_from_cells(cells: &[&str]) -> Option<TrialKey> {
    let [trial, repetition, seed, overlay, workload, point @ ..] = cells else { return None };
    Some(TrialKey {
        trial: trial.parse().ok()?,
        repetition: repetition.parse().ok()?,
        seed: seed.parse().ok()?,
        overlay: overlay.parse().ok()?,
        workload: (*workload).to_owned(),
        point: point.iter().map(|label| (*label).to_owned()).collect(),
    })
}
