//! Whether settings can work: everything that is wrong in itself, and what does not fit this host.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::settings::{Entry, Flood, Port, Segment, Settings, Tagged, To};
use super::vni::Vni;
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::{TAG_LEN, VlanId};
use weft_wire::vxlan::OVERHEAD_BYTES;

/// Longest head-end replication list of a segment.
pub const COPIES_MAX: usize = 128;

/// A setting that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {why}")]
pub struct Fault {
    pub setting: &'static str,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

impl Fault {
    pub(super) fn new(setting: &'static str, why: impl Into<String>) -> Self {
        Self { setting, why: why.into() }
    }
}

/// What settings must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Our address as a VTEP.
    pub local: Ipv4Addr,
    /// Interfaces towards the underlay.
    pub uplinks: Vec<String>,
    /// Interfaces that there are, each with its MTU in bytes: at least the uplinks and those that may become ports.
    pub mtu: BTreeMap<String, u32>,
}

impl Host {
    /// The largest IP packet that every uplink carries, bytes.
    ///
    /// # Errors
    /// An uplink that does not exist.
    pub fn uplink_mtu(&self) -> Result<(&str, u32), Fault> {
        let mut least: Option<(&str, u32)> = None;
        for name in &self.uplinks {
            let mtu = *self.mtu.get(name).ok_or_else(|| no_interface("uplink", name))?;
            if least.is_none_or(|(_, before)| mtu < before) {
                least = Some((name, mtu));
            }
        }
        least.ok_or_else(|| Fault::new("uplink", "there is none; name the interface towards the other VTEPs"))
    }
}

impl Settings {
    /// Checks all of it.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self, host: &Host) -> Result<(), Fault> {
        self.peers.iter().try_for_each(|peer| check_peer(*peer, host))?;
        self.vnis.iter().try_for_each(|(vni, segment)| self.check_segment(*vni, segment))?;
        self.ports.iter().try_for_each(|(name, port)| self.check_port(name, port, host))?;
        self.entries.iter().try_for_each(|((vni, mac), entry)| self.check_entry(*vni, *mac, entry))?;
        let mut addresses = BTreeMap::new();
        for ((vni, mac), entry) in &self.entries {
            let Some(ip) = entry.ip else { continue };
            if let Some(other) = addresses.insert((*vni, ip), *mac) {
                let why = format!("{ip} in VNI {vni} belongs to {other} and to {mac}; an address has one MAC");
                return Err(Fault::new("entry", why));
            }
        }
        Ok(())
    }

    fn check_segment(&self, vni: Vni, segment: &Segment) -> Result<(), Fault> {
        let fault = |why: String| Err(Fault::new("flood", format!("VNI {vni}: {why}")));
        if segment.broadcast_per_s == Some(0) {
            let why = format!("VNI {vni}: 0 leaves no ARP; write 1 or more, or flood = \"nowhere\"");
            return Err(Fault::new("broadcast_per_s", why));
        }
        let copies = self.copies_of(segment).len();
        if copies > COPIES_MAX {
            return fault(format!(
                "{copies} peers are more than {COPIES_MAX} copies of a frame; use a multicast group"
            ));
        }
        if let Some(stranger) = segment.members.iter().flatten().find(|member| !self.peers.contains(member)) {
            return Err(Fault::new("members", format!("VNI {vni}: {stranger} is no peer; add it to `peers`")));
        }
        match &segment.flood {
            Flood::List(list) => match list.difference(&self.peers).next() {
                Some(stranger) => fault(format!("{stranger} is no peer; add it to `peers`")),
                None => Ok(()),
            },
            Flood::Group(group) if !group.is_multicast() => {
                fault(format!("{group} is no multicast address; take one from 239.0.0.0/8"))
            }
            _ => Ok(()),
        }
    }

    fn check_port(&self, name: &str, port: &Port, host: &Host) -> Result<(), Fault> {
        if host.uplinks.iter().any(|uplink| uplink == name) {
            return Err(Fault::new("port", format!("`{name}` is an uplink; an interface cannot be both")));
        }
        if port.circuits().next().is_none() {
            return Err(Fault::new(
                "port",
                format!("`{name}` is in no segment; give it a VNI, or VLANs with their VNIs"),
            ));
        }
        if port.is_trunk() && port.tagged == Tagged::Keep {
            let why = "tags say the segment of a trunk and cannot be kept as well; leave `tagged` or the VLANs away";
            return Err(Fault::new("port", format!("`{name}`: {why}")));
        }
        if let Some((_, vni)) = port.circuits().find(|(_, vni)| !self.vnis.contains_key(vni)) {
            return Err(Fault::new("port", format!("`{name}`: there is no VNI {vni}; add VNI {vni} first")));
        }
        let mtu = *host.mtu.get(name).ok_or_else(|| no_interface("port", name))?;
        let (uplink, uplink_mtu) = host.uplink_mtu()?;
        let tag_bytes = if port.tagged == Tagged::Keep { TAG_LEN } else { 0 };
        let more = (OVERHEAD_BYTES + tag_bytes) as u32;
        if mtu.saturating_add(more) <= uplink_mtu {
            return Ok(());
        }
        let most = uplink_mtu.saturating_sub(more);
        let why = format!(
            "`{name}` has MTU {mtu} and VXLAN adds {more} bytes, but uplink `{uplink}` carries {uplink_mtu}; set the \
             port's MTU to {most} or less (ip link set {name} mtu {most}) or the uplink's to {} or more",
            mtu.saturating_add(more)
        );
        Err(Fault::new("port", why))
    }

    fn check_entry(&self, vni: Vni, mac: MacAddress, entry: &Entry) -> Result<(), Fault> {
        let fault = |why: String| Err(Fault::new("entry", format!("{mac} in VNI {vni}: {why}")));
        if !self.vnis.contains_key(&vni) {
            return fault(format!("there is no VNI {vni}; add it first"));
        }
        if mac.is_group() || mac.0 == [0; 6] {
            return fault("is the MAC of no single station".to_owned());
        }
        if entry.ip.is_some_and(|ip| ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()) {
            return fault("its address is that of no single station".to_owned());
        }
        match &entry.to {
            To::Peer(peer) if !self.peers.contains(peer) => fault(format!("{peer} is no peer; add it to `peers`")),
            To::Port(name) => self.check_place(name, None, vni).or_else(fault),
            To::Vlan(name, vlan) => self.check_place(name, Some(*vlan), vni).or_else(fault),
            To::Peer(_) => Ok(()),
        }
    }

    /// Whether a port, or a VLAN of it, is in a segment; says where it is instead.
    fn check_place(&self, name: &str, vlan: Option<VlanId>, vni: Vni) -> Result<(), String> {
        let Some(port) = self.ports.get(name) else { return Err(format!("`{name}` is no access port; add it first")) };
        let there = port.vni_of(vlan);
        if there == Some(vni) {
            return Ok(());
        }
        if let Some((Some(right), _)) = port.circuits().find(|(_, of)| *of == vni) {
            return Err(format!("VNI {vni} is VLAN {right} of port `{name}`; say so (vlan = {right})"));
        }
        let place = To::at(name, vlan);
        match there {
            Some(other) => Err(format!("port `{place}` is in VNI {other}")),
            None => Err(format!("port `{place}` is in no VNI")),
        }
    }
}

fn check_peer(peer: Ipv4Addr, host: &Host) -> Result<(), Fault> {
    if peer == host.local {
        return Err(Fault::new("peers", format!("{peer} is this VTEP itself; name the others only")));
    }
    if peer.is_unspecified()
        || peer.is_multicast()
        || peer.is_broadcast()
        || peer.is_loopback() != host.local.is_loopback()
    {
        return Err(Fault::new("peers", format!("{peer} cannot be the address of another VTEP")));
    }
    Ok(())
}

fn no_interface(setting: &'static str, name: &str) -> Fault {
    Fault::new(setting, format!("there is no interface `{name}`; make it first, or correct the name (ip link)"))
}
