//! Runs at a step down from the plan's rates: which is taken, what the run folder says of it, and what is refused.

use super::*;
use crate::plan::AUTO;
use crate::summary::StepTaken;
use crate::trend;

const STEPS: &str = r#"
[[steps]]
id = "5mbit"
fabric = { server_rate = "5 Mbit/s" }
[[steps.claims]]
id = "goodput_efficiency"
want = 0.9
[[steps]]
id = "2mbit"
fabric = { server_rate = "2 Mbit/s" }
"#;

fn stepped() -> Plan {
    plan("overlays = [\"vl2\"]\nrepetitions = 3", &format!("{SHUFFLE_TABLES}{STEPS}"))
}

fn with_step(out: &std::path::Path, step: Option<StepTaken>) -> RunOptions {
    RunOptions { step, ..options(out) }
}

/// The step that is found where servers may have so many Mbit/s, the run at it, and how often a network was up.
fn found(most_mbit: u64) -> (StepTaken, RunOutcome, usize, tempfile::TempDir) {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("run");
    let engine = FakeEngine { starves_above: Some(BitsPerSec(most_mbit * 1_000_000)), ..FakeEngine::default() };
    let step = find_step(&stepped(), &[&engine], &options(&out), &Quiet::default()).unwrap();
    let ups = engine.log().iter().filter(|line| line.starts_with("up")).count();
    let outcome = run(&stepped(), &[&engine], &with_step(&out, Some(step.clone())), &Quiet::default()).unwrap();
    (step, outcome, ups, parent)
}

#[test]
fn the_highest_rate_that_fits_is_found_run_and_written_down() {
    let (own, outcome, ups, _folder) = found(10);
    assert_eq!((own.name, ups), (None, 1));
    assert_eq!(outcome.summary.claims[0].want, Some(0.94));
    assert_eq!(trend::read(&outcome.run_dir).unwrap().subject, "test/plan (default, lab)");

    let (step, outcome, ups, _folder) = found(5);
    assert_eq!((step.name.as_deref(), ups), (Some("5mbit"), 2));
    assert_eq!(outcome.summary.step, Some(step.clone()));
    assert_eq!(outcome.summary.claims[0].want, Some(0.9), "a step has floors of its own");
    let said = outcome.summary.cpu.as_deref().unwrap();
    assert!(said.starts_with("The machine was in use: `sh` (process 47) took 0.98 of 2 cores"), "{said}");
    assert_eq!(trend::read(&outcome.run_dir).unwrap().subject, "test/plan (default, lab, 5mbit)");
    let page = std::fs::read_to_string(outcome.run_dir.join("report.html")).unwrap();
    assert!(page.contains("Rates: step `5mbit`, the highest"), "{page}");
    // Drawn anew it is judged by the same floors.
    report::redraw(std::slice::from_ref(&outcome.run_dir)).unwrap();
    let again = std::fs::read_to_string(outcome.run_dir.join("summary.json")).unwrap();
    assert_eq!(serde_json::from_str::<RunSummary>(&again).unwrap(), outcome.summary);
    let command = Manifest::read(&outcome.run_dir).unwrap().command("p.toml");
    assert_eq!(command[3..], ["--step", "5mbit", "--seed", "7"]);
}

#[test]
fn where_no_rate_fits_the_run_is_inconclusive_and_begins_with_who_took_the_cpu() {
    let (step, outcome, ups, _folder) = found(1);
    assert_eq!((step.name.as_deref(), ups), (Some("2mbit"), 3));
    let said = outcome.summary.cpu.as_deref().unwrap();
    assert!(
        said.starts_with("The CPU of this machine was the bottleneck: `sh` (process 47) took 0.98 of 2 cores"),
        "{said}"
    );
    assert_eq!(outcome.summary.verdict(), Verdict::Inconclusive);
    assert!(outcome.summary.hides_required());
}

#[test]
fn steps_that_are_not_there_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let engine = FakeEngine::default();
    let asked = |plan: &Plan, name: &str| {
        let taken = StepTaken { name: Some(name.into()), why: String::new() };
        run(plan, &[&engine], &with_step(&out.path().join("r"), Some(taken)), &Quiet::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        asked(&stepped(), "7mbit"),
        "plan `test/plan` has no step `7mbit` in the lab; it has: 5mbit, 2mbit, and `auto` looks for the highest rate that fits"
    );
    let none = find_step(&shuffle_plan(""), &[&engine], &options(out.path()), &Quiet::default()).unwrap_err();
    assert_eq!(
        none.to_string(),
        format!("plan `test/plan` has no step `{AUTO}` in the lab; it has none: leave out --step")
    );
    assert_eq!(engine.log(), [""; 0], "nothing was brought up");
}
