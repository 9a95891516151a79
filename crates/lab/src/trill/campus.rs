//! A campus for experiments: brought up for one process, measured at its tester ports, broken and mended.

use std::collections::BTreeSet;
use std::path::Path;

use weft_datapath::bed::{BedPrograms, Cut};
use weft_datapath::tester::LinkCounters;
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Overlay, Progress, Scenario, Transport};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Fabric;

use super::held::{Held, interfaces_of};
use super::{port_number, rbridges};
use crate::batch::{self, Program};
use crate::daemons::Launcher;
use crate::error::LabError;
use crate::folder::Folder;
use crate::home::{lab_names, namespace_path, pin_dir};
use crate::netns;
use crate::options::LabOptions;
use crate::overlay::datapath_error;
use crate::process::{self, ProcessId};
use crate::removal::remove_tree;
use crate::up::{Lab, up_owned};

/// What links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// As fast as the kernel passes frames on.
    Bare,
    /// Of the rate, buffer and delay that the fabric says, in virtual time.
    Emulated,
}

/// How something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// All its links go down, and its neighbours see it at once.
    LinkDown,
    /// It forwards nothing and says nothing, and its links stay up.
    Silent,
}

/// A campus to be.
#[derive(Clone, Debug)]
pub struct CampusSpec {
    /// Switches, hosts and links.
    pub fabric: Fabric,
    /// What forwards: RBridges, bridges, or plain switches that are told where stations are ([`Campus::know`]).
    pub overlay: Overlay,
    /// What links are.
    pub links: Links,
    /// Name of the lab; `None`: the fabric's, or that with a number.
    pub name: Option<String>,
}

/// A campus that is up. Dropping it takes it down; [`Campus::close`] does so and reports errors.
#[derive(Debug)]
pub struct Campus {
    lab: Option<Lab>,
    options: LabOptions,
    held: Held,
    /// What keeps silent switches silent.
    cuts: Vec<(NodeId, BedPrograms, Vec<Cut>)>,
}

impl Campus {
    /// Brings it up and waits until it forwards. Daemons are started from `weft_binary`.
    ///
    /// # Errors
    /// Any [`LabError`]; nothing is left behind.
    pub fn build(spec: &CampusSpec, weft_binary: &Path, progress: &dyn Progress) -> Result<Self, LabError> {
        crate::down::sweep_orphans()?;
        let name = spec.name.clone().unwrap_or_else(|| free_name(spec.fabric.name()));
        let options = LabOptions { name: Some(name), self_test: false, ..LabOptions::new(weft_binary) };
        let lab = up_owned(&scenario(spec)?, &options, Some(ProcessId::own()), progress)?;
        let mut campus = Self { lab: Some(lab), options, held: Held::default(), cuts: Vec::new() };
        campus.held = Held::of(campus.lab())?;
        Ok(campus)
    }

    /// The lab that it is.
    pub fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("the lab is there until the campus is closed")
    }

    /// A host's interface as the test centre takes it: `NAMESPACE:INTERFACE`.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`].
    pub fn port(&self, host: &str) -> Result<String, LabError> {
        let id = self.find(host)?;
        let fabric = &self.lab().scenario.fabric;
        let link = fabric.links_of(id).first().expect("every node of a valid fabric has a link");
        let interface = &fabric.link(*link).end_at(id).expect("a link of a node ends there").interface;
        Ok(format!("{}:{interface}", self.lab().plan.node(id).namespace))
    }

    /// A node's namespace, as a name below `/run/netns`.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`].
    pub fn namespace(&self, node: &str) -> Result<&str, LabError> {
        Ok(&self.lab().plan.node(self.find(node)?).namespace)
    }

    /// The interface of a node towards a neighbour; of bridges the one of the lowest VLAN.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`] or [`LabError::NoSuchLink`].
    pub fn interface(&self, node: &str, neighbour: &str) -> Result<String, LabError> {
        let (from, to) = (self.find(node)?, self.find(neighbour)?);
        let fabric = &self.lab().scenario.fabric;
        let towards = fabric.links_of(from).iter().find(|link| fabric.link(**link).end_at(to).is_some());
        let port = towards.and_then(|link| fabric.link(*link).end_at(from));
        let missing = || LabError::NoSuchLink { a: node.to_owned(), b: neighbour.to_owned() };
        port.map(|port| port.interface.clone()).ok_or_else(missing)
    }

    /// Runs `work` in a node's namespace, on a thread of its own.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`], or if the namespace cannot be entered.
    pub fn inside<T: Send>(&self, node: &str, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        netns::in_namespace(&namespace_path(self.namespace(node)?), work)
    }

    /// The neighbours over which an RBridge sends to another, by name, as its data path has them.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`] or [`LabError::Datapath`].
    pub fn next_hops(&self, from: &str, to: &str) -> Result<Vec<String>, LabError> {
        let (from, to) = (self.find(from)?, self.find(to)?);
        let lab = self.lab();
        let fabric = &lab.scenario.fabric;
        let fib = rbridges::fib(lab, from)?.unwrap_or_default();
        let hops = fib.routes.get(&rbridges::nickname(lab, to)).into_iter().flatten();
        let ports: BTreeSet<u8> = hops.map(|hop| hop.port).collect();
        let by_port = |link: &&LinkId| port_number(fabric, from, **link).is_some_and(|number| ports.contains(&number));
        let neighbours = fabric.links_of(from).iter().filter(by_port);
        let named = neighbours.filter_map(|link| fabric.link(*link).far_end(from));
        Ok(named.map(|port| fabric.node(port.node).name.clone()).collect())
    }

    /// What became of the frames that a switch sent to a neighbour; zero where links are bare.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`], [`LabError::NoSuchLink`] or [`LabError::Datapath`].
    pub fn link_counters(&self, switch: &str, neighbour: &str) -> Result<LinkCounters, LabError> {
        let interface = self.interface(switch, neighbour)?;
        self.held.link_counters(self.lab(), self.find(switch)?, &interface)
    }

    /// Tells switches behind which host stations are: plain ones, whose frames go along the spanning tree, and RBridges,
    /// which would learn it otherwise. Bridges learn by themselves.
    ///
    /// # Errors
    /// [`LabError::NoSuchNode`] or [`LabError::Datapath`].
    pub fn know(&self, stations: &[([u8; 6], &str)]) -> Result<(), LabError> {
        let place = |(mac, host): &([u8; 6], &str)| Ok((*mac, self.find(host)?));
        self.held.know(self.lab(), &stations.iter().map(place).collect::<Result<Vec<_>, LabError>>()?)
    }

    /// Makes a switch fail.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn fail(&mut self, switch: &str, failure: Failure) -> Result<(), LabError> {
        let id = self.find(switch)?;
        match (failure, self.overlay()) {
            (Failure::LinkDown, _) => self.set_links(id, "down"),
            (Failure::Silent, Overlay::RBridge { .. }) => self.kill_rbridge(id),
            (Failure::Silent, _) => self.cut_off(id),
        }
    }

    /// Mends a switch that was made to fail. Routes and trees come back by themselves, which takes a while.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn repair(&mut self, switch: &str, failure: Failure, progress: &dyn Progress) -> Result<(), LabError> {
        let id = self.find(switch)?;
        match (failure, self.overlay()) {
            (Failure::LinkDown, _) => self.set_links(id, "up"),
            (Failure::Silent, Overlay::RBridge { .. }) => {
                let launcher = Launcher { options: &self.options, progress };
                let lab = self.lab.as_mut().expect("the lab is there until the campus is closed");
                rbridges::start_some(lab, &launcher, &[id])?;
                self.held.links.attach_again(self.lab(), id)
            }
            (Failure::Silent, _) => {
                self.cuts.retain(|(node, ..)| *node != id);
                Ok(())
            }
        }
    }

    /// Waits until all routes and trees, or the spanning tree, are those of the whole fabric.
    ///
    /// # Errors
    /// [`LabError::NotConverged`] or any other.
    pub fn settle(&self, progress: &dyn Progress) -> Result<(), LabError> {
        super::settle(self.lab(), progress)
    }

    /// Lets stations be forgotten as soon as a change of the tree demands; RBridges forget with the route.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn age_fast(&self) -> Result<(), LabError> {
        super::age_fast(self.lab())
    }

    /// Takes it down.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn close(mut self) -> Result<(), LabError> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), LabError> {
        self.cuts.clear();
        self.held = Held::default();
        self.lab.take().map_or(Ok(()), Lab::take_down)
    }

    fn overlay(&self) -> Overlay {
        self.lab().scenario.overlay
    }

    fn find(&self, node: &str) -> Result<NodeId, LabError> {
        let lab = self.lab();
        let missing = || LabError::NoSuchNode { lab: lab.state.lab.clone(), node: node.to_owned() };
        lab.scenario.fabric.find(node).ok_or_else(missing)
    }

    fn set_links(&self, node: NodeId, state: &str) -> Result<(), LabError> {
        let interfaces = interfaces_of(self.lab(), node, |_| true);
        let lines: Vec<String> = interfaces.iter().map(|port| format!("link set dev {port} {state}")).collect();
        let plan = self.lab().plan.node(node);
        netns::in_namespace(&namespace_path(&plan.namespace), || batch::run(Program::Ip, &plan.name, &lines))?
    }

    /// Daemon and data path go; the interfaces stay up.
    fn kill_rbridge(&self, node: NodeId) -> Result<(), LabError> {
        let lab = self.lab();
        let name = &lab.plan.node(node).name;
        let of_node = |state: &&crate::state::ProcessState| state.node == *name && state.daemon == rbridges::RBRIDGE;
        let daemons: Vec<ProcessId> = lab.state.processes.iter().filter(of_node).map(|state| state.id).collect();
        process::kill_all(&daemons);
        let pins = Folder::open(&pin_dir(&lab.state.lab))?;
        pins.map_or(Ok(false), |pins| remove_tree(&pins, name)).map(drop)
    }

    /// Whatever comes in at a switch is dropped, before a bridge sees it.
    fn cut_off(&mut self, node: NodeId) -> Result<(), LabError> {
        let interfaces = interfaces_of(self.lab(), node, |_| true);
        let plan = self.lab().plan.node(node);
        let cut = || {
            let programs = BedPrograms::load()?;
            let cuts = interfaces.iter().map(|port| programs.cut(port)).collect::<Result<Vec<_>, _>>()?;
            Ok((programs, cuts))
        };
        let done = netns::in_namespace(&namespace_path(&plan.namespace), cut)?;
        let (programs, cuts) = done.map_err(|error| datapath_error(&plan.name, &error))?;
        self.cuts.push((node, programs, cuts));
        Ok(())
    }
}

impl Drop for Campus {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            tracing::error!("a campus could not be removed: {error}; try: weft lab down --all");
        }
    }
}

fn scenario(spec: &CampusSpec) -> Result<Scenario, LabError> {
    let fabric = spec.fabric.clone();
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default())
        .map_err(|error| LabError::BadFabric { fabric: fabric.name().to_owned(), reason: error.to_string() })?;
    Ok(Scenario {
        fabric,
        addresses,
        overlay: spec.overlay,
        directory: DirectoryStore::default(),
        transport: Transport::default(),
        switching: weft_scenario::switching::Switching::default(),
        shaped: spec.links == Links::Emulated,
    })
}

/// A name that no lab has.
fn free_name(base: &str) -> String {
    let taken = lab_names();
    let names = (1u32..).map(|number| if number == 1 { base.to_owned() } else { format!("{base}-{number}") });
    let mut free = names.filter(|name| !taken.contains(name));
    free.next().expect("numbers do not end")
}
