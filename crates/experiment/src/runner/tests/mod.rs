//! Whole runs over an engine that makes records up: what is checked is the order of trials, the run folder and errors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use weft_scenario::engine::{Scenario, Session, Trial};
use weft_scenario::record::{OtherRow, Records};
use weft_scenario::units::BitsPerSec;

use super::*;
use crate::analysis::testing::{self, SHUFFLE_TABLES, even_shuffle, plan};
use crate::report;
use crate::verdict::Verdict;

/// Writes down what it is asked to do and returns even shuffles.
#[derive(Default)]
struct FakeEngine {
    log: Mutex<Vec<String>>,
    fail_at: Option<usize>,
    open_flow: bool,
    /// Programs wait for a core where servers are faster.
    starves_above: Option<BitsPerSec>,
}

impl FakeEngine {
    fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

struct FakeSession<'a> {
    engine: &'a FakeEngine,
    scenario: Scenario,
}

impl Engine for FakeEngine {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn prepare<'a>(&'a self, scenario: &Scenario, _: &'a dyn Progress) -> Result<Box<dyn Session + 'a>, EngineError> {
        self.note(format!("up {:?}", scenario.overlay));
        Ok(Box::new(FakeSession { engine: self, scenario: scenario.clone() }))
    }
}

impl Session for FakeSession<'_> {
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError> {
        self.engine.note(format!("run {:?} seed {}", self.scenario.overlay, trial.seed));
        let runs = self.engine.log().iter().filter(|line| line.starts_with("run")).count();
        if self.engine.fail_at == Some(runs) {
            return Err(EngineError::Failed("the fabric fell over".into()));
        }
        let mut records = even_shuffle(&self.scenario.fabric, 1_000_000, 3);
        records.facts.push(("link_selftest.server-tor.got_bps".into(), 9.9e6));
        if self.engine.open_flow {
            records.flows[0].end_ns = None;
        }
        if let Some(most) = self.engine.starves_above {
            let rate = self.scenario.fabric.links().iter().map(|link| link.spec.rate).min().unwrap();
            let wait_ms = if rate > most { 46.0 } else { 0.3 };
            records.core_waits = (1..=9).map(|second| testing::waiting(second, wait_ms)).collect();
            let (pid, cpu_ns, wall_ns) = (47, 9_800_000_000, 10_000_000_000);
            records.others = vec![OtherRow { process: "sh".into(), pid, cpu_ns, wall_ns, cores: 2 }];
        }
        Ok(records)
    }

    fn facts(&self) -> Vec<(String, f64)> {
        vec![("lab.up_s".into(), 1.5), ("hook.vl2_encap.tc-egress".into(), 1.0)]
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        self.engine.note(format!("down {:?}", self.scenario.overlay));
        Ok(())
    }
}

#[derive(Default)]
struct Quiet {
    stop: AtomicBool,
}

impl Progress for Quiet {
    fn phase(&self, _: &str, _: &str) {}
    fn advance(&self, _: f64, _: &str) {}
    fn note(&self, _: &str) {}
    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn shuffle_plan(keys: &str) -> Plan {
    plan(&format!("overlays = [\"vl2\"]\n{keys}"), SHUFFLE_TABLES)
}

fn options(out: &std::path::Path) -> RunOptions {
    let command_line = ["weft", "run", "it's mine.toml"].map(str::to_owned).to_vec();
    RunOptions {
        mode: Mode::Default,
        step: None,
        seed: 7,
        out: Some(out.to_owned()),
        command_line,
        workers: None,
        available_memory: None,
    }
}

fn entries(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_leaves_a_complete_folder_and_its_summary() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("result");
    let engine = FakeEngine::default();
    let outcome = run(&shuffle_plan("repetitions = 3"), &[&engine], &options(&out), &Quiet::default()).unwrap();
    assert_eq!(engine.log(), ["up Vl2", "run Vl2 seed 7", "run Vl2 seed 8", "run Vl2 seed 9", "down Vl2"]);
    assert_eq!(outcome.run_dir, out);
    assert_eq!(entries(parent.path()), ["result"]);
    assert_eq!(
        entries(&out),
        ["fabric.yaml", "manifest.json", "records", "replay-1.html", "report.html", "summary.json"]
    );
    assert_eq!(
        entries(&out.join("records")),
        ["core_waits.csv", "cpu.csv", "facts.csv", "flows.csv", "links.csv", "progress.csv", "trials.csv"]
    );
    let shown = RunSummary { run_dir: "DIR".into(), ..outcome.summary.clone() };
    insta::assert_snapshot!("summary", serde_json::to_string_pretty(&shown).unwrap());
    let stored: RunSummary = serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(stored, outcome.summary);
    let rows = crate::table::claims_table(&outcome.summary);
    let lines: Vec<String> = rows.iter().map(|row| row.cells().join(" | ")).collect();
    insta::assert_snapshot!("claims_table", lines.join("\n"));
    let manifest: Manifest =
        serde_json::from_str(&std::fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest.facts["vl2"]["lab.up_s"], 1.5);
    assert_eq!(manifest.facts["trial.2"]["link_selftest.server-tor.got_bps"], 9.9e6);
    assert_eq!(manifest.hooks["vl2: vl2_encap"], "tc-egress");
    assert_eq!((manifest.seed, manifest.machine.cores > 0), (7, true));
}

#[test]
fn a_run_can_be_watched_unless_its_plan_says_no() {
    let parent = tempfile::tempdir().unwrap();
    let watched = |name: &str, tables: &str| {
        let out = parent.path().join(name);
        let engine = FakeEngine::default();
        run(&plan("overlays = [\"vl2\"]\nrepetitions = 2", tables), &[&engine], &options(&out), &Quiet::default())
            .unwrap();
        let pages = entries(&out).into_iter().filter(|name| name.starts_with("replay")).count();
        (out.clone(), std::fs::read_to_string(out.join("report.html")).unwrap(), pages)
    };
    let (out, report, pages) = watched("yes", SHUFFLE_TABLES);
    assert!(
        pages == 1 && report.contains("href=\"replay-1.html\"") && report.contains("trial 1: all, vl2"),
        "{report}"
    );
    let page = std::fs::read_to_string(out.join("replay-1.html")).unwrap();
    assert!(page.contains(", engine lab, trial 1: all, vl2, seed 7, on "), "what ran is said");
    // Drawn anew it is the same.
    std::fs::remove_file(out.join("replay-1.html")).unwrap();
    report::redraw(std::slice::from_ref(&out)).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("replay-1.html")).unwrap(), page);
    let (_, report, pages) =
        watched("no", &SHUFFLE_TABLES.replace("interval = \"1 s\"", "interval = \"1 s\"\nreplay = false"));
    assert!(pages == 0 && !report.contains("replay"), "{report}");
}

#[test]
fn redrawing_gives_the_same_result_without_an_engine() {
    let parent = tempfile::tempdir().unwrap();
    let (a, b) = (parent.path().join("a"), parent.path().join("b"));
    let plan = shuffle_plan("");
    let first = run(&plan, &[&FakeEngine::default()], &options(&a), &Quiet::default()).unwrap();
    run(&plan, &[&FakeEngine::default()], &options(&b), &Quiet::default()).unwrap();
    let before = std::fs::read_to_string(a.join("report.html")).unwrap();
    std::fs::remove_file(a.join("report.html")).unwrap();
    std::fs::remove_file(a.join("summary.json")).unwrap();
    assert_eq!(report::redraw(std::slice::from_ref(&a)).unwrap().page, a.join("report.html"));
    assert_eq!(std::fs::read_to_string(a.join("report.html")).unwrap(), before);
    let again: RunSummary = serde_json::from_str(&std::fs::read_to_string(a.join("summary.json")).unwrap()).unwrap();
    assert_eq!(again, first.summary);
    let both = report::redraw(&[a.clone(), b]).unwrap();
    let page = std::fs::read_to_string(&both.page).unwrap();
    // Both runs, and before them what they read beside each other.
    assert_eq!((both.page.parent(), page.matches("<section>").count()), (Some(a.as_path()), 3));
    let readings = crate::comparison::readings(&both.summaries);
    assert_eq!(readings.len(), 2 * first.summary.claims.len());
    assert!(readings.iter().skip(1).step_by(2).all(|reading| reading.over_first == Some(1.0)), "{readings:?}");
    let document = roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
    let hrefs: Vec<_> = document.descendants().filter_map(|node| node.attribute("href")).collect();
    assert!(hrefs.contains(&"records/flows.csv") && hrefs.contains(&"../b/records/flows.csv"), "{hrefs:?}");
    assert!(hrefs.iter().all(|href| a.join(href).is_file()), "{hrefs:?}");
    assert!(matches!(report::redraw(&[]), Err(report::ReportError::Nothing)));
}

#[test]
fn the_page_is_well_formed_and_needs_no_network() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("result");
    run(&shuffle_plan(""), &[&FakeEngine::default()], &options(&out), &Quiet::default()).unwrap();
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let document = roxmltree::Document::parse(body).unwrap();
    for forbidden in ["http:", "https:", "src=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let hrefs = document.descendants().filter_map(|node| node.attribute("href"));
    for href in hrefs {
        assert!(out.join(href).is_file(), "{href}");
    }
    assert_eq!(
        document.descendants().filter(|node| node.has_tag_name("svg")).count(),
        4,
        "network, goodput, idle cores, waits"
    );
    assert!(page.contains("weft run &#x27;it&#x27;\\&#x27;&#x27;s mine.toml&#x27;"), "the command is quoted");
}

#[test]
fn interleaved_overlays_are_up_together_and_take_turns() {
    let keys = "overlays = [\"routed\", \"vl2\"]\nrepetitions = 2\ninterleave = true";
    let tables = "[workload.one]\nkind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"1 s\"\n\
                  [sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\nmeasure_cpu_cost = [\"one\"]\n\
                  [[metrics]]\nid = \"cpu_ns\"\nmeaning = \"CPU time\"\nsql = \"select cpu_ns as value from cost\"\n\
                  [[claims]]\nid = \"cpu_ns\"\nrelation = \"<=\"\nwant = 1.15\nunit = \"ns\"\n";
    let parent = tempfile::tempdir().unwrap();
    let engine = FakeEngine::default();
    let plan = plan(keys, tables);
    let outcome = run(&plan, &[&engine], &options(&parent.path().join("r")), &Quiet::default()).unwrap();
    let expected = [
        "up Routed",
        "up Vl2",
        "run Routed seed 7",
        "run Vl2 seed 7",
        "run Routed seed 8",
        "run Vl2 seed 8",
        "down Routed",
        "down Vl2",
    ];
    assert_eq!(engine.log(), expected);
    // The made-up records have no cost, and that is said.
    assert_eq!(outcome.summary.verdict(), Verdict::Inconclusive);
}

#[test]
fn interleaved_points_share_their_networks_and_are_made_anew_where_the_plan_says_so() {
    let tables = |keys: &str| {
        let sampling = "[sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\n[[metrics]]\nid = \"n\"\nmeaning = \"n\"\nsql = \"select 1 as value\"\n\
                        [[claims]]\nid = \"n\"\nrelation = \"info\"\nunit = \"1\"\n";
        let workload = "[workload.one]\nkind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"1 s\"\n";
        plan(
            &format!("overlays = [\"vl2\"]\nrepetitions = 2\ninterleave = true\n{keys}"),
            &format!("{workload}[sweep.load]\nsets = [\"workload.one.flows\"]\nvalues = [1, 2]\n{sampling}"),
        )
    };
    let log = |keys: &str| {
        let (parent, engine) = (tempfile::tempdir().unwrap(), FakeEngine::default());
        run(&tables(keys), &[&engine], &options(&parent.path().join("r")), &Quiet::default()).unwrap();
        engine.log()
    };
    let turns = ["run Vl2 seed 7", "run Vl2 seed 7", "run Vl2 seed 8", "run Vl2 seed 8"];
    assert_eq!(log(""), [&["up Vl2"][..], &turns, &["down Vl2"]].concat(), "one network for both points");
    let rebuilt = [&["up Vl2"][..], &turns[..2], &["down Vl2", "up Vl2"], &turns[2..], &["down Vl2"]].concat();
    assert_eq!(log("rebuild = true"), rebuilt);
}

#[test]
fn nothing_is_left_of_a_run_that_failed_or_was_stopped() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("result");
    let plan = shuffle_plan("repetitions = 2");
    let failing = FakeEngine { fail_at: Some(2), ..FakeEngine::default() };
    let error = run(&plan, &[&failing], &options(&out), &Quiet::default()).unwrap_err();
    assert_eq!(error.to_string(), "the fabric fell over");
    let stopped = Quiet { stop: AtomicBool::new(true) };
    let error = run(&plan, &[&FakeEngine::default()], &options(&out), &stopped).unwrap_err();
    assert!(matches!(error, RunError::Engine(EngineError::Interrupted)));
    assert_eq!(entries(parent.path()), [""; 0]);
}

#[test]
fn an_open_flow_fails_the_required_claim_with_the_reason() {
    let parent = tempfile::tempdir().unwrap();
    let engine = FakeEngine { open_flow: true, ..FakeEngine::default() };
    let outcome = run(&shuffle_plan(""), &[&engine], &options(&parent.path().join("r")), &Quiet::default()).unwrap();
    let claim = &outcome.summary.claims[0];
    assert_eq!(claim.verdict, Verdict::Fail);
    assert_eq!(claim.reason.as_deref(), Some("1 of 12 flows of trial 1 did not finish"));
}

#[test]
fn a_plan_that_the_engine_may_not_run_is_refused() {
    let text = testing::plan_text("overlays = [\"vl2\"]", SHUFFLE_TABLES);
    let plan = Plan::parse("p.toml", &text.replace("\"lab\"", "\"sim\"")).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let error =
        run(&plan, &[&FakeEngine::default()], &options(&parent.path().join("r")), &Quiet::default()).unwrap_err();
    assert_eq!(error.to_string(), "plan `test/plan` cannot run in engine `lab`; it can in: sim");
}

/// A machine on which no lab can be.
fn no_lab(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    let lacks = || EngineError::NotFit { what: "a lab needs root".into(), remedy: "run it with sudo".into() };
    if name == "lab" { Err(lacks()) } else { Ok(Box::new(weft_model::CalcEngine)) }
}

#[test]
fn the_simulator_is_advised_where_the_plan_has_it() {
    let text = testing::plan_text("overlays = [\"vl2\"]", SHUFFLE_TABLES);
    for (engines, says) in [
        ("[\"lab\"]", "a lab needs root; run it with sudo"),
        ("[\"lab\", \"sim\"]", "a lab needs root; run it with sudo; or --engine sim"),
    ] {
        let plan = Plan::parse("p.toml", &text.replace("[\"lab\"]", engines)).unwrap();
        let error = choose(Some("lab"), &plan, Mode::Default, &no_lab).err().expect("there is none");
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn a_forecast_counts_trials_and_names_what_an_engine_lacks() {
    let plan = shuffle_plan("repetitions = 3");
    let options = RunOptions { workers: Some(2), ..options(std::path::Path::new("unused")) };
    let found = forecast(&plan, &options, None, &no_lab).unwrap();
    assert_eq!((found.trials, found.points, found.repetitions), (3, 1, 3));
    assert_eq!((found.judged.as_slice(), found.shown), (&["goodput_efficiency *".to_owned()][..], 1));
    assert_eq!(found.engines[0].cannot.as_deref(), Some("a lab needs root; run it with sudo"));
    assert!(!found.can_run(None) && !found.can_run(Some("lab")));
    let make = |_: &str| -> Result<Box<dyn Engine>, EngineError> { Ok(Box::new(FakeEngine::default())) };
    let found = forecast(&plan, &options, None, &make).unwrap();
    assert_eq!((found.engines[0].cannot.as_deref(), found.engines[0].estimated_s), (None, Some(1.0)));
    assert_eq!(found.engines[0].estimated_from, "the plan's `expected_s`");
    assert!(found.can_run(None));
}

#[test]
fn a_forecast_is_of_the_engine_and_the_mode_that_are_wanted() {
    let make = |_: &str| -> Result<Box<dyn Engine>, EngineError> { Ok(Box::new(FakeEngine::default())) };
    let text = testing::plan_text("overlays = [\"vl2\"]", SHUFFLE_TABLES);
    let text = text.replace("[\"lab\"]", "[\"lab\", \"sim\"]");
    let quick = |table: &str| {
        let plan = Plan::parse("p.toml", &format!("{text}\n[quick]\n{table}\n")).unwrap();
        let options = RunOptions { mode: Mode::Quick, ..options(std::path::Path::new("unused")) };
        forecast(&plan, &options, Some("lab"), &make).unwrap()
    };
    let (same, own) = (quick("repetitions = 1"), quick("expected_s = 77"));
    assert_eq!(same.engines.iter().map(|one| one.engine.as_str()).collect::<Vec<_>>(), ["lab"]);
    assert_eq!(same.engines[0].estimated_s, None, "{}", same.engines[0].estimated_from);
    assert!(same.engines[0].estimated_from.contains("a run without --quick"), "{}", same.engines[0].estimated_from);
    assert_eq!(own.engines[0].estimated_s, Some(77.0));
}

mod shards;
mod steps;
mod sweeps;
