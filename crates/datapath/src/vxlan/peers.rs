//! Other VTEPs, and floods to them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::abi::{FLOOD_PORTS, VTEP_HOPS_PER_PEER, VtepFlood, VtepSlot, VtepVni};
use super::entry::To;
use super::segment::{Flood, Vni, check_peer};
use super::{Vtep, full, peer_slot};
use crate::error::DatapathError;

impl Vtep {
    /// Makes a VTEP known: its frames are delivered and, where segments learn, learned from, in all segments that have no list
    /// of their own. Entries and floods that name a VTEP do this on their own, in their segment.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for an address that cannot be another VTEP's or if there is no room, or
    /// [`DatapathError::Map`].
    pub fn add_peer(&mut self, address: Ipv4Addr) -> Result<(), DatapathError> {
        self.peer_index(address)?;
        self.add_everywhere(address)
    }

    /// Forgets a VTEP, with all entries and floods that name it. Returns whether it was known.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove_peer(&mut self, address: Ipv4Addr) -> Result<bool, DatapathError> {
        let index: Option<u32> = self.view.tables.peer_index.get(&address.octets())?;
        let Some(index) = index else { return Ok(false) };
        self.view.tables.peer_index.delete(&address.octets())?;
        self.drop_everywhere(address)?;
        self.forget_member(address)?;
        let number = peer_slot(address);
        let slot: VtepSlot = self.view.tables.peer_slots.get(&number)?.unwrap_or_default();
        if slot.number == address.octets() {
            self.view.tables.peer_slots.put(&number, &VtepSlot::default())?;
        }
        self.forget_found()?;
        self.sweep(|entry| entry.to == To::Remote(address))?;
        for (number, state) in self.view.tables.floods.all::<u32, VtepFlood>()? {
            if state.remotes().contains(&address.octets()) {
                let kept: Vec<[u8; 4]> =
                    state.remotes().iter().copied().filter(|kept| *kept != address.octets()).collect();
                self.view.tables.floods.put(&number, &state.with_remotes(&kept))?;
            }
        }
        self.peer_indexes.give_back(index);
        Ok(true)
    }

    /// The number of a VTEP, which is made known if it is not.
    pub(super) fn peer_index(&mut self, address: Ipv4Addr) -> Result<u32, DatapathError> {
        let tables = &self.view.tables;
        let known: Option<u32> = tables.peer_index.get(&address.octets())?;
        if let Some(index) = known {
            return Ok(index);
        }
        check_peer(address, self.options.local)?;
        let index = self.peer_indexes.take().ok_or_else(|| full("peers", "VTEPs", self.options.capacities.peers))?;
        tables.peer_traffic.clear_per_cpu(index)?;
        if let Some(xdp) = &self.xdp {
            // Next hops of whoever had the number before.
            for hop in 0..VTEP_HOPS_PER_PEER {
                xdp.hops.clear_per_cpu(index * VTEP_HOPS_PER_PEER + hop)?;
            }
        }
        tables.peer_index.put(&address.octets(), &index)?;
        let number = peer_slot(address);
        let slot: VtepSlot = tables.peer_slots.get(&number)?.unwrap_or_default();
        if slot.number == [0; 4] {
            tables.peer_slots.put(&number, &VtepSlot { number: address.octets(), index })?;
        }
        Ok(index)
    }

    /// The VTEPs that floods go to, which become known, and the group, which is joined.
    pub(super) fn remotes_of(&mut self, flood: &Flood) -> Result<Vec<[u8; 4]>, DatapathError> {
        match flood {
            Flood::HeadEnd(remotes) => {
                let unique: BTreeSet<Ipv4Addr> = remotes.iter().copied().collect();
                for remote in &unique {
                    self.peer_index(*remote)?;
                }
                Ok(unique.iter().map(Ipv4Addr::octets).collect())
            }
            Flood::Group(group) => self.memberships.add(*group, &self.uplinks()).map(|()| Vec::new()),
            Flood::None => Ok(Vec::new()),
        }
    }

    /// Adds a circuit to those that floods of its segment go to, or takes it away.
    pub(super) fn put_flood_port(&self, vni: Vni, circuit: u32, member: bool) -> Result<(), DatapathError> {
        self.put_flood_ports([(vni, circuit, member)].into_iter())
    }

    /// The same for many circuits.
    pub(super) fn put_flood_ports(&self, members: impl Iterator<Item = (Vni, u32, bool)>) -> Result<(), DatapathError> {
        let floods = &self.view.tables.floods;
        let mut changed: BTreeMap<u32, VtepFlood> = BTreeMap::new();
        for (vni, circuit, member) in members {
            let state = match changed.entry(vni.get()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(floods.get(&vni.get())?.unwrap_or_default()),
            };
            if !state.set_member(circuit, member) {
                let why = format!(
                    "segment {vni} has {FLOOD_PORTS} ports on this node already, and one frame cannot reach more"
                );
                return Err(DatapathError::Config { field: "port", why });
            }
        }
        floods.put_all(&changed.into_iter().collect::<Vec<_>>())
    }

    /// Joins the groups that segments flood to, and leaves all others.
    pub(super) fn join_groups(&mut self) -> Result<(), DatapathError> {
        let (groups, uplinks) = (self.groups()?, self.uplinks());
        self.memberships.set(&groups, &uplinks)
    }

    fn groups(&self) -> Result<BTreeSet<Ipv4Addr>, DatapathError> {
        let all = self.view.tables.vnis.all::<u32, VtepVni>()?;
        Ok(all.iter().map(|(_, state)| Ipv4Addr::from(state.group)).filter(|group| !group.is_unspecified()).collect())
    }
}

impl VtepFlood {
    /// Adds a circuit or takes it away; `false` if there is no room.
    fn set_member(&mut self, circuit: u32, member: bool) -> bool {
        let mut ports: Vec<u32> = self.ports().iter().copied().filter(|port| *port != circuit).collect();
        if member {
            ports.push(circuit);
        }
        if ports.len() > FLOOD_PORTS {
            return false;
        }
        self.port = [0; FLOOD_PORTS];
        self.port[..ports.len()].copy_from_slice(&ports);
        self.ports = u32::try_from(ports.len()).expect("at most 128");
        true
    }

    pub(super) fn with_remotes(&self, remotes: &[[u8; 4]]) -> Self {
        let mut state = Self { remotes: u32::try_from(remotes.len()).expect("at most 128"), ..*self };
        state.remote = Self::default().remote;
        state.remote[..remotes.len()].copy_from_slice(remotes);
        state
    }
}
