//! What makes a plan that can be read also one that makes sense.

use std::collections::BTreeSet;

use weft_model::CALC;
use weft_scenario::engine::{Overlay, ProbeSpec, Transport};
use weft_scenario::fault::{Fault, FaultKind, check_faults};
use weft_scenario::switching::Switching;
use weft_scenario::topology::{Fabric, LoadError, Role};
use weft_scenario::workload::{Workload, WorkloadError};

use super::effect::{self, Effects};
use super::error::Problem;
use super::meant::did_you_mean;
use super::{Claim, ENGINE_AXIS, Judge, PlanSpec, Point, Relation, questions};
use crate::analysis::Analysis;

/// Engines that a plan may name.
const ENGINES: [&str; 3] = ["lab", "sim", CALC];

/// The first rule that the plan breaks.
pub(super) fn check(spec: &PlanSpec) -> Result<(), Problem> {
    check_head(spec)?;
    check_points(spec)?;
    check_analysis(spec)?;
    check_claims(spec)
}

fn check_head(spec: &PlanSpec) -> Result<(), Problem> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
    if spec.id.is_empty() || !spec.id.bytes().all(plain) {
        let message = format!("id `{}` is not usable: letters, digits, `-`, `_` and `/`", spec.id);
        return Err(Problem::new(message, Some("id =".into())));
    }
    if let Some(engine) = spec.engines.iter().find(|engine| !ENGINES.contains(&engine.as_str())) {
        let message = format!("engine `{engine}` does not exist; use `lab`, `sim` or `calc`");
        return Err(Problem::new(message, Some("engines".into())));
    }
    if spec.engines.is_empty() {
        return Err(Problem::new("`engines` is empty; name `lab`, `sim`, both, or `calc`", Some("engines".into())));
    }
    let scale = spec.scale;
    if !(scale.rate > 0.0 && scale.rate.is_finite() && scale.time > 0.0 && scale.time.is_finite()) {
        return Err(Problem::new("`scale` has a factor that is not above 0", Some("[scale]".into())));
    }
    Ok(())
}

fn check_points(spec: &PlanSpec) -> Result<(), Problem> {
    for point in &spec.points {
        check_scenario(&point.spec).map_err(|problem| at_point(spec, point, problem))?;
    }
    let engines = spec.labels_of(ENGINE_AXIS);
    match engines.iter().find(|engine| !spec.engines.contains(engine)) {
        Some(engine) => {
            let message = format!("axis `{ENGINE_AXIS}` names `{engine}`, which is not in `engines`");
            Err(Problem::new(message, Some(format!("sweep.{ENGINE_AXIS}"))))
        }
        None => Ok(()),
    }
}

/// Says at which point of a sweep something is wrong.
fn at_point(spec: &PlanSpec, point: &Point, found: Problem) -> Problem {
    match point.name(&spec.axes) {
        name if name.is_empty() => found,
        name => Problem { message: format!("at {name}: {}", found.message), ..found },
    }
}

fn check_scenario(spec: &PlanSpec) -> Result<(), Problem> {
    if spec.fabric.is_none() {
        return Err(Problem::new("the plan names no scenario; add a `[fabric]` table", None));
    }
    if spec.workload.is_empty() {
        return Err(Problem::new("the plan names no scenario: nothing is sent; add a `[workload.NAME]` table", None));
    }
    if spec.overlays.is_empty() {
        return Err(Problem::new(
            "`overlays` is empty; name at least one, for instance `vl2`",
            Some("overlays".into()),
        ));
    }
    let mut seen = Vec::new();
    for overlay in &spec.overlays {
        if seen.contains(overlay) {
            return Err(Problem::new("`overlays` names one overlay twice", Some("overlays".into())));
        }
        seen.push(*overlay);
    }
    if spec.repetitions == 0 {
        return Err(Problem::new("`repetitions` is 0; a plan runs at least once", Some("repetitions".into())));
    }
    let sampling = &spec.sampling;
    if sampling.interval.0 == 0 || sampling.time_limit.0 == 0 || sampling.tcp_interval.is_some_and(|span| span.0 == 0) {
        return Err(Problem::new("`sampling` has a time of 0", Some("[sampling]".into())));
    }
    if let Some(Err(message)) = sampling.probes.as_ref().map(ProbeSpec::check) {
        return Err(Problem::new(message, Some("probes".into())));
    }
    Ok(())
}

/// Whether workloads and faults fit the networks, which are built for it; takes note of what settings do there.
pub(super) fn check_scenarios_fit(spec: &PlanSpec, effects: &mut Effects) -> Result<(), Problem> {
    let fabrics = spec.build_fabrics().map_err(|message| Problem::new(message, Some("[fabric]".into())))?;
    for (point, fabric) in spec.points.iter().zip(&fabrics) {
        let fits = check_fits(&point.spec, fabric);
        let noted = fits.and_then(|()| effects.note(effect::of_point(&point.spec, &spec.runs_on, fabric)));
        noted.map_err(|problem| at_point(spec, point, problem))?;
    }
    Ok(())
}

fn check_fits(spec: &PlanSpec, fabric: &Fabric) -> Result<(), Problem> {
    check_network(fabric, &spec.transport, &spec.switching, &spec.fault)?;
    for overlay in &spec.overlays {
        let clash = |error: LoadError| Problem::new(error.to_string(), Some("[fabric]".into()));
        fabric.check_forwarding(*overlay).map_err(clash)?;
    }
    let servers = fabric.servers().count() as u32;
    for (name, workload) in &spec.workload {
        let wrong = |error| Problem::new(format!("workload `{name}`: {error}"), Some(heading_of(name, &error)));
        if matches!(workload, Workload::Outside(_)) && fabric.outside().is_none() {
            let message =
                format!("workload `{name}` is of kind `outside`, and fabric `{}` has no outside", fabric.name());
            return Err(Problem::new(message, Some(format!("[workload.{name}]"))));
        }
        workload.check(servers).map_err(wrong)?;
        workload.check_spines(fabric.with_role(Role::Spine).count()).map_err(wrong)?;
        if let Workload::Services(services) = workload {
            services.check_fabric(fabric).map_err(wrong)?;
        }
    }
    Ok(())
}

/// The heading of the table that is to blame for what is wrong with a workload.
fn heading_of(workload: &str, error: &WorkloadError) -> String {
    match error {
        WorkloadError::Service { service, .. } => format!("[workload.{workload}.service.{service}]"),
        _ => format!("[workload.{workload}]"),
    }
}

/// Whether hosts, switches and faults make sense on this network.
pub(super) fn check_network(
    fabric: &Fabric,
    transport: &Transport,
    switching: &Switching,
    faults: &[Fault],
) -> Result<(), Problem> {
    transport.check().map_err(|error| Problem::new(error.to_string(), Some("[transport]".into())))?;
    switching.check(fabric).map_err(|error| Problem::new(error.to_string(), Some("[switching]".into())))?;
    check_faults(faults, fabric).map_err(|error| {
        let until_wrong = (0..faults.len()).find(|last| check_faults(&faults[..=*last], fabric).is_err());
        let holds = until_wrong.map_or_else(Vec::new, |last| names_of(&faults[last].kind));
        Problem { holds, ..Problem::new(error.to_string(), Some("fault]]".into())) }
    })
}

fn names_of(kind: &FaultKind) -> Vec<String> {
    match kind {
        FaultKind::SwitchDown { node } | FaultKind::SwitchSilent { node } => vec![node.clone()],
        FaultKind::LinkDown { a, b } | FaultKind::LinkSilent { a, b } => vec![a.clone(), b.clone()],
    }
}

fn check_analysis(spec: &PlanSpec) -> Result<(), Problem> {
    if let Some(name) = spec.sampling.measure_cpu_cost.iter().find(|name| !spec.workload.contains_key(*name)) {
        let message = format!("`sampling.measure_cpu_cost` names workload `{name}`, which is not there");
        return Err(Problem::new(message, Some("measure_cpu_cost".into())));
    }
    if spec.asks() != (spec.analysis == Analysis::Asked) && spec.asks() {
        return Err(wrong("a plan with `[[metrics]]` of its own names no `analysis`"));
    }
    spec.analysis.check_sweep(spec).map_err(wrong)?;
    if spec.asks() {
        questions::check(spec)?;
    }
    check_engines(spec).map_err(|message| Problem::new(message, Some("engines =".into())))
}

fn wrong(message: impl Into<String>) -> Problem {
    Problem::new(message, Some("analysis =".into()))
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

fn check_claims(spec: &PlanSpec) -> Result<(), Problem> {
    if spec.claims.is_empty() {
        return Err(Problem::new("the plan has no claims; add `[[claims]]`", None));
    }
    let mut seen = BTreeSet::new();
    for claim in &spec.claims {
        if !seen.insert(&claim.id) {
            return Err(Problem::of_claim(&claim.id, format!("two claims are called `{}`", claim.id)));
        }
        check_claim(spec, claim).map_err(|message| Problem::of_claim(&claim.id, message))?;
    }
    Ok(())
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

fn check_claim(spec: &PlanSpec, claim: &Claim) -> Result<(), String> {
    let id = &claim.id;
    let known_names = spec.analysis.metric_names(spec);
    for name in claim.metrics().filter(|_| !spec.asks()) {
        if !known_names.iter().any(|known| known == name) {
            return Err(unknown_metric(spec, name, &known_names));
        }
    }
    if claim.because.is_some() && claim.paper_wants.is_none() {
        return Err(format!("claim `{id}` has `because`, which explains `paper_wants`"));
    }
    if let Some(mutation) = &claim.fails_when
        && !spec.mutations.iter().any(|one| one.id == *mutation)
    {
        return Err(format!("claim `{id}` fails when `{mutation}`, which no `[[mutations]]` is"));
    }
    if claim.relation == Relation::Info {
        if claim.required {
            return Err(format!("claim `{id}` is required, so it may not be `info`; give it `>=` or `<=` and `want`"));
        }
        return Ok(());
    }
    match claim.want {
        None => Err(format!("claim `{id}` is judged but has no `want`")),
        Some(want) if !want.is_finite() => {
            Err(format!("claim `{id}` wants {want}, which no number can be held against"))
        }
        Some(_) if claim.not_above.is_some() && claim.judge != Judge::IntervalUpper => {
            Err(format!("claim `{id}` has `not_above`, which needs `judge = \"interval-upper\"`"))
        }
        Some(_) => Ok(()),
    }
}
