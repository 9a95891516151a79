//! Settings that have an effect nowhere in a plan are refused, and so are those of a single scenario.

use std::collections::{BTreeMap, BTreeSet};

use weft_model::CALC;
use weft_scenario::effect::{Case, Effect, Finding, Runner};
use weft_scenario::engine::{DirectoryStore, Overlay};
use weft_scenario::topology::Fabric;
use weft_scenario::units::Nanos;

use super::error::Problem;
use super::{PlanSpec, SIM};

/// Effects of settings, gathered over all places where they stand.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Settings that had no effect somewhere, with the first reason.
    idle: BTreeMap<String, String>,
    /// Settings that had one somewhere.
    working: BTreeSet<String>,
}

impl Effects {
    /// Takes note of findings; an error if a setting breaks its promise.
    pub(super) fn note(&mut self, findings: Vec<Finding>) -> Result<(), Problem> {
        for finding in findings {
            match &finding.effect {
                Effect::Some => self.working.extend([finding.setting]),
                Effect::None(_) => {
                    let refusal = finding.refusal().unwrap_or_default();
                    self.idle.entry(finding.setting).or_insert(refusal);
                }
                Effect::Broken(_) => {
                    return Err(problem(&finding.setting, finding.refusal().unwrap_or_default()));
                }
            }
        }
        Ok(())
    }

    /// An error if a setting had no effect anywhere.
    pub(super) fn check(&self) -> Result<(), Problem> {
        match self.idle.iter().find(|(setting, _)| !self.working.contains(*setting)) {
            Some((setting, refusal)) => Err(problem(setting, refusal.clone())),
            None => Ok(()),
        }
    }
}

/// The line to blame is the first one with the setting's name below the heading of its table.
fn problem(setting: &str, message: String) -> Problem {
    let (table, key) = setting.rsplit_once('.').unwrap_or(("", setting));
    let is_fault = setting.starts_with("fault");
    let (below, marker) = if is_fault { (String::new(), "fault]]") } else { (format!("[{table}]"), key) };
    Problem { below, ..Problem::new(message, Some(marker.to_owned())) }
}

/// Findings about one overlay of one point of a plan, on each engine that it is for.
pub(super) fn of_point(spec: &PlanSpec, runs_on: &str, fabric: &Fabric) -> Vec<Finding> {
    let Some(network) = &spec.fabric else { return Vec::new() };
    let mut findings = Vec::new();
    for runner in runs_on.split('+').filter_map(runner) {
        for (overlay, (name, workload)) in
            spec.overlays.iter().flat_map(|one| spec.workload.iter().map(move |two| (*one, two)))
        {
            let case = Case {
                runner,
                spec: network,
                fabric,
                overlay,
                transport: &spec.transport,
                switching: &spec.switching,
                workload: (name, workload),
                faults: &spec.fault,
                interval: Some(spec.sampling.interval),
                tcp_interval: spec.sampling.tcp_interval,
                time_limit: spec.sampling.time_limit,
            };
            findings.extend(case.findings());
        }
        findings.extend(of_trials(spec, runner));
    }
    findings
}

fn runner(name: &str) -> Option<Runner> {
    match name {
        SIM => Some(Runner::Sim),
        "lab" => Some(Runner::Lab),
        CALC => Some(Runner::Calc),
        _ => None,
    }
}

/// Findings about what only plans have.
fn of_trials(spec: &PlanSpec, runner: Runner) -> Vec<Finding> {
    let of_beds =
        |setting: &str, given: bool| given.then(|| finding(setting, runner != Runner::Lab, "only labs have it"));
    let sampling = &spec.sampling;
    let beds = [
        of_beds("shaped", !spec.shaped),
        of_beds("rebuild", spec.rebuild),
        of_beds("interleave", spec.interleave),
        of_beds("sampling.probes", sampling.probes.is_some()),
        of_beds("sampling.measure_cpu_cost", !sampling.measure_cpu_cost.is_empty()),
    ];
    let asks = runner == Runner::Lab && spec.overlays.contains(&Overlay::Vl2);
    let store = (spec.directory != DirectoryStore::Embedded)
        .then(|| finding("directory", !asks, "only a lab with the overlay `vl2` has a directory that is asked"));
    let all = spec.sampling.warm_up >= sampling.time_limit;
    let warm_up = (sampling.warm_up.0 > 0)
        .then(|| finding("sampling.warm_up", all, "nothing is left: `time_limit` cuts the run before it is over"));
    let until = sampling.measure_until.map(|until| {
        let ends = |duration: Nanos| duration <= until;
        let idle = spec.workload.values().all(|workload| workload.duration().is_some_and(ends))
            || until >= sampling.time_limit;
        finding("sampling.measure_until", idle, "no flow starts later")
    });
    beds.into_iter().flatten().chain(store).chain(warm_up).chain(until).collect()
}

fn finding(setting: &str, is_idle: bool, why: &str) -> Finding {
    let effect = if is_idle { Effect::None(why.to_owned()) } else { Effect::Some };
    Finding { setting: setting.to_owned(), effect }
}
