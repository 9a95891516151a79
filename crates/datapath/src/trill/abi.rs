//! The Rust side of `bpf/trill_abi.h`; a test compares sizes and offsets with the compiled object, names with the header.
#![allow(unsafe_code)]

use crate::abi::{Abi, abi_layout, abi_struct};

/// Ports are numbered from 1 to one less than this.
pub const PORTS: usize = 64;
/// Equal-cost next hops of one egress.
pub const HOPS_MAX: usize = 16;
/// Different sets of next hops; number 0 is none.
pub const GROUPS: usize = 512;
/// Distribution trees.
pub const TREES_MAX: usize = 4;
pub(crate) const VLANS: usize = 4096;
pub(crate) const NICKNAMES: usize = 65_536;
/// Interface indexes that a port can have are below this.
pub const INTERFACES: usize = 65_536;

/// Longer frames may be in several buffers.
pub const WHOLE_MAX: u16 = 2000;

/// [`TrillPort::kind`] of a port to another RBridge.
pub(crate) const LINK: u8 = 1;
/// [`TrillPort::elides`]: frames without outer header are taken, and not sent.
pub(crate) const ELIDES_IN: u8 = 1;
/// [`TrillPort::elides`]: they are sent as well.
pub(crate) const ELIDES_BOTH: u8 = 2;
/// Confidence of what a frame taught.
pub const OBSERVED: u8 = 0x20;
/// Confidence that nothing exceeds.
pub const STATIC: u8 = 0xff;
/// [`TrillPlace::nickname`] of the inter-VLAN gateway's address.
pub(crate) const GATEWAY: u16 = 0xffff;
/// [`TrillHostRoute::flags`]: the gateway's own address.
pub(crate) const ROUTE_OWN: u16 = 1;
/// Counters of one port in the map.
pub(crate) const COUNTERS_OF_PORT: u32 = 64;

abi_struct! {
    /// A next hop.
    TrillHop = "trill_hop" {
        /// Of the outer header.
        destination: [u8; 6],
        /// Of the outer header.
        source: [u8; 6],
        /// Number of the port.
        port: u8,
        /// 1: the port leaves outer headers out.
        elides: u8,
        /// The longest frame that the port takes, or [`WHOLE_MAX`] if that is less; bytes. 0 where `elides` is 1.
        plain_max: u16,
    }
}

abi_struct! {
    /// A port.
    TrillPort = "trill_port" {
        /// Its own address.
        mac: [u8; 6],
        /// A link's neighbour.
        neighbor: [u8; 6],
        /// 0: to end stations; 1: to an RBridge.
        kind: u8,
        /// 1 if there is a neighbour.
        adjacent: u8,
        /// Of untagged frames; a link's Designated VLAN.
        vlan: u16,
        /// Longest frame without a tag, bytes.
        frame_max: u16,
        /// A link's: [`ELIDES_IN`], [`ELIDES_BOTH`] or 0.
        elides: u8,
        /// Zero.
        reserved: u8,
        /// Start of a plain frame's Ethertype and header; 0: none is plain here.
        plain: u32,
        /// Interface index.
        ifindex: u32,
        /// The same as `plain` of a frame without outer header.
        plain_elided: u32,
    }
}

abi_struct! {
    /// Where links' frames are worked on.
    TrillSpread = "trill_spread" {
        /// By cluster of their egress nickname.
        cpu: [u32; super::spread::CLUSTERS],
    }
}

abi_struct! {
    /// What changes at any time.
    TrillState = "trill_state" {
        /// Which table is in use, 0 or 1.
        bank: u32,
        /// The daemon's clock, seconds.
        now_s: u32,
        /// Changes with every change of the table of stations from outside; never 0.
        stations_version: u32,
        /// Zero.
        reserved: u32,
    }
}

abi_struct! {
    /// Where a station is.
    TrillPlace = "trill_place" {
        /// Of its RBridge; 0: ours.
        nickname: u16,
        /// Our port.
        port: u8,
        /// How sure that is.
        confidence: u8,
        /// When it was last seen, seconds of the daemon's clock.
        seen_s: u32,
    }
}

abi_struct! {
    /// Where the gateway sends packets for a host.
    TrillHostRoute = "trill_host_route" {
        /// The host's address.
        mac: [u8; 6],
        /// The gateway's in that VLAN.
        gateway: [u8; 6],
        /// The host's VLAN.
        vlan: u16,
        /// [`ROUTE_OWN`].
        flags: u16,
    }
}

/// A structure that is too large to be a value: only where its fields are is of interest.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident = $c_name:literal { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        abi_layout! { $name = $c_name { $($field,)* } }
    };
}

layout! {
    /// A distribution tree in the table.
    TrillTree = "trill_tree" {
        /// Bits of the ports that are branches.
        ports: u64,
        /// Of these, by VLAN, the ones behind which it is wanted.
        vlan_ports: [u64; VLANS],
        /// Nickname of the root; 0: no tree.
        root: u16,
        /// Of frames that come in here.
        hop_count: u8,
        /// Zero.
        reserved: [u8; 5],
        /// By ingress nickname, the port that its frames come by.
        rpf: [u8; NICKNAMES],
    }
}

layout! {
    /// The forwarding table.
    TrillFib = "trill_fib" {
        /// 0: none yet.
        own_nickname: u16,
        /// Place of the tree that native frames are sent on, plus 1.
        own_tree: u8,
        /// Of unicast frames that come in here.
        hop_count: u8,
        /// Of the hash that chooses among next hops.
        hash_seed: u32,
        /// By number.
        ports: [TrillPort; PORTS],
        /// By egress nickname as on the wire, group and number of hops.
        route: [u32; NICKNAMES],
        /// Sets of next hops.
        group: [[TrillHop; HOPS_MAX]; GROUPS],
        /// By VLAN, bits of the ports to end stations.
        native_ports: [u64; VLANS],
        /// Port number by interface index.
        port_of: [u8; INTERFACES],
        /// Trees.
        tree: [TrillTree; TREES_MAX],
    }
}

/// Bytes of a frame that the tap keeps.
pub const TAP_BYTES: usize = 480;

layout! {
    /// A record of the tap.
    TrillTapped = "trill_tapped" {
        /// Monotonic clock.
        time_ns: u64,
        /// Of the frame, bytes.
        length: u32,
        /// Bytes that follow.
        kept: u16,
        /// Number of the port.
        port: u8,
        /// Place in [`OUTCOMES`].
        outcome: u8,
        /// The frame's start.
        bytes: [u8; TAP_BYTES],
    }
}

/// Names of the counters of a port, in the order of `enum trill_outcome`.
pub const OUTCOMES: [&str; 58] = [
    "is_is",
    "channel",
    "l2_control",
    "gateway_miss",
    "transit",
    "ingress",
    "egress",
    "switched",
    "ingress_flood",
    "tree_flood",
    "egress_flood",
    "arp_answered",
    "copy_sent",
    "copy_delivered",
    "copy_pruned",
    "no_port",
    "malformed",
    "outer_vlan",
    "not_agreed",
    "native_on_link",
    "other_group",
    "not_for_us",
    "not_trill",
    "bad_version",
    "reserved_bits",
    "hop_count",
    "group_mismatch",
    "no_adjacency",
    "critical_flag",
    "reserved_ingress",
    "own_ingress",
    "reserved_egress",
    "unknown_egress",
    "unknown_tree",
    "unknown_ingress",
    "not_on_tree",
    "rpf",
    "fine_grained",
    "no_label",
    "bad_vlan",
    "trill_in_trill",
    "inner_control",
    "inner_group",
    "bad_source",
    "trill_on_native",
    "not_in_vlan",
    "same_port",
    "no_route",
    "no_nickname",
    "no_receiver",
    "too_long",
    "too_long_to_copy",
    "gateway_malformed",
    "gateway_ttl",
    "push_failed",
    "pop_failed",
    "fdb_full",
    "fdb_moved",
];
