//! etcd clusters as supervised children, for labs, benchmarks and tests. A deployment runs its own cluster.
//!
//! One thread owns the children: it starts them, restarts those that die, and dies with them. It can be moved into a
//! network namespace first, and the children can be started anywhere by a command of the caller's.

#[cfg(feature = "etcd")]
mod cluster;
mod node;
#[cfg(feature = "etcd")]
mod supervisor;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[cfg(feature = "etcd")]
pub use cluster::EtcdCluster;

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

fn cluster_error(why: impl Into<String>) -> ClusterError {
    ClusterError(why.into())
}
