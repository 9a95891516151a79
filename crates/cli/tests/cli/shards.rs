//! A sweep in parts, from the outside: parts that are killed, run out of disk or meet each other lose nothing, and merged
//! they are the bytes of one run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{text, wait_for, weft};

pub(crate) const SWEEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/plans/small-sweep.toml");

/// Starts in `dir`, so that runs in several folders are called alike.
fn weft_in(dir: &Path, args: &[&str]) -> Command {
    let mut command = weft();
    command.current_dir(dir).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(dir: &Path, args: &[&str]) -> Output {
    weft_in(dir, args).output().expect("the binary starts")
}

fn ok(dir: &Path, args: &[&str]) {
    let output = done(dir, args);
    assert!(output.status.success(), "weft {}: {}", args.join(" "), text(&output.stderr));
}

/// Every file below a run folder, but the one that says when and where it was made.
pub(crate) fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in [folder.to_owned(), folder.join("records")] {
        for path in std::fs::read_dir(&folder).expect("the run left it").map(|entry| entry.expect("it is there").path())
        {
            if path.is_file() && !path.ends_with("manifest.json") {
                found.insert(path.file_name().expect("it has a name").into(), std::fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// Whole trials of a shard.
fn whole(shard: &Path) -> usize {
    let entries = std::fs::read_dir(shard.join("trials")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_none() && entry.path().join("index.json").is_file()).count()
}

#[test]
fn three_shards_of_which_one_is_killed_are_one_run_to_the_byte() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (one, parts) = (dir.path().join("one"), dir.path().join("parts"));
    for folder in [&one, &parts] {
        std::fs::create_dir(folder).expect("the folder is ours");
    }
    ok(&one, &["run", SWEEP, "--engine", "sim", "--out", "result"]);
    ok(&parts, &["run", SWEEP, "--shard", "1/3", "--out", "1"]);
    ok(&parts, &["run", SWEEP, "--shard", "3/3", "--out", "3", "-o", "json"]);

    let second = ["run", SWEEP, "--shard", "2/3", "--out", "2", "--workers", "1"];
    let mut child = weft_in(&parts, &second).spawn().expect("the binary starts");
    wait_for("a finished trial", || whole(&parts.join("2")) >= 1);
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    let left = whole(&parts.join("2"));
    assert!((1..4).contains(&left), "{left} trials");
    let output = done(&parts, &["merge", "1", "2", "3", "--out", "result"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{} of 12 trials are missing: shard 2/3 (2) lacks trial", 4 - left)), "{said}");
    assert!(said.contains("--seed 1 --shard 2/3 --out 2"), "{said}");
    assert!(!parts.join("result").exists() && whole(&parts.join("2")) == left);

    let output = done(&parts, &second);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains(&format!("{left} of 4 runs are there from before")), "{said}");
    ok(&parts, &["merge", "1", "2", "3", "--out", "result"]);
    let (merged, whole_run) = (bytes(&parts.join("result")), bytes(&one.join("result")));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&merged), names(&whole_run));
    for name in ["flows.csv", "fabric-2.yaml", "summary.json", "report.html"].map(Path::new) {
        assert!(whole_run.contains_key(name), "{}: {:?}", name.display(), names(&whole_run));
    }
    assert!(merged == whole_run, "merged shards differ from one run");
}

#[test]
fn two_processes_do_not_write_to_one_shard_and_a_time_limit_loses_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let shard = ["run", SWEEP, "--shard", "1/1", "--out", "shard", "--workers", "1"];
    let child = weft_in(dir.path(), &shard).spawn().expect("the binary starts");
    wait_for("a finished trial", || whole(&dir.path().join("shard")) >= 1);
    let second = done(dir.path(), &shard);
    // What a scheduler sends to a task whose time is over.
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs").success());
    let first = child.wait_with_output().expect("the child is ours");
    assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("another weft works on this sweep"), "{}", text(&second.stderr));
    assert_eq!(first.status.code(), Some(130), "{}", text(&first.stderr));
    assert!(text(&first.stderr).contains("the same command goes on from there"), "{}", text(&first.stderr));
    ok(dir.path(), &shard);
    ok(dir.path(), &["merge", "shard"]);
}

#[test]
fn a_full_disk_loses_nothing() {
    if !weft_needs::root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    // In mounts of its own, so that nothing is left. The second call has room.
    let script = "mount -t tmpfs -o size=$3 none . && cd . && cd \"$PWD\"\n\
                  \"$1\" run \"$2\" --shard 1/1 --out shard; echo \"code $?\"\n\
                  mount -o remount,size=100m . && \"$1\" run \"$2\" --shard 1/1 --out shard; echo \"code $?\"";
    let mut command = Command::new("unshare");
    command.current_dir(dir.path()).args(["--mount", "sh", "-c", script, "sh"]);
    let output = command.args([env!("CARGO_BIN_EXE_weft"), SWEEP, "500k"]).output().expect("util-linux is installed");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("code 1\n") && said.ends_with("code 0\n"), "{said}{errors}");
    assert!(errors.contains("; free some space and run again"), "{errors}");
    assert!(errors.contains("runs are there from before"), "{errors}");
}

#[test]
fn what_cannot_be_a_shard_is_refused_in_a_line() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (args, says) in [
        (&["run", SWEEP, "--shard", "4/3"][..], "`4/3` is no part of a run; write i/n"),
        (&["run", SWEEP, "--shard", "1/13"], "has 12 trials, so at most as many shards, not 13"),
        (&["run", "vl2/smoke", "--engine", "lab", "--shard", "1/2"], "shards are for the simulator and calculations"),
        (&["merge", "nowhere"], "there is no folder nowhere"),
        (&["merge"], "<SHARD>..."),
    ] {
        let output = done(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 0, "something was left behind");
}
