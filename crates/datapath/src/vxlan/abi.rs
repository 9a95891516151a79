//! What the VTEP's programs and user space share: the Rust side of `bpf/vxlan_abi.h`.
#![allow(unsafe_code)]

use crate::abi::{Abi, abi_layout, abi_struct};

/// Slots that ports are found in without a hash.
pub const PORT_SLOTS: u32 = 8192;
/// Slots that peers are found in without a hash.
pub const PEER_SLOTS: u32 = 4096;
/// Next hops that XDP keeps for each peer.
pub const HOPS_PER_PEER: u32 = 8;
/// [`HopState::expires`]: never. For benchmarks, which have no routes.
pub const HOP_FOREVER: u32 = 0xffff_ffff;
/// VTEPs that one flood can reach.
pub const FLOOD_REMOTES: usize = 128;
/// Own ports that one flood can reach.
pub const FLOOD_PORTS: usize = 128;
/// Bits of a circuit that are the VLAN ID; above them is the index of the port.
pub const VLAN_BITS: u32 = 12;
/// Entries of a trunk's table: one for each VLAN ID, the first for frames without a tag.
pub const VLANS: u32 = 1 << VLAN_BITS;
/// [`VtepConfig::dscp`]: as the inner packet says.
pub const DSCP_COPY: u8 = 0xff;

pub(super) const FDB_PORT: u8 = 1;
pub(super) const FDB_PEER: u8 = 2;
pub(super) const FDB_LEARNED: u8 = 0;
pub(super) const FDB_STATIC: u8 = 1;
pub(super) const FDB_DIRECTORY: u8 = 2;

pub(super) const PORT_KEEPS_TAGS: u32 = 1;
pub(super) const PORT_UPLINK: u32 = 2;
pub(super) const PORT_XDP: u32 = 4;
pub(super) const PORT_TRUNK: u32 = 8;

pub(super) const VNI_LEARNS: u32 = 1;
pub(super) const VNI_ANSWERS_ARP: u32 = 2;
pub(super) const VNI_ARP_UPCALL: u32 = 4;
pub(super) const VNI_ARP_FLOOD: u32 = 8;
pub(super) const VNI_UNICAST_UPCALL: u32 = 16;
pub(super) const VNI_UNICAST_FLOOD: u32 = 32;

pub(super) const UPCALL_ARP: u32 = 1;
pub(super) const UPCALL_UNICAST: u32 = 2;
pub(super) const UPCALL_LEARNED: u32 = 3;
pub(super) const UPCALL_MOVED: u32 = 4;
pub(super) const UPCALL_UNKNOWN_PEER: u32 = 5;

abi_struct! {
    /// Constants of one VTEP.
    VtepConfig = "vtep_config" {
        /// Our address in the underlay, in network order.
        local: [u8; 4],
        /// UDP port, in network order.
        udp_port: [u8; 2],
        /// TTL of outer headers.
        ttl: u8,
        /// [`DSCP_COPY`], or a type of service.
        dscp: u8,
        /// 1: deliver frames from VTEPs that nobody told us of.
        accept_unknown_peers: u32,
    }
}

abi_struct! {
    /// Key of the forwarding table.
    FdbKey = "fdb_key" {
        /// Segment.
        vni: u32,
        /// Address.
        mac: [u8; 6],
        /// Zero.
        zero: [u8; 2],
    }
}

abi_struct! {
    /// Where an address is.
    FdbEntry = "fdb_entry" {
        /// When a learned entry was last confirmed, `CLOCK_MONOTONIC`, nanoseconds.
        seen_ns: u64,
        /// Circuit of the port, or index of the peer.
        target: u32,
        /// Interface index of the port (host order) or address of the peer (network order).
        place: [u8; 4],
        /// Slot of the VNI's counters.
        vni_slot: u32,
        /// `FDB_PORT` or `FDB_PEER`.
        kind: u8,
        /// `FDB_LEARNED`, `FDB_STATIC` or `FDB_DIRECTORY`.
        origin: u8,
        /// Zero.
        zero: [u8; 2],
    }
}

abi_struct! {
    /// A port.
    PortState = "vtep_port" {
        /// Interface index; 0 in a free one.
        ifindex: u32,
        /// Segment; of a trunk: 0.
        vni: u32,
        /// `PORT_*`.
        flags: u32,
        /// Its own index.
        index: u32,
        /// Of a trunk: number of its table of VLANs.
        trunk: u32,
    }
}

abi_struct! {
    /// Address to index.
    Slot = "vtep_slot" {
        /// Address, in network order; zero in a free one.
        number: [u8; 4],
        /// Index of the peer.
        index: u32,
    }
}

abi_struct! {
    /// A segment.
    VniState = "vtep_vni" {
        /// Age at which learned entries go, nanoseconds; 0: never.
        age_ns: u64,
        /// Slot of its counters and limits.
        slot: u32,
        /// `VNI_*`.
        flags: u32,
        /// Group that floods go to, in network order; unspecified: to the list.
        group: [u8; 4],
        /// Zero.
        zero: u32,
    }
}

abi_struct! {
    /// One token bucket's settings.
    LimitState = "vtep_limit" {
        /// Between frames at the limit, nanoseconds; 0: no limit.
        interval_ns: u64,
        /// Length of a burst, nanoseconds.
        burst_ns: u64,
    }
}

abi_struct! {
    /// A segment's token buckets.
    LimitsState = "vtep_limits" {
        /// Of broadcast and multicast.
        broadcast: LimitState,
        /// Of unknown unicast.
        unknown: LimitState,
    }
}

abi_struct! {
    /// Virtual times of a segment's token buckets.
    ClockState = "vtep_clock" {
        /// The programs' lock.
        lock: u32,
        /// Zero.
        zero: u32,
        /// Of broadcast and multicast.
        broadcast_ns: u64,
        /// Of unknown unicast.
        unknown_ns: u64,
    }
}

/// Where floods go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FloodState {
    /// How many VTEPs.
    pub remotes: u32,
    /// How many ports.
    pub ports: u32,
    /// VTEPs, in network order.
    pub remote: [[u8; 4]; FLOOD_REMOTES],
    /// Circuits.
    pub port: [u32; FLOOD_PORTS],
}

const _: () = assert!(size_of::<FloodState>() == 8 + 4 * FLOOD_REMOTES + 4 * FLOOD_PORTS);

// SAFETY: repr(C), integers only, and the assertion above rules padding out.
unsafe impl Abi for FloodState {}

impl Default for FloodState {
    fn default() -> Self {
        Self { remotes: 0, ports: 0, remote: [[0; 4]; FLOOD_REMOTES], port: [0; FLOOD_PORTS] }
    }
}

abi_layout! { FloodState = "vtep_flood" { remotes, ports, remote, port, } }

impl FloodState {
    pub(super) fn remotes(&self) -> &[[u8; 4]] {
        &self.remote[..(self.remotes as usize).min(FLOOD_REMOTES)]
    }

    pub(super) fn ports(&self) -> &[u32] {
        &self.port[..(self.ports as usize).min(FLOOD_PORTS)]
    }
}

abi_struct! {
    /// Key of the ARP table.
    ArpKey = "vtep_arp_key" {
        /// Segment.
        vni: u32,
        /// Address, in network order.
        address: [u8; 4],
    }
}

abi_struct! {
    /// An address's MAC.
    ArpState = "vtep_arp" {
        /// The MAC.
        mac: [u8; 6],
        /// Zero.
        zero: [u8; 2],
    }
}

abi_struct! {
    /// How XDP reaches a peer, for a while.
    HopState = "vtep_hop" {
        /// MAC of the next node.
        destination: [u8; 6],
        /// MAC of the uplink.
        source: [u8; 6],
        /// Ethertype of IPv4, in network order.
        kind: [u8; 2],
        /// MTU of the route, bytes.
        mtu: u16,
        /// Address of the peer.
        peer: [u8; 4],
        /// Index of the uplink.
        port: u32,
        /// Jiffies; 0: unknown, [`HOP_FOREVER`]: never.
        expires: u32,
    }
}

abi_struct! {
    /// Traffic of a VNI or peer.
    TrafficState = "vtep_traffic" {
        /// Into the underlay.
        sent_frames: u64,
        /// Into the underlay, inner frames.
        sent_bytes: u64,
        /// Out of the underlay.
        received_frames: u64,
        /// Out of the underlay, inner frames.
        received_bytes: u64,
    }
}

abi_struct! {
    /// A message.
    UpcallState = "vtep_upcall" {
        /// `UPCALL_*`.
        kind: u32,
        /// Segment.
        vni: u32,
        /// Port that the frame came in at.
        ifindex: u32,
        /// VTEP that it came from, in network order.
        peer: [u8; 4],
        /// Source of an ARP or IPv4 packet inside.
        source_ip: [u8; 4],
        /// Destination of an ARP or IPv4 packet inside.
        destination_ip: [u8; 4],
        /// Source MAC.
        source: [u8; 6],
        /// VLAN ID that it came in with at a trunk; 0: none.
        vlan: u16,
        /// Destination MAC.
        destination: [u8; 6],
        /// Zero.
        zero: [u8; 2],
    }
}

// SAFETY: bytes.
unsafe impl Abi for [u8; 4] {}

/// The circuit of a port without a tag, or of this VLAN of a trunk.
pub(super) fn circuit(port_index: u32, vlan: u16) -> u32 {
    port_index << VLAN_BITS | u32::from(vlan)
}

/// Index of the port and VLAN ID of a circuit.
pub(super) fn of_circuit(circuit: u32) -> (u32, u16) {
    (circuit >> VLAN_BITS, (circuit & (VLANS - 1)) as u16)
}

/// Names of the VTEP's outcome counters, in the order of `enum vtep_outcome`.
pub const VTEP_OUTCOMES: [&str; 32] = [
    "passed",
    "encapsulated",
    "switched",
    "flooded",
    "arp_answered",
    "decapsulated",
    "flooded_locally",
    "sent_later",
    "no_segment",
    "tagged",
    "unknown_vlan",
    "bad_source",
    "unknown_destination",
    "arp_unanswered",
    "no_receiver",
    "broadcast_limit",
    "unknown_limit",
    "same_port",
    "split_horizon",
    "too_big",
    "no_route",
    "malformed",
    "fragment",
    "bad_checksum",
    "bad_udp_checksum",
    "no_vni_flag",
    "unknown_vni",
    "unknown_peer",
    "inner_malformed",
    "ce_on_not_ect",
    "push_failed",
    "pop_failed",
];

/// Outcomes before this one are frames that went on; this one and those after it are drops.
pub const FIRST_DROP: &str = "no_segment";

/// Names of the VTEP's event counters, in the order of `enum vtep_event`.
pub const VTEP_EVENTS: [&str; 8] =
    ["copied_to_port", "copied_to_peer", "copy_failed", "learned", "moved", "table_full", "upcall", "upcall_lost"];
