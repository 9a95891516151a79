//! Checks of the repository itself; `cargo test -p xtask` runs them, `cargo run -p xtask` prints what it finds.

mod checks;

use std::process::ExitCode;

fn main() -> ExitCode {
    let findings = checks::all(&checks::repository_root());
    for finding in &findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) }
}
