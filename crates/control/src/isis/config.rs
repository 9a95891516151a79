//! What may be chosen about an RBridge, with the reasons for the defaults.

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;
use weft_wire::vlan::VlanSet;

use super::authentication::KeyChain;
use super::timing::Timing;
use crate::NS_PER_MS;

/// A port by its number, which is also its extended circuit ID (RFC 5303).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Who the RBridge is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its IS-IS system ID, unlike any other's in the campus.
    pub system: SystemId,
    /// Its name in LSPs (RFC 5301); at most 64 bytes are sent.
    pub hostname: String,
    /// Its ports; numbers unlike each other.
    pub ports: Vec<PortConfig>,
    /// The nicknames that it wants, unlike each other: frames come in with the first, and each of them may be the root of a
    /// tree (RFC 6325 section 3.7).
    pub nicknames: Vec<Wish>,
    /// Priority to be the root of a distribution tree; default 0x8000 (RFC 6325 section 4.5).
    pub root_priority: u16,
    /// VLANs that its end stations are in. Changed later by [`Input::Interest`](super::Input::Interest).
    pub vlans: VlanSet,
    /// Most distribution trees that it computes, at least 1; it also asks for so many when it is the first root.
    pub trees_max: u16,
    /// Trees that it brings its frames onto, at least 1: those whose roots are nearest, as far as there are so many.
    pub trees_used: u16,
    /// Longest LSP that it takes and all its links carry, bytes: originatingL1LSPBufferSize (ISO 10589, RFC 7780 section 5).
    /// Usual is [`PDU_LEN_MIN`](weft_wire::isis::PDU_LEN_MIN); less counts as that.
    pub lsp_buffer_bytes: u16,
    /// Keys that all RBridges of the campus share; without them everybody on a link is believed.
    pub keys: Option<KeyChain>,
    /// When things happen.
    pub timing: Timing,
    /// How much is held.
    pub bounds: Bounds,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    pub id: PortId,
    pub mac: MacAddress,
    /// Metric of sending over it, 1 to 0xfffffe; see [`cost_of_rate`].
    pub cost: u32,
    /// What it is connected to. Hellos of the other kind are dropped and counted (RFC 7177 section 8.3).
    pub link: LinkKind,
    /// VLAN that Hellos name as Designated VLAN; on a shared link that of the DRB is used.
    pub designated_vlan: u16,
    /// Whether the adjacency is held back until a PDU of [`RBridge::sz_bytes`](super::RBridge::sz_bytes) was seen to pass, and tested
    /// anew when that grows (RFC 6325 section 4.3.2).
    pub mtu_test: bool,
    /// Whether Hellos offer to take data frames without outer header ([`weft_wire::trill::elided`]); no standard's.
    pub offers_elision: bool,
}

/// What a port is connected to (RFC 6325 section 4.9.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// One neighbour, no end stations: P2P Hellos.
    PointToPoint,
    /// Any number of neighbours and end stations: LAN Hellos.
    Shared(SharedConfig),
}

/// A port of a shared link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedConfig {
    /// To become DRB, at most 127; usual is [`Self::PRIORITY`].
    pub priority: u8,
    /// VLANs that the port takes part in (RFC 6325 section 4.4.3: enabled).
    pub enabled: VlanSet,
    /// VLANs that Hellos may be sent on beside the Designated VLAN; usual are all that are enabled.
    pub announcing: VlanSet,
    /// What it does not do.
    pub role: Role,
}

impl SharedConfig {
    /// The usual priority (ISO 10589).
    pub const PRIORITY: u8 = 64;

    /// The usual port with these VLANs.
    pub fn of(enabled: VlanSet) -> Self {
        Self { priority: Self::PRIORITY, announcing: enabled.clone(), enabled, role: Role::Hybrid }
    }
}

/// What a port of a shared link carries (RFC 7780 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Frames of end stations and of RBridges.
    Hybrid,
    /// Those of RBridges alone: it is no forwarder of end stations.
    Trunk,
    /// Those of end stations alone: no adjacency comes farther than Detect.
    Access,
}

/// The metric of a link (RFC 6325 section 4.2.4.4): 20 * 10^12 over its rate, within what a TLV can say.
pub const fn cost_of_rate(bits_per_s: u64) -> u32 {
    const LARGEST: u64 = 0xff_fffe;
    let cost = 20_000_000_000_000 / if bits_per_s == 0 { 1 } else { bits_per_s };
    (if cost < 1 {
        1
    } else if cost > LARGEST {
        LARGEST
    } else {
        cost
    }) as u32
}

/// A nickname that an RBridge wants (RFC 6325 section 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Any that is free.
    Any,
    /// The one it had before, if it is free.
    Last(u16),
    /// This one, chosen by a person: it is announced with a priority above all that were not.
    Configured(u16),
}

/// How much is held of what others send; beyond that it is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Fragments of LSPs; at most 65535.
    pub lsps_max: usize,
    pub lsp_bytes_max: usize,
    /// LSPs asked for or acknowledged on one port at a time without being held.
    pub requests_max: usize,
    /// Neighbours on one port; when there is no more room, those with the highest claim to be DRB are kept (RFC 7177 section
    /// 3.6). At most [`Self::NEIGHBORS_MAX`].
    pub neighbors_max: usize,
    /// LSPs sent over one port in a burst.
    pub burst_max: usize,
    /// Between bursts.
    pub burst_ns: u64,
}

impl Bounds {
    /// So many are listed in one Hello of 1470 bytes, beside all VLANs and appointments.
    pub const NEIGHBORS_MAX: usize = 64;
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            lsps_max: 16_384,
            lsp_bytes_max: 16 << 20,
            requests_max: 4096,
            neighbors_max: Self::NEIGHBORS_MAX,
            burst_max: 64,
            burst_ns: 5 * NS_PER_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_metric() {
        const GBIT: u64 = 1_000_000_000;
        let costs = [10 * GBIT, GBIT, GBIT / 10, 40_000 * GBIT, 1_000_000, 0].map(cost_of_rate);
        assert_eq!(costs, [2_000, 20_000, 200_000, 1, 0xff_fffe, 0xff_fffe], "at least 1, never 2^24 - 1");
    }
}
