//! What runs in which order: every point of the sweep with every overlay, repetition and workload, numbered once, so
//! that a trial has the same number however many workers share the work.

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{Overlay, Scenario, Trial};
use weft_scenario::topology::Fabric;

use super::RunError;
use crate::analysis::TrialKey;
use crate::plan::{PlanSpec, Point};

/// Trials that share networks: the overlays are up together.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    /// Where on the sweep they are.
    pub(super) point: &'a Point,
    /// The network there.
    pub(super) fabric: &'a Fabric,
    /// The overlays that are up.
    pub(super) overlays: &'a [Overlay],
    /// The trials, in order.
    pub(super) jobs: Vec<Job>,
}

/// One trial to run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Its number and place.
    pub(super) key: TrialKey,
    /// What the engine is asked to do.
    pub(super) trial: Trial,
}

/// All batches of a plan. Interleaved, all overlays of a point are up at once and take turns within each repetition;
/// otherwise one overlay is up at a time. Repetition i has the same seed at every point, so that all of them see the same
/// flows and can be compared pair by pair.
pub(super) fn batches<'a>(spec: &'a PlanSpec, fabrics: &'a [Fabric], first_seed: u64) -> Vec<Batch<'a>> {
    let mut batches = Vec::new();
    let mut number = 0;
    for (point, fabric) in spec.points.iter().zip(fabrics) {
        let overlays = point.spec.overlays.as_slice();
        let groups = if spec.interleave { vec![overlays] } else { overlays.chunks(1).collect() };
        for overlays in groups {
            let mut jobs = Vec::new();
            for repetition in 1..=spec.repetitions {
                for (workload, overlay) in
                    point.spec.workload.keys().flat_map(|name| overlays.iter().map(move |one| (name, one)))
                {
                    number += 1;
                    let seed = first_seed.wrapping_add(u64::from(repetition - 1));
                    let (workload, point_labels) = (workload.clone(), point.labels.clone());
                    let key =
                        TrialKey { trial: number, repetition, seed, overlay: *overlay, workload, point: point_labels };
                    jobs.push(Job { trial: trial(&point.spec, &key), key });
                }
            }
            batches.push(Batch { point, fabric, overlays, jobs });
        }
    }
    batches
}

fn trial(spec: &PlanSpec, key: &TrialKey) -> Trial {
    let sampling = &spec.sampling;
    Trial {
        workload: spec.workload[&key.workload].clone(),
        faults: spec.fault.clone(),
        seed: key.seed,
        sample_interval: sampling.interval,
        tcp_interval: sampling.tcp_interval,
        time_limit: sampling.time_limit,
        pin_and_measure_cost: sampling.measure_cpu_cost.contains(&key.workload),
        probes: sampling.probes.clone(),
    }
}

impl Batch<'_> {
    /// The scenario of one of its overlays; an error if the fabric does not fit into the address blocks.
    pub(super) fn scenario(&self, overlay: Overlay) -> Result<Scenario, RunError> {
        let spec = &self.point.spec;
        let addresses = AddressPlan::new(self.fabric, AddressingOptions::default())
            .map_err(|error| RunError::Scenario { plan: spec.id.clone(), message: error.to_string() })?;
        Ok(Scenario {
            fabric: self.fabric.clone(),
            addresses,
            overlay,
            transport: spec.transport.clone(),
            directory: spec.directory,
            switching: spec.switching.clone(),
            shaped: spec.shaped,
        })
    }
}
