//! Finds plans, scenarios and fabric files: a file on disk wins over what is embedded in the binary.

use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;

use super::meant::did_you_mean;
use super::{Plan, PlanError};

/// Name and text of every embedded plan, in order of the names.
static EMBEDDED: LazyLock<Vec<(&str, String)>> =
    LazyLock::new(|| inflated(include!(concat!(env!("OUT_DIR"), "/plans.rs"))));
/// Name and text of every embedded scenario, in order of the names.
static EMBEDDED_SCENARIOS: LazyLock<Vec<(&str, String)>> =
    LazyLock::new(|| inflated(include!(concat!(env!("OUT_DIR"), "/scenarios.rs"))));
/// The same for the fabric files of `fabrics/`.
static EMBEDDED_FABRICS: LazyLock<Vec<(&str, String)>> =
    LazyLock::new(|| inflated(include!(concat!(env!("OUT_DIR"), "/fabrics.rs"))));

/// What `build.rs` has put together: names with the lengths of their texts, and the texts.
fn inflated((files, texts): (&[(&'static str, u64)], &[u8])) -> Vec<(&'static str, String)> {
    let mut texts = ZlibDecoder::new(texts);
    let mut text = |length: u64| {
        let mut text = String::new();
        texts.by_ref().take(length).read_to_string(&mut text).expect("the build has put it there");
        text
    };
    files.iter().map(|(name, length)| (*name, text(*length))).collect()
}

/// Names of the embedded plans, for instance `vl2/fig09-shuffle`.
pub fn embedded_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Whether this is the text of the embedded plan of that name.
pub(crate) fn is_embedded(name: &str, text: &str) -> bool {
    EMBEDDED.iter().any(|(known, own)| *known == name && own == text)
}

/// Loads a plan by path (`my-plan.toml`) or by short name (`vl2/fig09-shuffle`), which may also be written as its path
/// in the source tree (`plans/vl2/fig09-shuffle.toml`).
pub fn load(name_or_path: &str) -> Result<Plan, PlanError> {
    let short = name_or_path.strip_prefix("plans/").unwrap_or(name_or_path);
    let short = short.strip_suffix(".toml").unwrap_or(short);
    for path in [name_or_path.to_owned(), format!("plans/{short}.toml")] {
        if Path::new(&path).is_file() {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| PlanError::Read { path: path.clone().into(), source })?;
            return checked(Plan::parse(&path, &text)?);
        }
    }
    match EMBEDDED.iter().find(|(name, _)| *name == short) {
        Some((name, text)) => checked(Plan::parse(&format!("embedded plan {name}"), text)?),
        None => Err(PlanError::NotFound { name: name_or_path.to_owned(), advice: other_plans(name_or_path, short) }),
    }
}

/// What to run instead of a plan that is not there.
fn other_plans(written: &str, short: &str) -> String {
    let known: Vec<&str> = embedded_names().collect();
    match did_you_mean(short, &known) {
        Some(question) => format!("{question} `weft list` shows all, and a file may be given"),
        None if written.ends_with(".toml") => "there is no such file; `weft list` shows the plans of weft".to_owned(),
        None => format!("give a file or one of: {}", known.join(", ")),
    }
}

fn checked(plan: Plan) -> Result<Plan, PlanError> {
    plan.check_scenarios()?;
    Ok(plan)
}

/// What names a scenario in messages, and its text, by its short name: a file in `scenarios/` on disk, or one embedded in the binary.
/// `None` if there is none.
pub fn scenario_text(name: &str) -> Option<(String, std::io::Result<String>)> {
    let path = format!("scenarios/{name}.toml");
    if Path::new(&path).is_file() {
        let text = std::fs::read_to_string(&path);
        return Some((path, text));
    }
    let found = EMBEDDED_SCENARIOS.iter().find(|(known, _)| *known == name);
    found.map(|(name, text)| (format!("embedded scenario {name}"), Ok(text.clone())))
}

/// Names of the embedded scenarios.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED_SCENARIOS.iter().map(|(name, _)| *name)
}

/// The text of a fabric file: a path, or the name of a file in `fabrics/` on disk, or one embedded in the binary, in
/// this order; `.yaml` may be left out.
pub fn fabric_text(name: &str) -> Result<String, String> {
    let file = if name.ends_with(".yaml") || name.ends_with(".yml") { name.to_owned() } else { format!("{name}.yaml") };
    let short = file.strip_prefix("fabrics/").unwrap_or(&file);
    for path in [name, &file, &format!("fabrics/{short}")] {
        if Path::new(path).is_file() {
            return std::fs::read_to_string(path).map_err(|error| error.to_string());
        }
    }
    let stem = short.rsplit_once('.').map_or(short, |(stem, _)| stem);
    let found = EMBEDDED_FABRICS.iter().find(|(name, _)| *name == stem).map(|(_, text)| text.clone());
    found.ok_or_else(|| format!("there is no such file; {}", other_fabrics(stem)))
}

/// What to take instead of a fabric that is not there.
fn other_fabrics(stem: &str) -> String {
    let known: Vec<&str> = EMBEDDED_FABRICS.iter().map(|(name, _)| *name).collect();
    let all = format!("embedded fabrics are: {}", known.join(", "));
    did_you_mean(stem, &known).map_or(all.clone(), |question| format!("{question} {all}"))
}

/// Every plan that can be run by its short name.
pub fn list() -> Result<Vec<Plan>, PlanError> {
    embedded_names().map(load).collect()
}
