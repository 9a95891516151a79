//! What people break or impair in a lab that is up, and mend again. It outlives the process that made them.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_scenario::engine::Progress;
use weft_scenario::fault::FaultKind;
use weft_scenario::id::LinkId;

use super::broken::{Broken, between, find};
use super::impair::{self, Impaired, Impairment};
use crate::error::LabError;
use crate::home;
use crate::routes;
use crate::state::LabState;
use crate::up::Lab;

/// How long routes are waited for: OSPF's timers in labs are shorter by far.
const ROUTES_TIMEOUT: Duration = Duration::from_secs(20);
const ROUTES_POLL: Duration = Duration::from_millis(20);

/// What became of a lab.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Change {
    pub lab: String,
    /// What is broken now.
    pub broken: Vec<FaultKind>,
    /// What is worse than it should be now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub impaired: Vec<Impaired>,
    /// Seconds until the kernel had it.
    pub kernel_s: f64,
    /// Seconds until every switch had the routes that the links allow; `None`: not within the time that was waited, or switches
    /// of this lab have no routes. A silent link is found by timers, not by this.
    pub routes_s: Option<f64>,
}

/// Breaks something in a lab.
///
/// # Errors
/// [`LabError`]: no such lab, node or link, or the kernel refuses. Nothing is changed then.
pub fn fail(lab: &str, fault: &FaultKind, progress: &dyn Progress) -> Result<Change, LabError> {
    change(lab, progress, |lab, wanted| {
        check(lab, fault)?;
        if !wanted.broken.contains(fault) {
            wanted.broken.push(fault.clone());
        }
        Ok(())
    })
}

/// Makes all links between two nodes worse than their fabric says, in the place of what was worse there before: from the first to
/// the second and, unless it is only `one_way`, back.
///
/// # Errors
/// [`LabError`]: no such lab, node or link, values that cannot be, or a kernel without what it takes. Nothing is changed then.
pub fn impair(
    lab: &str,
    [a, b]: [&str; 2],
    by: &Impairment,
    one_way: bool,
    progress: &dyn Progress,
) -> Result<Change, LabError> {
    change(lab, progress, |lab, wanted| {
        let seed = by.seed.or_else(|| (by.loss_percent > 0.0).then(any_seed));
        let ways = [(a, b), (b, a)].into_iter().take(if one_way { 1 } else { 2 });
        for (from, to) in ways {
            impair::check(lab, from, to, by)?;
            wanted.impaired.retain(|one| (one.from.as_str(), one.to.as_str()) != (from, to));
            let by = Impairment { seed, ..*by };
            wanted.impaired.push(Impaired { from: from.to_owned(), to: to.to_owned(), by });
        }
        Ok(())
    })
}

/// Few enough digits to be typed again.
fn any_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) >> 40
}

/// Mends what is named: a switch, the links between two nodes, or everything.
///
/// # Errors
/// [`LabError`]: no such lab, or nothing of it is broken.
pub fn repair(lab: &str, what: &[String], progress: &dyn Progress) -> Result<Change, LabError> {
    change(lab, progress, |lab, wanted| {
        let before = (wanted.broken.len(), wanted.impaired.len());
        let all = wanted.to_string();
        wanted.broken.retain(|fault| !what.is_empty() && !is_of(fault, what));
        wanted.impaired.retain(|one| !what.is_empty() && !is_between(&one.from, &one.to, what));
        if (wanted.broken.len(), wanted.impaired.len()) != before || what.is_empty() {
            return Ok(());
        }
        Err(LabError::NotBroken { what: what.join(" "), lab: lab.state.lab.clone(), broken: all })
    })
}

/// Links that carry nothing while these faults are in a lab.
pub(crate) fn links_of(lab: &Lab, faults: Vec<FaultKind>) -> Result<BTreeSet<LinkId>, LabError> {
    Broken::looked_at(lab, faults).wanted_links()
}

/// Whether a fault is of this switch, or of the links between these two.
fn is_of(fault: &FaultKind, what: &[String]) -> bool {
    match (fault, what) {
        (FaultKind::SwitchDown { node } | FaultKind::SwitchSilent { node }, [name]) => node == name,
        (FaultKind::LinkDown { a, b } | FaultKind::LinkSilent { a, b }, what) => is_between(a, b, what),
        _ => false,
    }
}

fn is_between(a: &str, b: &str, what: &[String]) -> bool {
    matches!(what, [one, other] if (a == one && b == other) || (a == other && b == one))
}

/// Whether the lab has what shall fail.
fn check(lab: &Lab, fault: &FaultKind) -> Result<(), LabError> {
    let fabric = &lab.scenario.fabric;
    if let FaultKind::LinkDown { a, b } | FaultKind::LinkSilent { a, b } = fault
        && let Some(moved) = lab.state.moved.iter().find(|moved| moved.server == *a || moved.server == *b)
    {
        let home = fabric.find(&moved.server).and_then(|id| fabric.edge_of(id));
        let home = home.map_or_else(|| "EDGE".to_owned(), |(edge, _)| fabric.node(edge).name.clone());
        return Err(LabError::Moved { server: moved.server.clone(), edge: moved.edge.clone(), home });
    }
    let node = match fault {
        FaultKind::LinkDown { a, b } | FaultKind::LinkSilent { a, b } => return between(lab, a, b).map(drop),
        FaultKind::SwitchDown { node } | FaultKind::SwitchSilent { node } => node,
    };
    let id = find(lab, node)?;
    if fabric.node(id).role.is_switch() {
        return Ok(());
    }
    let far = fabric.links_of(id).first().and_then(|link| fabric.link(*link).far_end(id));
    let neighbour = far.map_or_else(|| "NEIGHBOUR".to_owned(), |port| fabric.node(port.node).name.clone());
    Err(LabError::NotASwitch { node: node.clone(), neighbour })
}

/// What is amiss in a lab.
#[derive(Clone, Debug, PartialEq)]
struct Amiss {
    broken: Vec<FaultKind>,
    impaired: Vec<Impaired>,
}

impl Amiss {
    fn of(state: &LabState) -> Self {
        Self { broken: state.faults.clone(), impaired: state.impaired.clone() }
    }

    fn put_into(&self, state: &mut LabState) {
        (state.faults, state.impaired) = (self.broken.clone(), self.impaired.clone());
    }
}

fn change(
    name: &str,
    progress: &dyn Progress,
    edit: impl FnOnce(&Lab, &mut Amiss) -> Result<(), LabError>,
) -> Result<Change, LabError> {
    let (mut lab, kernel_s, tables) = {
        let _turn = home::lock_lab(name)?;
        let mut lab = Lab::open(name)?;
        if lab.state.owner.is_some() {
            return Err(LabError::OfARun { lab: name.to_owned() });
        }
        let before = Amiss::of(&lab.state);
        let mut wanted = before.clone();
        edit(&lab, &mut wanted)?;
        note_what_may_be(&mut lab.state, &before, &wanted)?;
        let start = Instant::now();
        let applied = apply(&lab, &before, &wanted);
        let kernel_s = start.elapsed().as_secs_f64();
        if applied.is_ok() { &wanted } else { &before }.put_into(&mut lab.state);
        lab.state.save()?;
        (lab, kernel_s, applied?)
    };
    let routes_s = if lab.scenario.overlay.forwards_frames() { None } else { wait(&tables, progress) };
    let (broken, impaired) = (lab.state.faults, lab.state.impaired);
    Ok(Change { lab: std::mem::take(&mut lab.state.lab), broken, impaired, kernel_s, routes_s })
}

/// Before anything is done: whoever is killed meanwhile leaves nothing that is not written down.
fn note_what_may_be(state: &mut LabState, before: &Amiss, wanted: &Amiss) -> Result<(), LabError> {
    let is_known =
        |one: &Impaired| wanted.impaired.iter().any(|other| (&other.from, &other.to) == (&one.from, &one.to));
    let mut may_be = wanted.clone();
    may_be.impaired.splice(0..0, before.impaired.iter().filter(|one| !is_known(one)).cloned());
    may_be.broken.splice(0..0, before.broken.iter().filter(|one| !wanted.broken.contains(one)).cloned());
    if may_be == *before {
        return Ok(());
    }
    may_be.put_into(state);
    state.save()
}

/// Makes the lab as wanted, or leaves it as it was before; the routes that follow.
fn apply(lab: &Lab, before: &Amiss, wanted: &Amiss) -> Result<Vec<(String, routes::RouteTable)>, LabError> {
    let mut broken = Broken::left(lab, before.broken.clone())?;
    let settled = settle(&mut broken, before, wanted);
    if settled.is_err() {
        settle(&mut broken, wanted, before).unwrap_or_else(|error| tracing::error!("lab {}: {error}", lab.state.lab));
    }
    let tables = broken.tables();
    settled.map(|()| tables)
}

fn settle(broken: &mut Broken<'_>, before: &Amiss, wanted: &Amiss) -> Result<(), LabError> {
    let lab = broken.lab;
    broken.active = wanted.broken.clone();
    broken.lift_silence(&impair::ports(lab, &before.impaired, &wanted.impaired)?)?;
    let impaired = impair::settle(lab, &before.impaired, &wanted.impaired);
    // Also if that failed: what is silent is so again.
    broken.settle().and(impaired)
}

/// Seconds until the kernels have these routes.
fn wait(tables: &[(String, routes::RouteTable)], progress: &dyn Progress) -> Option<f64> {
    let start = Instant::now();
    while !tables.iter().all(routes::is_there) {
        if start.elapsed() >= ROUTES_TIMEOUT || progress.interrupted() {
            return None;
        }
        std::thread::sleep(ROUTES_POLL);
    }
    Some(start.elapsed().as_secs_f64())
}

impl fmt::Display for Amiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |fault: &FaultKind| match fault {
            FaultKind::SwitchDown { node } => format!("{node} (down)"),
            FaultKind::SwitchSilent { node } => format!("{node} (silent)"),
            FaultKind::LinkDown { a, b } => format!("{a} {b} (down)"),
            FaultKind::LinkSilent { a, b } => format!("{a} {b} (silent)"),
        };
        let worse = |one: &Impaired| format!("{} to {} ({})", one.from, one.to, one.by);
        let all: Vec<String> = self.broken.iter().map(words).chain(self.impaired.iter().map(worse)).collect();
        f.write_str(if all.is_empty() { "nothing" } else { "" })?;
        f.write_str(&all.join(", "))
    }
}
