//! Rows survive a round trip; places and files that cannot be used are named.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{Records, RowKind};

use super::*;
use crate::analysis::testing::{SHUFFLE_TABLES, even_shuffle, fabric, plan, shuffle_spec, trial};
use crate::plan::Mode;
use crate::runner::RunOptions;

fn manifest() -> Manifest {
    let plan = plan("overlays = [\"vl2\"]", SHUFFLE_TABLES);
    Manifest::new(&plan, plan.for_mode(Mode::Default), &RunOptions::default())
}

fn trials() -> Vec<TrialRecords> {
    let mut full = even_shuffle(&fabric(&shuffle_spec()), 1_000, 2);
    full.flows[0].end_ns = None;
    for (kind, whole) in RowKind::ALL.iter().flat_map(|kind| [(kind, "0"), (kind, "3000000000")]) {
        let cells: Vec<&str> = kind.columns.iter().map(|column| sample(column.holds, whole)).collect();
        kind.push(&mut full, &cells).unwrap_or_else(|| panic!("{cells:?} is no row of {}", kind.name));
        let written = kind.cells(&full).last().unwrap();
        assert_eq!(written, cells, "{}", kind.name);
    }
    vec![trial(1, Overlay::Vl2, "all", full), trial(2, Overlay::KERNEL_VXLAN, "all", Records::default())]
}

/// A cell for what a column holds; empty where that may be, beside the whole number 0.
fn sample(holds: &str, whole: &'static str) -> &'static str {
    match holds.trim_end_matches(" or empty") {
        plain if plain.len() < holds.len() && whole == "0" => "",
        "whole number" => whole,
        "number" => "0.30000000000000004",
        "text" => "a \"quoted\", name",
        _ => "query",
    }
}

#[test]
fn rows_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let trials = trials();
    for trial in &trials {
        write_trial_rows(folder.path(), &[], trial).unwrap();
    }
    assert_eq!(read_trials(folder.path(), &[], RowKind::ALL).unwrap(), trials);
    let flows = std::fs::read_to_string(folder.path().join("flows.csv")).unwrap();
    let head: Vec<&str> = flows.lines().take(2).collect();
    assert_eq!(
        head,
        [
            "trial,repetition,seed,overlay,workload,from,to,bytes_asked,bytes_received,start_ns,end_ns,retransmits,class,\
             request,ideal_ns",
            "1,1,1,vl2,all,0,1,1000,1000,0,,1,bulk,,",
        ]
    );
}

#[test]
fn a_damaged_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    write_trial_rows(folder.path(), &[], &trials()[0]).unwrap();
    let path = folder.path().join("cpu.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    for (change, want) in [
        (text.replacen("0.5", "half", 1), "line 2"),
        (text.replacen("time_ns", "time_us", 1), "line 1"),
        (text.replacen("\n1,1,1,vl2", "\n9,1,1,vl2", 1), "line 2"),
    ] {
        std::fs::write(&path, change).unwrap();
        let message = read_trials(folder.path(), &[], RowKind::ALL).unwrap_err().to_string();
        assert!(message.contains("cpu.csv") && message.contains(want), "{message}");
    }
    std::fs::write(&path, text).unwrap();
    let other = folder.path().join("path_costs.csv");
    std::fs::rename(path, &other).unwrap();
    let message = read_trials(folder.path(), &[], RowKind::ALL).unwrap_err().to_string();
    assert!(message.contains("path_costs.csv") && message.contains("run the plan again"), "{message}");
    std::fs::remove_file(other).unwrap();
    std::fs::remove_file(folder.path().join("trials.csv")).unwrap();
    assert!(read_trials(folder.path(), &[], RowKind::ALL).unwrap_err().to_string().starts_with("cannot read "));
}

#[test]
fn a_folder_in_use_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    std::fs::write(parent.path().join("precious"), "x").unwrap();
    let message = RunFolder::create(Some(parent.path()), "p", &manifest()).unwrap_err().to_string();
    assert!(message.contains("exists already; choose another with --out"), "{message}");
}

#[test]
fn an_empty_folder_may_be_named_and_an_unfinished_one_disappears() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("deep/result");
    std::fs::create_dir_all(&out).unwrap();
    let manifest = manifest();
    drop(RunFolder::create(Some(&out), "p", &manifest).unwrap());
    assert_eq!(std::fs::read_dir(parent.path().join("deep")).unwrap().count(), 1);
    let folder = RunFolder::create(Some(&out), "p", &manifest).unwrap();
    assert_eq!(folder.finish(&manifest).unwrap(), out);
    assert!(out.join("manifest.json").is_file());
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_the_run() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let message = RunFolder::create(Some(&file.join("below")), "p", &manifest()).unwrap_err().to_string();
    assert!(message.starts_with("cannot create ") && message.contains("below"), "{message}");
}

/// `/dev/full` refuses every write as a full disk does.
#[test]
fn a_full_disk_is_one_clear_line() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return weft_needs::skip("this system has no /dev/full");
    }
    let message = write_synced(full, "text").unwrap_err().to_string();
    assert!(message.contains("/dev/full") && message.ends_with("; free some space and run again"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(full, folder.path().join("flows.csv")).unwrap();
    let mut many = trials().swap_remove(0);
    let few = many.clone();
    many.records.flows = vec![many.records.flows[0].clone(); 10_000];
    for trial in [few, many] {
        let message = write_trial_rows(folder.path(), &[], &trial).unwrap_err().to_string();
        assert!(message.contains("flows.csv") && message.ends_with("; free some space and run again"), "{message}");
    }
}

#[test]
fn default_names_follow_the_plan_and_the_time() {
    let name = free_default("vl2/fig09-shuffle", "2026-01-31T13:05:09Z");
    assert_eq!(name, Path::new("run/vl2-fig09-shuffle-20260131T130509Z"));
}
