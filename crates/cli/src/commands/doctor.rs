//! `weft doctor`: what this machine can and cannot do.

use std::process::ExitCode;
use std::time::Instant;

use weft_sim::{Unobserved, bench};

use crate::args::DoctorArgs;
use crate::exit::Failure;

/// The job that the simulator is tried on, and how much less of it: some thousand packets.
const TRIAL: (&str, u32) = ("r1a", 1_000);

/// Has the simulator carry some packets: what it did, or why not.
fn simulator() -> Result<String, String> {
    let (name, divisor) = TRIAL;
    let job = bench::divided(bench::job(name).ok_or("there is no job to try")?, divisor);
    let start = Instant::now();
    let outcome = weft_sim::run(&job, &mut Unobserved).map_err(|error| error.to_string())?;
    let (hops, ms) = (outcome.totals.packet_hops, start.elapsed().as_millis());
    if hops == 0 { Err("no packet moved".to_owned()) } else { Ok(format!("works: {hops} packet-hops in {ms} ms")) }
}

#[cfg(feature = "lab")]
pub(crate) fn doctor(args: &DoctorArgs, quiet: bool) -> Result<ExitCode, Failure> {
    use weft_lab::doctor;
    use weft_scenario::judge::Verdict;

    use crate::exit;
    use crate::output;
    use crate::progress::TerminalProgress;

    #[derive(serde::Serialize)]
    struct Said {
        schema_version: u32,
        #[serde(flatten)]
        report: doctor::Report,
    }

    let mut report = doctor::examine().with_simulator(simulator());
    let mut fit = report.is_fit();
    if args.path {
        fit = report.some_lab_can_run();
    }
    if args.path && fit {
        let progress = TerminalProgress::new(quiet)?;
        let weft = std::env::current_exe().map_err(Failure::failed)?;
        let more = doctor::path_checks(&weft_lab::LabOptions::new(weft), &progress);
        progress.finish();
        let more = more.map_err(super::lab::failure)?;
        fit = more.iter().all(|check| check.verdict != Verdict::Fail);
        report.checks.extend(more);
    }
    let is_short = args.output.output == crate::args::Output::Table && !doctor::is_root();
    output::print(args.output.output, &rows(&report, is_short), &Said { schema_version: 3, report })?;
    Ok(if fit { ExitCode::SUCCESS } else { ExitCode::from(exit::NOT_FIT) })
}

/// The table. The short one, for people who are not root, begins with the simulator, and has one line for all further checks that
/// pass, and one for everything that only lacks root.
#[cfg(feature = "lab")]
fn rows(report: &weft_lab::doctor::Report, is_short: bool) -> crate::output::Rows {
    use weft_scenario::judge::Verdict;

    let line = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    let mut rows = crate::output::Rows::new(&["verdict", "check", "found", "what to do"]);
    let mut passed = 0;
    for check in &report.checks {
        if is_short && check.verdict == Verdict::Pass && check.name != report.checks[0].name {
            passed += 1;
        } else {
            rows.push(line([check.verdict.word(), &check.name, &check.found, &check.remedy]));
        }
    }
    if passed > 0 {
        rows.push(line([Verdict::Pass.word(), "the rest", &format!("{passed} checks"), "-o json has them"]));
    }
    let lacks_root = |one: &&weft_lab::doctor::Possible| is_short && one.because == ["rights"];
    for one in report.uses.iter().filter(|one| !(lacks_root(one) || is_short && one.possible)) {
        let found = if one.possible { String::new() } else { format!("because of: {}", one.because.join(", ")) };
        rows.push(line([if one.possible { "yes" } else { "NO" }, one.name, &found, ""]));
    }
    match report.uses.iter().filter(lacks_root).count() {
        0 => {}
        count => rows.push(line(["root", "labs, daemons, weft measure", &format!("{count} uses"), "sudo weft doctor"])),
    }
    rows
}

#[cfg(not(feature = "lab"))]
pub(crate) fn doctor(_args: &DoctorArgs, _quiet: bool) -> Result<ExitCode, Failure> {
    let found = simulator().map_err(|why| Failure::failed(format!("the simulator does not work: {why}")))?;
    crate::output::print_line(&format!("the simulator {found}"))?;
    crate::output::print_line("this weft was built without the lab: it needs nothing of this machine")?;
    Ok(ExitCode::SUCCESS)
}
