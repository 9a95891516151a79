//! Two paths compared: repetitions A B A B, so that slow drift of the machine meets both, and intervals. Where the
//! intervals overlap there is no verdict.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Two-sided coverage of all intervals here.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest repetitions of each path.
pub const REPETITIONS_LEAST: usize = 3;

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Lower end of Student's interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of repetitions.
    pub n: usize,
}

/// What can be said about B beside A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// B is below A.
    Below,
    /// B is above A.
    Above,
    /// The intervals overlap, or there are too few repetitions.
    Inconclusive,
}

/// Two paths, A the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline.
    pub a: Estimate,
    /// The other.
    pub b: Estimate,
    /// B over A with the interval over pairs that were measured one after the other.
    pub ratio: Estimate,
    /// Where B stands.
    pub order: Order,
}

/// Which path each repetition measures: A B A B ..., `repetitions` of each, at least [`REPETITIONS_LEAST`].
pub fn interleaved(repetitions: usize) -> impl Iterator<Item = bool> {
    (0..repetitions.max(REPETITIONS_LEAST) * 2).map(|turn| turn % 2 == 1)
}

/// The mean of independent repetitions with Student's interval. `None` of nothing; of one value the interval is endless.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(Estimate { mean, low: f64::NEG_INFINITY, high: f64::INFINITY, n });
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let quantile = StudentsT::new(0.0, 1.0, (n - 1) as f64).ok()?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    let half = quantile * (squares / (n - 1) as f64 / n as f64).sqrt();
    Some(Estimate { mean, low: mean - half, high: mean + half, n })
}

/// Compares repetitions that were measured in turns: `a[i]` just before `b[i]`. `None` without repetitions, or where
/// some value is not above 0 and no ratio can be formed.
pub fn compare(a: &[f64], b: &[f64]) -> Option<Comparison> {
    let logarithms: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    if logarithms.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let ratio = estimate(&logarithms)?;
    let ratio = Estimate { mean: ratio.mean.exp(), low: ratio.low.exp(), high: ratio.high.exp(), n: ratio.n };
    let (a, b) = (estimate(a)?, estimate(b)?);
    let order = match () {
        () if a.n.min(b.n) < REPETITIONS_LEAST => Order::Inconclusive,
        () if b.high < a.low => Order::Below,
        () if b.low > a.high => Order::Above,
        () => Order::Inconclusive,
    };
    Some(Comparison { a, b, ratio, order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate() {
        assert_eq!(interleaved(3).collect::<Vec<_>>(), [false, true, false, true, false, true]);
        assert_eq!(interleaved(1).count(), 6, "never fewer than three of each");
    }

    #[test]
    fn intervals_are_students() {
        // t(0.975, 4) = 2.776445; mean 3, standard deviation sqrt(2.5).
        let found = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((found.high - 3.0 - 2.776_445 * 0.5f64.sqrt()).abs() < 1e-5, "{found:?}");
        assert_eq!(estimate(&[]), None);
        assert!(estimate(&[1.0]).unwrap().high.is_infinite());
    }

    #[test]
    fn paths_that_differ_clearly_are_told_apart_in_both_directions() {
        let (a, b) = ([100.0, 101.0, 99.0], [150.0, 151.0, 149.5]);
        let found = compare(&a, &b).unwrap();
        assert_eq!(found.order, Order::Above);
        assert!(found.ratio.low < 1.5 && 1.5 < found.ratio.high && (found.ratio.mean - 1.5).abs() < 0.01);
        assert_eq!(compare(&b, &a).unwrap().order, Order::Below);
    }

    #[test]
    fn what_overlaps_or_is_too_little_is_inconclusive() {
        assert_eq!(compare(&[100.0, 130.0, 90.0], &[110.0, 140.0, 100.0]).unwrap().order, Order::Inconclusive);
        assert_eq!(compare(&[1.0, 1.0], &[9.0, 9.0]).unwrap().order, Order::Inconclusive);
        assert_eq!(compare(&[], &[]), None);
        assert_eq!(compare(&[1.0, 0.0, 1.0], &[1.0, 1.0, 1.0]), None);
    }

    #[test]
    fn drift_that_meets_both_paths_does_not_hide_the_ratio() {
        // The machine becomes twice as slow; B stays at 1.1 of A.
        let a = [100.0, 140.0, 180.0, 200.0];
        let b = a.map(|value: f64| value * 1.1);
        let found = compare(&a, &b).unwrap();
        assert!((found.ratio.low - 1.1).abs() < 1e-9 && (found.ratio.high - 1.1).abs() < 1e-9, "{found:?}");
        assert_eq!(found.order, Order::Inconclusive, "but the means themselves overlap");
    }
}
