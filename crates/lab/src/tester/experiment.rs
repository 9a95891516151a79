//! What experiments share: short runs, and the check of the way CPU time is read.

use std::time::Duration;

use weft_scenario::workload::Runs;

use super::cost::Calibration;
use super::path::TrialOrder;

/// What a frame takes at most between the test centre's ports: how many frames fill a run follows from it.
const FRAME_NS: u64 = 1_500;
const FRAMES_LEAST: u64 = 512;
/// A run that takes longer than this many times its length is one that something went wrong with.
pub(crate) const PATIENCE: u32 = 50;

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
