//! What carries frames or packets from server to server. Plans, flags, rows and fabrics write it as one word, and [`Overlay::ALL`] is
//! the one list of these words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How packets get from server to server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Overlay {
    /// No overlay: servers talk by their LAs over the routed fabric.
    Routed,
    /// VL2: AAs, an agent and a directory; every packet bounces off an Intermediate.
    Vl2,
    /// The kernel's VXLAN device, over plain routing.
    KernelVxlan { at: TunnelEnd },
    /// Our VTEP, over plain routing.
    Vtep {
        /// Where its programs are.
        hook: Hook,
        at: TunnelEnd,
    },
    /// TRILL between the switches, which are RBridges (RFC 6325); servers send ordinary frames.
    RBridge {
        /// Where their programs are; not [`Hook::Tc`].
        hook: Hook,
        /// Whether RBridges that agree on it leave out the outer header between each other.
        elide: bool,
    },
    /// The same wires with the kernel's bridges and a spanning tree (IEEE 802.1D); servers send ordinary frames. Lab only: in the
    /// simulator the load balance `spanning-tree` says so.
    Bridge {
        /// The timers of the spanning tree once it stands.
        timers: StpTimers,
    },
    /// Plain layer-2 switches that are told where stations are: what the hook takes without an encapsulation. Lab only.
    Layer2 {
        /// Where their programs are; not [`Hook::XdpGeneric`].
        hook: Hook,
    },
}

/// Who has the tunnel end points of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TunnelEnd {
    /// Every server, for itself.
    Server,
    /// Every edge switch, for the servers below it, which send ordinary frames. A VLAN of theirs is a segment. Lab only.
    Tor,
}

/// Where in the kernel a switch or a server handles frames.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Behind the driver, on the kernel's buffers.
    #[default]
    Tc,
    /// In the driver.
    Xdp,
    /// XDP in the stack, for drivers without it.
    XdpGeneric,
}

/// Timers of a spanning tree.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StpTimers {
    /// What IEEE 802.1D recommends (its tables 17-1 and 8-3).
    #[default]
    Standard,
    /// The shortest that Linux takes.
    Quick,
}

impl StpTimers {
    /// Between two BPDUs of the root.
    pub const fn hello_s(self) -> u64 {
        match self {
            Self::Standard => 2,
            Self::Quick => 1,
        }
    }

    /// How long a root that is not heard is believed in.
    pub const fn max_age_s(self) -> u64 {
        match self {
            Self::Standard => 20,
            Self::Quick => 6,
        }
    }

    /// Each of listening and learning.
    pub const fn forward_delay_s(self) -> u64 {
        match self {
            Self::Standard => 15,
            Self::Quick => 2,
        }
    }
}

/// One word for an overlay.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// As people write it.
    pub name: &'static str,
    /// Older words for the same, which are still read.
    pub aliases: &'static [&'static str],
    /// What it means.
    pub overlay: Overlay,
    /// What it is, for help.
    pub about: &'static str,
}

const fn word(name: &'static str, aliases: &'static [&'static str], overlay: Overlay, about: &'static str) -> Word {
    Word { name, aliases, overlay, about }
}

impl Overlay {
    /// RBridges in the driver.
    pub const RBRIDGE: Self = Self::RBridge { hook: Hook::Xdp, elide: false };
    /// Bridges whose spanning tree is quick.
    pub const BRIDGE: Self = Self::Bridge { timers: StpTimers::Quick };
    /// Our VTEP at TC.
    pub const VTEP: Self = Self::Vtep { hook: Hook::Tc, at: TunnelEnd::Server };
    /// Our VTEP at TC on every edge switch.
    pub const VTEP_TOR: Self = Self::Vtep { hook: Hook::Tc, at: TunnelEnd::Tor };
    /// The kernel's VXLAN device on every server.
    pub const KERNEL_VXLAN: Self = Self::KernelVxlan { at: TunnelEnd::Server };
    /// Plain layer-2 switches in the driver.
    pub const L2: Self = Self::Layer2 { hook: Hook::Xdp };

    /// Every overlay that can be asked for.
    pub const ALL: &[Word] = &[
        word("vl2", &[], Self::Vl2, "VL2 agents and a directory"),
        word("routed", &[], Self::Routed, "No overlay: plain routing by LA"),
        word("kernel-vxlan", &[], Self::KERNEL_VXLAN, "The kernel's VXLAN device on every server"),
        word(
            "kernel-vxlan-tor",
            &[],
            Self::KernelVxlan { at: TunnelEnd::Tor },
            "The kernel's VXLAN device and bridge on every edge switch (lab only)",
        ),
        word("vtep", &[], Self::VTEP, "Our VTEP on every server, at TC"),
        word("vtep-xdp", &[], Self::Vtep { hook: Hook::Xdp, at: TunnelEnd::Server }, "The same at XDP"),
        word("vtep-tor", &[], Self::VTEP_TOR, "Our VTEP on every edge switch, at TC (lab only)"),
        word("vtep-tor-xdp", &[], Self::Vtep { hook: Hook::Xdp, at: TunnelEnd::Tor }, "The same at XDP (lab only)"),
        word("rbridge", &["trill"], Self::RBRIDGE, "TRILL between the switches"),
        word(
            "rbridge-generic",
            &[],
            Self::RBridge { hook: Hook::XdpGeneric, elide: false },
            "The same with XDP in the stack (lab only)",
        ),
        word(
            "rbridge-elided",
            &[],
            Self::RBridge { hook: Hook::Xdp, elide: true },
            "The same without outer headers between RBridges (lab only)",
        ),
        word("bridge", &["bridged"], Self::BRIDGE, "Bridges with a quick spanning tree (lab only)"),
        word(
            "bridge-standard",
            &[],
            Self::Bridge { timers: StpTimers::Standard },
            "The same with the timers that 802.1D recommends (lab only)",
        ),
        word("l2", &["layer2"], Self::L2, "Plain layer-2 switches at XDP (lab only)"),
        word("l2-tc", &[], Self::Layer2 { hook: Hook::Tc }, "The same at TC (lab only)"),
    ];

    /// As plans, flags and rows write it.
    pub fn name(self) -> &'static str {
        let own = Self::ALL.iter().find(|word| word.overlay == self);
        own.map_or("an overlay that nobody can ask for", |word| word.name)
    }

    /// Whether all switches forward frames, and none routes.
    pub fn forwards_frames(self) -> bool {
        matches!(self, Self::RBridge { .. } | Self::Bridge { .. } | Self::Layer2 { .. })
    }

    /// Whether tunnels end at edge switches.
    pub fn tunnels_at_tors(self) -> bool {
        matches!(self, Self::KernelVxlan { at: TunnelEnd::Tor } | Self::Vtep { at: TunnelEnd::Tor, .. })
    }

    /// Whether edge switches take ordinary frames of servers' VLANs.
    pub fn takes_frames(self) -> bool {
        self.forwards_frames() || self.tunnels_at_tors()
    }

    /// Why switches of the two cannot be in one network.
    pub fn clash(self, other: Self) -> Option<&'static str> {
        let plain = |one| matches!(one, Self::Layer2 { .. });
        match (self, other) {
            (one, two) if one == two || (one.tunnels_at_tors() && two.tunnels_at_tors()) => None,
            (one, two) if one.forwards_frames() != two.forwards_frames() => {
                Some("one forwards frames, the other routes")
            }
            (one, _) if !one.forwards_frames() => {
                Some("of routed networks only edge switches with tunnels of their own may differ")
            }
            (one, two) if plain(one) != plain(two) => {
                Some("a plain switch passes on what it is told of, and neither Hellos nor broadcast")
            }
            (Self::Bridge { .. }, Self::Bridge { .. }) => Some("all bridges go by the timers of one root"),
            _ => None,
        }
    }

    /// Whether its switches, or its servers' tunnels, are at XDP in the driver.
    pub fn is_in_driver(self) -> bool {
        match self {
            Self::RBridge { hook, .. } | Self::Layer2 { hook } | Self::Vtep { hook, .. } => hook == Hook::Xdp,
            _ => false,
        }
    }

    /// Whether only the lab has it.
    pub fn is_lab_only(self) -> bool {
        self.takes_frames() && self != Self::RBRIDGE
    }
}

impl fmt::Display for Overlay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Overlay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|word| word.name == text || word.aliases.contains(&text));
        known.map(|word| word.overlay).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|word| word.name).collect();
            format!("there is no overlay `{text}`; choose one of {}", names.join(", "))
        })
    }
}

impl TryFrom<String> for Overlay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Overlay> for &'static str {
    fn from(overlay: Overlay) -> Self {
        overlay.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overlay_has_one_word_and_is_read_by_it() {
        for word in Overlay::ALL {
            assert_eq!(word.overlay.name(), word.name, "two words for one overlay");
            for name in [&[word.name], word.aliases].concat() {
                assert_eq!(name.parse(), Ok(word.overlay));
                assert_eq!(serde_json::from_str::<Overlay>(&format!("{name:?}")).unwrap(), word.overlay);
            }
            assert_eq!(serde_json::to_string(&word.overlay).unwrap(), format!("{:?}", word.name));
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_known_ones() {
        let error = "vlx".parse::<Overlay>().unwrap_err();
        assert!(error.starts_with("there is no overlay `vlx`; choose one of vl2, routed, kernel-vxlan"), "{error}");
    }
}
