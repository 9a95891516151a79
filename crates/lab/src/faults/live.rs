//! Faults that people put into a lab that is up, and take out again. They outlive the process that made them.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_scenario::engine::Progress;
use weft_scenario::fault::FaultKind;
use weft_scenario::id::LinkId;

use super::broken::Broken;
use crate::error::LabError;
use crate::home;
use crate::routes;
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
    change(lab, progress, |lab, broken| {
        check(lab, fault)?;
        if !broken.contains(fault) {
            broken.push(fault.clone());
        }
        Ok(())
    })
}

/// Mends what is named: a switch, the links between two nodes, or everything.
///
/// # Errors
/// [`LabError`]: no such lab, or nothing of it is broken.
pub fn repair(lab: &str, what: &[String], progress: &dyn Progress) -> Result<Change, LabError> {
    change(lab, progress, |lab, broken| {
        let before = broken.len();
        let all = Named(broken).to_string();
        broken.retain(|fault| !what.is_empty() && !is_of(fault, what));
        if broken.len() < before || what.is_empty() {
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
        (FaultKind::LinkDown { a, b } | FaultKind::LinkSilent { a, b }, [one, other]) => {
            (a == one && b == other) || (a == other && b == one)
        }
        _ => false,
    }
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
    let (FaultKind::SwitchDown { node } | FaultKind::SwitchSilent { node }) = fault else { return Ok(()) };
    let Some(id) = fabric.find(node) else { return Ok(()) };
    if fabric.node(id).role.is_switch() {
        return Ok(());
    }
    let far = fabric.links_of(id).first().and_then(|link| fabric.link(*link).far_end(id));
    let neighbour = far.map_or_else(|| "NEIGHBOUR".to_owned(), |port| fabric.node(port.node).name.clone());
    Err(LabError::NotASwitch { node: node.clone(), neighbour })
}

fn change(
    name: &str,
    progress: &dyn Progress,
    edit: impl FnOnce(&Lab, &mut Vec<FaultKind>) -> Result<(), LabError>,
) -> Result<Change, LabError> {
    let (mut lab, kernel_s, tables) = {
        let _turn = home::lock_lab(name)?;
        let mut lab = Lab::open(name)?;
        if lab.state.owner.is_some() {
            return Err(LabError::OfARun { lab: name.to_owned() });
        }
        let mut wanted = lab.state.faults.clone();
        edit(&lab, &mut wanted)?;
        let before = std::mem::replace(&mut lab.state.faults, wanted.clone());
        let start = Instant::now();
        let tables = apply(&lab, before, wanted)?;
        let kernel_s = start.elapsed().as_secs_f64();
        lab.state.save()?;
        (lab, kernel_s, tables)
    };
    let routes_s = if lab.scenario.overlay.forwards_frames() { None } else { wait(&tables, progress) };
    Ok(Change { lab: std::mem::take(&mut lab.state.lab), broken: lab.state.faults, kernel_s, routes_s })
}

/// Makes the lab as broken as wanted, or leaves it as it was before; the routes that follow.
fn apply(
    lab: &Lab,
    before: Vec<FaultKind>,
    wanted: Vec<FaultKind>,
) -> Result<Vec<(String, routes::RouteTable)>, LabError> {
    let mut broken = Broken::left(lab, before.clone())?;
    broken.active = wanted;
    let settled = broken.settle();
    if settled.is_err() {
        broken.active = before;
        broken.settle().unwrap_or_else(|error| tracing::error!("lab {}: {error}", lab.state.lab));
    }
    let tables = broken.tables();
    broken.keep()?;
    settled.map(|()| tables)
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

/// Faults in words.
struct Named<'a>(&'a [FaultKind]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |fault: &FaultKind| match fault {
            FaultKind::SwitchDown { node } => format!("{node} (down)"),
            FaultKind::SwitchSilent { node } => format!("{node} (silent)"),
            FaultKind::LinkDown { a, b } => format!("{a} {b} (down)"),
            FaultKind::LinkSilent { a, b } => format!("{a} {b} (silent)"),
        };
        let all: Vec<String> = self.0.iter().map(words).collect();
        f.write_str(if all.is_empty() { "nothing" } else { "" })?;
        f.write_str(&all.join(", "))
    }
}
