//! What stations and routers say about IP multicast groups, as the programs hand it on.

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::Object;

use super::abi::TrillTold;
use crate::error::DatapathError;
use crate::object;
use crate::ring::Ring;

pub(super) const RING: &str = "trill_told_ring";

/// Records that one [`Snooped::take`] returns at most.
const TAKE_MAX: usize = 256;

/// A packet of IGMP or MLD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub vlan: u16,
    /// The port that it came by.
    pub port: u8,
    /// Whether another RBridge sent it on, rather than a station of the port's.
    pub is_from_tree: bool,
    pub ethertype: u16,
    /// From its IP header on, at most [`TRILL_TOLD_BYTES`](super::abi::TRILL_TOLD_BYTES).
    pub packet: Vec<u8>,
}

/// The packets, as long as this lives. One reader at a time; readable (`AsFd`) when there are some.
#[derive(Debug)]
pub struct Snooped {
    ring: Ring<Told>,
}

impl Snooped {
    pub(super) fn of_object(object: &Object) -> Result<Self, DatapathError> {
        Ok(Self { ring: Ring::of_map(RING, object::map_handle(object, RING)?, read)? })
    }

    /// What came since the last time, oldest first. Never waits.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn take(&self) -> Result<Vec<Told>, DatapathError> {
        self.ring.take(TAKE_MAX)
    }
}

impl AsFd for Snooped {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

fn read(record: &[u8]) -> Option<Told> {
    let u16_at = |at: usize| Some([*record.get(at)?, *record.get(at + 1)?]);
    let start = offset_of!(TrillTold, bytes);
    let kept = u16::from_ne_bytes(u16_at(offset_of!(TrillTold, kept))?);
    Some(Told {
        vlan: u16::from_ne_bytes(u16_at(offset_of!(TrillTold, vlan))?),
        port: *record.get(offset_of!(TrillTold, port))?,
        is_from_tree: *record.get(offset_of!(TrillTold, from_tree))? != 0,
        ethertype: u16::from_be_bytes(u16_at(offset_of!(TrillTold, ethertype))?),
        packet: record.get(start..start + usize::from(kept))?.to_vec(),
    })
}
