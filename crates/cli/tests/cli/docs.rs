//! README.md and the pages of docs that say how to run daemons on machines of one's own, each command word for word.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{one_lab_at_a_time, text};

/// Runs a page by its file.
fn page(page: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/docs/run.sh");
    Command::new(script).arg(page).arg(env!("CARGO_BIN_EXE_weft")).output().expect("bash is on every Debian")
}

/// Runs a page's commands, and its checks, in namespaces. It takes its turn with labs: tests that compare the machine before and after
/// would see the daemons.
fn run_page(name: &str, end: &str) {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let output = page(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name));
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{name}: {said}{errors}");
    assert!(said.trim_end().contains(end), "{name}: {said}{errors}");
}

/// The simulator's blocks print what the page says, and its labs come up, with the programs of a bare Debian and of the packages for building
/// and running weft alone. What takes longer or installs is for `make readme`, on fresh Debians.
#[test]
fn the_readme_pasted_block_by_block() {
    if weft_needs::packages("build") {
        run_page("README.md", "that are for this machine ran");
    }
}

/// Its plan in the lab and its fabrics included.
#[test]
fn scenarios_and_plans_of_ones_own_as_documented() {
    if weft_needs::packages("build") {
        run_page("docs/scenarios.md", "that are for this machine ran");
    }
}

/// A page of that text, pasted: whether it ran, and what was said of it.
fn pasted(page_text: &str) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.md");
    std::fs::write(&file, page_text).unwrap();
    let output = page(&file);
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn what_a_pasted_page_does_otherwise_is_told_with_its_line() {
    if !weft_needs::root() || !weft_needs::packages("run") || !weft_needs::packages("build") {
        return;
    }
    for (page, told) in [
        ("```sh\ntrue\nfor i in 1; do\n  false && true\ndone\n```\n", "page.md:4: failed: "),
        ("```sh\ntrue\ntshark --version\n```\n", "page.md:3: failed: tshark --version"),
        ("```console\n$ echo 5\n5\n$ echo 6\n7\n```\n", "page.md:4: prints something else"),
        ("```console\n$ echo 5\n5\n```\n\n```console\n$ echo 5; false\n5\n```\n", "page.md:7: failed: "),
        ("<!-- numbers vary -->\n```console\n$ echo 5 ms\n5 s\n```\n", "page.md:3: prints something else"),
        ("```console\n$ seq 3\n1\n...\n4\n```\n", "page.md:2: prints something else"),
        ("text\n\n```\nls\n```\n", "line 3: neither commands"),
        ("<!-- not run: no -->\n```json\n{}\n```\n", "line 2: a mark above a block that has no commands"),
    ] {
        let (ran, said) = pasted(page);
        assert!(!ran && said.contains(told), "{page}: {said}");
    }
}

#[test]
fn a_pasted_page_goes_on_where_it_was_and_may_have_files_and_numbers() {
    if !weft_needs::root() || !weft_needs::packages("run") || !weft_needs::packages("build") {
        return;
    }
    let (ran, said) = pasted(
        "```sh\nmkdir -p a && cd a\nsudo touch f\n```\n\n<!-- file: b.toml -->\n```toml\nb = \"1 && 2\"\n```\n\n\
         <!-- numbers vary -->\n```console\n$ ls; echo '  12.5 ms'; seq 9\nb.toml\nf\n 3 ms\n...\n9\n```\n\n\
         ```sh\nuntil false || test -e f; do true; done   # words of the shell\ngrep -q '1 && 2' b.toml\n```\n\n\
         <!-- not run: it would fail -->\n```sh\nfalse\n```\n",
    );
    assert!(ran && said.contains("all 4 blocks of "), "{said}");
}

#[test]
fn vl2_on_six_machines_as_documented() {
    run_page("docs/vl2.md", "and nothing is left");
}

#[test]
fn a_campus_of_rbridges_as_documented() {
    run_page("docs/rbridge.md", "and nothing is left");
}

#[test]
fn a_vtep_and_the_kernels_vxlan_device_as_documented() {
    run_page("docs/vtep.md", "and nothing is left");
}

#[test]
fn a_command_that_names_no_machine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("vl2.md");
    std::fs::write(&file, "```sh\n# on srv1\ntrue\n```\n\n```sh\nweft node agent\n```\n").unwrap();
    let output = page(&file);
    let errors = text(&output.stderr);
    assert!(!output.status.success() && (errors.contains("line 7") || errors.contains("needs root")), "{errors}");
}
