//! Real kernel TCP between the servers of a lab: one process in each server's namespace, measured from outside.
//!
//! The parent ([`run`]) writes what is to be sent into shared memory ([`table`]), starts one worker per server
//! ([`children`], [`worker`]), and then only samples: link counters, cores, TCP state, faults at their times.
//! A run is complete or an error; workers never outlive it.

mod children;
mod cost;
mod counters;
mod faults;
mod namespace;
mod others;
mod plan;
mod ports;
mod probe;
mod qdisc;
mod run;
mod sampler;
mod table;
mod waits;
mod worker;

#[cfg(test)]
mod star;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_scenario::engine::CongestionControl;
use weft_scenario::fault::Fault;
use weft_scenario::workload::WorkloadError;

use crate::state::ProcessState;
pub(crate) use faults::FaultSchedule;
pub(crate) use namespace::visit;
pub(crate) use ports::PortWatch;
pub(crate) use probe::CS6;
pub(crate) use qdisc::QdiscReader;
pub use run::run;
pub use worker::worker_main;

/// A server that sends and receives.
#[derive(Clone, Debug)]
pub struct TrafficHost {
    /// Its name in the fabric, for messages.
    pub name: String,
    /// Its network namespace, for instance `/run/netns/weft-lab-s1`.
    pub namespace: PathBuf,
    /// The address that the others connect to and that it connects from: an AA under VL2, an LA without overlay.
    pub address: Ipv4Addr,
}

/// One direction of one link whose counters are recorded.
#[derive(Clone, Debug)]
pub struct WatchedPort {
    /// Network namespace of the sending node.
    pub namespace: PathBuf,
    /// The sending node.
    pub node: String,
    /// The sending interface.
    pub interface: String,
    /// The node at the far end.
    pub peer: String,
    /// Class of the link, see [`weft_scenario::topology::Fabric::link_class`].
    pub class: String,
}

/// Where traffic runs and what is watched meanwhile.
#[derive(Clone, Debug)]
pub struct TrafficSetup {
    /// Servers in the order of their numbers.
    pub hosts: Vec<TrafficHost>,
    /// Number of the host that every probing flow begins or ends at; `None`: they are between any two.
    pub probed: Option<usize>,
    /// Links to record.
    pub watched: Vec<WatchedPort>,
    /// Daemons of the lab, whose CPU a replay shows.
    pub daemons: Vec<ProcessState>,
    /// Largest number of segments that a server's interface takes as one buffer; 0: not set.
    pub segments_per_skb: u32,
    /// What every socket must use; a run on a namespace with another default is refused.
    pub congestion_control: CongestionControl,
    /// Program that calls [`worker_main`] with the two arguments that follow, for instance `weft internal traffic-worker`.
    pub worker_command: Vec<OsString>,
}

/// Breaks and mends things in the lab.
pub trait FaultActuator {
    /// Makes `fault` happen.
    fn apply(&mut self, fault: &Fault) -> Result<(), String>;
    /// Undoes it.
    fn repair(&mut self, fault: &Fault) -> Result<(), String>;
}

/// Why a run of traffic yielded nothing.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The run asks for something that cannot be done.
    #[error("traffic: {0}")]
    Invalid(String),
    /// The workload makes no sense for these servers.
    #[error("traffic: {0}")]
    Workload(#[from] WorkloadError),
    /// A system call or a file that the run needs failed.
    #[error("traffic: {what}: {source}")]
    System {
        what: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A server's worker ended before the run did.
    #[error("traffic of server {host} failed: {why}")]
    Worker {
        /// Name of the server.
        host: String,
        /// The worker's own last line, or how it died.
        why: String,
    },
    /// A fault could not be made or undone.
    #[error("fault at {subject}: {why}")]
    Fault {
        /// What should have failed.
        subject: String,
        /// Why it did not.
        why: String,
    },
    /// The user asked to stop.
    #[error("traffic was interrupted")]
    Interrupted,
}

impl TrafficError {
    /// For `map_err` on system calls and files.
    fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System { what, source: source.into() }
    }
}
