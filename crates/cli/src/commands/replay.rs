//! `weft measure replay`: frames of a capture file over a path.

use std::process::ExitCode;

use weft_experiment::measurement::Reading;
use weft_lab::tester::TesterError;
use weft_lab::tester::replay::{self, ReplayOptions, ReplayReport, ReplayRow};
use weft_scenario::engine::Progress;
use weft_scenario::judge::Relation;

use super::measure::{dash, percent, word};
use super::saving::Saving;
use crate::args::{Output, ReplayArgs};
use crate::exit::Failure;
use crate::output::Rows;

pub(super) fn report(args: ReplayArgs, progress: &dyn Progress) -> Result<ReplayReport, TesterError> {
    let ReplayArgs { frames, tx, rx, rate, trial, rounds } = args;
    let options = ReplayOptions { sending: tx, receiving: rx, file: frames, rates_pps: rate, trial: trial.0, rounds };
    replay::replay(&options, progress)
}

/// Rows, and on standard error what is the same for all of them.
pub(super) fn print(saving: Saving, report: &ReplayReport, quiet: bool) -> Result<ExitCode, Failure> {
    if saving.format == Output::Table && !quiet {
        let counted = if report.counted_in_driver { "in the driver" } else { "in the stack" };
        eprintln!(
            "{} frames of {:.0} bytes on average; sent by {} from core {}, counted {counted}",
            report.frames,
            report.frame_bytes,
            word(&report.means),
            report.cpu
        );
    }
    saving.print(&rows(&report.rows), report, readings(&report.rows), &[])?;
    Ok(ExitCode::SUCCESS)
}

fn rows(rows: &[ReplayRow]) -> Rows {
    let mut table = Rows::new(&[
        "asked pps",
        "offered pps",
        "received pps",
        "L2 Gbit/s",
        "sent",
        "received",
        "lost",
        "loss %",
        "duplicated",
        "foreign",
        "slips",
    ]);
    for row in rows {
        let account = row.account;
        table.push(vec![
            row.asked_pps.map_or_else(dash, |pps| format!("{pps:.0}")),
            format!("{:.0}", row.offered_pps),
            format!("{:.0}", row.received_pps),
            format!("{:.3}", row.layer2_bps / 1e9),
            account.sent.to_string(),
            account.received.to_string(),
            account.lost.to_string(),
            percent(row.loss_ratio),
            account.duplicated.to_string(),
            account.foreign.to_string(),
            row.slips.to_string(),
        ]);
    }
    table
}

fn readings(rows: &[ReplayRow]) -> Vec<Reading> {
    let place = |row: &ReplayRow| row.asked_pps.map_or("unpaced".to_owned(), |pps| format!("{pps:.0}"));
    let of = |row: &ReplayRow| {
        [
            Reading::new(format!("received_pps.{}", place(row)), row.received_pps, "frames/s", Relation::AtLeast),
            Reading::new(format!("loss_ratio.{}", place(row)), row.loss_ratio, "ratio", Relation::AtMost),
        ]
    };
    rows.iter().flat_map(of).collect()
}
