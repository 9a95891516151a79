//! Verbs that change a lab while it is up.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_lab::validate::Wanted;
use weft_lab::{Change, Impaired, Impairment, LabError, LabOptions, Move};
use weft_scenario::fault::FaultKind;

use super::{failure, lab_name, this_program};
use crate::args::{ImpairArgs, LiveArgs, Output};
use crate::commands::fabric;
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

/// Breaks a switch, or what is between two nodes.
pub(super) fn fail(
    what: &[String],
    common: LiveArgs,
    quiet: bool,
    of_switch: fn(String) -> FaultKind,
    of_link: fn(String, String) -> FaultKind,
) -> Result<ExitCode, Failure> {
    let fault = match what {
        [node] => of_switch(node.clone()),
        [a, b, ..] => of_link(a.clone(), b.clone()),
        [] => return Err(Failure::usage("name a switch, or the two ends of a link")),
    };
    change(common, quiet, |lab, progress| weft_lab::fail(lab, &fault, progress))
}

/// Makes the links between two nodes worse.
pub(super) fn impair(ends: &[String], how: &ImpairArgs, common: LiveArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let [a, b] = ends else { return Err(Failure::usage("name the two ends of a link")) };
    let by = Impairment {
        loss_percent: how.loss.unwrap_or_default().0,
        seed: how.seed,
        rate: how.rate,
        delay: how.delay,
        jitter: how.jitter,
        reorder_percent: how.reorder.unwrap_or_default().0,
    };
    change(common, quiet, |lab, progress| weft_lab::impair(lab, [a, b], &by, how.one_way, progress))
}

pub(super) fn repair(what: &[String], common: LiveArgs, quiet: bool) -> Result<ExitCode, Failure> {
    change(common, quiet, |lab, progress| weft_lab::repair(lab, what, progress))
}

/// Makes another fabric of a lab.
pub(super) fn apply(file: &str, common: LiveArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let (lab, fabric) = (lab_name(common.lab)?, fabric::read(file)?);
    let options = LabOptions::new(this_program().map_err(Failure::failed)?);
    let progress = TerminalProgress::new(quiet)?;
    let applied = weft_lab::apply(&lab, &fabric, &options, &progress);
    progress.finish();
    let applied = applied.map_err(failure)?;
    let mut rows = Rows::new(&["node", "what"]);
    for (names, what) in [(&applied.come, "came"), (&applied.gone, "went"), (&applied.changed, "has other links")] {
        names.iter().for_each(|name| rows.push(vec![name.clone(), what.to_owned()]));
    }
    let took_s = applied.took_s;
    output::print(common.output.output, &rows, &Said { schema_version: 1, what: applied })?;
    if !quiet {
        eprintln!("done in {took_s:.1} s");
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes a server to another rack.
pub(super) fn move_server(server: &str, edge: &str, common: LiveArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let lab = lab_name(common.lab)?;
    let options = LabOptions::new(this_program().map_err(Failure::failed)?);
    let progress = TerminalProgress::new(quiet)?;
    let moved = weft_lab::move_server(&lab, [server, edge], &options, &progress);
    progress.finish();
    let moved = moved.map_err(failure)?;
    let mut rows = Rows::new(&["server", "from", "to", "LA", "away", "directory told"]);
    let ms = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    let Move { server, from, to, la, away_s, told_s, .. } = moved.clone();
    rows.push(vec![server, from, to, la.to_string(), ms(away_s), ms(told_s)]);
    output::print(common.output.output, &rows, &Said { schema_version: 1, what: moved })?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the lab, and ends with 3 if it does not do what it should.
pub(super) fn validate(checks: Option<&Path>, common: LiveArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let wanted = match checks {
        None => Wanted::default(),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
            Wanted::read(&text, &file.display().to_string()).map_err(Failure::usage)?
        }
    };
    let lab = lab_name(common.lab)?;
    let progress = TerminalProgress::new(quiet)?;
    let validation = weft_lab::validate::validate(&lab, &wanted, &progress);
    progress.finish();
    let validation = validation.map_err(failure)?;
    let mut rows = Rows::new(&["check", "of", "verdict", "found"]);
    for check in &validation.checks {
        let verdict = match check.passed {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "not checked",
        };
        rows.push(vec![check.check.to_owned(), check.subject.clone(), verdict.to_owned(), check.found.clone()]);
    }
    output::print(common.output.output, &rows, &validation)?;
    Ok(if validation.passed() { ExitCode::SUCCESS } else { ExitCode::from(exit::CLAIM_FAILED) })
}

#[derive(Serialize)]
struct Said<T> {
    schema_version: u32,
    #[serde(flatten)]
    what: T,
}

fn change(
    common: LiveArgs,
    quiet: bool,
    work: impl FnOnce(&str, &TerminalProgress) -> Result<Change, LabError>,
) -> Result<ExitCode, Failure> {
    let lab = lab_name(common.lab)?;
    let progress = TerminalProgress::new(quiet)?;
    let change = work(&lab, &progress).map_err(failure)?;
    let rows = amiss(&change.broken, &change.impaired);
    let (amiss, kernel_ms, routes_s) = (rows.rows.len(), change.kernel_s * 1e3, change.routes_s);
    output::print(common.output.output, &rows, &Said { schema_version: 1, what: change })?;
    if !quiet {
        let routes =
            routes_s.map_or_else(String::new, |seconds| format!(", routes followed {:.0} ms later", seconds * 1e3));
        let rest = if amiss == 0 { "nothing is broken" } else { "mend it: weft lab repair" };
        eprintln!("done in {kernel_ms:.0} ms{routes}; {rest}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Says, if anything is broken or worse than it should be, what.
pub(super) fn print_amiss(broken: &[FaultKind], impaired: &[Impaired]) -> Result<(), Failure> {
    let rows = amiss(broken, impaired);
    if rows.rows.is_empty() {
        return Ok(());
    }
    output::print_line("")?;
    output::print(Output::Table, &rows, &())
}

/// What is broken, and what is worse than it should be.
fn amiss(broken: &[FaultKind], impaired: &[Impaired]) -> Rows {
    let mut rows = Rows::new(&["broken", "how"]);
    for fault in broken {
        let (what, how) = words(fault);
        rows.push(vec![what, how.to_owned()]);
    }
    for one in impaired {
        rows.push(vec![format!("{} -> {}", one.from, one.to), one.by.to_string()]);
    }
    rows
}

fn words(fault: &FaultKind) -> (String, &'static str) {
    match fault {
        FaultKind::SwitchDown { node } => (node.clone(), "down"),
        FaultKind::SwitchSilent { node } => (node.clone(), "silent"),
        FaultKind::LinkDown { a, b } => (format!("{a} {b}"), "down"),
        FaultKind::LinkSilent { a, b } => (format!("{a} {b}"), "silent"),
    }
}
