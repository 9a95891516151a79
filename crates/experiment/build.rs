//! Embeds the plans, the fabric files and the revision of the source tree, so that an installed binary needs none.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.join("../..");
    embed(&root.join("plans"), "toml", "plans.rs");
    embed(&root.join("fabrics"), "yaml", "fabrics.rs");
    revision(&root);
}

/// Writes a list of name and text of every file of a kind below a folder.
fn embed(folder: &Path, extension: &str, list_file: &str) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(folder, extension, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(folder).expect("collected below it").with_extension("");
        writeln!(list, "({:?}, include_str!({:?})),", name.display().to_string(), file.display().to_string())
            .expect("writing to a string cannot fail");
    }
    list.push(']');
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join(list_file), list).expect("OUT_DIR is writable");
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

/// Sets `WEFT_GIT_REVISION` if the sources are a git checkout with a commit.
fn revision(root: &Path) {
    let head = root.join(".git/logs/HEAD");
    if head.exists() {
        println!("cargo::rerun-if-changed={}", head.display());
    }
    let output = Command::new("git").arg("-C").arg(root).args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Ok(output) = output
        && output.status.success()
    {
        println!("cargo::rustc-env=WEFT_GIT_REVISION={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
