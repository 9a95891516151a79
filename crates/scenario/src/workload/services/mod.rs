//! Services that share a network, each with servers and a role of its own (VL2 5.3).
//!
//! A server belongs to one service at most. Whatever a service's servers send goes to servers of the same service: where
//! each has one receiver, it is the one half the list further on, so that lists that alternate between racks send between
//! racks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{FlowSpec, WorkloadError, check_bytes, check_duration, check_flows, check_server};
use crate::random::{Purpose, Stream};
use crate::topology::Fabric;
use crate::units::{BitsPerSec, Bytes, Nanos};

/// Payload of a flood's datagrams, bytes: with headers of UDP and IPv4 a packet of 1500.
pub const DATAGRAM_PAYLOAD_BYTES: u32 = 1472;
/// Payload of a storm's datagrams, bytes: broadcast reaches the members with its outer header, a packet of 1500 with it.
pub const STORM_PAYLOAD_BYTES: u32 = 1452;

/// Names of the facts about storms: datagrams that were offered; received by each of the others of the sender's service, on
/// average; received by servers of other services, all together.
pub const STORM_OFFERED: &str = "storm.offered_datagrams";
/// See [`STORM_OFFERED`].
pub const STORM_OWN: &str = "storm.own_datagrams";
/// See [`STORM_OFFERED`].
pub const STORM_FOREIGN: &str = "storm.foreign_datagrams";

/// Services and how long they run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServicesSpec {
    /// When the run ends, and with it flows without a size.
    pub duration: Nanos,
    pub service: BTreeMap<String, ServiceSpec>,
}

/// One service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// Numbers of its servers, in the order in which they join.
    pub servers: Vec<u32>,
    /// What they do.
    pub role: ServiceRole,
    /// What each server's agent lets out of its datagrams; `None`: all. In a service with a storm: of its broadcast, in place of
    /// the fabric's own limit.
    #[serde(default)]
    pub datagram_limit: Option<DatagramLimit>,
}

/// What the servers of a service do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceRole {
    /// Each sends one flow to its receiver from time 0 to the end.
    LongFlows,
    /// They join one after another, and each sends one flow of a size to its receiver as soon as it has joined.
    Ramp(RampSpec),
    /// Bursts of short flows between any two of them.
    Bursts(BurstSpec),
    /// All send datagrams to one of them at a steady rate, whatever becomes of them.
    Flood(FloodSpec),
    /// One of them broadcasts datagrams at a steady rate (VL2 4.2.3); lab only.
    Storm(StormSpec),
}

/// Servers that join one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RampSpec {
    /// When the first joins.
    pub begin: Nanos,
    /// Time from one to the next.
    pub every: Nanos,
    /// Payload of each one's flow.
    pub bytes_per_flow: Bytes,
}

/// Bursts of short flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstSpec {
    /// When the first burst begins.
    pub begin: Nanos,
    /// Time from one to the next.
    pub every: Nanos,
    /// How many bursts.
    pub bursts: u32,
    pub first_flows: u32,
    /// How many more each burst has than the one before.
    pub more_flows: u32,
    /// Smallest flow.
    pub min_bytes: Bytes,
    /// Largest flow; all sizes are equally likely.
    pub max_bytes: Bytes,
}

/// A flood of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FloodSpec {
    pub begin: Nanos,
    pub end: Nanos,
    /// Payload that each server tries to send.
    pub rate_per_server: BitsPerSec,
    /// Number of the server that all others send to; one of the service's.
    pub to: u32,
}

/// A broadcast storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StormSpec {
    pub begin: Nanos,
    pub end: Nanos,
    /// Payload that the server tries to send.
    pub rate: BitsPerSec,
    /// Number of the server; one of the service's.
    pub from: u32,
}

/// A storm with those that may hear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Storm {
    /// Who broadcasts, how fast and when; datagrams of [`STORM_PAYLOAD_BYTES`].
    pub spec: StormSpec,
    /// Numbers of the service's servers, the sender among them.
    pub members: Vec<u32>,
}

/// A token bucket at a server's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatagramLimit {
    /// What may leave in the long run, as IPv4 packets in Ethernet frames without FCS.
    pub rate: BitsPerSec,
    /// What may leave at once.
    pub burst: Bytes,
}

/// Datagrams that one server sends to another at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DatagramStream {
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// Payload that is sent, in datagrams of [`DATAGRAM_PAYLOAD_BYTES`].
    pub rate: BitsPerSec,
    /// When it begins, from the start of the run.
    pub start_ns: u64,
    pub end_ns: u64,
    /// What the sender's agent lets out.
    pub limit: Option<DatagramLimit>,
}

impl ServicesSpec {
    /// All flows of a spec that was checked, service after service.
    pub(super) fn flows(&self, seed: u64) -> Vec<FlowSpec> {
        let of = |(number, service): (u32, &ServiceSpec)| service.flows(Stream::new(seed, Purpose::Bursts, number));
        (0..).zip(self.service.values()).flat_map(of).collect()
    }

    /// All streams of datagrams, service after service.
    pub fn datagrams(&self) -> Vec<DatagramStream> {
        self.service.values().flat_map(ServiceSpec::datagrams).collect()
    }

    /// True where a service sends by TCP.
    pub fn sends_segments(&self) -> bool {
        self.service.values().any(|service| service.flow_count() > 0)
    }

    /// All storms, service after service.
    pub fn storms(&self) -> Vec<Storm> {
        self.service.values().filter_map(ServiceSpec::storm).collect()
    }

    /// Whether the fabric's services are such that those that should hear a storm are those that can; names the service that
    /// differs.
    pub fn check_fabric(&self, fabric: &Fabric) -> Result<(), WorkloadError> {
        let stormy = self.service.iter().filter_map(|(name, service)| Some((name, service.storm()?)));
        stormy.into_iter().try_for_each(|(name, storm)| storm.check(fabric).map_err(|error| error.of_service(name)))
    }

    /// Names of the services with their servers, in order of the names.
    pub fn members(&self) -> Vec<(String, Vec<u32>)> {
        self.service.iter().map(|(name, service)| (name.clone(), service.servers.clone())).collect()
    }

    /// When the first of the services that do not send from the start begins; the end if there is none.
    pub fn begin_of_others(&self) -> Nanos {
        self.service.values().filter_map(|service| service.role.begin()).min().unwrap_or(self.duration)
    }

    /// Whether a server is in a service of long flows.
    pub fn is_steady(&self, server: u32) -> bool {
        let steady = self.service.values().filter(|service| service.role == ServiceRole::LongFlows);
        steady.flat_map(|service| &service.servers).any(|one| *one == server)
    }

    /// Whether it makes sense for so many servers; names the service that does not.
    pub(super) fn check(&self, n_servers: u32) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        if self.service.is_empty() {
            return Err(WorkloadError::NotAList { setting: "service" });
        }
        let mut owners: BTreeMap<u32, &str> = BTreeMap::new();
        let mut flows = 0;
        for (name, service) in &self.service {
            service.check(n_servers, self.duration).map_err(|error| error.of_service(name))?;
            for server in &service.servers {
                if let Some(other) = owners.insert(*server, name) {
                    let error = WorkloadError::ServerTaken { server: *server, other: other.to_owned() };
                    return Err(error.of_service(name));
                }
            }
            flows += service.flow_count();
        }
        // A flood or a storm alone has no flows.
        if flows == 0 && !(self.datagrams().is_empty() && self.storms().is_empty()) {
            Ok(())
        } else {
            check_flows(flows)
        }
    }
}

impl ServiceRole {
    /// When it begins, where it does not from the start.
    fn begin(&self) -> Option<Nanos> {
        match self {
            Self::LongFlows => None,
            Self::Ramp(ramp) => Some(ramp.begin),
            Self::Bursts(bursts) => Some(bursts.begin),
            Self::Flood(flood) => Some(flood.begin),
            Self::Storm(storm) => Some(storm.begin),
        }
    }
}

impl ServiceSpec {
    /// The server that the one at this place of the list sends to.
    fn receiver(&self, place: usize) -> u32 {
        self.servers[(place + self.servers.len() / 2) % self.servers.len()]
    }

    fn flows(&self, mut stream: Stream) -> Vec<FlowSpec> {
        let each = |bytes: u64, start_ns: &dyn Fn(u64) -> u64| -> Vec<FlowSpec> {
            let flow = |(place, from): (usize, &u32)| {
                FlowSpec::bulk(*from, self.receiver(place), bytes, start_ns(place as u64))
            };
            self.servers.iter().enumerate().map(flow).collect()
        };
        match self.role {
            ServiceRole::LongFlows => each(0, &|_| 0),
            ServiceRole::Ramp(ramp) => each(ramp.bytes_per_flow.0, &|place| ramp.begin.0 + place * ramp.every.0),
            ServiceRole::Bursts(bursts) => bursts.flows(&self.servers, &mut stream),
            ServiceRole::Flood(_) | ServiceRole::Storm(_) => Vec::new(),
        }
    }

    fn datagrams(&self) -> Vec<DatagramStream> {
        let ServiceRole::Flood(FloodSpec { begin, end, rate_per_server, to }) = self.role else { return Vec::new() };
        let stream = |from: &u32| DatagramStream {
            from: *from,
            to,
            rate: rate_per_server,
            start_ns: begin.0,
            end_ns: end.0,
            limit: self.datagram_limit,
        };
        self.servers.iter().filter(|from| **from != to).map(stream).collect()
    }

    fn storm(&self) -> Option<Storm> {
        match self.role {
            ServiceRole::Storm(spec) => Some(Storm { spec, members: self.servers.clone() }),
            _ => None,
        }
    }

    fn flow_count(&self) -> u64 {
        match self.role {
            ServiceRole::LongFlows | ServiceRole::Ramp(_) => self.servers.len() as u64,
            ServiceRole::Bursts(bursts) => bursts.flow_count(),
            ServiceRole::Flood(_) | ServiceRole::Storm(_) => 0,
        }
    }

    fn check(&self, n_servers: u32, duration: Nanos) -> Result<(), WorkloadError> {
        if self.servers.len() < 2 {
            return Err(WorkloadError::LonelyService { servers: self.servers.len() });
        }
        self.servers.iter().try_for_each(|server| check_server(*server, n_servers))?;
        if let Some(limit) = &self.datagram_limit {
            limit.check()?;
            if !matches!(self.role, ServiceRole::Flood(_) | ServiceRole::Storm(_)) {
                return Err(WorkloadError::LimitWithoutDatagrams);
            }
        }
        let last = match self.role {
            ServiceRole::LongFlows => return Ok(()),
            ServiceRole::Ramp(ramp) => {
                check_bytes(ramp.bytes_per_flow)?;
                last_of(ramp.begin, ramp.every, self.servers.len() as u64)
            }
            ServiceRole::Bursts(bursts) => {
                bursts.check()?;
                last_of(bursts.begin, bursts.every, bursts.bursts.into())
            }
            ServiceRole::Flood(flood) => {
                flood.check(&self.servers)?;
                Nanos(flood.end.0.saturating_sub(1))
            }
            ServiceRole::Storm(storm) => {
                storm.check(&self.servers)?;
                Nanos(storm.end.0.saturating_sub(1))
            }
        };
        if last >= duration { Err(WorkloadError::AfterEnd { at: last }) } else { Ok(()) }
    }
}

/// When the last of so many things happens.
fn last_of(begin: Nanos, every: Nanos, count: u64) -> Nanos {
    Nanos(begin.0.saturating_add(every.0.saturating_mul(count.saturating_sub(1))))
}

impl BurstSpec {
    fn flows(&self, servers: &[u32], stream: &mut Stream) -> Vec<FlowSpec> {
        let mut pair = servers.to_vec();
        let mut flows = Vec::new();
        for burst in 0..u64::from(self.bursts) {
            for _ in 0..self.flows_of(burst) {
                let chosen = stream.choose(&mut pair, 2);
                let (from, to) = (chosen[0], chosen[1]);
                let bytes = self.min_bytes.0 + stream.below(self.max_bytes.0 - self.min_bytes.0 + 1);
                flows.push(FlowSpec::bulk(from, to, bytes, self.start_ns(burst)));
            }
        }
        flows
    }

    /// When the burst of this number, from 0, begins.
    pub fn start_ns(&self, burst: u64) -> u64 {
        self.begin.0 + burst * self.every.0
    }

    /// How many flows it has.
    pub fn flows_of(&self, burst: u64) -> u64 {
        u64::from(self.first_flows) + burst * u64::from(self.more_flows)
    }

    /// An arithmetic series.
    fn flow_count(&self) -> u64 {
        let (bursts, first, more) =
            (u128::from(self.bursts), u128::from(self.first_flows), u128::from(self.more_flows));
        let flows = bursts * first + more * bursts * bursts.saturating_sub(1) / 2;
        u64::try_from(flows).unwrap_or(u64::MAX)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.min_bytes.0 == 0 {
            return Err(WorkloadError::ZeroSize { setting: "min_bytes" });
        }
        if self.max_bytes < self.min_bytes {
            return Err(WorkloadError::BurstSizes { min: self.min_bytes, max: self.max_bytes });
        }
        if self.bursts == 1 && self.every.0 > 0 {
            return Err(WorkloadError::OneBurst { setting: "every", none: "0 s" });
        }
        if self.bursts == 1 && self.more_flows > 0 {
            return Err(WorkloadError::OneBurst { setting: "more_flows", none: "0" });
        }
        check_flows(self.flow_count())
    }
}

impl FloodSpec {
    fn check(&self, servers: &[u32]) -> Result<(), WorkloadError> {
        if self.rate_per_server.0 == 0 {
            return Err(WorkloadError::ZeroServiceRate { setting: "rate_per_server" });
        }
        if !servers.contains(&self.to) {
            return Err(WorkloadError::FloodsStranger { to: self.to });
        }
        if self.begin >= self.end {
            return Err(WorkloadError::FloodTimes { begin: self.begin, end: self.end });
        }
        Ok(())
    }
}

impl StormSpec {
    fn check(&self, servers: &[u32]) -> Result<(), WorkloadError> {
        if self.rate.0 == 0 {
            return Err(WorkloadError::ZeroServiceRate { setting: "rate" });
        }
        if !servers.contains(&self.from) {
            return Err(WorkloadError::StormOfStranger { from: self.from });
        }
        if self.begin >= self.end {
            return Err(WorkloadError::FloodTimes { begin: self.begin, end: self.end });
        }
        Ok(())
    }
}

impl Storm {
    fn check(&self, fabric: &Fabric) -> Result<(), WorkloadError> {
        if fabric.broadcast().is_none() {
            return Err(WorkloadError::NoBroadcast { fabric: fabric.name().to_owned() });
        }
        let numbered: Vec<_> = fabric.servers().collect();
        let Some(sender) = numbered.get(self.spec.from as usize) else {
            let servers = numbered.len() as u32;
            return Err(WorkloadError::NoSuchServer { server: self.spec.from, servers });
        };
        let service = fabric.service_of(*sender);
        let hears = |(_, server): &(u32, &_)| fabric.service_of(**server) == service;
        let heard: BTreeSet<u32> = (0..).zip(&numbered).filter(hears).map(|(number, _)| number).collect();
        let members: BTreeSet<u32> = self.members.iter().copied().collect();
        match heard.symmetric_difference(&members).next() {
            Some(server) => Err(WorkloadError::StormElsewhere { server: *server, heard: heard.contains(server) }),
            None => Ok(()),
        }
    }
}

impl DatagramLimit {
    /// The least burst: one packet of 1500 bytes in its frame.
    const BURST_MIN: Bytes = Bytes(1514);

    fn check(&self) -> Result<(), WorkloadError> {
        if self.rate.0 == 0 {
            return Err(WorkloadError::ZeroServiceRate { setting: "datagram_limit.rate" });
        }
        if self.burst < Self::BURST_MIN {
            return Err(WorkloadError::LimitBurst { burst: self.burst, least: Self::BURST_MIN });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
