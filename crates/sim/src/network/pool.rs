//! One buffer that all ports of a switch share, with an optional dynamic threshold.
//!
//! Nothing happens when a packet leaves a queue, so the pool does not know how full it is. It keeps an upper bound, to
//! which every arrival adds, and sums the ports' queues only when the bound would refuse a packet. What it then decides is
//! exact: the bound can only be too careful.

use super::ports::Ports;

/// Thousandths that make one.
const MILLI: u128 = 1_000;

/// A packet that wants room at a port, whose queue it finds so long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) port: u32,
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

    /// Takes room for a packet; whether there was any.
    #[inline]
    pub(super) fn admit(&mut self, now_ps: u64, ports: &Ports, packet: Arriving) -> bool {
        if !self.has_room(ports, &packet) {
            self.used_at_most = self.used_bytes(now_ps, ports);
            if !self.has_room(ports, &packet) {
                return false;
            }
        }
        self.used_at_most += packet.wire_bytes;
        true
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
    fn has_room(&self, ports: &Ports, packet: &Arriving) -> bool {
        let Some(free) = self.size_bytes.checked_sub(self.used_at_most + packet.wire_bytes) else { return false };
        let Some(alpha_milli) = self.alpha_milli else { return true };
        // The threshold is compared with what the packet finds: free space and queue before it is put in.
        let free = free + packet.wire_bytes;
        let threshold_bytes = u64::try_from(u128::from(free) * u128::from(alpha_milli) / MILLI).unwrap_or(u64::MAX);
        packet.backlog_ps < ports.wire(packet.port).transmission_ps(threshold_bytes)
    }
}
