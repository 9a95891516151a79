//! Devmaps of their own for sets of ports that frames are copied to: see `bpf/lib/trill_sets.h`.
//!
//! Programs say which sets they want one for; [`Sets::prepare`] makes it, second by second. There are only so many: a set that was
//! not used for [`IDLE_S`] makes way for one that is asked for, and what finds no place is copied for all ports. What a devmap holds is
//! what its set says and no more, so no change of the forwarding table makes one wrong; a change of a port's interface does.
//!
//! A shared link of a set has two places in its devmap, whichever form of copies it is in the set for: the program behind them tells by the order in
//! which they come.

use std::collections::BTreeSet;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};

use super::COPY;
use super::abi::{TRILL_SETS, TrillSet, TrillSetUse};
use super::fib::{Fib, PortKind};
use crate::abi::Abi;
use crate::error::DatapathError;
use crate::object;
use crate::table::Table;

const SETS: &str = "trill_sets";
const ASKED: &str = "trill_sets_asked";
/// Names of the devmaps begin so; their numbers follow.
const DEVMAP: &str = "trill_set_";

/// A set that was not used for so long makes way.
const IDLE_S: u32 = 10;
/// Who has asked since then still wants it.
const ASKED_S: u32 = 3;
/// From taking a set out of the table to the next use of its devmap: no program that has found it there runs as long.
const REST_S: u32 = 2;

/// All devmaps of sets, by number.
#[derive(Debug)]
pub(super) struct Sets {
    sets: Table,
    asked: Table,
    devmaps: Vec<Devmap>,
    /// The latest second that was told.
    now_s: u32,
}

#[derive(Debug)]
struct Devmap {
    map: MapHandle,
    place: Place,
}

/// What is known of a devmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Ports that it has room for.
    room: u32,
    holds: Holds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    Set(Held),
    /// A set that is no longer in the table since then.
    Former(Held, u32),
}

/// A set, and what its devmap has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    set: TrillSet,
    places: TrillSet,
}

/// How a copy leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Link,
    Native,
}

/// What becomes of a set that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It gets this devmap.
    Gets(usize),
    /// It may get this one later, whose set goes now or has gone.
    WaitsFor(usize),
    Nothing,
}

impl Sets {
    pub(super) fn of_object(object: &Object) -> Result<Self, DatapathError> {
        let devmap = |number| {
            let name = format!("{DEVMAP}{number}");
            let map = object.maps().find(|map| map.name() == name.as_str()).expect("the object has this map");
            let map = MapHandle::try_from(&map).map_err(failed("opening"))?;
            Ok(Devmap { place: Place { room: map.max_entries(), holds: Holds::Nothing }, map })
        };
        Ok(Self {
            sets: Table::of(object, SETS)?,
            asked: Table::of(object, ASKED)?,
            devmaps: (0..TRILL_SETS).map(devmap).collect::<Result<_, _>>()?,
            now_s: 0,
        })
    }

    /// Makes devmaps for sets that were asked for lately. `now_s`: as programs are told.
    pub(super) fn prepare(&mut self, object: &Object, fib: &Fib, now_s: u32) -> Result<(), DatapathError> {
        self.now_s = now_s;
        for devmap in &mut self.devmaps {
            devmap.rest(now_s);
        }
        let asked = self.asked.all::<TrillSet, u32>()?;
        let mut promised = BTreeSet::new();
        let is_wanted = |set: &TrillSet, asked_s| now_s.saturating_sub(asked_s) <= ASKED_S && is_possible(set, fib);
        for (set, _) in asked.into_iter().filter(|(set, asked_s)| is_wanted(set, *asked_s)) {
            let used = self.used()?;
            let places: Vec<Place> = self.devmaps.iter().map(|devmap| devmap.place).collect();
            let held = Held { set, places: places_of(&set, fib) };
            match fate(&held, &places, &promised, &used, now_s) {
                Fate::Gets(number) => {
                    self.give(number, held, object, fib)?;
                    self.asked.delete(&set)?;
                }
                Fate::WaitsFor(number) => {
                    promised.insert(number);
                    self.take(number)?;
                }
                Fate::Nothing => {}
            }
        }
        Ok(())
    }

    /// When each set in the table was used last.
    fn used(&self) -> Result<Vec<(TrillSet, u32)>, DatapathError> {
        Ok(self.sets.all::<TrillSet, TrillSetUse>()?.into_iter().map(|(set, entry)| (set, entry.used_s)).collect())
    }

    /// Fills a devmap, and then has programs find it. An interface may have vanished: then its set is no longer wanted.
    fn give(&mut self, number: usize, held: Held, object: &Object, fib: &Fib) -> Result<(), DatapathError> {
        let devmap = &mut self.devmaps[number];
        for (place, (port, _)) in (0..).zip(members(&held.places)) {
            if devmap.set_device(place, fib.ports[&port].ifindex, object).is_err() {
                devmap.clear(place);
                return Ok(());
            }
        }
        devmap.place.holds = Holds::Set(held);
        self.sets.put(&held.set, &TrillSetUse { number: number as u32, used_s: self.now_s })
    }

    /// Has programs find it no more.
    fn take(&mut self, number: usize) -> Result<(), DatapathError> {
        let place = &mut self.devmaps[number].place;
        if let Holds::Set(held) = place.holds {
            self.sets.delete(&held.set)?;
            place.holds = Holds::Former(held, self.now_s);
        }
        Ok(())
    }

    /// A port has this interface now, and this is behind it; or it is gone. Where something else was behind it, its sets make way.
    pub(super) fn set_port(
        &mut self,
        port: u8,
        now: Option<(u32, &PortKind)>,
        object: &Object,
    ) -> Result<(), DatapathError> {
        for number in 0..self.devmaps.len() {
            let devmap = &self.devmaps[number];
            let (Holds::Set(held) | Holds::Former(held, _)) = devmap.place.holds else { continue };
            let of_port: Vec<(u32, Form)> = (0..)
                .zip(members(&held.places))
                .filter_map(|(place, (other, form))| (other == port).then_some((place, form)))
                .collect();
            let is_same = |kind: &PortKind| forms_of(kind) == of_port.iter().map(|(_, form)| *form).collect::<Vec<_>>();
            match now {
                _ if of_port.is_empty() => {}
                Some((ifindex, kind)) if is_same(kind) => {
                    of_port.iter().try_for_each(|(place, _)| devmap.set_device(*place, ifindex, object))?;
                }
                _ => {
                    of_port.iter().for_each(|(place, _)| devmap.remove(*place));
                    self.take(number)?;
                }
            }
        }
        Ok(())
    }
}

impl Devmap {
    fn set_device(&self, place: u32, ifindex: u32, object: &Object) -> Result<(), DatapathError> {
        let device = object::device(ifindex, Some(&object::program(object, COPY)));
        self.map.update(place.bytes(), &device, MapFlags::ANY).map_err(failed("setting an entry"))
    }

    /// An interface that has vanished has taken its entry with it.
    fn remove(&self, place: u32) {
        let _gone = self.map.delete(place.bytes());
    }

    /// Empties so many places.
    fn clear(&mut self, places: u32) {
        (0..places).for_each(|place| self.remove(place));
        self.place.holds = Holds::Nothing;
    }

    /// Lets it be used again once nobody can have found it any more.
    fn rest(&mut self, now_s: u32) {
        match self.place.holds {
            Holds::Former(held, since_s) if now_s.saturating_sub(since_s) >= REST_S => {
                self.clear(size_of(&held.places))
            }
            _ => {}
        }
    }
}

/// How copies leave by a port of this kind, in the order in which its places are.
fn forms_of(kind: &PortKind) -> Vec<Form> {
    match kind {
        PortKind::Link { .. } => vec![Form::Link],
        PortKind::Native { .. } => vec![Form::Native],
        PortKind::Shared { .. } => vec![Form::Link, Form::Native],
    }
}

/// What a devmap has for a set: a shared link in both forms.
fn places_of(set: &TrillSet, fib: &Fib) -> TrillSet {
    let is_shared = |port: u8| fib.ports.get(&port).is_some_and(|port| matches!(port.kind, PortKind::Shared { .. }));
    let both: u64 = members(set).filter(|(port, _)| is_shared(*port)).fold(0, |both, (port, _)| both | 1 << port);
    TrillSet { links: set.links | both, natives: set.natives | both }
}

/// The ports of a set, in the order in which its devmap has them.
fn members(set: &TrillSet) -> impl Iterator<Item = (u8, Form)> + use<> {
    let of = |ports: u64, form| (0..64).filter(move |port| ports >> port & 1 == 1).map(move |port| (port, form));
    of(set.links, Form::Link).chain(of(set.natives, Form::Native))
}

fn is_possible(set: &TrillSet, fib: &Fib) -> bool {
    members(set).all(|(port, form)| fib.ports.get(&port).is_some_and(|port| forms_of(&port.kind).contains(&form)))
}

fn size_of(set: &TrillSet) -> u32 {
    set.links.count_ones() + set.natives.count_ones()
}

/// `promised`: what others wait for. `used`: when each set was used last.
fn fate(wanted: &Held, places: &[Place], promised: &BTreeSet<usize>, used: &[(TrillSet, u32)], now_s: u32) -> Fate {
    if used.iter().any(|(other, _)| *other == wanted.set) {
        return Fate::Nothing;
    }
    let fitting = || places.iter().enumerate().filter(|(_, place)| place.room >= size_of(&wanted.places));
    let free = fitting().filter(|(_, place)| place.holds == Holds::Nothing).min_by_key(|(_, place)| place.room);
    if let Some((number, _)) = free {
        return Fate::Gets(number);
    }
    let used_s = |place: &Place| match place.holds {
        Holds::Set(there) => used.iter().find(|(other, _)| *other == there.set).map(|(_, used_s)| *used_s),
        _ => None,
    };
    let is_former =
        |number: usize, place: &Place| matches!(place.holds, Holds::Former(..)) && !promised.contains(&number);
    if let Some((number, _)) = fitting().find(|(number, place)| is_former(*number, place)) {
        return Fate::WaitsFor(number);
    }
    let oldest = fitting().filter_map(|(number, place)| Some((used_s(place)?, place.room, number))).min();
    match oldest {
        Some((used_s, _, number)) if now_s.saturating_sub(used_s) >= IDLE_S => Fate::WaitsFor(number),
        _ => Fate::Nothing,
    }
}

fn failed(what: &'static str) -> impl Fn(libbpf_rs::Error) -> DatapathError {
    move |source| DatapathError::Map { map: DEVMAP, what, source }
}
