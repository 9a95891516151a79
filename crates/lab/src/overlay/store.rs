//! The store that a lab's directory servers share: an etcd node beside each of them.

use std::time::Duration;

use rustix::thread::CapabilitySet;
use weft_node::store::EtcdSettings;
use weft_scenario::engine::{DirectoryStore, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;
use weft_testbed::etcd::EtcdNode;

use super::ETCD;
use crate::daemons::{log_file, note, starting};
use crate::directory::etcd;
use crate::error::LabError;
use crate::home::{make_store_dir, namespace_path, store_dir};
use crate::netns;
use crate::process::Daemon;
use crate::rights::Rights;
use crate::up::Lab;
use crate::wait::Wait;

/// etcd's usual ports.
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;
/// How long the nodes may take to elect their first leader, or one of them to come back.
const READY_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The nodes with an etcd node; none where each directory server has a store of its own.
pub(crate) fn nodes(lab: &Lab) -> Vec<NodeId> {
    match lab.scenario.directory {
        DirectoryStore::Embedded => Vec::new(),
        store => lab.scenario.fabric.with_role(Role::Directory).take(store.servers()).collect(),
    }
}

/// The lab's cluster.
fn members(lab: &Lab) -> Vec<EtcdNode> {
    let node = |node: NodeId| EtcdNode {
        ip: lab.scenario.addresses.la(node),
        client_port: CLIENT_PORT,
        peer_port: PEER_PORT,
        dir: store_dir(&lab.state.lab).join(format!("{}.etcd", lab.plan.node(node).name)),
    };
    nodes(lab).into_iter().map(node).collect()
}

/// What the directory server on a node is told: its own etcd node first.
pub(super) fn settings_for(lab: &Lab, server: NodeId) -> Option<EtcdSettings> {
    let mut own_first = nodes(lab);
    own_first.sort_by_key(|node| (*node != server, *node));
    let url = |node: NodeId| format!("http://{}:{CLIENT_PORT}", lab.scenario.addresses.la(node));
    let endpoints: Vec<String> = own_first.into_iter().map(url).collect();
    (!endpoints.is_empty()).then(|| EtcdSettings::plain(endpoints, &format!("weft/{}/", lab.state.lab)))
}

/// Starts all nodes and waits until each knows a leader.
pub(super) fn start(lab: &mut Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let nodes = nodes(lab);
    if nodes.is_empty() {
        return Ok(());
    }
    make_store_dir(&lab.state.lab)?;
    restart(lab, &nodes, progress)
}

/// Starts nodes that were killed and waits until they take part again.
pub(super) fn restart(lab: &mut Lab, nodes: &[NodeId], progress: &dyn Progress) -> Result<(), LabError> {
    for node in nodes {
        launch(lab, *node)?;
    }
    nodes.iter().try_for_each(|node| wait_ready(lab, *node, progress))
}

/// The node whose etcd leads now, if one does.
pub(crate) fn store_leader(lab: &Lab) -> Result<Option<NodeId>, LabError> {
    for (node, member) in nodes(lab).into_iter().zip(members(lab)) {
        if status(lab, node, &member)?.is_some_and(|status| status.leads) {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

fn launch(lab: &mut Lab, node: NodeId) -> Result<(), LabError> {
    let members = members(lab);
    let index = nodes(lab).iter().position(|one| *one == node).expect("only nodes with etcd are started");
    let plan = lab.plan.node(node);
    let (namespace, log) = (namespace_path(&plan.namespace), log_file(lab, ETCD, node));
    let daemon = Daemon {
        namespace: Some(&namespace),
        log: &log,
        record: None,
        nice: 0,
        rights: Some(Rights::of(&lab.state.lab, CapabilitySet::empty())),
    };
    let id = etcd::start(&members, index, &daemon)?;
    note(lab, ETCD, node, id)
}

fn wait_ready(lab: &Lab, node: NodeId, progress: &dyn Progress) -> Result<(), LabError> {
    let members = members(lab);
    let index = nodes(lab).iter().position(|one| *one == node).expect("only nodes with etcd are started");
    let wait = Wait::new(progress, READY_MAX, POLL_INTERVAL);
    starting(lab, ETCD, node).wait(&wait, "found no leader in 20 s", || {
        Ok(status(lab, node, &members[index])?.is_some_and(|status| status.is_healthy))
    })
}

fn status(lab: &Lab, node: NodeId, member: &EtcdNode) -> Result<Option<etcd::NodeStatus>, LabError> {
    netns::in_namespace(&namespace_path(&lab.plan.node(node).namespace), || etcd::status(member))
}
