//! Other VTEPs, and floods to them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::abi::{FLOOD_PORTS, FloodState, HOPS_PER_PEER, Slot, VniState};
use super::entry::To;
use super::segment::{Flood, Vni, check_peer};
use super::{Vtep, full, peer_slot};
use crate::error::DatapathError;

impl Vtep {
    /// Makes a VTEP known: its frames are delivered and, where segments learn, learned from. Entries and floods that name
    /// a VTEP do this on their own.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for an address that cannot be another VTEP's or if there is no room, or
    /// [`DatapathError::Map`].
    pub fn add_peer(&mut self, address: Ipv4Addr) -> Result<(), DatapathError> {
        self.peer_index(address).map(|_| ())
    }

    /// Forgets a VTEP, with all entries and floods that name it. Returns whether it was known.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove_peer(&mut self, address: Ipv4Addr) -> Result<bool, DatapathError> {
        let index: Option<u32> = self.view.tables.peer_index.get(&address.octets())?;
        let Some(index) = index else { return Ok(false) };
        self.view.tables.peer_index.delete(&address.octets())?;
        let number = peer_slot(address);
        let slot: Slot = self.view.tables.peer_slots.get(&number)?.unwrap_or_default();
        if slot.number == address.octets() {
            self.view.tables.peer_slots.put(&number, &Slot::default())?;
        }
        self.sweep(|entry| entry.to == To::Remote(address))?;
        for (number, state) in self.view.tables.floods.all::<u32, FloodState>()? {
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
            for hop in 0..HOPS_PER_PEER {
                xdp.hops.clear_per_cpu(index * HOPS_PER_PEER + hop)?;
            }
        }
        tables.peer_index.put(&address.octets(), &index)?;
        let number = peer_slot(address);
        let slot: Slot = tables.peer_slots.get(&number)?.unwrap_or_default();
        if slot.number == [0; 4] {
            tables.peer_slots.put(&number, &Slot { number: address.octets(), index })?;
        }
        Ok(index)
    }

    /// Sets the VTEPs that floods of a segment go to; its ports stay.
    pub(super) fn put_flood(&mut self, vni: Vni, flood: &Flood) -> Result<(), DatapathError> {
        let remotes: Vec<[u8; 4]> = match flood {
            Flood::HeadEnd(remotes) => {
                let unique: BTreeSet<Ipv4Addr> = remotes.iter().copied().collect();
                for remote in &unique {
                    self.peer_index(*remote)?;
                }
                unique.iter().map(Ipv4Addr::octets).collect()
            }
            Flood::None | Flood::Group(_) => Vec::new(),
        };
        let floods = &self.view.tables.floods;
        let state: FloodState = floods.get(&vni.get())?.unwrap_or_default();
        floods.put(&vni.get(), &state.with_remotes(&remotes))?;
        if let Flood::Group(group) = flood {
            return self.memberships.add(*group, &self.uplinks());
        }
        Ok(())
    }

    /// Adds a port to those that floods of its segment go to, or takes it away.
    pub(super) fn put_flood_port(&self, vni: Vni, ifindex: u32, member: bool) -> Result<(), DatapathError> {
        let floods = &self.view.tables.floods;
        let mut state: FloodState = floods.get(&vni.get())?.unwrap_or_default();
        let mut ports: Vec<u32> = state.ports().iter().copied().filter(|port| *port != ifindex).collect();
        if member {
            ports.push(ifindex);
        }
        if ports.len() > FLOOD_PORTS {
            let why =
                format!("segment {vni} has {FLOOD_PORTS} ports on this node already, and one frame cannot reach more");
            return Err(DatapathError::Config { field: "port", why });
        }
        state.port = [0; FLOOD_PORTS];
        state.port[..ports.len()].copy_from_slice(&ports);
        state.ports = u32::try_from(ports.len()).expect("at most 128");
        floods.put(&vni.get(), &state)
    }

    /// Joins the groups that segments flood to, and leaves all others.
    pub(super) fn join_groups(&mut self) -> Result<(), DatapathError> {
        let (groups, uplinks) = (self.groups()?, self.uplinks());
        self.memberships.set(&groups, &uplinks)
    }

    fn groups(&self) -> Result<BTreeSet<Ipv4Addr>, DatapathError> {
        let all = self.view.tables.vnis.all::<u32, VniState>()?;
        Ok(all.iter().map(|(_, state)| Ipv4Addr::from(state.group)).filter(|group| !group.is_unspecified()).collect())
    }
}

impl FloodState {
    fn with_remotes(&self, remotes: &[[u8; 4]]) -> Self {
        let mut state = Self { remotes: u32::try_from(remotes.len()).expect("at most 128"), ..*self };
        state.remote = Self::default().remote;
        state.remote[..remotes.len()].copy_from_slice(remotes);
        state
    }
}
