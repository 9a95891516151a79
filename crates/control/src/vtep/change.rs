//! One change that an operator makes while the VTEP runs.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanId;

use super::check::Fault;
use super::settings::{Entry, Flood, Port, Segment, Settings, Tagged, To};
use super::vni::{Vni, VniRange};

/// A change of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// New segments, all alike.
    AddVnis(VniRange, Segment),
    /// Segments go, with all that was learned in them.
    RemoveVnis(VniRange),
    /// An interface becomes an access port; one that is there gets these segments as well.
    AddPort(String, Port),
    /// VLANs of a trunk go.
    RemoveVlans(String, BTreeSet<VlanId>),
    /// An access port goes.
    RemovePort(String),
    /// Another VTEP.
    AddPeer(Ipv4Addr),
    /// A VTEP goes.
    RemovePeer(Ipv4Addr),
    /// An entry, or another place for it.
    SetEntry(Vni, MacAddress, Entry),
    /// An entry goes.
    RemoveEntry(Vni, MacAddress),
}

impl Settings {
    /// The settings after a change. What depends on what goes must go first: nothing disappears that was not named.
    ///
    /// # Errors
    /// A change that is none, or that something else depends on. Whether the result can work is for [`Settings::check`].
    pub fn changed(&self, change: Change) -> Result<Self, Fault> {
        let mut settings = self.clone();
        match change {
            Change::AddVnis(range, segment) => settings.add_vnis(range, &segment)?,
            Change::RemoveVnis(range) => settings.remove_vnis(range)?,
            Change::AddPort(name, port) => settings.add_port(name, port)?,
            Change::RemoveVlans(name, vlans) => settings.remove_vlans(&name, &vlans)?,
            Change::RemovePort(name) => settings.remove_port(&name)?,
            Change::AddPeer(peer) => settings.add_peer(peer)?,
            Change::RemovePeer(peer) => settings.remove_peer(peer)?,
            Change::SetEntry(vni, mac, entry) => {
                settings.entries.insert((vni, mac), entry);
            }
            Change::RemoveEntry(vni, mac) => settings.remove_entry(vni, mac)?,
        }
        Ok(settings)
    }

    fn add_vnis(&mut self, range: VniRange, segment: &Segment) -> Result<(), Fault> {
        if let Some(there) = range.iter().find(|vni| self.vnis.contains_key(vni)) {
            return Err(Fault::new("vni", format!("VNI {there} exists already; remove it first to change it")));
        }
        self.vnis.extend(range.iter().map(|vni| (vni, segment.clone())));
        Ok(())
    }

    fn remove_vnis(&mut self, range: VniRange) -> Result<(), Fault> {
        if let Some((vni, port)) = self.circuits().find(|(vni, _)| range.contains(*vni)) {
            return Err(Fault::new("vni", format!("port `{port}` is in VNI {vni}; remove the port first")));
        }
        for vni in range.iter() {
            if self.vnis.remove(&vni).is_none() {
                return Err(Fault::new("vni", format!("there is no VNI {vni}; see `weft show vtep vni`")));
            }
        }
        self.entries.retain(|(vni, _), _| self.vnis.contains_key(vni));
        Ok(())
    }

    fn add_port(&mut self, name: String, port: Port) -> Result<(), Fault> {
        let Some(there) = self.ports.get_mut(&name) else {
            self.ports.insert(name, port);
            return Ok(());
        };
        match (there.vni, port.vni) {
            (Some(before), Some(after)) => return Err(taken(&name, before, after)),
            (None, None) if port.vlans.is_empty() => {
                return Err(Fault::new("port", format!("`{name}` is an access port already")));
            }
            (before, after) => there.vni = before.or(after),
        }
        for (vlan, vni) in port.vlans {
            if let Some(before) = there.vlans.insert(vlan, vni) {
                return Err(vlan_taken(&name, vlan, before, vni));
            }
        }
        if port.tagged == Tagged::Keep {
            there.tagged = Tagged::Keep;
        }
        Ok(())
    }

    fn remove_vlans(&mut self, name: &str, vlans: &BTreeSet<VlanId>) -> Result<(), Fault> {
        let none = || Fault::new("port", format!("`{name}` is no access port; see `weft show vtep vni`"));
        let port = self.ports.get_mut(name).ok_or_else(none)?;
        for vlan in vlans {
            if port.vlans.remove(vlan).is_none() {
                let why = format!("VLAN {vlan} of `{name}` is in no VNI; see `weft show vtep vni`");
                return Err(Fault::new("port", why));
            }
        }
        if port.circuits().next().is_none() {
            return Err(Fault::new("port", format!("`{name}` would be in no VNI any more; remove the port")));
        }
        self.entries.retain(|_, entry| !matches!(&entry.to, To::Vlan(of, vlan) if of == name && vlans.contains(vlan)));
        Ok(())
    }

    fn remove_port(&mut self, name: &str) -> Result<(), Fault> {
        if self.ports.remove(name).is_none() {
            return Err(Fault::new("port", format!("`{name}` is no access port; see `weft show vtep vni`")));
        }
        self.entries.retain(|_, entry| entry.to.port() != Some(name));
        Ok(())
    }

    fn add_peer(&mut self, peer: Ipv4Addr) -> Result<(), Fault> {
        if !self.peers.insert(peer) {
            return Err(Fault::new("peers", format!("{peer} is a peer already")));
        }
        Ok(())
    }

    fn remove_peer(&mut self, peer: Ipv4Addr) -> Result<(), Fault> {
        if !self.peers.remove(&peer) {
            return Err(Fault::new("peers", format!("{peer} is no peer; see `weft show vtep peers`")));
        }
        if let Some((vni, mac)) = self.entries.iter().find(|(_, entry)| entry.to == To::Peer(peer)).map(|(key, _)| key)
        {
            return Err(Fault::new("peers", format!("entry {mac} in VNI {vni} names {peer}; remove the entry first")));
        }
        for segment in self.vnis.values_mut() {
            if let Flood::List(list) = &mut segment.flood {
                list.remove(&peer);
            }
            if let Some(members) = &mut segment.members {
                members.remove(&peer);
            }
        }
        Ok(())
    }

    fn remove_entry(&mut self, vni: Vni, mac: MacAddress) -> Result<(), Fault> {
        match self.entries.remove(&(vni, mac)) {
            Some(_) => Ok(()),
            None => Err(Fault::new("entry", format!("there is no entry {mac} in VNI {vni}; see `weft show vtep fdb`"))),
        }
    }
}

/// A second segment for one access port.
pub fn taken(port: &str, before: Vni, after: Vni) -> Fault {
    let why = if before == after {
        format!("`{port}` is in VNI {before} already")
    } else {
        format!("`{port}` is in VNI {before} already and cannot be in VNI {after} as well; remove one of them")
    };
    Fault::new("port", why)
}

/// A second segment for one VLAN of a trunk.
pub fn vlan_taken(port: &str, vlan: VlanId, before: Vni, after: Vni) -> Fault {
    let why = if before == after {
        format!("VLAN {vlan} of `{port}` is in VNI {before} already")
    } else {
        format!(
            "VLAN {vlan} of `{port}` is in VNI {before} already and cannot be in VNI {after} as well; remove one of them"
        )
    };
    Fault::new("port", why)
}
