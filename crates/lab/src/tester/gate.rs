//! Tells quiet phases of the machine from noisy ones, by a path that is always the same: the tester's own veth pair.
//!
//! Thresholds are relative to the quietest look so far, because absolute ones would fit one machine only. Measured on a
//! shared machine: in quiet phases the median varies by 7 % and the 99th percentile stays within 1.6 times the median;
//! a neighbour's soft interrupts raise the latter tenfold.

use serde::Serialize;

use super::latency::LatencySummary;

/// Median over the quietest median.
const P50_MOST: f64 = 1.3;
/// 99th percentile over the quietest median.
const P99_MOST: f64 = 3.0;

/// The quietest look so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    p50_ns: Option<f64>,
}

/// How quiet the machine was around a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quiet {
    /// It was, as far as it was looked at.
    pub quiet: bool,
    /// Attempts before this one that were thrown away because it was not.
    pub rejected: u32,
    /// The looks at the tester's own path.
    pub looks: Vec<Look>,
}

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// Whether what is measured beside it can be trusted.
    pub quiet: bool,
}

impl Gate {
    /// Judges a look at the tester's own path and remembers it if it is the quietest.
    pub fn judge(&mut self, summary: &LatencySummary) -> Look {
        let p50 = summary.p50 as f64;
        let best = self.p50_ns.map_or(p50, |best| best.min(p50));
        let seen = summary.count > 0;
        if seen {
            self.p50_ns = Some(best);
        }
        let quiet = seen && p50 <= best * P50_MOST && summary.p99 as f64 <= best * P99_MOST;
        Look { p50_ns: summary.p50, p99_ns: summary.p99, quiet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(p50: u64, p99: u64) -> LatencySummary {
        LatencySummary { count: 1000, p50, p99, ..LatencySummary::default() }
    }

    #[test]
    fn noise_in_either_number_is_noise() {
        let mut gate = Gate::default();
        let verdicts = [(240, 300), (230, 310), (236, 40_000), (320, 400), (250, 600), (0, 0)];
        let found = verdicts.map(|(p50, p99)| gate.judge(&summary(p50, p99)).quiet);
        assert_eq!(found[..5], [true, true, false, false, true]);
    }

    #[test]
    fn a_noisy_first_look_does_not_set_the_measure_for_good() {
        let mut gate = Gate::default();
        assert!(gate.judge(&summary(500, 700)).quiet, "nothing better is known yet");
        assert!(gate.judge(&summary(240, 300)).quiet);
        assert!(!gate.judge(&summary(500, 700)).quiet);
    }

    #[test]
    fn no_frames_are_not_quiet() {
        let mut gate = Gate::default();
        assert!(!gate.judge(&LatencySummary::default()).quiet);
        assert!(gate.judge(&summary(240, 300)).quiet, "and do not become the measure");
    }
}
