//! Who sends how much to whom.

mod error;
pub mod mix;
mod shuffle;

use serde::{Deserialize, Serialize};

pub use error::WorkloadError;
pub use mix::MixServer;
pub use shuffle::{GOODPUT_OF_LINE_RATE, shuffle_bytes_for};

use crate::random::{Purpose, Stream};
use crate::units::{BitsPerSec, Bytes, Nanos};

/// What the servers of a fabric do during a run. Servers are numbered as in [`crate::topology::Fabric::servers`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The paper's data-centre mix (VL2 3.2, 5.2): each server keeps a number of flows going for `duration`.
    Mix(MixSpec),
}

/// Parameters of the data-centre mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// How long new flows are started; those still open then are cut.
    pub duration: Nanos,
    /// What one server's flows send together. The paper's links were 10 to 20 % used, so its sources were limited by
    /// something other than the network; each server's budget is shared evenly by its active flows.
    pub offered_rate_per_server: BitsPerSec,
    /// Sizes of Figure 2 are divided by this, so that scaled rates keep the paper's durations.
    pub size_divisor: u32,
}

/// One flow that a workload asks for at the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// Payload to send; 0: as much as it can until the workload's duration is over.
    pub bytes: u64,
    /// When it starts, from the start of the run.
    pub start_ns: u64,
}

/// Most flows that a workload may start with.
pub const FLOWS_MAX: u64 = 1 << 24;

impl Workload {
    /// The flows that start at time 0, in order of their senders. A sender of the shuffle visits its receivers in an
    /// order of its own that depends on the seed. Of the mix these are the first [`MixServer::concurrency`] flows of
    /// each server; the same [`MixServer`] yields those that follow.
    pub fn initial_flows(&self, n_servers: u32, seed: u64) -> Result<Vec<FlowSpec>, WorkloadError> {
        self.check(n_servers)?;
        let flow = |from, to, bytes| FlowSpec { from, to, bytes, start_ns: 0 };
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
        })
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
        }
    }
}

impl MixSpec {
    fn check(&self) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        if self.offered_rate_per_server.0 == 0 {
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
