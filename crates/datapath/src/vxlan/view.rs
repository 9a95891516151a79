//! What a VTEP knows and has counted, for itself and for whoever looks at its pins.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use super::abi::{
    FdbEntry, FdbKey, PORT_KEEPS_TAGS, PORT_TRUNK, PORT_UPLINK, VTEP_EVENTS, VTEP_OUTCOMES, VTEP_VLANS, VtepArp,
    VtepArpKey, VtepFlood, VtepLimits, VtepPort, VtepTraffic, VtepVni, circuit, of_circuit,
};
use super::entry::{Entry, To};
use super::maps::Tables;
use super::segment::{Vni, VniSettings};
use super::trunk::Trunk;
use crate::error::DatapathError;
use crate::table::Table;

/// Frames and bytes of a segment or of a peer, of the inner frames. Copies of floods count for the peer only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Into the underlay, frames; a super frame counts once.
    pub sent_frames: u64,
    /// Into the underlay, bytes.
    pub sent_bytes: u64,
    /// Out of the underlay, frames; a super frame counts once.
    pub received_frames: u64,
    /// Out of the underlay, bytes.
    pub received_bytes: u64,
}

/// A segment of this VTEP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub vni: Vni,
    /// How it is set.
    pub settings: VniSettings,
    /// Its access ports.
    pub ports: Vec<To>,
    pub traffic: Traffic,
}

/// Another VTEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address in the underlay.
    pub address: Ipv4Addr,
    pub traffic: Traffic,
}

/// What an interface is to the VTEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// Towards the underlay.
    Uplink,
    /// Into a segment.
    Access {
        vni: Vni,
        /// Whether frames may carry a VLAN tag.
        keep_tags: bool,
    },
    /// Into several segments, told apart by the VLAN tag: [`VtepView::trunk`].
    Trunk,
}

/// An interface of the VTEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its index in its network namespace.
    pub ifindex: u32,
    pub role: PortRole,
}

/// The tables of a VTEP, to look at.
#[derive(Debug)]
pub struct VtepView {
    pub(super) tables: Tables,
}

impl VtepView {
    /// Of the VTEP that is pinned at `dir`, by whatever process.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Ok(Self { tables: Tables::open_pinned(dir.as_ref())? })
    }

    /// What became of the frames: [`VTEP_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.tables.counters.counters(&VTEP_OUTCOMES)
    }

    /// What happened beside that: [`VTEP_EVENTS`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn events(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.tables.events.counters(&VTEP_EVENTS)
    }

    /// The forwarding table, of one segment or of all, in order of segment and address.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn entries(&self, vni: Option<Vni>) -> Result<Vec<Entry>, DatapathError> {
        let all = self.tables.fdb.all::<FdbKey, FdbEntry>()?;
        let wanted = all.iter().filter(|(key, _)| vni.is_none_or(|vni| vni.get() == key.vni));
        let entries = wanted.filter_map(|(key, value)| Entry::of(key, value)).collect();
        Ok(in_order(entries, |entry: &Entry| (entry.vni, entry.mac)))
    }

    /// One entry.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn entry(&self, vni: Vni, mac: [u8; 6]) -> Result<Option<Entry>, DatapathError> {
        let key = FdbKey { vni: vni.get(), mac, zero: [0; 2] };
        let found: Option<FdbEntry> = self.tables.fdb.get(&key)?;
        Ok(found.and_then(|value| Entry::of(&key, &value)))
    }

    /// The addresses that ARP is answered for, of one segment or of all, in order.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn arps(&self, vni: Option<Vni>) -> Result<Vec<(Vni, Ipv4Addr, [u8; 6])>, DatapathError> {
        let all = self.tables.arp.all::<VtepArpKey, VtepArp>()?;
        let all = all.iter().filter_map(|(key, value)| Some((Vni::new(key.vni)?, key.address.into(), value.mac)));
        let wanted = all.filter(|(of, _, _)| vni.is_none_or(|vni| vni == *of));
        Ok(in_order(wanted.collect(), |arp: &(Vni, Ipv4Addr, [u8; 6])| *arp))
    }

    /// The segments, in order.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn segments(&self) -> Result<Vec<Segment>, DatapathError> {
        let mut segments = Vec::new();
        for (number, state) in self.tables.vnis.all::<u32, VtepVni>()? {
            if let Some(vni) = Vni::new(number) {
                segments.push(self.segment_of(vni, &state)?);
            }
        }
        Ok(in_order(segments, |segment| segment.vni))
    }

    /// The traffic of every segment, in order.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn traffic(&self) -> Result<Vec<(Vni, Traffic)>, DatapathError> {
        let mut segments = Vec::new();
        for (number, state) in self.tables.vnis.all::<u32, VtepVni>()? {
            if let Some(vni) = Vni::new(number) {
                segments.push((vni, traffic(&self.tables.vni_traffic, state.slot)?));
            }
        }
        Ok(in_order(segments, |(vni, _)| *vni))
    }

    /// One segment.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn segment(&self, vni: Vni) -> Result<Option<Segment>, DatapathError> {
        let found: Option<VtepVni> = self.tables.vnis.get(&vni.get())?;
        found.map(|state| self.segment_of(vni, &state)).transpose()
    }

    /// The other VTEPs, in order.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn peers(&self) -> Result<Vec<Peer>, DatapathError> {
        let mut peers = Vec::new();
        for (address, index) in self.tables.peer_index.all::<[u8; 4], u32>()? {
            peers.push(Peer { address: address.into(), traffic: traffic(&self.tables.peer_traffic, index)? });
        }
        Ok(in_order(peers, |peer| peer.address))
    }

    /// The interfaces, in order of index.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn ports(&self) -> Result<Vec<Port>, DatapathError> {
        let mut ports = Vec::new();
        for (_, index) in self.tables.port_index.all::<u32, u32>()? {
            let state: VtepPort = self.tables.ports.get(&index)?.unwrap_or_default();
            ports.extend(Port::of(&state));
        }
        Ok(in_order(ports, |port| port.ifindex))
    }

    /// The segments of a trunk; `None` if the interface is none.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn trunk(&self, ifindex: u32) -> Result<Option<Trunk>, DatapathError> {
        let index: Option<u32> = self.tables.port_index.get(&ifindex)?;
        let Some(index) = index else { return Ok(None) };
        let state: VtepPort = self.tables.ports.get(&index)?.unwrap_or_default();
        if state.flags & PORT_TRUNK == 0 {
            return Ok(None);
        }
        self.vlans(state.trunk).map(|vlans| Some(Trunk::of_vlans(&vlans)))
    }

    /// A trunk's table, without what is in no segment.
    pub(super) fn vlans(&self, trunk: u32) -> Result<BTreeMap<u16, Vni>, DatapathError> {
        let mut vlans = BTreeMap::new();
        for vlan in (0..).take(VTEP_VLANS as usize) {
            let number: u32 = self.tables.vlans.get(&circuit(trunk, vlan))?.unwrap_or_default();
            vlans.extend(Vni::new(number).map(|vni| (vlan, vni)));
        }
        Ok(vlans)
    }

    /// Where a circuit is.
    fn place_of(&self, of: u32) -> Result<To, DatapathError> {
        let (index, vlan) = of_circuit(of);
        let state: VtepPort = self.tables.ports.get(&index)?.unwrap_or_default();
        Ok(To::at(state.ifindex, vlan))
    }

    pub(super) fn segment_of(&self, vni: Vni, state: &VtepVni) -> Result<Segment, DatapathError> {
        let flood: VtepFlood = self.tables.floods.get(&vni.get())?.unwrap_or_default();
        let limits: VtepLimits = self.tables.limits.get(&state.slot)?.unwrap_or_default();
        let remotes = flood.remotes().iter().map(|remote| Ipv4Addr::from(*remote)).collect();
        Ok(Segment {
            vni,
            settings: VniSettings::of(state, &limits, remotes),
            ports: flood.ports().iter().map(|circuit| self.place_of(*circuit)).collect::<Result<_, _>>()?,
            traffic: traffic(&self.tables.vni_traffic, state.slot)?,
        })
    }
}

impl Port {
    pub(super) fn of(state: &VtepPort) -> Option<Self> {
        let role = if state.flags & PORT_UPLINK != 0 {
            PortRole::Uplink
        } else if state.flags & PORT_TRUNK != 0 {
            PortRole::Trunk
        } else {
            PortRole::Access { vni: Vni::new(state.vni)?, keep_tags: state.flags & PORT_KEEPS_TAGS != 0 }
        };
        (state.ifindex != 0).then_some(Self { ifindex: state.ifindex, role })
    }
}

/// In order, and once: what changes while a table is listed may come twice.
fn in_order<T, Key: Ord>(mut items: Vec<T>, key: impl Fn(&T) -> Key) -> Vec<T> {
    items.sort_unstable_by_key(&key);
    items.dedup_by_key(|item| key(item));
    items
}

fn traffic(table: &Table, index: u32) -> Result<Traffic, DatapathError> {
    let per_cpu = table.per_cpu::<VtepTraffic>(index)?;
    let sum = |of: fn(&VtepTraffic) -> u64| per_cpu.iter().map(of).sum();
    Ok(Traffic {
        sent_frames: sum(|traffic| traffic.sent_frames),
        sent_bytes: sum(|traffic| traffic.sent_bytes),
        received_frames: sum(|traffic| traffic.received_frames),
        received_bytes: sum(|traffic| traffic.received_bytes),
    })
}
