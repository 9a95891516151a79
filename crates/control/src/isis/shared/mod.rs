//! A port on a shared link: who is DRB there, in which VLAN RBridges talk, whether the link is a node of the graph, who
//! forwards for its end stations (RFC 6325 sections 4.2.4 and 4.4, RFC 7177, RFC 8139).
//!
//! * [`election`]: DRB, Designated VLAN, the port's state
//! * [`hello`]: what Hellos say and do there
//! * [`forwarder`]: for which VLANs the port carries frames of end stations, and when it must not
//! * [`appoint`]: whom the DRB appoints
//! * [`recall`]: what the port goes on with after a restart
//!
//! The adjacencies themselves, and all that LSPs need, are those of any port.

mod appoint;
mod election;
mod forwarder;
mod hello;
mod recall;

use weft_wire::isis::hello::Appointment;
use weft_wire::isis::lsp::Reach;
use weft_wire::isis::{NodeId, SystemId, Tlv};
use weft_wire::vlan::VlanSet;

use super::RBridge;
use super::adjacency::State;
use super::config::{LinkKind, PortConfig, PortId, Role, SharedConfig};
use super::packing::{Interest, Item, REACH_MAX};
use super::port::Port;
use election::Election;
use forwarder::Forwarder;
use recall::Recall;

pub use recall::Former;

/// What a port is on its shared link.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: SharedConfig,
    system: SystemId,
    /// Our name for the link; used while we are its DRB.
    own: NodeId,
    /// Whether `own` is no other port's.
    has_own: bool,
    suspended_until_ns: Option<u64>,
    election: Election,
    /// Whether two neighbours were in Report at once, since the start (RFC 6325 section 4.4.2).
    has_seen_two: bool,
    /// When the DRB lists all LSPs.
    pub(super) csnp_at_ns: Option<u64>,
    /// When neighbours are told whom we hear, before the next round of Hellos.
    pub(super) list_at_ns: Option<u64>,
    /// Until then VLANs count as mapped; 0: they do not.
    mapped_until_ns: u64,
    forwarder: Forwarder,
    /// Until it is known again what the port is here.
    recall: Option<Recall>,
}

/// What a neighbour's last Hello said.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    priority: u8,
    /// The VLAN that it wants to be the Designated VLAN.
    designated_vlan: u16,
    lan_id: NodeId,
    bypass: bool,
    /// It appoints, as only a DRB does.
    appoints: bool,
    nickname: u16,
    enabled: VlanSet,
    role: Option<Role>,
    maps_vlans: bool,
}

impl Told {
    pub(super) fn priority(&self) -> u8 {
        self.priority
    }
}

/// The state of a port (RFC 7177 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortState {
    Down,
    /// Another port on the link has its address, and a higher claim to be DRB.
    Suspended,
    Drb,
    NotDrb,
}

/// A shared link as one of its RBridges sees it.
#[derive(Clone, Debug)]
pub struct SharedLink<'a> {
    pub state: PortState,
    /// The DRB, which may be the RBridge itself.
    pub drb: SystemId,
    pub designated_vlan: u16,
    /// The DRB's name for the link.
    pub lan_id: NodeId,
    /// Whether LSPs tell of neighbours instead of the link.
    pub bypass: bool,
    /// VLANs that the port is appointed forwarder of.
    pub appointed: &'a VlanSet,
    /// Those of them that it carries: it is not inhibited.
    pub carried: &'a VlanSet,
    /// Whom it appoints as DRB.
    pub appointments: &'a [Appointment],
}

impl Shared {
    pub(super) fn new(port: &PortConfig, system: SystemId, nth: usize) -> Option<Self> {
        let LinkKind::Shared(config) = &port.link else { return None };
        let [a, b, c, d, e, f] = system.0;
        let own = NodeId([a, b, c, d, e, f, u8::try_from(nth).unwrap_or(u8::MAX).max(1)]);
        Some(Self {
            config: config.clone(),
            system,
            own,
            has_own: nth <= usize::from(u8::MAX),
            suspended_until_ns: None,
            election: Election::of_ourselves(own, port.designated_vlan),
            has_seen_two: false,
            csnp_at_ns: None,
            list_at_ns: None,
            mapped_until_ns: 0,
            forwarder: Forwarder::default(),
            recall: None,
        })
    }

    pub(super) fn enables(&self, vlan: u16) -> bool {
        self.config.enabled.contains(vlan)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspended_until_ns.is_some()
    }

    pub(super) fn suspended_until_ns(&self) -> Option<u64> {
        self.suspended_until_ns
    }

    /// When something ends that keeps the port from forwarding for end stations.
    pub(super) fn inhibition_ends_ns(&self) -> Option<u64> {
        let mapped = Some(self.mapped_until_ns).filter(|at_ns| *at_ns > 0);
        self.forwarder.next_end_ns().into_iter().chain(mapped).min()
    }

    pub(super) fn is_drb(&self) -> bool {
        self.election.drb.is_none()
    }

    /// Whether the port does what the DRB does.
    pub(super) fn leads(&self) -> bool {
        self.is_drb() && !self.is_recalling()
    }

    pub(super) fn designated_vlan(&self) -> u16 {
        self.election.designated_vlan
    }

    /// The DRB's name for the link.
    pub(super) fn lan_id(&self) -> NodeId {
        self.election.lan_id
    }

    /// The node that stands for the link, if one does.
    pub(super) fn pseudonode(&self) -> Option<NodeId> {
        (!self.election.bypass).then_some(self.election.lan_id)
    }

    /// Whether LSPs tell of the link: those of neighbours do in any case, that of its pseudonode only where the DRB speaks
    /// for us as well (RFC 7177 section 7).
    pub(super) fn is_reported(&self, port: &Port) -> bool {
        self.election.bypass || self.is_drb() || self.is_adjacent_to_drb(port)
    }

    fn is_adjacent_to_drb(&self, port: &Port) -> bool {
        let drb = self.election.drb.and_then(|peer| port.adjacencies.get(&peer));
        drb.is_some_and(|with| with.state == State::Report)
    }
}

impl RBridge {
    /// What a port is on its shared link; `None` on a point-to-point link.
    pub fn shared_link(&self, port: PortId) -> Option<SharedLink<'_>> {
        let port = &self.ports[self.index(port)?];
        let shared = port.shared.as_ref()?;
        let state = match shared {
            _ if !port.is_up => PortState::Down,
            Shared { suspended_until_ns: Some(_), .. } => PortState::Suspended,
            _ if shared.is_drb() => PortState::Drb,
            _ => PortState::NotDrb,
        };
        Some(SharedLink {
            state,
            drb: shared.election.drb.map_or(shared.system, |peer| peer.system),
            designated_vlan: shared.designated_vlan(),
            lan_id: shared.lan_id(),
            bypass: shared.election.bypass,
            appointed: shared.forwarder.appointed(),
            carried: shared.forwarder.carried(),
            appointments: shared.forwarder.appointments(),
        })
    }

    /// VLANs of end stations on shared links whose forwarder we are.
    pub(super) fn forwarded_vlans(&self) -> VlanSet {
        let mut vlans = VlanSet::default();
        self.ports.iter().filter_map(|port| port.shared.as_ref()).for_each(|shared| {
            vlans.add_all(shared.forwarder.appointed());
        });
        vlans
    }

    /// The VLANs as ranges of which we have ceased to be forwarder equally often, on all ports together (RFC 6325 section 4.8.3).
    pub(super) fn alike(&self, vlans: &VlanSet) -> impl Iterator<Item = Item> + use<> {
        let shared = || self.ports.iter().filter_map(|port| port.shared.as_ref());
        let said = |vlan: u16| Interest {
            forwarder_lost: shared().map(|shared| shared.forwarder.lost(vlan)).fold(0, u32::wrapping_add),
            all_groups: (self.listeners.all_ipv4.contains(vlan), self.listeners.all_ipv6.contains(vlan)),
        };
        let mut ranges: Vec<(u16, u16, Interest)> = Vec::new();
        for (vlan, said) in vlans.iter().map(|vlan| (vlan, said(vlan))) {
            match ranges.last_mut() {
                Some((_, last, before)) if *last + 1 == vlan && *before == said => *last = vlan,
                _ => ranges.push((vlan, vlan, said)),
            }
        }
        ranges.into_iter().map(|(first, last, said)| Item::Vlans(first, last, said))
    }

    /// Shared links that we speak for, with what their LSPs say: everybody there, at no cost.
    pub(super) fn pseudonodes(&self) -> Vec<(NodeId, Vec<Tlv>)> {
        let me = self.config.system;
        let of_port = |port: &Port| {
            let shared = port.shared.as_ref().filter(|shared| port.is_up && shared.is_drb())?;
            let pseudonode = shared.pseudonode()?;
            let mut systems: Vec<SystemId> = port.reported().map(|(peer, _)| peer.system).collect();
            systems.sort_unstable();
            systems.dedup();
            if systems.is_empty() {
                return None;
            }
            let reach: Vec<Reach> = [me].into_iter().chain(systems).map(|id| Reach::plain(id.node(), 0)).collect();
            Some((pseudonode, reach.chunks(REACH_MAX).map(|part| Tlv::Reach(part.to_vec())).collect()))
        };
        self.ports.iter().filter_map(of_port).collect()
    }
}
