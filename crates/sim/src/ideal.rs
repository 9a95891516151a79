//! How long a flow would take alone on an idle network.

use std::collections::BTreeMap;

use weft_scenario::id::NodeId;
use weft_scenario::switching::Forwarding;
use weft_scenario::workload::FlowSpec;

use crate::job::{Job, PacketSizes};
use crate::network::port::CUT_THROUGH_BYTES;
use crate::routes::Routes;
use crate::routes::walk::{Router, sender_of};
use crate::run;
use crate::time::{PS_PER_S, ps};

/// Answers for one job; remembers the ways it has looked at.
#[derive(Debug)]
pub struct IdealTimes<'a> {
    job: &'a Job,
    router: Router<'a>,
    servers: Vec<NodeId>,
    ways: BTreeMap<(u32, u32), Option<Vec<IdleHop>>>,
}

impl<'a> IdealTimes<'a> {
    /// For flows of this job while nothing has failed.
    pub fn new(job: &'a Job) -> Self {
        Self { job, router: run::router(job), servers: job.fabric.servers().collect(), ways: BTreeMap::new() }
    }

    /// The time from a flow's start to its last byte at the receiver, in picoseconds: alone on one of its equal-cost
    /// ways, all segments handed to the link at the start, without a handshake. `None` for flows without an end and
    /// for servers that are not there or have no way to each other.
    pub fn completion_ps(&mut self, flow: &FlowSpec) -> Option<u64> {
        let (job, router, servers) = (self.job, &mut self.router, &self.servers);
        let way = self.ways.entry((flow.from, flow.to)).or_insert_with(|| way(job, router, servers, flow));
        let hops = way.as_ref().filter(|_| flow.bytes > 0)?;
        Some(completion_ps(flow.bytes, hops, &job.settings.sizes, job.settings.switching.forwarding))
    }
}

fn way(job: &Job, router: &mut Router<'_>, servers: &[NodeId], flow: &FlowSpec) -> Option<Vec<IdleHop>> {
    let (from, to) = (*servers.get(flow.from as usize)?, *servers.get(flow.to as usize)?);
    let mut routes = Routes::default();
    let mut place = router.route(&mut routes, from, to, 0, None)?;
    let mut hops = Vec::new();
    loop {
        let hop = routes.hop(place);
        let spec = &job.fabric.link(sender_of(&job.fabric, hop.port()).0).spec;
        let propagation_ps = ps(spec.delay.0);
        hops.push(IdleHop { rate_bps: spec.rate.0, propagation_ps, extra_bytes: hop.extra_bytes() });
        place += 1;
        if routes.step(place).1.is_none() {
            return Some(hops);
        }
    }
}

/// One link of an idle way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdleHop {
    rate_bps: u64,
    propagation_ps: u64,
    /// Bytes around each IP packet on this wire.
    extra_bytes: u64,
}

/// For n segments over links of transmission times t_i for a full packet and propagations d_i this is
/// sum(t_i + d_i) + (n - 1) max(t_i), with a last segment that may be shorter.
fn completion_ps(bytes: u64, hops: &[IdleHop], sizes: &PacketSizes, forwarding: Forwarding) -> u64 {
    let segment = u64::from(sizes.segment_bytes);
    let segments = bytes.div_ceil(segment).max(1);
    let last_bytes = bytes - (segments - 1).min(bytes / segment) * segment;
    let time =
        |hop: &IdleHop, payload: u64| transmission_ps(hop, payload + u64::from(sizes.header_bytes) + hop.extra_bytes);
    // When the packets before the last have left the link, and when the last may start on it.
    let (mut cleared_ps, mut slowest_ps, mut first_ps, mut ready_ps) = (0, 0, 0, 0);
    for (place, hop) in hops.iter().enumerate() {
        let full_ps = time(hop, segment);
        let last_ps = time(hop, last_bytes);
        slowest_ps = full_ps.max(slowest_ps);
        if segments > 1 {
            cleared_ps = first_ps + full_ps + (segments - 2) * slowest_ps;
        }
        let start_ps = cleared_ps.max(ready_ps);
        let cuts_through = forwarding == Forwarding::CutThrough
            && hops.get(place + 1).is_some_and(|next| next.rate_bps <= hop.rate_bps);
        let seen = |packet_ps: u64| {
            if cuts_through { packet_ps.min(transmission_ps(hop, CUT_THROUGH_BYTES)) } else { packet_ps }
        };
        first_ps += seen(full_ps) + hop.propagation_ps;
        ready_ps = start_ps + seen(last_ps) + hop.propagation_ps;
    }
    ready_ps
}

fn transmission_ps(hop: &IdleHop, bytes: u64) -> u64 {
    (u128::from(bytes) * u128::from(8 * PS_PER_S) / u128::from(hop.rate_bps.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(rate_gbps: u64) -> IdleHop {
        IdleHop { rate_bps: rate_gbps * 1_000_000_000, propagation_ps: 1_000_000, extra_bytes: 0 }
    }

    fn ideal(bytes: u64, hops: &[IdleHop]) -> u64 {
        completion_ps(bytes, hops, &PacketSizes::bare(), Forwarding::StoreAndForward)
    }

    #[test]
    fn one_packet_is_sent_once_per_hop() {
        // 1500 B: 1.2 us at 10 Gb/s, 0.3 us at 40 Gb/s, 1 us of propagation each.
        let hops = [hop(10), hop(40), hop(40), hop(10)];
        assert_eq!(ideal(1_460, &hops), 4_000_000 + 2 * 1_200_000 + 2 * 300_000);
        // One byte: 41 B: 32.8 ns at 10 Gb/s, 8.2 ns at 40 Gb/s.
        assert_eq!(ideal(1, &hops), 4_000_000 + 2 * 32_800 + 2 * 8_200);
    }

    #[test]
    fn many_packets_wait_for_the_slowest_link_alone() {
        let hops = [hop(10), hop(40), hop(40), hop(10)];
        assert_eq!(ideal(14_600_000, &hops), 7_000_000 + 9_999 * 1_200_000);
        assert_eq!(ideal(14_600_000, &[hop(40), hop(10)]), 2_000_000 + 300_000 + 10_000 * 1_200_000);
        // The short last packet catches up with the full ones at the slow link and follows them out.
        assert_eq!(ideal(2 * 1_460 + 1, &[hop(40), hop(10)]), 2_000_000 + 300_000 + 2 * 1_200_000 + 32_800);
    }

    #[test]
    fn cut_through_hides_all_but_one_transmission() {
        let hops = [hop(10), hop(10), hop(10)];
        let sizes = PacketSizes::bare();
        // 64 B are 51.2 ns at 10 Gb/s.
        assert_eq!(completion_ps(1_460, &hops, &sizes, Forwarding::CutThrough), 3_000_000 + 2 * 51_200 + 1_200_000);
        let faster = [hop(10), hop(40)];
        assert_eq!(completion_ps(1_460, &faster, &sizes, Forwarding::CutThrough), 2_000_000 + 1_200_000 + 300_000);
    }
}
