//! What the next arrivals need is read ahead of them, several at once: in a large network each of these places is far from the
//! processor, and while it waits for one it can wait for others, too.

use std::array;

use super::Network;
use crate::events::AHEAD;
use crate::packet::Flags;

/// A packet that reaches its host soon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// Place of its flow's state.
    pub(crate) flow: u32,
    pub(crate) is_ack: bool,
}

impl Network {
    /// Reads what the next arrivals and their next queues need, if that was not done. Returns which of them end at a host.
    #[inline(never)]
    pub(crate) fn look_ahead(&mut self) -> [Option<Coming>; AHEAD] {
        let Some(keys) = self.events.ahead() else { return [None; AHEAD] };
        let ports: [Option<usize>; AHEAD] = array::from_fn(|place| Some(self.keys.port(*keys.get(place)?) as usize));
        let mut read = 0;
        for port in ports.into_iter().flatten() {
            read ^= self.ports[port].busy_ps ^ self.carried[port].packets;
        }
        let packets = ports.map(|port| self.ports[port?].packets.front().copied());
        let next = packets.map(|packet| packet.map(|packet| self.routes.step(packet.route()).1));
        for hop in next.into_iter().flatten().flatten() {
            read ^= self.ports[hop.port() as usize].busy_ps;
        }
        for hop in next.into_iter().flatten().flatten() {
            read ^= self.ports[hop.port() as usize].packets.back().map_or(0, |packet| packet.at_ps);
        }
        std::hint::black_box(read);
        array::from_fn(|place| match (packets[place], next[place]) {
            (Some(packet), Some(None)) => Some(Coming { flow: packet.flow(), is_ack: packet.flags().has(Flags::ACK) }),
            _ => None,
        })
    }

    /// Reads what the queue of a port needs to take a packet.
    #[inline]
    pub(crate) fn read_queue(&self, port: u32) -> u64 {
        let port = &self.ports[port as usize];
        port.busy_ps ^ port.packets.back().map_or(0, |packet| packet.at_ps)
    }
}
