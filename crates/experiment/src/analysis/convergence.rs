//! Links to the Intermediates are lost one after another in a running shuffle and come back (VL2 5.4, Figure 13).
//!
//! Between two steps lies a phase. Its goodput is taken from its settled part and held against what the links that are left
//! could carry at best, whatever routing did: the least of all servers' links and of what the Aggregation switches have both
//! below and above them, with headers alone deducted (2920/3154).
//!
//! An outage is that of the worst flow of paced datagrams; one sample is one failure. A failure in which no flow lost any is
//! none: it was shorter than the time between two datagrams, or no flow crossed the link.

use std::collections::BTreeSet;

use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::id::LinkId;
use weft_scenario::record::{EventRow, Records};
use weft_scenario::topology::{Fabric, Role};

use super::links::{self, LinkSeries};
use super::series::{Cumulative, Window};
use super::{Input, MetricInfo, TrialRecords, cpu, framing};
use crate::metric::{Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::table::plain;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "efficiency", meaning: "goodput of a phase / what its links could carry; median of all phases" },
    MetricInfo { name: "efficiency_worst", meaning: "the same of the worst phase" },
    MetricInfo { name: "efficiency_scarcest", meaning: "the same where the least capacity is left" },
    MetricInfo { name: "oversubscription", meaning: "capacity to the Intermediates / what is left of it, most" },
    MetricInfo { name: "outage_link_down_s", meaning: "outage of the worst flow when a link goes down, s" },
    MetricInfo { name: "outage_silent_s", meaning: "the same when a link falls silent, s" },
    MetricInfo { name: "unseen_failures", meaning: "failures in which no flow of datagrams lost any" },
    MetricInfo { name: "restoration_s", meaning: "repair to the first stretch with 90 % of the link's later use, s" },
    MetricInfo { name: "routes_restored_s", meaning: "repair to the routes that the links allow, in the kernel, s" },
    MetricInfo { name: "cpu_idle_busiest_core", meaning: "idle share of the busiest core, over the run" },
];

/// Settled at the latest so long after a step, or after half of the phase.
const SETTLE_S: f64 = 2.0;
/// Phases shorter than this share of the longest are no phases: what ends with the run.
const PHASE_LEAST: f64 = 0.25;
/// Outages that begin within this time of a failure are its own.
const NEAR_S: f64 = 2.0;
/// A restored link is used when it carries this share of what it carries later.
const USED_RATIO: f64 = 0.9;
/// Length of the stretch that says so, and of the steps in which it is looked for; both shorter in short phases.
const STRETCH_S: f64 = 1.0;
const STEP_S: f64 = 0.1;
/// A fact of a trial: how many flows of datagrams there were.
const PROBES: &str = "probes.flows";
/// Adjacencies of a repaired link may still change for this time.
const REJOIN_S: f64 = 10.0;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_no_sweep(spec)?;
    if spec.workload.len() != 1 || spec.overlays.len() != 1 {
        return Err("analysis `convergence` takes one workload and one overlay".to_owned());
    }
    match spec.fault.is_empty() {
        true => Err("analysis `convergence` needs faults; add `[[fault]]` tables".to_owned()),
        false => Ok(()),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut runs = Vec::new();
    for trial in input.trials {
        let run = Run::of(input, trial);
        findings.problems.extend(run.problems(trial));
        runs.push(run);
    }
    let limit = if runs.iter().any(|run| run.limit == Limit::Cpu) { Limit::Cpu } else { Limit::Link };
    let mut put = |name: &str, samples: Vec<f64>, limit| findings.put(name, &samples, limit);
    let all = |number: fn(&Phase) -> Option<f64>| runs.iter().flat_map(|run| &run.phases).filter_map(number).collect();
    put("efficiency", all(|phase| Some(phase.efficiency)), limit);
    let of_each = |number: &dyn Fn(&Run) -> Option<f64>| runs.iter().filter_map(number).collect::<Vec<f64>>();
    put("efficiency_worst", of_each(&|run| run.efficiencies().reduce(f64::min)), limit);
    put("efficiency_scarcest", of_each(&|run| run.scarcest().map(|phase| phase.efficiency)), limit);
    put("oversubscription", of_each(&|run| run.scarcest().map(|phase| phase.oversubscription)), Limit::Computed);
    // A late daemon on a busy core is a late one: more CPU could only have made it quicker.
    let late = if limit == Limit::Cpu { Limit::OtherWork } else { limit };
    put("outage_link_down_s", all(|phase| phase.outage_s.filter(|_| phase.began == Began::LinkDown)), late);
    put("outage_silent_s", all(|phase| phase.outage_s.filter(|_| phase.began == Began::Silent)), late);
    put("restoration_s", all(|phase| phase.restoration_s), late);
    put("routes_restored_s", all(|phase| phase.routes_s), late);
    put("unseen_failures", of_each(&|run| Some(run.unseen() as f64)), limit);
    put("cpu_idle_busiest_core", of_each(&|run| run.idle), limit);
    findings.tables.extend(input.trials.iter().zip(&runs).map(|(trial, run)| run.table(trial)));
    findings
}

/// What the links could carry over time at best, in payload: the start of every phase with bits per second.
pub fn bounds(input: &Input<'_>, trial: &TrialRecords) -> Vec<(Window, f64)> {
    Run::of(input, trial).phases.iter().map(|phase| (phase.window, phase.bound_bps)).collect()
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
    /// Of the worst flow of datagrams; `None` if none lost any, or nothing failed.
    outage_s: Option<f64>,
    /// Something failed, and no flow of datagrams lost any.
    unseen: bool,
    restoration_s: Option<f64>,
    routes_s: Option<f64>,
}

/// One trial.
struct Run {
    phases: Vec<Phase>,
    limit: Limit,
    idle: Option<f64>,
    flaps: usize,
}

/// A failure or a repair, as recorded.
struct Step<'a> {
    time_s: f64,
    fault: &'a Fault,
    repairs: bool,
}

impl Run {
    fn of(input: &Input<'_>, trial: &TrialRecords) -> Self {
        let (records, fabric) = (&trial.records, input.fabric());
        let steps = steps(&input.spec.fault, records);
        let whole =
            Window { from_s: input.spec.sampling.warm_up.as_secs_f64(), to_s: Cumulative::of_payload(records).end() };
        let is_probed = records.facts.iter().any(|fact| fact.0 == PROBES);
        let phases = phases(records, fabric, &steps, whole, is_probed);
        let idle = cpu::busiest_idle(&records.cpu, whole);
        let limit = cpu::limit(&records.cpu, whole, Limit::Link);
        Self { phases, limit, idle, flaps: flaps(records, fabric, &steps) }
    }

    fn problems(&self, trial: &TrialRecords) -> Option<Problem> {
        let number = trial.key.trial;
        if !self.phases.iter().any(|phase| phase.began == Began::Repair) {
            return Some(Problem::Invalid(format!("trial {number} recorded no fault that was repaired")));
        }
        let text = || format!("{} adjacencies of links that had not failed were lost in trial {number}", self.flaps);
        (self.flaps > 0).then(|| Problem::Invalid(text()))
    }

    fn efficiencies(&self) -> impl Iterator<Item = f64> {
        self.phases.iter().map(|phase| phase.efficiency)
    }

    /// The phase with the least capacity; of several the last, which is the most settled.
    fn scarcest(&self) -> Option<&Phase> {
        self.phases.iter().max_by(|a, b| a.oversubscription.total_cmp(&b.oversubscription))
    }

    fn unseen(&self) -> usize {
        self.phases.iter().filter(|phase| phase.unseen).count()
    }

    fn table(&self, trial: &TrialRecords) -> Table {
        let optional = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), plain);
        let row = |phase: &Phase| {
            vec![
                plain(phase.window.from_s),
                format!("{} {}", phase.began.word(), phase.subject).trim().to_owned(),
                plain(phase.oversubscription),
                plain(phase.bound_bps / 1e6),
                plain(phase.goodput_bps / 1e6),
                plain(phase.efficiency),
                optional(phase.outage_s),
                optional(phase.restoration_s),
                optional(phase.routes_s),
            ]
        };
        let headings = [
            "from (s)",
            "step",
            "oversubscription",
            "bound (Mbit/s)",
            "goodput (Mbit/s)",
            "efficiency",
            "outage (s)",
            "full use (s)",
            "routes (s)",
        ];
        Table {
            title: format!("Trial {}: what each step cost", trial.key.trial),
            headings: headings.map(str::to_owned).to_vec(),
            rows: self.phases.iter().map(row).collect(),
        }
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
            (FaultKind::LinkSilent { .. }, false) => Began::Silent,
            (FaultKind::LinkDown { .. } | FaultKind::SwitchDown { .. }, false) => Began::LinkDown,
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

/// `is_probed`: there were flows of datagrams.
fn phases(records: &Records, fabric: &Fabric, steps: &[Step<'_>], whole: Window, is_probed: bool) -> Vec<Phase> {
    let ends = |number: usize| steps.get(number).map_or(whole.to_s, |step| step.time_s);
    let window = |number: usize| match number.checked_sub(1) {
        None => Window { from_s: whole.from_s, to_s: ends(0) },
        Some(before) => Window { from_s: steps[before].time_s, to_s: ends(number) },
    };
    let longest = (1..=steps.len()).map(|number| window(number).seconds()).fold(0.0, f64::max);
    let (payload, series) = (Cumulative::of_payload(records), links::all(&records.links, fabric));
    let most = capacity_to_intermediates(fabric, &BTreeSet::new());
    let mut phases = Vec::new();
    let mut down: Vec<&Fault> = Vec::new();
    for number in 0..=steps.len() {
        let step = number.checked_sub(1).map(|before| &steps[before]);
        match step {
            Some(step) if step.repairs => down.retain(|fault| !std::ptr::eq(*fault, step.fault)),
            Some(step) => down.push(step.fault),
            None => {}
        }
        let window = window(number);
        if window.seconds() < longest * PHASE_LEAST {
            continue;
        }
        let failed: BTreeSet<LinkId> = down.iter().filter_map(|fault| fault.links(fabric).ok()).flatten().collect();
        let bound_bps = bound_bps(fabric, &failed) * framing::headers_only_ratio();
        let fails = step.is_some_and(|step| !step.repairs);
        let lost_s = outage(records, window);
        let settled = settled(window);
        let goodput_bps = payload.rate(settled.from_s, settled.to_s) * 8.0;
        phases.push(Phase {
            began: step.map_or(Began::Start, Step::began),
            subject: step.map_or_else(String::new, |step| step.fault.subject()),
            window,
            bound_bps,
            oversubscription: most / capacity_to_intermediates(fabric, &failed).max(1.0),
            goodput_bps,
            efficiency: goodput_bps / bound_bps.max(1.0),
            outage_s: lost_s.filter(|_| fails),
            unseen: fails && is_probed && lost_s.is_none(),
            restoration_s: step.filter(|step| step.repairs).and_then(|step| restoration(&series, fabric, step, window)),
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

/// From the repair until the links carry nearly what they carry once all is settled; the whole phase if they never do.
fn restoration(series: &[LinkSeries], fabric: &Fabric, step: &Step<'_>, phase: Window) -> Option<f64> {
    let restored = step.fault.links(fabric).ok()?;
    let ends: Vec<(&str, &str)> = restored
        .iter()
        .map(|link| fabric.link(*link))
        .map(|link| (fabric.node(link.a.node).name.as_str(), fabric.node(link.b.node).name.as_str()))
        .collect();
    let of_link = |one: &&LinkSeries| {
        ends.iter().any(|(a, b)| (one.node == *a && one.peer == *b) || (one.node == *b && one.peer == *a))
    };
    let series: Vec<&LinkSeries> = series.iter().filter(of_link).collect();
    let rate = |from_s: f64, to_s: f64| series.iter().map(|one| one.sent.rate(from_s, to_s)).sum::<f64>();
    let settled = settled(phase);
    let later = rate(settled.from_s, settled.to_s);
    let stretch = STRETCH_S.min(phase.seconds() / 4.0);
    let step_s = STEP_S.min(stretch / 4.0);
    let waits = (0..).map(|number| f64::from(number) * step_s).take_while(|wait| *wait + stretch <= phase.seconds());
    let used = |wait: &f64| rate(phase.from_s + wait, phase.from_s + wait + stretch) >= USED_RATIO * later;
    (later > 0.0).then(|| waits.clone().find(used).unwrap_or(phase.seconds()))
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
fn flaps(records: &Records, fabric: &Fabric, steps: &[Step<'_>]) -> usize {
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
