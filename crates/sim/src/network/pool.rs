//! One buffer that all ports of a switch share, with an optional dynamic threshold.
//!
//! Nothing happens when a packet leaves a queue, so the pool does not know how full it is. It keeps an upper bound, to
//! which every arrival adds, and sums the ports' queues only when the bound would refuse a packet. What it then decides is
//! exact: the bound can only be too careful.

use super::port::Wire;
use super::ports::Ports;

/// Thousandths that make one.
const MILLI: u64 = 1_000;

/// A packet that wants room at a port, whose queue it finds so long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) backlog_ps: u64,
    pub(super) wire_bytes: u64,
}

/// The shared buffer of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    size_bytes: u64,
    /// At least as much as is used.
    used_at_most: u64,
    /// Dynamic threshold (Choudhury and Hahne, 1998): no queue is longer than alpha times what is free, in thousandths.
    alpha_milli: Option<u32>,
    /// The ports that share it.
    ports: Vec<u32>,
}

impl Pool {
    pub(crate) fn new(size_bytes: u64, alpha_milli: Option<u32>, ports: Vec<u32>) -> Self {
        Self { size_bytes, used_at_most: 0, alpha_milli, ports }
    }

    /// Takes room for a packet of a port with this wire; whether there was any for sure.
    #[inline(always)]
    pub(super) fn admit(&mut self, wire: &Wire, packet: Arriving) -> bool {
        let has_room = self.has_room(wire, packet);
        if has_room {
            self.used_at_most += packet.wire_bytes;
        }
        has_room
    }

    /// From now on the bound is what is used, see [`Self::admit`].
    pub(super) fn count(&mut self, now_ps: u64, ports: &Ports) {
        self.used_at_most = self.used_bytes(now_ps, ports);
    }

    /// Exactly how much is queued, in bytes.
    pub(super) fn used_bytes(&self, now_ps: u64, ports: &Ports) -> u64 {
        let queued = |port: &u32| ports.backlog_bytes(*port, now_ps);
        self.ports.iter().map(queued).sum()
    }

    /// Its size in bytes.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    #[inline(always)]
    fn has_room(&self, wire: &Wire, packet: Arriving) -> bool {
        let Some(free) = self.size_bytes.checked_sub(self.used_at_most + packet.wire_bytes) else { return false };
        let Some(alpha_milli) = self.alpha_milli else { return true };
        // The threshold is compared with what the packet finds: free space and queue before it is put in.
        let free = free + packet.wire_bytes;
        let threshold_bytes = free.checked_mul(alpha_milli.into()).map_or(u64::MAX, |milli_bytes| milli_bytes / MILLI);
        packet.backlog_ps < wire.transmission_ps(threshold_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Pool;
    use crate::network::port::{PortSetup, Wire};
    use crate::network::{Network, Sent};
    use crate::packet::{Flags, Packet};
    use crate::routes::Hop;

    const PORTS: u32 = 4;

    proptest! {
        /// A packet is refused if and only if it and what all ports queue are more than the buffer, or its queue is longer than
        /// alpha times what is free.
        #[test]
        fn what_has_no_room_is_refused_and_nothing_else(
            size_bytes in 1_500_u64..400_000,
            alpha_milli in prop_oneof![2 => Just(None), 1 => (100_u32..4_000).prop_map(Some)],
            // Port, length, and the time to the next packet: now less than its transmission takes, now more.
            packets in proptest::collection::vec((0..PORTS, 64_u16..9_000, 0_u64..1_500_000), 1..400),
        ) {
            let wire = Wire::new(10_000_000_000, 1_000_000);
            let setup = PortSetup { wire, limit_bytes: None, mark_bytes: None, pool: 0 };
            let pool = Pool::new(size_bytes, alpha_milli, (0..PORTS).collect());
            let setups: Vec<PortSetup> = (0..PORTS).map(|_| setup).collect();
            let mut network = Network::new(setups.into_iter(), vec![pool], 1);
            let mut busy_ps = [0_u64; PORTS as usize];
            for (number, bytes, pause_ps) in packets {
                let queued = |busy_ps: &u64| wire.bytes_in(busy_ps.saturating_sub(network.now_ps));
                let used: u64 = busy_ps.iter().map(queued).sum();
                let own = &mut busy_ps[number as usize];
                let threshold = alpha_milli.map(|alpha| size_bytes.saturating_sub(used) * u64::from(alpha) / 1_000);
                let is_short = threshold
                    .is_none_or(|bytes| own.saturating_sub(network.now_ps) < wire.transmission_ps(bytes));
                let fits = used + u64::from(bytes) <= size_bytes && is_short;
                if fits {
                    *own = (*own).max(network.now_ps) + wire.transmission_ps(bytes.into());
                }
                let sent = network.send(Hop::new(number, 0, false), Packet::new(0, 0, 0, bytes, Flags::default()));
                prop_assert_eq!(matches!(sent, Sent::Queued), fits, "{} of {} bytes are used", used, size_bytes);
                network.now_ps += pause_ps;
            }
        }
    }
}
