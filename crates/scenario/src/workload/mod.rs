//! Who sends how much to whom.

pub mod directory;
pub mod elephants;
mod error;
pub mod flow_file;
pub mod flow_log;
pub mod frames;
pub mod matrices;
pub mod mix;
pub mod model;
pub mod multicast;
pub mod outside;
pub mod r1;
pub mod segments;
mod servers;
pub mod services;
mod shuffle;
pub mod sizes;
pub mod traffic;

use serde::{Deserialize, Serialize};

pub use directory::{Arrivals, DirectoryKill, DirectorySpec, DirectoryVictim, LookupLoad, MigrationSpec, UpdateLoad};
pub use elephants::{ElephantSpec, Split};
pub use error::WorkloadError;
pub use flow_log::{FlowLog, FlowLogSpec, LoggedFlow, RecurringSpec, Site};
pub use frames::{End, FramesSpec, Layer, Offer, Runs, Search, Steady};
pub use matrices::{MatricesSpec, Matrix};
pub use mix::MixServer;
pub use model::ModelSpec;
pub use multicast::{Copies, MulticastSpec};
pub use outside::OutsideLoad;
pub use segments::{SegmentStore, SegmentsSpec};
pub use servers::Servers;
pub use services::ServicesSpec;
pub use shuffle::{GOODPUT_OF_LINE_RATE, shuffle_bytes_for};
pub use sizes::{SizeDistribution, SizeTable, SizeTableError};
pub use traffic::{BackgroundSpec, QueryRate, QuerySpec, TrafficSpec};

use crate::random::{Purpose, Stream};
use crate::units::{BitsPerSec, Bytes, Nanos, named};

/// What the servers of a fabric do during a run. Servers are numbered as in [`crate::topology::Fabric::servers`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Every server sends `bytes_per_flow` to every other, all starting at time 0 (VL2 5.1).
    Shuffle {
        /// Payload of each flow.
        bytes_per_flow: Bytes,
    },
    /// Server i sends to server (i + `shift`) mod n.
    Permutation {
        /// Payload of each flow.
        bytes_per_flow: Bytes,
        /// Distance between sender and receiver, 1 to n - 1.
        shift: u32,
    },
    /// `flows` parallel flows from one server to another.
    OneToOne {
        /// Number of the sending server.
        from: u32,
        /// Number of the receiving server.
        to: u32,
        /// How many flows at once.
        flows: u32,
        /// How long they send; each sends as much as it can.
        duration: Nanos,
    },
    /// The paper's data-centre mix (VL2 3.2, 5.2): each server keeps a number of flows going for `duration`. The only
    /// closed loop: what starts when depends on what has ended.
    Mix(MixSpec),
    /// Background flows at a load, queries, or both (DCTCP 2, the leaf-spine paper's workloads).
    Traffic(TrafficSpec),
    /// These flows.
    Flows {
        /// In any order.
        flows: Vec<FlowSpec>,
    },
    /// Services that share the network, each with a role (VL2 5.3).
    Services(ServicesSpec),
    /// Load on the directory system (VL2 5.5); lab only. It has no flows.
    Directory(DirectorySpec),
    /// A server's AA moves to another rack while it receives (VL2 4.3.2); lab only. Its one flow is its own.
    Migration(MigrationSpec),
    /// Flows between the world outside and servers with a public LA (VL2 4.2.3); lab only.
    Outside(OutsideLoad),
    /// Many segments between two edge switches; lab only. It has no flows.
    Segments(SegmentsSpec),
    /// Frames of a test centre through whatever forwards them; lab only. They are no flows of anybody's TCP.
    Frames(FramesSpec),
    /// A stream to many receivers, copied by switches or by whoever sends; lab only. It has no flows.
    Multicast(MulticastSpec),
    /// Few large flows by TCP, multipath TCP or in stripes; lab only. They are its own.
    Elephants(ElephantSpec),
    /// A question that is answered by calculation; the engine `calc` only.
    Model(ModelSpec),
    /// A log of flows of which none is sent (VL2 3.1 to 3.3); the engine `calc` only.
    FlowLog(FlowLogSpec),
}

/// Parameters of the data-centre mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// How long new flows are started; those still open then are cut.
    pub duration: Nanos,
    /// What one server's flows send together. The paper's links were 10 to 20 % used, so its sources were limited by
    /// something other than the network; each server's budget is shared evenly by its active flows. `None`: every flow sends
    /// as fast as TCP lets it.
    pub offered_rate_per_server: Option<BitsPerSec>,
    /// Sizes of Figure 2 are divided by this, so that scaled rates keep the paper's durations.
    pub size_divisor: u32,
}

/// One flow that a workload asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// Payload to send; 0: as much as it can until the workload's duration is over.
    #[serde(deserialize_with = "named::number::<Bytes, _, _>")]
    #[schemars(with = "named::Number<Bytes>")]
    pub bytes: u64,
    /// When it starts, from the start of the run.
    #[serde(deserialize_with = "named::number::<Nanos, _, _>")]
    #[schemars(with = "named::Number<Nanos>")]
    pub start_ns: u64,
    /// What kind of traffic it is part of.
    #[serde(default)]
    pub class: FlowClass,
    /// Number of the query that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// Number of the spine that both of its directions take, instead of the hash's choice. Simulator only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spine: Option<u16>,
}

impl FlowSpec {
    /// A flow of no particular kind.
    pub fn bulk(from: u32, to: u32, bytes: u64, start_ns: u64) -> Self {
        Self { from, to, bytes, start_ns, class: FlowClass::Bulk, request: None, spine: None }
    }
}

/// What kind of traffic a flow is part of.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FlowClass {
    /// One kind only: shuffle, permutation, lists of flows.
    #[default]
    Bulk,
    /// Background traffic.
    Background,
    /// A response to a query.
    Query,
}

impl FlowClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Bulk, Self::Background, Self::Query];

    /// Its name in records: `bulk`, `background` or `query`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Background => "background",
            Self::Query => "query",
        }
    }
}

/// Most flows that a workload may start with.
pub const FLOWS_MAX: u64 = 1 << 24;

impl Workload {
    /// All flows of a run, in the order of their starts, for every workload but the mix, whose flows are not known before
    /// the run. Flows that start together are in the order of [`Self::initial_flows`].
    pub fn open_loop_flows(&self, servers: &Servers, seed: u64) -> Result<Vec<FlowSpec>, WorkloadError> {
        match self {
            Self::Traffic(spec) => {
                self.check(servers.count())?;
                spec.flows(servers, seed)
            }
            Self::Mix(_) => Err(WorkloadError::ClosedLoop),
            _ => {
                let mut flows = self.initial_flows(servers.count(), seed)?;
                flows.sort_by_key(|flow| flow.start_ns);
                Ok(flows)
            }
        }
    }

    /// The flows that are known from the number of servers alone; in order of their senders, except for a list, which
    /// stays in its own. A sender of the shuffle visits its receivers in an order of its own that depends on the seed. Of
    /// the mix these are the first [`MixServer::concurrency`] flows of each server; the same [`MixServer`] yields those
    /// that follow. Traffic at a load depends on the links: [`Self::open_loop_flows`].
    pub fn initial_flows(&self, n_servers: u32, seed: u64) -> Result<Vec<FlowSpec>, WorkloadError> {
        self.check(n_servers)?;
        let flow = |from, to, bytes| FlowSpec::bulk(from, to, bytes, 0);
        Ok(match self {
            Self::Shuffle { bytes_per_flow } => (0..n_servers)
                .flat_map(|from| receivers(n_servers, from, seed).into_iter().map(move |to| (from, to)))
                .map(|(from, to)| flow(from, to, bytes_per_flow.0))
                .collect(),
            Self::Permutation { bytes_per_flow, shift } => {
                let to = |from: u32| ((u64::from(from) + u64::from(*shift)) % u64::from(n_servers)) as u32;
                (0..n_servers).map(|from| flow(from, to(from), bytes_per_flow.0)).collect()
            }
            Self::OneToOne { from, to, flows, .. } => vec![flow(*from, *to, 0); *flows as usize],
            Self::Mix(spec) => {
                let mut all = Vec::new();
                for from in 0..n_servers {
                    let server = MixServer::new(spec, n_servers, from, seed)?;
                    let count = server.concurrency() as usize;
                    all.extend(server.take(count).map(|(to, bytes)| flow(from, to, bytes)));
                }
                all
            }
            Self::Traffic(_) => return Err(WorkloadError::NeedsRates),
            Self::Directory(_)
            | Self::Migration(_)
            | Self::Outside(_)
            | Self::Segments(_)
            | Self::Frames(_)
            | Self::Multicast(_)
            | Self::Elephants(_) => {
                return Err(WorkloadError::LabOnly { kind: self.kind() });
            }
            Self::Model(_) | Self::FlowLog(_) => return Err(WorkloadError::CalcOnly { kind: self.kind() }),
            Self::Flows { flows } => flows.clone(),
            Self::Services(spec) => spec.flows(seed),
        })
    }

    /// How long flows begin, or are sent, where the workload says it.
    pub fn duration(&self) -> Option<Nanos> {
        match self {
            Self::Traffic(spec) => Some(spec.duration),
            _ => self.ends_at(),
        }
    }

    /// When everything of it is cut; `None` where the last flow ends it.
    pub fn ends_at(&self) -> Option<Nanos> {
        match self {
            Self::OneToOne { duration, .. } => Some(*duration),
            Self::Mix(spec) => Some(spec.duration),
            Self::Services(spec) => Some(spec.duration),
            _ => None,
        }
    }

    /// The kind, as a plan writes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Shuffle { .. } => "shuffle",
            Self::Permutation { .. } => "permutation",
            Self::OneToOne { .. } => "one-to-one",
            Self::Mix(_) => "mix",
            Self::Traffic(_) => "traffic",
            Self::Flows { .. } => "flows",
            Self::Services(_) => "services",
            Self::Directory(_) => "directory",
            Self::Migration(_) => "migration",
            Self::Outside(_) => "outside",
            Self::Segments(_) => "segments",
            Self::Frames(_) => "frames",
            Self::Multicast(_) => "multicast",
            Self::Elephants(_) => "elephants",
            Self::Model(_) => "model",
            Self::FlowLog(_) => "flow-log",
        }
    }

    /// Whether the workload makes sense for so many servers; says what does not.
    pub fn check(&self, n_servers: u32) -> Result<(), WorkloadError> {
        check_servers(n_servers)?;
        match self {
            Self::Shuffle { bytes_per_flow } => {
                check_bytes(*bytes_per_flow)?;
                check_flows(u64::from(n_servers) * (u64::from(n_servers) - 1))
            }
            Self::Permutation { bytes_per_flow, shift } => {
                check_bytes(*bytes_per_flow)?;
                if !(1..n_servers).contains(shift) {
                    return Err(WorkloadError::Shift { shift: *shift, most: n_servers - 1 });
                }
                check_flows(u64::from(n_servers))
            }
            Self::OneToOne { from, to, flows, duration } => {
                check_server(*from, n_servers)?;
                check_server(*to, n_servers)?;
                if from == to {
                    return Err(WorkloadError::ToItself { server: *from });
                }
                check_duration(*duration)?;
                check_flows(u64::from(*flows))
            }
            Self::Mix(spec) => spec.check(),
            Self::Traffic(spec) => spec.check(n_servers),
            Self::Services(spec) => spec.check(n_servers),
            Self::Directory(spec) => spec.check(),
            Self::Migration(spec) => spec.check(n_servers),
            Self::Outside(load) => load.check(),
            Self::Segments(spec) => spec.check(),
            Self::Frames(spec) => spec.check(),
            Self::Multicast(spec) => spec.check(n_servers),
            Self::Elephants(spec) => spec.check(),
            Self::Model(spec) => spec.check(),
            Self::FlowLog(spec) => spec.check(),
            Self::Flows { flows } => {
                check_flows(flows.len() as u64)?;
                flows.iter().enumerate().try_for_each(|(place, flow)| check_flow(place, flow, n_servers))
            }
        }
    }
}

/// One flow of a list; its place is counted from 1 in the message.
impl Workload {
    /// Whether flows that name a spine find it among so many.
    pub fn check_spines(&self, spines: usize) -> Result<(), WorkloadError> {
        let Self::Flows { flows } = self else { return Ok(()) };
        let spine = |flow: &FlowSpec| flow.spine.filter(|spine| usize::from(*spine) >= spines);
        match flows.iter().zip(1..).find_map(|(flow, number)| Some((number, spine(flow)?))) {
            None => Ok(()),
            Some((number, spine)) => {
                Err(WorkloadError::Flow { number, error: Box::new(WorkloadError::NoSuchSpine { spine, spines }) })
            }
        }
    }

    /// Whether any flow names the spine that it takes, which only the simulator can follow.
    pub fn names_spines(&self) -> bool {
        matches!(self, Self::Flows { flows } if flows.iter().any(|flow| flow.spine.is_some()))
    }
}

fn check_flow(place: usize, flow: &FlowSpec, n_servers: u32) -> Result<(), WorkloadError> {
    let check = || {
        check_server(flow.from, n_servers)?;
        check_server(flow.to, n_servers)?;
        if flow.from == flow.to {
            return Err(WorkloadError::ToItself { server: flow.from });
        }
        if flow.bytes == 0 { Err(WorkloadError::ZeroSize { setting: "bytes" }) } else { Ok(()) }
    };
    check().map_err(|error| WorkloadError::Flow { number: place + 1, error: Box::new(error) })
}

impl MixSpec {
    fn check(&self) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        if self.offered_rate_per_server == Some(BitsPerSec(0)) {
            return Err(WorkloadError::ZeroRate);
        }
        if self.size_divisor == 0 {
            return Err(WorkloadError::ZeroDivisor);
        }
        Ok(())
    }
}

/// Every server but `from`, in the order in which `from` visits them.
fn receivers(n_servers: u32, from: u32, seed: u64) -> Vec<u32> {
    let mut others: Vec<u32> = (0..n_servers).filter(|to| *to != from).collect();
    Stream::new(seed, Purpose::ShuffleOrder, from).shuffle(&mut others);
    others
}

fn check_servers(servers: u32) -> Result<(), WorkloadError> {
    if servers < 2 { Err(WorkloadError::TooFewServers { servers }) } else { Ok(()) }
}

fn check_server(server: u32, servers: u32) -> Result<(), WorkloadError> {
    if server >= servers { Err(WorkloadError::NoSuchServer { server, servers }) } else { Ok(()) }
}

fn check_bytes(bytes: Bytes) -> Result<(), WorkloadError> {
    if bytes.0 == 0 { Err(WorkloadError::ZeroBytes) } else { Ok(()) }
}

fn check_duration(duration: Nanos) -> Result<(), WorkloadError> {
    if duration.0 == 0 { Err(WorkloadError::ZeroDuration) } else { Ok(()) }
}

fn check_flows(flows: u64) -> Result<(), WorkloadError> {
    if !(1..=FLOWS_MAX).contains(&flows) { Err(WorkloadError::Flows { flows }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
