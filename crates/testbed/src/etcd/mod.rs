//! etcd clusters as supervised children, for labs, benchmarks and tests. A deployment runs its own cluster.
//!
//! One thread owns the children: it starts them, restarts those that die, and dies with them. It can be moved into a
//! network namespace first, and the children can be started anywhere by a command of the caller's.

mod node;
mod supervisor;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_node::store::EtcdSettings;

use supervisor::Order;

/// Why a cluster does not start or go on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("etcd cluster: {0}")]
pub struct ClusterError(String);

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdNode {
    /// Address of clients and peers.
    pub ip: Ipv4Addr,
    /// TCP port for clients.
    pub client_port: u16,
    /// TCP port for peers.
    pub peer_port: u16,
    /// Where it keeps its data and, beside it, its log (`DIR.log`).
    pub dir: PathBuf,
}

/// Makes the command that starts etcd, to which the flags are added.
pub type Starter = Box<dyn Fn(usize) -> Command + Send>;
/// Moves the supervising thread, and what it starts, somewhere else.
pub type Mover = Box<dyn FnOnce() -> std::io::Result<()> + Send>;

/// What a cluster is made of.
pub struct EtcdClusterSettings {
    /// The nodes: 1, 3 or 5.
    pub nodes: Vec<EtcdNode>,
    /// Interval of the leader's heartbeats, milliseconds. The fast profile is 50, for one rack.
    pub heartbeat_ms: u32,
    /// Silence after which a node elects a new leader, milliseconds.
    pub election_ms: u32,
    /// Space for data, bytes. More is refused with an alarm.
    pub quota_bytes: u64,
    /// How long the cluster may take to elect its first leader.
    pub start_timeout: Duration,
    /// Starts node N; `None` for `etcd` from the PATH. It must end up as that process (`ip netns exec` does).
    pub starter: Option<Starter>,
    /// Called once by the supervising thread before it starts or asks anything, to enter a network namespace from
    /// which all nodes can be reached.
    pub mover: Option<Mover>,
}

impl EtcdClusterSettings {
    /// Nodes on loopback with free ports, the fast profile, data under `dir`.
    ///
    /// # Errors
    /// [`ClusterError`] without free ports.
    pub fn loopback(count: usize, dir: &Path) -> Result<Self, ClusterError> {
        let nodes = node::on_loopback(count, dir).map_err(|error| cluster_error(format!("no free port: {error}")))?;
        Ok(Self::new(nodes))
    }

    /// These nodes, with the fast profile.
    pub fn new(nodes: Vec<EtcdNode>) -> Self {
        Self {
            nodes,
            heartbeat_ms: 50,
            election_ms: 300,
            quota_bytes: 4 << 30,
            start_timeout: Duration::from_secs(20),
            starter: None,
            mover: None,
        }
    }
}

/// A running cluster. Dropping it kills the nodes; so does the death of this process.
pub struct EtcdCluster {
    endpoints: Vec<String>,
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl EtcdCluster {
    /// Starts the nodes and waits until they have a leader.
    ///
    /// # Errors
    /// [`ClusterError`]: etcd is not installed, a port is taken, or they find no leader in time.
    pub fn start(settings: EtcdClusterSettings) -> Result<Self, ClusterError> {
        if settings.nodes.is_empty() {
            return Err(cluster_error("no nodes; name 1, 3 or 5"));
        }
        let endpoints = settings.nodes.iter().map(EtcdNode::client_url).collect();
        let (orders, inbox) = channel();
        let (ready, started) = channel();
        let thread = std::thread::Builder::new()
            .name("weft-etcd-nodes".to_owned())
            .spawn(move || supervisor::run(settings, &inbox, &ready))
            .map_err(|error| cluster_error(format!("no thread for it: {error}")))?;
        let cluster = Self { endpoints, orders, thread: Some(thread) };
        started.recv().unwrap_or_else(|_| Err(cluster_error("its supervisor ended")))?;
        Ok(cluster)
    }

    /// Client URLs, in the order of the nodes.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Settings for a store on this cluster.
    pub fn settings(&self, prefix: &str) -> EtcdSettings {
        EtcdSettings::plain(self.endpoints.iter().cloned(), prefix)
    }

    /// Which node leads now, if one does.
    pub fn leader(&self) -> Option<usize> {
        self.ask(Order::Leader).flatten()
    }

    /// Kills a node (SIGKILL). It stays down until [`Self::restart`].
    pub fn kill(&self, node: usize) {
        self.ask(|done| Order::Kill(node, done));
    }

    /// Starts a killed node again.
    pub fn restart(&self, node: usize) {
        self.ask(|done| Order::Restart(node, done));
    }

    /// Stops a node in its tracks (SIGSTOP).
    pub fn pause(&self, node: usize) {
        self.ask(|done| Order::Signal(node, rustix::process::Signal::STOP, done));
    }

    /// Lets a paused node go on.
    pub fn resume(&self, node: usize) {
        self.ask(|done| Order::Signal(node, rustix::process::Signal::CONT, done));
    }

    /// Process ids of the nodes; `None` for one that is down.
    pub fn pids(&self) -> Vec<Option<u32>> {
        self.ask(Order::Pids).unwrap_or_default()
    }

    /// Waits until every node that is up says that it is healthy.
    ///
    /// # Errors
    /// [`ClusterError`] when the time is over.
    pub fn wait_healthy(&self, timeout: Duration) -> Result<(), ClusterError> {
        self.ask(|done| Order::WaitHealthy(timeout, done)).unwrap_or_else(|| Err(cluster_error("it has ended")))
    }

    /// Gives an order and waits until it is carried out; `None` if nobody is there any more.
    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Option<T> {
        let (done, outcome) = channel();
        self.orders.send(order(done)).ok()?;
        outcome.recv().ok()
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn cluster_error(why: impl Into<String>) -> ClusterError {
    ClusterError(why.into())
}
