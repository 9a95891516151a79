//! The data-centre mix: every server keeps a number of flows going; one that completes is followed by the next. It sends at a
//! steady rate, which its flows share evenly, or each flow as fast as TCP lets it.
//!
//! The rate is handed out in quanta of eight segments, to one flow after the other, as a paced application writes.

use std::collections::VecDeque;

use weft_scenario::workload::{FlowSpec, MixServer, MixSpec, SizeDistribution};

use super::SoFar;
use super::flow::{Phase, mix_id, segments_of};
use super::part::Part;
use super::timers::Timer;
use crate::error::SimError;
use crate::hash::scramble;
use crate::job::{Flow, Source};
use crate::outcome::FlowOutcome;
use crate::time::{PS_PER_NS, PS_PER_S};

/// Segments that a flow may write at once.
const QUANTUM_SEGMENTS: u32 = 8;
/// A flow that the network holds back saves up no more than this.
const CREDIT_SEGMENTS: u32 = 4 * QUANTUM_SEGMENTS;
/// Before the run, each of a server's flows is taken as having followed on so many mean flows: nearly all flows are mice
/// and nearly all bytes in elephants, so fresh flows would be a storm of mice until every place has drawn an elephant.
const AGE_FLOWS: u64 = 512;

/// At the paper's size beginning takes a minute.
const SERVERS_PER_REPORT: u32 = 1_024;

/// The sources of all servers.
#[derive(Debug)]
pub(super) struct Mix {
    /// `None`: flows may send all they have at once.
    rate_bps: Option<u64>,
    /// By the server's number; those of other parts have none.
    servers: Vec<Option<MixSource>>,
}

/// The source of one server.
#[derive(Debug)]
struct MixSource {
    flows: MixServer,
    /// Flows that it has begun.
    begun: u32,
    /// Places of connected flows that have more to send, in the order of their turns.
    turns: VecDeque<u32>,
}

impl Part<'_> {
    /// Starts every server's flows here in the middle of their lives, as after a long time, and tells `follow` now and then how far it is.
    pub(super) fn begin_mix(&mut self, follow: &mut dyn FnMut(SoFar) -> Result<(), SimError>) -> Result<(), SimError> {
        let Source::Mix(spec) = &self.job.source else { return Ok(()) };
        let count = self.hosts.len() as u32;
        let source = |server| -> Result<Option<MixSource>, SimError> {
            if self.cut.part_of_host(server) != self.number {
                return Ok(None);
            }
            let flows = MixServer::new(spec, count, server, self.job.settings.seed)?;
            Ok(Some(MixSource { flows, begun: 0, turns: VecDeque::new() }))
        };
        let servers = (0..count).map(source).collect::<Result<_, _>>()?;
        self.mix = Some(Mix { rate_bps: spec.offered_rate_per_server.map(|rate| rate.0), servers });
        for server in (0..count).filter(|server| self.cut.part_of_host(*server) == self.number).collect::<Vec<u32>>() {
            self.begin_server(server, spec);
            if server % SERVERS_PER_REPORT == 0 {
                follow(self.so_far())?;
            }
        }
        Ok(())
    }

    fn begin_server(&mut self, server: u32, spec: &MixSpec) {
        let age_bytes = AGE_FLOWS * (SizeDistribution::Vl2Mix.mean_bytes() / u64::from(spec.size_divisor)).max(1);
        for _ in 0..self.source_of(server).map_or(0, |source| source.flows.concurrency()) {
            let Some(source) = self.source_of(server) else { return };
            let (to, bytes) = source.flows.flow_under_way(age_bytes);
            self.begin_flow(server, to, bytes);
        }
        if spec.offered_rate_per_server.is_none() {
            return;
        }
        // Servers hand out their quanta out of step.
        let quantum_ps = self.quantum_ps(QUANTUM_SEGMENTS);
        let phase = scramble(self.job.settings.seed ^ u64::from(server)) % quantum_ps.max(1);
        self.arm(self.network.now_ps + phase, Timer::Source(server));
    }

    /// Starts the flow that follows one of this server's that has ended.
    pub(super) fn begin_next_of_mix(&mut self, server: u32) {
        if let Some((to, bytes)) = self.source_of(server).map(|source| source.flows.next_flow()) {
            self.begin_flow(server, to, bytes);
        }
    }

    fn begin_flow(&mut self, from: u32, to: u32, bytes: u64) {
        let Some(source) = self.source_of(from) else { return };
        let id = mix_id(from, source.begun);
        source.begun += 1;
        let start_ns = self.network.now_ps / PS_PER_NS;
        let spec = FlowSpec::bulk(from, to, bytes, start_ns);
        let number = self.outcomes.len() as u32;
        self.outcomes.push(FlowOutcome::not_started(spec));
        let is_paced = self.mix.as_ref().is_none_or(|mix| mix.rate_bps.is_some());
        let granted = if is_paced { 0 } else { segments_of(bytes, &self.job.settings.sizes).0 };
        let flow = Flow::from(spec);
        let who = self.identity(&flow, number, id);
        self.start(who, &flow, granted);
    }

    /// A connection is up: its flow takes part in its server's rate.
    pub(super) fn mix_flow_opened(&mut self, place: u32) {
        let flow = &self.senders[place as usize];
        let server = flow.who.from;
        if flow.granted == flow.who.segments {
            return;
        }
        if let Some(source) = self.source_of(server) {
            source.turns.push_back(place);
        }
    }

    /// Lets the next flow of a server write, and sets a timer for when the server's rate allows for more.
    pub(super) fn grant(&mut self, server: u32) {
        let segments = self.next_in_turn(server).map_or(QUANTUM_SEGMENTS, |place| self.grant_to(place, server));
        let wait_ps = self.quantum_ps(segments);
        self.arm(self.network.now_ps.saturating_add(wait_ps), Timer::Source(server));
    }

    /// The flow whose turn it is, taken out of the row. Flows that have saved up enough keep their places and are passed.
    fn next_in_turn(&mut self, server: u32) -> Option<u32> {
        let source = &mut self.mix.as_mut()?.servers[server as usize].as_mut()?;
        for _ in 0..source.turns.len() {
            let place = source.turns.pop_front()?;
            let flow = &self.senders[place as usize];
            if flow.phase == Phase::Open && flow.who.from == server {
                let sent = flow.sender.acknowledged() + flow.sender.outstanding();
                if flow.granted - sent < CREDIT_SEGMENTS {
                    return Some(place);
                }
                source.turns.push_back(place);
            }
        }
        None
    }

    fn grant_to(&mut self, place: u32, server: u32) -> u32 {
        let flow = &mut self.senders[place as usize];
        let segments = QUANTUM_SEGMENTS.min(flow.who.segments - flow.granted);
        flow.granted += segments;
        flow.sender.add_segments(segments);
        let has_more = flow.granted < flow.who.segments;
        self.pump(place);
        if let Some(source) = self.source_of(server).filter(|_| has_more) {
            source.turns.push_back(place);
        }
        segments
    }

    fn source_of(&mut self, server: u32) -> Option<&mut MixSource> {
        self.mix.as_mut()?.servers[server as usize].as_mut()
    }

    /// How long a server takes for so many segments at its rate.
    fn quantum_ps(&self, segments: u32) -> u64 {
        let bits = u128::from(segments) * u128::from(self.job.settings.sizes.segment_bytes) * 8;
        let rate_bps = self.mix.as_ref().and_then(|mix| mix.rate_bps).unwrap_or(1).max(1);
        u64::try_from(bits * u128::from(PS_PER_S) / u128::from(rate_bps)).unwrap_or(u64::MAX).max(1)
    }
}
