//! Every key of a scenario has an effect in the simulator, or is refused, or there is a reason.
//!
//! Each key of the schema takes another value in the usual scenario and in those that differ from it in one thing. Then rows
//! differ, or the file is refused, or [`keys::EXCUSES`] says why nothing changes there.

mod document;
mod keys;
mod scenes;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use toml::{Table, Value};
use weft_experiment::plan::SingleScenario;
use weft_scenario::record::Records;
use weft_sim::{SimEngine, Unobserved};

use keys::{EXCUSES, NOT_SIMULATED, OTHERS, STORM};
use scenes::{Scene, scenes};

/// Rows of a scenario, or why it is refused.
fn outcome(document: &Table) -> Result<Records, String> {
    let text = toml::to_string(document).map_err(|error| error.to_string())?;
    let single = SingleScenario::parse("s.toml", &text).map_err(|error| error.to_string())?;
    let (scenario, trial) = single.build(1).map_err(|error| error.to_string())?;
    let job = SimEngine::default().job(&scenario, &trial).map_err(|error| error.to_string())?;
    let outcome = weft_sim::run(&job, &mut Unobserved).map_err(|error| error.to_string())?;
    Ok(weft_sim::records(&job, &outcome))
}

fn value(text: &str) -> Value {
    document::parsed(&format!("value = {text}")).remove("value").expect("it is there")
}

/// What a change of one key did in one scene.
enum Change {
    /// The scene has no such key, or the value already.
    NotThere,
    Differs,
    Refused,
    Same,
}

fn change(scene: &Scene, rows: &Records, key: &str, others: &[&str]) -> Change {
    let Some(steps) = document::place(&scene.document, key) else { return Change::NotThere };
    let present = document::get(&scene.document, &steps);
    let Some(other) = others.iter().map(|other| value(other)).find(|other| present.as_ref() != Some(other)) else {
        return Change::NotThere;
    };
    match outcome(&document::with(&scene.document, &steps, other)) {
        Ok(changed) if changed == *rows => Change::Same,
        Ok(_) => Change::Differs,
        Err(_) => Change::Refused,
    }
}

fn is_excused(key: &str, scene: &str) -> bool {
    EXCUSES.iter().any(|(of, scenes, _)| *of == key && scenes.contains(&scene))
}

/// What was found out about a key, over all scenes.
#[derive(Default)]
struct Seen {
    scenes: usize,
    differs: usize,
    refused: usize,
    excused: BTreeSet<&'static str>,
    same: Vec<&'static str>,
}

#[test]
fn every_key_has_an_effect_or_is_refused_or_there_is_a_reason() {
    let scenes = scenes();
    let next = AtomicUsize::new(0);
    let seen: Mutex<BTreeMap<&str, Seen>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(scene) = scenes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let rows = outcome(&scene.document).unwrap_or_else(|error| panic!("{}: {error}", scene.name));
                    for (key, others) in OTHERS {
                        let change = change(scene, &rows, key, others);
                        let mut seen = seen.lock().expect("nobody panics with it");
                        let of_key = seen.entry(key).or_default();
                        match change {
                            Change::NotThere => continue,
                            Change::Differs => of_key.differs += 1,
                            Change::Refused => of_key.refused += 1,
                            Change::Same if is_excused(key, scene.name) => drop(of_key.excused.insert(scene.name)),
                            Change::Same => of_key.same.push(scene.name),
                        }
                        of_key.scenes += 1;
                    }
                }
            });
        }
    });
    let seen = seen.into_inner().expect("nobody panicked");
    let mut wrong = Vec::new();
    for (key, _) in OTHERS {
        let Some(seen) = seen.get(key).filter(|seen| seen.scenes > 0) else {
            wrong.push(format!("`{key}` is in no scenario"));
            continue;
        };
        if seen.differs == 0 && seen.refused < seen.scenes {
            wrong.push(format!("`{key}` makes a difference in no scenario, and is not refused in all"));
        }
        if !seen.same.is_empty() {
            wrong.push(format!(
                "`{key}` changes nothing in {} of {} scenarios, differs in {}, is refused in {}: {}",
                seen.same.len(),
                seen.scenes,
                seen.differs,
                seen.refused,
                seen.same.join("; ")
            ));
        }
    }
    for (key, scenes, _) in EXCUSES {
        let needs = |scene: &&&str| seen.get(key).is_some_and(|seen| seen.excused.contains(**scene));
        let idle: Vec<_> = scenes.iter().filter(|scene| !needs(scene)).collect();
        if !idle.is_empty() {
            wrong.push(format!("`{key}` needs no excuse in {idle:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_key_of_the_schema_is_tried() {
    let is_elsewhere = |key: &&String| {
        key.starts_with(STORM) || NOT_SIMULATED.iter().any(|kind| key.starts_with(&format!("workload[{kind}]")))
    };
    let known: BTreeSet<String> = OTHERS.iter().map(|(key, _)| (*key).to_owned()).collect();
    let keys: BTreeSet<String> = schema::keys().iter().filter(|key| !is_elsewhere(key)).cloned().collect();
    let missing: Vec<_> = keys.difference(&known).collect();
    let gone: Vec<_> = known.difference(&keys).collect();
    assert!(missing.is_empty() && gone.is_empty(), "without an entry: {missing:#?}, without a key: {gone:#?}");
}
