//! Checks of the repository itself; `cargo test -p xtask` runs them, `cargo run -p xtask` prints what it finds,
//! `cargo run -p xtask -- lines` how many lines of code each room has, `cargo run -p xtask -- records` the page
//! `docs/records.md`, `cargo run -p xtask -- supply` what is wrong with the dependencies, `.. -- sbom` the bill of materials,
//! `.. -- test FILE` every test but the long ones and what they came to, and `.. -- test-long FILE` the long ones.

mod checks;
mod features;
mod lines;
mod supply;
mod tests;

use std::process::ExitCode;

fn main() -> ExitCode {
    let root = checks::repository_root();
    match std::env::args().nth(1).as_deref() {
        None => report(&checks::all(&root)),
        Some("supply") => report(&supply::findings(&root)),
        Some("sbom") => match supply::sbom(&root) {
            Ok(bill) => print(&bill),
            Err(why) => report(&[why]),
        },
        Some("lines") => print(&lines::table(&root)),
        Some(which @ ("test" | "test-long")) => {
            let which = if which == "test" { tests::Which::Usual } else { tests::Which::Long };
            let recorded = std::env::args().nth(2).unwrap_or_default();
            match tests::run(&root, which, recorded.as_ref()) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(3),
                Err(why) => report(&[why]),
            }
        }
        Some("records") => print(&weft_experiment::run_folder::records_page()),
        Some(other) => {
            eprintln!(
                "xtask knows no `{other}`; it takes nothing, `lines`, `records`, `supply`, `sbom`, `test` or `test-long`"
            );
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stdout, reason = "a tool for a terminal")]
fn print(text: &str) -> ExitCode {
    print!("{text}");
    ExitCode::SUCCESS
}

fn report(findings: &[String]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) }
}
