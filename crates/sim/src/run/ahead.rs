//! What the next arrivals need is fetched ahead of them: in a large network each of these places is far from the processor, and one
//! leads to the next. So each arrival is led through a few steps, one after every [`AHEAD`] events, and in each of them what the
//! one before has found is asked for.
//!
//! Nothing depends on it. What has changed meanwhile is read when it is needed.

use super::flow::{NO_ROUTE, ReceiverEnd, SenderEnd};
use super::host::Host;
use crate::events::{AHEAD, AHEAD_STEPS};
use crate::network::Network;
use crate::packet::Flags;
use crate::prefetch::prefetch;

/// What is known of an arrival.
#[derive(Clone, Copy, Debug, Default)]
enum Coming {
    #[default]
    Nothing,
    /// It is on its way from this port.
    From(u32),
    /// It goes on through this port.
    On(u32),
    /// It is data for this receiver.
    Data(u32),
    /// It is an acknowledgement for this sender.
    Ack(u32),
    /// It may be answered by this route.
    Answer(u32),
}

/// Arrivals by the number of their steps.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    steps: [[Coming; AHEAD]; AHEAD_STEPS],
    /// Place of those that come next.
    newest: usize,
}

/// Where things are.
pub(super) struct Places<'p> {
    pub(super) network: &'p Network,
    pub(super) senders: &'p [SenderEnd],
    pub(super) receivers: &'p [ReceiverEnd],
    pub(super) hosts: &'p [Host],
}

impl Ahead {
    /// Takes the next arrivals, of which the ports that they come from are known, and leads all one step on.
    #[inline(never)]
    pub(super) fn lead(&mut self, ports: Option<[u32; AHEAD]>, places: &Places<'_>) {
        self.newest = (self.newest + AHEAD_STEPS - 1) % AHEAD_STEPS;
        self.steps[self.newest] = ports.map_or_else(Default::default, |ports| ports.map(Coming::From));
        self.step(0, |coming| places.port(coming));
        self.step(1, |coming| places.front(coming));
        self.step(2, |coming| places.route(coming));
        self.step(3, |coming| places.end(coming));
        self.step(4, |coming| places.beyond(coming));
        self.step(5, |coming| places.card(coming));
        self.step(6, |coming| places.queue(coming));
    }

    #[inline(always)]
    fn step(&mut self, step: usize, look: impl Fn(&mut Coming)) {
        self.steps[(self.newest + step) % AHEAD_STEPS].iter_mut().for_each(look);
    }
}

impl Places<'_> {
    /// The port.
    #[inline(always)]
    fn port(&self, coming: &mut Coming) {
        if let Coming::From(port) = *coming {
            prefetch(&self.network.ports[port]);
        }
    }

    /// The packet, and the next one.
    #[inline(always)]
    fn front(&self, coming: &mut Coming) {
        let Coming::From(port) = *coming else { return };
        let packets = &self.network.ports[port].packets;
        packets.front().into_iter().chain(packets.get(1)).for_each(prefetch);
    }

    /// Where it is on its way.
    #[inline(always)]
    fn route(&self, coming: &mut Coming) {
        let Coming::From(port) = *coming else { return };
        if let Some(packet) = self.network.ports[port].packets.front() {
            self.network.routes.prefetch(packet.route());
        }
    }

    /// What it comes to.
    #[inline(always)]
    fn end(&self, coming: &mut Coming) {
        let Coming::From(port) = *coming else { return };
        let Some(packet) = self.network.ports[port].packets.front() else { return };
        let place = packet.flow();
        *coming = match self.network.routes.step(packet.route()).1 {
            Some(hop) => Coming::On(hop.port()),
            None if packet.flags().has(Flags::ACK) => Coming::Ack(place),
            None => Coming::Data(place),
        };
        match *coming {
            Coming::On(port) => prefetch(&self.network.ports[port]),
            Coming::Ack(_) => prefetch(&self.senders[place as usize]),
            Coming::Data(_) => prefetch(&self.receivers[place as usize]),
            _ => {}
        }
    }

    /// The route of an answer; of an acknowledgement the host, which may have no room for it.
    #[inline(always)]
    fn beyond(&self, coming: &mut Coming) {
        let route = match *coming {
            Coming::Ack(place) => {
                let end = &self.senders[place as usize];
                end.sender.prefetch();
                prefetch(&self.hosts[end.who.from as usize]);
                end.route
            }
            Coming::Data(place) => self.receivers[place as usize].route,
            _ => return,
        };
        *coming = if route == NO_ROUTE { Coming::Nothing } else { Coming::Answer(route) };
        if let Coming::Answer(route) = *coming {
            self.network.routes.prefetch(route);
        }
    }

    /// The port of its network card.
    #[inline(always)]
    fn card(&self, coming: &mut Coming) {
        let Coming::Answer(route) = *coming else { return };
        let nic = self.network.routes.hop(route).port();
        prefetch(&self.network.ports[nic]);
        *coming = Coming::On(nic);
    }

    /// The end of the queue that it joins, or its answer.
    #[inline(always)]
    fn queue(&self, coming: &mut Coming) {
        if let Coming::On(port) = *coming {
            self.network.ports[port].packets.back().into_iter().for_each(prefetch);
        }
    }
}
