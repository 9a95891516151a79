//! Searches for a rate, as state machines without IO: ask for a rate, get what became of it, until there is a verdict.
//!
//! | search | finds | from |
//! | --- | --- | --- |
//! | [`NdrSearch`] | the rate without loss and the one with a little, robust against single bad trials; the default | MLRsearch (draft-ietf-bmwg-mlrsearch), simplified |
//! | [`Rfc2544Search`] | the rate without loss by bisection, one trial for each rate | RFC 2544 26.1 |
//! | [`LossCurve`] | loss over rate, from full rate down | RFC 2544 26.3 |
//! | [`BurstSearch`] | the longest burst at full rate without loss | RFC 2544 26.4, RFC 9004 |

mod burst;
mod curve;
mod ndr;
mod rfc2544;

use serde::Serialize;

pub use burst::{BurstOutcome, BurstSearch, BurstVerdict};
pub use curve::LossCurve;
pub use ndr::{Goal, GoalVerdict, NdrOptions, NdrSearch};
pub use rfc2544::{RateVerdict, Rfc2544Search};

/// Below this share of what was asked the generator, not the search, chose the rate.
pub const OFFERED_LEAST_RATIO: f64 = 0.97;

/// What became of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Rate that was asked for, frames per second.
    pub asked_pps: f64,
    /// Rate that was really offered, frames per second.
    pub offered_pps: f64,
    /// Frames that had to arrive.
    pub expected: u64,
    /// Frames that did not.
    pub lost: u64,
}

impl Outcome {
    /// Lost of expected, 0 to 1.
    pub fn loss_ratio(&self) -> f64 {
        if self.expected == 0 { 0.0 } else { self.lost as f64 / self.expected as f64 }
    }

    /// Rate of what arrived, frames per second.
    pub fn forwarded_pps(&self) -> f64 {
        self.offered_pps * (1.0 - self.loss_ratio())
    }

    /// Whether the generator could not offer what was asked.
    pub fn fell_short(&self) -> bool {
        self.offered_pps < self.asked_pps * OFFERED_LEAST_RATIO
    }
}

#[cfg(test)]
mod synthetic {
    //! Devices that exist on paper.

    use super::Outcome;

    /// Forwards up to a rate; above it loses the surplus. Trials that fall into a noisy phase lose something anyway.
    pub(super) struct Device {
        pub(super) capacity_pps: f64,
        pub(super) generator_pps: f64,
        /// One trial in so many is disturbed; 0: none.
        pub(super) disturbed_every: u32,
        pub(super) state: u32,
    }

    impl Device {
        pub(super) fn clean(capacity_pps: f64) -> Self {
            Self { capacity_pps, generator_pps: f64::MAX, disturbed_every: 0, state: 1 }
        }

        pub(super) fn noisy(capacity_pps: f64, disturbed_every: u32, seed: u32) -> Self {
            Self { disturbed_every, state: seed | 1, ..Self::clean(capacity_pps) }
        }

        pub(super) fn trial(&mut self, asked_pps: f64) -> Outcome {
            let offered_pps = asked_pps.min(self.generator_pps);
            let expected = (offered_pps * 0.1).round() as u64;
            let mut lost = (expected as f64 * (1.0 - self.capacity_pps / offered_pps).max(0.0)).round() as u64;
            // xorshift32
            self.state ^= self.state << 13;
            self.state ^= self.state >> 17;
            self.state ^= self.state << 5;
            if self.disturbed_every > 0 && self.state.is_multiple_of(self.disturbed_every) {
                lost = (lost + 1 + expected / 50).min(expected);
            }
            Outcome { asked_pps, offered_pps, expected, lost }
        }
    }
}
