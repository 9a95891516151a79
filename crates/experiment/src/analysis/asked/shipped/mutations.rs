//! Every required claim is seen to fail: `rows/PLAN.sql` makes rows on which a plan's required claims hold, and each of its mutations,
//! which are statements too, must make the claims fail that say so.

use std::path::{Path, PathBuf};

use weft_scenario::record::Records;
use weft_scenario::topology::to_yaml;

use crate::analysis::Input;
use crate::analysis::testing::trials_of;
use crate::plan::{self, Mode, PlanSpec};
use crate::query::Database;
use crate::run_folder::{fabric_file, read_trials, write_trial_rows};
use crate::summary::ClaimResult;
use crate::verdict::{self, Verdict};

/// Required claims that nothing has shown to fail. It only ever shrinks.
const UNSHOWN: usize = 0;

#[test]
fn every_required_claim_has_been_seen_to_fail() {
    let mut wrong = Vec::new();
    let mut unshown = Vec::new();
    for plan in plan::list().expect("shipped plans are read") {
        let spec = plan.for_mode(Mode::Default);
        let required = spec.claims.iter().filter(|claim| claim.required);
        unshown.extend(
            required.filter(|claim| claim.fails_when.is_none()).map(|claim| format!("{} {}", spec.id, claim.id)),
        );
        if !spec.mutations.is_empty() {
            wrong.extend(tried(spec).into_iter().map(|text| format!("{}: {text}", spec.id)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(unshown.len(), UNSHOWN, "{}", unshown.join("\n"));
}

/// What is wrong with a plan's mutations.
fn tried(spec: &PlanSpec) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let shown: Vec<_> = spec.claims.iter().filter(|claim| claim.fails_when.is_some()).collect();
    let files = match good_rows(spec, folder.path()) {
        Ok(files) => files,
        Err(error) => return vec![error],
    };
    let mut wrong = Vec::new();
    let good = judged(spec, folder.path(), &files);
    for claim in shown.iter().map(|claim| of(&good, &claim.id)) {
        if !matches!(claim.verdict, Verdict::Pass | Verdict::Differs) {
            wrong.push(format!("`{}` does not hold on good rows: {claim:?}", claim.id));
        }
    }
    for mutation in &spec.mutations {
        let names: Vec<_> = shown.iter().filter(|claim| claim.fails_when.as_ref() == Some(&mutation.id)).collect();
        if names.is_empty() {
            wrong.push(format!("no claim fails when `{}`", mutation.id));
        }
        let copy = copied(folder.path());
        let changed =
            Database::with_spec(copy.path(), &files, spec).and_then(|database| database.change(&mutation.sql));
        if let Err(error) = changed {
            wrong.push(format!("`{}`: {error}", mutation.id));
            continue;
        }
        let bad = judged(spec, copy.path(), &files);
        for claim in names.iter().map(|claim| of(&bad, &claim.id)) {
            if claim.verdict != Verdict::Fail {
                wrong.push(format!("`{}` does not fail when `{}`: {claim:?}", claim.id, mutation.id));
            }
        }
    }
    wrong
}

fn of<'a>(claims: &'a [ClaimResult], id: &str) -> &'a ClaimResult {
    claims.iter().find(|claim| claim.id == id).expect("it is the plan's")
}

/// A run folder with rows that its statements make; the files of its networks.
fn good_rows(spec: &PlanSpec, folder: &Path) -> Result<Vec<String>, String> {
    let path = rows_of(spec);
    let sql = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let records = folder.join("records");
    std::fs::create_dir(&records).expect("it is empty");
    for trial in trials_of(spec, |_| Records::default()) {
        write_trial_rows(&records, &spec.axes, &trial).expect("rows");
    }
    let mut texts: Vec<String> = Vec::new();
    let mut files = Vec::new();
    for fabric in spec.build_fabrics()? {
        let text = to_yaml(&fabric);
        let place = texts.iter().position(|known| *known == text).unwrap_or(texts.len());
        files.push(fabric_file(place));
        if place == texts.len() {
            std::fs::write(folder.join(fabric_file(place)), &text).expect("a network");
            texts.push(text);
        }
    }
    std::fs::write(folder.join("manifest.json"), "{}").expect("a manifest");
    let database = Database::with_spec(folder, &files, spec).map_err(|error| error.to_string())?;
    database.change(&sql).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(files)
}

fn rows_of(spec: &PlanSpec) -> PathBuf {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/analysis/asked/shipped/rows");
    rows.join(format!("{}.sql", spec.id))
}

fn copied(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(copy.path().join("records")).expect("it is empty");
    for part in ["", "records"] {
        for entry in std::fs::read_dir(folder.join(part)).expect("it is there").flatten() {
            if entry.path().is_file() {
                std::fs::copy(entry.path(), copy.path().join(part).join(entry.file_name())).expect("a file");
            }
        }
    }
    copy
}

/// The claims as a run with this folder has them.
fn judged(spec: &PlanSpec, folder: &Path, files: &[String]) -> Vec<ClaimResult> {
    let trials =
        read_trials(&folder.join("records"), &spec.axes, spec.analysis.reads()).expect("rows that are read back");
    let database = Database::with_spec(folder, files, spec).expect("the plan's views are questions");
    let fabrics = spec.build_fabrics().expect("they are valid");
    let findings = spec.analysis.run(&Input { spec, fabrics: &fabrics, trials: &trials, database: Some(&database) });
    verdict::judge_all(&spec.claims, &findings)
}
