//! Which engine runs a plan: the one that was asked for, or the lab where it can run and else the simulator. A plan without
//! packets is computed.

use weft_model::CALC;
use weft_scenario::engine::{Engine, EngineError};

use super::fit::or_simulate;
use super::{RunError, check_fit};
use crate::plan::{Mode, Plan, PlanSpec, SIM};

const LAB: &str = "lab";

/// What runs, and why where the user left it open.
pub struct Choice {
    /// One engine, or all that the plan compares, in its order.
    pub engines: Vec<Box<dyn Engine>>,
    /// One line for people.
    pub why: Option<String>,
}

/// Makes the engine of this name, or says why this machine or build has none.
pub type MakeEngine<'a> = &'a dyn Fn(&str) -> Result<Box<dyn Engine>, EngineError>;

/// Chooses, and refuses what this machine or build cannot run. `wanted` is the engine that was asked for.
pub fn choose(wanted: Option<&str>, plan: &Plan, mode: Mode, make: MakeEngine<'_>) -> Result<Choice, RunError> {
    let spec = plan.for_mode(mode);
    let choice = |engine: Box<dyn Engine>, why: &str| {
        let why = Some(format!("engine: {} ({why})", engine.name()));
        Ok(Choice { engines: vec![engine], why })
    };
    if spec.compares_engines() {
        return compared(wanted, plan, spec, make);
    }
    if let Some(name) = wanted {
        let engine = make(name).map_err(|error| or_simulate(spec, name, error))?;
        return Ok(Choice { engines: vec![engine], why: None });
    }
    let allows = |name: &str| spec.engines.iter().any(|engine| engine == name);
    if !allows(LAB) {
        return choice(make(if allows(CALC) { CALC } else { SIM })?, "the plan names no other");
    }
    let lab = make(LAB).map_err(RunError::from).and_then(|lab| {
        check_fit(plan, &[lab.as_ref()], mode)?;
        Ok(lab)
    });
    match lab {
        Ok(lab) => choice(lab, "this machine can run it"),
        Err(RunError::Engine(EngineError::NotFit { what, .. })) if allows(SIM) => choice(make(SIM)?, &what),
        Err(error) => Err(error),
    }
}

fn compared(wanted: Option<&str>, plan: &Plan, spec: &PlanSpec, make: MakeEngine<'_>) -> Result<Choice, RunError> {
    let engines = spec.engines.join(" and ");
    if wanted.is_some() {
        return Err(RunError::ComparesEngines { plan: plan.id().to_owned(), engines });
    }
    let why = Some(format!("engines: {engines} (the plan compares them)"));
    Ok(Choice { engines: spec.engines.iter().map(|name| make(name)).collect::<Result<_, _>>()?, why })
}
