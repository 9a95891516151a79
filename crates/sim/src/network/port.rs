//! One direction of a link: a FIFO queue in front of a wire.
//!
//! The queue is drained at a fixed rate, so a packet's departure is known when it is put in: the later of now and the end
//! of all before it, plus its own transmission time. There is no event for the queue; its length is `busy - now`.

use super::ring::Ring;
use crate::heap::Lots;
use crate::time::PS_PER_S;

/// The far end of a port that is not in another part of the network.
pub(crate) const HERE: u32 = u32::MAX;
/// Port without a shared pool.
pub(crate) const NO_POOL: u32 = u32::MAX;
/// What a cut-through switch has to see of a packet before it forwards it, in bytes: the shortest Ethernet frame.
pub(crate) const CUT_THROUGH_BYTES: u64 = 64;
/// Fraction bits of [`Wire::byte_ps`].
const FRACTION: u32 = 16;

/// Properties of a port that the usual packet does not meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Special(u8);

impl Special {
    /// The link is down: what is sent is lost.
    pub(crate) const DOWN: Self = Self(1);
    /// The time at each queue length is recorded.
    pub(crate) const MEASURED: Self = Self(1 << 1);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn set(&mut self, other: Self, on: bool) {
        self.0 = if on { self.0 | other.0 } else { self.0 & !other.0 };
    }

    /// Whether the usual packet is treated as elsewhere.
    #[inline(always)]
    pub(crate) fn says_nothing(self) -> bool {
        self.0 == 0
    }
}

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Count {
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// How fast a wire is and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wire {
    /// Picoseconds per byte, with [`FRACTION`] bits of fraction.
    byte_ps: u64,
    pub(crate) propagation_ps: u64,
}

impl Wire {
    pub(crate) fn new(rate_bps: u64, propagation_ps: u64) -> Self {
        let byte_ps = (u128::from(8 * PS_PER_S) << FRACTION) / u128::from(rate_bps.max(1));
        Self { byte_ps: u64::try_from(byte_ps).unwrap_or(u64::MAX).max(1), propagation_ps }
    }

    /// How long so many bytes take, in picoseconds; saturates for what would take months.
    #[inline(always)]
    pub(crate) fn transmission_ps(&self, bytes: u64) -> u64 {
        match bytes.checked_mul(self.byte_ps) {
            Some(product) => product >> FRACTION,
            None => ((u128::from(bytes) * u128::from(self.byte_ps)) >> FRACTION).try_into().unwrap_or(u64::MAX),
        }
    }

    /// Bytes that are sent in so long a time, rounded up.
    pub(crate) fn bytes_in(&self, time_ps: u64) -> u64 {
        if time_ps < 1 << (u64::BITS - FRACTION) {
            return (time_ps << FRACTION).div_ceil(self.byte_ps);
        }
        u64::try_from((u128::from(time_ps) << FRACTION).div_ceil(u128::from(self.byte_ps))).unwrap_or(u64::MAX)
    }
}

/// One direction of one link in motion: what every packet changes, in one line of the processor's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Port {
    /// When the last queued packet has left, in picoseconds.
    pub(crate) busy_ps: u64,
    /// Bytes that reached the far end of the wire.
    pub(crate) carried_bytes: u64,
    /// Packets in the queue and on the wire, in order. Those taken have reached the far end.
    pub(crate) packets: Ring,
    /// What its lots are drawn with.
    pub(super) lots: Lots,
    /// Place of what it has in common with others.
    pub(super) kind: u32,
}

const _: () = assert!(size_of::<Port>() == 64);

/// What many ports have in common. They are few, and so near the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(64))]
pub(crate) struct Kind {
    pub(crate) wire: Wire,
    /// As long as the queue ends within this time, in picoseconds, the rules have nothing to say.
    usual_ps: u64,
    pub(super) rules: Rules,
}

impl Kind {
    /// Of ports with this wire under these rules.
    pub(super) fn new(wire: Wire, rules: Rules) -> Self {
        Self { wire, usual_ps: rules.usual_ps(), rules }
    }

    /// Whether the rules have nothing to say about a queue that ends at this time from now, in picoseconds.
    #[inline(always)]
    pub(crate) fn is_usual(&self, end_ps: u64) -> bool {
        end_ps <= self.usual_ps
    }
}

/// What is looked at when a port's queue is long, shared or of interest, or its packets leave this part of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    /// Longest queue, in picoseconds of transmission.
    limit_ps: u64,
    /// Queues longer than this are marked, in picoseconds of transmission.
    mark_ps: u64,
    pub(crate) pool: u32,
    /// The part that packets are handed over to, or [`HERE`].
    pub(crate) to: u32,
    pub(crate) special: Special,
}

impl Rules {
    pub(super) fn new(setup: &PortSetup) -> Self {
        Self {
            limit_ps: setup.limit_bytes.map_or(u64::MAX, |bytes| setup.wire.transmission_ps(bytes)),
            mark_ps: setup.mark_bytes.map_or(u64::MAX, |bytes| setup.wire.transmission_ps(bytes)),
            pool: setup.pool,
            to: HERE,
            special: Special::default(),
        }
    }

    /// Whether there is nothing to be looked at but the queue's length and a shared buffer.
    #[inline(always)]
    pub(super) fn is_simple(&self) -> bool {
        self.to == HERE && self.special.says_nothing()
    }

    /// Whether a queue that would end at this time from now, in picoseconds, is too long.
    #[inline(always)]
    pub(super) fn is_full(&self, end_ps: u64) -> bool {
        end_ps > self.limit_ps
    }

    /// Whether packets that find a queue of this length are marked.
    #[inline(always)]
    pub(super) fn marks(&self, backlog_ps: u64) -> bool {
        backlog_ps > self.mark_ps
    }

    /// How long a queue may be without being looked at.
    fn usual_ps(&self) -> u64 {
        if self.pool == NO_POOL && self.is_simple() { self.limit_ps.min(self.mark_ps) } else { 0 }
    }
}

/// What did not leave through a port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drops {
    /// What the full buffer refused.
    pub(crate) refused: Count,
    /// What was lost because the link was down.
    pub(crate) lost: Count,
}

/// How a port is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortSetup {
    pub(crate) wire: Wire,
    /// Longest queue in bytes; `None`: no limit of its own.
    pub(crate) limit_bytes: Option<u64>,
    /// Longest queue in bytes whose packets are not marked; `None`: no marks.
    pub(crate) mark_bytes: Option<u64>,
    pub(crate) pool: u32,
}

impl Port {
    /// An empty queue.
    pub(super) fn new(number: u32, kind: u32) -> Self {
        Self { busy_ps: 0, carried_bytes: 0, packets: Ring::default(), lots: Lots::of(number), kind }
    }

    /// What reached the far end of the wire.
    pub(crate) fn carried(&self) -> Count {
        Count { packets: self.packets.taken(), bytes: self.carried_bytes }
    }

    /// How long the queue takes to drain, in picoseconds.
    #[inline(always)]
    pub(crate) fn backlog_ps(&self, now_ps: u64) -> u64 {
        self.busy_ps.saturating_sub(now_ps)
    }

    /// When a packet that is sent now comes onto the wire.
    #[inline(always)]
    pub(super) fn free_ps(&self, now_ps: u64) -> u64 {
        self.busy_ps.max(now_ps)
    }

    /// Takes the time of a packet on the wire, from when that is free. Returns when the far end can act on it.
    #[inline(always)]
    pub(super) fn transmit(&mut self, start_ps: u64, transmission_ps: u64, cut_through: bool, wire: &Wire) -> u64 {
        self.busy_ps = start_ps + transmission_ps;
        let seen_ps = if cut_through {
            start_ps + transmission_ps.min(wire.transmission_ps(CUT_THROUGH_BYTES))
        } else {
            self.busy_ps
        };
        seen_ps + wire.propagation_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{OnLink, Packet};

    fn wire(rate_bps: u64) -> Wire {
        Wire::new(rate_bps, 1_000_000)
    }

    fn rules() -> Rules {
        let wire = wire(10_000_000_000);
        Rules::new(&PortSetup { wire, limit_bytes: Some(4_500), mark_bytes: Some(3_000), pool: NO_POOL })
    }

    #[test]
    fn bytes_take_their_time_at_every_rate() {
        for (rate, time_ps) in [(10_000_000_000, 1_200_000), (40_000_000_000, 300_000), (20_000_000, 600_000_000)] {
            assert_eq!(wire(rate).transmission_ps(1500), time_ps);
            assert_eq!(wire(rate).bytes_in(time_ps), 1500);
        }
        // 1500 B at 3 Gb/s are 4 us exactly; a byte is 2666.67 ps.
        assert_eq!(wire(3_000_000_000).transmission_ps(1500), 3_999_999);
        assert!(
            wire(1).transmission_ps(u64::MAX) > 0 && wire(u64::MAX).bytes_in(u64::MAX) > 0,
            "absurd values saturate"
        );
    }

    #[test]
    fn departures_follow_one_another() {
        let (mut port, wire) = (Port::new(0, 0), wire(10_000_000_000));
        let mut append = |now_ps, cut_through| {
            let at_ps = port.transmit(port.free_ps(now_ps), 1_200_000, cut_through, &wire);
            (port.packets.put(OnLink { at_ps, packet: Packet::default() }), at_ps, port.busy_ps)
        };
        assert_eq!(append(0, false), (true, 2_200_000, 1_200_000));
        assert_eq!(append(0, false), (false, 3_400_000, 2_400_000), "it is not the only one");
        assert_eq!(append(9_000_000, true), (false, 9_000_000 + 51_200 + 1_000_000, 10_200_000), "64 B at 800 ps");
        assert_eq!([9_000_000, 10_200_000, 99_000_000].map(|now_ps| port.backlog_ps(now_ps)), [1_200_000, 0, 0]);
        assert_eq!(
            port.packets.iter().map(|on_link| on_link.at_ps).collect::<Vec<_>>(),
            [2_200_000, 3_400_000, 10_051_200]
        );
    }

    #[test]
    fn room_and_marks_end_at_their_byte() {
        let rules = rules();
        assert!(!rules.is_full(4_500 * 800) && rules.is_full(4_501 * 800));
        assert!(!rules.marks(3_000 * 800) && rules.marks(3_000 * 800 + 1));
        assert_eq!(rules.usual_ps(), 3_000 * 800, "below the mark there is nothing to look at");
        assert_eq!([Rules { pool: 0, ..rules }, Rules { to: 0, ..rules }].map(|rules| rules.usual_ps()), [0, 0]);
    }
}
