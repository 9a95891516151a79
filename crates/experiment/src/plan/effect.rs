//! Settings that have an effect nowhere in a plan are refused, and so are those of a single scenario.

use std::collections::{BTreeMap, BTreeSet};

use weft_model::CALC;
use weft_scenario::effect::{Case, Effect, Finding, Runner, finding};
use weft_scenario::engine::{DirectoryStore, Overlay};
use weft_scenario::topology::Fabric;
use weft_scenario::units::Nanos;

use super::error::Problem;
use super::{PlanSpec, SIM};

/// Effects of settings, gathered over all places where they stand.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Settings that had no effect somewhere: the first such place, by the numbers of its layer and of its point, with the reason.
    idle: BTreeMap<String, (usize, Problem)>,
    /// Settings that had one somewhere.
    working: BTreeSet<String>,
}

impl Effects {
    /// Takes note of findings at a point of a layer, whose numbers are from 0. Returns those that are wrong whatever the settings do
    /// elsewhere.
    pub(super) fn note(&mut self, (layer, point): (usize, usize), findings: Vec<Finding>) -> Vec<Problem> {
        let mut broken = Vec::new();
        for finding in findings {
            let message = finding.refusal().unwrap_or_default();
            let problem = Problem { message, path: finding.path, point, axis: None };
            match finding.effect {
                Effect::Some => self.working.extend([finding.setting]),
                Effect::None(_) => drop(self.idle.entry(finding.setting).or_insert((layer, problem))),
                Effect::Broken(_) => broken.push(problem),
            }
        }
        broken
    }

    /// Settings that have no effect anywhere, with the number of the layer that the problem's point is of.
    pub(super) fn idle(self) -> impl Iterator<Item = (usize, Problem)> {
        let Self { idle, working } = self;
        idle.into_iter().filter(move |(setting, _)| !working.contains(setting)).map(|(_, found)| found)
    }
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
    let idle = |is_idle: bool, why: &str| is_idle.then(|| why.to_owned());
    let of_beds =
        |path: &[&str], given: bool| given.then(|| finding(path, idle(runner != Runner::Lab, "only labs have it")));
    let sampling = &spec.sampling;
    let beds = [
        of_beds(&["shaped"], !spec.shaped),
        of_beds(&["rebuild"], spec.rebuild),
        of_beds(&["interleave"], spec.interleave),
        of_beds(&["sampling", "probes"], sampling.probes.is_some()),
        of_beds(&["sampling", "measure_cpu_cost"], !sampling.measure_cpu_cost.is_empty()),
    ];
    let asks = runner == Runner::Lab && spec.overlays.contains(&Overlay::Vl2);
    let store = (spec.directory != DirectoryStore::Embedded).then(|| {
        finding(&["directory"], idle(!asks, "only a lab with the overlay `vl2` has a directory that is asked"))
    });
    let all = spec.sampling.warm_up >= sampling.time_limit;
    let warm_up = (sampling.warm_up.0 > 0).then(|| {
        let why = "nothing is left: `time_limit` cuts the run before it is over";
        finding(&["sampling", "warm_up"], idle(all, why))
    });
    let until = sampling.measure_until.map(|until| {
        let ends = |duration: Nanos| duration <= until;
        let late = spec.workload.values().all(|workload| workload.duration().is_some_and(ends))
            || until >= sampling.time_limit;
        finding(&["sampling", "measure_until"], idle(late, "no flow starts later"))
    });
    beds.into_iter().flatten().chain(store).chain(warm_up).chain(until).collect()
}
