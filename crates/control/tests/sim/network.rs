//! The simulated network: what may happen to a datagram or a message on its way.

use std::net::SocketAddrV4;

use weft_control::NS_PER_MS;

use super::{Event, World};

/// What goes wrong, out of 1000 datagrams each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) loss: u64,
    duplication: u64,
    damage: u64,
    /// Left somewhere on the way to the cluster.
    pub(super) late: u64,
    delay_max_ns: u64,
    /// Longest time until a server reads a committed record.
    pub(super) lag_max_ns: u64,
}

impl Faults {
    pub(super) const NONE: Self =
        Self { loss: 0, duplication: 0, damage: 0, late: 0, delay_max_ns: NS_PER_MS / 2, lag_max_ns: NS_PER_MS };

    pub(super) fn of_severity(severity: u64) -> Self {
        let place = severity as usize;
        Self {
            loss: [0, 20, 100, 300][place],
            duplication: 50 * severity,
            damage: 10 * severity,
            late: [0, 10, 30, 60][place],
            delay_max_ns: NS_PER_MS * [1, 10, 30, 100][place],
            lag_max_ns: NS_PER_MS * [1, 20, 100, 300][place],
        }
    }
}

impl World {
    /// A datagram sets out: it may be lost, doubled, damaged, and overtaken by others.
    pub(super) fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: &[u8]) {
        for _ in 0..self.copies() {
            let mut bytes = bytes.to_vec();
            if self.chance(self.faults.damage) {
                let bit = self.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let delay_ns = self.delay_ns();
            self.after(delay_ns, Event::Datagram { from, to, bytes });
        }
    }

    /// A message of a connection sets out: with a lost connection it is lost, and a client may then say it again.
    pub(super) fn tell(&mut self, event: &Event) {
        for _ in 0..self.copies() {
            let delay_ns = self.delay_ns();
            self.after(delay_ns, event.clone());
        }
    }

    fn copies(&mut self) -> u64 {
        if self.chance(self.faults.loss) { 0 } else { 1 + u64::from(self.chance(self.faults.duplication)) }
    }

    pub(super) fn delay_ns(&mut self) -> u64 {
        20_000 + self.below(self.faults.delay_max_ns)
    }

    /// A datagram arrives at whoever has the address.
    pub(super) fn receive(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: Vec<u8>) {
        if let Some(server) = self.servers.iter().position(|server| server.address == to) {
            self.serve(server, from, bytes);
        } else if let Some(agent) = self.agents.iter().position(|node| node.address == to) {
            self.agent_hears(agent, from, &bytes);
        } else if let Some(client) = self.clients.iter().position(|client| client.address == to) {
            self.client_reads(client, from, &bytes);
        }
    }
}
