//! The directory tier of a lab: servers and store in their nodes' namespaces, clients in the first server's.

use std::path::PathBuf;

use weft_scenario::engine::{DirectoryStore, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;
use weft_scenario::workload::DirectoryVictim;
use weft_testbed::load::Access;
use weft_testbed::loss::Loss;
use weft_wire::directory::PORT;

use super::tier::{ServerView, Tier, store_victims};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::options::LabOptions;
use crate::overlay::{self, DIRECTORY, ETCD};
use crate::process::{ProcessId, kill_all};
use crate::up::Lab;

/// The tier of a lab that is up.
pub(crate) struct LabTier<'a> {
    lab: &'a mut Lab,
    options: &'a LabOptions,
    /// Node and daemon of what was killed.
    killed: Vec<(NodeId, &'static str)>,
    losses: Vec<Loss>,
}

impl<'a> LabTier<'a> {
    pub(crate) fn new(lab: &'a mut Lab, options: &'a LabOptions) -> Self {
        Self { lab, options, killed: Vec::new(), losses: Vec::new() }
    }

    fn nodes(&self) -> Vec<NodeId> {
        self.lab.scenario.fabric.with_role(Role::Directory).collect()
    }

    fn client(&self) -> NodeId {
        self.lab.scenario.fabric.servers().next().expect("a workload was checked against a fabric with servers")
    }

    fn store_victims(&self, victim: DirectoryVictim) -> Result<Vec<NodeId>, LabError> {
        let nodes = overlay::store_nodes(self.lab);
        let leader = overlay::store_leader(self.lab)?;
        let leader = nodes.iter().position(|node| Some(*node) == leader);
        Ok(store_victims(victim, nodes.len(), leader).into_iter().map(|place| nodes[place]).collect())
    }

    fn name_of(&self, node: NodeId, daemon: &str) -> String {
        format!("{daemon} of {}", self.lab.plan.node(node).name)
    }

    fn process(&self, node: NodeId, daemon: &str) -> Option<ProcessId> {
        let name = &self.lab.plan.node(node).name;
        let mut processes = self.lab.state.processes.iter();
        processes.rfind(|process| process.daemon == daemon && process.node == *name).map(|process| process.id)
    }
}

impl Tier for LabTier<'_> {
    fn servers(&self) -> Vec<ServerView> {
        let view = |node: NodeId| ServerView {
            name: self.lab.plan.node(node).name.clone(),
            namespace: Some(namespace_path(&self.lab.plan.node(node).namespace)),
            lookups: overlay::lookups_at(self.lab, node),
            admin: overlay::admin_socket(&self.lab.state.lab, &self.lab.plan.node(node).name),
            sessions: overlay::sessions_at(self.lab, node),
            pid: self.process(node, DIRECTORY).map_or(0, |process| process.pid),
        };
        self.nodes().into_iter().map(view).collect()
    }

    fn store_pids(&self) -> Vec<u32> {
        self.nodes().into_iter().filter_map(|node| Some(self.process(node, ETCD)?.pid)).collect()
    }

    fn is_shared(&self) -> bool {
        self.lab.scenario.directory != DirectoryStore::Embedded || self.nodes().len() == 1
    }

    fn access(&self) -> Access {
        overlay::access_of(self.lab, self.client())
    }

    fn tor_la(&self) -> std::net::Ipv4Addr {
        let edge = self.lab.scenario.fabric.edge_of(self.client()).expect("every server hangs below a switch").0;
        self.lab.scenario.addresses.la(edge)
    }

    fn client_namespace(&self) -> Option<PathBuf> {
        Some(namespace_path(&self.lab.plan.node(self.client()).namespace))
    }

    fn kill(&mut self, victim: DirectoryVictim, asked: usize) -> Result<Vec<String>, LabError> {
        let (nodes, daemon): (Vec<NodeId>, &'static str) = match victim {
            DirectoryVictim::Server => {
                (self.nodes().into_iter().skip(asked.wrapping_sub(1)).take(1).collect(), DIRECTORY)
            }
            _ => (self.store_victims(victim)?, ETCD),
        };
        let processes: Vec<ProcessId> = nodes.iter().filter_map(|node| self.process(*node, daemon)).collect();
        if processes.is_empty() || processes.len() < nodes.len() {
            return Err(LabError::DirectoryLoad(format!("there is no {daemon} to kill ({})", victim.name())));
        }
        kill_all(&processes);
        self.killed.extend(nodes.iter().map(|node| (*node, daemon)));
        Ok(nodes.into_iter().map(|node| self.name_of(node, daemon)).collect())
    }

    fn mend(&mut self, progress: &dyn Progress) -> Result<Vec<String>, LabError> {
        let killed = std::mem::take(&mut self.killed);
        for one in [ETCD, DIRECTORY] {
            let nodes: Vec<NodeId> =
                killed.iter().filter(|(_, daemon)| *daemon == one).map(|(node, _)| *node).collect();
            if !nodes.is_empty() {
                overlay::restart(self.lab, self.options, progress, &nodes, one)?;
            }
        }
        Ok(killed.into_iter().map(|(node, daemon)| self.name_of(node, daemon)).collect())
    }

    fn set_loss(&mut self, percent: u32) -> Result<(), LabError> {
        self.losses.clear();
        if percent == 0 {
            return Ok(());
        }
        for node in self.nodes() {
            let fabric = &self.lab.scenario.fabric;
            let link = fabric.edge_of(node).expect("every directory server hangs below a switch").1;
            let port = fabric.link(link).end_at(node).expect("the link ends there");
            self.losses.push(self.lab.inside(node, || Loss::attach(&port.interface, PORT, percent))?);
        }
        Ok(())
    }
}
