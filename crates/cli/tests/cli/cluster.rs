//! Sweeps by GNU parallel, the scheduler that every machine can have: what is submitted comes back as one run, whatever
//! happened to its shards. `make cluster` does the same with Slurm.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{text, wait_for, weft};
use crate::shards::{SWEEP, bytes};

/// A folder with the one run that sweeps are compared with, in `one/result`, and `here`, to fetch them to under the same name.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for name in ["one", "here"] {
        std::fs::create_dir(dir.path().join(name)).expect("the folder is ours");
    }
    said(&dir.path().join("one"), &["run", SWEEP, "--engine", "sim", "--out", "result"]);
    dir
}

fn call(dir: &Path, args: &[&str]) -> Output {
    weft().current_dir(dir).args(args).output().expect("the binary starts")
}

fn said(dir: &Path, args: &[&str]) -> String {
    let output = call(dir, args);
    assert!(output.status.success(), "weft {}: {}", args.join(" "), text(&output.stderr));
    text(&output.stdout)
}

/// A program in the place of weft, written by another process, as it is executed at once.
fn program(dir: &Path, before: &str) -> PathBuf {
    let (path, weft) = (dir.join("program"), env!("CARGO_BIN_EXE_weft"));
    let text = format!("#!/bin/sh\n{before}\nexec '{weft}' \"$@\"\n");
    let mut command = Command::new("sh");
    command.args(["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\""]).arg(&path).arg(text);
    assert!(command.status().expect("a shell").success());
    path
}

fn fetched_is_one_run(dir: &Path) {
    said(&dir.join("here"), &["cluster", "fetch", "../sweep", "--out", "result"]);
    assert!(bytes(&dir.join("here/result")) == bytes(&dir.join("one/result")), "the sweep differs from one run");
}

#[test]
fn a_shard_that_is_killed_is_tried_again_and_the_bytes_are_those_of_one_run() {
    if !weft_needs::program("parallel") {
        return;
    }
    let dir = folder();
    let killed = program(dir.path(), "mkdir killed 2> /dev/null && kill -KILL $$");
    let killed = killed.display().to_string();
    let submit =
        ["cluster", "submit", SWEEP, "--on", "parallel", "--jobs", "2", "--out", "sweep", "--program", &killed];
    let all = said(dir.path(), &[&submit[..], &["--wait"]].concat());
    let script = std::fs::read_to_string(dir.path().join("sweep/submit.sh")).expect("the script is kept");
    assert!(all.starts_with(&script) && all.contains("8 of 8 shards, 12 trials in all"), "{all}");
    assert!(all.contains("1 claim: 1 info") && dir.path().join("killed").exists(), "{all}");
    let joblog = std::fs::read_to_string(dir.path().join("sweep/log/joblog")).expect("its list of tasks");
    assert_eq!(joblog.lines().count(), 1 + 8, "{joblog}");
    let status: serde_json::Value =
        serde_json::from_str(&said(dir.path(), &["cluster", "status", "sweep", "-o", "json"]))
            .expect("one JSON object");
    assert_eq!((status["trials"].as_u64(), status["at_work"].as_bool()), (Some(12), Some(false)), "{status}");
    fetched_is_one_run(dir.path());
    let again = said(dir.path(), &submit);
    assert!(again.starts_with("every shard is whole"), "{again}");
}

#[test]
fn what_fails_for_good_or_is_cancelled_is_named_and_the_same_command_goes_on() {
    if !weft_needs::program("parallel") {
        return;
    }
    let dir = folder();
    // Shard 2 fails however often it is tried, and while there is a file `slow` every other waits.
    let before = "case $* in *\"--shard 2/3\"*) [ ! -e broken ] || exit 1 ;; esac\n[ ! -e slow ] || exec sleep 600";
    let program = program(dir.path(), before).display().to_string();
    let submit = ["cluster", "submit", SWEEP, "--on", "parallel", "--jobs", "3", "--shards", "3", "--out", "sweep"];
    let submit = [&submit[..], &["--program", &program]].concat();
    let (slow, broken) = (dir.path().join("slow"), dir.path().join("broken"));
    std::fs::write(&slow, "").and_then(|()| std::fs::write(&broken, "")).expect("the folder is ours");
    said(dir.path(), &submit);
    wait_for("a shard at work", || dir.path().join("sweep/log/1").exists());
    let error = text(&call(dir.path(), &submit).stderr);
    assert!(error.contains("works on") && error.contains("end it with `weft cluster cancel`"), "{error}");
    assert!(said(dir.path(), &["cluster", "cancel", "sweep"]).starts_with("ended job "));
    let rests = || said(dir.path(), &["cluster", "status", "sweep"]).contains("the scheduler has nothing of it");
    wait_for("the end of the job", rests);
    assert_eq!(said(dir.path(), &["cluster", "cancel", "sweep"]), "no job is at work\n");

    std::fs::remove_file(&slow).expect("it is there");
    let output = call(dir.path(), &[&submit[..], &["--wait"]].concat());
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("ended with 8 of 12 trials; shards 2 are not whole"), "{error}");
    let error = text(&call(dir.path(), &["cluster", "fetch", "sweep"]).stderr);
    assert!(error.contains("4 of 12 trials are missing: shard 2/3 is not among the folders"), "{error}");
    std::fs::remove_file(&broken).expect("it is there");
    let rest = said(dir.path(), &[&submit[..], &["--wait"]].concat());
    assert!(rest.contains(": 1 of 3 shards"), "{rest}");
    fetched_is_one_run(dir.path());
}

#[test]
fn without_a_scheduler_or_a_sweep_it_says_so() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (on, program) in [("slurm", "sbatch"), ("parallel", "parallel"), ("kubernetes", "kubectl")] {
        let pods = if on == "kubernetes" { &["--claim", "results", "--image", "weft"][..] } else { &[] };
        let args = [&["cluster", "submit", SWEEP, "--out", on, "--on", on][..], pods].concat();
        let mut command = weft();
        let output = command.current_dir(dir.path()).env("PATH", "/nowhere").args(&args).stdin(Stdio::null()).output();
        let output = output.expect("the binary starts");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{error}");
        assert!(error.starts_with(&format!("weft: there is no {program} here: ")), "{error}");
        assert!(error.trim_end().lines().count() == 1 && output.stdout.is_empty(), "{error}");
    }
    for (args, says) in [
        (&["cluster", "status", "."][..], "is no sweep: it has no cluster.json"),
        (&["cluster", "submit", SWEEP, "--on", "kubernetes"], "name them with --claim and --image"),
        (&["cluster", "submit", "vl2/smoke", "--on", "slurm"], "shards are for the simulator and calculations"),
        (&["cluster", "submit", SWEEP, "--on", "slurm", "--shards", "13"], "so at most as many shards, not 13"),
        (&["cluster", "submit", SWEEP, "--on", "moon"], "[possible values: slurm, kubernetes, parallel]"),
    ] {
        let output = call(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}
