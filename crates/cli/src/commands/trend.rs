//! `weft trend`: what runs and measurements read over builds or kernels.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::table::{plain, quantity, range};
use weft_experiment::trend::{self, By, Change, Row};

use crate::args::{ByChoice, Output, TrendArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

/// What `-o json` prints.
#[derive(Serialize)]
struct Series<'a> {
    schema_version: u32,
    rows: &'a [Row],
}

const HEADINGS: [&str; 8] =
    ["measured", "metric", "group", "runs", "mean", "interval", "over the one before", "change"];

pub(crate) fn trend(args: &TrendArgs) -> Result<ExitCode, Failure> {
    if args.least.share() >= 1.0 {
        return Err(Failure::usage("--least is a share below 100%"));
    }
    let by = match args.by {
        ByChoice::Build => By::Build,
        ByChoice::Kernel => By::Kernel,
        ByChoice::Folder => By::Folder,
    };
    let points = args.folders.iter().map(|folder| trend::read(folder)).collect::<Result<Vec<_>, _>>();
    let points =
        points.map_err(|error| if error.is_misnamed() { Failure::usage(error) } else { Failure::failed(error) })?;
    let mut rows = trend::rows(&points, by, args.least.share());
    let count = |wanted: Change| rows.iter().filter(|row| row.change == Some(wanted)).count();
    let (worse, better, other) = (count(Change::Worse), count(Change::Better), count(Change::Other));
    let unknown = count(Change::Unknown) > 0;
    if args.changes {
        rows.retain(|row| matches!(row.change, Some(Change::Worse | Change::Better | Change::Other)));
    }
    print(&rows, args.output.output)?;
    if args.output.output == Output::Table {
        output::print_line(&format!("\n{worse} worse, {better} better, {other} changed"))?;
        if unknown {
            eprintln!(
                "weft: warning: where `change` is ? a group has one run, which shows no spread; run it again, better four times"
            );
        }
    }
    Ok(if worse > 0 && args.fail_if_worse { ExitCode::from(exit::CLAIM_FAILED) } else { ExitCode::SUCCESS })
}

fn print(rows: &[Row], format: Output) -> Result<(), Failure> {
    let mut table = Rows::new(&HEADINGS);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        let ratio = row.over_before.map(|ratio| match row.over_before_interval {
            Some(ends) => format!("{} ({})", plain(ratio), range(ends, "")),
            None => plain(ratio),
        });
        table.push(vec![
            row.subject.clone(),
            row.metric.clone(),
            row.group.clone(),
            row.runs.to_string(),
            quantity(row.value, &row.unit),
            or_dash(row.interval.map(|ends| range(ends, &row.unit))),
            or_dash(ratio),
            row.change.map_or("-", Change::word).to_owned(),
        ]);
    }
    output::print(format, &table, &Series { schema_version: 1, rows })
}
