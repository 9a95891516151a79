//! Which labs are up, and which of them a command without a name means.

use serde::Serialize;
use weft_scenario::engine::Overlay;

use crate::error::LabError;
use crate::home::{folders_are_ours, lab_names};
use crate::state::LabState;

/// A line of `weft lab ps`.
#[derive(Clone, Debug, Serialize)]
pub struct LabRow {
    pub lab: String,
    /// Fabric it was made from.
    pub fabric: String,
    /// How packets travel in it.
    pub overlay: Overlay,
    /// `up`, `starting`, `orphan` (its run is gone) or `unreadable`.
    pub status: String,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many of its processes run.
    pub processes_running: usize,
    /// How many it started.
    pub processes_started: usize,
    /// Seconds since 1970 when it came up.
    pub created_unix_s: u64,
    /// How many faults people have put into it.
    pub broken: usize,
    /// How many links they have made worse, each way for itself.
    pub impaired: usize,
}

/// All labs that are up, in order of their names.
pub fn list() -> Vec<LabRow> {
    lab_names().into_iter().map(|lab| row(&lab)).collect()
}

/// One lab in full.
pub fn ps(lab: &str) -> Result<LabState, LabError> {
    LabState::load(lab)
}

/// The line of one lab, also where its state cannot be read.
pub(crate) fn row(lab: &str) -> LabRow {
    match LabState::load(lab) {
        Ok(state) => LabRow {
            status: status(&state).to_owned(),
            nodes: state.nodes.len(),
            processes_running: state.processes.iter().filter(|process| process.id.is_alive()).count(),
            processes_started: state.processes.len(),
            created_unix_s: state.created_unix_s,
            broken: state.faults.len(),
            impaired: state.impaired.len(),
            lab: state.lab,
            fabric: state.fabric,
            overlay: state.overlay,
        },
        Err(_) => LabRow {
            lab: lab.to_owned(),
            fabric: "?".into(),
            overlay: Overlay::Routed,
            status: "unreadable".into(),
            nodes: 0,
            processes_running: 0,
            processes_started: 0,
            created_unix_s: 0,
            broken: 0,
            impaired: 0,
        },
    }
}

fn status(state: &LabState) -> &'static str {
    match (state.is_orphan(), state.ready) {
        (true, _) => "orphan",
        (false, true) => "up",
        (false, false) => "starting",
    }
}

/// The lab that a command without a lab's name means: the only one that is up.
pub fn only_lab() -> Result<String, LabError> {
    folders_are_ours()?;
    the_only(lab_names())
}

fn the_only(mut up: Vec<String>) -> Result<String, LabError> {
    match up.len() {
        0 => Err(LabError::NoLab),
        1 => Ok(up.remove(0)),
        _ => Err(LabError::SeveralLabs { up: up.join(", ") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_name_the_only_lab_is_meant_and_several_are_named() {
        let said = |up: &[&str]| {
            the_only(up.iter().map(|name| (*name).to_owned()).collect()).map_err(|error| error.to_string())
        };
        assert_eq!(said(&["a"]), Ok("a".to_owned()));
        assert_eq!(said(&["a", "b"]).unwrap_err(), "several labs are up (a, b); say which one with --lab NAME");
        assert_eq!(said(&[]).unwrap_err(), "no lab is up; bring one up: weft lab up FABRIC");
    }
}
