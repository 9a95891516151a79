//! What a run would be, found out without running it: trials, engines that can, time and memory, what is judged.
//!
//! Times are estimates. In the simulator they follow from the packets that the flows need, each times the links of a mean path, at
//! [`HOPS_PER_SECOND`]; elsewhere, and where the number of packets is not known beforehand, they are the plan's own word.

use std::collections::VecDeque;

use serde::Serialize;
use weft_scenario::engine::{Engine, EngineError};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Fabric;
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::{GOODPUT_OF_LINE_RATE, QueryRate, TrafficSpec, Workload};

use super::execution::cores;
use super::schedule::{self, Batch, Job};
use super::{MakeEngine, RunError, RunOptions, fit, spec_for};
use crate::memory;
use crate::plan::{Claim, Mode, Plan, PlanSpec, SIM};

/// Packets over links that a core simulates in a second, about: `weft bench sim` measures it.
const HOPS_PER_SECOND: f64 = 8e6;
/// Whence an estimate is that is the plan's own word.
const SAID: &str = "the plan's `expected_s`";
/// Payload of a full packet.
const PACKET_BYTES: f64 = 1460.0;
/// Packets with the acknowledgements, one for two.
const WITH_ACKNOWLEDGEMENTS: f64 = 1.5;

/// What a run of a plan would be.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// The plan's short name.
    pub plan: String,
    pub mode: Mode,
    pub trials: usize,
    /// Points of the sweep; 1 without one.
    pub points: usize,
    /// Overlays of the first point.
    pub overlays: usize,
    /// Workloads of the first point.
    pub workloads: usize,
    pub repetitions: u32,
    /// Each engine of the plan, or all that it compares as one.
    pub engines: Vec<EngineForecast>,
    /// Names of claims that are judged; a `*` marks required ones.
    pub judged: Vec<String>,
    /// How many claims are shown beside a paper's number and not judged.
    pub shown: usize,
}

/// How a plan would run on an engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineForecast {
    /// `lab`, `sim`, `calc`, `lab+sim`.
    pub engine: String,
    /// Why it cannot run here; `null` if it can.
    pub cannot: Option<String>,
    /// Seconds for the whole run, estimated; `null` where nobody knows.
    pub estimated_s: Option<f64>,
    /// Whence the estimate is.
    pub estimated_from: String,
    /// Memory of the largest trial in bytes, estimated; `null` where nobody knows.
    pub trial_bytes: Option<u64>,
    /// Trials side by side.
    pub side_by_side: usize,
}

impl Forecast {
    /// Whether an engine of the plan can run it here: any, or the one that is wanted.
    pub fn can_run(&self, wanted: Option<&str>) -> bool {
        let is_wanted = |one: &&EngineForecast| wanted.is_none_or(|wanted| one.engine == wanted);
        self.engines.iter().filter(is_wanted).any(|one| one.cannot.is_none())
    }
}

/// Looks at a plan as it would run in a mode, on all its engines or on the one that is wanted. An error is about the plan; what an engine lacks is part of the forecast.
pub fn forecast(
    plan: &Plan,
    options: &RunOptions,
    wanted: Option<&str>,
    make: MakeEngine<'_>,
) -> Result<Forecast, RunError> {
    // An engine may change the plan: the forecast is of the plan for the engine that is asked for.
    let of_wanted = wanted.and_then(|engine| plan.for_engine(options.mode, engine));
    let spec = of_wanted.unwrap_or_else(|| plan.for_mode(options.mode));
    let mut engines: Vec<Vec<String>> = match spec.compares_engines() {
        true => vec![spec.engines.clone()],
        false => spec.engines.iter().map(|engine| vec![engine.clone()]).collect(),
    };
    if of_wanted.is_some() {
        engines.retain(|names| Some(names.join("+").as_str()) == wanted);
    }
    let engines = engines.iter().map(|names| on_engines(plan, names, options, make)).collect::<Result<_, _>>()?;
    let name = |claim: &Claim| format!("{}{}", claim.id, if claim.required { " *" } else { "" });
    let judged: Vec<String> = spec.claims.iter().filter(|claim| claim.is_judged()).map(name).collect();
    let first = &spec.points[0].spec;
    Ok(Forecast {
        plan: plan.id().to_owned(),
        mode: options.mode,
        trials: spec.trials(),
        points: spec.points.len(),
        overlays: first.overlays.len(),
        workloads: first.workload.len(),
        repetitions: spec.repetitions,
        engines,
        shown: spec.claims.len() - judged.len(),
        judged,
    })
}

fn on_engines(
    plan: &Plan,
    names: &[String],
    options: &RunOptions,
    make: MakeEngine<'_>,
) -> Result<EngineForecast, RunError> {
    let engine = names.join("+");
    let nothing = |cannot: Option<String>| EngineForecast {
        engine: engine.clone(),
        cannot,
        estimated_s: None,
        estimated_from: String::new(),
        trial_bytes: None,
        side_by_side: 1,
    };
    let made = names.iter().map(|name| make(name)).collect::<Result<Vec<Box<dyn Engine>>, _>>();
    let made = match made {
        Ok(made) => made,
        Err(EngineError::NotFit { what, remedy }) => return Ok(nothing(Some(format!("{what}; {remedy}")))),
        Err(error) => return Err(error.into()),
    };
    let engines: Vec<&dyn Engine> = made.iter().map(AsRef::as_ref).collect();
    let spec = spec_for(plan, &engines, options.mode, None)?;
    let named = |message| RunError::Scenario { plan: spec.id.clone(), message };
    let fabrics = spec.build_fabrics().map_err(named)?;
    let mut forecast = nothing(None);
    match fit::require(spec, &fabrics, &engines) {
        Ok(()) => {}
        Err(RunError::Engine(error @ (EngineError::NotFit { .. } | EngineError::Refused(_)))) => {
            forecast.cannot = Some(error.to_string());
        }
        Err(error) => return Err(error),
    }
    let batches = schedule::batches(spec, &fabrics, options.seed);
    let need = fit::need(spec, &batches, &engines);
    if engines.iter().all(|engine| engine.parallel().is_some()) {
        let wanted = options.workers.unwrap_or_else(cores).min(spec.trials()).max(1);
        forecast.side_by_side =
            need.map_or(wanted, |need| memory::side_by_side(need, options.available_memory, wanted));
    }
    if let Some(Err(EngineError::NotFit { what, remedy })) =
        need.map(|need| memory::judge(need, options.available_memory))
    {
        forecast.cannot.get_or_insert(format!("{what}; {remedy}"));
    }
    forecast.trial_bytes = need.map(|Bytes(bytes)| bytes);
    (forecast.estimated_s, forecast.estimated_from) = time(spec, &batches, forecast.side_by_side);
    let runs_on = |mode| plan.for_engine(mode, &spec.runs_on).map(|spec| spec.expected_s);
    if options.mode != Mode::Default
        && forecast.estimated_from == SAID
        && runs_on(Mode::Default) == Some(spec.expected_s)
    {
        // The mode's table has none of its own.
        forecast.estimated_s = None;
        let whole = spec.expected_s;
        forecast.estimated_from =
            format!("not known beforehand; {SAID}, {whole} s, is that of a run without --quick and --full");
    }
    Ok(forecast)
}

/// Seconds of a whole run, and whence they are.
fn time(spec: &PlanSpec, batches: &[Batch<'_>], side_by_side: usize) -> (Option<f64>, String) {
    let said = Some(f64::from(spec.expected_s)).filter(|seconds| *seconds > 0.0);
    let of_batch = |batch: &Batch<'_>| {
        let hops =
            |job: &Job| packet_hops(batch.networks[job.network].fabric, &job.trial.workload, job.trial.time_limit);
        batch.jobs.iter().map(hops).sum::<Option<f64>>()
    };
    let hops: Option<f64> = batches.iter().map(of_batch).sum::<Option<f64>>().filter(|_| spec.runs_on == SIM);
    match (hops, said) {
        (Some(hops), _) => {
            let seconds = hops / HOPS_PER_SECOND / side_by_side as f64;
            let (millions, pace) = (hops / 1e6, HOPS_PER_SECOND / 1e6);
            let from =
                format!("{millions:.1} M packet-hops at {pace:.0} M a second and core, {side_by_side} side by side");
            (Some(seconds), from)
        }
        (None, Some(seconds)) => (Some(seconds), SAID.to_owned()),
        (None, None) => (None, "not known beforehand; the plan has no `expected_s`".to_owned()),
    }
}

/// Packets that a workload sends, each counted at every link of a mean path; `None` where that is not known beforehand.
fn packet_hops(fabric: &Fabric, workload: &Workload, time_limit: Nanos) -> Option<f64> {
    let (payload, wire) = GOODPUT_OF_LINE_RATE;
    let rates: f64 = fabric
        .servers()
        .filter_map(|server| fabric.edge_of(server))
        .map(|(_, link)| fabric.link(link).spec.rate.0 as f64 / 8.0 * payload as f64 / wire as f64)
        .sum();
    let servers = fabric.servers().count() as f64;
    let bytes = match workload {
        Workload::Shuffle { bytes_per_flow } => bytes_per_flow.0 as f64 * servers * (servers - 1.0),
        Workload::Permutation { bytes_per_flow, .. } => bytes_per_flow.0 as f64 * servers,
        Workload::Flows { flows } => flows.iter().map(|flow| flow.bytes as f64).sum(),
        Workload::OneToOne { duration, .. } => rates / servers * duration.as_secs_f64(),
        Workload::Traffic(traffic) => offered(traffic, rates, servers),
        Workload::Mix(mix) => {
            let rate = mix.offered_rate_per_server.map_or(rates, |rate| rate.0 as f64 / 8.0 * servers);
            rate * mix.duration.as_secs_f64()
        }
        _ => return None,
    };
    let most = rates * time_limit.as_secs_f64();
    Some(bytes.min(most) / PACKET_BYTES * WITH_ACKNOWLEDGEMENTS * links_of_a_path(fabric))
}

/// Bytes that servers offer at a load in all.
fn offered(traffic: &TrafficSpec, rates: f64, servers: f64) -> f64 {
    let seconds = traffic.duration.as_secs_f64();
    let share = |percent: u32| rates * f64::from(percent) / 100.0 * seconds;
    let background = traffic.background.as_ref().map_or(0.0, |background| share(background.load_percent));
    let queries = traffic.query.as_ref().map_or(0.0, |query| match query.rate {
        QueryRate::LoadPercent(percent) => share(percent),
        QueryRate::Interval(interval) => {
            query.response.0 as f64 * servers * seconds / interval.as_secs_f64().max(f64::MIN_POSITIVE)
        }
    });
    background + queries
}

/// Links from the first server to another one, on average.
fn links_of_a_path(fabric: &Fabric) -> f64 {
    let Some(first) = fabric.servers().next() else { return 0.0 };
    let mut links: Vec<Option<u32>> = vec![None; fabric.nodes().len()];
    links[first.index()] = Some(0);
    let mut next: VecDeque<NodeId> = VecDeque::from([first]);
    while let Some(node) = next.pop_front() {
        let here = links[node.index()].unwrap_or(0);
        for far in fabric.links_of(node).iter().filter_map(|link| fabric.link(*link).far_end(node)) {
            if links[far.node.index()].is_none() {
                links[far.node.index()] = Some(here + 1);
                next.push_back(far.node);
            }
        }
    }
    let others: Vec<f64> = fabric.servers().skip(1).filter_map(|server| links[server.index()]).map(f64::from).collect();
    others.iter().sum::<f64>() / others.len().max(1) as f64
}
