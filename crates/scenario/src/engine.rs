//! The contract between an experiment and an engine: scenario in, records out.

use serde::{Deserialize, Serialize};

use crate::addressing::AddressPlan;
use crate::fault::Fault;
use crate::record::Records;
use crate::topology::Fabric;
use crate::units::{Bytes, Nanos};
use crate::workload::Workload;

/// How packets get from server to server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlay {
    /// No overlay: servers talk by their LAs over the routed fabric.
    Routed,
    /// VL2: AAs, an agent and a directory; every packet bounces off an Intermediate.
    Vl2,
    /// The kernel's VXLAN device between the servers' LAs.
    KernelVxlan,
}

/// TCP and host settings that both engines understand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transport {
    /// `cubic` or `reno`; never the system's default.
    pub congestion_control: CongestionControl,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Smallest retransmission timeout.
    pub rto_min: Nanos,
    /// TCP timestamps option.
    pub timestamps: bool,
    /// Largest number of segments that travel as one buffer through the lab's hosts (`gso_max_segs`); 1: none merged.
    pub segments_per_skb: u32,
    /// Bytes a flow may have queued below TCP in the lab (`tcp_limit_output_bytes`); `None`: the kernel's default.
    pub output_limit: Option<Bytes>,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            congestion_control: CongestionControl::Cubic,
            initial_window: 10,
            rto_min: Nanos(200_000_000),
            timestamps: true,
            segments_per_skb: 0,
            output_limit: None,
        }
    }
}

/// A TCP congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
}

impl CongestionControl {
    /// The kernel's name for it.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }
}

/// A network that an engine can bring up.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Nodes and links.
    pub fabric: Fabric,
    /// Their addresses.
    pub addresses: AddressPlan,
    /// How packets travel.
    pub overlay: Overlay,
    /// Settings of the hosts.
    pub transport: Transport,
    /// Whether links are shaped to their declared rate and buffer. Unshaped links are for measurements of CPU cost.
    pub shaped: bool,
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
}

/// Why an engine could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// This machine cannot run the engine: exit code 4.
    #[error("{what}; {remedy}")]
    NotFit {
        /// What is missing.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The user asked to stop: exit code 130, after everything was cleaned up.
    #[error("interrupted; everything the run made has been removed")]
    Interrupted,
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
    /// Facts about the network for the manifest: `("lab.up_s", 3.1)`.
    fn facts(&self) -> Vec<(String, f64)>;
    /// Takes the network down.
    fn close(self: Box<Self>) -> Result<(), EngineError>;
}
