//! What the next arrivals need is fetched ahead of them: in a large network each of these places is far from the processor, and one
//! leads to the next. So arrivals are led through a few steps, one after every [`AHEAD`] events, and in each of them what the one
//! before has found is asked for. What they come to goes to a list of its own: the steps of a list have nothing to choose.
//!
//! Nothing depends on it. What has changed meanwhile is read when it is needed.

use super::flow::{NO_ROUTE, ReceiverEnd, SenderEnd};
use super::host::Host;
use crate::events::AHEAD;
use crate::network::Network;
use crate::packet::{Flags, OnLink};
use crate::prefetch::prefetch;

/// Arrivals by the number of their steps; each is led from one of these lists to the next.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Ports that they come from, the ports asked for.
    coming: List,
    /// The same, their packets asked for.
    packets: List,
    /// The same, where their packets are on their way asked for.
    routes: List,
    /// Ports that they go on through.
    passing: List,
    /// Receivers that have data coming.
    data: List,
    /// Senders that have acknowledgements coming.
    acks: List,
    /// Routes by which they may be answered.
    answers: List,
    /// Ports of the network cards that send the answers.
    cards: List,
}

/// Numbers of one kind, at most one for an arrival of a step.
#[derive(Debug, Default)]
struct List {
    numbers: [u32; AHEAD],
    count: usize,
}

impl List {
    /// Adds a number if it is wanted, without a branch on that.
    #[inline(always)]
    fn add(&mut self, number: u32, is_wanted: bool) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += usize::from(is_wanted);
        }
    }

    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().take(self.count).copied()
    }

    /// What it holds; it is empty then.
    #[inline(always)]
    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
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
        let all = &places.network.ports;
        // The ends of the queues that are joined.
        self.cards.take().iter().for_each(|port| all[port].packets.back().into_iter().for_each(prefetch));
        self.passing.take().iter().for_each(|port| all[port].packets.back().into_iter().for_each(prefetch));
        self.answer(places);
        self.end(places);
        self.arrive(places);
        let packets = self.packets.take();
        packets.iter().for_each(|port| {
            all[port]
                .packets
                .front()
                .into_iter()
                .for_each(|first| places.network.routes.prefetch(first.packet.route()));
        });
        let coming = self.coming.take();
        coming.iter().for_each(|port| {
            let packets = &all[port].packets;
            packets.front().into_iter().chain(packets.get(1)).for_each(prefetch);
        });
        (self.routes, self.packets) = (packets, coming);
        if let Some(numbers) = ports {
            numbers.iter().for_each(|port| prefetch(&all[*port]));
            self.coming = List { numbers, count: AHEAD };
        }
    }

    /// Tells what the arrivals come to, and asks for it.
    #[inline(always)]
    fn arrive(&mut self, places: &Places<'_>) {
        let network = places.network;
        for port in self.routes.take().iter() {
            let Some(OnLink { packet, .. }) = network.ports[port].packets.front() else { continue };
            let next = network.routes.step(packet.route()).1;
            let (ends, is_ack) = (next.is_none(), packet.flags().has(Flags::ACK));
            self.passing.add(next.map_or(0, |hop| hop.port()), !ends);
            self.acks.add(packet.flow(), ends & is_ack);
            self.data.add(packet.flow(), ends & !is_ack);
        }
        self.passing.iter().for_each(|port| prefetch(&network.ports[port]));
        self.acks.iter().for_each(|place| prefetch(&places.senders[place as usize]));
        self.data.iter().for_each(|place| prefetch(&places.receivers[place as usize]));
    }

    /// Asks for the routes of answers; for an acknowledgement also for the host, which may have no room for it.
    #[inline(always)]
    fn end(&mut self, places: &Places<'_>) {
        for place in self.acks.take().iter() {
            let end = &places.senders[place as usize];
            end.sender.prefetch();
            prefetch(&places.hosts[end.who.from as usize]);
            self.answers.add(end.route, end.route != NO_ROUTE);
        }
        for place in self.data.take().iter() {
            let route = places.receivers[place as usize].route;
            self.answers.add(route, route != NO_ROUTE);
        }
        self.answers.iter().for_each(|route| places.network.routes.prefetch(route));
    }

    /// Asks for the network cards that send the answers.
    #[inline(always)]
    fn answer(&mut self, places: &Places<'_>) {
        for route in self.answers.take().iter() {
            let card = places.network.routes.hop(route).port();
            prefetch(&places.network.ports[card]);
            self.cards.add(card, true);
        }
    }
}
