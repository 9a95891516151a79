//! The directory tier of a lab: servers and store in their nodes' namespaces, clients in the first server's.

use std::path::PathBuf;

use weft_scenario::engine::{DirectoryStore, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;
use weft_scenario::workload::DirectoryVictim;
use weft_testbed::load::Access;
use weft_testbed::loss::Loss;
use weft_wire::directory::PORT;

use super::tier::{ServerView, Tier};
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

    fn kill(&mut self, victim: DirectoryVictim, asked: usize) -> Result<String, LabError> {
        let (node, daemon) = match victim {
            DirectoryVictim::Server => (self.nodes().get(asked.wrapping_sub(1)).copied(), DIRECTORY),
            DirectoryVictim::StoreLeader => (overlay::store_leader(self.lab)?, ETCD),
        };
        let process = node.and_then(|node| Some((node, self.process(node, daemon)?)));
        let Some((node, process)) = process else {
            return Err(LabError::DirectoryLoad(format!("there is no {daemon} to kill ({})", victim.name())));
        };
        kill_all(&[process]);
        self.killed.push((node, daemon));
        Ok(format!("{daemon} of {}", self.lab.plan.node(node).name))
    }

    fn mend(&mut self, progress: &dyn Progress) -> Result<Vec<String>, LabError> {
        let mut mended = Vec::new();
        for (node, daemon) in std::mem::take(&mut self.killed) {
            overlay::restart(self.lab, self.options, progress, node, daemon)?;
            mended.push(format!("{daemon} of {}", self.lab.plan.node(node).name));
        }
        Ok(mended)
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
