//! Connections by small numbers that epoll hands back.

use rustix::event::epoll::EventData;

/// Which half of the worker a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Listener,
    Sender,
    Receiver,
    Datagrams,
    Storm,
}

/// A growing set with numbered places that are used again.
pub(super) struct Slots<T> {
    kind: Kind,
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[slot] = Some(value);
        slot
    }

    pub(super) fn get(&self, slot: usize) -> Option<&T> {
        self.places.get(slot)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.places.get_mut(slot)?.as_mut()
    }

    pub(super) fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.places.get_mut(slot)?.take();
        if value.is_some() {
            self.free.push(slot);
        }
        value
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }

    /// Numbers of places that have been used so far; some may be empty now.
    pub(super) fn numbers(&self) -> std::ops::Range<usize> {
        0..self.places.len()
    }

    /// What epoll shall return for this place.
    pub(super) fn token(&self, slot: usize) -> EventData {
        token(self.kind, slot)
    }
}

pub(super) fn token(kind: Kind, slot: usize) -> EventData {
    EventData::new_u64(((kind as u64) << 32) | slot as u64)
}

/// The inverse of [`token`].
pub(super) fn from_token(data: EventData) -> Option<(Kind, usize)> {
    let value = data.u64();
    let kinds = [Kind::Listener, Kind::Sender, Kind::Receiver, Kind::Datagrams, Kind::Storm];
    let kind = kinds.into_iter().find(|&kind| kind as u64 == value >> 32)?;
    Some((kind, (value & 0xffff_ffff) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_tokens_lead_back() {
        let mut slots = Slots::new(Kind::Receiver);
        assert_eq!([slots.insert('a'), slots.insert('b')], [0, 1]);
        assert_eq!((slots.remove(0), slots.remove(0), slots.remove(9)), (Some('a'), None, None));
        assert_eq!((slots.insert('c'), slots.get(0), slots.get(1), slots.get(2)), (0, Some(&'c'), Some(&'b'), None));
        assert_eq!(from_token(slots.token(1)), Some((Kind::Receiver, 1)));
        assert_eq!(from_token(EventData::new_u64(9 << 32)), None);
    }
}
