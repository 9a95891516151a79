//! The Debian package holds what `make install` installs, and `make uninstall` takes all of it away. `make package-test` installs it on a
//! bare Debian.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::text;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it is on every Debian");
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Files below a folder, by their whole paths on the machine.
fn files(folder: &Path) -> BTreeSet<String> {
    let list = run(Command::new("find").arg(folder).args(["-type", "f", "-printf", "/%P\n"]));
    list.lines().map(str::to_owned).collect()
}

#[test]
fn it_holds_what_is_installed_and_uninstall_leaves_nothing() {
    if !weft_needs::program("dpkg-shlibdeps") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (tree, out) = (dir.path().join("tree"), dir.path().join("out"));
    let weft = env!("CARGO_BIN_EXE_weft");
    run(Command::new(root().join("scripts/install.sh")).args([weft, "/usr"]).arg(&tree));
    let installed = files(&tree);
    for wanted in ["/usr/bin/weft", "/usr/lib/systemd/system/weft-agent.service", "/etc/weft/examples/agent.toml"] {
        assert!(installed.contains(wanted), "{installed:?}");
    }

    let build = root().join("scripts/package/build.sh");
    let package = run(Command::new(build).args(["weft", weft]).arg(&out).env("COMPRESSION", "none"));
    let package = package.trim();
    let unpacked = dir.path().join("unpacked");
    run(Command::new("dpkg-deb").args(["--raw-extract", package]).arg(&unpacked));
    let control = unpacked.join("DEBIAN");
    let conffiles = std::fs::read_to_string(control.join("conffiles")).unwrap();
    assert_eq!(conffiles.lines().count(), 6, "{conffiles}");
    let said = std::fs::read_to_string(control.join("control")).unwrap();
    assert!(said.contains("\nDepends: libc6 (>= ") && said.contains(", iproute2") && said.contains("frr"), "{said}");
    std::fs::remove_dir_all(&control).unwrap();
    assert_eq!(files(&unpacked), installed);
    let owners = run(Command::new("dpkg-deb").args(["--contents", package]));
    assert!(owners.lines().all(|line| line.contains(" root/root ")), "{owners}");

    let destination = format!("DESTDIR={}", tree.display());
    run(Command::new("make").current_dir(root()).args([
        "--no-print-directory",
        "uninstall",
        "PREFIX=/usr",
        &destination,
    ]));
    assert_eq!(files(&tree), BTreeSet::new());
}
