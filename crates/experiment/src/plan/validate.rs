//! What makes a plan that can be read also one that makes sense.

use std::collections::BTreeSet;

use weft_model::CALC;
use weft_scenario::engine::{Overlay, ProbeSpec, Transport};
use weft_scenario::fault::{Fault, check_faults};
use weft_scenario::switching::Switching;
use weft_scenario::topology::{Fabric, LoadError, Role};
use weft_scenario::units::Nanos;
use weft_scenario::workload::{Workload, WorkloadError};

use super::effect::{self, Effects};
use super::error::Problem;
use super::meant::did_you_mean;
use super::{Claim, ENGINE_AXIS, Judge, PlanSpec, Point, Relation, questions};
use crate::analysis::Analysis;

/// Engines that a plan may name.
const ENGINES: [&str; 3] = ["lab", "sim", CALC];

/// The rules that the plan breaks.
pub(super) fn check(spec: &PlanSpec) -> Vec<Problem> {
    let mut problems = check_head(spec);
    for (number, point) in spec.points.iter().enumerate() {
        problems.extend(check_scenario(&point.spec).into_iter().map(|problem| at_point(spec, point, number, problem)));
    }
    problems.extend(check_engine_axis(spec));
    problems.extend(check_analysis(spec));
    problems.extend(check_claims(spec));
    problems
}

fn check_head(spec: &PlanSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
    if spec.id.is_empty() || !spec.id.bytes().all(plain) {
        let message = format!("id `{}` is not usable: letters, digits, `-`, `_` and `/`", spec.id);
        problems.push(Problem::new(message, "id"));
    }
    if let Some(engine) = spec.engines.iter().find(|engine| !ENGINES.contains(&engine.as_str())) {
        let message = format!("engine `{engine}` does not exist; use `lab`, `sim` or `calc`");
        problems.push(Problem::new(message, "engines"));
    }
    if spec.engines.is_empty() {
        problems.push(Problem::new("`engines` is empty; name `lab`, `sim`, both, or `calc`", "engines"));
    }
    let scale = spec.scale;
    for (key, factor) in [("scale.rate", scale.rate), ("scale.time", scale.time)] {
        if !(factor > 0.0 && factor.is_finite()) {
            problems.push(Problem::new(format!("`{key}` is {factor}; it is a factor above 0"), key));
        }
    }
    problems
}

fn check_engine_axis(spec: &PlanSpec) -> Option<Problem> {
    let engine = spec.labels_of(ENGINE_AXIS).iter().find(|engine| !spec.engines.contains(engine))?;
    let message = format!("axis `{ENGINE_AXIS}` names `{engine}`, which is not in `engines`");
    Some(Problem::new(message, "engines"))
}

/// Says at which point of a sweep something is wrong.
fn at_point(spec: &PlanSpec, point: &Point, number: usize, found: Problem) -> Problem {
    let found = Problem { point: number, ..found };
    match point.name(&spec.axes) {
        name if name.is_empty() => found,
        name => Problem { message: format!("at {name}: {}", found.message), ..found },
    }
}

fn check_scenario(spec: &PlanSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    if spec.fabric.is_none() {
        problems.push(Problem::new("the plan names no scenario; add a `[fabric]` table", ""));
    }
    if spec.workload.is_empty() {
        problems.push(Problem::new(
            "the plan names no scenario: nothing is sent; add a `[workload.NAME]` table",
            "workloads",
        ));
    }
    if spec.overlays.is_empty() {
        problems.push(Problem::new("`overlays` is empty; name at least one, for instance `vl2`", "overlays"));
    }
    let twice = |(place, overlay)| spec.overlays[..place].contains(overlay);
    if spec.overlays.iter().enumerate().any(twice) {
        problems.push(Problem::new("`overlays` names one overlay twice", "overlays"));
    }
    if spec.repetitions == 0 {
        problems.push(Problem::new("`repetitions` is 0; a plan runs at least once", "repetitions"));
    }
    let sampling = &spec.sampling;
    problems.extend(check_times(sampling.interval, sampling.tcp_interval, sampling.time_limit));
    if let Some(Err(message)) = sampling.probes.as_ref().map(ProbeSpec::check) {
        problems.push(Problem::new(message, "sampling.probes"));
    }
    problems
}

/// Times of `[sampling]` that are 0.
pub(super) fn check_times(interval: Nanos, tcp_interval: Option<Nanos>, time_limit: Nanos) -> Vec<Problem> {
    let all = [("interval", Some(interval)), ("tcp_interval", tcp_interval), ("time_limit", Some(time_limit))];
    let zero = all.into_iter().filter(|(_, time)| *time == Some(Nanos(0)));
    let problem =
        |(key, _): (&str, _)| Problem::new(format!("`{key}` of `sampling` is a time of 0"), &format!("sampling.{key}"));
    zero.map(problem).collect()
}

/// What of workloads and faults does not fit the networks, which are built for it. Effects are looked for where all fits: `effects` take
/// note of them, with the plan's number among its layers, and settings that break their promise are problems, too. Where something does not
/// fit, nothing is left of `effects`.
pub(super) fn check_scenarios_fit(spec: &PlanSpec, layer: usize, effects: &mut Option<Effects>) -> Vec<Problem> {
    let fabrics = match spec.try_fabrics() {
        Ok(fabrics) => fabrics,
        Err((point, message)) => {
            *effects = None;
            return vec![Problem { point, ..Problem::new(message, "fabric") }];
        }
    };
    let mut problems = Vec::new();
    for (number, (point, fabric)) in spec.points.iter().zip(&fabrics).enumerate() {
        let mut of_point = check_fits(&point.spec, fabric);
        effects.take_if(|_| !of_point.is_empty());
        if let Some(effects) = effects {
            of_point = effects.note((layer, number), effect::of_point(&point.spec, &spec.runs_on, fabric));
        }
        problems.extend(of_point.into_iter().map(|problem| at_point(spec, point, number, problem)));
    }
    problems
}

fn check_fits(spec: &PlanSpec, fabric: &Fabric) -> Vec<Problem> {
    let mut problems = check_network(fabric, &spec.transport, &spec.switching, &spec.fault);
    for overlay in &spec.overlays {
        let clash = |error: LoadError| Problem::new(error.to_string(), "fabric");
        problems.extend(fabric.check_forwarding(*overlay).map_err(clash).err());
    }
    let servers = fabric.servers().count() as u32;
    for (name, workload) in &spec.workload {
        let wrong = |error: WorkloadError| Problem {
            path: path_of(name, &error),
            ..Problem::new(format!("workload `{name}`: {error}"), "")
        };
        if matches!(workload, Workload::Outside(_)) && fabric.outside().is_none() {
            let message =
                format!("workload `{name}` is of kind `outside`, and fabric `{}` has no outside", fabric.name());
            problems.push(Problem { path: vec!["workload".into(), name.clone()], ..Problem::new(message, "") });
            continue;
        }
        let spines = fabric.with_role(Role::Spine).count();
        let fits = workload.check(servers).and_then(|()| workload.check_spines(spines)).and_then(|()| match workload {
            Workload::Services(services) => services.check_fabric(fabric),
            _ => Ok(()),
        });
        problems.extend(fits.map_err(wrong).err());
    }
    problems
}

/// The path of the table that is to blame for what is wrong with a workload.
fn path_of(workload: &str, error: &WorkloadError) -> Vec<String> {
    let workload = ["workload".to_owned(), workload.to_owned()].to_vec();
    match error {
        WorkloadError::Service { service, .. } => [workload, vec!["service".to_owned(), service.clone()]].concat(),
        WorkloadError::Flow { number, .. } => [workload, vec!["flows".to_owned(), (number - 1).to_string()]].concat(),
        _ => workload,
    }
}

/// What of hosts, switches and faults makes no sense on this network.
pub(super) fn check_network(
    fabric: &Fabric,
    transport: &Transport,
    switching: &Switching,
    faults: &[Fault],
) -> Vec<Problem> {
    let transport = transport.check().map_err(|error| Problem::new(error.to_string(), "transport")).err();
    let switching = switching.check(fabric).map_err(|error| Problem::new(error.to_string(), "switching")).err();
    let fault = check_faults(faults, fabric).map_err(|error| {
        let until_wrong = (0..faults.len()).find(|last| check_faults(&faults[..=*last], fabric).is_err());
        Problem::new(error.to_string(), &format!("fault.{}", until_wrong.unwrap_or(0)))
    });
    transport.into_iter().chain(switching).chain(fault.err()).collect()
}

fn check_analysis(spec: &PlanSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in spec.sampling.measure_cpu_cost.iter().filter(|name| !spec.workload.contains_key(*name)) {
        let message = format!("`sampling.measure_cpu_cost` names workload `{name}`, which is not there");
        problems.push(Problem::new(message, "sampling.measure_cpu_cost"));
    }
    if spec.asks() != (spec.analysis == Analysis::Asked) && spec.asks() {
        problems.push(wrong("a plan with `[[metrics]]` of its own names no `analysis`"));
    }
    problems.extend(spec.analysis.check_sweep(spec).map_err(wrong).err());
    if spec.asks() {
        problems.extend(questions::check(spec));
    }
    problems.extend(check_engines(spec).map_err(|message| Problem::new(message, "engines")).err());
    problems
}

fn wrong(message: impl Into<String>) -> Problem {
    Problem::new(message, "analysis")
}

/// Engines and overlays must be such as the kinds of workloads run on.
fn check_engines(spec: &PlanSpec) -> Result<(), &'static str> {
    let every = |wanted: fn(&Workload) -> bool| spec.workload.values().all(wanted);
    let lab_only = |workload: &Workload| matches!(workload, Workload::Directory(_) | Workload::Migration(_));
    if spec.workload.values().any(lab_only) {
        if spec.engines != ["lab"] || spec.overlays != [Overlay::Vl2] {
            return Err(
                "workloads of kind `directory` and `migration` need `engines = [\"lab\"]` and the overlay `vl2`",
            );
        }
        if !spec.fault.is_empty() {
            return Err("workloads of kind `directory` and `migration` have their own faults; remove `[[fault]]`");
        }
    }
    if spec.workload.values().any(|workload| matches!(workload, Workload::Outside(_))) && spec.engines != ["lab"] {
        return Err("workloads of kind `outside` need `engines = [\"lab\"]`");
    }
    let stormy =
        |workload: &Workload| matches!(workload, Workload::Services(services) if !services.storms().is_empty());
    if spec.workload.values().any(stormy) && (spec.engines != ["lab"] || spec.overlays != [Overlay::Vl2]) {
        return Err("services with a storm need `engines = [\"lab\"]` and the overlay `vl2`");
    }
    if spec.workload.values().any(Workload::names_spines) && spec.engines != ["sim"] {
        return Err("flows that name their `spine` need `engines = [\"sim\"]`: the lab's switches choose themselves");
    }
    let computed = |workload: &Workload| matches!(workload, Workload::Model(_) | Workload::FlowLog(_));
    let only_calc = spec.engines == [CALC];
    if (only_calc || spec.workload.values().any(computed)) && !(only_calc && every(computed) && spec.fault.is_empty()) {
        return Err(
            "workloads of kind `model` and `flow-log`, and no others, need `engines = [\"calc\"]` and no `[[fault]]`",
        );
    }
    if spec.engines.iter().any(|engine| engine == CALC) && !only_calc {
        return Err("the engine `calc` has no packets, so it cannot stand beside another in `engines`");
    }
    let carried = |kind: fn(&Workload) -> bool, by: fn(Overlay) -> bool| {
        let on_labs = spec.engines == ["lab"] && spec.overlays.iter().all(|overlay| by(*overlay));
        on_labs || !spec.workload.values().any(kind)
    };
    if !carried(|workload| matches!(workload, Workload::Frames(_)), Overlay::takes_frames) {
        return Err(
            "workloads of kind `frames` need `engines = [\"lab\"]` and overlays whose switches take servers' frames",
        );
    }
    let learns = |overlay: Overlay| matches!(overlay, Overlay::RBridge { .. } | Overlay::Bridge { .. });
    let streams = |workload: &Workload| matches!(workload, Workload::Multicast(_));
    if !carried(streams, learns) || (spec.workload.values().any(streams) && !spec.fault.is_empty()) {
        return Err(
            "workloads of kind `multicast` need `engines = [\"lab\"]`, overlays of RBridges or bridges, and no `[[fault]]`: they have `link_down_at`",
        );
    }
    let alone = spec.fault.is_empty() && carried(|_| true, |overlay| overlay == Overlay::Routed);
    if spec.workload.values().any(|workload| matches!(workload, Workload::Segments(_))) && !alone {
        return Err(
            "workloads of kind `segments` need `engines = [\"lab\"]`, `overlays = [\"routed\"]` and no `[[fault]]`",
        );
    }
    if !carried(|workload| matches!(workload, Workload::Elephants(_)), Overlay::forwards_frames) {
        return Err(
            "workloads of kind `elephants` need `engines = [\"lab\"]` and overlays whose switches all forward frames",
        );
    }
    let told = |workload: &Workload| matches!(workload, Workload::Frames(_));
    let told_switches = |overlay: &Overlay| matches!(overlay, Overlay::Layer2 { .. });
    if spec.overlays.iter().any(told_switches) && !every(told) {
        return Err("the switches of the overlay `l2` learn nothing: it carries only workloads of kind `frames`");
    }
    if spec.engines != ["lab"] && spec.overlays.iter().any(|overlay| overlay.is_lab_only()) {
        return Err(
            "an overlay of `overlays` needs `engines = [\"lab\"]`; in the simulator the load balance `spanning-tree` stands for bridges",
        );
    }
    Ok(())
}

fn check_claims(spec: &PlanSpec) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for (number, claim) in spec.claims.iter().enumerate() {
        if !seen.insert(&claim.id) {
            let message = format!("two claims are called `{}`", claim.id);
            problems.push(Problem::of("claims", &number.to_string(), "id", message));
        }
        problems.extend(check_claim(spec, claim).err());
    }
    problems
}

/// The metric that was meant, or those that there are, as the plan's workloads and places make their names.
fn unknown_metric(spec: &PlanSpec, name: &str, known: &[String]) -> String {
    let full: Vec<&str> = known.iter().map(String::as_str).collect();
    let advice = did_you_mean(name, &full).unwrap_or_else(|| {
        let plain: Vec<_> = spec.analysis.metrics().iter().map(|metric| metric.name).collect();
        let example = full.first().filter(|first| !plain.contains(first));
        let example = example.map_or_else(String::new, |first| format!("; with its workload and place: {first}"));
        format!("it has: {}{example}", plain.join(", "))
    });
    format!("analysis `{}` yields no metric `{name}`; {advice}", spec.analysis.name())
}

fn check_claim(spec: &PlanSpec, claim: &Claim) -> Result<(), Problem> {
    let id = &claim.id;
    let wrong = |key: &str, message: String| Err(Problem::of("claims", id, key, message));
    let known_names = spec.analysis.metric_names(spec);
    for (key, name) in claim.metrics_by_key().filter(|_| !spec.asks()) {
        if !known_names.iter().any(|known| known == name) {
            return wrong(key, unknown_metric(spec, name, &known_names));
        }
    }
    if claim.because.is_some() && claim.paper_wants.is_none() {
        return wrong("because", format!("claim `{id}` has `because`, which explains `paper_wants`"));
    }
    if let Some(mutation) = &claim.fails_when
        && !spec.mutations.iter().any(|one| one.id == *mutation)
    {
        return wrong("fails_when", format!("claim `{id}` fails when `{mutation}`, which no `[[mutations]]` is"));
    }
    if claim.relation == Relation::Info {
        if claim.required {
            let message = format!("claim `{id}` is required, so it may not be `info`; give it `>=` or `<=` and `want`");
            return wrong("relation", message);
        }
        return Ok(());
    }
    match claim.want {
        None => wrong("id", format!("claim `{id}` is judged but has no `want`")),
        Some(want) if !want.is_finite() => {
            wrong("want", format!("claim `{id}` wants {want}, which no number can be held against"))
        }
        Some(_) if claim.not_above.is_some() && claim.judge != Judge::IntervalUpper => {
            wrong("not_above", format!("claim `{id}` has `not_above`, which needs `judge = \"interval-upper\"`"))
        }
        Some(_) => Ok(()),
    }
}
