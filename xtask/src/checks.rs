//! One function per check; each returns what it found, as lines that name the place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weft_experiment::plan::{Claim, Mode};
use weft_scenario::engine::Overlay;
use weft_scenario::record::RowKind;

/// The repository's root, from this crate's place in it.
pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// Every check.
pub(crate) fn all(root: &Path) -> Vec<String> {
    [
        crate_list(root),
        file_heads(root),
        module_roots(root),
        item_docs(root),
        marks(root),
        skips(root),
        simulators_in_soak(root),
        plans_in_papers(root),
        claims_in_papers(root),
        dead_links(root),
        records_page(root),
        record_files(root),
        overlays_page(root),
        named_paths(root),
        crate::supply::findings(root),
        crate::features::findings(root),
    ]
    .concat()
}

/// ARCHITECTURE.md lists exactly the workspace's crates.
fn crate_list(root: &Path) -> Vec<String> {
    let text = read(&root.join("ARCHITECTURE.md"));
    let listed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned()))
        .filter(|name| name.starts_with("crates/") || ["fuzz", "xtask"].contains(&name.as_str()))
        .collect();
    let mut present: BTreeSet<String> = ["fuzz".to_owned(), "xtask".to_owned()].into();
    for entry in fs::read_dir(root.join("crates")).expect("crates/ is there").flatten() {
        if entry.path().join("Cargo.toml").exists() {
            present.insert(format!("crates/{}", entry.file_name().to_string_lossy()));
        }
    }
    let missing = present.difference(&listed).map(|name| format!("ARCHITECTURE.md does not list {name}"));
    let gone = listed.difference(&present).map(|name| format!("ARCHITECTURE.md lists {name}, which is not there"));
    missing.chain(gone).collect()
}

/// Each Rust file says why it exists; each C file carries its licence.
fn file_heads(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files(root, &["rs", "c", "h"]) {
        let text = read(&path);
        let wanted =
            if path.extension().is_some_and(|end| end == "rs") { "//!" } else { "/* SPDX-License-Identifier:" };
        if !text.starts_with(wanted) {
            findings.push(format!("{}: does not begin with `{wanted}`", shown(root, &path)));
        }
    }
    findings
}

/// A module with modules has its root in their folder; a folder of data may lie beside it.
fn module_roots(root: &Path) -> Vec<String> {
    // A program's modules lie beside it, and so do a build script's.
    let is_root = |path: &Path| ["lib.rs", "main.rs", "build.rs"].iter().any(|name| path.ends_with(name));
    files(root, &["rs"])
        .iter()
        .filter(|path| !is_root(path) && !files(&path.with_extension(""), &["rs"]).is_empty())
        .map(|path| format!("{}: belongs into its folder, as mod.rs", shown(root, path)))
        .collect()
}

/// Public items of product code say what they are; fields and variants only where the name does not.
fn item_docs(root: &Path) -> Vec<String> {
    const ITEMS: [&str; 6] = ["pub fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait ", "pub type "];
    let mut findings = Vec::new();
    for path in files(&root.join("crates"), &["rs"]) {
        if path
            .components()
            .any(|part| ["tests", "build", "build.rs", "tests.rs"].iter().any(|test| part.as_os_str() == *test))
        {
            continue;
        }
        let text = read(&path);
        let mut has_docs = false;
        for (number, line) in text.lines().enumerate().take_while(|(_, line)| *line != "#[cfg(test)]") {
            let line = line.trim_start();
            if !has_docs && !line.contains('$') && ITEMS.iter().any(|item| line.starts_with(item)) {
                findings.push(format!("{}:{}: without a word on what it is", shown(root, &path), number + 1));
            }
            has_docs = line.starts_with("///") || (has_docs && !line.ends_with(['}', ';']) && !line.is_empty());
        }
    }
    findings
}

/// Nothing is left half done in the code, and a test is left out only because it takes long.
fn marks(root: &Path) -> Vec<String> {
    let long_test = ["#[ig", "nore = \"long: make test-long\"]"].concat();
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["#[ig", "nore"].concat()];
    let mut findings = Vec::new();
    for path in files(root, &["rs", "c", "h"]) {
        for (number, line) in read(&path).lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) && line.trim() != long_test {
                findings.push(format!("{}:{}: {}", shown(root, &path), number + 1, line.trim()));
            }
        }
    }
    findings
}

/// A test that may not run says so by `weft_needs` alone, which counts it.
fn skips(root: &Path) -> Vec<String> {
    let rooms = ["crates", "fuzz"].map(|room| root.join(room));
    let mut findings = Vec::new();
    for path in rooms.iter().flat_map(|room| files(room, &["rs"])) {
        let is_home = path.starts_with(root.join("crates/needs"));
        for (number, line) in read(&path).lines().enumerate().filter(|_| !is_home) {
            if line.contains("\"skipped:") {
                findings.push(format!("{}:{}: skips uncounted; use weft_needs", shown(root, &path), number + 1));
            }
        }
    }
    findings
}

/// `make soak` gives fresh seeds to every simulator that tests name.
fn simulators_in_soak(root: &Path) -> Vec<String> {
    let soak = read(&root.join("scripts/soak/run.sh"));
    let texts: Vec<String> = files(&root.join("crates"), &["rs"]).iter().map(|path| read(path)).collect();
    let calls = texts.iter().flat_map(|text| ["each_seed(\"", "live_all(\""].map(|call| text.split(call).skip(1)));
    let names: BTreeSet<&str> = calls.flatten().filter_map(|rest| rest.split_once('"').map(|(name, _)| name)).collect();
    let missing = names.iter().filter(|name| **name != "no-such-simulator" && !soak.contains(&format!("\"{name} ")));
    missing.map(|name| format!("scripts/soak/run.sh has no simulator {name}")).collect()
}

/// Every plan has its row in docs/papers.md.
fn plans_in_papers(root: &Path) -> Vec<String> {
    let papers = read(&root.join("docs/papers.md"));
    files(&root.join("plans"), &["toml"])
        .iter()
        .filter_map(|path| {
            let plan = shown(&root.join("plans"), path);
            let plan = plan.trim_end_matches(".toml");
            let ours = text_value(&read(path), "paper").is_some_and(|paper| paper == "weft");
            (!ours && !papers.contains(plan)).then(|| format!("docs/papers.md has no row with plan {plan}"))
        })
        .collect()
}

/// Every claim that docs/papers.md names (`plan#claim`) is there and judged; a row that `differs` names one that says why, and every
/// claim that says why has its row.
fn claims_in_papers(root: &Path) -> Vec<String> {
    let plans = weft_experiment::plan::list().expect("shipped plans are read");
    let claims: BTreeMap<String, &Claim> = plans
        .iter()
        .flat_map(|plan| {
            plan.for_mode(Mode::Default).claims.iter().map(|claim| (format!("{}#{}", plan.id(), claim.id), claim))
        })
        .collect();
    claims_of_rows(&read(&root.join("docs/papers.md")), &claims)
}

fn claims_of_rows(page: &str, claims: &BTreeMap<String, &Claim>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut explained: BTreeSet<&str> =
        claims.iter().filter(|(_, claim)| claim.because.is_some()).map(|(name, _)| name.as_str()).collect();
    for (number, line) in (1..).zip(page.lines()) {
        let mut says_why = false;
        for name in line.split('`').skip(1).step_by(2).filter(|word| word.contains('#') && word.contains('/')) {
            match claims.get(name) {
                None => findings.push(format!("docs/papers.md:{number}: no plan has the claim {name}")),
                Some(claim) if !claim.is_judged() => {
                    findings.push(format!("docs/papers.md:{number}: {name} is not judged"))
                }
                Some(claim) => says_why |= claim.because.is_some(),
            }
            explained.remove(name);
        }
        if line.ends_with("| `differs` |") && !says_why {
            findings.push(format!("docs/papers.md:{number}: differs, and names no claim with `because`"));
        }
    }
    findings.extend(
        explained.iter().map(|name| format!("docs/papers.md has no row with {name}, which differs from its paper")),
    );
    findings
}

/// `key = "value"` at the start of a line.
fn text_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
    line.trim().strip_prefix('"')?.split('"').next()
}

/// Links between our documents lead somewhere.
fn dead_links(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files(root, &["md"]) {
        for target in read(&path).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let folder = path.parent().expect("a file lies in a folder");
            if !file.is_empty() && !target.contains("://") && !folder.join(file).exists() {
                findings.push(format!("{}: link to {target} leads nowhere", shown(root, &path)));
            }
        }
    }
    findings
}

/// The page of records is what their declaration says.
fn records_page(root: &Path) -> Vec<String> {
    let same = read(&root.join("docs/records.md")) == weft_experiment::run_folder::records_page();
    let stale = "docs/records.md is not what crates/scenario/src/record declares: \
                 run `cargo run -p xtask -- records > docs/records.md`";
    if same { Vec::new() } else { vec![stale.to_owned()] }
}

/// Whoever names a file of rows names one that there is.
fn record_files(root: &Path) -> Vec<String> {
    let known: BTreeSet<String> = RowKind::ALL.iter().map(RowKind::file).chain(["trials.csv".to_owned()]).collect();
    let mut findings = Vec::new();
    for path in files(root, &["rs", "md", "toml", "ipynb"]) {
        for name in read(&path).split("records/").skip(1).filter_map(|rest| Some(rest.split_once(".csv")?.0)) {
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            if is_name && !known.contains(&format!("{name}.csv")) {
                findings.push(format!("{}: no rows are in records/{name}.csv", shown(root, &path)));
            }
        }
    }
    findings
}

/// The page of scenarios tells every overlay.
fn overlays_page(root: &Path) -> Vec<String> {
    let page = read(&root.join("docs/scenarios.md"));
    let untold = Overlay::ALL.iter().filter(|word| !page.contains(&format!("`{}`", word.name)));
    untold.map(|word| format!("docs/scenarios.md does not tell the overlay `{}`", word.name)).collect()
}

/// Every path and every module that the pages for contributors name is there.
fn named_paths(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for page in ["ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md"] {
        for word in read(&root.join(page)).split('`').skip(1).step_by(2) {
            if !is_there(root, word) {
                findings.push(format!("{page} names {word}, which is not there"));
            }
        }
    }
    findings
}

/// Whether a word of code that looks like a path from the root (`crates/..`) or a module (`lab::folder`) is one; others are not judged.
fn is_there(root: &Path, word: &str) -> bool {
    if word.contains([' ', '*', '<', '=', '$']) {
        return true;
    }
    if let Some((top, _)) = word.split_once('/') {
        return top.is_empty() || !root.join(top).is_dir() || root.join(word).exists();
    }
    let Some((krate, rest)) = word.split_once("::") else { return true };
    let source = root.join("crates").join(krate).join("src");
    let module = rest.split("::").next().unwrap_or_default();
    let is_module = module.starts_with(|first: char| first.is_ascii_lowercase()) && !module.contains('(');
    !source.is_dir() || !is_module || source.join(module).is_dir() || source.join(format!("{module}.rs")).is_file()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// All files below a folder with one of the endings, without hidden folders and what cargo and weft write.
pub(crate) fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    /// Folders of output, beside a workspace's lock file; anywhere else such a name is a module's like any other.
    const OUTPUT: [&str; 3] = ["result", "run", "target"];
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let holds_output = folder.join("Cargo.lock").exists();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                let is_output = holds_output && OUTPUT.contains(&&*name);
                if !is_output && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|end| endings.iter().any(|wanted| end == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let findings = all(&repository_root());
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    #[test]
    fn only_output_and_hidden_folders_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let sources =
            ["crates/sim/src/run/mod.rs", "crates/sim/src/run/windows/target.rs", "crates/sim/src/target/a.rs"];
        let output = ["target/out/a.rs", "run/fig09/a.rs", "result/a.rs", "fuzz/libfuzzer/target/a.rs", ".git/a.rs"];
        for name in sources.iter().chain(&output).chain(&["Cargo.lock", "fuzz/libfuzzer/Cargo.lock"]) {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(files(root.path(), &["rs"]), sources.map(|name| root.path().join(name)));
        let inside = root.path().join("crates/sim/src");
        assert_eq!(files(&inside, &["rs"]), sources.map(|name| root.path().join(name)), "from within a crate");
    }

    #[test]
    fn a_row_names_claims_that_can_come_out_otherwise() {
        let plans = weft_experiment::plan::list().expect("shipped plans are read");
        let of_plan = |plan: &str, id: &str| {
            let plan = plans.iter().find(|one| one.id() == plan).expect("it is shipped");
            plan.for_mode(Mode::Default).claims.iter().find(|claim| claim.id == id).expect("it has it")
        };
        let claims: BTreeMap<String, &Claim> = [
            ("p/q#a".to_owned(), of_plan("trill/paths", "paths_used.bridge")),
            ("p/q#b".to_owned(), of_plan("trill/paths", "lost.rbridge")),
            ("p/q#c".to_owned(), of_plan("trill/table1-latency", "same_hook_net.bare")),
        ]
        .into();
        let of = |row: &str| claims_of_rows(&format!("{row}\n| 1 | x | `p/q#c` | `differs` |"), &claims);
        assert_eq!(of("| 1 | x | `p/q#a` | `works` |"), [""; 0]);
        assert_eq!(of("| 1 | x | `p/q#b` | `works` |"), ["docs/papers.md:1: p/q#b is not judged"]);
        assert_eq!(of("| 1 | x | `p/q#d` | `works` |"), ["docs/papers.md:1: no plan has the claim p/q#d"]);
        let silent = of("| 1 | x | `p/q#a` | `differs` |");
        assert_eq!(silent, ["docs/papers.md:1: differs, and names no claim with `because`"]);
        let untold = claims_of_rows("| 1 | x | `p/q#a` | `works` |", &claims);
        assert_eq!(untold, ["docs/papers.md has no row with p/q#c, which differs from its paper"]);
    }

    #[test]
    fn a_page_names_only_what_is_there() {
        let there = |word| is_there(&repository_root(), word);
        assert!(
            there("crates/lab/src/folder.rs") && there("lab::folder") && there("cargo test") && there("Nanos::from")
        );
        assert!(!there("crates/lab/src/nowhere.rs") && !there("lab::nowhere"));
    }
}
