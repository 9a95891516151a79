//! What programs and user space share: the Rust side of `bpf/abi.h`.
//!
//! A test compares every size and offset with the BTF of the compiled objects, and every outcome's name with the lists
//! in the C header.
#![allow(unsafe_code)]

use std::net::Ipv4Addr;

/// `SO_MARK` of frames that the agent sends again: a program does not hand them to the agent a second time.
pub const AGENT_MARK: u32 = 0x7765_6674;

/// How many anycast LAs one Intermediate can own (VL2 4.2.2).
pub const OWN_LAS_MAX: usize = 16;

/// [`AaMapping::flags`]: the directory refuses this AA.
pub(crate) const MAPPING_REFUSED: u32 = 1;

/// Plain data without padding, so that its bytes are all initialised and any bytes are a value of it.
///
/// # Safety
/// Implementors are `repr(C)`, made of integers and arrays of them, and have no padding.
pub(crate) unsafe trait Abi: Copy + Default {
    /// The bytes as the programs see them.
    fn bytes(&self) -> &[u8] {
        // SAFETY: no padding, so all bytes are initialised; the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Self>()) }
    }

    /// From bytes of exactly this size; `None` for any other size.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != size_of::<Self>() {
            return None;
        }
        // SAFETY: the size was checked, any bytes are a valid value, and the read does not need alignment.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

/// Says where the fields of a struct are, for the tests that compare it with its namesake in C.
macro_rules! abi_layout {
    ($name:ident = $c_name:literal { $($field:ident,)* }) => {
        impl $name {
            /// Name in the C header, size in bytes, and the offset of every field in bytes.
            pub const LAYOUT: (&'static str, usize, &'static [(&'static str, usize)]) =
                ($c_name, size_of::<$name>(), &[$((stringify!($field), std::mem::offset_of!($name, $field)),)*]);
        }
    };
}

pub(crate) use abi_layout;

macro_rules! abi_struct {
    ($(#[$doc:meta])* $name:ident = $c_name:literal { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        // No padding: the fields fill the struct.
        const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$ty>())*);

        // SAFETY: repr(C), integers only, and the assertion above rules padding out.
        unsafe impl Abi for $name {}

        $crate::abi::abi_layout! { $name = $c_name { $($field,)* } }
    };
}

pub(crate) use abi_struct;

abi_struct! {
    /// AA -> where it is; addresses are in network order.
    AaMapping = "aa_mapping" {
        /// Version of the directory entry.
        version: u64,
        /// LA of the ToR.
        tor_la: [u8; 4],
        /// LA of the Intermediates.
        anycast_la: [u8; 4],
        /// `MAPPING_*`.
        flags: u32,
        /// Zero.
        reserved: u32,
    }
}

abi_struct! {
    /// Constants of the host agent's program.
    HostConstants = "host_config" {
        /// First address of the AA block.
        aa_network: [u8; 4],
        /// Its mask.
        aa_mask: [u8; 4],
        /// LA of this server's ToR.
        own_tor_la: [u8; 4],
        /// Interface that frames without a mapping go to.
        miss_ifindex: u32,
        /// Largest IPv4 packet with its outer headers, bytes.
        underlay_mtu: u32,
        /// 1: same-rack traffic turns round at the ToR.
        rack_direct: u32,
        /// MAC of the ToR's host port.
        gateway_mac: [u8; 6],
        /// Zero.
        reserved: [u8; 2],
        /// Picoseconds that a byte takes at the rate limit; 0: no limit.
        limit_ps_per_byte: u64,
        /// Time that the limit lets the host run ahead of its rate.
        limit_burst_ns: u64,
        /// 1: TCP counts too.
        limit_tcp: u32,
        /// The host's AA; 0: packets may have any source.
        own_aa: [u8; 4],
        /// Its LA.
        own_la: [u8; 4],
        /// Its public LA, or its LA again.
        public_la: [u8; 4],
    }
}

/// [`BroadcastConstants::delivery`]: to the service's group in the underlay.
pub(crate) const BROADCAST_TO_GROUP: u32 = 1;
/// [`BroadcastConstants::delivery`]: a copy to each member.
pub(crate) const BROADCAST_TO_MEMBERS: u32 = 2;

abi_struct! {
    /// Whom broadcast reaches; addresses are in network order.
    BroadcastConstants = "broadcast_config" {
        /// Picoseconds that a byte takes at the limit.
        limit_ps_per_byte: u64,
        /// Time that the limit lets the host run ahead of its rate.
        limit_burst_ns: u64,
        /// The host's AA.
        aa: [u8; 4],
        /// The host's LA.
        la: [u8; 4],
        /// First address of the LA block.
        la_network: [u8; 4],
        /// Its mask.
        la_mask: [u8; 4],
        /// The service's group.
        group: [u8; 4],
        /// `BROADCAST_TO_*`.
        delivery: u32,
        /// How many other hosts the service has.
        members: u32,
        /// Largest IPv4 packet that they take in, outer header included, bytes.
        mtu: u32,
    }
}

/// [`SpreadConstants::rule`]: every flow keeps its path.
pub(crate) const SPREAD_RULE_NONE: u32 = 0;
/// [`SpreadConstants::rule`]: large flows that lose move.
pub(crate) const SPREAD_RULE_REHASH: u32 = 1;
/// [`SpreadConstants::rule`]: flows move after a pause.
pub(crate) const SPREAD_RULE_FLOWLETS: u32 = 2;

abi_struct! {
    /// Which flows under way get another path.
    SpreadConstants = "spread_config" {
        /// Between two choices, and the pause of a timeout; with flowlets, the pause.
        hold_ns: u64,
        /// What a flow has sent before it counts as large.
        large_bytes: u64,
        /// `SPREAD_RULE_*`.
        rule: u32,
        /// Zero.
        reserved: u32,
    }
}

abi_struct! {
    /// Constants of the XDP decapsulation.
    SwitchConstants = "switch_config" {
        /// 1 at a ToR.
        is_tor: u32,
    }
}

abi_struct! {
    /// Constants of the program that loses datagrams.
    LossConstants = "loss_config" {
        /// A datagram is lost if a random 32-bit number is below it.
        threshold: u32,
        /// UDP port of the datagrams that may be lost, in network order.
        port: [u8; 2],
        /// Zero.
        reserved: [u8; 2],
    }
}

abi_struct! {
    /// The LAs that a switch decapsulates for.
    OwnLas = "own_las" {
        /// How many.
        count: u32,
        /// The LAs, in network order.
        la: [[u8; 4]; OWN_LAS_MAX],
    }
}

abi_struct! {
    /// The ends of a packet that came to the wrong ToR, in network order.
    StaleSample = "stale_sample" {
        /// Where it wanted to go.
        aa: [u8; 4],
        /// Where it came from.
        source_aa: [u8; 4],
    }
}

abi_struct! {
    /// Where XDP programs send a frame next.
    NextHop = "next_hop" {
        /// MAC of the next node.
        destination: [u8; 6],
        /// MAC of the port.
        source: [u8; 6],
        /// Slot in the port map.
        port: u32,
    }
}

/// How many next hops XDP programs find without a hash.
pub(crate) const ROUTE_SLOTS: u32 = 4096;

abi_struct! {
    /// The next hop towards the one LA that has this slot.
    RouteSlot = "route_slot" {
        /// MACs and port.
        next: NextHop,
        /// The LA, in network order; unspecified in a free slot.
        la: [u8; 4],
    }
}

abi_struct! {
    /// Key of the reference bridge's table.
    MacKey = "mac_key" {
        /// Destination MAC.
        mac: [u8; 6],
        /// VLAN, 0 here.
        vlan: u16,
    }
}

// SAFETY: an integer.
unsafe impl Abi for u32 {}

/// The start of a frame, as the benchmark's programs write it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FrameStart {
    pub(crate) bytes: [u8; 128],
}

impl Default for FrameStart {
    fn default() -> Self {
        Self { bytes: [0; 128] }
    }
}

// SAFETY: repr(C), bytes only.
unsafe impl Abi for FrameStart {}

impl OwnLas {
    /// Of at most [`OWN_LAS_MAX`] LAs; `None` if there are more.
    pub fn new(las: &[Ipv4Addr]) -> Option<Self> {
        let mut own = Self { count: u32::try_from(las.len()).ok()?, ..Self::default() };
        if las.len() > OWN_LAS_MAX {
            return None;
        }
        for (slot, la) in own.la.iter_mut().zip(las) {
            *slot = la.octets();
        }
        Some(own)
    }
}

/// Names of the host agent's counters, in the order of `enum host_outcome`.
pub const HOST_OUTCOMES: [&str; 27] = [
    "passed",
    "encapsulated",
    "rack_direct",
    "arp_answered",
    "arp_probe_passed",
    "arp_miss",
    "packet_miss",
    "mtu_exceeded",
    "refused",
    "no_mapping",
    "broadcast_unsupported",
    "malformed",
    "no_route",
    "push_failed",
    "rate_limited",
    "broadcast_sent",
    "broadcast_copied",
    "broadcast_limited",
    "broadcast_too_big",
    "broadcast_foreign",
    "broadcast_alone",
    "copy_failed",
    "igmp_passed",
    "igmp_dropped",
    "dhcp_passed",
    "foreign_source",
    "made_up_header",
];

/// Names of what becomes of a frame that comes to a host, in the order of `enum receive_outcome`.
pub const RECEIVE_OUTCOMES: [&str; 13] = [
    "passed",
    "delivered",
    "looped",
    "other_group",
    "foreign_source",
    "not_a_member",
    "bad_inner_source",
    "not_broadcast",
    "malformed",
    "bad_checksum",
    "fragment",
    "ce_on_not_ect",
    "pop_failed",
];

/// Names of what becomes of a segment's flow, in the order of `enum spread_outcome`.
pub const SPREAD_OUTCOMES: [&str; 5] =
    ["kept", "stayed_after_loss", "moved_after_loss", "moved_after_stall", "moved_after_pause"];

/// Names of a switch's counters, in the order of `enum switch_outcome`.
pub const SWITCH_OUTCOMES: [&str; 12] = [
    "passed",
    "decapsulated",
    "forwarded",
    "delivered",
    "ce_on_not_ect",
    "fragment",
    "malformed",
    "bad_checksum",
    "no_such_host",
    "too_big",
    "no_route",
    "pop_failed",
];

/// What becomes of a frame where datagrams are lost on purpose.
pub const LOSS_OUTCOMES: [&str; 3] = ["passed", "spared", "lost"];

/// Names of the reference bridge's counters, in the order of `enum l2_outcome`.
pub const L2_OUTCOMES: [&str; 3] = ["forwarded", "unknown", "malformed"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_values_agree() {
        let hop = NextHop { destination: [1, 2, 3, 4, 5, 6], source: [7; 6], port: 9 };
        assert_eq!(&hop.bytes()[..7], &[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(NextHop::from_bytes(hop.bytes()), Some(hop));
        assert_eq!(NextHop::from_bytes(&hop.bytes()[1..]), None);
    }

    #[test]
    fn an_intermediate_owns_at_most_sixteen_anycast_las() {
        let las = vec![Ipv4Addr::new(10, 255, 255, 1); OWN_LAS_MAX + 1];
        assert_eq!(OwnLas::new(&las), None);
        assert_eq!(OwnLas::new(&las[1..]).map(|own| own.count), Some(16));
    }
}
