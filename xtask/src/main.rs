//! Checks of the repository itself; `cargo test -p xtask` runs them, `cargo run -p xtask` prints what it finds, and
//! `cargo run -p xtask -- lines` how many lines of code each room has.

mod checks;
mod lines;

use std::process::ExitCode;

#[expect(clippy::print_stdout, reason = "a tool for a terminal")]
fn main() -> ExitCode {
    let root = checks::repository_root();
    match std::env::args().nth(1).as_deref() {
        None => report(&checks::all(&root)),
        Some("lines") => {
            print!("{}", lines::table(&root));
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!("xtask knows no `{other}`; it takes nothing, or `lines`");
            ExitCode::from(2)
        }
    }
}

fn report(findings: &[String]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) }
}
