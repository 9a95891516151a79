//! What is recorded during a run and after it.

use super::Simulation;
use super::flow::Phase;
use super::timers::Timer;
use crate::error::SimError;
use crate::outcome::{Outcome, PortCounters, PortOutcome, Sample, TcpSample};
use crate::routes::walk::sender_of;
use crate::time::ps;

impl<'a> Simulation<'a> {
    /// Records progress and link counters, and will again.
    pub(super) fn sample(&mut self) -> Result<(), SimError> {
        self.add_sample();
        if let Some(interval) = self.job.watch.sample_interval {
            self.arm(self.network.now_ps.saturating_add(ps(interval.0.max(1))), Timer::Sample);
        }
        self.report()
    }

    fn add_sample(&mut self) {
        self.samples.push(Sample {
            time_ps: self.network.now_ps,
            received_bytes: self.totals.received_bytes,
            flows_done: self.totals.flows_done,
            services: self.received_by_service(),
            ports: (0..self.network.ports.len()).map(|place| self.counters(place)).collect(),
        });
    }

    /// Payload that has reached the servers of each service.
    fn received_by_service(&self) -> Vec<u64> {
        let services = &self.job.watch.services;
        if services.is_empty() {
            return Vec::new();
        }
        let mut by_server = self.datagrams.received_bytes(self.hosts.len());
        for outcome in &self.outcomes {
            by_server[outcome.spec.to as usize] += outcome.received_bytes;
        }
        // A flow's outcome is filled in when all of it has arrived.
        for flow in self.flows.iter().filter(|flow| matches!(flow.phase, Phase::Opening | Phase::Open)) {
            if self.outcomes[flow.number as usize].received_ps.is_none() {
                let bytes = flow.payload_bytes(flow.receiver.delivered(), &self.job.settings.sizes);
                by_server[flow.to as usize] += bytes;
            }
        }
        let of = |servers: &Vec<u32>| servers.iter().map(|server| by_server[*server as usize]).sum();
        services.iter().map(|(_, servers)| of(servers)).collect()
    }

    /// Records every open TCP sender, and will again.
    pub(super) fn sample_tcp(&mut self) {
        let open = self.flows.iter().filter(|flow| flow.phase == Phase::Open);
        self.tcp_samples.extend(open.map(|flow| TcpSample {
            time_ps: self.network.now_ps,
            from: flow.from,
            to: flow.to,
            cwnd_segments: flow.sender.cwnd(),
            srtt_ps: flow.sender.srtt().unwrap_or(0),
            retransmits: flow.sender.retransmits(),
        }));
        if let Some(interval) = self.job.watch.tcp_interval {
            self.arm(self.network.now_ps.saturating_add(ps(interval.0.max(1))), Timer::SampleTcp);
        }
    }

    /// Everything that the run has yielded.
    pub(super) fn into_outcome(mut self) -> Outcome {
        let now_ps = self.network.now_ps;
        if self.job.watch.sample_interval.is_some() && self.samples.last().is_none_or(|last| last.time_ps < now_ps) {
            self.add_sample();
        }
        let last = self.moment();
        self.end_unfinished_flows();
        self.totals.packet_hops = self.packet_hops();
        self.network.finish_histograms();
        let ports = (0..self.network.ports.len() as u32).map(|number| self.port_outcome(number)).collect();
        Outcome {
            flows: self.outcomes,
            datagrams: self.datagrams.outcomes(),
            totals: self.totals,
            ports,
            samples: self.samples,
            replay: self.reel.finish(last),
            ways: self.followed.finish(),
            tcp: self.tcp_samples,
            events: self.events,
            end_ps: now_ps,
        }
    }

    /// Flows that the end of the run cut off keep what they got; those without an end of their own are complete.
    fn end_unfinished_flows(&mut self) {
        for flow in self.flows.iter().filter(|flow| matches!(flow.phase, Phase::Opening | Phase::Open)) {
            let outcome = &mut self.outcomes[flow.number as usize];
            outcome.received_bytes = flow.payload_bytes(flow.receiver.delivered(), &self.job.settings.sizes);
            outcome.retransmits = flow.sender.retransmits();
            self.totals.timeouts += u64::from(flow.sender.timeouts());
            if outcome.spec.bytes == 0 {
                outcome.received_ps = Some(self.network.now_ps);
            }
        }
    }

    fn port_outcome(&self, number: u32) -> PortOutcome {
        let (link, node) = sender_of(&self.job.fabric, number);
        let place = number as usize;
        let queue = self.network.histograms[place].as_ref().map_or(Vec::new(), |histogram| histogram.rows().collect());
        PortOutcome { link, node, counters: self.counters(place), queue }
    }

    pub(super) fn counters(&self, place: usize) -> PortCounters {
        let (carried, rules) = (&self.network.carried[place], &self.network.rules[place]);
        PortCounters {
            packets: carried.packets,
            bytes: carried.bytes,
            drops: rules.refused.packets + rules.lost.packets,
        }
    }
}
