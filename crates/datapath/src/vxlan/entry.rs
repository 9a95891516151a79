//! Entries of the forwarding table: who is where, and who says so.

use std::net::Ipv4Addr;

use super::abi::{FDB_DIRECTORY, FDB_LEARNED, FDB_PEER, FDB_PORT, FDB_STATIC, FdbEntry, FdbKey};
use super::segment::Vni;

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Behind another VTEP.
    Remote(Ipv4Addr),
    /// Behind the access port with this interface index.
    Port(u32),
}

/// Who says where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Frames. Only such entries age and move.
    Learned,
    /// The operator.
    Static,
    /// The directory.
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
    /// Where it is.
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
            FDB_PORT => To::Port(u32::from_ne_bytes(value.place)),
            FDB_PEER => To::Remote(value.place.into()),
            _ => return None,
        };
        let origin = Origin::of(value.origin);
        Some(Self { vni: Vni::new(key.vni)?, mac: key.mac, to, origin, seen_ns: value.seen_ns })
    }
}
