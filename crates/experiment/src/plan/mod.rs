//! A plan: one table or figure of a paper as data. It names the scenario, the engine, the repetitions, the analysis and
//! what the paper said; it contains nothing that a number could not express.
//!
//! `[quick]` and `[full]` are tables merged over the plan (`merge.rs`); each mode is checked when the plan is loaded, so
//! a mistake in any of them is found before anything runs.

mod claim;
mod error;
mod library;
mod merge;
mod spec;
mod validate;

pub use claim::{Claim, Judge, Relation};
pub use error::PlanError;
pub use library::{embedded_names, fabric_text, list, load};
pub use spec::{PlanSpec, Sampling, Scale};

use toml::de::DeTable;

/// How much of a plan runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

/// A loaded plan: valid in every mode.
#[derive(Clone, Debug)]
pub struct Plan {
    origin: String,
    text: String,
    default: PlanSpec,
    quick: PlanSpec,
    full: PlanSpec,
}

impl Plan {
    /// Reads a plan from its text; `origin` names it in messages. Nothing else is read, so no fabric is built.
    pub fn parse(origin: &str, text: &str) -> Result<Self, PlanError> {
        let default = read_mode(origin, text, Mode::Default)?;
        let quick = read_mode(origin, text, Mode::Quick)?;
        let full = read_mode(origin, text, Mode::Full)?;
        Ok(Self { origin: origin.to_owned(), text: text.to_owned(), default, quick, full })
    }

    /// Builds the network of every mode once, so that a wrong size, a missing file, a workload or a fault that does not
    /// fit is found before a run.
    fn check_scenarios(&self) -> Result<(), PlanError> {
        [&self.default, &self.quick, &self.full]
            .into_iter()
            .try_for_each(validate::check_scenario_fits)
            .map_err(|problem| PlanError::invalid(&self.origin, &self.text, problem))
    }

    /// The plan's short name, for instance `vl2/fig09-shuffle`.
    pub fn id(&self) -> &str {
        &self.default.id
    }

    /// Where it came from: a path, or `embedded plan NAME`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The text it was read from; the run folder keeps it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The plan as it runs in a mode.
    pub fn for_mode(&self, mode: Mode) -> &PlanSpec {
        match mode {
            Mode::Quick => &self.quick,
            Mode::Default => &self.default,
            Mode::Full => &self.full,
        }
    }
}

fn read_mode(origin: &str, text: &str, mode: Mode) -> Result<PlanSpec, PlanError> {
    let at = |error: toml::de::Error| PlanError::syntax(origin, text, &error);
    let mut table = DeTable::parse(text).map_err(at)?;
    let (quick, full) = (merge::take_table(&mut table, "quick"), merge::take_table(&mut table, "full"));
    let change = match mode {
        Mode::Default => None,
        Mode::Quick => Some(quick.map_err(at)?),
        Mode::Full => Some(full.map_err(at)?),
    };
    if let Some(change) = change.flatten() {
        merge::merge(table.get_mut(), change);
    }
    let spec: PlanSpec = serde::Deserialize::deserialize(toml::de::Deserializer::from(table)).map_err(at)?;
    validate::check(&spec).map_err(|problem| PlanError::invalid(origin, text, problem))?;
    Ok(spec)
}

#[cfg(test)]
mod tests;
