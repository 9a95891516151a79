//! Aggregates beside SQLite's own: `median(x)`, `quantile(x, ratio)`, `stddev(x)` and `jain(x)` of all values that are not null.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::{Connection, Result};

use crate::stats;

/// Adds them.
pub(super) fn add(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let of_values =
        |name: &str, function: Statistic| connection.create_aggregate_function(name, 1, flags, OfValues(function));
    of_values("median", stats::median)?;
    of_values("stddev", stats::standard_deviation)?;
    of_values("jain", stats::jain)?;
    connection.create_aggregate_function("quantile", 2, flags, Quantile)
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
        Err(rusqlite::Error::UserFunctionError(format!("quantile: {ratio} is not between 0 and 1").into()))
    }

    fn finalize(&self, _: &mut Context<'_>, found: Option<(Vec<f64>, f64)>) -> Result<Option<f64>> {
        Ok(found.and_then(|(values, ratio)| stats::percentile(&values, ratio)))
    }
}
