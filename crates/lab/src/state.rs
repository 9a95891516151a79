//! What is on disk about a lab that is up, so that any later command, also after a crash, can use it or remove it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use weft_scenario::engine::{DirectoryStore, Overlay, Scenario};
use weft_scenario::fault::FaultKind;
use weft_scenario::id::NodeId;
use weft_scenario::topology::{Access, Fabric, Role};

use crate::down;
use crate::error::LabError;
use crate::faults::Impaired;
use crate::folder::Folder;
use crate::home::{self, lab_dir, log_dir, make_dir, make_store_dir, socket_dir, write_atomically};
use crate::plan::access;
use crate::process::ProcessId;

/// Version of the file's format.
pub const SCHEMA_VERSION: u32 = 1;

/// A lab as recorded in `/run/weft/labs/<lab>/state.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabState {
    /// Version of this format.
    pub schema_version: u32,
    pub lab: String,
    /// Name of the fabric it was made from.
    pub fabric: String,
    /// The fabric itself, as a file that `weft lab up` reads.
    pub fabric_yaml: String,
    /// How packets travel in it.
    pub overlay: Overlay,
    /// Whether its links are shaped.
    pub shaped: bool,
    /// Seconds since 1970 when it came up.
    pub created_unix_s: u64,
    /// The process that owns a lab of a run: when it is gone, so should the lab. `None` for labs that stay up.
    pub owner: Option<ProcessId>,
    /// Whether the lab came up whole.
    pub ready: bool,
    /// Nodes, in the fabric's order.
    pub nodes: Vec<NodeState>,
    /// Processes that the lab started.
    pub processes: Vec<ProcessState>,
    /// What keeps its directory's mappings, if it has one.
    #[serde(default)]
    pub directory: DirectoryStore,
    /// Decides how switches spread flows over equal paths.
    #[serde(default)]
    pub seed: u64,
    /// What people have broken in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultKind>,
    /// Servers that are not where the fabric has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedServer>,
    /// Links that people have made worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impaired: Vec<Impaired>,
}

/// A server that was taken to another rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MovedServer {
    pub server: String,
    /// The edge switch that it is at.
    pub edge: String,
    /// That switch's interface to it.
    pub port: String,
    /// Its LA there.
    pub la: std::net::Ipv4Addr,
}

/// A node of a lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeState {
    pub name: String,
    pub role: Role,
    pub namespace: String,
    /// Its AA, if it is a server of an overlay.
    pub aa: Option<std::net::Ipv4Addr>,
    /// Its LA, where the underlay is routed and reaches it.
    pub la: Option<std::net::Ipv4Addr>,
    /// Its address in the world outside: a server's public LA, or that of the node outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<std::net::Ipv4Addr>,
    /// Its interfaces, in the order of the fabric's links.
    pub interfaces: Vec<String>,
    /// VLANs and addresses of a host of a campus, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<Access>,
}

/// A process of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessState {
    /// Node it belongs to.
    pub node: String,
    /// What it is: `zebra`, `ospfd`, `agent`, `directory`.
    pub daemon: String,
    #[serde(flatten)]
    pub id: ProcessId,
}

impl LabState {
    /// A lab about to be made.
    pub(crate) fn new(lab: &str, scenario: &Scenario, seed: u64, owner: Option<ProcessId>) -> Self {
        Self {
            directory: scenario.directory,
            seed,
            fabric_yaml: weft_scenario::topology::to_yaml(&scenario.fabric),
            shaped: scenario.shaped,
            owner,
            nodes: node_states(lab, scenario),
            ..Self::bare(lab, scenario.fabric.name(), scenario.overlay, ProcessId::own())
        }
    }

    /// Something of a run that keeps its things where labs do and has no nodes.
    pub(crate) fn bare(name: &str, what: &str, overlay: Overlay, owner: ProcessId) -> Self {
        let created = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            schema_version: SCHEMA_VERSION,
            lab: name.to_owned(),
            fabric: what.to_owned(),
            fabric_yaml: String::new(),
            overlay,
            shaped: false,
            created_unix_s: created.as_secs(),
            owner: Some(owner),
            ready: false,
            nodes: Vec::new(),
            processes: Vec::new(),
            directory: DirectoryStore::default(),
            seed: 0,
            faults: Vec::new(),
            moved: Vec::new(),
            impaired: Vec::new(),
        }
    }

    /// Takes a name with this beginning that no lab has, for [`Self::bare`], makes its directories and writes down whose they are.
    pub(crate) fn claim(beginning: &str, what: &str, overlay: Overlay) -> Result<(String, Self), LabError> {
        let labs = {
            let _lock = home::lock()?;
            Folder::make(Path::new(home::LABS_DIR), 0o700)?
        };
        for number in 1u32.. {
            let name = format!("{beginning}-{}-{number}", std::process::id());
            if labs.make_child(&name, Mode::RWXU)? {
                let state = Self::bare(&name, what, overlay, ProcessId::own());
                return match state.save().and_then(|()| make_folders(&name)) {
                    Ok(()) => Ok((name, state)),
                    Err(error) => down::down(&name).and(Err(error)),
                };
            }
        }
        unreachable!("numbers do not end")
    }

    /// Where the file is.
    pub fn path(lab: &str) -> PathBuf {
        lab_dir(lab).join("state.json")
    }

    /// Reads the state of a lab that is up.
    pub fn load(lab: &str) -> Result<Self, LabError> {
        home::check_lab_name(lab)?;
        home::folders_are_ours()?;
        if Folder::open(&lab_dir(lab))?.is_none() {
            let up = home::lab_names().join(", ");
            let up = if up.is_empty() { "none".to_owned() } else { up };
            return Err(LabError::NoSuchLab { name: lab.to_owned(), up });
        }
        let bad = |reason: String| LabError::BadState { lab: lab.to_owned(), reason };
        let text = fs::read(Self::path(lab)).map_err(|error| bad(error.to_string()))?;
        let state: Self = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if state.schema_version != SCHEMA_VERSION {
            return Err(bad(format!("format {}, this weft knows {SCHEMA_VERSION}", state.schema_version)));
        }
        Ok(state)
    }

    /// Writes the state; a reader sees the old or the new one, never half.
    pub(crate) fn save(&self) -> Result<(), LabError> {
        let text = serde_json::to_vec_pretty(self).expect("a state is plain data");
        write_atomically(&Self::path(&self.lab), &text)
    }

    /// A node by name.
    pub fn node(&self, name: &str) -> Result<&NodeState, LabError> {
        self.nodes.iter().find(|node| node.name == name).ok_or_else(|| self.no_such_node(name))
    }

    /// Says that there is none of this name, and which there are.
    pub(crate) fn no_such_node(&self, name: &str) -> LabError {
        let known: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        LabError::NoSuchNode { lab: self.lab.clone(), node: name.to_owned(), known: known.join(", ") }
    }

    /// All namespaces.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.namespace.clone()).collect()
    }

    /// Notes a process, instead of an earlier one of the same daemon on the same node.
    pub(crate) fn replace_process(&mut self, process: ProcessState) {
        self.processes.retain(|known| (&known.node, &known.daemon) != (&process.node, &process.daemon));
        self.processes.push(process);
    }

    /// Whether the run that made it is gone.
    pub(crate) fn is_orphan(&self) -> bool {
        self.owner.is_some_and(|owner| !owner.is_alive())
    }
}

fn make_folders(name: &str) -> Result<(), LabError> {
    make_dir(&log_dir(name))?;
    make_dir(&socket_dir(name))?;
    make_store_dir(name)
}

fn accesses(scenario: &Scenario, id: weft_scenario::id::NodeId) -> Vec<Access> {
    if !scenario.overlay.takes_frames() || scenario.fabric.node(id).role.is_switch() {
        return Vec::new();
    }
    scenario.fabric.links_of(id).iter().filter_map(|link| access(scenario, *link)).collect()
}

/// Whether the underlay routes to a node by its LA: switches that forward frames have none, nor hosts whose frames a switch takes.
fn has_la(scenario: &Scenario, id: NodeId) -> bool {
    let role = scenario.fabric.node(id).role;
    match scenario.overlay {
        overlay if overlay.forwards_frames() => false,
        overlay if overlay.takes_frames() => role.is_switch(),
        _ => role != Role::Internet,
    }
}

/// The address by which the world outside and a node know each other.
fn public_address(scenario: &Scenario, id: NodeId) -> Option<std::net::Ipv4Addr> {
    let outside = scenario.addresses.outside().filter(|_| !scenario.overlay.takes_frames())?;
    match scenario.fabric.node(id).role {
        Role::Internet => Some(outside.client()),
        _ => outside.public_la(id),
    }
}

fn node_states(lab: &str, scenario: &Scenario) -> Vec<NodeState> {
    let fabric: &Fabric = &scenario.fabric;
    let state = |id| {
        let node = fabric.node(id);
        let ports = fabric.links_of(id).iter().filter_map(|link| fabric.link(*link).end_at(id));
        NodeState {
            name: node.name.clone(),
            role: node.role,
            namespace: home::namespace_name(lab, &node.name),
            aa: scenario
                .addresses
                .aa(id)
                .filter(|_| scenario.overlay != Overlay::Routed && !scenario.overlay.takes_frames()),
            la: has_la(scenario, id).then(|| scenario.addresses.la(id)),
            public: public_address(scenario, id),
            interfaces: ports.map(|port| port.interface.clone()).collect(),
            access: accesses(scenario, id),
        }
    };
    fabric.ids().map(state).collect()
}
