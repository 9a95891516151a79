//! What runs in which order: every point of the sweep with every overlay, repetition and workload, numbered once, so
//! that a trial has the same number however many workers share the work.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{Overlay, Scenario, Trial};
use weft_scenario::topology::Fabric;

use super::RunError;
use crate::analysis::TrialKey;
use crate::page;
use crate::plan::{PlanSpec, Point};

/// Trials of networks that are up together.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) networks: Vec<Network<'a>>,
    /// The trials, in order.
    pub(super) jobs: Vec<Job>,
}

/// A network to bring up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    /// Where on the sweep it is needed first.
    pub(super) point: &'a Point,
    /// Its nodes and links.
    pub(super) fabric: &'a Fabric,
    /// How packets travel.
    pub(super) overlay: Overlay,
}

/// One trial to run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Its number and place.
    pub(super) key: TrialKey,
    /// What the engine is asked to do.
    pub(super) trial: Trial,
    /// The place of its network among the batch's.
    pub(super) network: usize,
}

/// All batches of a plan. Interleaved, all networks of all points are up at once, each once however many points share it, and take
/// turns within each repetition and workload; otherwise one is up at a time. Rebuilt, each repetition is a batch. Repetition i has the same seed at every point, so that all
/// of them see the same flows and can be compared pair by pair.
pub(super) fn batches<'a>(spec: &'a PlanSpec, fabrics: &'a [Fabric], first_seed: u64) -> Vec<Batch<'a>> {
    let of_point = |(point, fabric): (&'a Point, &'a Fabric)| {
        let overlays = point.spec.overlays.iter();
        overlays.map(move |overlay| Network { point, fabric, overlay: *overlay }).collect::<Vec<_>>()
    };
    let all = spec.points.iter().zip(fabrics).flat_map(of_point);
    let groups: Vec<Vec<Network<'a>>> =
        if spec.interleave { vec![all.collect()] } else { all.map(|network| vec![network]).collect() };
    let all = 1..=spec.repetitions;
    let turns: Vec<_> = if spec.rebuild { all.map(|one| one..=one).collect() } else { vec![all] };
    let mut number = 0;
    let of_group = groups.iter().flat_map(|group| turns.iter().map(move |repetitions| (group, repetitions.clone())));
    let mut batches: Vec<Batch<'a>> =
        of_group.map(|(group, repetitions)| batch(group, repetitions, first_seed, &mut number)).collect();
    let fabric = |batch: &Batch<'a>, job: &Job| batch.networks[job.network].fabric;
    let jobs = batches.iter().flat_map(|batch| batch.jobs.iter().map(move |job| (&job.key, fabric(batch, job))));
    let shown = page::choice::chosen(jobs);
    for job in batches.iter_mut().flat_map(|batch| &mut batch.jobs) {
        // Nothing else may run where the cost of traffic is measured.
        let measures = job.trial.pin_and_measure_cost;
        job.trial.replay = spec.sampling.replay && !measures && shown.contains(&job.key.trial);
    }
    batches
}

fn batch<'a>(group: &[Network<'a>], repetitions: RangeInclusive<u32>, first_seed: u64, number: &mut u32) -> Batch<'a> {
    let mut networks: Vec<Network<'a>> = Vec::new();
    let places: Vec<usize> = group.iter().map(|network| place_of(network, &mut networks)).collect();
    let names: BTreeSet<&String> = group.iter().flat_map(|network| network.point.spec.workload.keys()).collect();
    let mut jobs = Vec::new();
    for repetition in repetitions {
        for name in &names {
            let turns = group.iter().zip(&places).filter(|(one, _)| one.point.spec.workload.contains_key(*name));
            for (Network { point, overlay, .. }, network) in turns {
                *number += 1;
                let seed = first_seed.wrapping_add(u64::from(repetition - 1));
                let (workload, labels) = ((*name).clone(), point.labels.clone());
                let key = TrialKey { trial: *number, repetition, seed, overlay: *overlay, workload, point: labels };
                jobs.push(Job { trial: trial(&point.spec, &key), key, network: *network });
            }
        }
    }
    Batch { networks, jobs }
}

/// Its place among those that are there already, if one of these is the same network, or behind them.
fn place_of<'a>(network: &Network<'a>, all: &mut Vec<Network<'a>>) -> usize {
    let made_of = |one: &Network<'a>| {
        let PlanSpec { transport, directory, switching, shaped, .. } = &one.point.spec;
        (one.fabric, one.overlay, transport, directory, switching, *shaped)
    };
    all.iter().position(|known| made_of(known) == made_of(network)).unwrap_or_else(|| {
        all.push(*network);
        all.len() - 1
    })
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
        replay: false,
        probes: sampling.probes.clone(),
    }
}

impl Network<'_> {
    /// The scenario; an error if the fabric does not fit into the address blocks.
    pub(super) fn scenario(&self) -> Result<Scenario, RunError> {
        let spec = &self.point.spec;
        let addresses = AddressPlan::new(self.fabric, AddressingOptions::default())
            .map_err(|error| RunError::Scenario { plan: spec.id.clone(), message: error.to_string() })?;
        Ok(Scenario {
            fabric: self.fabric.clone(),
            addresses,
            overlay: self.overlay,
            transport: spec.transport.clone(),
            directory: spec.directory,
            switching: spec.switching.clone(),
            shaped: spec.shaped,
        })
    }
}
