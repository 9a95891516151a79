//! What can be between two access ports, and what each is compared with.

use serde::Serialize;
use weft_wire::{trill, vl2, vxlan};

/// A way of carrying frames from one virtual switch to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// Nothing: two kernel bridges.
    Bridge,
    /// The kernel's VXLAN device in a kernel bridge, on both sides.
    KernelVxlan,
    /// Nothing: two of weft's layer-2 programs at XDP.
    L2Xdp,
    /// Nothing, over three of them: VL2 has an Intermediate on its way, TRILL a transit RBridge.
    L2XdpThree,
    /// Nothing: two plain layer-2 programs at TC.
    L2Tc,
    /// VXLAN by weft's own tunnel end points at TC.
    WeftVxlanTc,
    /// The same at XDP.
    WeftVxlanXdp,
    /// VL2 at XDP: two outer IPv4 headers, an Intermediate and a ToR that take them off.
    Vl2Xdp,
    /// TRILL at XDP: ingress, transit and egress RBridge.
    TrillXdp,
}

/// Where in the kernel a frame is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// In the driver.
    Xdp,
    /// At TC, on the kernel's buffers.
    Tc,
    /// In the kernel's own bridge.
    Bridge,
}

impl Encapsulation {
    /// All there are here, each baseline before what is compared with it.
    pub const ALL: [Self; 9] = [
        Self::Bridge,
        Self::KernelVxlan,
        Self::L2Tc,
        Self::WeftVxlanTc,
        Self::L2Xdp,
        Self::WeftVxlanXdp,
        Self::L2XdpThree,
        Self::Vl2Xdp,
        Self::TrillXdp,
    ];

    /// As rows name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::KernelVxlan => "kernel-vxlan",
            Self::L2Tc => "l2-tc",
            Self::WeftVxlanTc => "weft-vxlan-tc",
            Self::L2Xdp => "l2-xdp",
            Self::WeftVxlanXdp => "weft-vxlan-xdp",
            Self::L2XdpThree => "l2-xdp-three",
            Self::Vl2Xdp => "vl2-xdp",
            Self::TrillXdp => "trill-xdp",
        }
    }

    /// Where it handles frames.
    pub fn hook(self) -> Hook {
        match self {
            Self::Bridge | Self::KernelVxlan => Hook::Bridge,
            Self::L2Tc | Self::WeftVxlanTc => Hook::Tc,
            Self::L2Xdp | Self::WeftVxlanXdp | Self::L2XdpThree | Self::Vl2Xdp | Self::TrillXdp => Hook::Xdp,
        }
    }

    /// The same without encapsulation: the same hook, as many switches. `None`: it is a baseline itself.
    pub fn baseline(self) -> Option<Self> {
        match self {
            Self::Bridge | Self::L2Tc | Self::L2Xdp | Self::L2XdpThree => None,
            Self::KernelVxlan => Some(Self::Bridge),
            Self::WeftVxlanTc => Some(Self::L2Tc),
            Self::WeftVxlanXdp => Some(Self::L2Xdp),
            Self::Vl2Xdp | Self::TrillXdp => Some(Self::L2XdpThree),
        }
    }

    /// Switches on the way.
    pub fn switches(self) -> usize {
        match self {
            Self::L2XdpThree | Self::Vl2Xdp | Self::TrillXdp => 3,
            _ => 2,
        }
    }

    /// Bytes that it puts in front of a server's frame.
    pub fn header_bytes(self) -> u32 {
        match self {
            Self::KernelVxlan | Self::WeftVxlanTc | Self::WeftVxlanXdp => vxlan::OVERHEAD_BYTES as u32,
            Self::Vl2Xdp => vl2::OVERHEAD_BYTES as u32,
            Self::TrillXdp => trill::OVERHEAD_BYTES as u32,
            Self::Bridge | Self::L2Tc | Self::L2Xdp | Self::L2XdpThree => 0,
        }
    }

    /// VXLAN, the one that a user of weft would choose first: ours at the fastest hook, the kernel's last. `None`: it is none.
    pub fn vxlan_choice(self) -> Option<u32> {
        match self {
            Self::WeftVxlanXdp => Some(0),
            Self::WeftVxlanTc => Some(1),
            Self::KernelVxlan => Some(2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_differs_in_nothing_but_the_header() {
        for (place, one) in Encapsulation::ALL.into_iter().enumerate() {
            let Some(baseline) = one.baseline() else {
                assert_eq!(one.header_bytes(), 0);
                continue;
            };
            assert_eq!((baseline.hook(), baseline.switches()), (one.hook(), one.switches()), "{one:?}");
            assert!(one.header_bytes() > 0 && baseline.baseline().is_none());
            assert!(Encapsulation::ALL[..place].contains(&baseline), "{one:?} comes after its baseline");
        }
    }
}
