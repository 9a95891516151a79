//! Which engine runs a plan: the one that was asked for, or the lab where it can run and else the simulator. A plan without
//! packets is computed.

use weft_experiment::plan::{Mode, Plan, PlanSpec};
use weft_experiment::runner::{self, RunError};
use weft_model::{CALC, CalcEngine};
use weft_scenario::engine::{Engine, EngineError};
use weft_sim::SimEngine;

use crate::args::EngineChoice;
use crate::commands::run::failure;
use crate::exit::Failure;

const LAB: &str = "lab";
const SIM: &str = "sim";

/// What runs, and why where the user left it open.
pub(crate) struct Choice {
    /// One engine, or all that the plan compares, in its order.
    pub(crate) engines: Vec<Box<dyn Engine>>,
    /// One line for people.
    pub(crate) why: Option<String>,
}

/// Chooses, and refuses what this machine or build cannot run.
pub(crate) fn choose(choice: EngineChoice, plan: &Plan, mode: Mode) -> Result<Choice, Failure> {
    let spec = plan.for_mode(mode);
    let only = |name: &str| Ok(Choice { engines: vec![engine(name)?], why: None });
    match choice {
        _ if spec.compares_engines() => compared(choice, plan, spec),
        EngineChoice::Lab => only(LAB),
        EngineChoice::Sim => only(SIM),
        EngineChoice::Auto => automatic(plan, mode, spec),
    }
}

fn compared(choice: EngineChoice, plan: &Plan, spec: &PlanSpec) -> Result<Choice, Failure> {
    let names = spec.engines.join(" and ");
    if choice != EngineChoice::Auto {
        return Err(Failure::usage(format!("plan `{}` compares {names}; leave out --engine", plan.id())));
    }
    let engines = spec.engines.iter().map(|name| engine(name)).collect::<Result<_, _>>()?;
    Ok(Choice { engines, why: Some(format!("engines: {names} (the plan compares them)")) })
}

/// The lab where the plan allows it and it can run, else the simulator.
fn automatic(plan: &Plan, mode: Mode, spec: &PlanSpec) -> Result<Choice, Failure> {
    let allows = |name: &str| spec.engines.iter().any(|engine| engine == name);
    let chosen =
        |engine, name: &str, why: &str| Choice { engines: vec![engine], why: Some(format!("engine: {name} ({why})")) };
    if !allows(LAB) {
        let name = if allows(CALC) { CALC } else { SIM };
        return Ok(chosen(engine(name)?, name, "the plan names no other"));
    }
    match fit_lab(plan, mode) {
        Ok(lab) => Ok(chosen(lab, LAB, "this machine can run it")),
        Err(RunError::Engine(EngineError::NotFit { what, .. })) if allows(SIM) => Ok(chosen(engine(SIM)?, SIM, &what)),
        Err(error) => Err(failure(error)),
    }
}

/// The lab, if it can run the plan here.
fn fit_lab(plan: &Plan, mode: Mode) -> Result<Box<dyn Engine>, RunError> {
    let lab = lab_engine()?;
    runner::check_fit(plan, &[lab.as_ref()], mode)?;
    Ok(lab)
}

fn engine(name: &str) -> Result<Box<dyn Engine>, Failure> {
    match name {
        LAB => Ok(lab_engine()?),
        CALC => Ok(Box::new(CalcEngine)),
        _ => Ok(Box::new(SimEngine::default())),
    }
}

#[cfg(feature = "lab")]
fn lab_engine() -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(crate::commands::lab::engine()?))
}

#[cfg(not(feature = "lab"))]
fn lab_engine() -> Result<Box<dyn Engine>, EngineError> {
    let what = "this weft was built without the lab".to_owned();
    Err(EngineError::NotFit { what, remedy: "build it with the default features, or use --engine sim".to_owned() })
}
