//! Trunks: access ports that carry many segments, told apart by the VLAN tags of frames.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::vlan::VlanId;

use super::abi::{PORT_TRUNK, VTEP_VLANS, circuit};
use super::entry::To;
use super::ports::{AccessRule, Role, busy};
use super::segment::Vni;
use super::{Vtep, full};
use crate::error::DatapathError;

/// The segments of a trunk. Tags are taken off frames that come in and put on frames that leave (IEEE 802.1Q; RFC 7348
/// 6.1 wants none inside VXLAN), with priority 0. Several VLANs may be in one segment. What has a second tag, or a provider's
/// tag, is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trunk {
    /// Segment of frames without a tag, or with one that only has a priority; `None`: they are dropped.
    pub untagged: Option<Vni>,
    /// Segments by VLAN; frames of other VLANs are dropped and counted as `unknown_vlan`.
    pub vlans: BTreeMap<VlanId, Vni>,
}

impl Trunk {
    /// As the programs have it: by VLAN ID, with 0 for what has no tag.
    fn by_vlan(&self) -> BTreeMap<u16, Vni> {
        let tagged = self.vlans.iter().map(|(vlan, vni)| (vlan.get(), *vni));
        self.untagged.map(|vni| (0, vni)).into_iter().chain(tagged).collect()
    }

    pub(super) fn of_vlans(vlans: &BTreeMap<u16, Vni>) -> Self {
        let tagged = vlans.iter().filter_map(|(vlan, vni)| Some((VlanId::new(*vlan)?, *vni)));
        Self { untagged: vlans.get(&0).copied(), vlans: tagged.collect() }
    }
}

impl Vtep {
    /// Makes an interface of the caller's network namespace a trunk; one that is a trunk becomes this one, and entries
    /// behind VLANs that are in another segment now, or in none, are forgotten. Frames of other VLANs do not notice.
    ///
    /// With [`super::Hook::Xdp`] frames that come in here go by way of TC, which alone sees tags beside them.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a segment that is not there, an interface that is in use otherwise, or no room; or
    /// any other [`DatapathError`]. Then a trunk that was there is as it was.
    pub fn attach_trunk(&mut self, ifindex: u32, trunk: &Trunk) -> Result<(), DatapathError> {
        let wanted = trunk.by_vlan();
        wanted.values().try_for_each(|vni| self.state_of(*vni).map(drop))?;
        let is_new = match self.ports.get(&ifindex).map(|port| &port.role) {
            None => true,
            Some(Role::Trunk { .. }) => false,
            Some(Role::Access(vni)) => return Err(busy(ifindex, &format!("a port of segment {vni}"))),
            Some(Role::Uplink) => return Err(busy(ifindex, "an uplink")),
        };
        if is_new {
            self.make_trunk(ifindex)?;
        }
        let set = self.set_vlans(ifindex, wanted);
        if set.is_err() && is_new {
            self.detach_only(ifindex)?;
        }
        set
    }

    /// One without segments.
    fn make_trunk(&mut self, ifindex: u32) -> Result<(), DatapathError> {
        let room = self.options.capacities.trunks;
        let number = self.trunk_numbers.take().ok_or_else(|| full("trunks", "trunks", room))?;
        // Whoever had the number before may have been killed.
        self.put_vlans(number, &BTreeMap::new())?;
        let flags = self.access_flags(AccessRule::default()) | PORT_TRUNK;
        self.attach(ifindex, Role::Trunk { number, vlans: BTreeMap::new() }, flags)
    }

    fn set_vlans(&mut self, ifindex: u32, wanted: BTreeMap<u16, Vni>) -> Result<(), DatapathError> {
        let Some((index, Role::Trunk { number, vlans })) =
            self.ports.get(&ifindex).map(|port| (port.index, &port.role))
        else {
            return Ok(());
        };
        let (number, before) = (*number, vlans.clone());
        if let Err(error) = self.change_vlans((index, number), &before, &wanted) {
            // The first error is the one to tell.
            let _ = self.change_vlans((index, number), &wanted, &before);
            return Err(error);
        }
        let gone: BTreeSet<u16> =
            before.iter().filter(|(vlan, vni)| wanted.get(vlan) != Some(vni)).map(|(vlan, _)| *vlan).collect();
        if let Some(port) = self.ports.get_mut(&ifindex) {
            port.role = Role::Trunk { number, vlans: wanted };
        }
        if !gone.is_empty() {
            self.sweep(|entry| match entry.to {
                To::Port(of) => of == ifindex && gone.contains(&0),
                To::Vlan(of, vlan) => of == ifindex && gone.contains(&vlan.get()),
                To::Remote(_) => false,
            })?;
        }
        Ok(())
    }

    /// In the tables alone.
    fn change_vlans(
        &self,
        (index, number): (u32, u32),
        before: &BTreeMap<u16, Vni>,
        after: &BTreeMap<u16, Vni>,
    ) -> Result<(), DatapathError> {
        self.put_vlans(number, after)?;
        let gone = before.iter().filter(|(vlan, vni)| after.get(vlan) != Some(vni));
        let new = after.iter().filter(|(vlan, vni)| before.get(vlan) != Some(vni));
        let members = gone.map(|of| (of, false)).chain(new.map(|of| (of, true)));
        self.put_flood_ports(members.map(|((vlan, vni), member)| (*vni, circuit(index, *vlan), member)))
    }

    /// What a trunk that goes leaves in the tables.
    pub(super) fn forget_vlans(
        &mut self,
        (index, number): (u32, u32),
        vlans: &BTreeMap<u16, Vni>,
    ) -> Result<(), DatapathError> {
        self.change_vlans((index, number), vlans, &BTreeMap::new())?;
        self.trunk_numbers.give_back(number);
        Ok(())
    }

    /// Segments that go leave the trunks; where they flooded to goes with them.
    pub(super) fn leave_trunks(&mut self, vnis: &BTreeSet<Vni>) -> Result<(), DatapathError> {
        let mut changed = Vec::new();
        for port in self.ports.values_mut() {
            let Role::Trunk { number, vlans } = &mut port.role else { continue };
            let before = vlans.len();
            vlans.retain(|_, vni| !vnis.contains(vni));
            if vlans.len() < before {
                changed.push((*number, vlans.clone()));
            }
        }
        changed.iter().try_for_each(|(number, vlans)| self.put_vlans(*number, vlans))
    }

    fn put_vlans(&self, number: u32, vlans: &BTreeMap<u16, Vni>) -> Result<(), DatapathError> {
        let of = |vlan: u16| vlans.get(&vlan).map_or(0, |vni| vni.get());
        let row: Vec<(u32, u32)> =
            (0..).take(VTEP_VLANS as usize).map(|vlan| (circuit(number, vlan), of(vlan))).collect();
        self.view.tables.vlans.put_all(&row)?;
        self.forget_found()
    }
}
