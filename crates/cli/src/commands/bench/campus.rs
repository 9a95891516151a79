//! `weft bench campus`: how soon a campus of RBridges has new routes when links fail.

use std::process::ExitCode;

use weft_lab::setup::failures::{self, FailuresOptions, Spread};

use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn campus(options: &FailuresOptions, saving: Saving, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = TerminalProgress::new(quiet)?;
    let report = failures::run(options, &progress);
    progress.finish();
    let report = report.map_err(Failure::from)?;
    let mut rows = Rows::new(&["what", "median", "99 %", "worst"]);
    let mut push = |what: &str, spread: Spread| {
        let numbers = [spread.median, spread.p99, spread.worst].map(|value| format!("{value:.2}"));
        rows.push([vec![what.to_owned()], numbers.into()].concat());
    };
    push("the last RBridge has new routes after, ms", report.last_rbridge_ms);
    push("each RBridge with other routes, ms", report.each_rbridge_ms);
    push("  the last is told by an LSP after, ms", report.told_ms);
    push("  one computation, ms of CPU", report.computation_ms);
    let format = saving.format;
    saving.print(&rows, &report, Vec::new(), &report.checks)?;
    output::judged(format, &report.checks)
}
