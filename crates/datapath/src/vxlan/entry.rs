//! Entries of the forwarding table: who is where, and who says so.

use std::net::Ipv4Addr;

use weft_wire::vlan::VlanId;

use super::abi::{FDB_DIRECTORY, FDB_LEARNED, FDB_PEER, FDB_PORT, FDB_STATIC, FdbEntry, FdbKey, of_circuit};
use super::segment::Vni;

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Behind another VTEP.
    Remote(Ipv4Addr),
    /// Behind the access port with this interface index; at a trunk: without a tag.
    Port(u32),
    /// Behind the trunk with this interface index, in one of its VLANs.
    Vlan(u32, VlanId),
}

impl To {
    /// At an interface, with a VLAN ID or with none (0).
    pub(super) fn at(ifindex: u32, vlan: u16) -> Self {
        VlanId::new(vlan).map_or(Self::Port(ifindex), |vlan| Self::Vlan(ifindex, vlan))
    }

    /// Interface index of the port.
    pub fn ifindex(self) -> Option<u32> {
        match self {
            Self::Port(ifindex) | Self::Vlan(ifindex, _) => Some(ifindex),
            Self::Remote(_) => None,
        }
    }
}

/// Who says where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Frames. Only such entries age and move.
    Learned,
    /// The operator.
    Static,
    Directory,
}

impl Origin {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Learned => FDB_LEARNED,
            Self::Static => FDB_STATIC,
            Self::Directory => FDB_DIRECTORY,
        }
    }

    fn of(code: u8) -> Self {
        match code {
            FDB_STATIC => Self::Static,
            FDB_DIRECTORY => Self::Directory,
            _ => Self::Learned,
        }
    }
}

/// An entry of the forwarding table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Segment.
    pub vni: Vni,
    /// Address.
    pub mac: [u8; 6],
    pub to: To,
    /// Who says so.
    pub origin: Origin,
    /// When it was last confirmed (to about a second) or told, `CLOCK_MONOTONIC`, nanoseconds.
    pub seen_ns: u64,
}

impl Entry {
    /// Time since it was last confirmed, nanoseconds; `now_ns` as of [`super::now_ns`].
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.seen_ns)
    }

    pub(super) fn of(key: &FdbKey, value: &FdbEntry) -> Option<Self> {
        let to = match value.kind {
            FDB_PORT => To::at(u32::from_ne_bytes(value.place), of_circuit(value.target).1),
            FDB_PEER => To::Remote(value.place.into()),
            _ => return None,
        };
        let origin = Origin::of(value.origin);
        Some(Self { vni: Vni::new(key.vni)?, mac: key.mac, to, origin, seen_ns: value.seen_ns })
    }
}
