//! What lies between two steps of a run whose links are lost one after another and come back (VL2 5.4, Figure 13).
//!
//! A phase's goodput is taken from its settled part and held against what the links that are left could carry at best, whatever
//! routing did: the least of all servers' links and of what the Aggregation switches have both below and above them, with headers
//! alone deducted (2920/3154).
//!
//! A repaired link is restored when it carries nearly what it carries as the phase ends, and at least half of what it carried before
//! it failed: with fewer links down its share may be smaller, but not so small. One that does not come so far is not restored.
//!
//! An outage is that of the worst flow of paced datagrams; one sample is one failure. A link that goes down without a flow that loses
//! any was away for at most the time between two datagrams, and that is its outage: an upper bound. Of a link that falls silent nobody
//! knows before a few keep-alives are missing, so one that nobody notices is one that no flow crossed, and no sample.

use std::collections::BTreeSet;

use weft_scenario::fault::Fault;
use weft_scenario::id::LinkId;
use weft_scenario::record::{EventRow, Records};
use weft_scenario::topology::{Fabric, Role};

use super::Value;
use crate::analysis::links::{self, LinkSeries};
use crate::analysis::series::{Cumulative, Window};
use crate::analysis::{Input, TrialRecords, framing};

/// Of a phase: its number; when it began and ended, with what (`start`, `down`, `silent`, `repaired`) and where; what the links
/// could carry; capacity to the Intermediates over what is left of it; goodput, also over the bound; the outage of the worst flow
/// of datagrams, empty without one, and at most the time between two where a link went down unseen; whether something failed and no such flow lost any; from the repair to the use and to the
/// routes that the links allow; whether what was repaired was in use before it failed and did not come back into it.
pub(super) const COLUMNS: &[&str] = &[
    "phase",
    "from_s",
    "to_s",
    "began",
    "subject",
    "bound_bps",
    "oversubscription",
    "goodput_bps",
    "efficiency",
    "outage_s",
    "unseen",
    "restoration_s",
    "routes_s",
    "unrestored",
];

/// Settled at the latest so long after a step, or after half of the phase.
const SETTLE_S: f64 = 2.0;
/// Phases shorter than this share of the longest are no phases: what ends with the run.
const PHASE_LEAST: f64 = 0.25;
/// Outages that begin within this time of a failure are its own.
const NEAR_S: f64 = 2.0;
/// A restored link is used when it carries this share of what it carries in the last part of its phase ..
const USED_RATIO: f64 = 0.9;
/// .. which is one of so many ..
const PHASE_PARTS: f64 = 4.0;
/// .. and this share of what it carried before it failed.
const USED_OF_BEFORE_RATIO: f64 = 0.5;
/// Length of the stretch that says so, and of the steps in which it is looked for; both shorter in short phases.
const STRETCH_S: f64 = 1.0;
const STEP_S: f64 = 0.1;
/// A fact of a trial: how many flows of datagrams there were.
const PROBES: &str = "probes.flows";
/// Adjacencies of a repaired link may still change for this time.
const REJOIN_S: f64 = 10.0;

/// The phases of a trial.
pub(super) fn rows(input: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let Some((spec, fabric)) = input.at(&trial.key) else { return Vec::new() };
    let records = &trial.records;
    let end_s = Cumulative::of_payload(records).end();
    let whole = Window { from_s: spec.sampling.warm_up.as_secs_f64(), to_s: end_s };
    let is_probed = records.facts.iter().any(|fact| fact.0 == PROBES);
    let probe_s = spec.sampling.probes.as_ref().filter(|_| is_probed).map(|probes| probes.interval.as_secs_f64());
    let phases = phases(records, fabric, &steps(&spec.fault, records), whole, probe_s);
    (1..).zip(&phases).map(|(number, phase)| phase.cells(number)).collect()
}

/// How many adjacencies were lost without a reason.
pub(super) fn flaps(input: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let Some((spec, fabric)) = input.at(&trial.key) else { return Vec::new() };
    let steps = steps(&spec.fault, &trial.records);
    vec![vec![Value::Integer(lost_adjacencies(&trial.records, fabric, &steps) as i64)]]
}

/// How a phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Began {
    Start,
    LinkDown,
    Silent,
    Repair,
}

/// From one step to the next.
struct Phase {
    began: Began,
    /// What failed or came back.
    subject: String,
    window: Window,
    bound_bps: f64,
    oversubscription: f64,
    goodput_bps: f64,
    efficiency: f64,
    /// Of the worst flow of datagrams, or the most that it can be; `None` if nobody knows, or nothing failed.
    outage_s: Option<f64>,
    /// Something failed, and no flow of datagrams lost any.
    unseen: bool,
    restoration_s: Option<f64>,
    routes_s: Option<f64>,
    unrestored: bool,
}

/// A failure or a repair, as recorded.
struct Step<'a> {
    time_s: f64,
    fault: &'a Fault,
    repairs: bool,
}

impl Phase {
    fn cells(&self, number: i64) -> Vec<Value> {
        let optional = |number: Option<f64>| number.map_or(Value::Null, Value::Real);
        vec![
            Value::Integer(number),
            Value::Real(self.window.from_s),
            Value::Real(self.window.to_s),
            Value::Text(self.began.word().to_owned()),
            Value::Text(self.subject.clone()),
            Value::Real(self.bound_bps),
            Value::Real(self.oversubscription),
            Value::Real(self.goodput_bps),
            Value::Real(self.efficiency),
            optional(self.outage_s),
            Value::Integer(i64::from(self.unseen)),
            optional(self.restoration_s),
            optional(self.routes_s),
            Value::Integer(i64::from(self.unrestored)),
        ]
    }
}

impl Began {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::LinkDown => "down",
            Self::Silent => "silent",
            Self::Repair => "repaired",
        }
    }
}

impl Step<'_> {
    fn began(&self) -> Began {
        match (&self.fault.kind, self.repairs) {
            (_, true) => Began::Repair,
            (kind, false) if kind.is_silent() => Began::Silent,
            (_, false) => Began::LinkDown,
        }
    }
}

/// The recorded steps with the plan's faults: the n-th failure of a link is the n-th fault of the plan that names it.
fn steps<'a>(faults: &'a [Fault], records: &Records) -> Vec<Step<'a>> {
    let mut waiting: Vec<&Fault> = faults.iter().collect();
    waiting.sort_by_key(|fault| fault.at);
    let mut active: Vec<&Fault> = Vec::new();
    let mut steps = Vec::new();
    for event in &records.events {
        let (repairs, from) = match event.kind.as_str() {
            "fault" => (false, &mut waiting),
            "repair" => (true, &mut active),
            _ => continue,
        };
        let Some(place) = from.iter().position(|fault| fault.subject() == event.subject) else { continue };
        let fault = from.remove(place);
        if !repairs {
            active.push(fault);
        }
        steps.push(Step { time_s: event.time_s(), fault, repairs });
    }
    steps
}

/// `probe_s`: time between two datagrams of a flow, if there were any.
fn phases(records: &Records, fabric: &Fabric, steps: &[Step<'_>], whole: Window, probe_s: Option<f64>) -> Vec<Phase> {
    let ends = |number: usize| steps.get(number).map_or(whole.to_s, |step| step.time_s);
    let window = |number: usize| match number.checked_sub(1) {
        None => Window { from_s: whole.from_s, to_s: ends(0) },
        Some(before) => Window { from_s: steps[before].time_s, to_s: ends(number) },
    };
    let longest = (1..=steps.len()).map(|number| window(number).seconds()).fold(0.0, f64::max);
    let (payload, series) = (Cumulative::of_payload(records), links::all(&records.links, fabric));
    let most = capacity_to_intermediates(fabric, &BTreeSet::new());
    let mut phases = Vec::new();
    let mut down: Vec<(&Fault, f64)> = Vec::new();
    let mut calm = Window { from_s: whole.from_s, to_s: whole.from_s };
    for number in 0..=steps.len() {
        let step = number.checked_sub(1).map(|before| &steps[before]);
        let mut back = None;
        match step {
            Some(step) if step.repairs => {
                let place = down.iter().position(|(fault, _)| std::ptr::eq(*fault, step.fault));
                back = place.map(|place| down.remove(place)).map(|(_, before)| (step, before));
            }
            Some(step) => down.push((step.fault, use_of(&series, fabric, step.fault)(calm))),
            None => {}
        }
        let window = window(number);
        if window.seconds() < longest * PHASE_LEAST {
            continue;
        }
        let failed: BTreeSet<LinkId> =
            down.iter().filter_map(|(fault, _)| fault.links(fabric).ok()).flatten().collect();
        let bound_bps = bound_bps(fabric, &failed) * framing::headers_only_ratio();
        let fails = step.is_some_and(|step| !step.repairs);
        let lost_s = outage(records, window).filter(|_| fails);
        let began = step.map_or(Began::Start, Step::began);
        calm = settled(window);
        let goodput_bps = payload.rate(calm.from_s, calm.to_s) * 8.0;
        let back = back.filter(|(_, before)| *before > 0.0);
        let restoration_s =
            back.and_then(|(step, before)| restoration(use_of(&series, fabric, step.fault), before, window));
        phases.push(Phase {
            began,
            subject: step.map_or_else(String::new, |step| step.fault.subject()),
            window,
            bound_bps,
            oversubscription: most / capacity_to_intermediates(fabric, &failed).max(1.0),
            goodput_bps,
            efficiency: goodput_bps / bound_bps.max(1.0),
            outage_s: lost_s.or(probe_s.filter(|_| began == Began::LinkDown)),
            unseen: fails && probe_s.is_some() && lost_s.is_none(),
            restoration_s,
            unrestored: back.is_some() && restoration_s.is_none(),
            routes_s: step.filter(|step| step.repairs).and_then(|step| routes_back(records, step, window)),
        });
    }
    phases
}

/// The part of a phase after flows have found their paths.
fn settled(phase: Window) -> Window {
    Window { from_s: phase.from_s + SETTLE_S.min(phase.seconds() / 2.0), to_s: phase.to_s }
}

/// The least of what servers can send and what Aggregation switches can take from below and give to the Intermediates.
fn bound_bps(fabric: &Fabric, failed: &BTreeSet<LinkId>) -> f64 {
    let servers = fabric.servers().filter_map(|server| fabric.edge_of(server));
    let offered: f64 = servers.map(|(_, link)| fabric.link(link).spec.rate.0 as f64).sum();
    let through = |aggregation| {
        let to = |role| rate_to(fabric, aggregation, role, failed);
        to(Role::Tor).min(to(Role::Intermediate))
    };
    offered.min(fabric.with_role(Role::Aggregation).map(through).sum())
}

fn capacity_to_intermediates(fabric: &Fabric, failed: &BTreeSet<LinkId>) -> f64 {
    fabric.with_role(Role::Aggregation).map(|node| rate_to(fabric, node, Role::Intermediate, failed)).sum()
}

/// Rate of the links of a switch to neighbours of a role, those that failed left out.
fn rate_to(fabric: &Fabric, node: weft_scenario::id::NodeId, role: Role, failed: &BTreeSet<LinkId>) -> f64 {
    let leads = |link: &&LinkId| {
        let far = fabric.link(**link).far_end(node).map(|port| fabric.node(port.node).role);
        far == Some(role) && !failed.contains(link)
    };
    fabric.links_of(node).iter().filter(leads).map(|link| fabric.link(*link).spec.rate.0 as f64).sum()
}

/// The longest gap of any flow of datagrams that began soon after the phase did.
fn outage(records: &Records, phase: Window) -> Option<f64> {
    let until_s = phase.to_s.min(phase.from_s + NEAR_S);
    let begins = |time_ns: u64| (phase.from_s..until_s).contains(&(time_ns as f64 / 1e9));
    let gaps = records.gaps.iter().filter(|gap| begins(gap.time_ns));
    gaps.map(|gap| gap.outage_ns as f64 / 1e9).reduce(f64::max)
}

/// Bytes per second that the links of a fault carry, both ways, in a stretch of time.
fn use_of<'a>(series: &'a [LinkSeries], fabric: &Fabric, fault: &Fault) -> impl Fn(Window) -> f64 + 'a {
    let name = |node| fabric.node(node).name.clone();
    let links = fault.links(fabric).unwrap_or_default();
    let ends: Vec<[String; 2]> =
        links.iter().map(|link| fabric.link(*link)).map(|link| [name(link.a.node), name(link.b.node)]).collect();
    let of_link = |one: &&LinkSeries| {
        ends.iter().any(|[a, b]| (one.node == *a && one.peer == *b) || (one.node == *b && one.peer == *a))
    };
    let series: Vec<&LinkSeries> = series.iter().filter(of_link).collect();
    move |window| series.iter().map(|one| one.sent.rate(window.from_s, window.to_s)).sum()
}

/// From the repair until the links are used again; `None` if that is not in the phase.
fn restoration(used: impl Fn(Window) -> f64, before: f64, phase: Window) -> Option<f64> {
    let last = Window { from_s: phase.to_s - phase.seconds() / PHASE_PARTS, ..phase };
    let wanted = (USED_RATIO * used(last)).max(USED_OF_BEFORE_RATIO * before);
    let stretch = STRETCH_S.min(phase.seconds() / PHASE_PARTS);
    let step_s = STEP_S.min(stretch / 4.0);
    let mut waits =
        (0..).map(|number| f64::from(number) * step_s).take_while(|wait| *wait + stretch <= phase.seconds());
    waits.find(|wait| {
        let from_s = phase.from_s + wait;
        used(Window { from_s, to_s: from_s + stretch }) >= wanted
    })
}

fn routes_back(records: &Records, step: &Step<'_>, phase: Window) -> Option<f64> {
    let back = |event: &&EventRow| {
        event.kind == "routes-restored"
            && event.subject == step.fault.subject()
            && (phase.from_s..=phase.to_s).contains(&event.time_s())
    };
    records.events.iter().find(back).map(|event| event.time_s() - phase.from_s)
}

/// Full adjacencies that were lost on links that had not failed: daemons that were late, not links that broke.
fn lost_adjacencies(records: &Records, fabric: &Fabric, steps: &[Step<'_>]) -> usize {
    let excused = |link: LinkId, time_s: f64| {
        let mut down_until = f64::NEG_INFINITY;
        for step in steps.iter().filter(|step| step.fault.links(fabric).is_ok_and(|links| links.contains(&link))) {
            if step.time_s > time_s {
                break;
            }
            down_until = if step.repairs { step.time_s + REJOIN_S } else { f64::INFINITY };
        }
        time_s <= down_until
    };
    let lost = records.events.iter().filter(|event| event.kind == "adjacency" && event.subject.contains(" Full -> "));
    lost.filter(|event| link_of(fabric, &event.subject).is_none_or(|link| !excused(link, event.time_s()))).count()
}

/// The link of `NODE:INTERFACE ...`.
fn link_of(fabric: &Fabric, subject: &str) -> Option<LinkId> {
    let (node, interface) = subject.split(' ').next()?.split_once(':')?;
    let node = fabric.find(node)?;
    let at = |link: &&LinkId| fabric.link(**link).end_at(node).is_some_and(|port| port.interface == interface);
    fabric.links_of(node).iter().find(at).copied()
}

#[cfg(test)]
mod tests;
