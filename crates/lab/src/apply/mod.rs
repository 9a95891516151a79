//! Makes another fabric of a lab that is up, by the difference: what is in both is not touched.
//!
//! * `difference`: what comes, what goes, and what changes at nodes that stay
//!
//! What comes is made before anything goes. If that fails, what was made is removed again; if the process is killed, the lab's state names
//! all nodes of both fabrics, and `weft lab down` removes them.

mod difference;

use std::fmt::Display;
use std::time::Instant;

use serde::Serialize;
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Overlay, Progress, Scenario};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Fabric;

use crate::batch::{self, Program};
use crate::daemons::Launcher;
use crate::error::LabError;
use crate::home::{self, frr_path_space, namespace_path};
use crate::options::LabOptions;
use crate::owner::Owner;
use crate::plan::{LabPlan, NodePlan};
use crate::state::LabState;
use crate::up::{self, Lab};
use crate::{doctor, down, frr, netns, overlay, process, routes, sysctls};
use difference::{Changed, Difference, Planned};

/// What a lab has become.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Applied {
    pub lab: String,
    /// Nodes that have come.
    pub come: Vec<String>,
    /// Nodes that have gone.
    pub gone: Vec<String>,
    /// Nodes that stayed and have other links.
    pub changed: Vec<String>,
    /// Seconds until everything was there and every switch had all routes.
    pub took_s: f64,
}

/// Changes a lab to another fabric.
///
/// # Errors
/// [`LabError`]: no such lab; something is broken or away in it; an overlay that cannot grow; or a fabric that would change what
/// stays. Nothing has changed then. An error on the way leaves the lab as it was.
pub fn apply(name: &str, fabric: &Fabric, options: &LabOptions, progress: &dyn Progress) -> Result<Applied, LabError> {
    let _turn = home::lock_lab(name)?;
    let old = Lab::open(name)?;
    let refused = |why: String| LabError::NotApplied { lab: name.to_owned(), why };
    may_change(&old, fabric).map_err(refused)?;
    let new = target(&old, fabric).map_err(refused)?;
    let planned = |lab: &'_ Lab| -> (Fabric, LabPlan) { (lab.scenario.fabric.clone(), lab.plan.clone()) };
    let ((old_fabric, old_plan), (new_fabric, new_plan)) = (planned(&old), planned(&new));
    let before = Planned { fabric: &old_fabric, plan: &old_plan };
    let difference = Difference::of(before, Planned { fabric: &new_fabric, plan: &new_plan }).map_err(refused)?;
    if !difference.is_nothing() {
        doctor::require(&new.scenario, None, options)?;
    }
    let start = Instant::now();
    let mut change = Change { old: &old, new, difference: &difference, options, progress };
    if !difference.is_nothing() {
        change.make()?;
    }
    let names = |plans: &[&NodePlan]| plans.iter().map(|plan| plan.name.clone()).collect();
    Ok(Applied {
        lab: name.to_owned(),
        come: names(&difference.come),
        gone: names(&difference.go),
        changed: difference.changed.iter().map(|changed| changed.plan.name.clone()).collect(),
        took_s: start.elapsed().as_secs_f64(),
    })
}

/// Whether this lab can be changed at all, and to this fabric.
fn may_change(lab: &Lab, fabric: &Fabric) -> Result<(), String> {
    let Scenario { overlay, directory, fabric: old, .. } = &lab.scenario;
    let has_more =
        |fabric: &Fabric| fabric.outside().is_some() || fabric.broadcast().is_some() || fabric.dhcp().is_some();
    match () {
        () if lab.state.owner.is_some() => Err("it belongs to a run".to_owned()),
        () if !(lab.state.faults.is_empty() && lab.state.impaired.is_empty()) => {
            Err("something in it is broken: weft lab repair --all".to_owned())
        }
        () if !lab.state.moved.is_empty() => {
            Err("servers of it are away from home: weft lab move SERVER HOME".to_owned())
        }
        () if !matches!(overlay, Overlay::Routed | Overlay::Vl2) => {
            Err(format!("labs of overlay {} are made anew: weft lab down, weft lab up", overlay.name()))
        }
        () if *directory != DirectoryStore::Embedded => {
            Err("its directory's store is a cluster, which stays as it is".to_owned())
        }
        () if has_more(old) || has_more(fabric) => {
            Err("a fabric with an outside, broadcast or DHCP has settings at every node: weft lab down, weft lab up"
                .to_owned())
        }
        () => Ok(()),
    }
}

/// The lab as it is to be.
fn target(old: &Lab, fabric: &Fabric) -> Result<Lab, String> {
    let addresses = AddressPlan::new(fabric, AddressingOptions::default()).map_err(|error| error.to_string())?;
    let scenario = Scenario { fabric: fabric.clone(), addresses, ..old.scenario.clone() };
    let plan = LabPlan::new(&old.state.lab, &scenario, old.state.seed);
    let made = LabState::new(&old.state.lab, &scenario, old.state.seed, old.state.owner);
    let state = LabState { nodes: made.nodes, fabric: made.fabric, fabric_yaml: made.fabric_yaml, ..old.state.clone() };
    Ok(Lab { state, plan, scenario, facts: Vec::new() })
}

/// One change under way.
struct Change<'a> {
    old: &'a Lab,
    new: Lab,
    difference: &'a Difference<'a>,
    options: &'a LabOptions,
    progress: &'a dyn Progress,
}

impl Change<'_> {
    fn make(&mut self) -> Result<(), LabError> {
        up::names_are_free(self.difference.come.iter().map(|plan| plan.namespace.as_str()))?;
        let nodes = self.new.state.nodes.clone();
        let going =
            self.old.state.nodes.iter().filter(|node| self.difference.go.iter().any(|plan| plan.name == node.name));
        self.new.state.nodes.extend(going.cloned());
        self.new.state.save()?;
        if let Err(error) = self.come() {
            self.undo();
            return Err(error);
        }
        self.progress.phase("apply", "what goes");
        overlay::forget(self.old, &self.ids(&self.difference.go, self.old))?;
        let gone = remove(&mut self.new, &self.difference.go);
        let lost = self.difference.changed.iter().try_for_each(|changed| self.lose(changed));
        self.new.state.nodes = nodes;
        self.new.state.save()?;
        gone.and(lost)?;
        let changed: Vec<&NodePlan> = self.difference.changed.iter().map(|changed| changed.plan).collect();
        overlay::serve_changed(&self.new, &self.ids(&changed, &self.new))?;
        self.progress.phase("apply", "routes");
        routes::settle(&self.new, self.progress)
    }

    fn ids(&self, plans: &[&NodePlan], lab: &Lab) -> Vec<NodeId> {
        plans.iter().filter_map(|plan| lab.scenario.fabric.find(&plan.name)).collect()
    }

    /// Makes everything that comes.
    fn come(&mut self) -> Result<(), LabError> {
        let Difference { come, changed, .. } = self.difference;
        let (count, verb) = (come.len(), if come.len() == 1 { "node comes" } else { "nodes come" });
        self.progress.phase("apply", &format!("{count} {verb}"));
        let names: Vec<String> = come.iter().map(|plan| plan.namespace.clone()).collect();
        netns::create_for(&Owner::Lab(self.new.state.lab.clone()), &names, |index| up::apply_sysctls(come[index]))?;
        for plan in come {
            in_node(plan, Program::Ip, &plan.creates)?;
        }
        for one in changed {
            in_node(one.plan, Program::Ip, &one.creates)?;
        }
        for plan in come {
            check_ports(plan, plan.checked_ports.iter())?;
            in_node(plan, Program::Ip, &plan.configures)?;
            in_node(plan, Program::Tc, &plan.queues)?;
        }
        for one in changed {
            check_ports(one.plan, one.checked_ports.iter().copied())?;
            in_node(one.plan, Program::Ip, &one.configures)?;
            in_node(one.plan, Program::Tc, &one.queues)?;
        }
        self.progress.phase("apply", "routing");
        let (state, lab) = (&mut self.new.state, self.old.state.lab.clone());
        let plans: Vec<NodePlan> = come.iter().map(|plan| (*plan).clone()).collect();
        frr::start(&lab, &plans, self.progress, |process| {
            state.processes.push(process);
            state.save()
        })?;
        for one in changed {
            tell_ospfd(one)?;
        }
        self.progress.phase("apply", "overlay");
        let (come, changed): (Vec<NodeId>, Vec<&NodePlan>) =
            (self.ids(come, &self.new), changed.iter().map(|one| one.plan).collect());
        let changed = self.ids(&changed, &self.new);
        let launcher = Launcher { options: self.options, progress: self.progress };
        overlay::grow(&mut self.new, &launcher, &come, &changed)
    }

    /// Removes what was made, so that the lab is as it was.
    fn undo(&mut self) {
        let told =
            |error: LabError| tracing::error!("lab {}: {error}; take it down: weft lab down", self.old.state.lab);
        remove(&mut self.new, &self.difference.come).unwrap_or_else(told);
        for one in &self.difference.changed {
            for link in &one.creates {
                // It may never have been made, or gone with the node at its other end.
                let _ = in_node(one.plan, Program::Ip, &[format!("link del dev {}", link.end.device)]);
            }
        }
        self.old.state.save().unwrap_or_else(told);
        let stays: Vec<&NodePlan> = self.difference.changed.iter().map(|changed| changed.plan).collect();
        overlay::serve_changed(self.old, &self.ids(&stays, self.old)).unwrap_or_else(told);
    }

    /// Links that go between nodes that stay; others have gone with theirs.
    fn lose(&self, changed: &Changed<'_>) -> Result<(), LabError> {
        let lines: Vec<String> = changed.cut.iter().map(|device| format!("link del dev {device}")).collect();
        in_node(changed.plan, Program::Ip, &lines)
    }
}

fn in_node<L: Display + Sync>(plan: &NodePlan, program: Program, lines: &[L]) -> Result<(), LabError> {
    if lines.is_empty() {
        return Ok(());
    }
    netns::in_namespace(&namespace_path(&plan.namespace), || batch::run(program, &plan.name, lines))?
}

fn check_ports<'a>(plan: &NodePlan, mut ports: impl Iterator<Item = &'a String> + Send) -> Result<(), LabError> {
    let strict = |port: &String| sysctls::write(&format!("net/ipv4/conf/{port}/rp_filter"), "1");
    netns::in_namespace(&namespace_path(&plan.namespace), || ports.try_for_each(strict))?
}

/// Tells a running `ospfd` what it has to know more.
fn tell_ospfd(changed: &Changed<'_>) -> Result<(), LabError> {
    if changed.ospfd.is_empty() {
        return Ok(());
    }
    let mut command = process::command("vtysh");
    command.args(["-N", &frr_path_space(&changed.plan.namespace), "-d", "ospfd", "-c", "configure terminal"]);
    command.args(changed.ospfd.iter().flat_map(|line| ["-c", line]));
    let failed = |reason: String| LabError::Batch {
        node: changed.plan.name.clone(),
        program: "vtysh",
        line: changed.ospfd.join("; "),
        number: 1,
        reason,
    };
    // In the namespace of the node, so that it is found and ended with the lab if this process is killed.
    let namespace = namespace_path(&changed.plan.namespace);
    let output = netns::in_namespace(&namespace, || command.output())?.map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // It ends well whatever a line was. It has no settings of its own for this node.
    let is_refusal = |line: &str| line.starts_with('%') && !line.contains("configuration file");
    let is_refused = said.lines().any(is_refusal);
    if output.status.success() && !is_refused { Ok(()) } else { Err(failed(said.trim().to_owned())) }
}

/// Takes nodes out of a lab, with everything that runs in them.
fn remove(lab: &mut Lab, plans: &[&NodePlan]) -> Result<(), LabError> {
    let namespaces: Vec<String> = plans.iter().map(|plan| plan.namespace.clone()).collect();
    down::remove_nodes(&lab.state.lab, &namespaces)?;
    for plan in plans {
        overlay::remove_pins(&lab.state.lab, &plan.name)?;
    }
    lab.state.processes.retain(|process| plans.iter().all(|plan| plan.name != process.node));
    Ok(())
}
