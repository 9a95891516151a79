//! Draws the flows of traffic at a load. Every server has streams of its own, so that its flows do not depend on how many
//! the others have.

use super::{BackgroundSpec, QuerySpec};
use crate::random::{Purpose, Stream};
use crate::units::Nanos;
use crate::workload::{FlowClass, FlowSpec, Servers, WorkloadError};

/// The background flows of a run.
pub(super) struct Background<'a> {
    pub(super) spec: &'a BackgroundSpec,
    pub(super) servers: &'a Servers,
    pub(super) duration: Nanos,
    pub(super) seed: u64,
}

impl Background<'_> {
    /// Adds them to the list, server after server.
    pub(super) fn push_all(&self, flows: &mut Vec<FlowSpec>) -> Result<(), WorkloadError> {
        let sizes = self.spec.drawn_sizes();
        for from in 0..self.servers.count() {
            let receivers = self.receivers(from);
            if receivers.is_empty() {
                return Err(WorkloadError::OneRack);
            }
            let mut stream = Stream::new(self.seed, Purpose::Background, from);
            let mut arrivals = Arrivals::new(self.spec.mean_interval_ns(self.servers, from), self.duration);
            while let Some(start_ns) = arrivals.next(&mut stream) {
                let to = receivers[stream.below(receivers.len() as u64) as usize];
                let bytes = sizes.draw(&mut stream);
                flows.push(FlowSpec { class: FlowClass::Background, ..FlowSpec::bulk(from, to, bytes, start_ns) });
            }
        }
        Ok(())
    }

    fn receivers(&self, from: u32) -> Vec<u32> {
        let rack = |server: u32| match self.spec.servers_per_rack {
            Some(size) => server / size,
            None => self.servers.rack(server),
        };
        let allowed = |to: &u32| if self.spec.between_racks_only { rack(*to) != rack(from) } else { *to != from };
        (0..self.servers.count()).filter(allowed).collect()
    }
}

/// The queries of a run.
pub(super) struct Queries<'a> {
    pub(super) spec: &'a QuerySpec,
    pub(super) servers: &'a Servers,
    pub(super) duration: Nanos,
    pub(super) seed: u64,
}

impl Queries<'_> {
    /// Adds them to the list, in the order in which they are asked.
    pub(super) fn push_all(&self, flows: &mut Vec<FlowSpec>) {
        let mut queries = Vec::new();
        for client in 0..self.servers.count() {
            self.ask(client, &mut queries);
        }
        queries.sort_by_key(|(asked_ns, _)| *asked_ns);
        for ((_, responses), request) in queries.into_iter().zip(0..) {
            flows.extend(responses.into_iter().map(|flow| FlowSpec { request: Some(request), ..flow }));
        }
    }

    /// The queries of one client: when each is asked, and its responses.
    fn ask(&self, client: u32, queries: &mut Vec<(u64, Vec<FlowSpec>)>) {
        let mut others: Vec<u32> = (0..self.servers.count()).filter(|worker| *worker != client).collect();
        let mut stream = Stream::new(self.seed, Purpose::Query, client);
        let mut arrivals = Arrivals::new(self.spec.mean_interval_ns(self.servers, client), self.duration);
        while let Some(asked_ns) = arrivals.next(&mut stream) {
            let workers = stream.choose(&mut others, self.spec.fan_in as usize);
            let responses = workers.iter().zip(0..).map(|(from, place)| {
                let start_ns = asked_ns.saturating_add(stream.below(self.spec.jitter.0.saturating_add(1)));
                FlowSpec { class: FlowClass::Query, ..FlowSpec::bulk(*from, client, self.share(place), start_ns) }
            });
            queries.push((asked_ns, responses.collect()));
        }
    }

    fn share(&self, place: u64) -> u64 {
        let (all, workers) = (self.spec.response.0, u64::from(self.spec.fan_in));
        all / workers + u64::from(place < all % workers)
    }
}

/// The times of a Poisson process.
struct Arrivals {
    mean_ns: f64,
    end_ns: f64,
    at_ns: f64,
}

impl Arrivals {
    fn new(mean_ns: f64, duration: Nanos) -> Self {
        Self { mean_ns, end_ns: duration.0 as f64, at_ns: 0.0 }
    }

    fn next(&mut self, stream: &mut Stream) -> Option<u64> {
        self.at_ns += stream.exponential() * self.mean_ns;
        (self.at_ns < self.end_ns).then_some(self.at_ns as u64)
    }
}
