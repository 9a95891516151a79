//! The books: what was sent has arrived, was dropped or is still there. A run whose books do not balance is an error.

use std::collections::BTreeMap;

use super::Simulation;
use crate::error::SimError;
use crate::outcome::Volume;
use crate::packet::{Flags, Packet};

impl Simulation<'_> {
    /// Packets that have reached the end of a link, so far.
    pub(super) fn packet_hops(&self) -> u64 {
        self.network.carried.iter().map(|count| count.packets).sum()
    }

    /// A shared buffer holds no more than its size.
    pub(super) fn check_pools(&self) -> Result<(), SimError> {
        match self.network.pool_excess_bytes() {
            0 => Ok(()),
            excess => Err(self.mistake(format!("a shared buffer holds {excess} bytes more than its size"))),
        }
    }

    /// Packets and bytes balance, for the network and for every flow; queues hold no more than is in them.
    pub(super) fn check_books(&mut self) -> Result<(), SimError> {
        self.check_pools()?;
        let mut by_flow: BTreeMap<u32, u32> = BTreeMap::new();
        let mut in_flight = Volume::default();
        for packet in self.network.ports.iter().flat_map(|port| port.in_flight()) {
            in_flight.add(packet.ip_bytes());
            *by_flow.entry(packet.flow()).or_default() += 1;
        }
        self.totals.in_flight = in_flight;
        let all = [self.totals.delivered, self.totals.refused, self.totals.lost, in_flight];
        let accounted = all.into_iter().fold(Volume::default(), |sum, part| Volume {
            packets: sum.packets + part.packets,
            bytes: sum.bytes + part.bytes,
        });
        if accounted != self.totals.sent {
            return Err(self.mistake(format!("{:?} was sent, {accounted:?} is accounted for", self.totals.sent)));
        }
        self.check_flows(&by_flow)?;
        self.check_queues()
    }

    fn check_flows(&self, by_flow: &BTreeMap<u32, u32>) -> Result<(), SimError> {
        for (place, flow) in (0..).zip(&self.flows) {
            let found = by_flow.get(&place).copied().unwrap_or(0);
            if found != flow.in_flight {
                let number = flow.number;
                let what = format!("flow {number} should have {} packets under way, found {found}", flow.in_flight);
                return Err(self.mistake(what));
            }
        }
        let with_blocks = |packet: &&Packet| packet.flags().has(Flags::SACK);
        let found = self.network.ports.iter().flat_map(|port| port.in_flight()).filter(with_blocks).count();
        if found != self.long_acks.len() {
            let kept = self.long_acks.len();
            return Err(self.mistake(format!("{kept} acknowledgements with blocks are kept for {found} packets")));
        }
        Ok(())
    }

    fn check_queues(&self) -> Result<(), SimError> {
        for (number, port) in (0..).zip(&self.network.ports) {
            let queued_bytes = self.network.backlog_bytes(number);
            let held: u64 = port
                .in_flight()
                .map(|packet| u64::from(packet.ip_bytes()) + self.network.routes.step(packet.route()).0.extra_bytes())
                .sum();
            if queued_bytes > held {
                return Err(self.mistake(format!("port {number} has {queued_bytes} bytes queued but {held} in it")));
            }
        }
        Ok(())
    }

    fn mistake(&self, what: String) -> SimError {
        SimError::Unbalanced { time_ps: self.network.now_ps, what }
    }
}
