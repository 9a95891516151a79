//! A plan: one table or figure of a paper as data. It names the scenario, the engine, the repetitions, the analysis and
//! what the paper said; it contains nothing that a number could not express.
//!
//! Three kinds of tables are laid over the plan (`merge.rs`): first `[quick]` or `[full]`, then `[engine.NAME]` of the
//! engine that runs, then a step down for a machine with too little CPU (`steps.rs`), then the variants of each point of the sweep
//! (`sweep.rs`). Every mode is checked for every engine and step when the plan is loaded, so a mistake in any of them is found before
//! anything runs.

mod claim;
mod effect;
mod error;
mod library;
mod meant;
mod merge;
mod question_set;
mod questions;
mod settings;
mod single;
mod spec;
mod steps;
mod sweep;
mod validate;

pub use claim::{Band, Bound, Claim, Judge, Relation};
pub use error::PlanError;
pub(crate) use library::is_embedded;
pub use library::{embedded_fabrics, embedded_names, fabric_text, list, load, scenario_names, scenario_text};
pub use question_set::QuestionSet;
pub(crate) use questions::{COUNT, LIMIT};
pub use questions::{
    FigureKind, FigureQuestion, LogAxes, MetricQuestion, Mutation, ProblemQuestion, ProblemVerdict, TableQuestion, View,
};
pub use single::{SingleSampling, SingleScenario, scenario_schema};
pub use spec::{PlanSpec, Sampling, Scale};
pub use steps::AUTO;
pub(crate) use steps::LAB;
pub use sweep::{Axis, ENGINE_AXIS, Point};

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weft_scenario::engine::DirectoryStore;

use error::Misplaced;

/// The simulator, as plans name it.
pub(crate) const SIM: &str = "sim";

/// How much of a plan runs.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A smaller scenario that shows the effect within about half a minute; claims may have lower floors.
    Quick,
    /// The plan as written.
    #[default]
    Default,
    /// More repetitions or a longer run.
    Full,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Default, Self::Quick, Self::Full];

    /// The mode of the flags `--quick` and `--full`.
    pub fn asked(quick: bool, full: bool) -> Self {
        match (quick, full) {
            (true, _) => Self::Quick,
            (_, true) => Self::Full,
            _ => Self::Default,
        }
    }

    /// The table that is laid over the plan.
    fn table(self) -> Option<&'static str> {
        match self {
            Self::Quick => Some("quick"),
            Self::Default => None,
            Self::Full => Some("full"),
        }
    }
}

/// A loaded plan: valid in every mode and for every engine that it names.
#[derive(Clone, Debug)]
pub struct Plan {
    origin: String,
    text: String,
    /// What it is in a few words, where the text is a scenario.
    scenario: Option<String>,
    /// By mode, engine and step; step 0 is the plan itself.
    specs: BTreeMap<(Mode, String, usize), PlanSpec>,
}

impl Plan {
    /// Reads a plan from its text; `origin` names it in messages. Nothing else is read, so no fabric is built.
    pub fn parse(origin: &str, text: &str) -> Result<Self, PlanError> {
        let mut specs = BTreeMap::new();
        for mode in Mode::ALL {
            let read = read_mode(text, mode).map_err(|wrong| PlanError::misplaced(origin, text, &wrong))?;
            for mut spec in read {
                spec.folder = library::folder_of(origin);
                validate::check(&spec).map_err(|problem| PlanError::invalid(origin, text, problem))?;
                let step =
                    specs.range((mode, spec.runs_on.clone(), 0)..=(mode, spec.runs_on.clone(), usize::MAX)).count();
                specs.insert((mode, spec.runs_on.clone(), step), spec);
            }
        }
        Ok(Self { origin: origin.to_owned(), text: text.to_owned(), scenario: None, specs })
    }

    /// Builds the networks of every mode and engine once, so that a wrong size, a missing file, a workload or a fault
    /// that does not fit, or a setting that has an effect nowhere, is found before a run.
    fn check_scenarios(&self) -> Result<(), PlanError> {
        let mut effects = effect::Effects::default();
        self.specs
            .values()
            .try_for_each(|spec| validate::check_scenarios_fit(spec, &mut effects))
            .and_then(|()| effects.check())
            .map_err(|problem| PlanError::invalid(&self.origin, &self.text, problem))
    }

    /// The plan's short name, for instance `vl2/fig09-shuffle`.
    pub fn id(&self) -> &str {
        &self.for_mode(Mode::Default).id
    }

    /// Where it came from: a path, or `embedded plan NAME`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The text it was read from; the run folder keeps it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is in a few words, where the text is a scenario and no plan ([`SingleScenario::plan`]).
    pub(crate) fn scenario(&self) -> Option<&str> {
        self.scenario.as_deref()
    }

    /// The same plan with another store below every VL2 directory.
    #[must_use]
    pub fn with_directory(mut self, store: DirectoryStore) -> Self {
        for spec in self.specs.values_mut() {
            spec.directory = store;
            spec.points.iter_mut().for_each(|point| point.spec.directory = store);
        }
        self
    }

    /// The plan as it runs in a mode on its preferred engine.
    pub fn for_mode(&self, mode: Mode) -> &PlanSpec {
        let mut specs = self.specs.range((mode, String::new(), 0)..).map(|(_, spec)| spec);
        let first = specs.next().expect("a plan that was read has every mode");
        self.for_engine(mode, &first.engines[0]).unwrap_or(first)
    }

    /// The plan as it runs in a mode on an engine (`lab`, `sim`), or on several that it compares (`lab+sim`); `None` if
    /// it does not run there.
    pub fn for_engine(&self, mode: Mode, runs_on: &str) -> Option<&PlanSpec> {
        self.specs.get(&(mode, runs_on.to_owned(), 0))
    }

    /// The plan as it runs in a mode on an engine, and every step down from it, the highest first.
    pub fn steps(&self, mode: Mode, runs_on: &str) -> impl Iterator<Item = &PlanSpec> {
        let of_step = |step| (mode, runs_on.to_owned(), step);
        self.specs.range(of_step(0)..=of_step(usize::MAX)).map(|(_, spec)| spec)
    }

    /// The same at one of its steps; `None` is the plan itself.
    pub fn at_step(&self, mode: Mode, runs_on: &str, step: Option<&str>) -> Option<&PlanSpec> {
        self.steps(mode, runs_on).find(|spec| spec.step.as_deref() == step)
    }
}

/// The plan in one mode: once for every engine, or once for all where the engines are an axis of the sweep.
fn read_mode(text: &str, mode: Mode) -> Result<Vec<PlanSpec>, Misplaced> {
    let mut document = DeTable::parse(text)?;
    let mut changes: BTreeMap<_, _> = BTreeMap::new();
    for other in Mode::ALL.into_iter().filter_map(Mode::table) {
        changes.insert(other, merge::take_table(&mut document, other)?);
    }
    let mut steps = steps::take(document.get_mut())?;
    if let Some(name) = mode.table() {
        let mut change = changes.remove(name).flatten().unwrap_or_default();
        steps = steps::take(&mut change)?;
        merge::merge(document.get_mut(), change);
    }
    let engines = engine_tables(&mut document)?;
    let is_swept = sweeps_engines(&document);
    if let Some((id, _)) = steps.first().filter(|_| is_swept || !engines.contains_key(LAB)) {
        let message = format!("step `{id}` is for the lab, and this plan does not run in the lab alone");
        return Err(Misplaced::nowhere(message));
    }
    if is_swept {
        return Ok(vec![read_swept(document, &engines)?]);
    }
    let mut specs = Vec::new();
    for (name, change) in &engines {
        let mut document = document.clone();
        merge::merge(document.get_mut(), change.clone());
        let below = steps.iter().filter(|_| name == LAB).map(|(id, change)| (Some(id), Some(change)));
        for (step, change) in std::iter::once((None, None)).chain(below) {
            let mut document = document.clone();
            change.into_iter().for_each(|change| merge::merge(document.get_mut(), change.clone()));
            let spec = read_swept(document, &BTreeMap::new())?;
            specs.push(PlanSpec { runs_on: name.clone(), step: step.cloned(), ..spec });
        }
    }
    Ok(specs)
}

/// Takes `[engine.NAME]` of every engine of the plan; an engine without a table has an empty one.
fn engine_tables<'a>(document: &mut Spanned<DeTable<'a>>) -> Result<BTreeMap<String, DeTable<'a>>, Misplaced> {
    let listed = document.get_ref().get("engines").and_then(|list| list.get_ref().as_array());
    let names = listed.into_iter().flat_map(|list| list.iter()).filter_map(|name| name.get_ref().as_str());
    let mut tables: BTreeMap<String, DeTable<'a>> = names.map(|name| (name.to_owned(), DeTable::new())).collect();
    if tables.is_empty() {
        // The list is missing or wrong: reading the plan says so, with the place.
        tables.insert(String::new(), DeTable::new());
    }
    for (name, value) in merge::take_table(document, "engine")?.unwrap_or_default() {
        let wrong = |message: &str| Misplaced::at(name.span(), format!("`engine.{}` {message}", name.get_ref()));
        let Some(slot) = tables.get_mut(name.get_ref().as_ref()) else {
            return Err(wrong("is no engine of this plan; `engines` lists them"));
        };
        let DeValue::Table(table) = value.into_inner() else { return Err(wrong("must be a table")) };
        if ["id", "engines", "analysis"].into_iter().any(|key| table.contains_key(key)) {
            return Err(wrong("cannot change `id`, `engines` or `analysis`"));
        }
        *slot = table;
    }
    Ok(tables)
}

fn sweeps_engines(document: &Spanned<DeTable<'_>>) -> bool {
    let sweep = document.get_ref().get("sweep").and_then(|sweep| sweep.get_ref().as_table());
    sweep.is_some_and(|sweep| sweep.contains_key(ENGINE_AXIS))
}

/// The plan with all its points; what they share is read from the first.
fn read_swept<'a>(
    mut document: Spanned<DeTable<'a>>,
    engines: &BTreeMap<String, DeTable<'a>>,
) -> Result<PlanSpec, Misplaced> {
    let (axes, points) = sweep::expand(&mut document, engines)?;
    let shared = points.first().expect("every axis has a place").spec.clone();
    let runs_on = shared.engines.join("+");
    PlanSpec { axes, points, runs_on, ..shared }.with_question_set()
}

#[cfg(test)]
mod tests;
