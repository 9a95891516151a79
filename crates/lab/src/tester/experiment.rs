//! What experiments on beds of their own share: whom they report to, short runs, the check of the way CPU time is read.

use std::path::Path;
use std::time::Duration;

use weft_scenario::engine::Progress;
use weft_scenario::workload::Runs;

use super::cost::Calibration;
use super::error::TesterError;
use super::path::TrialOrder;

/// What a frame takes at most between the test centre's ports: how many frames fill a run follows from it.
const FRAME_NS: u64 = 1_500;
const FRAMES_LEAST: u64 = 512;
/// A run that takes longer than this many times its length is one that something went wrong with.
pub(crate) const PATIENCE: u32 = 50;

/// What every experiment needs.
pub(crate) struct Context<'a> {
    /// The program whose processes are VMs or daemons.
    pub(crate) weft_binary: &'a Path,
    /// The user.
    pub(crate) progress: &'a dyn Progress,
}

impl Context<'_> {
    /// Ends an experiment that the user does not want any more.
    pub(crate) fn attend(&self, done_ratio: f64, text: &str) -> Result<(), TesterError> {
        self.progress.advance(done_ratio, text);
        if self.progress.interrupted() { Err(TesterError::Interrupted) } else { Ok(()) }
    }
}

/// Two facts of a trial: a cost that was put in on purpose, and what was read of it.
pub(crate) fn calibration_facts(known_ns: f64, read_ns: f64) -> Vec<(String, f64)> {
    vec![("cost.known_ns".to_owned(), known_ns), ("cost.read_ns".to_owned(), read_ns)]
}

/// The same from the test centre's own check.
pub(crate) fn facts_of(calibration: &Calibration) -> Vec<(String, f64)> {
    calibration_facts(calibration.known_ns, calibration.read_ns)
}

/// A run as fast as possible, which loses nothing and so may have any number of frames.
pub(crate) fn order_of(runs: Runs) -> TrialOrder {
    let frames = (runs.each.0 / FRAME_NS).max(FRAMES_LEAST);
    TrialOrder { frames: Some(frames), ..TrialOrder::unpaced(Duration::from_nanos(runs.each.0) * PATIENCE) }
}

#[cfg(test)]
mod tests {
    use weft_scenario::units::Nanos;

    use super::*;

    #[test]
    fn a_run_has_as_many_frames_as_its_time_asks_for() {
        let order = order_of(Runs { count: 1, each: Nanos(15_000_000) });
        assert_eq!((order.frames, order.pps, order.duration), (Some(10_000), None, Duration::from_millis(750)));
        assert_eq!(order_of(Runs { count: 1, each: Nanos(1) }).frames, Some(FRAMES_LEAST));
    }
}
