//! What may be chosen about an agent's machine, with the reasons for the defaults.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_wire::directory::Key;

use crate::{NS_PER_MS, NS_PER_S};
use weft_wire::block::Block;

/// Who the agent is and whom it asks.
#[derive(Clone, Debug)]
pub struct Config {
    /// AA of this host: never looked up.
    pub aa: Ipv4Addr,
    /// Where AAs come from; frames to other addresses are not ours to deliver.
    pub aa_block: Block,
    /// Address and port that datagrams leave from: part of the tag.
    pub local: SocketAddrV4,
    /// Directory servers, at least one.
    pub servers: Vec<SocketAddrV4>,
    /// Key of the tag.
    pub key: Key,
    pub key_id: u32,
    /// Service of this host.
    pub service: u32,
    /// Longest IP packet, in bytes, that fits the fabric with its two outer headers.
    pub path_mtu: u16,
    /// When things happen.
    pub timing: Timing,
    /// How much is held.
    pub bounds: Bounds,
}

/// When things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a miss waits for others that share its datagram. A question costs a server 10 ns, a datagram 2 us,
    /// so 100 us buys a lot and is small beside any TCP handshake.
    pub coalesce_ns: u64,
    /// First retry. VL2 4.3.1 takes 10 ms as the longest acceptable answer, so twice that means a lost datagram.
    /// Each further retry waits twice as long, always on other servers: 20, 40, .. 640 ms.
    pub first_timeout_ns: u64,
    /// When a look-up is given up: the paper's response timeout of 2 s (VL2 5.5).
    pub give_up_ns: u64,
    /// How long "unknown", "refused" or no answer is believed. Hosts repeat their ARP request after 1 s, so with half
    /// of that a server that registers later is reached at its next request.
    pub negative_ns: u64,
    /// Age at which a mapping must have been confirmed. It is asked for again between 75 and 90 % of this, at random,
    /// and stays in force meanwhile; a silent directory does not cut traffic.
    pub lifetime_ns: u64,
    /// Longest wait between attempts to confirm a mapping while no server answers.
    pub refresh_retry_max_ns: u64,
    /// Mappings found at start are confirmed within this span, spread at random.
    pub adopt_spread_ns: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            coalesce_ns: 100_000,
            first_timeout_ns: 20 * NS_PER_MS,
            give_up_ns: 2 * NS_PER_S,
            negative_ns: 500 * NS_PER_MS,
            lifetime_ns: 300 * NS_PER_S,
            refresh_retry_max_ns: 10 * NS_PER_S,
            adopt_spread_ns: 2 * NS_PER_S,
        }
    }
}

/// How much is held; beyond that the oldest is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Entries of the cache, negative ones included; at least 1.
    pub entries_max: usize,
    /// Look-ups without a mapping under way at a time.
    pub lookups_max: usize,
    /// Bytes of frames that wait for one AA: four frames of the largest size.
    pub frame_bytes_per_aa_max: usize,
    /// Bytes of frames that wait in all.
    pub frame_bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { entries_max: 4096, lookups_max: 1024, frame_bytes_per_aa_max: 256 << 10, frame_bytes_max: 4 << 20 }
    }
}
