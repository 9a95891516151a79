//! Load for directory servers: look-ups as agents send them and updates of many clients, with their latencies.
//!
//! * [`LookupLoad`] says what is asked, how and of whom; [`LookupLoad::run`] asks and returns a [`LookupReport`]
//! * closed loop ([`Pace::Window`]): so many outstanding at any time, for the highest rate
//! * open loop ([`Pace::Rate`]): so many per second whatever the answers do; a latency counts from the moment at which
//!   the look-up was due, so a stall is not hidden by the questions that it kept back, and what could not be begun before
//!   its time was over is counted. What is due comes in bursts, evenly spaced or at random ([`Arrivals`])
//! * servers are chosen and questions repeated as an agent does ([`weft_control::agent::Servers`],
//!   [`weft_control::agent::Repeats`]); what has come is read before anything is repeated
//! * bursts ([`LookupLoad::burst`]): datagrams that are due together leave as one message, as a busy agent's do
//! * [`UpdateLoad`]: updates over sessions, repeated through another server when one is lost
//!
//! One load of look-ups is one thread with its own sockets. It trusts no answer whose tag does not verify.

pub mod agents;
mod arrivals;
mod asker;
mod flow;
mod report;
mod requests;
mod updates;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use weft_node::NodeError;
use weft_node::key;
use weft_node::stop::Stop;
use weft_wire::directory::{ENTRIES_MAX, Key};

use crate::cpu;

pub use arrivals::Arrivals;
pub use report::{LookupReport, TICK_NS, Tick};
pub use updates::{UpdateLoad, UpdateReport};

/// How fast a load asks, in datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many look-ups are outstanding at any time.
    Window(usize),
    /// So many per second whatever the answers do.
    Rate(f64),
}

/// As whom a load asks.
#[derive(Clone, Debug)]
pub struct Access {
    /// The key of the tags.
    pub key: Key,
    pub key_id: u32,
    /// The service that asks.
    pub service: u32,
}

impl Access {
    /// With the key of this file; `None`: with the one that everybody has in open mode.
    ///
    /// # Errors
    /// [`NodeError::KeyFile`].
    pub fn from_file(path: Option<&Path>, key_id: u32, service: u32) -> Result<Self, NodeError> {
        Ok(Self { key: key::read_or_open(path, key::Derived { la: None, service })?, key_id, service })
    }
}

/// What is asked, how and of whom. One datagram to each of `fanout` servers is one look-up of `questions` AAs.
#[derive(Clone, Debug)]
pub struct LookupLoad {
    /// The directory servers.
    pub servers: Vec<SocketAddrV4>,
    /// Address that the questions come from; `0.0.0.0`: the one that the kernel takes.
    pub source: Ipv4Addr,
    /// Servers asked at a time, at most 8; the first valid answer counts (VL2 4.3.2 asks two).
    pub fanout: usize,
    /// Sockets to each server: so many source ports, over which a server spreads its threads.
    pub flows: usize,
    /// As whom.
    pub access: Access,
    /// AAs asked for: uniformly from `aas` addresses that begin with `first_aa`.
    pub first_aa: Ipv4Addr,
    /// See `first_aa`.
    pub aas: u32,
    /// AAs in one datagram.
    pub questions: usize,
    /// Datagrams that are due together and leave in one message to the kernel (generic segmentation offload), 1 to 64; 1: plain
    /// datagrams. At random arrivals the mean of so many, at most 32.
    pub burst: usize,
    /// How bursts follow each other in an open loop.
    pub arrivals: Arrivals,
    /// How fast.
    pub pace: Pace,
    /// Before anything is counted.
    pub warm_up: Duration,
    /// How long is counted.
    pub duration: Duration,
    /// A look-up without a valid answer by then has failed.
    pub timeout: Duration,
    /// Ask other servers again after so long without an answer, then after twice that, and so on until the timeout, as far
    /// as answers pay for it.
    pub retry: Option<Duration>,
    /// CPU that the load runs on.
    pub cpu: Option<usize>,
    /// Seed of AAs, servers and request numbers.
    pub seed: u64,
}

impl LookupLoad {
    /// One question at a time, 64 outstanding, to one server, for a second.
    pub fn of(server: SocketAddrV4, access: Access, first_aa: Ipv4Addr, aas: u32) -> Self {
        Self {
            servers: vec![server],
            source: Ipv4Addr::UNSPECIFIED,
            fanout: 1,
            flows: 1,
            access,
            first_aa,
            aas,
            questions: 1,
            burst: 1,
            arrivals: Arrivals::Even,
            pace: Pace::Window(64),
            warm_up: Duration::from_millis(100),
            duration: Duration::from_secs(1),
            timeout: Duration::from_secs(2),
            retry: None,
            cpu: None,
            seed: 1,
        }
    }

    /// Asks until the time is over or somebody asks to stop, then waits for the last answers.
    ///
    /// # Errors
    /// [`NodeError::Config`] for a load that cannot be; [`NodeError::System`].
    pub fn run(&self, stop: &Stop) -> Result<LookupReport, NodeError> {
        self.check()?;
        if let Some(cpu) = self.cpu {
            cpu::pin_this_thread(cpu)?;
        }
        asker::Asker::new(self)?.run(stop)
    }

    fn check(&self) -> Result<(), NodeError> {
        let within = |field, value: usize, most: usize| {
            let why = format!("{value} is not between 1 and {most}");
            if (1..=most).contains(&value) { Ok(()) } else { Err(NodeError::config(field, why)) }
        };
        within("servers", self.servers.len(), requests::SERVERS_MAX)?;
        within("fanout", self.fanout, self.servers.len().min(requests::FANOUT_MAX))?;
        within("flows", self.flows, 1024)?;
        within("aas", self.aas as usize, 1 << 30)?;
        within("questions", self.questions, ENTRIES_MAX)?;
        within("burst", self.burst, 64)?;
        within("burst", self.arrivals.burst_max(self.burst), 64)?;
        match self.pace {
            Pace::Window(window) => within("pace", window, requests::OUTSTANDING_MAX),
            Pace::Rate(rate) if rate.is_finite() && rate > 0.0 => Ok(()),
            Pace::Rate(rate) => Err(NodeError::config("pace", format!("{rate} per second is no rate"))),
        }
    }
}
