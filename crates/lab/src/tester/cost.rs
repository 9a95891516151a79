//! What a path costs: CPU time per frame by difference of chains that end at different places, the least of many short
//! runs, with a known extra cost read in the same run.
//!
//! Process CPU time on one pinned core holds everything that a frame causes there, soft interrupts included. Other work's
//! soft interrupts are charged to us too, so runs only ever read too much: the minimum is the estimate, and quartiles say
//! how much it can be trusted.

use serde::Serialize;

/// How far off a known extra cost may be read, as a share of it.
const TOLERANCE: f64 = 0.15;

/// CPU time per frame of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChainCost {
    /// The least of all runs, nanoseconds.
    pub min_ns: f64,
    /// The lower quartile, nanoseconds: near the minimum in a quiet phase.
    pub quartile_ns: f64,
    pub runs: usize,
}

impl ChainCost {
    /// Of runs that each give nanoseconds per frame. `None` of none.
    pub fn of(runs_ns: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = runs_ns.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let quartile_ns = *sorted.get(sorted.len().div_ceil(4).min(sorted.len().checked_sub(1)?))?;
        Some(Self { min_ns: sorted[0], quartile_ns, runs: sorted.len() })
    }

    /// Spread between minimum and quartile, as a share of the minimum.
    fn spread(&self) -> f64 {
        (self.quartile_ns - self.min_ns) / self.min_ns.max(1.0)
    }
}

/// What lies between two ends of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathCost {
    /// CPU time per frame of the path, nanoseconds.
    pub ns_per_frame: f64,
    /// How far that can be off, nanoseconds: the spread of both chains.
    pub error_ns: f64,
    /// The tester alone.
    pub tester: ChainCost,
    /// Tester and path.
    pub chain: ChainCost,
}

impl PathCost {
    /// The path's cost as the difference of the longer chain and the tester alone.
    pub fn between(tester: ChainCost, chain: ChainCost) -> Self {
        let error_ns = (tester.quartile_ns - tester.min_ns) + (chain.quartile_ns - chain.min_ns);
        Self { ns_per_frame: (chain.min_ns - tester.min_ns).max(0.0), error_ns, tester, chain }
    }
}

/// A path's cost, and whether the method holds here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostCells {
    #[serde(flatten)]
    pub path: PathCost,
    /// The method, checked in this run.
    pub calibration: Calibration,
}

/// A known cost that was put into the path and read back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// What was put in, nanoseconds per frame.
    pub known_ns: f64,
    /// What was read, nanoseconds per frame.
    pub read_ns: f64,
    /// Whether the reading is within 15 %, and so the method holds on this machine now.
    pub holds: bool,
}

impl Calibration {
    /// From a chain without and with the known cost.
    pub fn of(known_ns: f64, without: ChainCost, with: ChainCost) -> Self {
        let read_ns = with.min_ns - without.min_ns;
        let off = (read_ns - known_ns).abs();
        let calm = without.spread() < 1.0 && with.spread() < 1.0;
        Self { known_ns, read_ns, holds: calm && known_ns > 0.0 && off <= known_ns * TOLERANCE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(runs: &[f64]) -> ChainCost {
        ChainCost::of(runs).unwrap()
    }

    #[test]
    fn noise_above_the_minimum_does_not_move_the_cost() {
        let tester = chain(&[215.0, 195.0, 400.0, 196.0]);
        let path = chain(&[380.0, 1700.0, 379.0, 381.0]);
        let cost = PathCost::between(tester, path);
        assert_eq!((cost.ns_per_frame, cost.error_ns), (184.0, 2.0));
        assert_eq!(PathCost::between(path, tester).ns_per_frame, 0.0);
        assert_eq!(ChainCost::of(&[f64::NAN]), None);
    }

    #[test]
    fn a_known_cost_must_be_read_back() {
        let without = chain(&[376.0, 377.0, 380.0, 379.0]);
        assert!(Calibration::of(570.0, without, chain(&[953.0, 955.0, 960.0, 958.0])).holds);
        assert!(!Calibration::of(570.0, without, chain(&[1200.0, 1210.0])).holds, "reads 824");
        assert!(!Calibration::of(570.0, without, chain(&[380.0, 390.0])).holds, "reads nothing");
        assert!(
            !Calibration::of(570.0, without, chain(&[953.0, 4000.0, 4100.0])).holds,
            "one lucky run in a noisy phase"
        );
    }
}
