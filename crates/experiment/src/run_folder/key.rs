//! The columns that every row begins with: which trial it belongs to and where on the sweep's axes that was.

use weft_scenario::engine::Overlay;

use crate::analysis::TrialKey;
use crate::table::overlay_name;

/// The columns that every file begins with; one column for each axis of the sweep follows.
pub(super) const KEY_COLUMNS: [&str; 5] = ["trial", "repetition", "seed", "overlay", "workload"];

/// The cells of a key, the point's labels last.
pub(super) fn key_cells(key: &TrialKey) -> Vec<String> {
    let fixed = [
        key.trial.to_string(),
        key.repetition.to_string(),
        key.seed.to_string(),
        overlay_name(key.overlay).to_owned(),
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
        overlay: OVERLAYS.into_iter().find(|one| overlay_name(*one) == *overlay)?,
        workload: (*workload).to_owned(),
        point: point.iter().map(|label| (*label).to_owned()).collect(),
    })
}

const OVERLAYS: [Overlay; 6] =
    [Overlay::Routed, Overlay::Vl2, Overlay::KernelVxlan, Overlay::Trill, Overlay::Bridged, Overlay::Layer2];
