//! Bytes that an overlay puts around an IP packet on each part of its way.

use weft_scenario::engine::Overlay;
use weft_wire::{ipv4, trill, vl2, vxlan};

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

/// Outer headers on a link of this stage, in bytes. Framing of the link itself is not among them.
pub(crate) fn outer_bytes(overlay: Overlay, stage: Stage) -> usize {
    match (overlay, stage) {
        (Overlay::Routed | Overlay::Bridge { .. } | Overlay::Layer2 { .. }, _) => 0,
        (Overlay::Vl2, Stage::FromHost | Stage::Up) => vl2::OVERHEAD_BYTES,
        (Overlay::Vl2, Stage::Down) => vl2::OVERHEAD_BYTES - ipv4::HEADER_LEN,
        (Overlay::Vl2, Stage::ToHost) => 0,
        (Overlay::KernelVxlan { .. } | Overlay::Vtep { .. }, _) => vxlan::OVERHEAD_BYTES,
        // RBridges are the switches: hosts send and get ordinary frames.
        (Overlay::RBridge { .. }, Stage::Up | Stage::Down) => trill::OVERHEAD_BYTES,
        (Overlay::RBridge { .. }, Stage::FromHost | Stage::ToHost) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_their_published_lengths() {
        assert_eq!((vxlan::OVERHEAD_BYTES, trill::OVERHEAD_BYTES), (50, 24));
        let vl2 =
            [Stage::FromHost, Stage::Up, Stage::Down, Stage::ToHost].map(|stage| outer_bytes(Overlay::Vl2, stage));
        assert_eq!(vl2, [40, 40, 20, 0]);
        let trill =
            [Stage::FromHost, Stage::Up, Stage::Down, Stage::ToHost].map(|stage| outer_bytes(Overlay::RBRIDGE, stage));
        assert_eq!(trill, [0, 24, 24, 0]);
    }
}
