//! The page of a measurement.

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};

use super::{Measured, MeasurementManifest, headline};
use crate::report::{ReportError, STYLE};
use crate::run_folder::shell_words;
use crate::table::{quantity, range};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn render(manifest: &MeasurementManifest, measured: &Measured<'_>) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_template("page", TEMPLATE)?;
    let checks: Vec<Value> = measured
        .checks
        .iter()
        .map(|check| {
            context! {
                id => check.id.as_str(), verdict => check.verdict.word(), why => check.why.unwrap_or_default(),
                ours => quantity(check.ours, check.unit),
                interval => check.interval.map(|ends| range(ends, check.unit)),
                want => format!("{} {}", check.relation.symbol(), quantity(check.want, check.unit)),
            }
        })
        .collect();
    Ok(environment.get_template("page")?.render(context! {
        manifest => Serde(manifest), headline => headline(measured.checks), checks, headings => Serde(measured.headings),
        rows => Serde(measured.rows), command => shell_words(&manifest.command_line),
        style => Value::from_safe_string(STYLE.to_owned()),
    })?)
}
