//! What the next arrivals need is fetched ahead of them: in a large network each of these places is far from the processor, and one
//! leads to the next. So arrivals are led through a few steps, one after every [`AHEAD`] events, and in each of them what the one
//! before has found is asked for. Those that end a packet's way are collected first: loops of equal length have nothing to foresee.
//!
//! Nothing depends on it. What has changed meanwhile is read when it is needed.

use super::flow::{NO_ROUTE, ReceiverEnd, SenderEnd};
use super::host::Host;
use crate::events::AHEAD;
use crate::network::Network;
use crate::packet::{Flags, Packet};
use crate::prefetch::prefetch;

/// Arrivals by the number of their steps; each is led from one of these to the next.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Ports that they come from, the ports asked for.
    coming: [u32; AHEAD],
    /// The same, their packets asked for.
    fetched: [u32; AHEAD],
    /// Packets, where they are on their ways asked for.
    packets: [Packet; AHEAD],
    /// Ports that they go on through, asked for.
    passing: [u32; AHEAD],
    /// Senders that have acknowledgements coming, until there are enough of them.
    acks: List,
    /// Receivers that have data coming, until there are enough of them.
    data: List,
    /// Senders and receivers asked for.
    senders: List,
    receivers: List,
    /// Routes by which they may be answered, asked for.
    answers: List,
    /// Ports of the network cards that send the answers, asked for.
    cards: List,
}

/// Some numbers of one kind.
#[derive(Debug, Default)]
struct List {
    numbers: [u32; 2 * AHEAD],
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

    /// What it holds; it is empty then.
    #[inline(always)]
    fn take(&mut self) -> impl Iterator<Item = u32> {
        let count = std::mem::take(&mut self.count);
        self.numbers.iter().take(count).copied()
    }

    /// The same once it holds as many as arrivals are led on at once; else nothing.
    #[inline(always)]
    fn take_many(&mut self) -> impl Iterator<Item = u32> {
        let count = if self.count < AHEAD { 0 } else { std::mem::take(&mut self.count) };
        self.numbers.iter().take(count).copied()
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
    pub(super) fn lead(&mut self, ports: [u32; AHEAD], places: &Places<'_>) {
        let (network, all) = (places.network, &places.network.ports);
        self.end(places);
        self.passing.iter().for_each(|port| all[*port].packets.prefetch_end());
        self.arrive(places);
        self.packets = self.fetched.map(|port| {
            let packet = all[port].packets.front().map_or(Packet::default(), |first| first.packet);
            network.routes.prefetch(packet.route());
            packet
        });
        self.fetched = self.coming;
        self.fetched.iter().for_each(|port| all[*port].packets.prefetch_front());
        self.coming = ports;
        self.coming.iter().for_each(|port| prefetch(&all[*port]));
    }

    /// Tells what the arrivals come to, and asks for it.
    #[inline(always)]
    fn arrive(&mut self, places: &Places<'_>) {
        let network = places.network;
        for (packet, passing) in self.packets.iter().zip(&mut self.passing) {
            let next = network.routes.next(packet.route());
            let (ends, is_ack) = (next.is_none(), packet.flags().has(Flags::ACK));
            *passing = next.map_or(0, |hop| hop.port());
            prefetch(&network.ports[*passing]);
            self.acks.add(packet.flow(), ends & is_ack);
            self.data.add(packet.flow(), ends & !is_ack);
        }
        for place in self.acks.take_many() {
            prefetch(&places.senders[place as usize]);
            self.senders.add(place, true);
        }
        for place in self.data.take_many() {
            prefetch(&places.receivers[place as usize]);
            self.receivers.add(place, true);
        }
    }

    /// Asks for what ends of flows need: the routes of answers, the cards that send them, and their queues; for an
    /// acknowledgement also for the host, which may have no room for it.
    #[inline(always)]
    fn end(&mut self, places: &Places<'_>) {
        let network = places.network;
        self.cards.take().for_each(|card| network.ports[card].packets.prefetch_end());
        for route in self.answers.take() {
            let card = network.routes.hop(route).port();
            prefetch(&network.ports[card]);
            self.cards.add(card, true);
        }
        for place in self.senders.take() {
            let end = &places.senders[place as usize];
            end.sender.prefetch();
            prefetch(&places.hosts[end.who.from as usize]);
            self.answers.add(end.route, end.route != NO_ROUTE);
        }
        for place in self.receivers.take() {
            let route = places.receivers[place as usize].route;
            self.answers.add(route, route != NO_ROUTE);
        }
        self.answers.numbers.iter().take(self.answers.count).for_each(|route| network.routes.prefetch(*route));
    }
}
