//! `weft bench tester`: the test centre's own cost, floor and pacing.

use std::process::ExitCode;

use weft_lab::tester::own;
use weft_scenario::engine::EngineError;

use crate::args::Output;
use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn tester(saving: Saving, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = TerminalProgress::new(quiet)?;
    let report = own::run(&progress);
    progress.finish();
    let report = report.map_err(|error| Failure::from(EngineError::from(error)))?;
    let (mut rows, own) = (Rows::new(&["what", "value"]), &report.own);
    for (what, value) in [
        ("generator and analyser, CPU ns/frame", format!("{:.0}", own.generator_ns)),
        ("generator, Mpps on one core", format!("{:.2}", own.generator_pps / 1e6)),
        ("latency floor p50, p99, ns", format!("{}, {}", own.floor_p50_ns, own.floor_p99_ns)),
        ("a kernel bridge, CPU ns/frame", format!("{:.0}", report.bridge.cpu_ns)),
        ("a kernel bridge, latency ns", format!("{:.0}", report.bridge.latency_ns)),
    ] {
        rows.push(vec![what.to_owned(), value]);
    }
    let format = saving.format;
    saving.print(&rows, &report, Vec::new(), &report.checks)?;
    if format == Output::Table && report.bridge.is_slower_machine() {
        output::print_line(
            "a slower machine than the one that floors in ns were set on: ratios to a kernel bridge count",
        )?;
    }
    output::judged(format, &report.checks)
}
