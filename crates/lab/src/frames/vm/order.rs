//! What a VM's process is told and what it answers: one line of JSON each.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

/// UDP port that VMs receive at: discard.
pub(crate) const PORT: u16 = 9;
/// Headers of a frame around UDP payload, FCS included: Ethernet 14 and 4, IPv4 20, UDP 8; bytes.
pub(crate) const FRAME_OVER_PAYLOAD: u32 = 46;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Send until one of the limits.
    Send {
        /// To whom.
        to: SocketAddrV4,
        /// UDP payload of each frame.
        payload_bytes: u32,
        /// Most frames.
        frames: u64,
        /// Frames per second, in short bursts; 0: as fast as they go.
        per_s: u32,
        /// Longest time.
        duration_ns: u64,
        /// On this core; `None`: on any.
        core: Option<usize>,
    },
    /// Take everything that has arrived, without waiting.
    Drain { core: usize },
    /// Take what arrives in a time; answers once before it begins.
    Receive {
        /// How long.
        duration_ns: u64,
        /// Room for what has not been taken yet.
        buffer_bytes: u32,
        /// On this core; `None`: on any.
        core: Option<usize>,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    /// Frames sent or received.
    pub(crate) frames: u64,
    /// CPU time of the process meanwhile, soft interrupts that it ran included.
    pub(crate) cpu_ns: u64,
    /// How long it took.
    pub(crate) wall_ns: u64,
}
