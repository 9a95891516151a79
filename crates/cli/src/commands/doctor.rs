//! `weft doctor`: what this machine can and cannot do.

use std::process::ExitCode;

use crate::args::DoctorArgs;
use crate::exit::Failure;

#[cfg(feature = "lab")]
pub(crate) fn doctor(args: &DoctorArgs, quiet: bool) -> Result<ExitCode, Failure> {
    use weft_lab::doctor;
    use weft_scenario::judge::Verdict;

    use crate::exit;
    use crate::output::{self, Rows};
    use crate::progress::TerminalProgress;

    #[derive(serde::Serialize)]
    struct Said {
        schema_version: u32,
        #[serde(flatten)]
        report: doctor::Report,
    }

    let mut report = doctor::examine();
    let mut fit = report.some_lab_can_run();
    if args.path && fit {
        let progress = TerminalProgress::new(quiet)?;
        let weft = std::env::current_exe().map_err(Failure::failed)?;
        let more = doctor::path_checks(&weft_lab::LabOptions::new(weft), &progress);
        progress.finish();
        let more = more.map_err(super::lab::failure)?;
        fit = more.iter().all(|check| check.verdict != Verdict::Fail);
        report.checks.extend(more);
    }
    let mut rows = Rows::new(&["verdict", "check", "found", "what to do"]);
    for check in &report.checks {
        rows.push(vec![check.verdict.word().to_owned(), check.name.clone(), check.found.clone(), check.remedy.clone()]);
    }
    for one in &report.uses {
        let found = if one.possible { String::new() } else { format!("because of: {}", one.because.join(", ")) };
        rows.push(vec![if one.possible { "yes" } else { "NO" }.to_owned(), one.name.to_owned(), found, String::new()]);
    }
    output::print(args.output.output, &rows, &Said { schema_version: 3, report })?;
    Ok(if fit { ExitCode::SUCCESS } else { ExitCode::from(exit::NOT_FIT) })
}

#[cfg(not(feature = "lab"))]
pub(crate) fn doctor(_args: &DoctorArgs, _quiet: bool) -> Result<ExitCode, Failure> {
    crate::output::print_line("this weft was built without the lab: it needs nothing of this machine")?;
    Ok(ExitCode::SUCCESS)
}
