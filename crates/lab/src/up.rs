//! Brings a lab up: namespaces, links, addresses, queues, routing, overlay, in this order, and undoes all on failure.

use std::fmt::Display;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use weft_scenario::engine::{DirectoryStore, Overlay, Progress, Scenario, TunnelEnd};
use weft_scenario::id::NodeId;

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::folder::Folder;
use crate::home::{
    LABS_DIR, check_lab_name, frr_dir, lab_names, lock, log_dir, make_dir, namespace_path, node_pin_dir, socket_dir,
};
use crate::netns;
use crate::options::LabOptions;
use crate::owner::Owner;
use crate::ping::{Echo, wait_for_answer};
use crate::plan::{LabPlan, NodePlan, access, relays_dhcp, routes_multicast};
use crate::process::{ProcessId, log_tail};
use crate::removal::remove_tree;
use crate::state::{LabState, ProcessState};
use crate::tester::usage::KernelMemory;
use crate::{dhcp, doctor, down, frr, multicast, overlay, routes, selftest, sysctls, trill};

/// How many batches run at once: more do not help, the kernel has one lock for links.
const BATCH_THREADS: usize = 2;
const FIRST_PING_TIMEOUT: Duration = Duration::from_secs(30);

/// A lab that is up. Dropping it leaves the lab up; see [`Lab::take_down`] and [`crate::LabEngine`].
#[derive(Debug)]
pub struct Lab {
    /// What is on disk about it.
    pub state: LabState,
    /// How it was configured.
    pub plan: LabPlan,
    /// What it was made from.
    pub scenario: Scenario,
    /// Measured while it came up: `lab.up_s`, `link_selftest.*`.
    pub facts: Vec<(String, f64)>,
}

impl Lab {
    /// Takes the lab down.
    pub fn take_down(self) -> Result<(), LabError> {
        down::down(&self.state.lab).map(drop)
    }
}

/// Brings up a lab that stays until [`down::down`]. Nothing is left behind if it fails.
pub fn up(scenario: &Scenario, options: &LabOptions, progress: &dyn Progress) -> Result<Lab, LabError> {
    up_owned(scenario, options, None, progress)
}

/// The fact that says what the kernel's memory grew by while the lab was made.
pub(crate) const LAB_MEMORY: &str = "lab.kernel_memory_bytes";

/// Brings up a lab that belongs to a process: when that is gone, the next run removes it.
pub(crate) fn up_owned(
    scenario: &Scenario,
    options: &LabOptions,
    owner: Option<ProcessId>,
    progress: &dyn Progress,
) -> Result<Lab, LabError> {
    let (start, memory) = (Instant::now(), KernelMemory::read());
    let name = options.name.clone().unwrap_or_else(|| scenario.fabric.name().to_owned());
    check_lab_name(&name)?;
    not_in_a_node()?;
    doctor::require(scenario, None, options)?;
    let state = claim(&name, scenario, options.seed, owner)?;
    let guard = TakeDownOnError { lab: Some(name.clone()) };
    let plan = LabPlan::new(&name, scenario, options.seed);
    let mut lab = Lab { state, plan, scenario: scenario.clone(), facts: Vec::new() };
    let mut builder = Builder { lab: &mut lab, options, progress, phase_start: Instant::now() };
    builder.build()?;
    lab.state.ready = true;
    lab.state.save()?;
    guard.disarm();
    lab.facts.push(("lab.up_s".into(), start.elapsed().as_secs_f64()));
    lab.facts.push(("lab.nodes".into(), scenario.fabric.nodes().len() as f64));
    if let (Ok(before), Ok(after)) = (memory, KernelMemory::read()) {
        lab.facts.push((LAB_MEMORY.into(), after.grown_since(&before) as f64));
    }
    Ok(lab)
}

/// In a node's shell the machine's mounts and settings are not to be had: a lab made there would be half of one.
fn not_in_a_node() -> Result<(), LabError> {
    match Owner::of_namespace() {
        Ok(Some(Owner::Lab(lab))) => Err(LabError::not_fit(
            format!("this is in a node of lab `{lab}`, where no lab can be made"),
            "leave its shell first",
        )),
        _ => Ok(()),
    }
}

/// Takes the name: whoever creates the directory has it. The state is on disk before anything else is made.
fn claim(name: &str, scenario: &Scenario, seed: u64, owner: Option<ProcessId>) -> Result<LabState, LabError> {
    let _lock = lock()?;
    let labs = Folder::make(Path::new(LABS_DIR), 0o700)?;
    if !labs.make_child(name, Mode::RWXU)? {
        return Err(LabError::AlreadyUp(name.to_owned()));
    }
    let state = LabState::new(name, scenario, seed, owner);
    if let Err(error) = prepare(&state, scenario) {
        // Only this lab's own directory is there so far, and the settings if this is the only lab.
        let _ = remove_tree(&labs, name);
        if lab_names().is_empty() {
            let _ = sysctls::restore_machine();
        }
        return Err(error);
    }
    Ok(state)
}

fn prepare(state: &LabState, scenario: &Scenario) -> Result<(), LabError> {
    names_are_free(state.namespaces().iter().map(String::as_str))?;
    state.save()?;
    sysctls::adjust_machine(scenario.fabric.servers().count())
}

/// What is there already is somebody else's: it must not be recorded, or an empty file or folder would be removed as ours.
pub(crate) fn names_are_free<'a>(namespaces: impl Iterator<Item = &'a str>) -> Result<(), LabError> {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    for namespace in namespaces {
        if is_there(&namespace_path(namespace)) {
            return Err(LabError::NamespaceExists(namespace.to_owned()));
        }
        if is_there(&frr_dir(namespace)) {
            return Err(frr::run_dir_exists(namespace));
        }
    }
    Ok(())
}

/// Takes a half-made lab down when building it fails.
struct TakeDownOnError {
    lab: Option<String>,
}

impl TakeDownOnError {
    fn disarm(mut self) {
        self.lab = None;
    }
}

impl Drop for TakeDownOnError {
    fn drop(&mut self) {
        if let Some(lab) = self.lab.take()
            && let Err(error) = down::down(&lab)
        {
            tracing::error!("lab {lab} could not be removed: {error}; try: weft lab down --all");
        }
    }
}

/// One build; each method is one phase.
struct Builder<'a> {
    lab: &'a mut Lab,
    options: &'a LabOptions,
    progress: &'a dyn Progress,
    phase_start: Instant,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), LabError> {
        self.tell_of_delays();
        let nodes = self.lab.plan.nodes.len();
        self.phase("namespaces", &format!("{nodes} nodes"))?;
        self.create_namespaces()?;
        self.phase("links", &format!("{} links", self.lab.scenario.fabric.links().len()))?;
        self.run_batches(Program::Ip, |plan| &plan.creates)?;
        self.run_batches(Program::Ip, |plan| &plan.rules)?;
        self.check_sources()?;
        self.phase("addresses", "")?;
        self.run_batches(Program::Ip, |plan| &plan.configures)?;
        self.run_batches(Program::Bridge, |plan| &plan.forwards)?;
        self.phase("queues", "")?;
        self.run_batches(Program::Tc, |plan| &plan.queues)?;
        let scenario = &self.lab.scenario;
        let in_driver = |overlay: &Overlay| overlay.tunnels_at_tors() && overlay.is_in_driver();
        if scenario.overlay.forwards_frames() || scenario.overlays().iter().any(in_driver) {
            trill::prepare_stations(self.lab)?;
        }
        if self.lab.scenario.overlay.forwards_frames() {
            self.start_campus()?;
        } else {
            self.start_routed()?;
        }
        self.phase("first ping", "")?;
        self.first_ping()?;
        self.end_phase();
        Ok(())
    }

    /// Switches that forward frames.
    fn start_campus(&mut self) -> Result<(), LabError> {
        if self.lab.scenario.shaped && self.lab.state.owner.is_none() {
            self.progress
                .note("links are not shaped: frames go past queues; measurements emulate rates in virtual time");
        }
        let (name, detail) = match self.lab.scenario.overlay {
            Overlay::RBridge { .. } => ("rbridges", "adjacencies, routes, trees"),
            Overlay::Bridge { .. } => ("bridges", "spanning tree"),
            _ => ("switches", "which are told where stations are"),
        };
        self.phase(name, detail)?;
        trill::start(self.lab, self.options, self.progress)
    }

    /// Switches that route, and what is put on top.
    fn start_routed(&mut self) -> Result<(), LabError> {
        self.phase("routing", "OSPF")?;
        self.start_routing()?;
        // OSPF finds its routes meanwhile; its class of the queue is not touched.
        if self.lab.scenario.shaped && self.options.self_test {
            self.phase("link self-test", "one link of each class, both ways")?;
            let facts = selftest::run(self.lab, self.progress)?;
            self.lab.facts.extend(facts);
        }
        // A store's nodes in several racks need routes before they find each other.
        let routes_first = self.lab.scenario.directory != DirectoryStore::Embedded;
        if routes_first {
            self.converge()?;
        }
        match self.lab.scenario.overlay {
            Overlay::Vl2 => self.phase("overlay", "agents and directory")?,
            Overlay::Vtep { at: TunnelEnd::Server, .. } => self.phase("overlay", "a VTEP on every server")?,
            Overlay::Vtep { .. } => self.phase("overlay", "a VTEP on every edge switch")?,
            _ => {}
        }
        overlay::start(self.lab, self.options, self.progress)?;
        if relays_dhcp(&self.lab.scenario) {
            self.phase("dhcp", "a server, and a relay on every ToR")?;
            dhcp::start(self.lab, self.progress)?;
        }
        if !routes_first {
            self.converge()?;
        }
        if routes_multicast(&self.lab.scenario) {
            self.phase("multicast", "trees of the services")?;
            multicast::wait_grown(self.lab, self.progress)?;
        }
        Ok(())
    }

    fn converge(&mut self) -> Result<(), LabError> {
        self.phase("convergence", "OSPF")?;
        routes::settle(self.lab, self.progress)
    }

    /// Longer delays were refused before.
    fn tell_of_delays(&mut self) {
        let links = self.lab.scenario.fabric.links();
        if let Some(longest) = links.iter().map(|link| link.spec.delay).max().filter(|delay| delay.0 > 0) {
            self.progress.note(&format!("a lab emulates no propagation delay; up to {longest} per link is left out"));
            self.lab.facts.push(("lab.delay_left_out_ns".into(), longest.0 as f64));
        }
    }

    fn phase(&mut self, name: &'static str, detail: &str) -> Result<(), LabError> {
        self.end_phase();
        self.lab.facts.push((format!("lab.phase.{}_s", name.replace([' ', '-'], "_")), 0.0));
        self.phase_start = Instant::now();
        self.progress.phase(name, detail);
        if self.progress.interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// Writes how long the phase took into its fact.
    fn end_phase(&mut self) {
        let running = self.lab.facts.iter_mut().rev().find(|(name, _)| name.starts_with("lab.phase."));
        if let Some((_, seconds)) = running {
            *seconds = self.phase_start.elapsed().as_secs_f64();
        }
    }

    fn create_namespaces(&mut self) -> Result<(), LabError> {
        let lab = &self.lab.state.lab;
        for directory in [log_dir(lab), socket_dir(lab)] {
            make_dir(&directory)?;
        }
        let plans = &self.lab.plan.nodes;
        let owner = Owner::Lab(lab.clone());
        netns::create_for(&owner, &self.lab.state.namespaces(), |index| apply_sysctls(&plans[index]))
    }

    /// Has the kernel look at the sources of what comes in by ports to servers, where the plan says so.
    fn check_sources(&self) -> Result<(), LabError> {
        let plans: Vec<&NodePlan> = self.lab.plan.nodes.iter().filter(|plan| !plan.checked_ports.is_empty()).collect();
        netns::visit_all(
            &plans,
            BATCH_THREADS,
            |plan| namespace_path(&plan.namespace),
            |plan| {
                let strict = |port: &String| sysctls::write(&format!("net/ipv4/conf/{port}/rp_filter"), "1");
                plan.checked_ports.iter().try_for_each(strict)
            },
        )
    }

    fn run_batches<L: Display>(&self, program: Program, lines: fn(&NodePlan) -> &Vec<L>) -> Result<(), LabError> {
        if self.progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        let plans: Vec<&NodePlan> = self.lab.plan.nodes.iter().filter(|plan| !lines(plan).is_empty()).collect();
        netns::visit_all(
            &plans,
            BATCH_THREADS,
            |plan| namespace_path(&plan.namespace),
            |plan| batch::run(program, &plan.name, lines(plan)),
        )
    }

    fn start_routing(&mut self) -> Result<(), LabError> {
        let state = &mut self.lab.state;
        let lab = state.lab.clone();
        frr::start(&lab, &self.lab.plan.nodes, self.progress, |process: ProcessState| {
            state.processes.push(process);
            state.save()
        })
    }

    /// The first server reaches the last one: the proof that the lab carries packets. Plain switches are told later where
    /// anybody is.
    fn first_ping(&mut self) -> Result<(), LabError> {
        if let Overlay::Layer2 { .. } = self.lab.scenario.overlay {
            return Ok(());
        }
        let servers = self.lab.servers_in_reach();
        let (Some((from, source)), Some((to, destination))) = (servers.first(), servers.last()) else { return Ok(()) };
        if source == destination {
            return Ok(());
        }
        let namespace = namespace_path(&self.lab.plan.node(*from).namespace);
        let echo = Echo::new(*source, *destination);
        let answered = wait_for_answer(&namespace, echo, FIRST_PING_TIMEOUT, || self.progress.interrupted())?;
        if answered.is_none() {
            let from = &self.lab.plan.node(*from).name;
            let daemon = self.lab.daemon_before(from);
            return Err(LabError::NoFirstPing {
                from: from.clone(),
                to: self.lab.plan.node(*to).name.clone(),
                waited_s: FIRST_PING_TIMEOUT.as_secs(),
                log: log_tail(&log_dir(&self.lab.state.lab).join(format!("{daemon}.log"))),
            });
        }
        Ok(())
    }
}

pub(crate) fn apply_sysctls(plan: &NodePlan) -> Result<(), LabError> {
    for setting in &plan.sysctls {
        match sysctls::write(setting.name, &setting.value) {
            Err(_) if setting.optional && sysctls::read(setting.name).is_none() => {}
            result => result?,
        }
    }
    Ok(())
}

impl Lab {
    /// Servers with the addresses they talk by: AAs in an overlay, LAs without one, those of their VLANs in a campus.
    pub fn server_addresses(&self) -> Vec<(NodeId, Ipv4Addr)> {
        let Scenario { fabric, addresses, overlay, .. } = &self.scenario;
        let address = |server| match overlay {
            Overlay::Routed => Some(addresses.la(server)),
            _ if overlay.takes_frames() => Some(access(&self.scenario, fabric.edge_of(server)?.1)?.address.address),
            _ => addresses.aa(server),
        };
        fabric.servers().filter_map(|server| Some((server, address(server)?))).collect()
    }

    /// Servers with the public LAs by which they are reached from outside, in the order of these, and last the node outside.
    pub(crate) fn outside_addresses(&self) -> Vec<(NodeId, Ipv4Addr)> {
        let Some(outside) = self.scenario.fabric.outside() else { return Vec::new() };
        let Some(addresses) = self.scenario.addresses.outside() else { return Vec::new() };
        let public = outside.servers.iter().filter_map(|server| Some((*server, addresses.public_la(*server)?)));
        public.chain([(outside.node, addresses.client())]).collect()
    }

    /// The servers that the first one reaches: in a campus without gateways those of its VLAN, in a VL2 network those of its
    /// service and of the common one.
    pub(crate) fn servers_in_reach(&self) -> Vec<(NodeId, Ipv4Addr)> {
        let mut servers = self.server_addresses();
        let fabric = &self.scenario.fabric;
        let vlan_of = |server| Some(access(&self.scenario, fabric.edge_of(server)?.1)?.vlan);
        let first = servers.first().and_then(|(server, _)| vlan_of(*server));
        let routed = |vlan: Option<u16>| vlan.is_some_and(|vlan| fabric.campus().gateway_of(fabric, vlan).is_some());
        if self.scenario.overlay.takes_frames() && fabric.is_campus() {
            servers.retain(|(server, _)| vlan_of(*server) == first || (routed(first) && routed(vlan_of(*server))));
        }
        if let (Overlay::Vl2, Some((first, _))) = (self.scenario.overlay, servers.first()) {
            let own = fabric.service_of(*first);
            servers.retain(|(server, _)| own == 0 || [0, own].contains(&fabric.service_of(*server)));
        }
        servers
    }

    /// The daemon that should have carried a server's packets: `NODE.DAEMON`, as logs are called.
    fn daemon_before(&self, server: &str) -> String {
        let edge = self.scenario.fabric.find(server).and_then(|server| self.scenario.fabric.edge_of(server));
        let kind = edge.map_or(self.scenario.overlay, |(edge, _)| self.scenario.forwarding(edge));
        match (kind, edge) {
            (Overlay::RBridge { .. }, Some((edge, _))) => format!("{}.rbridge", self.plan.node(edge).name),
            (Overlay::Vtep { at: TunnelEnd::Tor, .. }, Some((edge, _))) => {
                format!("{}.vtep", self.plan.node(edge).name)
            }
            (Overlay::Vtep { .. }, _) => format!("{server}.vtep"),
            _ => format!("{server}.agent"),
        }
    }

    /// Directory of the lab's pins of one node.
    pub fn pins(&self, node: &str) -> std::path::PathBuf {
        node_pin_dir(&self.state.lab, node)
    }
}
