//! Open-loop traffic at a load: background flows between all servers, and queries that many servers answer at once.
//!
//! Flows arrive whether or not earlier ones have ended, so that all of them are known before the run, and the same seed
//! gives the same flows on every fabric whose servers and their links are alike.
//!
//! **A load of 100 %** is the payload that keeps a server's link busy: link rate x 2920 / 3154
//! ([`super::GOODPUT_OF_LINE_RATE`]: headers, framing and one acknowledgement for two segments included). Overlays' headers
//! and flows smaller than a segment cost more and are not counted.

mod generate;

use serde::{Deserialize, Serialize};

use self::generate::{Background, Queries};
use super::sizes::Sizes;
use super::{FlowSpec, GOODPUT_OF_LINE_RATE, Servers, SizeDistribution, WorkloadError, check_duration, check_flows};
use crate::units::{Bytes, Nanos, Percent, named};

/// Background flows, queries or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// How long flows arrive; those still open then run on to their ends.
    pub duration: Nanos,
    /// Flows from every server to the others.
    pub background: Option<BackgroundSpec>,
    /// Servers that ask many others at once.
    pub query: Option<QuerySpec>,
}

/// All-to-all background traffic: each server starts flows as a Poisson process, to receivers that are equally likely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackgroundSpec {
    /// Sizes of the flows.
    pub sizes: SizeDistribution,
    /// What a server sends on average, in percent of what its link can carry (1 to 100; see [`crate::workload::traffic`]).
    #[serde(deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    pub load_percent: u32,
    /// Longer flows are cut to this; the load stays the same, because more of them arrive.
    #[serde(default)]
    pub max_flow_bytes: Option<Bytes>,
    /// Sizes are divided by this before they are cut, so that scaled rates keep the paper's durations.
    #[serde(default = "one")]
    pub size_divisor: u32,
    /// Receivers are in other racks than their senders.
    #[serde(default)]
    pub between_racks_only: bool,
    /// With `between_racks_only`: so many servers in a row are a rack, whatever the fabric. Give it where the same flows
    /// are to run on a fabric without racks, such as the output-queued switch. `None`: the fabric's racks.
    #[serde(default)]
    pub servers_per_rack: Option<u32>,
}

/// Query traffic with incast. Each server is a client: as a Poisson process it asks `fan_in` random other servers at once,
/// and each sends its share of the response. The requests themselves and the time that workers think are left out: a
/// response starts when its query does, plus the jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuerySpec {
    /// How many servers one query asks.
    pub fan_in: u32,
    /// Payload of all responses to one query together; the first of them get what cannot be shared evenly, a byte each.
    pub response: Bytes,
    /// How often a client asks.
    pub rate: QueryRate,
    /// Each response starts up to so much later than its query, all delays equally likely.
    #[serde(default)]
    pub jitter: Nanos,
}

/// How often a client asks: `{ interval = "10 ms" }` or `{ load-percent = 5 }`, also `"5%"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueryRate {
    /// Mean time between two queries of one client.
    Interval(Nanos),
    /// What a client receives on average, in percent of what its link can carry (see [`crate::workload::traffic`]).
    #[serde(deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    LoadPercent(u32),
}

fn one() -> u32 {
    1
}

impl TrafficSpec {
    /// All flows of a spec that was checked, in the order of their starts. Queries are numbered from 0 in the order in which they are asked.
    pub(super) fn flows(&self, servers: &Servers, seed: u64) -> Result<Vec<FlowSpec>, WorkloadError> {
        self.check_loads(servers)?;
        check_flows(self.expected_flows(servers))?;
        let mut flows = Vec::new();
        if let Some(spec) = &self.background {
            Background { spec, servers, duration: self.duration, seed }.push_all(&mut flows)?;
        }
        if let Some(spec) = &self.query {
            Queries { spec, servers, duration: self.duration, seed }.push_all(&mut flows);
        }
        if flows.is_empty() {
            return Err(WorkloadError::NoFlows);
        }
        check_flows(flows.len() as u64)?;
        flows.sort_by_key(|flow| flow.start_ns);
        Ok(flows)
    }

    /// What can be said without knowing the links.
    pub(super) fn check(&self, servers: u32) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        if self.background.is_none() && self.query.is_none() {
            return Err(WorkloadError::NoTraffic);
        }
        self.background.as_ref().map_or(Ok(()), BackgroundSpec::check)?;
        self.query.as_ref().map_or(Ok(()), |query| query.check(servers))?;
        let percent = |load: Option<u32>| u64::from(load.unwrap_or(0));
        let query = self.query.and_then(|query| query.rate.load_percent());
        let sum = percent(self.background.as_ref().map(|background| background.load_percent)) + percent(query);
        if sum > 100 { Err(WorkloadError::LoadSum { percent: sum }) } else { Ok(()) }
    }

    /// Whether every server's link can carry what it is to send and receive, where queries come at intervals.
    fn check_loads(&self, servers: &Servers) -> Result<(), WorkloadError> {
        let Some(query) = &self.query else { return Ok(()) };
        let background = self.background.as_ref().map_or(0.0, |background| f64::from(background.load_percent));
        for client in 0..servers.count() {
            let busy_ns = busy_ns(query.response.0 as f64, servers, client);
            let percent = background + 100.0 * busy_ns / query.mean_interval_ns(servers, client);
            // A load that was given in percent comes back with a rounding error.
            if percent > 100.001 {
                return Err(WorkloadError::LoadSum { percent: libm::ceil(percent) as u64 });
            }
        }
        Ok(())
    }

    /// How many flows are to be expected.
    pub fn expected_flows(&self, servers: &Servers) -> u64 {
        let duration_ns = self.duration.0 as f64;
        let mut flows = 0.0;
        for server in 0..servers.count() {
            if let Some(background) = &self.background {
                flows += duration_ns / background.mean_interval_ns(servers, server);
            }
            if let Some(query) = &self.query {
                flows += duration_ns / query.mean_interval_ns(servers, server) * f64::from(query.fan_in);
            }
        }
        (flows as u64).max(1)
    }
}

impl BackgroundSpec {
    /// Mean size of the flows as they are drawn: divided and cut. In bytes.
    pub fn mean_flow_bytes(&self) -> f64 {
        self.drawn_sizes().mean_bytes()
    }

    /// The largest flow before any is cut.
    pub fn largest_uncut(&self) -> Bytes {
        Sizes::new(&self.sizes, self.size_divisor, None).most()
    }

    fn check(&self) -> Result<(), WorkloadError> {
        check_percent("background.load_percent", self.load_percent)?;
        check_sizes(&self.sizes)?;
        if self.max_flow_bytes == Some(Bytes(0)) {
            return Err(WorkloadError::ZeroSize { setting: "background.max_flow_bytes" });
        }
        if self.size_divisor == 0 {
            return Err(WorkloadError::ZeroDivisor);
        }
        match self.servers_per_rack {
            Some(0) => Err(WorkloadError::ZeroRack),
            Some(_) if !self.between_racks_only => Err(WorkloadError::RackWithoutEffect),
            _ => Ok(()),
        }
    }

    fn drawn_sizes(&self) -> Sizes<'_> {
        Sizes::new(&self.sizes, self.size_divisor, self.max_flow_bytes)
    }

    /// Mean time between two flows of a server.
    fn mean_interval_ns(&self, servers: &Servers, server: u32) -> f64 {
        busy_ns(self.mean_flow_bytes(), servers, server) * 100.0 / f64::from(self.load_percent)
    }
}

impl QuerySpec {
    fn check(&self, servers: u32) -> Result<(), WorkloadError> {
        if !(1..servers).contains(&self.fan_in) {
            return Err(WorkloadError::FanIn { fan_in: self.fan_in, most: servers.saturating_sub(1) });
        }
        if self.response.0 < u64::from(self.fan_in) {
            return Err(WorkloadError::Response { response: self.response, fan_in: self.fan_in });
        }
        match self.rate {
            QueryRate::Interval(Nanos(0)) => Err(WorkloadError::ZeroInterval),
            QueryRate::Interval(_) => Ok(()),
            QueryRate::LoadPercent(percent) => check_percent("query.rate.load-percent", percent),
        }
    }

    /// Mean time between two queries of a client.
    fn mean_interval_ns(&self, servers: &Servers, client: u32) -> f64 {
        match self.rate {
            QueryRate::Interval(mean) => mean.0 as f64,
            QueryRate::LoadPercent(percent) => {
                busy_ns(self.response.0 as f64, servers, client) * 100.0 / f64::from(percent)
            }
        }
    }
}

impl QueryRate {
    fn load_percent(self) -> Option<u32> {
        match self {
            Self::LoadPercent(percent) => Some(percent),
            Self::Interval(_) => None,
        }
    }
}

/// How long a server's link is busy with so much payload at the best possible goodput.
fn busy_ns(payload_bytes: f64, servers: &Servers, server: u32) -> f64 {
    let (payload, wire) = GOODPUT_OF_LINE_RATE;
    payload_bytes * 8e9 * wire as f64 / (payload as f64 * servers.rate(server).0 as f64)
}

fn check_percent(setting: &'static str, percent: u32) -> Result<(), WorkloadError> {
    if (1..=100).contains(&percent) { Ok(()) } else { Err(WorkloadError::Load { setting, percent }) }
}

fn check_sizes(sizes: &SizeDistribution) -> Result<(), WorkloadError> {
    match sizes {
        SizeDistribution::Fixed(Bytes(0)) => Err(WorkloadError::ZeroSize { setting: "background.sizes" }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
