//! What an overlay puts around an IP packet on each part of its way.

use weft_scenario::engine::Overlay;
use weft_wire::{ethernet, ipv4, trill, udp, vxlan};

/// A header between the link's own framing and the IP packet of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// VL2: IPv4 to the anycast address of the Intermediates.
    AnyIntermediate,
    /// VL2: IPv4 to the ToR of the receiver.
    Tor,
    /// VXLAN: IPv4 to the tunnel's other end.
    TunnelEnd,
    Udp,
    Vxlan,
    /// TRILL, to the RBridge of the receiver.
    Trill,
    /// The frame that the overlay carries.
    Ethernet,
    VlanTag,
}

/// A part of the way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The link from the sending host.
    FromHost,
    /// Between switches, up to the Intermediate where there is one.
    Up,
    /// Between switches, from the Intermediate on.
    Down,
    /// The link to the receiving host.
    ToHost,
}

impl Header {
    /// Its length.
    pub fn bytes(self) -> usize {
        match self {
            Self::AnyIntermediate | Self::Tor | Self::TunnelEnd => ipv4::HEADER_LEN,
            Self::Udp => udp::HEADER_LEN,
            Self::Vxlan => vxlan::HEADER_LEN,
            Self::Trill => trill::HEADER_LEN,
            Self::Ethernet => ethernet::HEADER_LEN,
            Self::VlanTag => trill::INNER_TAG_LEN,
        }
    }
}

/// The headers on a link of this stage, the outermost first.
pub(crate) fn outer_headers(overlay: Overlay, stage: Stage) -> &'static [Header] {
    use Header::{AnyIntermediate, Ethernet, Tor, Trill, TunnelEnd, Udp, VlanTag, Vxlan};
    match (overlay, stage) {
        (Overlay::Routed | Overlay::Bridge { .. } | Overlay::Layer2 { .. }, _) => &[],
        (Overlay::Vl2, Stage::FromHost | Stage::Up) => &[AnyIntermediate, Tor],
        (Overlay::Vl2, Stage::Down) => &[Tor],
        (Overlay::Vl2, Stage::ToHost) => &[],
        (Overlay::KernelVxlan { .. } | Overlay::Vtep { .. }, _) => &[TunnelEnd, Udp, Vxlan, Ethernet],
        // RBridges are the switches: hosts send and get ordinary frames.
        (Overlay::RBridge { .. }, Stage::Up | Stage::Down) => &[Trill, Ethernet, VlanTag],
        (Overlay::RBridge { .. }, Stage::FromHost | Stage::ToHost) => &[],
    }
}

/// Their length in all.
pub(crate) fn outer_bytes(overlay: Overlay, stage: Stage) -> usize {
    outer_headers(overlay, stage).iter().map(|header| header.bytes()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_their_published_lengths() {
        let between = |overlay| outer_bytes(overlay, Stage::Up);
        assert_eq!((between(Overlay::VTEP), between(Overlay::RBRIDGE)), (vxlan::OVERHEAD_BYTES, trill::OVERHEAD_BYTES));
        assert_eq!((between(Overlay::VTEP), between(Overlay::RBRIDGE), between(Overlay::Vl2)), (50, 24, 40));
        let vl2 =
            [Stage::FromHost, Stage::Up, Stage::Down, Stage::ToHost].map(|stage| outer_bytes(Overlay::Vl2, stage));
        assert_eq!(vl2, [40, 40, 20, 0]);
        let trill =
            [Stage::FromHost, Stage::Up, Stage::Down, Stage::ToHost].map(|stage| outer_bytes(Overlay::RBRIDGE, stage));
        assert_eq!(trill, [0, 24, 24, 0]);
    }
}
