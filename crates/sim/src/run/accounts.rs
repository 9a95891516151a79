//! The books: what was sent has arrived, was dropped or is still there. A run whose books do not balance is an error.

use std::collections::BTreeMap;

use weft_scenario::switching::Forwarding;

use super::part::Part;
use super::{Simulation, setup, windows};
use crate::error::SimError;
use crate::outcome::Volume;
use crate::packet::{Flags, Packet};

impl Part<'_> {
    /// A shared buffer holds no more than its size.
    pub(super) fn check_pools(&self) -> Result<(), SimError> {
        match self.network.pool_excess_bytes() {
            0 => Ok(()),
            excess => Err(self.mistake(format!("a shared buffer holds {excess} bytes more than its size"))),
        }
    }

    /// Packets on their way, with the ports that they have left.
    fn in_flight(&self) -> impl Iterator<Item = &Packet> {
        let ports = &self.network.ports;
        (0..ports.len() as u32).flat_map(|port| ports.in_flight(port))
    }

    fn check_long_acks(&self) -> Result<(), SimError> {
        let found = self.in_flight().filter(|packet| packet.flags().has(Flags::SACK)).count();
        if found != self.long_acks.len() {
            let kept = self.long_acks.len();
            return Err(self.mistake(format!("{kept} acknowledgements with blocks are kept for {found} packets")));
        }
        Ok(())
    }

    /// Bytes on the link of a port and in its queue, as far as they are known here.
    fn held_bytes(&self, port: u32) -> u64 {
        let routes = &self.network.routes;
        let bytes = |packet: &Packet| u64::from(packet.ip_bytes()) + routes.step(packet.route()).0.extra_bytes();
        self.network.ports.in_flight(port).map(bytes).sum()
    }

    pub(super) fn mistake(&self, what: String) -> SimError {
        SimError::Unbalanced { time_ps: self.network.now_ps, what }
    }
}

/// An end of a flow: its part, whether data or acknowledgements reach it, and its place.
type End = (u32, bool, u32);

impl Simulation<'_> {
    /// Packets that have reached the end of a link, so far.
    pub(super) fn packet_hops(&self) -> u64 {
        self.parts.iter().flat_map(|part| part.network.ports.iter()).map(|port| port.carried().packets).sum()
    }

    /// Packets and bytes balance, for the network and for every flow; queues hold no more than is in them.
    pub(super) fn check_books(&mut self) -> Result<(), SimError> {
        windows::exchange(&mut self.parts);
        self.parts.iter().try_for_each(|part| part.check_pools().and_then(|()| part.check_long_acks()))?;
        for part in &mut self.parts {
            let mut in_flight = Volume::default();
            part.in_flight().for_each(|packet| in_flight.add(packet.ip_bytes()));
            part.totals.in_flight = in_flight;
        }
        let totals = self.totals();
        let all = [totals.delivered, totals.refused, totals.lost, totals.in_flight];
        let accounted = all.into_iter().fold(Volume::default(), Volume::and);
        if accounted != totals.sent {
            return Err(self.mistake(format!("{:?} was sent, {accounted:?} is accounted for", totals.sent)));
        }
        self.check_flows()?;
        self.check_queues()
    }

    fn check_flows(&self) -> Result<(), SimError> {
        let mut found: BTreeMap<End, u32> = BTreeMap::new();
        for part in &self.parts {
            for packet in part.in_flight() {
                let is_ack = packet.flags().has(Flags::ACK);
                let there = self.cut.part_of_end(&part.network.routes, packet.route());
                *found.entry((there, is_ack, packet.flow())).or_default() += 1;
            }
        }
        let mut seen = 0;
        for (end, number, expected) in self.expected() {
            let found = found.get(&end).copied().unwrap_or(0);
            seen += found;
            if found != expected {
                let what = format!("flow {number} should have {expected} packets under way, found {found}");
                return Err(self.mistake(what));
            }
        }
        match found.values().sum::<u32>() - seen {
            0 => Ok(()),
            more => Err(self.mistake(format!("{more} packets are under way for flows that are gone"))),
        }
    }

    /// For each end that is there, its flow and the packets that must be under way for it.
    fn expected(&self) -> Vec<(End, u64, u32)> {
        let mut all = Vec::new();
        for part in &self.parts {
            for (place, end) in (0..).zip(&part.receivers).filter(|(_, end)| !end.is_gone) {
                let from = self.cut.part_of_host(end.who.from);
                let sender = &self.parts[from as usize].senders[end.sender as usize];
                let id = end.who.id;
                all.push(((part.number, false, place), id, sender.packets.sent.wrapping_sub(end.packets.arrived)));
                all.push(((from, true, end.sender), id, end.packets.sent.wrapping_sub(sender.packets.arrived)));
            }
            // Nothing is under way for a receiver that is gone, but there may be for its sender.
            for (place, end) in (0..).zip(&part.senders) {
                if let Some(sent) = end.packets.sent_to_it {
                    all.push(((part.number, true, place), end.who.id, sent.wrapping_sub(end.packets.arrived)));
                }
            }
        }
        all
    }

    fn check_queues(&self) -> Result<(), SimError> {
        // The far end may have the beginning of a packet whose end is still in the queue.
        let is_cut_through = self.job.settings.switching.forwarding == Forwarding::CutThrough;
        let begun_bytes = if is_cut_through { setup::longest_on_wire_bytes(self.job) } else { 0 };
        for port in 0..self.ports() {
            let queued_bytes: u64 = self.parts.iter().map(|part| part.network.backlog_bytes(port)).sum();
            let held: u64 = self.parts.iter().map(|part| part.held_bytes(port)).sum();
            if queued_bytes > held + begun_bytes {
                return Err(self.mistake(format!("port {port} has {queued_bytes} bytes queued but {held} in it")));
            }
        }
        Ok(())
    }

    fn mistake(&self, what: String) -> SimError {
        SimError::Unbalanced { time_ps: self.now_ps, what }
    }
}
