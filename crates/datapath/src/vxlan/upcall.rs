//! Messages of the programs to user space: what they could not answer, and what they learned.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::MapHandle;

use super::abi::{UPCALL_ARP, UPCALL_LEARNED, UPCALL_MOVED, UPCALL_UNICAST, UPCALL_UNKNOWN_PEER, VtepUpcall};
use super::entry::To;
use super::maps::UPCALLS;
use super::segment::Vni;
use crate::abi::Abi;
use crate::error::DatapathError;
use crate::pin;
use crate::ring::Ring;

/// Messages that one [`Upcalls::take`] returns at most.
const TAKE_MAX: usize = 1024;

/// A message. The same miss is told at most about every 100 ms, a stranger every second. What a segment causes beyond
/// [`VTEP_UPCALLS_PER_S`](super::abi::VTEP_UPCALLS_PER_S) is counted as `upcall_limited`, what finds no room as `upcall_lost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcall {
    /// An ARP request for an address without an entry.
    ArpMiss {
        /// Segment.
        vni: Vni,
        /// Port that it came in at.
        from: To,
        /// Who asks: MAC.
        sender_mac: [u8; 6],
        /// Who asks: address.
        sender: Ipv4Addr,
        /// Who is asked for.
        target: Ipv4Addr,
    },
    /// A frame from a port to a MAC without an entry.
    UnicastMiss {
        /// Segment.
        vni: Vni,
        /// Port that it came in at.
        from: To,
        /// Who sends.
        source_mac: [u8; 6],
        /// To whom.
        destination_mac: [u8; 6],
        /// Addresses of the IPv4 packet inside, source and destination.
        addresses: Option<(Ipv4Addr, Ipv4Addr)>,
    },
    /// An address was learned.
    Learned {
        /// Segment.
        vni: Vni,
        /// The address.
        mac: [u8; 6],
        to: To,
    },
    /// A learned address is elsewhere now.
    Moved {
        /// Segment.
        vni: Vni,
        /// The address.
        mac: [u8; 6],
        /// Where it is now.
        to: To,
    },
    /// A frame of a VTEP that nobody told us of.
    UnknownPeer {
        /// Segment that it names.
        vni: Vni,
        /// The VTEP.
        peer: Ipv4Addr,
    },
}

impl Upcall {
    fn of(state: &VtepUpcall) -> Option<Self> {
        let vni = Vni::new(state.vni)?;
        let (peer, from) = (Ipv4Addr::from(state.peer), To::at(state.ifindex, state.vlan));
        let to = if peer.is_unspecified() { from } else { To::Remote(peer) };
        let (source, destination) = (Ipv4Addr::from(state.source_ip), Ipv4Addr::from(state.destination_ip));
        Some(match state.kind {
            UPCALL_ARP => Self::ArpMiss { vni, from, sender_mac: state.source, sender: source, target: destination },
            UPCALL_UNICAST => Self::UnicastMiss {
                vni,
                from,
                source_mac: state.source,
                destination_mac: state.destination,
                addresses: (!destination.is_unspecified()).then_some((source, destination)),
            },
            UPCALL_LEARNED => Self::Learned { vni, mac: state.source, to },
            UPCALL_MOVED => Self::Moved { vni, mac: state.source, to },
            UPCALL_UNKNOWN_PEER => Self::UnknownPeer { vni, peer },
            _ => return None,
        })
    }
}

/// The messages of one VTEP. One reader at a time; readable (`AsFd`) when there is something to take.
#[derive(Debug)]
pub struct Upcalls(Ring<Upcall>);

impl Upcalls {
    /// The messages of the VTEP that is pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Self::of_map(pin::open_map(dir.as_ref(), UPCALLS)?)
    }

    pub(super) fn of_map(map: MapHandle) -> Result<Self, DatapathError> {
        let read = |bytes: &[u8]| {
            let state = bytes.get(..size_of::<VtepUpcall>()).and_then(VtepUpcall::from_bytes);
            state.and_then(|state| Upcall::of(&state))
        };
        Ring::of_map(UPCALLS, map, read).map(Self)
    }

    /// What came since the last time, oldest first, at most a thousand. Never waits.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn take(&self) -> Result<Vec<Upcall>, DatapathError> {
        self.0.take(TAKE_MAX)
    }
}

impl AsFd for Upcalls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
