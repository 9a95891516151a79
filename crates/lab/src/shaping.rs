//! Link rates and buffers: what `tc` is told so that every direction of every link carries what is declared.
//!
//! Each end gets an `htb` with two classes: data (the link's rate, a `bfifo` of the link's buffer) and control (OSPF,
//! ARP and whatever is marked CS6, such as the directory's datagrams), which a full data queue cannot starve. The
//! control class has a rate of its own; routing and ARP are far below a thousandth of a link.
//!
//! A declared rate is a layer-1 rate: 24 bytes per frame for preamble, FCS and gap. The kernel counts them exactly
//! when every frame is a buffer of its own (`stab`). With larger buffers (GSO) `stab` would forget the headers that
//! GSO replicates, so the rate is scaled instead, by what the queue counts over what a wire would carry for two full
//! frames and one acknowledgement. A server's own queue counts before the VL2 headers are added.

use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::units::BitsPerSec;

use crate::plan::iproute::PortQueue;
use crate::plan::{VXLAN_OVERHEAD_BYTES, inner_mtu_bytes};

/// Preamble, start delimiter, FCS and inter-frame gap: on the wire, but not in a frame's length.
pub(crate) const LAYER1_BYTES: u64 = 24;
const ETHERNET_HEADER_BYTES: u64 = weft_wire::ethernet::HEADER_LEN as u64;
const ACK_BYTES: u64 = ETHERNET_HEADER_BYTES + 20 + 20;
const TIMESTAMP_BYTES: u64 = 12;
/// Segments in the largest buffer that TCP builds when nothing limits it (64 KB).
const UNLIMITED_SEGMENTS: u64 = 44;
/// Longest time that a burst may take at a link's rate.
const BURST_TIME_MAX_NS: u64 = 20_000_000;

/// Turns links into queues.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    overlay: Overlay,
    timestamps: bool,
    segments_per_skb: u64,
    /// Burst of every link as a time, from the slowest server link: the same time everywhere keeps fast links from
    /// setting a timer per buffer.
    burst_time_ns: u64,
}

/// How a queue counts a link's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accounting {
    /// Every frame with its layer-1 bytes.
    Exact,
    /// Scaled: the queue counts `seen` bytes where a wire would carry `wire`.
    Scaled {
        /// Bytes the queue counts.
        seen: u64,
        /// Bytes a wire would carry.
        wire: u64,
    },
}

impl Accounting {
    /// The rate to configure for a declared rate.
    pub(crate) fn configured(self, rate_bps: u64) -> u64 {
        match self {
            Self::Exact => rate_bps,
            Self::Scaled { seen, wire } => (u128::from(rate_bps) * u128::from(seen) / u128::from(wire)) as u64,
        }
    }

    /// The declared rate that plain frames measured at a queue amount to: the inverse of [`Self::configured`].
    pub(crate) fn declared(self, frames: u64, frame_bytes: u64, seconds: f64) -> f64 {
        let (bytes, scale) = match self {
            Self::Exact => (frames * (frame_bytes + LAYER1_BYTES), 1.0),
            Self::Scaled { seen, wire } => (frames * frame_bytes, wire as f64 / seen as f64),
        };
        bytes as f64 * 8.0 / seconds * scale
    }
}

impl Shaper {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let segments = match scenario.transport.segments_per_skb {
            0 => UNLIMITED_SEGMENTS,
            some => u64::from(some),
        };
        let fabric = &scenario.fabric;
        let server_links = fabric.servers().filter_map(|server| fabric.edge_of(server));
        let slowest = server_links.map(|(_, link)| fabric.link(link).spec.rate.0).min().unwrap_or(u64::MAX);
        let mut shaper = Self {
            overlay: scenario.overlay,
            timestamps: scenario.transport.timestamps,
            segments_per_skb: segments,
            burst_time_ns: 0,
        };
        let time_ns = u128::from(shaper.least_burst(1600)) * 8_000_000_000 / u128::from(slowest);
        shaper.burst_time_ns = time_ns.min(u128::from(BURST_TIME_MAX_NS)) as u64;
        shaper
    }

    /// The queues of a link's end at `node`.
    pub(crate) fn queue(&self, fabric: &Fabric, link: LinkId, node: NodeId) -> PortQueue {
        self.queue_at(fabric, link, node, fabric.link(link).spec.rate)
    }

    /// Those that it would have if it were declared with another rate.
    pub(crate) fn queue_at(&self, fabric: &Fabric, link: LinkId, node: NodeId, declared: BitsPerSec) -> PortQueue {
        let spec = &fabric.link(link).spec;
        let accounting = self.accounting(fabric, link, node);
        let rate = accounting.configured(declared.0).max(8);
        let least = self.least_burst(u64::from(spec.mtu_bytes));
        let lasting = (u128::from(rate) * u128::from(self.burst_time_ns) / 8_000_000_000) as u64;
        PortQueue {
            device: fabric.link(link).end_at(node).expect("the caller names an end of the link").interface.clone(),
            counts_layer1: accounting == Accounting::Exact,
            rate,
            burst: lasting.max(least),
            control_burst: 2 * u64::from(spec.mtu_bytes),
            quantum: least.min(200_000),
            buffer: spec.buffer.0,
        }
    }

    /// The smallest burst that lets the largest buffer pass in one go.
    fn least_burst(&self, mtu_bytes: u64) -> u64 {
        (2 * mtu_bytes).max(self.segments_per_skb * (mtu_bytes + 20))
    }

    /// How the queue at `node`'s end of a link counts.
    pub(crate) fn accounting(&self, fabric: &Fabric, link: LinkId, node: NodeId) -> Accounting {
        if self.segments_per_skb == 1 {
            return Accounting::Exact;
        }
        let far = fabric.link(link).far_end(node).map(|port| fabric.node(port.node).role);
        let (seen_extra, wire_extra) = match self.overlay {
            Overlay::Routed => (0, 0),
            _ if self.overlay.forwards_frames() => (0, 0),
            Overlay::Vl2 => vl2_extra(fabric.node(node).role, far),
            _ => (u64::from(VXLAN_OVERHEAD_BYTES), u64::from(VXLAN_OVERHEAD_BYTES)),
        };
        let mtu = u64::from(inner_mtu_bytes(self.overlay, fabric.link(link).spec.mtu_bytes));
        let seen = self.mix_bytes(mtu, seen_extra);
        Accounting::Scaled { seen, wire: self.mix_bytes(mtu, wire_extra) + 3 * LAYER1_BYTES }
    }

    /// Two full frames and an acknowledgement, each with `extra` bytes of encapsulation.
    fn mix_bytes(&self, mtu_bytes: u64, extra: u64) -> u64 {
        let ack = ACK_BYTES + if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        2 * (ETHERNET_HEADER_BYTES + mtu_bytes + extra) + ack + extra
    }
}

/// Bytes of VL2's outer headers that a queue counts and that a wire carries: both on the way up to an Intermediate, one
/// on the way down from it, none below the last ToR and beyond the border. A server's queue counts before they are added.
fn vl2_extra(sender: Role, receiver: Option<Role>) -> (u64, u64) {
    let both = weft_wire::vl2::OVERHEAD_BYTES as u64;
    match (sender, receiver) {
        (Role::Server, _) => (0, both),
        (Role::Directory | Role::Internet, _) | (_, Some(Role::Server | Role::Directory | Role::Internet)) => (0, 0),
        (Role::Intermediate, _) | (_, Some(Role::Tor | Role::Leaf)) => (both / 2, both / 2),
        _ => (both, both),
    }
}
