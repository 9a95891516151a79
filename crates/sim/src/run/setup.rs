//! From a job to a network at rest: ports, shared buffers, hosts; everything that cannot work is refused here.

use std::collections::BTreeSet;

use weft_scenario::engine::Overlay;
use weft_scenario::fault::check_faults;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::switching::{BufferPolicy, Forwarding, HostQueue, LoadBalance};
use weft_scenario::workload::WorkloadError;

use super::datagrams::DATAGRAM_HEADER_BYTES;
use super::host::Host;
use crate::error::SimError;
use crate::job::{Job, Source};
use crate::network::pool::Pool;
use crate::network::port::{NO_POOL, PortSetup, Wire};
use crate::network::{Network, PORTS_MAX};
use crate::routes::walk::{Router, RouterSettings, port_of, sender_of};
use crate::routes::{Hop, Stage, outer_bytes};
use crate::time::{PS_PER_S, ps};

/// Longest payload of a packet, in bytes: its length must fit into 16 bits (RFC 791).
const IP_BYTES_MAX: u64 = 65_535;

/// The network of a job, with nothing on its links.
pub(super) fn network(job: &Job) -> Result<Network, SimError> {
    let fabric = &job.fabric;
    let links = fabric.links().len();
    if 2 * links > PORTS_MAX {
        return Err(SimError::TooManyLinks { links, most: PORTS_MAX / 2 });
    }
    let pool_of = pool_places(job);
    let setups = (0..2 * links).map(|port| port_setup(job, port as u32, &pool_of));
    let mut network = Network::new(setups, pools(job), job.settings.seed);
    let packet_bytes = longest_on_wire_bytes(job);
    for number in 0..network.ports.len() as u32 {
        check_speed(job, number, packet_bytes, network.ports.wire(number), network.hop_max_ps())?;
    }
    for link in (0..links as u32).map(LinkId) {
        if job.watch.queue_classes.contains(&fabric.link_class(link)) {
            network.measure(2 * link.0);
            network.measure(2 * link.0 + 1);
        }
    }
    Ok(network)
}

/// The routing tables of a job's fabric while nothing has failed.
pub(crate) fn router(job: &Job) -> Router<'_> {
    let switching = &job.settings.switching;
    let settings = RouterSettings {
        overlay: job.settings.overlay,
        spanning_tree: switching.load_balance == LoadBalance::SpanningTree,
        cut_through: switching.forwarding == Forwarding::CutThrough,
        framing_bytes: job.settings.sizes.framing_bytes,
        seed: job.settings.seed,
    };
    let addresses = job.addresses.as_ref().filter(|_| job.settings.overlay == Overlay::Vl2);
    Router::new(&job.fabric, addresses, settings, &BTreeSet::new())
}

/// The servers of a job, in order.
pub(super) fn hosts(job: &Job, network: &Network) -> Vec<Host> {
    let packet_bytes = u64::from(
        job.settings.sizes.segment_bytes + job.settings.sizes.header_bytes + job.settings.sizes.framing_bytes,
    );
    let host = |server: NodeId| {
        let (_, link) = job.fabric.edge_of(server)?;
        let nic = port_of(&job.fabric, link, server);
        let limit = match job.settings.switching.host_queue {
            HostQueue::BackPressure { limit } => Some(limit.0),
            HostQueue::DropTail { .. } => None,
        };
        Some(Host::new(server, nic, limit, network.ports.wire(nic), packet_bytes))
    };
    job.fabric.servers().filter_map(host).collect()
}

/// Refuses what cannot run on this fabric, before anything runs.
pub(super) fn check(job: &Job) -> Result<(), SimError> {
    check_settings(job)?;
    check_faults(&job.faults, &job.fabric)?;
    let servers: Vec<NodeId> = job.fabric.servers().collect();
    let count = servers.len() as u32;
    let flows = match &job.source {
        Source::Flows(flows) => flows.as_slice(),
        Source::Mix(_) => &[],
    };
    let streams = job.datagrams.iter().map(|stream| (stream.spec.from, stream.spec.to));
    let ends = flows.iter().map(|flow| (flow.spec.from, flow.spec.to)).chain(streams);
    for (place, (from, to)) in ends.enumerate() {
        let outside = [from, to].into_iter().find(|server| *server >= count);
        let why = match outside {
            Some(server) => Some(WorkloadError::NoSuchServer { server, servers: count }),
            None => (from == to).then_some(WorkloadError::ToItself { server: from }),
        };
        if let Some(why) = why {
            return Err(SimError::BadFlow { flow: place, why });
        }
    }
    let outer_bytes = outer_bytes(job.settings.overlay, Stage::FromHost) as u32;
    Ok(job.fabric.check_packet(longest_packet_bytes(job) + outer_bytes)?)
}

/// At least what any packet takes on any wire, whatever is put around it.
pub(super) fn longest_on_wire_bytes(job: &Job) -> u64 {
    u64::from(longest_packet_bytes(job) + Hop::EXTRA_BYTES_MAX)
}

/// Of all that hosts send.
fn longest_packet_bytes(job: &Job) -> u32 {
    let datagram = job.datagrams.iter().map(|stream| stream.payload_bytes + DATAGRAM_HEADER_BYTES).max().unwrap_or(0);
    datagram.max(job.settings.sizes.segment_bytes + job.settings.sizes.header_bytes)
}

fn check_settings(job: &Job) -> Result<(), SimError> {
    let sizes = &job.settings.sizes;
    let bad = |setting, value: u32, advice| Err(SimError::BadSetting { setting, value: value.into(), advice });
    if sizes.segment_bytes == 0 {
        return bad("segment_bytes", 0, "give a segment at least one byte of payload");
    }
    if u64::from(sizes.segment_bytes) + u64::from(sizes.header_bytes) > IP_BYTES_MAX {
        return bad("segment_bytes", sizes.segment_bytes, "an IP packet has at most 65535 bytes");
    }
    if sizes.framing_bytes > 1_024 {
        return bad("framing_bytes", sizes.framing_bytes, "Ethernet's framing is 38 bytes; choose up to 1024");
    }
    for stream in &job.datagrams {
        if stream.payload_bytes == 0 {
            return bad("payload_bytes", 0, "give a datagram at least one byte of payload");
        }
        if u64::from(stream.payload_bytes) + u64::from(DATAGRAM_HEADER_BYTES) > IP_BYTES_MAX {
            return bad("payload_bytes", stream.payload_bytes, "an IP packet has at most 65535 bytes");
        }
    }
    if job.settings.overlay == Overlay::Vl2 {
        if job.addresses.is_none() {
            return Err(SimError::BadCombination("VL2 needs an address plan for its anycast groups"));
        }
        if job.settings.switching.load_balance == LoadBalance::SpanningTree {
            return Err(SimError::BadCombination(
                "VL2 bounces packets off any Intermediate; a spanning tree has one path",
            ));
        }
    }
    Ok(())
}

fn check_speed(job: &Job, number: u32, packet_bytes: u64, wire: &Wire, hop_max_ps: u64) -> Result<(), SimError> {
    let queue_bytes = queue_bytes(job, number).saturating_add(packet_bytes);
    let hop_ps = wire.transmission_ps(queue_bytes).saturating_add(wire.propagation_ps);
    if hop_ps >= hop_max_ps {
        let link = job.fabric.link_name(sender_of(&job.fabric, number).0);
        return Err(SimError::TooSlow { link, most_ms: hop_max_ps / (PS_PER_S / 1_000) });
    }
    Ok(())
}

/// Most bytes that wait at a port; where its switch has a shared pool, all of that.
fn queue_bytes(job: &Job, number: u32) -> u64 {
    let (link, node) = sender_of(&job.fabric, number);
    let role = job.fabric.node(node).role;
    let switching = &job.settings.switching;
    match switching.host_queue {
        HostQueue::BackPressure { limit } | HostQueue::DropTail { limit } if !role.is_switch() => limit.0,
        _ => switching.buffer.pool_of(role).unwrap_or(job.fabric.link(link).spec.buffer).0,
    }
}

/// One shared buffer for each switch, in their order, where buffers are shared.
fn pools(job: &Job) -> Vec<Pool> {
    let BufferPolicy::SharedPool { dynamic_alpha_milli, .. } = job.settings.switching.buffer else {
        return Vec::new();
    };
    let fabric = &job.fabric;
    let pool = |switch: NodeId| {
        let size = job.settings.switching.buffer.pool_of(fabric.node(switch).role)?;
        let ports = fabric.links_of(switch).iter().map(|link| port_of(fabric, *link, switch)).collect();
        Some(Pool::new(size.0, dynamic_alpha_milli, ports))
    };
    fabric.switches().filter_map(pool).collect()
}

/// For each node the place of its pool; [`NO_POOL`] for hosts and where each port has a buffer of its own.
fn pool_places(job: &Job) -> Vec<u32> {
    let mut places = vec![NO_POOL; job.fabric.nodes().len()];
    if matches!(job.settings.switching.buffer, BufferPolicy::SharedPool { .. }) {
        (0..).zip(job.fabric.switches()).for_each(|(place, switch)| places[switch.index()] = place);
    }
    places
}

fn port_setup(job: &Job, number: u32, pool_of: &[u32]) -> PortSetup {
    let (link, node) = sender_of(&job.fabric, number);
    let spec = &job.fabric.link(link).spec;
    let switching = &job.settings.switching;
    let is_switch = job.fabric.node(node).role.is_switch();
    let pool = pool_of[node.index()];
    let limit_bytes = match switching.host_queue {
        HostQueue::DropTail { limit } if !is_switch => Some(limit.0),
        _ if is_switch && pool == NO_POOL => Some(spec.buffer.0),
        _ => None,
    };
    let mark_bytes = switching.ecn_threshold.filter(|_| is_switch).map(|bytes| bytes.0);
    PortSetup { wire: Wire::new(spec.rate.0, ps(spec.delay.0)), limit_bytes, mark_bytes, pool }
}
