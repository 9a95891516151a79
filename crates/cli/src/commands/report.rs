//! `weft report`: the report of finished runs, drawn again from their raw rows.

use std::process::ExitCode;

use crate::args::ReportArgs;
use crate::exit::Failure;
use crate::output;

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let report = weft_experiment::report::redraw(&args.runs).map_err(Failure::failed)?;
    output::print_line(&format!("report: {}", report.display()))?;
    Ok(ExitCode::SUCCESS)
}
