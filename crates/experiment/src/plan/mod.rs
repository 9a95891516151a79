//! A plan: one table or figure of a paper as data. It names the scenario, the engine, the repetitions, the analysis and
//! what the paper said; it contains nothing that a number could not express.
//!
//! Three kinds of tables are laid over the plan (`merge.rs`): first `[quick]` or `[full]`, then `[engine.NAME]` of the
//! engine that runs, then a step down for a machine with too little CPU (`steps.rs`), then, after what the command line sets
//! (`setting.rs`), the variants of each point of the sweep (`sweep.rs`): `layers.rs`. Every mode is checked for every engine and step
//! when the plan is loaded, so a mistake in any of them is found before anything runs, and all mistakes are told at once, each with its
//! line and key (`diagnosis.rs`, with the schema's help: `shape.rs`).

mod claim;
mod diagnosis;
mod effect;
mod error;
mod layers;
mod library;
mod meant;
mod merge;
mod place;
mod question_set;
mod questions;
mod setting;
mod settings;
mod shape;
mod single;
mod source;
mod spec;
mod steps;
mod sweep;
mod validate;

pub use claim::{Band, Bound, Claim, Judge, Relation};
pub use error::{Mistake, PlanError};
pub(crate) use library::is_embedded;
pub use library::{
    embedded_fabrics, embedded_names, fabric_text, list, load, load_with, scenario_names, scenario_text,
};
pub use question_set::QuestionSet;
pub(crate) use questions::{COUNT, LIMIT};
pub use questions::{
    FigureKind, FigureQuestion, LogAxes, MetricQuestion, Mutation, ProblemQuestion, ProblemVerdict, TableQuestion, View,
};
pub use setting::Setting;
pub use single::{SingleSampling, SingleScenario, scenario_schema};
pub use spec::{PlanSpec, Sampling, Scale};
pub use steps::AUTO;
pub(crate) use steps::LAB;
pub use sweep::{Axis, ENGINE_AXIS, Point};

use std::collections::BTreeMap;

use effect::Effects;
use error::Misplaced;
use source::Source;

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
    source: Source,
    /// What it is in a few words, where the text is a scenario.
    scenario: Option<String>,
    /// By mode, engine and step; step 0 is the plan itself.
    specs: BTreeMap<(Mode, String, usize), PlanSpec>,
}

impl Plan {
    /// Reads a plan from its text; `origin` names it in messages. Nothing else is read, so no fabric is built.
    pub fn parse(origin: &str, text: &str) -> Result<Self, PlanError> {
        Self::parse_with(origin, text, Mode::Default, &[])
    }

    /// Reads a plan from its text with settings that are laid over it in one of its modes.
    pub fn parse_with(origin: &str, text: &str, mode: Mode, settings: &[Setting]) -> Result<Self, PlanError> {
        Self::read(Source::new(origin, text, settings, &shape::PLAN), mode, false)
    }

    /// Reads a plan. If it `builds`, the networks of every mode and engine are made once, so that a wrong size, a missing file, a
    /// workload or a fault that does not fit, or a setting that has an effect nowhere, is found before a run.
    fn read(source: Source, mode: Mode, builds: bool) -> Result<Self, PlanError> {
        match specs(&source, mode, builds) {
            Ok(specs) => Ok(Self { source, scenario: None, specs }),
            Err(first) => {
                let mut all = diagnosis::of_plan(&source, mode, builds);
                if all.is_empty() {
                    all.push(first);
                }
                Err(source.refusal(all))
            }
        }
    }

    /// The plan's short name, for instance `vl2/fig09-shuffle`.
    pub fn id(&self) -> &str {
        &self.for_mode(Mode::Default).id
    }

    /// Where it came from: a path, or `embedded plan NAME`.
    pub fn origin(&self) -> &str {
        &self.source.origin
    }

    /// The text it was read from; the run folder keeps it.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// What it is in a few words, where the text is a scenario and no plan ([`SingleScenario::plan`]).
    pub(crate) fn scenario(&self) -> Option<&str> {
        self.scenario.as_deref()
    }

    /// What was laid over it.
    pub fn settings(&self) -> &[Setting] {
        self.source.settings()
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

    /// The plan as it runs in a mode on an engine at one of its steps; `None` is the plan itself.
    pub fn at_step(&self, mode: Mode, runs_on: &str, step: Option<&str>) -> Option<&PlanSpec> {
        self.steps(mode, runs_on).find(|spec| spec.step.as_deref() == step)
    }
}

/// The plan in every mode, on every engine and at every step; an error is the first mistake.
fn specs(source: &Source, mode: Mode, builds: bool) -> Result<BTreeMap<(Mode, String, usize), PlanSpec>, Misplaced> {
    let (mut specs, mut effects) = (BTreeMap::new(), Some(Effects::default()));
    let layers = layers::of(source, &source.document()?, mode)?;
    for (number, layer) in layers.iter().enumerate() {
        let spec = layer.read()?;
        let mut problems = validate::check(&spec);
        if builds && problems.is_empty() {
            problems = validate::check_scenarios_fit(&spec, number, &mut effects);
        }
        if let Some(problem) = problems.first() {
            return Err(layer.placed(problem));
        }
        let at = |step| (layer.mode, spec.runs_on.clone(), step);
        let step = specs.range(at(0)..=at(usize::MAX)).count();
        specs.insert(at(step), spec);
    }
    match effects.into_iter().flat_map(Effects::idle).next() {
        Some((number, problem)) => Err(layers[number].placed(&problem)),
        None => Ok(specs),
    }
}

#[cfg(test)]
mod tests;
