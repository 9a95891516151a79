//! The records of the table by AA: an open-addressing map made for reading many at a time.
//!
//! A record with its AA is half a cache line and stands alone in its place, so a look-up reads one line where a general map
//! reads two or three. And the places of many AAs can be read ahead ([`Rows::touch`]) without a branch between them: then the
//! CPU fetches them side by side. For tables larger than its cache that is nearly all of a look-up's time.

use std::hint::black_box;
use std::net::Ipv4Addr;

use crate::address::Locator;

use super::table::Record;

/// A record with its AA. An empty place has version 0, which no record has.
#[repr(align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    version: u64,
    aa: u32,
    service: u32,
    tor_la: u32,
    anycast_la: u32,
    host_la: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Row>() == 32 && align_of::<Row>() == 32);

const HAS_LOCATOR: u32 = 1;
const HAS_HOST: u32 = 2;

impl Row {
    fn of(aa: Ipv4Addr, record: &Record) -> Self {
        let (tor_la, anycast_la) = record.locator.map_or((0, 0), |at| (at.tor_la.into(), at.anycast_la.into()));
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        Self {
            version: record.version.max(1),
            aa: aa.into(),
            service: record.service,
            tor_la,
            anycast_la,
            host_la: record.host_la.map_or(0, u32::from),
            flags: flag(record.locator.is_some(), HAS_LOCATOR) | flag(record.host_la.is_some(), HAS_HOST),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn service(&self) -> u32 {
        self.service
    }

    pub(super) fn locator(&self) -> Option<Locator> {
        let locator = Locator { tor_la: self.tor_la.into(), anycast_la: self.anycast_la.into() };
        (self.flags & HAS_LOCATOR != 0).then_some(locator)
    }

    pub(super) fn record(&self) -> Record {
        let host_la = (self.flags & HAS_HOST != 0).then(|| self.host_la.into());
        Record { locator: self.locator(), service: self.service, host_la, version: self.version }
    }

    fn is_empty(&self) -> bool {
        self.version == 0
    }
}

/// Places at the start: a power of two.
const PLACES_MIN: usize = 64;

/// The map.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// As many as a power of two, at most three quarters of them taken.
    places: Vec<Row>,
    taken: usize,
    /// What is left of a product of 64 bits is a place.
    shift: u32,
}

impl Default for Rows {
    fn default() -> Self {
        Self::with_places(PLACES_MIN)
    }
}

impl Rows {
    fn with_places(places: usize) -> Self {
        Self { places: vec![Row::default(); places], taken: 0, shift: 64 - places.trailing_zeros() }
    }

    /// The record of an AA.
    pub(super) fn get(&self, aa: Ipv4Addr) -> Option<&Row> {
        let row = &self.places[self.find(aa.into())];
        (!row.is_empty()).then_some(row)
    }

    /// Reads the places where these AAs should be, so that [`Self::get`] finds them in the cache.
    pub(super) fn touch(&self, aas: impl Iterator<Item = Ipv4Addr>) {
        // The sum makes the reads happen; nothing depends on any of them.
        black_box(aas.fold(0, |sum: u32, aa| sum.wrapping_add(self.places[self.home(aa.into())].aa)));
    }

    /// Sets the record of an AA. Returns the one before.
    pub(super) fn insert(&mut self, aa: Ipv4Addr, record: &Record) -> Option<Record> {
        let place = self.find(aa.into());
        let before = std::mem::replace(&mut self.places[place], Row::of(aa, record));
        if !before.is_empty() {
            return Some(before.record());
        }
        self.taken += 1;
        if self.taken > self.places.len() / 4 * 3 {
            self.resize(self.places.len() * 2);
        }
        None
    }

    /// Takes the record of an AA out. Those behind it move up where they would not be found otherwise.
    pub(super) fn remove(&mut self, aa: Ipv4Addr) -> Option<Record> {
        let mask = self.places.len() - 1;
        let mut hole = self.find(aa.into());
        let gone = self.places[hole];
        if gone.is_empty() {
            return None;
        }
        let mut place = (hole + 1) & mask;
        while !self.places[place].is_empty() {
            let row = self.places[place];
            let from_home = place.wrapping_sub(self.home(row.aa)) & mask;
            if from_home >= place.wrapping_sub(hole) & mask {
                self.places[hole] = row;
                hole = place;
            }
            place = (place + 1) & mask;
        }
        self.places[hole] = Row::default();
        self.taken -= 1;
        if self.places.len() > PLACES_MIN && self.taken < self.places.len() / 8 {
            self.resize(self.places.len() / 2);
        }
        Some(gone.record())
    }

    /// Every AA with its record, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Record)> + '_ {
        self.places.iter().filter(|row| !row.is_empty()).map(|row| (row.aa.into(), row.record()))
    }

    /// Where an AA would be if every place were free. Fibonacci hashing: AAs that follow each other, as they do in their
    /// block, lie evenly spread.
    fn home(&self, aa: u32) -> usize {
        (u64::from(aa).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The place of an AA, or the empty one where it belongs.
    fn find(&self, aa: u32) -> usize {
        let mut place = self.home(aa);
        loop {
            let row = &self.places[place];
            if row.aa == aa || row.is_empty() {
                // An empty place has AA 0, which is an AA like any other.
                return place;
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }

    fn resize(&mut self, places: usize) {
        let mut other = Self::with_places(places);
        for row in self.places.iter().filter(|row| !row.is_empty()) {
            let place = other.find(row.aa);
            other.places[place] = *row;
        }
        other.taken = self.taken;
        *self = other;
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.taken == other.taken && self.iter().all(|(aa, record)| other.get(aa).map(Row::record) == Some(record))
    }
}

impl Eq for Rows {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn record(number: u64) -> Record {
        let la = |part: u64| Ipv4Addr::from((number * 7 + part) as u32);
        Record {
            locator: (!number.is_multiple_of(3)).then(|| Locator { tor_la: la(1), anycast_la: la(2) }),
            service: number as u32 % 5,
            host_la: number.is_multiple_of(4).then(|| la(3)),
            version: number + 1,
        }
    }

    #[test]
    fn it_holds_what_a_map_holds_whatever_the_addresses() {
        let mut seed = 7u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let (mut rows, mut map) = (Rows::default(), BTreeMap::new());
        for number in 0..20_000 {
            // Dense ones, spread ones, those that differ in high bits only, and the two ends.
            let aa = match number % 4 {
                0 => 0x1400_0000 + random() as u32 % 3000,
                1 => random() as u32,
                2 => (random() as u32 % 2000) << 16,
                _ => [0, u32::MAX][number as usize / 4 % 2],
            };
            let aa = Ipv4Addr::from(aa);
            if number % 3 == 2 {
                assert_eq!(rows.remove(aa), map.remove(&aa), "{aa}");
            } else {
                assert_eq!(rows.insert(aa, &record(number)), map.insert(aa, record(number)), "{aa}");
            }
        }
        rows.touch(map.keys().copied());
        for (aa, record) in &map {
            assert_eq!(rows.get(*aa).map(Row::record), Some(*record));
        }
        assert_eq!(rows.iter().collect::<BTreeMap<_, _>>(), map);
        for number in 0..5000u32 {
            let aa = Ipv4Addr::from(number * 857_251);
            assert_eq!(rows.get(aa).is_some(), map.contains_key(&aa));
        }
        assert!(rows.taken <= rows.places.len() * 3 / 4);
        for aa in map.keys() {
            assert!(rows.remove(*aa).is_some() && rows.get(*aa).is_none(), "{aa}");
        }
        assert_eq!((rows.taken, rows.iter().count(), rows.places.len()), (0, 0, PLACES_MIN));
    }

    #[test]
    fn equality_does_not_depend_on_the_order() {
        let fill = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut rows = Rows::default();
            for number in numbers {
                rows.insert(Ipv4Addr::from((number as u32) << 20), &record(number));
            }
            rows
        };
        let forward = fill(&mut (0..1000));
        assert_eq!(forward, fill(&mut (0..1000).rev()));
        assert_ne!(forward, fill(&mut (0..999)));
        let mut other = forward.clone();
        other.insert(Ipv4Addr::from(5 << 20), &record(4));
        assert_ne!(forward, other);
    }
}
