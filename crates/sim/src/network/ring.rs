//! The packets of a port in order, in a ring that counts what it gave out.

use crate::packet::{OnLink, Packet};
use crate::prefetch::prefetch_from;

/// Places of a ring that has had a packet, at least; a power of two.
const PLACES_MIN: usize = 4;

/// A queue of packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    /// None, or a power of two. Packet n of all is kept in place n modulo their number.
    places: Box<[OnLink]>,
    /// Packets that were taken, and so the number of the first that is there.
    taken: u64,
    len: u32,
}

impl Ring {
    /// How many packets were taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The packet that is taken next.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&OnLink> {
        self.get(0)
    }

    /// The packet so many places behind the first.
    #[inline(always)]
    pub(crate) fn get(&self, behind: u32) -> Option<&OnLink> {
        (behind < self.len).then(|| &self.places[self.place(behind)])
    }

    /// All packets, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OnLink> {
        (0..self.len).filter_map(|behind| self.get(behind))
    }

    /// Puts a packet behind the others; whether it is the only one.
    #[inline(always)]
    pub(crate) fn put(&mut self, on_link: OnLink) -> bool {
        if self.len as usize == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.places[place] = on_link;
        self.len += 1;
        self.len == 1
    }

    /// Takes the first packet.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let packet = self.front()?.packet;
        self.taken += 1;
        self.len -= 1;
        Some(packet)
    }

    /// Removes all packets, which do not count as taken.
    pub(crate) fn clear(&mut self) -> Vec<Packet> {
        let packets = self.iter().map(|on_link| on_link.packet).collect();
        (self.places, self.len) = (Box::default(), 0);
        packets
    }

    /// Asks for the packet that is taken next, and the time of the one behind it.
    #[inline(always)]
    pub(crate) fn prefetch_front(&self) {
        prefetch_from(&self.places, self.place(0), size_of::<OnLink>() + size_of::<u64>());
    }

    /// Asks for the place of the packet that is put next.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self) {
        prefetch_from(&self.places, self.place(self.len), size_of::<OnLink>());
    }

    #[inline(always)]
    fn place(&self, behind: u32) -> usize {
        (self.taken as usize).wrapping_add(behind as usize) & self.places.len().wrapping_sub(1)
    }

    /// Makes a full ring twice as long. A packet's place there is the same as before or the one a length further on: both have it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.places = match self.places.len() {
            0 => Box::new([OnLink::default(); PLACES_MIN]),
            _ => self.places.repeat(2).into_boxed_slice(),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::Flags;

    fn numbered(number: u32) -> OnLink {
        OnLink { at_ps: number.into(), packet: Packet::new(number, 0, 0, 0, Flags::default()) }
    }

    proptest! {
        /// A ring gives out what a queue of the library does, and counts it.
        #[test]
        fn packets_come_out_in_order(steps in proptest::collection::vec((0u8..100, any::<u32>()), 0..600)) {
            let (mut ring, mut queue, mut taken) = (Ring::default(), VecDeque::new(), 0);
            for (step, number) in steps {
                match step {
                    0 => {
                        let lost: Vec<u32> = ring.clear().iter().map(Packet::flow).collect();
                        prop_assert_eq!(lost, queue.drain(..).collect::<Vec<u32>>());
                    }
                    1..60 => {
                        queue.push_back(number);
                        prop_assert_eq!(ring.put(numbered(number)), queue.len() == 1);
                    }
                    _ => {
                        taken += u64::from(!queue.is_empty());
                        prop_assert_eq!(ring.take().map(|packet| packet.flow()), queue.pop_front());
                    }
                }
                let seen = [ring.front(), ring.get(1)].map(|on_link| on_link.map(|on_link| on_link.at_ps));
                let expected = [queue.front(), queue.get(1)].map(|number| number.map(|number| u64::from(*number)));
                prop_assert_eq!(seen, expected);
                prop_assert_eq!((ring.taken(), ring.iter().count()), (taken, queue.len()));
            }
        }
    }
}
