//! Limits of services: agents are started again with one for a trial, and as they were afterwards.

use weft_node::agent::{RateLimitConfig, RateLimitedTraffic, status};
use weft_scenario::engine::{Overlay, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::workload::services::{DatagramLimit, ServiceRole, ServicesSpec};

use crate::daemons::Launcher;
use crate::error::LabError;
use crate::options::LabOptions;
use crate::overlay::{self, AgentLimits, status_socket};
use crate::up::Lab;

/// Names of the counters in the agents' data paths, and of the fact about a trial.
const COUNTERS: [&str; 2] = ["rate_limited", "broadcast_limited"];
const FACT: &str = "agent.rate_limited_frames";

/// Agents with a limit.
pub(crate) struct Limited {
    servers: Vec<NodeId>,
    /// Frames that their data paths had dropped before.
    dropped_before: u64,
}

/// Starts the agents of services with a limit again, with it. `None` if there are none.
pub(crate) fn set(
    lab: &mut Lab,
    options: &LabOptions,
    progress: &dyn Progress,
    spec: &ServicesSpec,
) -> Result<Option<Limited>, LabError> {
    let numbered: Vec<NodeId> = lab.scenario.fabric.servers().collect();
    let limited = spec.service.values().filter_map(|service| Some((service, service.datagram_limit?)));
    let configs: Vec<(NodeId, AgentLimits)> = limited
        .flat_map(|(service, limit)| service.servers.iter().map(move |server| (*server, of_role(service.role, limit))))
        .map(|(server, limits)| (numbered[server as usize], limits))
        .collect();
    if configs.is_empty() {
        return Ok(None);
    }
    if lab.scenario.overlay != Overlay::Vl2 {
        return Err(LabError::Traffic("`datagram_limit` is an agent's; it needs the overlay `vl2`".to_owned()));
    }
    let servers: Vec<NodeId> = configs.iter().map(|(server, _)| *server).collect();
    overlay::restart_agents(lab, &Launcher { options, progress }, &configs)?;
    let dropped_before = dropped(lab, &servers);
    Ok(Some(Limited { servers, dropped_before }))
}

/// A storm's limit is that of broadcast, another's that of datagrams to one server.
fn of_role(role: ServiceRole, limit: DatagramLimit) -> AgentLimits {
    let rate = RateLimitConfig {
        bits_per_s: limit.rate.0,
        burst_bytes: u32::try_from(limit.burst.0).unwrap_or(u32::MAX),
        traffic: RateLimitedTraffic::NonTcp,
    };
    match role {
        ServiceRole::Storm(_) => AgentLimits { broadcast: Some(limit), ..AgentLimits::default() },
        _ => AgentLimits { rate: Some(rate), ..AgentLimits::default() },
    }
}

impl Limited {
    /// How many frames the limits have dropped, as a fact of the trial.
    pub(crate) fn fact(&self, lab: &Lab) -> (String, f64) {
        (FACT.to_owned(), dropped(lab, &self.servers).saturating_sub(self.dropped_before) as f64)
    }

    /// Starts the agents again as they were.
    pub(crate) fn lift(self, lab: &mut Lab, options: &LabOptions, progress: &dyn Progress) -> Result<(), LabError> {
        let configs: Vec<_> = self.servers.into_iter().map(|server| (server, AgentLimits::default())).collect();
        overlay::restart_agents(lab, &Launcher { options, progress }, &configs)
    }
}

/// Frames that the data paths of these servers have dropped at their limits since they were first attached.
fn dropped(lab: &Lab, servers: &[NodeId]) -> u64 {
    let of = |server: &NodeId| {
        let socket = status_socket(&lab.state.lab, &lab.plan.node(*server).name);
        let counters = status::read(socket).ok()?.datapath;
        Some(COUNTERS.iter().filter_map(|name| counters.get(*name)).sum::<u64>())
    };
    servers.iter().filter_map(of).sum()
}
