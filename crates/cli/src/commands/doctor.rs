//! `weft doctor`: what this machine can and cannot do.

use std::process::ExitCode;

use crate::args::DoctorArgs;
use crate::exit::Failure;

#[cfg(feature = "lab")]
pub(crate) fn doctor(args: &DoctorArgs, quiet: bool) -> Result<ExitCode, Failure> {
    use weft_lab::doctor::{self, Verdict};

    use crate::exit;
    use crate::output::{self, Rows};
    use crate::progress::TerminalProgress;

    #[derive(serde::Serialize)]
    struct Checks {
        schema_version: u32,
        checks: Vec<doctor::Check>,
    }

    let mut checks = doctor::checks();
    let fit = |checks: &[doctor::Check]| checks.iter().all(|check| check.verdict != Verdict::Fail);
    if args.path && fit(&checks) {
        let progress = TerminalProgress::new(quiet)?;
        let weft = std::env::current_exe().map_err(Failure::failed)?;
        let more = doctor::path_checks(&weft_lab::LabOptions::new(weft), &progress);
        progress.finish();
        checks.extend(more.map_err(super::lab::failure)?);
    }
    let mut rows = Rows::new(&["verdict", "check", "found", "what to do"]);
    for check in &checks {
        let mark = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "note",
            Verdict::Fail => "FAIL",
        };
        rows.push(vec![mark.to_owned(), check.name.clone(), check.found.clone(), check.remedy.clone()]);
    }
    let fit = fit(&checks);
    output::print(args.output.output, &rows, &Checks { schema_version: 1, checks })?;
    Ok(if fit { ExitCode::SUCCESS } else { ExitCode::from(exit::NOT_FIT) })
}

#[cfg(not(feature = "lab"))]
pub(crate) fn doctor(_args: &DoctorArgs, _quiet: bool) -> Result<ExitCode, Failure> {
    crate::output::print_line("this weft was built without the lab: it needs nothing of this machine")?;
    Ok(ExitCode::SUCCESS)
}
