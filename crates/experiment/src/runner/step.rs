//! Which of a plan's rates the machine has time for: each is tried for some seconds, the highest first.

use weft_scenario::engine::{Engine, EngineError, Progress};
use weft_scenario::units::Nanos;

use super::schedule;
use super::{RunError, RunOptions, fit};
use crate::analysis::cpu::Pressure;
use crate::analysis::series::Window;
use crate::plan::{AUTO, LAB, Mode, Plan, PlanSpec};
use crate::summary::StepTaken;

/// How long a rate is tried. Its first part is left out: flows begin all at once there.
const TRIED_S: f64 = 9.0;
const LEFT_OUT_S: f64 = 3.0;

/// Tries the plan's own rates, then its steps. Where none fits the lowest is taken, which says so. The result is what
/// [`RunOptions::step`] wants.
pub fn find_step(
    plan: &Plan,
    engines: &[&dyn Engine],
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<StepTaken, RunError> {
    let engine = in_lab(engines)?;
    let specs: Vec<&PlanSpec> = plan.steps(options.mode, LAB).collect();
    if specs.len() < 2 {
        return Err(no_step(plan, options.mode, AUTO));
    }
    let names: Vec<Option<String>> = specs.iter().map(|spec| spec.step.clone()).collect();
    first_that_fits(&names, &mut |place| {
        progress.note(&format!("trying {} for {TRIED_S} s", words(names[place].as_deref())));
        let pressure = tried(specs[place], engine, options.seed, progress)?;
        progress.note(&format!("{}: {}", words(names[place].as_deref()), pressure.words()));
        Ok(pressure)
    })
}

/// The plan at a step that was asked for by name.
pub(super) fn named<'a>(plan: &'a Plan, mode: Mode, engine: &str, name: &str) -> Result<&'a PlanSpec, RunError> {
    match engine {
        LAB => plan.at_step(mode, LAB, Some(name)).ok_or_else(|| no_step(plan, mode, name)),
        other => Err(RunError::StepsElsewhere { engine: other.to_owned() }),
    }
}

fn no_step(plan: &Plan, mode: Mode, step: &str) -> RunError {
    let names: Vec<&str> = plan.steps(mode, LAB).filter_map(|spec| spec.step.as_deref()).collect();
    let known = match names.as_slice() {
        [] => "it has none: leave out --step".to_owned(),
        names => format!("it has: {}, and `{AUTO}` looks for the highest rate that fits", names.join(", ")),
    };
    RunError::NoStep { plan: plan.id().to_owned(), step: step.to_owned(), known }
}

fn in_lab<'a>(engines: &[&'a dyn Engine]) -> Result<&'a dyn Engine, RunError> {
    match engines {
        [engine] if engine.name() == LAB => Ok(*engine),
        _ => {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            Err(RunError::StepsElsewhere { engine: names.join("+") })
        }
    }
}

fn words(step: Option<&str>) -> String {
    step.map_or_else(|| "the plan's own rates".to_owned(), |name| format!("step `{name}`"))
}

/// Tries one after another, from the highest; what did not fit is named with the reason.
fn first_that_fits(
    names: &[Option<String>],
    try_one: &mut dyn FnMut(usize) -> Result<Pressure, RunError>,
) -> Result<StepTaken, RunError> {
    let mut refused = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let (pressure, named) = (try_one(place)?, words(name.as_deref()));
        if !pressure.is_bound() {
            let not = if refused.is_empty() { String::new() } else { format!("; not {}", refused.join("; not ")) };
            let why = format!("{named}, the highest that this machine has time for: {}{not}", pressure.words());
            return Ok(StepTaken { name: name.clone(), why });
        }
        refused.push(format!("{named}: {}", pressure.words()));
    }
    let name = names.last().cloned().flatten();
    let why = format!(
        "{}, the lowest, and this machine has no time for it either: {}",
        words(name.as_deref()),
        refused.join("; ")
    );
    Ok(StepTaken { name, why })
}

/// What the first trial's first seconds say of the CPU.
fn tried(spec: &PlanSpec, engine: &dyn Engine, seed: u64, progress: &dyn Progress) -> Result<Pressure, RunError> {
    if progress.interrupted() {
        return Err(EngineError::Interrupted.into());
    }
    let fabrics = spec.build_fabrics().map_err(|message| RunError::Scenario { plan: spec.id.clone(), message })?;
    fit::require(spec, &fabrics, &[engine])?;
    let batches = schedule::batches(spec, &fabrics, seed);
    let first = batches.first().and_then(|batch| Some((batch, batch.jobs.first()?)));
    let (batch, job) = first.expect("a plan that was read has a trial");
    let mut trial = job.trial.clone();
    trial.time_limit = trial.time_limit.min(Nanos((TRIED_S * 1e9) as u64));
    (trial.replay, trial.probes, trial.tcp_interval) = (false, None, None);
    trial.faults.clear();
    let mut session = engine.prepare(&batch.networks[job.network].scenario()?, progress)?;
    let records = session.run(&trial)?;
    session.close()?;
    Ok(Pressure::of(&records, Window { from_s: LEFT_OUT_S, to_s: TRIED_S + 1.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(wait_ms: f64) -> Pressure {
        Pressure { wait_ms: Some(wait_ms), idle_ratio: None }
    }

    fn taken(waits_ms: &[f64]) -> (StepTaken, usize) {
        let names = [None, Some("10mbit".to_owned()), Some("5mbit".to_owned())];
        let mut tries = 0;
        let step = first_that_fits(&names, &mut |place| {
            tries += 1;
            Ok(waiting(waits_ms[place]))
        });
        (step.unwrap(), tries)
    }

    #[test]
    fn the_highest_that_fits_is_taken_and_nothing_below_it_is_tried() {
        let (step, tries) = taken(&[0.3]);
        assert_eq!((step.name, tries), (None, 1));
        assert!(step.why.starts_with(
            "the plan's own rates, the highest that this machine has time for: its programs waited 0.30 ms"
        ));
        let (step, tries) = taken(&[46.0, 0.5]);
        assert_eq!((step.name.as_deref(), tries), (Some("10mbit"), 2));
        assert!(step.why.contains("; not the plan's own rates: its programs waited 46.0 ms"), "{}", step.why);
        let (step, tries) = taken(&[46.0, 40.0, 0.2]);
        assert_eq!((step.name.as_deref(), tries), (Some("5mbit"), 3));
    }

    #[test]
    fn where_none_fits_the_lowest_is_taken_and_says_so() {
        let (step, tries) = taken(&[46.0, 40.0, 30.0]);
        assert_eq!((step.name.as_deref(), tries), (Some("5mbit"), 3));
        assert!(
            step.why.starts_with("step `5mbit`, the lowest, and this machine has no time for it either"),
            "{}",
            step.why
        );
    }

    #[test]
    fn a_try_that_fails_ends_the_search() {
        let interrupted = || Err(EngineError::Interrupted.into());
        let failed = first_that_fits(&[None], &mut |_| interrupted());
        assert!(matches!(failed, Err(RunError::Engine(EngineError::Interrupted))));
    }
}
