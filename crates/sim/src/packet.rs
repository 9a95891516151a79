//! A packet on its way: 24 bytes with the time of its arrival, kept by value in the queue of the link it is on.
//!
//! The fields share two words, so that a packet moves in registers, also from function to function: put together from smaller
//! fields, it would be written to memory in small pieces and read back in large ones, which processors are slow at.

/// What the engine knows about a packet. It has no payload; lengths are all that counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Flow (32 bits), sequence (32).
    whose: u64,
    /// Route (32 bits), length (16), flags (8).
    what: u64,
}

/// A packet in the queue of a link or on the wire. The time stands first, near to the packet before, with which it is read.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct OnLink {
    /// When the far end of the link can act on it, in picoseconds.
    pub(crate) at_ps: u64,
    pub(crate) packet: Packet,
}

const _: () = assert!(size_of::<OnLink>() == 24);

const LENGTH_SHIFT: u32 = 32;
const FLAGS_SHIFT: u32 = 48;

impl Packet {
    /// A packet that has not been sent yet.
    ///
    /// * `flow`: place of its flow's state
    /// * `sequence`: of data the number of the segment or datagram; of an acknowledgement the next segment expected or, with
    ///   [`Flags::SACK`], the place of the whole acknowledgement in the table of those with blocks
    /// * `route`: place of its next hop among the routes
    /// * `ip_bytes`: length of the IP packet without any outer header
    #[inline(always)]
    pub(crate) fn new(flow: u32, sequence: u32, route: u32, ip_bytes: u16, flags: Flags) -> Self {
        let what = u64::from(route) | u64::from(ip_bytes) << LENGTH_SHIFT | u64::from(flags.0) << FLAGS_SHIFT;
        Self { whose: u64::from(flow) | u64::from(sequence) << 32, what }
    }

    /// Place of its flow's state.
    #[inline(always)]
    pub(crate) fn flow(&self) -> u32 {
        self.whose as u32
    }

    /// Its number, see [`Self::new`].
    #[inline(always)]
    pub(crate) fn sequence(&self) -> u32 {
        (self.whose >> 32) as u32
    }

    /// Place of its next hop among the routes.
    #[inline(always)]
    pub(crate) fn route(&self) -> u32 {
        self.what as u32
    }

    /// Length of the IP packet without any outer header, in bytes.
    #[inline(always)]
    pub(crate) fn ip_bytes(&self) -> u16 {
        (self.what >> LENGTH_SHIFT) as u16
    }

    /// What it is and what happened to it.
    #[inline(always)]
    pub(crate) fn flags(&self) -> Flags {
        Flags((self.what >> FLAGS_SHIFT) as u8)
    }

    /// The packet once it is on its next hop.
    #[inline(always)]
    pub(crate) fn one_hop_on(self) -> Self {
        // Routes are places in a vector that ends before the last number, so nothing carries over.
        Self { what: self.what + 1, ..self }
    }

    /// The packet with another sequence and the place that its route has elsewhere.
    pub(crate) fn handed_over(self, sequence: u32, route: u32) -> Self {
        let whose = u64::from(self.flow()) | u64::from(sequence) << 32;
        Self { whose, what: self.what & !u64::from(u32::MAX) | u64::from(route) }
    }

    /// With an ECN mark if its transport understands marks.
    #[inline(always)]
    pub(crate) fn marked(self) -> Self {
        let flags = Flags::default().with_if(self.flags().has(Flags::ECT), Flags::CE);
        Self { what: self.what | u64::from(flags.0) << FLAGS_SHIFT, ..self }
    }
}

/// A set of properties of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// Travels from receiver to sender.
    pub(crate) const ACK: Self = Self(1);
    /// Opens the connection.
    pub(crate) const SYN: Self = Self(1 << 1);
    /// An acknowledgement whose blocks stand in a table.
    pub(crate) const SACK: Self = Self(1 << 2);
    /// The transport understands ECN marks (RFC 3168: ECT).
    pub(crate) const ECT: Self = Self(1 << 3);
    /// A queue on the way was longer than its threshold (RFC 3168: CE).
    pub(crate) const CE: Self = Self(1 << 4);
    /// The receiver saw a mark (RFC 3168: ECE).
    pub(crate) const ECE: Self = Self(1 << 5);
    /// Somebody wants to read about it.
    pub(crate) const TRACED: Self = Self(1 << 6);

    /// Whether all of these are set.
    #[inline(always)]
    pub(crate) fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// With these set as well.
    #[inline(always)]
    pub(crate) fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// With these set as well if `condition` holds.
    #[inline(always)]
    pub(crate) fn with_if(self, condition: bool, flags: Self) -> Self {
        if condition { self.with(flags) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_one_another() {
        let packet = Packet::new(u32::MAX, 7, u32::MAX - 1, 65_535, Flags::ECT);
        let moved = packet.one_hop_on().marked();
        assert_eq!((moved.flow(), moved.sequence()), (u32::MAX, 7));
        assert_eq!((moved.route(), moved.ip_bytes(), moved.flags()), (u32::MAX, 65_535, Flags::ECT.with(Flags::CE)));
        assert_eq!(Packet::new(0, 0, 0, 0, Flags::ACK).marked().flags(), Flags::ACK);
    }
}
