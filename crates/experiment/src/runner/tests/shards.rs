//! Runs in parts: merged they are one run, whatever happened to the parts, and nothing else is taken for a part.

use std::collections::BTreeMap;
use std::path::Path;

use super::sweeps::{CountingEngine, sweep_plan, with};
use super::*;
use crate::run_folder::Shard;

fn part(shard: &str) -> Shard {
    shard.parse().unwrap()
}

/// Runs a part with one worker; how many trials it ran.
fn run_part(shard: &str, out: &Path, seed: u64) -> Result<usize, RunError> {
    let engine = CountingEngine::new("sim", true);
    run_shard(&sweep_plan(), &engine, part(shard), &with(out, seed, 1), &Quiet::default())?;
    Ok(engine.runs.into_inner())
}

/// Every file of a run folder but the one that says when and where it was made.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let records = entries(&folder.join("records")).into_iter().map(|name| format!("records/{name}"));
    let others = entries(folder).into_iter().filter(|name| !["records", "manifest.json"].contains(&name.as_str()));
    let read = |name: String| (name.clone(), std::fs::read_to_string(folder.join(name)).unwrap());
    records.chain(others).map(read).collect()
}

#[test]
fn merged_parts_are_one_run_to_the_byte() {
    let parent = tempfile::tempdir().unwrap();
    let (out, shards) = (parent.path().join("r"), [1, 2, 3, 4, 5].map(|shard| parent.path().join(shard.to_string())));
    run(&sweep_plan(), &[&CountingEngine::new("sim", true)], &with(&out, 1, 2), &Quiet::default()).unwrap();
    let one = files(&out);
    std::fs::rename(&out, parent.path().join("one")).unwrap();
    let ran: Vec<usize> = (1..).zip(&shards).map(|(i, out)| run_part(&format!("{i}/5"), out, 1).unwrap()).collect();
    assert_eq!(ran, [3, 3, 2, 2, 2]);
    let outcome = merge(&shards, &with(&out, 0, 1), &Quiet::default()).unwrap();
    assert_eq!((outcome.summary.seed, &outcome.run_dir), (1, &out));
    assert_eq!(files(&out), one);
    assert!(one["report.html"].contains("weft run sweep.toml --engine sim --seed 1"), "how to do it again");
    let manifest = Manifest::read(&out).unwrap();
    for circumstance in [&manifest.started_utc, &manifest.machine.kernel, "load average"] {
        assert!(!one["report.html"].contains(circumstance), "{circumstance} is in the page");
    }
    report::redraw(std::slice::from_ref(&out)).unwrap();
    assert_eq!(files(&out), one, "drawn again it stays");
    assert_eq!(run_part("2/5", &shards[1], 1).unwrap(), 0, "a whole part is not run again");
}

#[test]
fn a_part_that_was_stopped_goes_on_and_merge_says_what_is_missing_till_then() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    let stopped = CountingEngine { fail_from: 2, ..CountingEngine::new("sim", true) };
    let options = with(&at("1"), 1, 1);
    let error = run_shard(&sweep_plan(), &stopped, part("1/2"), &options, &Quiet::default()).unwrap_err();
    assert!(error.to_string().starts_with("interrupted; 2 of 6 runs are kept in "), "{error}");
    run_part("2/2", &at("2"), 1).unwrap();
    // A run that is half written does not count.
    let trial = |number: u32| at("2").join("trials").join(number.to_string());
    let number = part("2/2").trials(12).pop_first().unwrap();
    std::fs::write(trial(number).join("flows.csv"), "trial").unwrap();
    let merged = |shards: &[&str]| {
        let shards: Vec<PathBuf> = shards.iter().map(|name| at(name)).collect();
        merge(&shards, &with(&at("r"), 0, 1), &Quiet::default())
    };
    let error = merged(&["2", "1"]).unwrap_err().to_string();
    let gap = format!("shard 2/2 ({}) lacks trial {number}; ", at("2").display());
    assert!(error.starts_with("5 of 12 trials are missing: shard 1/2 (") && error.contains(&gap), "{error}");
    let command = format!("weft run sweep.toml --engine sim --seed 1 --shard 2/2 --out {}", at("2").display());
    assert!(error.ends_with(&command), "{error}");
    let error = merged(&["2"]).unwrap_err().to_string();
    assert!(error.contains("shard 1/2 is not among the folders"), "{error}");
    assert!(error.contains(&format!("--shard 1/2 --out {}", at("1").display())), "{error}");
    assert!(!at("r").exists(), "half a result was presented as whole");
    let rest = [run_part("1/2", &at("1"), 1).unwrap(), run_part("2/2", &at("2"), 1).unwrap()];
    assert_eq!((rest, merged(&["1", "2"]).is_ok()), ([4, 1], true));
}

#[test]
fn what_is_no_part_of_the_run_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    for (name, shard, seed) in [("1", "1/2", 1), ("seed", "2/2", 2), ("thirds", "2/3", 1), ("twin", "1/2", 1)] {
        run_part(shard, &at(name), seed).unwrap();
    }
    let changed = |name: &str, from: &str, to: &str| {
        run_part("2/2", &at(name), 1).unwrap();
        let file = at(name).join("shard.json");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(file, text.replacen(from, to, 1)).unwrap();
    };
    changed("plan", "repetitions = 2", "repetitions = 3");
    changed("weft", "\"weft_version\": \"", "\"weft_version\": \"9");
    changed("mode", "\"mode\": \"default\"", "\"mode\": \"quick\"");
    changed("fabric", "\"fabrics_hash\": \"", "\"fabrics_hash\": \"0");
    std::fs::create_dir(at("empty")).unwrap();
    for (name, says) in [
        ("seed", "its seed is 2, not 1"),
        ("thirds", "its number of shards is 3, not 2"),
        ("twin", "are both shard 1/2; leave one out"),
        ("plan", "its plan has another text"),
        ("weft", "its weft is 9"),
        ("mode", "its mode is quick, not default"),
        ("fabric", "its networks are others"),
        ("empty", "is no shard: it has no shard.json"),
    ] {
        let error = merge(&[at("1"), at(name)], &with(&at("r"), 0, 1), &Quiet::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
    let refused = |shard: &str, out: &str, seed| run_part(shard, &at(out), seed).unwrap_err().to_string();
    assert!(refused("2/2", "1", 1).contains("holds a shard of another run: it is shard 1/2; choose another --out"));
    assert!(refused("1/2", "1", 3).contains("its seed is 1, not 3"));
    std::fs::create_dir(at("mine")).and_then(|()| std::fs::write(at("mine").join("a-file"), "")).unwrap();
    assert!(refused("1/2", "mine", 1).contains("exists already; choose another with --out"));
    assert_eq!(refused("1/13", "many", 1), "plan `test/sweep` has 12 trials, so at most as many shards, not 13");
    let work = crate::run_folder::ShardFolder::open(&at("1")).unwrap();
    assert!(refused("1/2", "1", 1).starts_with("another weft works on this sweep"));
    drop(work);
    let lab = CountingEngine::new("sim", false);
    let error = run_shard(&sweep_plan(), &lab, part("1/2"), &with(&at("lab"), 1, 1), &Quiet::default()).unwrap_err();
    assert!(error.to_string().ends_with("shards are for the simulator and calculations; run it whole"), "{error}");
    assert!(!at("many").exists() && !at("lab").exists());
}

#[test]
fn shards_run_where_the_machine_does_not_matter() {
    let engine = |wanted, plan: &Plan| shard_engine(wanted, plan, Mode::Default).map_err(|error| error.to_string());
    assert_eq!(engine(None, &sweep_plan()), Ok("sim"));
    assert!(engine(Some("lab"), &sweep_plan()).is_err() && engine(None, &shuffle_plan("")).is_err());
    let both = Plan::parse("c.toml", testing::COMPARISON_PLAN).unwrap();
    assert!(engine(None, &both).unwrap_err().starts_with("plan `test/comparison` in the lab"));
}
