//! All ports of a network and what they have in common.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use super::port::{Kind, Port, PortSetup, Rules, Wire};
use crate::packet::Packet;

/// All ports, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    each: Vec<Port>,
    kinds: Vec<Kind>,
    places: HashMap<Kind, u32>,
}

impl Index<u32> for Ports {
    type Output = Port;

    #[inline(always)]
    fn index(&self, number: u32) -> &Port {
        &self.each[number as usize]
    }
}

impl IndexMut<u32> for Ports {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut Port {
        &mut self.each[number as usize]
    }
}

impl Ports {
    /// None yet, with room for so many.
    pub(super) fn with_room(count: usize) -> Self {
        Self { each: Vec::with_capacity(count), ..Self::default() }
    }

    /// Adds a port at rest.
    pub(super) fn add(&mut self, setup: &PortSetup) {
        let kind = self.place_of(Kind::new(setup.wire, Rules::new(setup)));
        self.each.push(Port::new(self.each.len() as u32, kind));
    }

    /// Changes the rules of a port.
    pub(super) fn change(&mut self, number: u32, change: impl FnOnce(&mut Rules)) {
        let Kind { wire, mut rules, .. } = self.kinds[self[number].kind as usize];
        change(&mut rules);
        self.each[number as usize].kind = self.place_of(Kind::new(wire, rules));
    }

    fn place_of(&mut self, kind: Kind) -> u32 {
        *self.places.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            self.kinds.len() as u32 - 1
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Port> {
        self.each.iter()
    }

    /// A port and what it has in common with others.
    #[inline(always)]
    pub(super) fn with_kind(&mut self, number: u32) -> (&mut Port, &Kind) {
        let port = &mut self.each[number as usize];
        let kind = &self.kinds[port.kind as usize];
        (port, kind)
    }

    pub(crate) fn wire(&self, number: u32) -> &Wire {
        &self.kinds[self[number].kind as usize].wire
    }

    /// Bytes that are queued at a port and not sent yet, rounded up; part of a packet counts as that part.
    pub(crate) fn backlog_bytes(&self, number: u32, now_ps: u64) -> u64 {
        self.wire(number).bytes_in(self[number].backlog_ps(now_ps))
    }

    /// Everything that is queued or on the wire; none of it is left here.
    pub(super) fn clear(&mut self, number: u32, now_ps: u64) -> Vec<Packet> {
        let port = &mut self.each[number as usize];
        port.busy_ps = port.busy_ps.min(now_ps);
        port.packets.clear()
    }

    /// Packets of a port that are queued or on the wire.
    pub(crate) fn in_flight(&self, number: u32) -> impl Iterator<Item = &Packet> {
        self[number].packets.iter().map(|on_link| &on_link.packet)
    }
}
