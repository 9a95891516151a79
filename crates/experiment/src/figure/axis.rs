//! An axis: from values to places, with ticks at round numbers.

/// A linear axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that shows `low` to `high` between the places `from` and `to`. Bounds that are not finite or not in
    /// order become 0 to 1.
    pub(crate) fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let usable = low.is_finite() && high.is_finite() && high >= low;
        let (low, high) = if usable { (low, high) } else { (0.0, 1.0) };
        let high = if high > low { high } else { low + if low == 0.0 { 1.0 } else { low.abs() * 0.1 } };
        Self { low, high, from, to }
    }

    /// The place of a value; values beyond the ends are put at the ends.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * share
    }

    /// Whether the axis shows a value.
    pub(crate) fn shows(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values within the axis, about `wanted` of them, with their labels.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step * (1.0 + 1e-12)).floor() as i64;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        (first..=last).map(|k| k as f64 * step).map(|value| (value, format!("{value:.decimals$}"))).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        Axis::new(low, high, 0.0, 100.0).ticks(5).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(0.0, 50.0), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(0.0, 1.2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(0.97, 1.0), ["0.97", "0.98", "0.99", "1.00"]);
    }

    #[test]
    fn odd_ranges_still_make_an_axis() {
        for (low, high) in [(f64::NAN, 1.0), (3.0, 3.0), (0.0, 0.0), (2.0, 1.0), (0.0, f64::INFINITY)] {
            let axis = Axis::new(low, high, 0.0, 100.0);
            assert!(!axis.ticks(5).is_empty(), "{low} {high}");
            assert!(axis.place(1e99) <= 100.0);
        }
    }

    #[test]
    fn places_run_from_one_end_to_the_other() {
        let axis = Axis::new(0.0, 10.0, 200.0, 0.0);
        assert_eq!((axis.place(0.0), axis.place(5.0), axis.place(10.0), axis.place(99.0)), (200.0, 100.0, 0.0, 0.0));
    }
}
