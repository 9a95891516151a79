//! What people do with weft that not every machine can do.

use serde::Serialize;
use weft_scenario::engine::Overlay;

/// Something that a machine can or cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    RoutedLab,
    /// A lab with the kernel's VXLAN between servers.
    KernelVxlanLab,
    /// A lab with our VTEP on every server.
    VtepLab,
    /// A campus of bridges.
    BridgedLab,
    Vl2Lab,
    /// A campus of RBridges.
    TrillLab,
    /// Links with a rate and a queue, in any lab.
    ShapedLinks,
    /// Links that lose everything without a word, and lossy links of a directory.
    Losses,
    /// VL2 on machines of one's own.
    Vl2Node,
    /// A VXLAN tunnel end point at TC.
    Vtep,
    /// The same at XDP.
    VtepXdp,
    /// An RBridge in the driver.
    #[serde(rename = "rbridge")]
    RBridge,
    /// The same in the stack.
    #[serde(rename = "rbridge-generic")]
    RBridgeGeneric,
    /// The test centre.
    Measure,
    /// Costs of programs.
    BenchDatapath,
    /// The VXLAN draft's experiments, all ways of them.
    VxlanPlans,
    /// The TRILL papers' experiments, all ways of them.
    TrillPlans,
}

impl Use {
    /// Every one, in the order of the report.
    pub const ALL: &[Self] = &[
        Self::RoutedLab,
        Self::KernelVxlanLab,
        Self::VtepLab,
        Self::BridgedLab,
        Self::Vl2Lab,
        Self::TrillLab,
        Self::ShapedLinks,
        Self::Losses,
        Self::Vl2Node,
        Self::Vtep,
        Self::VtepXdp,
        Self::RBridge,
        Self::RBridgeGeneric,
        Self::Measure,
        Self::BenchDatapath,
        Self::VxlanPlans,
        Self::TrillPlans,
    ];

    /// Those that are a lab.
    pub const LABS: &[Self] =
        &[Self::RoutedLab, Self::KernelVxlanLab, Self::VtepLab, Self::BridgedLab, Self::Vl2Lab, Self::TrillLab];

    /// As people call it, in the plural where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoutedLab => "routed labs",
            Self::KernelVxlanLab => "kernel-vxlan labs",
            Self::VtepLab => "vtep labs",
            Self::BridgedLab => "bridged labs",
            Self::Vl2Lab => "VL2 labs",
            Self::TrillLab => "TRILL labs",
            Self::ShapedLinks => "shaped links",
            Self::Losses => "silent and lossy links",
            Self::Vl2Node => "weft node agent, switch, tor",
            Self::Vtep => "weft node vtep",
            Self::VtepXdp => "weft node vtep --hook xdp",
            Self::RBridge => "weft node rbridge",
            Self::RBridgeGeneric => "weft node rbridge, xdp = \"generic\"",
            Self::Measure => "weft measure",
            Self::BenchDatapath => "weft bench datapath",
            Self::VxlanPlans => "plans vxlan/*",
            Self::TrillPlans => "plans trill/*",
        }
    }

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
