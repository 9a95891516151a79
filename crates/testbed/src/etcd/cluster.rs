//! A cluster that runs, as its owner sees it.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_node::store::EtcdSettings;

use super::supervisor::{self, Order};
use super::{ClusterError, EtcdClusterSettings, EtcdNode, cluster_error};

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
