//! The pages of docs that say how to run daemons on machines of one's own, each command word for word.

use std::path::Path;
use std::process::Command;

use crate::common::{one_lab_at_a_time, text};

/// Runs a page's commands on machines made of namespaces, and its checks. It takes its turn with labs: tests that compare the machine
/// before and after would see the daemons.
fn run_page(page: &str) {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join("scripts/deployment/run.sh"));
    let output =
        command.arg(root.join(page)).arg(env!("CARGO_BIN_EXE_weft")).output().expect("bash is on every Debian");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{page}: {said}{errors}");
    assert!(said.trim_end().ends_with("and nothing is left"), "{page}: {said}{errors}");
}

#[test]
fn vl2_on_six_machines_as_documented() {
    run_page("docs/vl2.md");
}

#[test]
fn a_campus_of_rbridges_as_documented() {
    run_page("docs/rbridge.md");
}

#[test]
fn a_vtep_and_the_kernels_vxlan_device_as_documented() {
    run_page("docs/vtep.md");
}

#[test]
fn a_command_that_names_no_machine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("vl2.md");
    std::fs::write(&page, "```sh\n# on srv1\ntrue\n```\n\n```sh\nweft node agent\n```\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/deployment/run.sh");
    let output = Command::new(script).arg(&page).arg(env!("CARGO_BIN_EXE_weft")).output().unwrap();
    let errors = text(&output.stderr);
    assert!(!output.status.success() && (errors.contains("line 7") || errors.contains("needs root")), "{errors}");
}
