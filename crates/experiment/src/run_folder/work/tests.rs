//! Finished runs survive; partial ones do not.

use weft_scenario::engine::Overlay;
use weft_scenario::record::FlowRow;

use super::*;
use crate::analysis::testing::{even_shuffle, fabric, shuffle_spec, trial};

fn axes() -> Vec<Axis> {
    vec![Axis { name: "load".into(), labels: vec!["10".into(), "30".into()], unit: "%".into() }]
}

fn run(number: u32) -> FinishedRun {
    let mut trial = trial(number, Overlay::Routed, "all", even_shuffle(&fabric(&shuffle_spec()), 1_000, 2));
    trial.key.point = vec!["30".into()];
    trial.records.facts.push(("third".into(), 1.0 / 3.0));
    FinishedRun { trial, session_facts: vec![("built_s".into(), 0.1 + 0.2), ("odd".into(), f64::NAN)] }
}

fn open(parent: &Path) -> Result<WorkFolder, FolderError> {
    WorkFolder::beside(Some(&parent.join("out")), "a/plan", "0123")
}

#[test]
fn runs_are_there_when_the_folder_is_opened_again() {
    let parent = tempfile::tempdir().unwrap();
    let work = open(parent.path()).unwrap();
    assert_eq!(work.path(), parent.path().join(".out.unfinished-0123"));
    work.keep(&axes(), &run(2)).unwrap();
    drop(work);
    let work = open(parent.path()).unwrap();
    assert_eq!((work.has(1), work.has(2), work.count()), (false, true, 1));
    let back = work.load(&axes(), 2, RowKind::ALL).unwrap();
    assert_eq!(back.trial, run(2).trial);
    assert_eq!(back.session_facts, run(2).session_facts[..1]);
    let flows_only = work.load(&axes(), 2, &[FlowRow::KIND]).unwrap();
    assert!(flows_only.trial.records.links.is_empty() && !flows_only.trial.records.flows.is_empty());
    work.remove().unwrap();
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn rows_are_appended_below_one_header() {
    let parent = tempfile::tempdir().unwrap();
    let work = open(parent.path()).unwrap();
    let (together, apart) = (parent.path().join("together"), parent.path().join("apart"));
    std::fs::create_dir_all(&together).unwrap();
    std::fs::create_dir_all(&apart).unwrap();
    for number in [1, 2] {
        work.keep(&axes(), &run(number)).unwrap();
        work.append_to(number, &together).unwrap();
        write_trial_rows(&apart, &axes(), &run(number).trial).unwrap();
    }
    for (file, length) in lengths(&apart).unwrap() {
        let read = |folder: &Path| std::fs::read(folder.join(&file)).unwrap();
        assert_eq!((read(&together), lengths(&together).unwrap()[&file]), (read(&apart), length), "{file}");
    }
    assert_eq!(lengths(&together).unwrap().len(), lengths(&apart).unwrap().len());
}

#[test]
fn what_is_not_whole_is_run_again() {
    let parent = tempfile::tempdir().unwrap();
    let work = open(parent.path()).unwrap();
    for number in 1..=4 {
        work.keep(&axes(), &run(number)).unwrap();
    }
    let path = work.path().to_owned();
    drop(work);
    std::fs::write(path.join("1/flows.csv"), "trial").unwrap();
    std::fs::remove_file(path.join("2/links.csv")).unwrap();
    std::fs::remove_file(path.join("3").join(INDEX_FILE)).unwrap();
    std::fs::create_dir(path.join("5.partial")).unwrap();
    let work = open(parent.path()).unwrap();
    assert_eq!((1..=5).filter(|number| work.has(*number)).collect::<Vec<_>>(), [4]);
    assert!(!path.join("1").exists() && !path.join("5.partial").exists());
}

#[test]
fn two_processes_do_not_share_a_folder_and_an_empty_one_disappears() {
    let parent = tempfile::tempdir().unwrap();
    let work = open(parent.path()).unwrap();
    let message = open(parent.path()).unwrap_err().to_string();
    assert!(message.starts_with("another weft works on this sweep"), "{message}");
    drop(work);
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}
