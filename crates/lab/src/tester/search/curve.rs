//! RFC 2544 section 26.3: loss over offered rate, from full rate down in steps of a tenth, until two in a row lose nothing.

use super::Outcome;

/// The walk along the curve.
#[derive(Clone, Debug)]
pub struct LossCurve {
    max_pps: f64,
    steps: u32,
    points: Vec<Outcome>,
}

impl LossCurve {
    /// `steps` rates, evenly spaced, down from `max_pps` until two have no loss.
    pub fn new(max_pps: f64, steps: u32) -> Self {
        Self { max_pps, steps: steps.max(1), points: Vec::new() }
    }

    /// The next rate to offer, frames per second; `None` at the end.
    pub fn next_pps(&self) -> Option<f64> {
        let done = self.points.len() as u32;
        let clean = self.points.len() >= 2 && self.points.iter().rev().take(2).all(|point| point.lost == 0);
        if done >= self.steps || clean {
            return None;
        }
        Some(self.max_pps * f64::from(self.steps - done) / f64::from(self.steps))
    }

    /// Takes the result of the trial that [`Self::next_pps`] asked for.
    pub fn record(&mut self, outcome: Outcome) {
        self.points.push(outcome);
    }

    /// All points so far, from the fastest.
    pub fn points(&self) -> &[Outcome] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Device;
    use super::*;

    fn run(mut curve: LossCurve, mut device: Device) -> Vec<Outcome> {
        while let Some(pps) = curve.next_pps() {
            curve.record(device.trial(pps));
        }
        curve.points().to_vec()
    }

    #[test]
    fn the_curve_has_the_devices_knee() {
        let points = run(LossCurve::new(1e6, 10), Device::clean(1.5e5));
        assert_eq!(points.len(), 10);
        for point in &points {
            let want = (1.0 - 1.5e5 / point.offered_pps).max(0.0);
            assert!((point.loss_ratio() - want).abs() < 1e-4, "{point:?}");
        }
        assert_eq!(points.iter().filter(|point| point.lost == 0).count(), 1);
    }

    #[test]
    fn two_clean_rates_end_it() {
        let points = run(LossCurve::new(1e6, 10), Device::clean(8.5e5));
        assert_eq!(points.iter().map(|point| point.lost > 0).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(run(LossCurve::new(1e6, 0), Device::clean(1.0)).len(), 1);
    }
}
