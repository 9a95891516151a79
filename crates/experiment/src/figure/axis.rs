//! An axis: from values to places, linear or logarithmic, with ticks at round numbers.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    #[default]
    Linear,
    /// Equal distances for equal ratios. Values that are not above 0 stand at the low end.
    Log,
}

/// An axis of one drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    scale: Scale,
}

impl Axis {
    /// A linear axis that shows `low` to `high` between the places `from` and `to`. Bounds that are not finite or not in
    /// order become 0 to 1.
    pub(crate) fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let usable = low.is_finite() && high.is_finite() && high >= low;
        let (low, high) = if usable { (low, high) } else { (0.0, 1.0) };
        let high = if high > low { high } else { low + if low == 0.0 { 1.0 } else { low.abs() * 0.1 } };
        Self { low, high, from, to, scale: Scale::Linear }
    }

    /// A logarithmic axis for values from `low` to `high`: out to the next 1, 2 or 5 times a power of ten at both ends.
    pub(crate) fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let usable = low.is_finite() && high.is_finite() && low > 0.0 && high >= low;
        let (low, high) = if usable { (low, high) } else { (1.0, 10.0) };
        let (low, high) = (round_below(low), round_step(high));
        let high = if high > low { high } else { low * 10.0 };
        Self { low, high, from, to, scale: Scale::Log }
    }

    /// The place of a value; values beyond the ends are put at the ends.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Log => 0.0,
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// Whether the axis shows a value.
    pub(crate) fn shows(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values within the axis, about `wanted` of them, with their labels.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => self.linear_ticks(wanted),
            Scale::Log => self.log_ticks(wanted),
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step * (1.0 + 1e-12)).floor() as i64;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let is_large = self.high.abs().max(self.low.abs()) >= 10_000.0;
        let label = |value: f64| if is_large { short(value) } else { format!("{value:.decimals$}") };
        (first..=last).map(|k| k as f64 * step).map(|value| (value, label(value))).collect()
    }

    /// Powers of ten, with twice and five times each where there is room; every second, third .. power where there is little.
    fn log_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let powers = (last - first).max(1) as usize;
        let factors: &[f64] = if powers * 3 <= wanted.max(3) + 1 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = powers.div_ceil(wanted.max(1)).max(1);
        let tick = |power: i32| factors.iter().map(move |factor| factor * 10f64.powi(power));
        let inside = |value: &f64| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(value);
        let all = (first..=last).step_by(every).flat_map(tick).filter(inside);
        all.map(|value| (value, short(value))).collect()
    }
}

/// A number as axes write it, without exponents: `0.02`, `5`, `10 k`, `2 M`.
pub(crate) fn short(value: f64) -> String {
    let (factor, prefix) = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")]
        .into_iter()
        .find(|(factor, _)| value.abs() >= factor * (1.0 - 1e-9))
        .unwrap_or((1.0, ""));
    let text = format!("{:.6}", value / factor);
    format!("{}{prefix}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// 1, 2 or 5 times a power of ten, at least `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

/// 1, 2 or 5 times a power of ten, at most `raw`.
fn round_below(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let factor = [5.0, 2.0].into_iter().find(|factor| factor * power <= raw * (1.0 + 1e-9)).unwrap_or(1.0);
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
    fn logarithmic_ticks_are_numbers_and_no_exponents() {
        let labels =
            |low, high| Axis::log(low, high, 0.0, 100.0).ticks(8).into_iter().map(|(_, label)| label).collect();
        let wide: Vec<String> = labels(0.7, 2e6);
        assert_eq!(wide, ["1", "10", "100", "1 k", "10 k", "100 k", "1 M"]);
        let narrow: Vec<String> = labels(3.0, 60.0);
        assert_eq!(narrow, ["2", "5", "10", "20", "50", "100"]);
        let huge: Vec<String> = labels(1e-3, 1e15);
        assert!(huge.len() <= 8 && huge.iter().all(|label| !label.contains('e')), "{huge:?}");
    }

    #[test]
    fn logarithmic_places_are_even_for_powers() {
        let axis = Axis::log(1.0, 100.0, 0.0, 200.0);
        assert_eq!((axis.place(1.0), axis.place(100.0), axis.place(0.0), axis.place(-1.0)), (0.0, 200.0, 0.0, 0.0));
        assert!((axis.place(10.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn odd_ranges_still_make_an_axis() {
        for (low, high) in [(f64::NAN, 1.0), (3.0, 3.0), (0.0, 0.0), (2.0, 1.0), (0.0, f64::INFINITY)] {
            let axis = Axis::new(low, high, 0.0, 100.0);
            assert!(!axis.ticks(5).is_empty(), "{low} {high}");
            assert!(axis.place(1e99) <= 100.0);
            let axis = Axis::log(low, high, 0.0, 100.0);
            assert!(!axis.ticks(5).is_empty() && (0.0..=100.0).contains(&axis.place(1e99)), "{low} {high}");
        }
    }

    #[test]
    fn places_run_from_one_end_to_the_other() {
        let axis = Axis::new(0.0, 10.0, 200.0, 0.0);
        assert_eq!((axis.place(0.0), axis.place(5.0), axis.place(10.0), axis.place(99.0)), (200.0, 100.0, 0.0, 0.0));
    }
}
