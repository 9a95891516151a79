//! The few statistics that claims rest on, each with its definition, so that a reader can check a number by hand.
//!
//! Intervals are distribution-free where they can be: the median of a handful of runs on a shared machine has no known
//! distribution. Where something is drawn ([`paired_ratio`]) the seed is fixed, so the same records always give the
//! same numbers.

mod resample;

pub use resample::{Ratio, paired_ratio};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Two-sided coverage that an interval should have.
pub const CONFIDENCE: f64 = 0.95;

/// A range that holds the true value with probability `coverage`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that it covers the true value; with few samples less than [`CONFIDENCE`] can be had.
    pub coverage: f64,
    /// How it was made.
    pub method: Method,
}

/// How an interval was made, and of what it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Of the median, by order statistics: [`median_interval`].
    Median,
    /// Of the mean, by Student's t: [`mean_interval`].
    Mean,
    /// Of the mean of a time series, by batch means: [`batch_means_interval`].
    BatchMeans,
    /// Of the ratio of two means, by the delta method: [`ratio_of_means`].
    RatioOfMeans,
    /// Of the ratio of two means over the same things, by a block bootstrap: [`paired_ratio`].
    PairedRatio,
    /// Of a share, by Wilson: [`share_interval`].
    Share,
}

impl Method {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
            Self::BatchMeans => "batch means",
            Self::RatioOfMeans => "ratio of means",
            Self::PairedRatio => "paired ratio",
            Self::Share => "share",
        }
    }
}

impl Interval {
    /// Whether `value` lies strictly inside, so that the data cannot tell on which side of it the truth is.
    pub fn spans(self, value: f64) -> bool {
        self.low < value && value < self.high
    }
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984): (sum x)^2 / (n sum x^2), 1 for equal shares and 1/n when one takes
/// all. `None` without a positive value; negative values are refused by returning `None`.
pub fn jain(values: &[f64]) -> Option<f64> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || !largest.is_finite() || values.iter().any(|value| *value < 0.0 || value.is_nan()) {
        return None;
    }
    // Scaled by the largest share, so that squares of byte counts cannot overflow.
    let (sum, squares) = values.iter().map(|value| value / largest).fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    Some((sum * sum / (values.len() as f64 * squares)).min(1.0))
}

/// Arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1); `None` of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The value below which a share `ratio` of the values lies, with linear interpolation between neighbours
/// (definition 7 of Hyndman and Fan 1996). `None` of nothing.
pub fn percentile(values: &[f64], ratio: f64) -> Option<f64> {
    percentile_of_sorted(&sorted(values), ratio)
}

/// [`percentile`] of values that are in order already.
pub fn percentile_of_sorted(values: &[f64], ratio: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = ratio.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(values[below] + (values[above] - values[below]) * (place - below as f64))
}

/// The middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 0.5)
}

/// A copy in rising order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Interval of the median from order statistics: the k-th smallest and the k-th largest value, k as large as
/// [`CONFIDENCE`] allows by the binomial distribution of how many samples fall below the true median.
///
/// With fewer than six samples even smallest and largest do not reach 95 % (three cover 75 %); they are returned, and
/// the coverage says what they are worth. `None` of fewer than two values.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let tail = |k: usize| (0..k).map(|i| binomial_half(n, i)).sum::<f64>();
    let k = (1..=n / 2).take_while(|k| 1.0 - 2.0 * tail(*k) >= CONFIDENCE).last().unwrap_or(1);
    let sorted = sorted(values);
    Some(Interval { low: sorted[k - 1], high: sorted[n - k], coverage: 1.0 - 2.0 * tail(k), method: Method::Median })
}

/// Probability that a fair coin shows heads exactly `k` times in `n` throws.
fn binomial_half(n: usize, k: usize) -> f64 {
    (0..k).fold(0.5f64.powi(n as i32), |chance, i| chance * (n - i) as f64 / (i + 1) as f64)
}

/// Student's t interval of the mean of independent samples. `None` of fewer than two values.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let centre = mean(values)?;
    let spread = standard_deviation(values)?;
    let freedom = (values.len() - 1) as f64;
    let quantile = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    let half = quantile * spread / (values.len() as f64).sqrt();
    Some(Interval { low: centre - half, high: centre + half, coverage: CONFIDENCE, method: Method::Mean })
}

/// Mean of the first samples over mean of the others, with its interval: the delta method, Student's quantile with the
/// degrees of freedom of Welch 1947. Both must be independent samples. `None` of fewer than two of either, or if the
/// second mean is not above 0.
pub fn ratio_of_means(over: &[f64], under: &[f64]) -> Option<(f64, Interval)> {
    ratio_of_means_at(over, under, CONFIDENCE)
}

/// The same with an interval of another coverage.
pub fn ratio_of_means_at(over: &[f64], under: &[f64], confidence: f64) -> Option<(f64, Interval)> {
    let moments = |values: &[f64]| Some((mean(values)?, standard_deviation(values)?.powi(2) / values.len() as f64));
    let ((top, top_variance), (bottom, bottom_variance)) = (moments(over)?, moments(under)?);
    if bottom <= 0.0 {
        return None;
    }
    let ratio = top / bottom;
    let (a, b) = (top_variance / (bottom * bottom), ratio * ratio * bottom_variance / (bottom * bottom));
    let freedom = |values: &[f64]| (values.len() - 1) as f64;
    let degrees = (a + b).powi(2) / (a * a / freedom(over) + b * b / freedom(under));
    // Without any spread there are no degrees to speak of.
    let quantile = match degrees.is_finite() {
        true => StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(0.5 + confidence / 2.0),
        false => 0.0,
    };
    let half = quantile * (a + b).sqrt();
    let method = Method::RatioOfMeans;
    Some((ratio, Interval { low: ratio - half, high: ratio + half, coverage: confidence, method }))
}

/// Interval of a share from how many of `n` independent trials had it (Wilson 1927). `None` of no trial.
pub fn share_interval(had: usize, n: usize) -> Option<Interval> {
    if n == 0 || had > n {
        return None;
    }
    let z = Normal::standard().inverse_cdf(0.5 + CONFIDENCE / 2.0);
    let (n, share) = (n as f64, had as f64 / n as f64);
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let (low, high) = ((centre - half).max(0.0), (centre + half).min(1.0));
    Some(Interval { low, high, coverage: CONFIDENCE, method: Method::Share })
}

/// Interval of the mean of a time series, whose neighbours are alike: the series is cut into at most `batches`
/// stretches of equal length and [`mean_interval`] is taken over their means (method of batch means). Samples at the
/// end that fill no stretch are left out.
pub fn batch_means_interval(series: &[f64], batches: usize) -> Option<Interval> {
    let length = (series.len() / batches.max(1)).max(1);
    let means: Vec<f64> = series.chunks_exact(length).filter_map(mean).collect();
    mean_interval(&means).map(|interval| Interval { method: Method::BatchMeans, ..interval })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() < 1e-9
    }

    #[test]
    fn jain_of_known_shares() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert!(close(jain(&[1.0, 0.0, 0.0]).unwrap(), 1.0 / 3.0));
        assert!(close(jain(&[1.0, 2.0, 3.0]).unwrap(), 36.0 / 42.0));
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[1.0, -1.0]), None);
        assert!(close(jain(&[1e300, 1e300]).unwrap(), 1.0), "squares must not overflow");
    }

    #[test]
    fn percentiles_interpolate() {
        let values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(median(&values), Some(25.0));
        assert_eq!(percentile(&values, 0.0), Some(10.0));
        assert_eq!(percentile(&values, 1.0), Some(40.0));
        assert!(close(percentile(&values, 0.9).unwrap(), 37.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn order_statistics_have_textbook_ranks() {
        let upto = |n: usize| (1..=n).map(|value| value as f64).collect::<Vec<_>>();
        let three = median_interval(&upto(3)).unwrap();
        assert_eq!((three.low, three.high, three.coverage), (1.0, 3.0, 0.75));
        let six = median_interval(&upto(6)).unwrap();
        assert_eq!((six.low, six.high, six.coverage), (1.0, 6.0, 0.96875));
        let ten = median_interval(&upto(10)).unwrap();
        assert_eq!((ten.low, ten.high), (2.0, 9.0));
        assert!((ten.coverage - 0.978_515_625).abs() < 1e-12);
        assert_eq!(median_interval(&[1.0]), None);
    }

    #[test]
    fn student_interval_of_a_known_sample() {
        // t(0.975, 4) = 2.776445; mean 3, standard deviation sqrt(2.5).
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let half = 2.776_445_105 * 2.5f64.sqrt() / 5.0f64.sqrt();
        assert!((interval.high - (3.0 + half)).abs() < 1e-6, "{interval:?}");
        assert!((interval.low - (3.0 - half)).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn batch_means_see_slow_drift_that_single_samples_hide() {
        let drifting: Vec<f64> = (0..100).map(|i| f64::from(i / 10)).collect();
        let single = mean_interval(&drifting).unwrap();
        let batched = batch_means_interval(&drifting, 10).unwrap();
        assert!(batched.high - batched.low > 2.0 * (single.high - single.low));
    }

    #[test]
    fn shares_have_wilsons_interval() {
        // Worked by hand for 10 of 100: z^2 = 3.8415, centre 0.11480, half width 0.05957.
        let interval = share_interval(10, 100).unwrap();
        assert!((interval.low - 0.05523).abs() < 1e-5 && (interval.high - 0.17437).abs() < 1e-5, "{interval:?}");
        let none = share_interval(0, 50).unwrap();
        assert!(none.low == 0.0 && (none.high - 0.07135).abs() < 1e-5, "{none:?}");
        assert_eq!((share_interval(0, 0), share_interval(2, 1)), (None, None));
    }

    #[test]
    fn ratios_of_means_have_welchs_interval() {
        // By hand: means 3 and 10, variances of the means 0.5 and 2.5/3; a = 0.005, b = 0.00075, 4.1 degrees of freedom.
        let (ratio, interval) = ratio_of_means(&[1.0, 2.0, 3.0, 4.0, 5.0], &[9.0, 9.5, 11.5]).unwrap();
        let bottom_variance: f64 = (1.0 + 0.25 + 2.25) / 2.0 / 3.0;
        let (a, b) = (0.005, 0.09 * bottom_variance / 100.0);
        let degrees = (a + b) * (a + b) / (a * a / 4.0 + b * b / 2.0);
        let quantile = StudentsT::new(0.0, 1.0, degrees).unwrap().inverse_cdf(0.975);
        assert!((2.6..2.8).contains(&quantile), "{quantile} for {degrees}");
        assert!(close(ratio, 0.3) && close(interval.high - ratio, quantile * (a + b).sqrt()), "{interval:?}");
        let (same, exact) = ratio_of_means(&[2.0, 2.0], &[4.0, 4.0]).unwrap();
        assert_eq!((same, exact.low, exact.high), (0.5, 0.5, 0.5));
        assert_eq!((ratio_of_means(&[1.0], &[1.0, 2.0]), ratio_of_means(&[1.0, 2.0], &[0.0, 0.0])), (None, None));
    }

    proptest! {
        #[test]
        fn jain_lies_between_one_nth_and_one(values in prop::collection::vec(0.0f64..1e12, 1..50)) {
            if let Some(index) = jain(&values) {
                prop_assert!(index <= 1.0 && index >= 1.0 / values.len() as f64 - 1e-12);
            }
        }

        #[test]
        fn jain_ignores_scale_and_order(values in prop::collection::vec(1.0f64..1e6, 2..20), scale in 1e-3f64..1e3) {
            let scaled: Vec<f64> = values.iter().rev().map(|value| value * scale).collect();
            prop_assert!((jain(&values).unwrap() - jain(&scaled).unwrap()).abs() < 1e-9);
        }

        #[test]
        fn the_interval_holds_the_median(values in prop::collection::vec(-1e6f64..1e6, 2..60)) {
            let (interval, middle) = (median_interval(&values).unwrap(), median(&values).unwrap());
            prop_assert!(interval.low <= middle && middle <= interval.high);
            prop_assert!(interval.coverage >= 0.5 && interval.coverage < 1.0);
        }

        #[test]
        fn percentiles_rise(values in prop::collection::vec(-1e6f64..1e6, 1..40), a in 0.0f64..1.0, b in 0.0f64..1.0) {
            let (low, high) = (percentile(&values, a.min(b)).unwrap(), percentile(&values, a.max(b)).unwrap());
            prop_assert!(low <= high + 1e-9);
        }
    }
}
