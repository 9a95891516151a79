//! The contract between an experiment and an engine: scenario in, records out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::addressing::AddressPlan;
use crate::fault::Fault;
use crate::id::NodeId;
use crate::record::Records;
use crate::switching::Switching;
use crate::topology::{Fabric, FabricSize};
use crate::units::{Bytes, Nanos};
use crate::workload::Workload;

pub use crate::overlay::{Hook, Overlay, TunnelEnd};
pub use crate::transport::{CongestionControl, TcpStack, Transport, TransportError};

/// What keeps the mappings of a VL2 network's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryStore {
    /// Each directory server has a store of its own built in; nothing is shared between them.
    #[default]
    Embedded,
    /// Three directory servers share three etcd nodes, one beside each.
    Etcd3,
    /// Five directory servers share five etcd nodes, one beside each.
    Etcd5,
}

impl DirectoryStore {
    /// How many directory servers a fabric must have for it: with etcd, one beside each node.
    pub fn servers(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Etcd3 => 3,
            Self::Etcd5 => 5,
        }
    }

    /// As plans and flags write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Etcd3 => "etcd3",
            Self::Etcd5 => "etcd5",
        }
    }
}

/// A network that an engine can bring up.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Nodes and links.
    pub fabric: Fabric,
    pub addresses: AddressPlan,
    /// How packets travel.
    pub overlay: Overlay,
    /// What keeps the directory's mappings, where the overlay has a directory.
    pub directory: DirectoryStore,
    /// Settings of the hosts.
    pub transport: Transport,
    /// Settings of switches and network cards, of which the lab follows few.
    pub switching: Switching,
    /// Whether links are shaped to their declared rate and buffer. Unshaped links are for measurements of CPU cost.
    pub shaped: bool,
}

impl Scenario {
    /// What a switch forwards with.
    pub fn forwarding(&self, switch: NodeId) -> Overlay {
        self.fabric.forwards_with(switch, self.overlay)
    }

    /// Switches that forward with something, in order.
    pub fn switches_with(&self, is_it: impl Fn(Overlay) -> bool) -> impl Iterator<Item = NodeId> {
        self.fabric.switches().filter(move |switch| is_it(self.forwarding(*switch)))
    }

    /// Everything that some switch forwards with: the overlay, where the fabric does not say it of each.
    pub fn overlays(&self) -> BTreeSet<Overlay> {
        let of_all = self.fabric.forwarding().values().map(|own| own.overlay);
        let said = |switch: NodeId| self.fabric.forwarding().contains_key(&switch);
        let edges = !self.overlay.forwards_frames();
        let mut switches = self.fabric.switches();
        let is_default =
            switches.any(|switch| !said(switch) && (!edges || self.fabric.node(switch).role.is_edge_switch()));
        of_all.chain((is_default || self.fabric.forwarding().is_empty()).then_some(self.overlay)).collect()
    }
}

/// One run on a network that is up.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What the servers do.
    pub workload: Workload,
    /// What breaks.
    pub faults: Vec<Fault>,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Distance between rows of progress, links and cores.
    pub sample_interval: Nanos,
    /// Distance between rows of TCP state; `None`: no rows.
    pub tcp_interval: Option<Nanos>,
    /// The run is cut after this time.
    pub time_limit: Nanos,
    /// Pin all traffic to one core and measure its CPU time ([`crate::record::CostRow`]).
    pub pin_and_measure_cost: bool,
    /// Record what a replay shows ([`crate::record::ReplayRow`]).
    pub replay: bool,
    /// Paced datagrams beside the traffic ([`crate::record::GapRow`]); lab only.
    pub probes: Option<ProbeSpec>,
}

/// Paced datagrams between pairs of servers, each pair a flow with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// How many flows, 1 to 1000.
    pub flows: u32,
    /// Time between two datagrams of one flow, at least 1 ms.
    pub interval: Nanos,
    /// Whether to wait for each, up to a millisecond, and read how long it was under way ([`crate::record::TripRow`]): for networks
    /// that are idle.
    #[serde(default)]
    pub trips: bool,
}

impl ProbeSpec {
    /// Whether they make sense; says what does not.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=1000).contains(&self.flows) {
            return Err(format!("`probes.flows` is {}; choose 1 to 1000", self.flows));
        }
        match self.interval < Nanos(1_000_000) {
            true => Err(format!("`probes.interval` is {}; choose 1 ms or more", self.interval)),
            false => Ok(()),
        }
    }
}

/// Why an engine could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// This machine cannot run the engine: exit code 4.
    #[error("{what}; {remedy}")]
    NotFit {
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The user asked to stop: exit code 130, after everything was cleaned up.
    #[error("interrupted; everything the run made has been removed")]
    Interrupted,
    /// The scenario makes no sense to this engine: exit code 2.
    #[error("{0}")]
    Refused(String),
    /// Anything else: exit code 1.
    #[error("{0}")]
    Failed(String),
}

/// Where an engine reports how far it is; implementations draw it on standard error.
pub trait Progress: Sync {
    /// A new phase begins, for instance `links`; `detail` is shown beside it.
    fn phase(&self, name: &str, detail: &str);
    /// Share of the current phase that is done, 0 to 1, with a short text such as `1.36 Gb/s`.
    fn advance(&self, done_ratio: f64, text: &str);
    /// A line for people that stays on the screen.
    fn note(&self, line: &str);
    /// Whether the user asked to stop; engines look at it at least ten times a second.
    fn interrupted(&self) -> bool;
}

/// Brings scenarios to life.
pub trait Engine {
    /// `lab` or `sim`.
    fn name(&self) -> &'static str;
    /// Whether this machine can run a trial of the scenario, found out before anything is made; [`EngineError::NotFit`] says
    /// what is missing and what to do. By default it can.
    fn check_fit(&self, scenario: &Scenario, trial: &Trial) -> Result<(), EngineError> {
        let _ = (scenario, trial);
        Ok(())
    }
    /// Memory that a trial on a network of this size takes, where that can be told before either is made; `None`: nobody knows.
    fn memory(&self, size: &FabricSize, trial: &Trial) -> Option<Bytes> {
        let _ = (size, trial);
        None
    }
    /// This engine, if scenarios of its own may run side by side on several threads: runs that share nothing and whose
    /// records do not depend on what else the machine does. `None`, the default: one scenario after another.
    fn parallel(&self) -> Option<&(dyn Engine + Sync)> {
        None
    }
    /// Whether rows follow from scenario, trial and version alone. By default those of an engine are whose scenarios may run side by side.
    fn is_reproducible(&self) -> bool {
        self.parallel().is_some()
    }
    /// Builds the network and waits until it carries packets.
    fn prepare<'a>(
        &'a self,
        scenario: &Scenario,
        progress: &'a dyn Progress,
    ) -> Result<Box<dyn Session + 'a>, EngineError>;
}

/// A network that is up. Dropping it takes it down; [`Session::close`] does so and reports errors.
pub trait Session {
    /// Runs one trial.
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError>;
    /// Trials may use so many threads from now on, at least one. What they yield does not depend on it.
    fn use_threads(&mut self, threads: usize) {
        let _ = threads;
    }
    /// Facts about the network for the manifest: `("lab.up_s", 3.1)`.
    fn facts(&self) -> Vec<(String, f64)>;
    /// Takes the network down.
    fn close(self: Box<Self>) -> Result<(), EngineError>;
}
