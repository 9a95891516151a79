//! `weft lab down`.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::ExitCode;

use weft_lab::{HeldLab, Removed, Survey};

use super::failure;
use crate::args::LabName;
use crate::exit::Failure;
use crate::output;

/// Takes one lab down.
pub(super) fn one(lab: LabName) -> Result<ExitCode, Failure> {
    let name =
        lab.given().ok_or_else(|| Failure::usage("which lab? Name it (weft lab ps lists them), or all: --all"))?;
    tell(&weft_lab::down(&name).map_err(failure)?);
    Ok(ExitCode::SUCCESS)
}

/// Takes all labs down that no run is at work with, and what killed runs left; asks before, unless `yes`.
pub(super) fn all(yes: bool) -> Result<ExitCode, Failure> {
    let survey = weft_lab::survey().map_err(failure)?;
    let goes = going(&survey);
    if !goes.is_empty() && !yes {
        confirm(&survey, &goes)?;
    }
    let removed = weft_lab::down_all().map_err(failure)?;
    output::print_line(&format!("removed {} labs and {} leftovers", removed.labs.len(), removed.strays.len()))?;
    survey.held.iter().for_each(|held| eprintln!("{}", spared(held)));
    tell(&removed);
    Ok(ExitCode::SUCCESS)
}

/// A line for everything that would go.
fn going(survey: &Survey) -> Vec<String> {
    let lab = |lab: &weft_lab::LabRow| {
        format!("lab {} ({}, {}, {} nodes, {})", lab.lab, lab.fabric, lab.overlay, lab.nodes, lab.status)
    };
    let strays = survey.strays.iter().map(|stray| format!("left over: {stray}"));
    survey.labs.iter().map(lab).chain(strays).collect()
}

fn spared(HeldLab { lab, pid, command }: &HeldLab) -> String {
    format!("spared: lab {lab}, with which process {pid} is at work ({command}); end that, or: weft lab down {lab}")
}

/// Lists what goes and asks; an error if the answer is no, or there is nobody to ask.
fn confirm(survey: &Survey, goes: &[String]) -> Result<(), Failure> {
    for line in goes.iter().cloned().chain(survey.held.iter().map(spared)) {
        eprintln!("  {line}");
    }
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(Failure::usage(
            "nothing was taken down: there is no terminal to ask on; to take all of that down, add --yes",
        ));
    }
    eprint!("Take all of that down? [y/N] ");
    stderr().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was taken down")),
    }
}

/// Says what was left alone.
fn tell(removed: &Removed) {
    removed.left.iter().for_each(|left| eprintln!("left alone: {left}"));
}
