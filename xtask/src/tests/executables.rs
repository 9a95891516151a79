//! The test executables of the workspace, as cargo builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// The package's, from the root; cargo runs it there.
    pub(super) folder: PathBuf,
    /// The file that its source begins with, from the root.
    pub(super) source: PathBuf,
    pub(super) path: PathBuf,
}

/// A line of cargo's that says what was built, or something else.
#[derive(Deserialize)]
struct Line {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The program that this one was started by, if it was cargo.
pub(super) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds them all; cargo itself says on standard error what it does and what is wrong.
pub(super) fn build(root: &Path) -> Result<Vec<Executable>, String> {
    let output = cargo()
        .args(["test", "--release", "--locked", "--workspace", "--no-run", "--message-format=json-render-diagnostics"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not build: cargo: {}", output.status));
    }
    let mut found: Vec<Executable> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| read(line, root)).collect();
    found.sort_by(|a, b| a.source.cmp(&b.source));
    if found.is_empty() { Err("cargo built no test".to_owned()) } else { Ok(found) }
}

fn read(line: &str, root: &Path) -> Option<Executable> {
    let line: Line = serde_json::from_str(line).ok()?;
    if !line.profile?.test {
        return None;
    }
    let below_root = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
    Some(Executable {
        folder: below_root(line.manifest_path?.parent()?),
        source: below_root(&line.target?.src_path),
        path: line.executable?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_are_taken_from_what_cargo_says() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/root/crates/lab/Cargo.toml","target":{{"src_path":
                "/root/crates/lab/tests/vl2.rs","kind":["test"]}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let vl2 = read(&line(true, r#""/root/target/release/deps/vl2-1""#), Path::new("/root"));
        let expected = Executable {
            folder: "crates/lab".into(),
            source: "crates/lab/tests/vl2.rs".into(),
            path: "/root/target/release/deps/vl2-1".into(),
        };
        assert_eq!(vl2, Some(expected));
        for other in
            [line(false, r#""/root/target/release/weft""#), line(true, "null"), r#"{"reason":"build-finished"}"#.into()]
        {
            assert_eq!(read(&other, Path::new("/root")), None, "{other}");
        }
    }
}
