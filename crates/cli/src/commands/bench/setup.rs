//! `weft bench setup`: how long it takes until something stands.

use std::process::ExitCode;

use weft_lab::setup::{self, SetupOptions};

use crate::commands::lab;
use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn setup(rounds: u32, saving: Saving, quiet: bool) -> Result<ExitCode, Failure> {
    let options = SetupOptions { weft_binary: lab::this_program().map_err(Failure::failed)?, rounds };
    let progress = TerminalProgress::new(quiet)?;
    let report = setup::run(&options, &progress);
    progress.finish();
    let report = report.map_err(Failure::from)?;
    let mut rows = Rows::new(&["what", "value"]);
    let seconds = |all: &[f64]| all.iter().map(|one| format!("{one:.2}")).collect::<Vec<_>>().join(", ");
    let (lab, month) = (&report.lab, &report.month);
    let mut push = |what: String, value: String| rows.push(vec![what, value]);
    push(format!("lab of {} nodes: up, s", lab.nodes), seconds(&lab.up_s));
    push("  down, s".to_owned(), seconds(&lab.down_s));
    for campus in &report.campuses {
        push(format!("{} RBridges ({}): CPU s", campus.rbridges, campus.shape), format!("{:.1}", campus.took.cpu_s));
        push("  computations of routes".to_owned(), output::number(campus.computations as f64));
        push("  one of them, median, ms of CPU".to_owned(), format!("{:.2}", campus.computation_ms));
        push("  PDUs".to_owned(), output::number(campus.pdus as f64));
        push("  last change of a route, s of their time".to_owned(), format!("{:.1}", campus.settled_s));
    }
    push(format!("a month of {} switches: CPU s", month.switches), format!("{:.2}", month.took.cpu_s));
    push("  states of the network".to_owned(), month.states.to_string());
    let format = saving.format;
    saving.print(&rows, &report, Vec::new(), &report.checks)?;
    output::judged(format, &report.checks)
}
