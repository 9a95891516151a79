//! What is recorded during a run and after it.

use super::flow::{Phase, SenderEnd};
use super::part::{Part, after};
use super::timers::Timer;
use super::{Simulation, SoFar};
use crate::error::SimError;
use crate::job::{Flow, Source};
use crate::outcome::{
    DatagramOutcome, FlowOutcome, FlowWay, Outcome, PortCounters, PortOutcome, Sample, TcpSample, Totals,
};
use crate::routes::walk::sender_of;

impl<'a> Simulation<'a> {
    /// Records progress and link counters, and will again.
    pub(super) fn sample(&mut self) -> Result<(), SimError> {
        self.add_sample();
        if let Some(interval) = self.job.watch.sample_interval {
            self.timers.add(after(self.now_ps, interval), Timer::Sample);
        }
        self.parts.iter().try_for_each(Part::check_pools)?;
        let so_far = self.parts.iter().map(Part::so_far).fold(SoFar::default(), SoFar::and);
        self.watcher.report(so_far)
    }

    fn add_sample(&mut self) {
        let totals = self.totals();
        self.samples.push(Sample {
            time_ps: self.now_ps,
            received_bytes: totals.received_bytes,
            flows_done: totals.flows_done,
            services: self.received_by_service(),
            ports: (0..self.ports()).map(|port| self.counters(port)).collect(),
        });
    }

    /// Payload that has reached the servers of each service.
    fn received_by_service(&self) -> Vec<u64> {
        let services = &self.job.watch.services;
        if services.is_empty() {
            return Vec::new();
        }
        let mut by_server = vec![0; self.parts.first().map_or(0, |part| part.hosts.len())];
        for part in &self.parts {
            part.datagrams.add_received_bytes(&mut by_server);
            for outcome in &part.outcomes {
                by_server[outcome.spec.to as usize] += outcome.received_bytes;
            }
            // A flow's outcome is filled in when all of it has arrived.
            for end in part.receivers.iter().filter(|end| !end.is_gone && !end.who.is_stream) {
                if end.receiver.delivered() < end.who.segments {
                    by_server[end.who.to as usize] += end.delivered_bytes(&self.job.settings.sizes);
                }
            }
        }
        let of = |servers: &Vec<u32>| servers.iter().map(|server| by_server[*server as usize]).sum();
        services.iter().map(|(_, servers)| of(servers)).collect()
    }

    /// Records every open TCP sender, and will again.
    pub(super) fn sample_tcp(&mut self) {
        let ends = self.parts.iter().flat_map(|part| &part.senders);
        let mut open: Vec<&SenderEnd> = ends.filter(|end| end.phase == Phase::Open).collect();
        open.sort_by_key(|end| end.who.id);
        self.tcp_samples.extend(open.into_iter().map(|end| TcpSample {
            time_ps: self.now_ps,
            from: end.who.from,
            to: end.who.to,
            cwnd_segments: end.sender.cwnd(),
            srtt_ps: end.sender.srtt().unwrap_or(0),
            retransmits: end.sender.retransmits(),
        }));
        if let Some(interval) = self.job.watch.tcp_interval {
            self.timers.add(after(self.now_ps, interval), Timer::SampleTcp);
        }
    }

    /// Everything that the run has yielded.
    pub(super) fn into_outcome(mut self) -> Outcome {
        if self.job.watch.sample_interval.is_some() && self.samples.last().is_none_or(|last| last.time_ps < self.now_ps)
        {
            self.add_sample();
        }
        let last = self.moment();
        self.end_unfinished_flows();
        self.parts.iter_mut().for_each(|part| part.network.finish_histograms());
        let totals = Totals { packet_hops: self.packet_hops(), ..self.totals() };
        let ports = (0..self.ports()).map(|number| self.port_outcome(number)).collect();
        let (flows, numbers) = self.flows();
        let datagrams = self.datagrams();
        let mut places = vec![0; numbers.len()];
        (0..).zip(&numbers).for_each(|(place, number)| places[*number as usize] = place);
        let place = |number: u32| places.get(number as usize).copied().unwrap_or(number);
        let mut replay = self.reel.finish(last);
        for window in replay.iter_mut().flat_map(|moment| &mut moment.windows) {
            window.flow = place(window.flow as u32).into();
        }
        let ways = self.parts.into_iter().flat_map(|part| part.followed.finish());
        let mut ways: Vec<FlowWay> = ways.map(|way| FlowWay { flow: place(way.flow), ..way }).collect();
        ways.sort_by_key(|way| (way.time_ps, way.flow));
        Outcome {
            datagrams,
            flows,
            totals,
            ports,
            samples: self.samples,
            replay,
            ways,
            tcp: self.tcp_samples,
            events: self.events,
            end_ps: self.now_ps,
        }
    }

    /// Flows that the end of the run cut off keep what they got; those without an end of their own are complete.
    fn end_unfinished_flows(&mut self) {
        let mut received = Vec::new();
        for part in &mut self.parts {
            for end in part.senders.iter().filter(|end| matches!(end.phase, Phase::Opening | Phase::Open)) {
                let outcome = &mut part.outcomes[end.who.number as usize];
                outcome.retransmits = end.sender.retransmits();
                part.totals.timeouts += u64::from(end.sender.timeouts());
                if outcome.spec.bytes == 0 {
                    outcome.received_ps = Some(self.now_ps);
                }
            }
            let live = part.receivers.iter().filter(|end| !end.is_gone && !end.who.is_stream);
            received.extend(live.map(|end| (end.who, end.delivered_bytes(&self.job.settings.sizes))));
        }
        for (who, bytes) in received {
            let part = &mut self.parts[self.cut.part_of_host(who.from) as usize];
            part.outcomes[who.number as usize].received_bytes = bytes;
        }
    }

    /// Flows in the order of their list, or else of their starts, those of one time by their servers; and the numbers that they
    /// had in a run of one part.
    fn flows(&self) -> (Vec<FlowOutcome>, Vec<u32>) {
        let all = |part: &'_ Part<'a>| (0..).zip(part.outcomes.clone()).collect::<Vec<(u32, FlowOutcome)>>();
        if let Source::Flows(flows) = &self.job.source {
            let part = |flow: &Flow| &self.parts[self.cut.part_of_host(flow.spec.from) as usize];
            return (0..).zip(flows).map(|(place, flow)| (part(flow).outcomes[place as usize], place)).unzip();
        }
        let mut flows: Vec<(u32, FlowOutcome)> = self.parts.iter().flat_map(all).collect();
        flows.sort_by_key(|(_, outcome)| (outcome.spec.start_ns, outcome.spec.from));
        flows.into_iter().map(|(number, outcome)| (outcome, number)).unzip()
    }

    fn datagrams(&self) -> Vec<DatagramOutcome> {
        let mut parts = self.parts.iter();
        let mut all: Vec<DatagramOutcome> = parts.next().map_or(Vec::new(), |part| part.datagrams.outcomes().collect());
        for part in parts {
            all.iter_mut().zip(part.datagrams.outcomes()).for_each(|(all, part)| all.add(&part));
        }
        all
    }

    pub(super) fn totals(&self) -> Totals {
        self.parts.iter().fold(Totals::default(), |totals, part| totals.and(&part.totals))
    }

    fn port_outcome(&self, number: u32) -> PortOutcome {
        let (link, node) = sender_of(&self.job.fabric, number);
        let part = &self.parts[self.cut.sends_from(&self.job.fabric, number) as usize];
        let queue = &part.network.histograms[number as usize];
        let queue = queue.as_ref().map_or(Vec::new(), |histogram| histogram.rows().collect());
        PortOutcome { link, node, counters: self.counters(number), queue }
    }

    pub(super) fn counters(&self, number: u32) -> PortCounters {
        let mut counters = PortCounters::default();
        for part in &self.parts {
            let (carried, drops) = (part.network.ports[number].carried(), &part.network.drops[number as usize]);
            counters.packets += carried.packets;
            counters.bytes += carried.bytes;
            counters.drops += drops.refused.packets + drops.lost.packets;
        }
        counters
    }

    /// How many ports there are.
    pub(super) fn ports(&self) -> u32 {
        self.parts.first().map_or(0, |part| part.network.ports.len() as u32)
    }
}
