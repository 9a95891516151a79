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
use rusqlite::{Connection, Error, Result, ToSql};
use serde_json::json;

use crate::stats::{self, Interval};

/// Stretches that a series is cut into for the interval of its mean: neighbours are alike, so they are not independent.
const BATCHES: usize = 10;

/// Adds them.
pub(super) fn add(connection: &Connection) -> Result<()> {
    let of_one = |name: &str, function: fn(f64) -> f64| {
        let call = move |context: &Context<'_>| Ok(context.get::<Option<f64>>(0)?.map(function));
        connection.create_scalar_function(name, 1, FLAGS, call)
    };
    of_one("log10", f64::log10)?;
    of_one("sqrt", f64::sqrt)?;
    of_one("ceil", f64::ceil)?;
    connection.create_scalar_function("share_estimate", 2, FLAGS, share_estimate)?;
    let of_all = |name: &str, statistic: Statistic| {
        let finish = move |rows: &[Row]| Ok(statistic(&numbers(rows)));
        connection.create_aggregate_function(name, 1, FLAGS, Gathering { nullable: 1, finish })
    };
    of_all("median", stats::median)?;
    of_all("stddev", stats::standard_deviation)?;
    of_all("jain", stats::jain)?;
    let with_interval = |name: &str, statistic: Statistic, interval: fn(&[f64]) -> Option<Interval>| {
        let finish = move |rows: &[Row]| {
            let all = numbers(rows);
            Ok(statistic(&all).map(|value| estimate(value, interval(&all), all.len())))
        };
        connection.create_aggregate_function(name, 1, FLAGS, Gathering { nullable: 1, finish })
    };
    with_interval("median_estimate", stats::median, stats::median_interval)?;
    with_interval("batch_mean", stats::mean, |values| stats::batch_means_interval(values, BATCHES))?;
    with_interval("mean_estimate", stats::mean, stats::mean_interval)?;
    let add = |name: &str, arguments: i32, nullable: usize, finish: fn(&[Row]) -> Result<Option<f64>>| {
        connection.create_aggregate_function(name, arguments, FLAGS, Gathering { nullable, finish })
    };
    add("quantile", 2, 1, quantile)?;
    add("weighted_quantile", 3, 2, weighted_quantile)?;
    add("ks_distance", 3, 2, distance)?;
    add("line_growth", 2, 2, line_growth)?;
    let add = |name: &str, arguments: i32, nullable: usize, finish: fn(&[Row]) -> Result<Option<String>>| {
        connection.create_aggregate_function(name, arguments, FLAGS, Gathering { nullable, finish })
    };
    add("ratio_estimate", 2, 1, ratio_of_means)?;
    add("paired_ratio", 3, 2, paired_ratio)
}

const FLAGS: FunctionFlags =
    FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC).union(FunctionFlags::SQLITE_INNOCUOUS);

/// A number of all values.
type Statistic = fn(&[f64]) -> Option<f64>;

/// The arguments of one row; null is NaN, which SQLite does not tell from null either.
type Row = [f64; 3];

/// An aggregate that gathers all rows.
struct Gathering<Finish> {
    /// So many of the first arguments may be null.
    nullable: usize,
    finish: Finish,
}

impl<T: ToSql, Finish: Fn(&[Row]) -> Result<Option<T>>> Aggregate<Vec<Row>, Option<T>> for Gathering<Finish> {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<Row>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, rows: &mut Vec<Row>) -> Result<()> {
        let mut row = [f64::NAN; 3];
        for (place, cell) in row.iter_mut().enumerate().take(context.len()) {
            *cell = match place < self.nullable {
                true => context.get::<Option<f64>>(place)?.unwrap_or(f64::NAN),
                false => context.get(place)?,
            };
        }
        rows.push(row);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, rows: Option<Vec<Row>>) -> Result<Option<T>> {
        (self.finish)(&rows.unwrap_or_default())
    }
}

/// First arguments that are not null.
fn numbers(rows: &[Row]) -> Vec<f64> {
    rows.iter().map(|row| row[0]).filter(|number| !number.is_nan()).collect()
}

/// Rows of which neither of the first two arguments is null.
fn pairs(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|[one, other, _]| !one.is_nan() && !other.is_nan())
}

/// The value below which a share of all values is; the share is the last row's, 0 to 1.
fn quantile(rows: &[Row]) -> Result<Option<f64>> {
    match rows.iter().find(|[_, ratio, _]| !(0.0..=1.0).contains(ratio)) {
        Some([_, ratio, _]) => {
            Err(Error::UserFunctionError(format!("quantile: {ratio} is not between 0 and 1").into()))
        }
        None => Ok(rows.last().and_then(|[_, ratio, _]| stats::percentile(&numbers(rows), *ratio))),
    }
}

/// The smallest value that values of a share of all weight do not exceed; the share is the last row's, 0 to 1.
fn weighted_quantile(rows: &[Row]) -> Result<Option<f64>> {
    let values = by_value(rows);
    let ratio = rows.last().map_or(0.0, |[_, _, ratio]| *ratio);
    let wanted = values.iter().map(|[_, weight, _]| weight).sum::<f64>() * ratio;
    let mut below = 0.0;
    Ok(values.into_iter().find_map(|[value, weight, _]| {
        below += weight;
        (below >= wanted).then_some(value)
    }))
}

fn by_value(rows: &[Row]) -> Vec<Row> {
    let mut values: Vec<Row> = pairs(rows).copied().collect();
    values.sort_by(|one, other| one[0].total_cmp(&other[0]));
    values
}

/// The largest difference of two distributions at any value; nothing if one has no weight.
fn distance(rows: &[Row]) -> Result<Option<f64>> {
    let values = by_value(rows);
    let is_first = |row: &Row| row[2] != 0.0;
    let all = |first: bool| values.iter().filter(|row| is_first(row) == first).map(|row| row[1]).sum::<f64>();
    let (first, second) = (all(true), all(false));
    let (mut apart, mut most) = (0.0f64, 0.0f64);
    for (place, row) in values.iter().enumerate() {
        let [value, weight, _] = row;
        apart += if is_first(row) { weight / first } else { -weight / second };
        if values.get(place + 1).is_none_or(|next| next[0] > *value) {
            most = most.max(apart.abs());
        }
    }
    Ok((first > 0.0 && second > 0.0).then_some(most))
}

/// The least-squares line's value at 1 over that at 0; nothing where that is not above 0, or all points have one x.
fn line_growth(rows: &[Row]) -> Result<Option<f64>> {
    let n = pairs(rows).count() as f64;
    let sum = |of: &dyn Fn(&Row) -> f64| pairs(rows).map(of).sum::<f64>();
    let (x, y) = (sum(&|row| row[0]) / n, sum(&|row| row[1]) / n);
    let spread = sum(&|row| (row[0] - x).powi(2));
    let slope = sum(&|row| (row[0] - x) * (row[1] - y)) / spread;
    let at_0 = y - slope * x;
    Ok((spread > 0.0 && at_0 > 0.0).then(|| (at_0 + slope) / at_0))
}

/// Those over and those under: [`stats::ratio_of_means`].
fn ratio_of_means(rows: &[Row]) -> Result<Option<String>> {
    let (over, under): (Vec<Row>, Vec<Row>) = rows.iter().partition(|[_, is_over, _]| *is_over != 0.0);
    let (over, under) = (numbers(&over), numbers(&under));
    let ratio = stats::ratio_of_means(&over, &under);
    Ok(ratio.map(|(ratio, interval)| estimate(ratio, Some(interval), over.len() + under.len())))
}

/// Pairs of numbers of every run: [`stats::paired_ratio`].
fn paired_ratio(rows: &[Row]) -> Result<Option<String>> {
    let mut runs: BTreeMap<i64, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        let pair = pairs(std::slice::from_ref(row)).map(|[ours, theirs, _]| (*ours, *theirs));
        runs.entry(row[2] as i64).or_default().extend(pair);
    }
    let series: Vec<_> = runs.into_values().collect();
    Ok(stats::paired_ratio(&series).map(|ratio| estimate(ratio.value, ratio.interval, ratio.n)))
}

/// How many of how many, as an estimate; nothing of none.
fn share_estimate(context: &Context<'_>) -> Result<Option<String>> {
    let (had, n) =
        (context.get::<Option<u32>>(0)?.unwrap_or_default(), context.get::<Option<u32>>(1)?.unwrap_or_default());
    let interval = stats::share_interval(had as usize, n as usize);
    Ok(interval.map(|interval| estimate(f64::from(had) / f64::from(n), Some(interval), n as usize)))
}

fn estimate(value: f64, interval: Option<Interval>, n: usize) -> String {
    let of = |part: fn(Interval) -> f64| interval.map(part);
    let (low, high, coverage) = (of(|one| one.low), of(|one| one.high), of(|one| one.coverage));
    let method = interval.map(|interval| interval.method);
    json!({ "value": value, "low": low, "high": high, "coverage": coverage, "method": method, "n": n }).to_string()
}
