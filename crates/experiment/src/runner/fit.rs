//! Whether the machine has what trials take: found out before any of them begins.

use weft_scenario::engine::{Engine, EngineError, Progress};
use weft_scenario::topology::{Fabric, FabricSize};
use weft_scenario::units::Bytes;

use super::execution::{cores, engine_of};
use super::schedule::{self, Batch};
use super::{RunError, RunOptions};
use crate::memory;
use crate::plan::{PlanSpec, SIM};

/// Refuses trials that the engines cannot run on this machine; see [`Engine::check_fit`].
pub(super) fn require(spec: &PlanSpec, fabrics: &[Fabric], engines: &[&dyn Engine]) -> Result<(), RunError> {
    for batch in schedule::batches(spec, fabrics, 0) {
        for (place, network) in batch.networks.iter().enumerate() {
            let (engine, scenario) = (engine_of(network, spec, engines), network.scenario()?);
            for job in batch.jobs.iter().filter(|job| job.network == place && job.key.repetition == 1) {
                engine.check_fit(&scenario, &job.trial).map_err(|error| or_simulate(spec, engine.name(), error))?;
            }
        }
    }
    Ok(())
}

/// What a machine lacks for an engine, with the advice to take the simulator where the plan has it.
pub(super) fn or_simulate(spec: &PlanSpec, engine: &str, error: EngineError) -> EngineError {
    let has_other = engine != SIM && !spec.compares_engines() && spec.engines.iter().any(|one| one == SIM);
    match error {
        EngineError::NotFit { what, remedy } if has_other => {
            EngineError::NotFit { what, remedy: format!("{remedy}; or --engine sim") }
        }
        other => other,
    }
}

/// How many trials may run side by side, `None`: one for each core. What takes much memory is announced, and what takes more than there
/// is refused.
pub(super) fn workers(
    spec: &PlanSpec,
    batches: &[Batch<'_>],
    engines: &[&dyn Engine],
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Option<usize>, EngineError> {
    let Some(need) = need(spec, batches, engines) else { return Ok(options.workers) };
    if let Some(line) = memory::judge(need, options.available_memory)? {
        progress.note(&line);
    }
    let wanted = options.workers.unwrap_or_else(cores);
    let fit = memory::side_by_side(need, options.available_memory, wanted);
    Ok(if fit < wanted { Some(fit) } else { options.workers })
}

/// The most memory that one of the trials takes.
pub(super) fn need(spec: &PlanSpec, batches: &[Batch<'_>], engines: &[&dyn Engine]) -> Option<Bytes> {
    let of_batch = |batch: &Batch<'_>| {
        let sizes: Vec<FabricSize> = batch.networks.iter().map(|network| FabricSize::of(network.fabric)).collect();
        let of_job = |job: &schedule::Job| {
            let engine = engine_of(&batch.networks[job.network], spec, engines);
            engine.memory(&sizes[job.network], &job.trial)
        };
        batch.jobs.iter().filter_map(of_job).max()
    };
    batches.iter().filter_map(of_batch).max()
}
