//! What people do with weft that not every machine can do.

use serde::Serialize;
use weft_scenario::engine::Overlay;

/// A table: each use with its name.
macro_rules! uses {
    ($($(#[$about:meta])* $use:ident $name:literal,)*) => {
        /// Something that a machine can or cannot do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Use {
            $($(#[$about])* $use,)*
        }

        impl Use {
            /// Every one, in the order of the report.
            pub const ALL: &[Self] = &[$(Self::$use),*];

            /// As people call it, in the plural where it has one.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$use => $name,)*
                }
            }
        }
    };
}

uses! {
    /// Packets in virtual time, which need nothing of a machine.
    Simulator "simulator: weft sim, weft run --engine sim",
    RoutedLab "routed labs",
    /// A lab with the kernel's VXLAN between servers.
    KernelVxlanLab "kernel-vxlan labs",
    /// A lab with our VTEP on every server.
    VtepLab "vtep labs",
    /// A campus of bridges.
    BridgedLab "bridged labs",
    Vl2Lab "VL2 labs",
    /// A campus of RBridges.
    TrillLab "TRILL labs",
    /// Links with a rate and a queue, in any lab.
    ShapedLinks "shaped links",
    /// Links that lose everything without a word, and lossy links of a directory.
    Losses "silent and lossy links",
    /// VL2 on machines of one's own.
    Vl2Node "weft node agent, switch, tor",
    /// A VXLAN tunnel end point at TC.
    Vtep "weft node vtep",
    /// The same at XDP.
    VtepXdp "weft node vtep --hook xdp",
    /// An RBridge in the driver.
    #[serde(rename = "rbridge")]
    RBridge "weft node rbridge",
    /// The same in the stack.
    #[serde(rename = "rbridge-generic")]
    RBridgeGeneric "weft node rbridge, xdp = \"generic\"",
    /// A directory server that answers look-ups at its card.
    LookupCard "weft node directory, xdp_interface",
    /// The test centre.
    Measure "weft measure",
    /// Costs of programs.
    BenchDatapath "weft bench datapath",
    /// The VXLAN draft's experiments, all ways of them.
    VxlanPlans "plans vxlan/*",
    /// The TRILL papers' experiments, all ways of them.
    TrillPlans "plans trill/*",
}

impl Use {
    /// Those that need root's rights: all but the first.
    pub const PRIVILEGED: &[Self] = match Self::ALL {
        [Self::Simulator, rest @ ..] => rest,
        all => all,
    };
    /// Those that are a lab.
    pub const LABS: &[Self] =
        &[Self::RoutedLab, Self::KernelVxlanLab, Self::VtepLab, Self::BridgedLab, Self::Vl2Lab, Self::TrillLab];

    /// The lab of an overlay; `None` where each workload says what it needs.
    pub(super) fn of(overlay: Overlay) -> Option<Self> {
        match overlay {
            Overlay::Routed => Some(Self::RoutedLab),
            Overlay::KernelVxlan { .. } => Some(Self::KernelVxlanLab),
            Overlay::Vtep { .. } => Some(Self::VtepLab),
            Overlay::Bridge { .. } => Some(Self::BridgedLab),
            Overlay::Vl2 => Some(Self::Vl2Lab),
            Overlay::RBridge { .. } => Some(Self::TrillLab),
            Overlay::Layer2 { .. } => None,
        }
    }
}
