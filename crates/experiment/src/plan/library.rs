//! Finds plans, scenarios and fabric files: a file on disk wins over what is embedded in the binary.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use weft_scenario::topology::Generator;

use super::meant::{did_you_mean, meant, question};
use super::source::Source;
use super::{Mode, Plan, PlanError, Setting, shape};

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
    load_with(name_or_path, Mode::Default, &[])
}

/// Loads a plan as [`load`] does, with settings that are laid over it in the mode that is to run.
pub fn load_with(name_or_path: &str, mode: Mode, settings: &[Setting]) -> Result<Plan, PlanError> {
    let read = |origin: &str, text: &str| Plan::read(Source::new(origin, text, settings, &shape::PLAN), mode, true);
    let short = name_or_path.strip_prefix("plans/").unwrap_or(name_or_path);
    let short = short.strip_suffix(".toml").unwrap_or(short);
    let paths = [name_or_path.to_owned(), format!("plans/{short}.toml")].map(PathBuf::from);
    let (found, unreadable) = first_file(&paths);
    if let Some((path, text)) = found {
        return read(&path.display().to_string(), &text);
    }
    match EMBEDDED.iter().find(|(name, _)| *name == short) {
        Some((name, text)) => read(&format!("embedded plan {name}"), text),
        None => Err(unreadable.map_or_else(
            || PlanError::NotFound { name: name_or_path.to_owned(), advice: other_plans(name_or_path, short) },
            |(path, source)| PlanError::Read { path, source },
        )),
    }
}

/// What to run instead of a plan that is not there.
fn other_plans(written: &str, short: &str) -> String {
    let known: Vec<&str> = embedded_names().collect();
    let scenarios: Vec<&str> = scenario_names().collect();
    match did_you_mean(short, &known) {
        Some(question) => format!("{question} `weft list` shows all, and a file may be given"),
        None if scenarios.contains(&short) => format!("that is a scenario: weft sim {short}"),
        None if written.ends_with(".toml") => "there is no such file; `weft list` shows the plans of weft".to_owned(),
        None => format!("give a file or one of: {}", known.join(", ")),
    }
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

/// How the origin of an embedded plan or scenario begins.
const EMBEDDED_ORIGINS: [&str; 2] = ["embedded plan ", "embedded scenario "];

/// The folder of the file that something was read from; none of an embedded plan.
pub(super) fn folder_of(origin: &str) -> Option<PathBuf> {
    let is_file = !EMBEDDED_ORIGINS.iter().any(|word| origin.starts_with(word));
    is_file.then(|| Path::new(origin).parent().map_or_else(PathBuf::new, Path::to_path_buf))
}

/// The text of a fabric file: a path, or the name of a file in `fabrics/` on disk, or one embedded in the binary, in this order;
/// `.yaml` may be left out. A path is one from `folder`: that of the file that names it, or the current one (`""`) for the command line.
/// `None`: there are no files beside.
pub fn fabric_text(name: &str, folder: Option<&Path>) -> Result<String, String> {
    let file = if name.ends_with(".yaml") || name.ends_with(".yml") { name.to_owned() } else { format!("{name}.yaml") };
    let short = file.strip_prefix("fabrics/").unwrap_or(&file);
    let beside = folder.into_iter().flat_map(|folder| [folder.join(name), folder.join(&file)]);
    // Only names: what is a path is beside, or nowhere.
    let in_fabrics = (!short.contains('/')).then(|| Path::new("fabrics").join(short));
    let paths: Vec<PathBuf> = beside.chain(in_fabrics).collect();
    let (found, unreadable) = first_file(&paths);
    if let Some((_, text)) = found {
        return Ok(text);
    }
    let stem = short.rsplit_once('.').map_or(short, |(stem, _)| stem);
    if let Some((_, text)) = EMBEDDED_FABRICS.iter().find(|(name, _)| *name == stem) {
        return Ok(text.clone());
    }
    Err(match unreadable {
        Some((path, reason)) => format!("cannot read {}: {reason}", path.display()),
        None => {
            let beside = folder.filter(|folder| !folder.as_os_str().is_empty() && Path::new(name).is_relative());
            let place = beside.map_or_else(String::new, |folder| format!(" in {}", folder.display()));
            format!("there is no such file{place}; {}", other_fabrics(stem))
        }
    })
}

/// A file's path and text.
type Found = (PathBuf, String);

/// The first of the files that is there, and of those before it the first that is there and cannot be read, with the reason. A folder
/// is passed by like a file that is missing, if another is found: that of a run may have a plan's name.
fn first_file(paths: &[PathBuf]) -> (Option<Found>, Option<(PathBuf, io::Error)>) {
    let mut unreadable = None;
    for path in paths {
        match std::fs::read_to_string(path) {
            Ok(text) => return (Some((path.clone(), text)), unreadable),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => {
                unreadable.get_or_insert((path.clone(), error));
            }
        }
    }
    (None, unreadable)
}

/// Names of the embedded fabrics.
pub fn embedded_fabrics() -> impl Iterator<Item = &'static str> {
    EMBEDDED_FABRICS.iter().map(|(name, _)| *name)
}

/// What to take instead of a fabric that is not there.
fn other_fabrics(stem: &str) -> String {
    if let Some(generator) = Generator::ALL.into_iter().find(|generator| generator.name() == stem) {
        let keys = generator.keys().join(", ");
        return format!("`{stem}` is a generator, which is written `{}`; it takes {keys}", generator.example());
    }
    let fabrics: Vec<&str> = embedded_fabrics().collect();
    let generators = || Generator::ALL.into_iter().filter(|generator| !fabrics.contains(&generator.name()));
    let known: Vec<&str> = fabrics.iter().copied().chain(generators().map(Generator::name)).collect();
    let scenarios: Vec<&str> = scenario_names().collect();
    let of_sim = |question: String| format!("{question} That is a scenario, which `weft sim` runs;");
    // A generator is written with its parameters.
    let written =
        |name: &'static str| generators().find(|generator| generator.name() == name).map_or(name, Generator::example);
    let meant: Vec<&str> = meant(stem, &known).into_iter().map(written).collect();
    let question = question(&meant).or_else(|| did_you_mean(stem, &scenarios).map(of_sim));
    question.map_or_else(
        || {
            let names = Generator::ALL.map(Generator::name).join(", ");
            format!(
                "fabrics of weft are: {}; generators, as `{}`: {names}; scenarios of `weft sim`: {}; `weft fabric list` says more",
                fabrics.join(", "),
                Generator::FatTree.example(),
                scenarios.join(", ")
            )
        },
        |question| format!("{question} `weft fabric list` shows all fabrics and generators"),
    )
}

/// Every plan that can be run by its short name.
pub fn list() -> Result<Vec<Plan>, PlanError> {
    embedded_names().map(load).collect()
}
