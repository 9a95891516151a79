//! Embeds the plans, the scenarios, the fabric files and the revision of the source tree, so that an installed binary needs none.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.join("../..");
    embed(&root.join("plans"), "toml", "plans.rs");
    embed(&root.join("scenarios"), "toml", "scenarios.rs");
    embed(&root.join("fabrics"), "yaml", "fabrics.rs");
    revision(&root);
}

/// Writes names and lengths of every file of a kind below a folder, and their texts one behind the other, deflated.
fn embed(folder: &Path, extension: &str, list_file: &str) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(folder, extension, &mut files);
    files.sort();
    let mut list = String::from("(&[\n");
    let mut texts = ZlibEncoder::new(Vec::new(), Compression::best());
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(folder).expect("collected below it").with_extension("");
        let text = std::fs::read_to_string(file).expect("it was listed");
        writeln!(list, "({:?}, {}),", name.display().to_string(), text.len()).expect("writing to a string cannot fail");
        texts.write_all(text.as_bytes()).expect("writing to memory cannot fail");
    }
    writeln!(list, "], include_bytes!(\"{list_file}.zlib\"))").expect("writing to a string cannot fail");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    let texts = texts.finish().expect("writing to memory cannot fail");
    std::fs::write(out.join(format!("{list_file}.zlib")), texts).expect("OUT_DIR is writable");
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
