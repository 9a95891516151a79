//! The agents of a lab: `weft node agent` on every server.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_datapath::host::HostMaps;
use weft_node::DaemonKind;
use weft_node::agent::{AGENT_PORT, AgentConfig, BroadcastConfig, RateLimitConfig, SpreadConfig, status};
use weft_scenario::addressing::{LA_BLOCK, VIRTUAL_MAC};
use weft_scenario::engine::Overlay;
use weft_scenario::id::NodeId;
use weft_scenario::switching::LoadBalance;
use weft_scenario::topology::{Broadcast, Delivery, broadcast_group};
use weft_scenario::workload::services::DatagramLimit;
use weft_wire::ethernet::MacAddress;

use super::directory::{self, KEY_ID};
use super::switches::datapath_error;
use crate::daemons::{Launcher, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::process::kill_all;
use crate::up::Lab;

/// Unix socket on which a server's agent tells its state.
pub fn status_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.status"))
}

/// Starts the agents of those of the nodes that are servers and waits until their data paths are at work.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>, nodes: &[NodeId]) -> Result<(), LabError> {
    let servers: Vec<NodeId> = lab.scenario.fabric.servers().filter(|server| nodes.contains(server)).collect();
    let mut configs: Vec<(NodeId, AgentConfig)> =
        servers.into_iter().filter_map(|server| Some((server, config(lab, server)?))).collect();
    for (server, config) in &mut configs {
        config.key_file = Some(directory::write_key(lab, *server, config.service)?);
    }
    start_configured(lab, launcher, &configs)
}

fn start_configured(lab: &mut Lab, launcher: &Launcher<'_>, configs: &[(NodeId, AgentConfig)]) -> Result<(), LabError> {
    start_all(lab, launcher, DaemonKind::Agent, configs, |lab, node| {
        status::read(status_socket(&lab.state.lab, &lab.plan.node(node).name)).is_ok()
    })
}

/// What an agent lets out, other than the fabric says.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentLimits {
    pub(crate) rate: Option<RateLimitConfig>,
    /// In place of the fabric's; `None`: the fabric's.
    pub(crate) broadcast: Option<DatagramLimit>,
}

/// Starts agents that run again, each with limits of its own, and waits for them; their data paths work on meanwhile.
pub(crate) fn restart(
    lab: &mut Lab,
    launcher: &Launcher<'_>,
    limits: &[(NodeId, AgentLimits)],
) -> Result<(), LabError> {
    let mut configs = Vec::new();
    for (server, limits) in limits {
        let planned = planned(lab, *server)?;
        let key_file = Some(directory::write_key(lab, *server, planned.service)?);
        let broadcast = planned.broadcast.map(|broadcast| limited(broadcast, limits.broadcast));
        configs.push((*server, AgentConfig { rate_limit: limits.rate.clone(), key_file, broadcast, ..planned }));
    }
    let names: Vec<&str> = limits.iter().map(|(server, _)| lab.plan.node(*server).name.as_str()).collect();
    let agents = lab.state.processes.iter().filter(|one| one.daemon == "agent" && names.contains(&one.node.as_str()));
    kill_all(&agents.map(|agent| agent.id).collect::<Vec<_>>());
    start_configured(lab, launcher, &configs)
}

/// Starts the agent of a server that has come to another rack, or home, and waits until its data path is at work; see
/// [`crate::migration`].
pub(crate) fn start_at(
    lab: &mut Lab,
    launcher: &Launcher<'_>,
    server: NodeId,
    edge: NodeId,
    la: Ipv4Addr,
) -> Result<(), LabError> {
    let planned = planned(lab, server)?;
    let key_file = Some(directory::write_key_at(lab, server, planned.service, la)?);
    let config = AgentConfig { la, own_tor_la: lab.scenario.addresses.la(edge), key_file, ..planned };
    start_configured(lab, launcher, &[(server, config)])
}

/// How often the agents have moved a flow to another path so far; `None` where none does.
pub(crate) fn moves(lab: &Lab) -> Result<Option<u64>, LabError> {
    if lab.scenario.overlay != Overlay::Vl2 || spread(lab.scenario.switching.load_balance).is_none() {
        return Ok(None);
    }
    let of_server = |server: NodeId| {
        let name = &lab.plan.node(server).name;
        let counters = HostMaps::open_pinned(lab.pins(name)).and_then(|maps| maps.spread_counters());
        let counters = counters.map_err(|error| datapath_error(name, &error))?;
        Ok(counters.into_iter().filter(|(what, _)| what.starts_with("moved")).map(|(_, count)| count).sum::<u64>())
    };
    lab.scenario.fabric.servers().map(of_server).sum::<Result<u64, LabError>>().map(Some)
}

fn planned(lab: &Lab, server: NodeId) -> Result<AgentConfig, LabError> {
    config(lab, server).ok_or_else(|| LabError::NoAgent(lab.plan.node(server).name.clone()))
}

fn config(lab: &Lab, server: NodeId) -> Option<AgentConfig> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let (edge, link) = fabric.edge_of(server)?;
    let name = &lab.plan.node(server).name;
    Some(AgentConfig {
        interface: fabric.link(link).end_at(server)?.interface.clone(),
        aa: addresses.aa(server)?,
        aa_block: addresses.aa_block().to_string(),
        la: addresses.la(server),
        public_la: addresses.outside().and_then(|outside| outside.public_la(server)),
        port: AGENT_PORT,
        own_tor_la: addresses.la(edge),
        gateway_mac: MacAddress(VIRTUAL_MAC).to_string(),
        underlay_mtu: fabric.links().iter().map(|link| link.spec.mtu_bytes).min()?,
        // Fabrics with narrow links somewhere: what servers send must fit everywhere.
        clamp_mtu: true,
        directory_servers: directory::servers(lab),
        key_file: None,
        key_id: KEY_ID,
        service: fabric.service_of(server),
        pin_dir: Some(lab.pins(name)),
        rack_direct: false,
        spread: spread(lab.scenario.switching.load_balance),
        broadcast: broadcast(lab, server),
        socket: status_socket(&lab.state.lab, name),
        ..AgentConfig::example()
    })
}

/// Whom a server's broadcast reaches: the servers of its service where the fabric has them. One that has come to another rack
/// is a stranger there until its agents' settings say where it is.
fn broadcast(lab: &Lab, server: NodeId) -> Option<BroadcastConfig> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let Broadcast { delivery, limit, burst } = fabric.broadcast()?;
    let service = fabric.service_of(server);
    Some(BroadcastConfig {
        members: fabric.servers_of(service).map(|member| addresses.la(member)).collect(),
        group: (delivery == Delivery::Group).then(|| broadcast_group(service)),
        la_block: LA_BLOCK.to_string(),
        bits_per_s: limit.0,
        burst_bytes: u32::try_from(burst.0).unwrap_or(u32::MAX),
    })
}

fn limited(broadcast: BroadcastConfig, limit: Option<DatagramLimit>) -> BroadcastConfig {
    match limit {
        Some(DatagramLimit { rate, burst }) => {
            BroadcastConfig { bits_per_s: rate.0, burst_bytes: u32::try_from(burst.0).unwrap_or(u32::MAX), ..broadcast }
        }
        None => broadcast,
    }
}

/// What agents can do about load balance: choose other paths for flows under way. The rest is a matter of switches.
fn spread(load_balance: LoadBalance) -> Option<SpreadConfig> {
    let micros = |time: weft_scenario::units::Nanos| time.0 / 1_000;
    match load_balance {
        LoadBalance::Rehash { hold, large, only_timeouts } => {
            Some(SpreadConfig::Rehash { hold_us: micros(hold), large_bytes: large.0, only_timeouts })
        }
        LoadBalance::Flowlet { gap } => Some(SpreadConfig::Flowlets { gap_us: micros(gap) }),
        LoadBalance::FlowEcmp | LoadBalance::PacketSpray | LoadBalance::SpanningTree => None,
    }
}
