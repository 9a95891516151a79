//! The program as `make` calls it. That it is here also has cargo build it with all other tests' features, and not a second time.

use std::process::Command;

#[test]
fn a_word_that_it_does_not_know_is_refused_with_those_that_it_does() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tests").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no `tests`") && said.contains("`test`"), "{said}");
}
