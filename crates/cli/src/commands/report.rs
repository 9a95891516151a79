//! `weft report`: the report of finished runs, drawn again from their raw rows, and the runs beside each other.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::comparison::{self, Bar, Held, Reading};
use weft_experiment::report::{ReportError, redraw};

use crate::args::{Output, ReportArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

/// What `-o json` prints.
#[derive(Serialize)]
struct Drawn<'a> {
    schema_version: u32,
    report: String,
    readings: &'a [Reading],
}

/// Says which bars do not hold; the exit code is what they come to.
fn hold(bars: &[Bar], readings: &[Reading]) -> Result<ExitCode, Failure> {
    let mut held = Vec::new();
    for bar in bars {
        let outcome = bar.hold(readings);
        match outcome {
            Held::Holds => {}
            Held::Hidden => {
                eprintln!("weft: warning: `{bar}` may be so: the intervals of the runs have something in common")
            }
            Held::Fails => eprintln!("weft: `{bar}` is so"),
            Held::Missing => {
                return Err(Failure::failed(format!("`{bar}`: no two of these runs have the claim with a number")));
            }
        }
        held.push(outcome);
    }
    Ok(match () {
        () if held.contains(&Held::Fails) => ExitCode::from(exit::CLAIM_FAILED),
        () if held.contains(&Held::Hidden) => ExitCode::from(exit::INCONCLUSIVE),
        () => ExitCode::SUCCESS,
    })
}

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let redrawn = redraw(&args.runs).map_err(|error| match &error {
        ReportError::Folder(folder) if folder.is_misnamed() => Failure::usage(error),
        _ => Failure::failed(error),
    })?;
    let (readings, format) = (comparison::readings(&redrawn.summaries), args.output.output);
    let page = redrawn.page.display().to_string();
    if format != Output::Table || !readings.is_empty() {
        let mut rows = Rows::new(&comparison::HEADINGS);
        readings.iter().for_each(|reading| rows.push(comparison::cells(reading).to_vec()));
        output::print(format, &rows, &Drawn { schema_version: 1, report: page.clone(), readings: &readings })?;
    }
    if format == Output::Table {
        output::print_line(&format!("report: {page}"))?;
    }
    hold(&args.fail_if, &readings)
}
