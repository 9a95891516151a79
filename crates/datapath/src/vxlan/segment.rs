//! Segments: their numbers and what may be set for each of them at run time.

use std::fmt;
use std::net::Ipv4Addr;

use super::abi::{
    FLOOD_REMOTES, VNI_ANSWERS_ARP, VNI_ARP_FLOOD, VNI_ARP_UPCALL, VNI_LEARNS, VNI_LISTED, VNI_NAMED,
    VNI_UNICAST_FLOOD, VNI_UNICAST_UPCALL, VtepLimit, VtepLimits, VtepVni,
};
use crate::error::DatapathError;

/// A VXLAN network identifier, 1 to 2^24 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vni(u32);

impl Vni {
    /// `None` for 0 and for more than 24 bits.
    pub fn new(number: u32) -> Option<Self> {
        (1..=weft_wire::vxlan::VNI_MAX).contains(&number).then_some(Self(number))
    }

    /// As a number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where broadcast, multicast and unknown unicast go, beside the segment's other ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Nowhere.
    None,
    /// A copy to each of these VTEPs (head-end replication), at most 128. They become peers.
    HeadEnd(Vec<Ipv4Addr>),
    /// To a multicast group of the underlay (RFC 7348 4.2), which this VTEP joins.
    Group(Ipv4Addr),
}

/// Which VTEPs may send into a segment, beside those that its entries name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senders {
    /// All that were added, and those that floods go to.
    Peers,
    /// Those that floods go to.
    Flooded,
    /// Those of [`Vtep::set_members`](super::Vtep::set_members).
    Named,
}

/// What happens to a frame whose destination, or to an ARP request whose answer, is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMiss {
    Flood,
    /// Flooded, and user space is told.
    FloodAndUpcall,
    /// Dropped and counted, and user space is told.
    Upcall,
    /// Dropped and counted.
    Drop,
}

impl OnMiss {
    fn floods(self) -> bool {
        matches!(self, Self::Flood | Self::FloodAndUpcall)
    }

    fn calls(self) -> bool {
        matches!(self, Self::Upcall | Self::FloodAndUpcall)
    }

    fn of(floods: bool, calls: bool) -> Self {
        match (floods, calls) {
            (true, false) => Self::Flood,
            (true, true) => Self::FloodAndUpcall,
            (false, true) => Self::Upcall,
            (false, false) => Self::Drop,
        }
    }
}

/// A limit on frames of one kind, from ports and from peers alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Frames per second in the long run, at least 1.
    pub frames_per_sec: u32,
    /// Frames at once after a pause, at least 1.
    pub burst_frames: u32,
}

impl RateLimit {
    fn state(self) -> VtepLimit {
        let interval_ns = (1_000_000_000 / u64::from(self.frames_per_sec.max(1))).max(1);
        let burst = u64::from(self.burst_frames.max(1));
        VtepLimit { interval_ns, burst_ns: interval_ns * (burst - 1) }
    }

    fn of(state: VtepLimit) -> Option<Self> {
        let frames = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        (state.interval_ns > 0).then(|| Self {
            frames_per_sec: frames(1_000_000_000 / state.interval_ns),
            burst_frames: frames(state.burst_ns / state.interval_ns + 1),
        })
    }
}

/// What may be set for a segment, also while it carries traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VniSettings {
    /// Where floods go.
    pub flood: Flood,
    /// Who may send into it.
    pub senders: Senders,
    /// Whether source addresses of frames go into the table (RFC 7348 4.1).
    pub learn: bool,
    /// Whether ARP requests for known addresses are answered here.
    pub answer_arp: bool,
    /// What happens to other ARP requests.
    pub arp_miss: OnMiss,
    /// What happens to frames to unknown addresses. What comes from a peer is never sent to another one.
    pub unicast_miss: OnMiss,
    /// Limit on broadcast and multicast; `None`: none.
    pub broadcast_limit: Option<RateLimit>,
    /// Limit on unknown unicast; `None`: none.
    pub unknown_limit: Option<RateLimit>,
    /// Age at which a learned entry that was not seen again goes, nanoseconds; `None`: never.
    pub age_ns: Option<u64>,
}

impl Default for VniSettings {
    /// Flood and learn, as RFC 7348 has it; no limits; 300 s, as bridges have it.
    fn default() -> Self {
        Self {
            flood: Flood::None,
            senders: Senders::Peers,
            learn: true,
            answer_arp: true,
            arp_miss: OnMiss::Flood,
            unicast_miss: OnMiss::Flood,
            broadcast_limit: None,
            unknown_limit: None,
            age_ns: Some(300_000_000_000),
        }
    }
}

impl VniSettings {
    pub(super) fn state(&self, slot: u32) -> VtepVni {
        let flags = [
            (self.senders != Senders::Peers, VNI_LISTED),
            (self.senders == Senders::Named, VNI_NAMED),
            (self.learn, VNI_LEARNS),
            (self.answer_arp, VNI_ANSWERS_ARP),
            (self.arp_miss.calls(), VNI_ARP_UPCALL),
            (self.arp_miss.floods(), VNI_ARP_FLOOD),
            (self.unicast_miss.calls(), VNI_UNICAST_UPCALL),
            (self.unicast_miss.floods(), VNI_UNICAST_FLOOD),
        ];
        let group = match self.flood {
            Flood::Group(group) => group.octets(),
            Flood::None | Flood::HeadEnd(_) => [0; 4],
        };
        VtepVni {
            age_ns: self.age_ns.unwrap_or(0),
            slot,
            flags: flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum(),
            group,
            zero: 0,
        }
    }

    pub(super) fn limits(&self) -> VtepLimits {
        let state = |limit: Option<RateLimit>| limit.map(RateLimit::state).unwrap_or_default();
        VtepLimits { broadcast: state(self.broadcast_limit), unknown: state(self.unknown_limit) }
    }

    pub(super) fn of(vni: &VtepVni, limits: &VtepLimits, remotes: Vec<Ipv4Addr>) -> Self {
        let has = |flag| vni.flags & flag != 0;
        let group = Ipv4Addr::from(vni.group);
        let flood = match (group.is_unspecified(), remotes.is_empty()) {
            (false, _) => Flood::Group(group),
            (true, true) => Flood::None,
            (true, false) => Flood::HeadEnd(remotes),
        };
        Self {
            flood,
            senders: match (has(VNI_LISTED), has(VNI_NAMED)) {
                (_, true) => Senders::Named,
                (true, false) => Senders::Flooded,
                (false, false) => Senders::Peers,
            },
            learn: has(VNI_LEARNS),
            answer_arp: has(VNI_ANSWERS_ARP),
            arp_miss: OnMiss::of(has(VNI_ARP_FLOOD), has(VNI_ARP_UPCALL)),
            unicast_miss: OnMiss::of(has(VNI_UNICAST_FLOOD), has(VNI_UNICAST_UPCALL)),
            broadcast_limit: RateLimit::of(limits.broadcast),
            unknown_limit: RateLimit::of(limits.unknown),
            age_ns: (vni.age_ns > 0).then_some(vni.age_ns),
        }
    }
}

impl Flood {
    /// Refuses what cannot be flooded to.
    pub(super) fn check(&self, local: Ipv4Addr) -> Result<(), DatapathError> {
        let refuse = |why: String| Err(DatapathError::Config { field: "flood", why });
        match self {
            Self::None => Ok(()),
            Self::Group(group) if !group.is_multicast() => {
                refuse(format!("{group} is not a multicast group; use one of 224.0.0.0/4, or a list of VTEPs"))
            }
            Self::Group(_) => Ok(()),
            Self::HeadEnd(remotes) if remotes.len() > FLOOD_REMOTES => {
                refuse(format!("{} VTEPs; one frame is copied to at most {FLOOD_REMOTES}, use a group", remotes.len()))
            }
            Self::HeadEnd(remotes) => remotes.iter().try_for_each(|remote| check_peer(*remote, local)),
        }
    }
}

/// Refuses addresses that cannot be another VTEP's.
pub(super) fn check_peer(peer: Ipv4Addr, local: Ipv4Addr) -> Result<(), DatapathError> {
    let refuse = |why: String| Err(DatapathError::Config { field: "peer", why });
    if peer == local {
        return refuse(format!("{peer} is this VTEP itself; name another one"));
    }
    if peer.is_unspecified() || peer.is_multicast() || peer.is_broadcast() {
        return refuse(format!("{peer} is not the address of one VTEP"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vni_has_24_bits_and_is_not_0() {
        let given = [0, 1, (1 << 24) - 1, 1 << 24].map(|number| Vni::new(number).map(Vni::get));
        assert_eq!(given, [None, Some(1), Some((1 << 24) - 1), None]);
    }

    #[test]
    fn settings_come_back_from_the_maps() {
        let settings = VniSettings {
            flood: Flood::HeadEnd(vec![Ipv4Addr::new(10, 0, 0, 2)]),
            senders: Senders::Flooded,
            learn: false,
            arp_miss: OnMiss::Upcall,
            unicast_miss: OnMiss::FloodAndUpcall,
            broadcast_limit: Some(RateLimit { frames_per_sec: 1000, burst_frames: 50 }),
            age_ns: None,
            ..VniSettings::default()
        };
        let remotes = vec![Ipv4Addr::new(10, 0, 0, 2)];
        assert_eq!(VniSettings::of(&settings.state(7), &settings.limits(), remotes), settings);
        let group = Flood::Group(Ipv4Addr::new(239, 1, 1, 1));
        let group = VniSettings { flood: group, senders: Senders::Named, ..VniSettings::default() };
        assert_eq!(VniSettings::of(&group.state(0), &group.limits(), Vec::new()), group);
    }

    #[test]
    fn floods_go_to_others_only() {
        let local = Ipv4Addr::new(10, 0, 0, 1);
        let error = |flood: Flood| flood.check(local).expect_err("refused").to_string();
        assert!(error(Flood::Group(local)).contains("10.0.0.1 is not a multicast group"));
        assert!(error(Flood::HeadEnd(vec![local])).contains("this VTEP itself"));
        assert!(error(Flood::HeadEnd(vec![Ipv4Addr::new(10, 0, 0, 2); 129])).contains("129 VTEPs"));
        assert!(error(Flood::HeadEnd(vec![Ipv4Addr::new(239, 0, 0, 1)])).contains("239.0.0.1"));
    }
}
