//! What goes into an agent, what comes out, and what it tells about itself.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::counters::{DropReason, Event, IgnoreReason};
use crate::address::Mapping;
use crate::tally::Tally;

/// What waits in an agent for a mapping: a frame, or what stands for one.
pub trait Held {
    /// What it counts against [`Bounds`](super::Bounds).
    fn held_bytes(&self) -> usize;
}

impl Held for Vec<u8> {
    fn held_bytes(&self) -> usize {
        self.len()
    }
}

/// What happens to an agent.
#[derive(Debug)]
pub enum Input<'a, H = Vec<u8>> {
    /// A frame of the host missed the data path's map.
    Miss {
        /// Its destination (for an ARP request: the address asked for).
        aa: Ipv4Addr,
        /// Length of its longest IP packet once it is cut into segments, bytes; 0 for ARP.
        packet_bytes: u16,
        /// The frame as it must be sent again. Never looked at.
        held: H,
    },
    /// A datagram arrived.
    Datagram {
        /// Its sender.
        from: SocketAddrV4,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// The data path has this mapping from an earlier run of the agent.
    Adopt {
        aa: Ipv4Addr,
        /// Which, with version 0 if that is not known.
        mapping: Mapping,
    },
    /// The time of [`Machine::next_deadline_ns`](crate::Machine::next_deadline_ns) has come.
    Deadline,
}

/// What an agent wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Output<H = Vec<u8>> {
    /// Send this datagram.
    Send {
        /// To this server.
        to: SocketAddrV4,
        /// Tagged and complete.
        datagram: Vec<u8>,
    },
    /// Put this mapping in force, before any frame that follows.
    Install {
        aa: Ipv4Addr,
        /// Replaces an earlier one.
        mapping: Mapping,
    },
    /// Drop frames to this AA without asking again, until it is removed or installed.
    Refuse { aa: Ipv4Addr },
    /// Forget the AA: neither a mapping nor a refusal is in force.
    Remove { aa: Ipv4Addr },
    /// Send this frame out again; its mapping is in force.
    Release {
        /// Its destination.
        aa: Ipv4Addr,
        /// As it came.
        held: H,
    },
    /// A frame was dropped and counted.
    Drop {
        /// Its destination.
        aa: Ipv4Addr,
        reason: DropReason,
    },
    /// Tell the host that this frame is too long for the path; the frame itself is dropped and counted.
    IcmpTooBig {
        /// The frame.
        held: H,
        /// Longest IP packet that fits, bytes.
        mtu: u16,
    },
}

/// Everything an agent counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames dropped.
    pub dropped: Tally<DropReason>,
    /// Datagrams and entries ignored.
    pub ignored: Tally<IgnoreReason>,
    /// The rest.
    pub events: Tally<Event>,
}

/// The state of an agent in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Mappings in force.
    pub mappings: usize,
    /// Look-ups without a mapping under way.
    pub resolving: usize,
    /// Negative entries.
    pub negative: usize,
    pub waiting_frames: usize,
    /// Newest revision of the directory seen.
    pub revision: u64,
}
