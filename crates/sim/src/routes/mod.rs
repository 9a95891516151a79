//! The ways through the network: each is a row of hops, stored once however many flows take it.
//!
//! A packet carries the place of its next hop and so finds its way with one look; which way a packet takes is decided
//! where it is sent, by [`walk`].

mod outer;
pub(crate) mod walk;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::hash::scramble;
use crate::prefetch::prefetch_from;

pub use outer::Header;
pub(crate) use outer::{Stage, outer_bytes};

const PORT_BITS: u32 = 20;
const EXTRA_BITS: u32 = 11;
const CUT_THROUGH: u32 = 1 << (PORT_BITS + EXTRA_BITS);
/// Stands after the last hop of each route. No hop looks like it: port numbers end before it.
const END: u32 = u32::MAX;

/// One hop: the port that sends (20 bits), the bytes on that wire beside the IP packet (11), and whether the far end cuts
/// through (1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop(u32);

impl Hop {
    /// Most ports that hops can name, less the one that would make a hop look like [`END`].
    pub(crate) const PORTS_MAX: usize = (1 << PORT_BITS) - 1;
    /// Most bytes beside the IP packet.
    pub(crate) const EXTRA_BYTES_MAX: u32 = (1 << EXTRA_BITS) - 1;

    pub(crate) fn new(port: u32, extra_bytes: u32, cut_through: bool) -> Self {
        debug_assert!((port as usize) < Self::PORTS_MAX, "larger networks are refused");
        debug_assert!(extra_bytes <= Self::EXTRA_BYTES_MAX, "longer framing is refused");
        Self(port | extra_bytes << PORT_BITS | if cut_through { CUT_THROUGH } else { 0 })
    }

    #[inline(always)]
    pub(crate) fn port(self) -> u32 {
        self.0 & ((1 << PORT_BITS) - 1)
    }

    /// Outer headers and framing, in bytes.
    #[inline(always)]
    pub(crate) fn extra_bytes(self) -> u64 {
        u64::from(self.0 >> PORT_BITS & Self::EXTRA_BYTES_MAX)
    }

    /// Whether the switch at the far end starts to forward before it has the whole packet.
    #[inline(always)]
    pub(crate) fn is_cut_through(self) -> bool {
        self.0 & CUT_THROUGH != 0
    }
}

/// All routes in use. The place of a route is that of its first hop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    hops: Vec<u32>,
    places: HashMap<u64, u32, BuildHasherDefault<Scrambled>>,
}

impl Routes {
    /// The place of a route, which is stored if it is new.
    pub(crate) fn intern(&mut self, hops: &[Hop]) -> u32 {
        let mut key = hops.iter().fold(hops.len() as u64, |key, hop| scramble(key ^ u64::from(hop.0)));
        while let Some(place) = self.places.get(&key) {
            if self.is_at(*place, hops) {
                return *place;
            }
            key = key.wrapping_add(1);
        }
        let place = self.hops.len() as u32;
        self.hops.extend(hops.iter().map(|hop| hop.0).chain([END]));
        self.places.insert(key, place);
        place
    }

    /// The hops of a route from the one before a place to its last.
    pub(crate) fn rest(&self, place: u32) -> impl Iterator<Item = Hop> {
        self.hops[place as usize - 1..].iter().take_while(|hop| **hop != END).map(|hop| Hop(*hop))
    }

    /// The last hop of the route that a place is on, be it the place after it.
    pub(crate) fn last(&self, place: u32) -> Hop {
        let ahead = self.hops[place as usize..].iter().take_while(|hop| **hop != END).count();
        Hop(self.hops[place as usize + ahead - 1])
    }

    /// The hop at a place that is known to be one.
    #[inline(always)]
    pub(crate) fn hop(&self, place: u32) -> Hop {
        Hop(self.hops[place as usize])
    }

    /// The next hop of a packet, if there is one.
    #[inline(always)]
    pub(crate) fn next(&self, place: u32) -> Option<Hop> {
        self.hops.get(place as usize).copied().filter(|hop| *hop != END).map(Hop)
    }

    /// The hop that a packet is on, and the next if there is one.
    #[inline(always)]
    pub(crate) fn step(&self, place: u32) -> (Hop, Option<Hop>) {
        let place = place as usize;
        let next = self.hops[place];
        (Hop(self.hops[place - 1]), (next != END).then_some(Hop(next)))
    }

    /// Fetches the hop at a place and the one before ahead of their use.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: u32) {
        prefetch_from(&self.hops, (place as usize).wrapping_sub(1), 2 * size_of::<u32>());
    }

    fn is_at(&self, place: u32, hops: &[Hop]) -> bool {
        let stored = &self.hops[place as usize..];
        stored.len() > hops.len()
            && stored[hops.len()] == END
            && stored.iter().zip(hops).all(|(stored, hop)| *stored == hop.0)
    }
}

/// Keys are scrambled already.
#[derive(Clone, Copy, Debug, Default)]
struct Scrambled(u64);

impl Hasher for Scrambled {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |key, byte| scramble(key ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_stored_once_and_walked_to_its_end() {
        let mut routes = Routes::default();
        let hops = [Hop::new(3, 78, true), Hop::new(1_048_574, 2_047, true), Hop::new(0, 0, false)];
        let place = routes.intern(&hops);
        assert_eq!(routes.intern(&hops), place);
        assert_ne!(routes.intern(&hops[..1]), place, "the beginning of a route is another route");
        let first = routes.hop(place);
        assert_eq!((first.port(), first.extra_bytes(), first.is_cut_through()), (3, 78, true));
        assert_eq!(routes.step(place + 1), (hops[0], Some(hops[1])));
        assert_eq!(routes.step(place + 2), (hops[1], Some(hops[2])), "no hop looks like the end");
        assert_eq!(routes.step(place + 3), (hops[2], None));
        assert_eq!([0, 2, 3].map(|step| routes.last(place + step)), [hops[2]; 3]);
        assert_eq!(routes.rest(place + 2).collect::<Vec<Hop>>(), hops[1..]);
        assert_eq!((hops[1].port(), hops[1].extra_bytes(), hops[1].is_cut_through()), (1_048_574, 2_047, true));
    }
}
