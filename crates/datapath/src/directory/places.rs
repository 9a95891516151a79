//! The rows of the table by open addressing, in memory that the program reads: a row stands in its own place, or in the first
//! one behind it that was free, at most [`DIRECTORY_PROBES`] places on.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Row;
use super::abi::{DIRECTORY_PLACE_FACTOR, DIRECTORY_PROBES, DirectoryRow};
use crate::abi::Abi;

/// Words of a row.
pub(super) const ROW_WORDS: usize = size_of::<DirectoryRow>() / 8;
const PROBES: usize = DIRECTORY_PROBES as usize;
const PLACES_MIN: u32 = 1024;

/// Places for that many rows: a power of two of which two thirds are taken at most, so that nearly all are near their own.
pub(super) fn wanted(rows: u32) -> u32 {
    (rows + rows / 2).next_power_of_two().max(PLACES_MIN)
}

/// All of them, on words that somebody else has too. Whoever reads them meanwhile has to know that they change.
#[derive(Debug)]
pub(super) struct Places<Memory> {
    words: Memory,
    /// A power of two less one.
    mask: usize,
    shift: u32,
    taken: usize,
}

impl<Memory: Deref<Target = [AtomicU64]>> Places<Memory> {
    /// On zeros, a power of two of places.
    pub(super) fn on(words: Memory) -> Self {
        let places = words.len() / ROW_WORDS;
        Self { words, mask: places - 1, shift: 64 - places.trailing_zeros(), taken: 0 }
    }

    /// How many rows there are.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// How many there could be.
    pub(super) fn places(&self) -> usize {
        self.mask + 1
    }

    /// Sets the row of its AA. Returns whether there was room.
    pub(super) fn set(&mut self, row: &Row) -> bool {
        let aa = row.aa.octets();
        let Some(place) = self.find(aa) else { return false };
        self.taken += usize::from(self.is_empty(place));
        let row = DirectoryRow {
            version: row.version,
            aa,
            service: row.service.to_be_bytes(),
            tor_la: row.tor_la.octets(),
            anycast_la: row.anycast_la.octets(),
            called: 0,
        };
        self.write(place, &row);
        true
    }

    /// Takes the row of an AA out. Those behind it move up where they would not be found otherwise.
    pub(super) fn remove(&mut self, aa: [u8; 4]) {
        let Some(mut hole) = self.find(aa).filter(|place| !self.is_empty(*place)) else { return };
        let mut place = (hole + 1) & self.mask;
        while !self.is_empty(place) && place != hole {
            let row = self.read(place);
            let from_home = place.wrapping_sub(self.home(row.aa)) & self.mask;
            if from_home >= place.wrapping_sub(hole) & self.mask {
                self.write(hole, &row);
                hole = place;
            }
            place = (place + 1) & self.mask;
        }
        self.write(hole, &DirectoryRow::ZERO);
        self.taken -= 1;
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
        self.taken = 0;
    }

    fn home(&self, aa: [u8; 4]) -> usize {
        (u64::from(u32::from_be_bytes(aa)).wrapping_mul(DIRECTORY_PLACE_FACTOR) >> self.shift) as usize
    }

    /// The place of an AA, or the empty one where it belongs; `None`: there is no room.
    fn find(&self, aa: [u8; 4]) -> Option<usize> {
        let home = self.home(aa);
        let places = (0..PROBES).map(|probe| (home + probe) & self.mask);
        places.into_iter().find(|place| self.is_empty(*place) || self.read(*place).aa == aa)
    }

    fn is_empty(&self, place: usize) -> bool {
        self.words[place * ROW_WORDS].load(Relaxed) == 0
    }

    fn read(&self, place: usize) -> DirectoryRow {
        let words = &self.words[place * ROW_WORDS..][..ROW_WORDS];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        DirectoryRow::from_bytes(&bytes).expect("a row's words")
    }

    fn write(&self, place: usize, row: &DirectoryRow) {
        let words = &self.words[place * ROW_WORDS..][..ROW_WORDS];
        for (word, bytes) in words.iter().zip(row.bytes().as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    use super::*;

    fn empty(places: usize) -> Places<Vec<AtomicU64>> {
        Places::on((0..places * ROW_WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    fn row(aa: u32, version: u64) -> Row {
        let la = |part: u32| Ipv4Addr::from(aa.wrapping_mul(7).wrapping_add(part));
        Row { aa: aa.into(), service: aa % 5, tor_la: la(1), anycast_la: la(2), version }
    }

    /// As the program looks: until a free place, or no further than it may.
    fn found(places: &Places<Vec<AtomicU64>>, aa: u32) -> Option<(u64, u32)> {
        let home = places.home(aa.to_be_bytes());
        let rows = (0..PROBES).map(|probe| places.read((home + probe) & places.mask));
        let mut rows = rows.take_while(|row| row.version != 0);
        rows.find(|row| row.aa == aa.to_be_bytes()).map(|row| (row.version, u32::from_be_bytes(row.tor_la)))
    }

    #[test]
    fn it_holds_what_a_map_holds_but_what_had_no_room() {
        let (mut places, mut map, mut seed) = (empty(1024), BTreeMap::new(), 7u64);
        let mut without_room = 0;
        for version in 1..60_000u64 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            // Full at times, and nearly empty at others.
            let range = if version % 20_000 < 10_000 { 3000 } else { 300 };
            let aa = (seed >> 20) as u32 % range * 857_251;
            if seed % 3 == 0 || (range == 300 && seed % 3 == 1) {
                places.remove(aa.to_be_bytes());
                map.remove(&aa);
            } else if places.set(&row(aa, version)) {
                map.insert(aa, (version, u32::from(row(aa, 0).tor_la)));
            } else {
                without_room += 1;
                assert!(!map.contains_key(&aa), "what is there can be set anew");
            }
            if version % 97 == 0 {
                for aa in (0..3000).map(|n: u32| n * 857_251) {
                    assert_eq!(found(&places, aa), map.get(&aa).copied(), "{version}: {aa}");
                }
            }
            assert_eq!(places.taken(), map.len());
        }
        assert!(without_room > 100, "{without_room}");
        places.clear();
        assert!(places.taken() == 0 && (0..3000).all(|n| found(&places, n * 857_251).is_none()));
    }

    #[test]
    fn no_more_than_two_thirds_of_the_places_are_wanted() {
        for (rows, places) in [(1, 1024), (1024, 2048), (262_144, 524_288), (2_000_000, 4_194_304)] {
            assert_eq!(wanted(rows), places);
            assert!(rows <= places / 3 * 2);
        }
    }
}
