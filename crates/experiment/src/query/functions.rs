//! Functions beside SQLite's own; aggregates are of all values that are not null:
//!
//! * `median(x)`, `quantile(x, ratio)`, `weighted_quantile(x, weight, ratio)`, `stddev(x)`, `jain(x)`: a number
//! * `log10(x)`, `sqrt(x)`, `ceil(x)`: of one number
//! * `line_growth(x, y)`: the value at 1 over that at 0 of the line through all points, by least squares
//! * `ks_distance(x, weight, is_first)`: how far two distributions are apart (Kolmogorov-Smirnov), 0 to 1
//! * `share_estimate(had, n)`: of two numbers, with Wilson's interval, as JSON like those below
//! * `ratio_estimate(x, is_over)`: mean of the ones over mean of the others, like those below
//! * `paired_ratio(ours, theirs, run)`, `batch_mean(x)`, `mean_estimate(x)` (Student's interval), `median_estimate(x)`: an estimate with its interval, as JSON with `value`, `low`, `high`,
//!   `coverage`, `method` and `n`; rows must come in order of time

use std::collections::BTreeMap;

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::{Connection, Error, Result};
use serde_json::json;

use crate::stats::{self, Interval};

/// Stretches that a series is cut into for the interval of its mean: neighbours are alike, so they are not independent.
const BATCHES: usize = 10;

/// Adds them.
pub(super) fn add(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let of_one = |name: &str, function: fn(f64) -> f64| {
        let call = move |context: &Context<'_>| Ok(context.get::<Option<f64>>(0)?.map(function));
        connection.create_scalar_function(name, 1, flags, call)
    };
    of_one("log10", f64::log10)?;
    of_one("sqrt", f64::sqrt)?;
    of_one("ceil", f64::ceil)?;
    connection.create_scalar_function("share_estimate", 2, flags, share_estimate)?;
    let of_values =
        |name: &str, function: Statistic| connection.create_aggregate_function(name, 1, flags, OfValues(function));
    of_values("median", stats::median)?;
    of_values("stddev", stats::standard_deviation)?;
    of_values("jain", stats::jain)?;
    connection.create_aggregate_function("quantile", 2, flags, Quantile)?;
    connection.create_aggregate_function("weighted_quantile", 3, flags, WeightedQuantile)?;
    connection.create_aggregate_function("ks_distance", 3, flags, Distance)?;
    connection.create_aggregate_function("line_growth", 2, flags, LineGrowth)?;
    connection.create_aggregate_function("ratio_estimate", 2, flags, RatioOfMeans)?;
    connection.create_aggregate_function("paired_ratio", 3, flags, PairedRatio)?;
    connection.create_aggregate_function(
        "median_estimate",
        1,
        flags,
        Estimated(stats::median, stats::median_interval),
    )?;
    let of_batches = |values: &[f64]| stats::batch_means_interval(values, BATCHES);
    connection.create_aggregate_function("batch_mean", 1, flags, Estimated(stats::mean, of_batches))?;
    connection.create_aggregate_function("mean_estimate", 1, flags, Estimated(stats::mean, stats::mean_interval))
}

/// How many of how many, as an estimate; nothing of none.
fn share_estimate(context: &Context<'_>) -> Result<Option<String>> {
    let (had, n) =
        (context.get::<Option<u32>>(0)?.unwrap_or_default(), context.get::<Option<u32>>(1)?.unwrap_or_default());
    let interval = stats::share_interval(had as usize, n as usize);
    Ok(interval.map(|interval| estimate(f64::from(had) / f64::from(n), Some(interval), n as usize)))
}

type Statistic = fn(&[f64]) -> Option<f64>;

/// A statistic of all values.
struct OfValues(Statistic);

impl Aggregate<Vec<f64>, Option<f64>> for OfValues {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<f64>) -> Result<()> {
        values.extend(context.get::<Option<f64>>(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<f64>>) -> Result<Option<f64>> {
        Ok(values.and_then(|values| (self.0)(&values)))
    }
}

/// The value below which a share of all values is; the share is the last row's, 0 to 1.
struct Quantile;

impl Aggregate<(Vec<f64>, f64), Option<f64>> for Quantile {
    fn init(&self, _: &mut Context<'_>) -> Result<(Vec<f64>, f64)> {
        Ok((Vec::new(), 0.0))
    }

    fn step(&self, context: &mut Context<'_>, (values, ratio): &mut (Vec<f64>, f64)) -> Result<()> {
        values.extend(context.get::<Option<f64>>(0)?);
        *ratio = context.get(1)?;
        if (0.0..=1.0).contains(ratio) {
            return Ok(());
        }
        Err(Error::UserFunctionError(format!("quantile: {ratio} is not between 0 and 1").into()))
    }

    fn finalize(&self, _: &mut Context<'_>, found: Option<(Vec<f64>, f64)>) -> Result<Option<f64>> {
        Ok(found.and_then(|(values, ratio)| stats::percentile(&values, ratio)))
    }
}

/// The smallest value that values of a share of all weight do not exceed; the share is the last row's, 0 to 1.
struct WeightedQuantile;

impl Aggregate<(Vec<(f64, f64)>, f64), Option<f64>> for WeightedQuantile {
    fn init(&self, _: &mut Context<'_>) -> Result<(Vec<(f64, f64)>, f64)> {
        Ok((Vec::new(), 0.0))
    }

    fn step(&self, context: &mut Context<'_>, (values, ratio): &mut (Vec<(f64, f64)>, f64)) -> Result<()> {
        values.extend(context.get::<Option<f64>>(0)?.zip(context.get::<Option<f64>>(1)?));
        *ratio = context.get(2)?;
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, found: Option<(Vec<(f64, f64)>, f64)>) -> Result<Option<f64>> {
        let (mut values, ratio) = found.unwrap_or_default();
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let wanted = values.iter().map(|(_, weight)| weight).sum::<f64>() * ratio;
        let mut below = 0.0;
        Ok(values.into_iter().find_map(|(value, weight)| {
            below += weight;
            (below >= wanted).then_some(value)
        }))
    }
}

/// The largest difference of two distributions at any value; nothing if one has no weight.
struct Distance;

impl Aggregate<Vec<(f64, f64, bool)>, Option<f64>> for Distance {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<(f64, f64, bool)>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<(f64, f64, bool)>) -> Result<()> {
        let value = context.get::<Option<f64>>(0)?.zip(context.get::<Option<f64>>(1)?);
        let is_first = context.get::<bool>(2)?;
        values.extend(value.map(|(value, weight)| (value, weight, is_first)));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<(f64, f64, bool)>>) -> Result<Option<f64>> {
        let mut values = values.unwrap_or_default();
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all = |first: bool| values.iter().filter(|one| one.2 == first).map(|one| one.1).sum::<f64>();
        let (first, second) = (all(true), all(false));
        let (mut apart, mut most) = (0.0f64, 0.0f64);
        for (place, (value, weight, is_first)) in values.iter().enumerate() {
            apart += if *is_first { weight / first } else { -weight / second };
            if values.get(place + 1).is_none_or(|next| next.0 > *value) {
                most = most.max(apart.abs());
            }
        }
        Ok((first > 0.0 && second > 0.0).then_some(most))
    }
}

/// The least-squares line's value at 1 over that at 0; nothing where that is not above 0, or all points have one x.
struct LineGrowth;

impl Aggregate<Vec<(f64, f64)>, Option<f64>> for LineGrowth {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<(f64, f64)>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, points: &mut Vec<(f64, f64)>) -> Result<()> {
        points.extend(context.get::<Option<f64>>(0)?.zip(context.get::<Option<f64>>(1)?));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, points: Option<Vec<(f64, f64)>>) -> Result<Option<f64>> {
        let points = points.unwrap_or_default();
        let n = points.len() as f64;
        let sum = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let (x, y) = (sum(|point| point.0) / n, sum(|point| point.1) / n);
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        let at_0 = y - slope * x;
        Ok((spread > 0.0 && at_0 > 0.0).then(|| (at_0 + slope) / at_0))
    }
}

/// Those over and those under: [`stats::ratio_of_means`].
struct RatioOfMeans;

impl Aggregate<[Vec<f64>; 2], Option<String>> for RatioOfMeans {
    fn init(&self, _: &mut Context<'_>) -> Result<[Vec<f64>; 2]> {
        Ok(Default::default())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut [Vec<f64>; 2]) -> Result<()> {
        values[usize::from(context.get::<bool>(1)?)].extend(context.get::<Option<f64>>(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<[Vec<f64>; 2]>) -> Result<Option<String>> {
        let [under, over] = values.unwrap_or_default();
        let ratio = stats::ratio_of_means(&over, &under);
        Ok(ratio.map(|(ratio, interval)| estimate(ratio, Some(interval), over.len() + under.len())))
    }
}

/// Pairs of numbers of every run: [`stats::paired_ratio`].
struct PairedRatio;

impl Aggregate<BTreeMap<i64, Vec<(f64, f64)>>, Option<String>> for PairedRatio {
    fn init(&self, _: &mut Context<'_>) -> Result<BTreeMap<i64, Vec<(f64, f64)>>> {
        Ok(BTreeMap::new())
    }

    fn step(&self, context: &mut Context<'_>, runs: &mut BTreeMap<i64, Vec<(f64, f64)>>) -> Result<()> {
        let pair = context.get::<Option<f64>>(0)?.zip(context.get::<Option<f64>>(1)?);
        runs.entry(context.get(2)?).or_default().extend(pair);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, runs: Option<BTreeMap<i64, Vec<(f64, f64)>>>) -> Result<Option<String>> {
        let series: Vec<_> = runs.unwrap_or_default().into_values().collect();
        Ok(stats::paired_ratio(&series).map(|ratio| estimate(ratio.value, ratio.interval, ratio.n)))
    }
}

/// A statistic with its interval.
struct Estimated(Statistic, fn(&[f64]) -> Option<Interval>);

impl Aggregate<Vec<f64>, Option<String>> for Estimated {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<f64>) -> Result<()> {
        values.extend(context.get::<Option<f64>>(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<f64>>) -> Result<Option<String>> {
        let values = values.unwrap_or_default();
        Ok((self.0)(&values).map(|value| estimate(value, (self.1)(&values), values.len())))
    }
}

fn estimate(value: f64, interval: Option<Interval>, n: usize) -> String {
    let of = |part: fn(Interval) -> f64| interval.map(part);
    let (low, high, coverage) = (of(|one| one.low), of(|one| one.high), of(|one| one.coverage));
    let method = interval.map(|interval| interval.method);
    json!({ "value": value, "low": low, "high": high, "coverage": coverage, "method": method, "n": n }).to_string()
}
