//! A port of a shared link over a restart of ours (RFC 8706 section 3.3): what it was there stays until that is known again.
//!
//! The others hold our adjacency, our claim, the link's name and the appointments for as long as our Hellos do not contradict. So
//! these list who is heard and leave open who else is, call the link as a neighbour does, and appoint nobody. Who is lower than the
//! DRB would be taken for it while the DRB itself has not been heard: only who says so is. VLANs of end stations go on, but for those
//! that a Hello shows with somebody else, and end with the first doubt whether the others have held on. Nothing is taken up before
//! that was not carried, and then as by a new forwarder, after a holding time.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::{NodeId, SystemId};
use weft_wire::vlan::VlanSet;

use super::election::Rank;
use super::{Shared, Told};
use crate::isis::RBridge;
use crate::isis::adjacency::Event as Happening;
use crate::isis::config::{PortConfig, PortId};
use crate::isis::io::Output;
use crate::isis::port::{Adjacency, Peer, Port};

/// What a port was before a restart during which the data plane worked on.
#[derive(Clone, Debug)]
pub struct Former {
    pub port: PortId,
    /// Addresses of its neighbours whose adjacency was in Report; of no use on a point-to-point link.
    pub neighbors: Vec<MacAddress>,
    /// VLANs of end stations that it carried on a shared link, and still does.
    pub carried: VlanSet,
    /// VLAN in which RBridges talk on a shared link.
    pub designated_vlan: u16,
}

/// What is left of that on a shared link.
#[derive(Debug)]
pub(super) struct Recall {
    neighbors: BTreeSet<MacAddress>,
    carried: VlanSet,
    designated_vlan: u16,
    /// The link's name, and whether LSPs leave it out, as the first of the neighbours to be heard has it.
    link: Option<(NodeId, bool)>,
}

impl Recall {
    pub(super) fn carried(&self) -> &VlanSet {
        &self.carried
    }

    /// Somebody else serves a VLAN.
    pub(super) fn gives_up(&mut self, vlan: u16) {
        self.carried = self.carried.iter().filter(|carried| *carried != vlan).collect();
    }

    /// The DRB appoints us to this.
    pub(super) fn keeps_to(&mut self, given: &VlanSet) {
        self.carried = self.carried.iter().filter(|vlan| given.contains(*vlan)).collect();
    }
}

impl Shared {
    /// The port goes on as what it was.
    pub(in crate::isis) fn recalls(&mut self, former: Former) {
        let carried: VlanSet = former.carried.iter().filter(|vlan| self.config.enabled.contains(*vlan)).collect();
        self.forwarder.goes_on_with(carried.clone());
        let (neighbors, designated_vlan) = (former.neighbors.into_iter().collect(), former.designated_vlan);
        self.recall = Some(Recall { neighbors, carried, designated_vlan, link: None });
    }

    /// What we want the Designated VLAN to be: what it was, until a restart is over.
    pub(super) fn wished_vlan(&self, port: &PortConfig) -> u16 {
        let former = self.recall.as_ref().map(|recall| recall.designated_vlan);
        former.filter(|vlan| self.config.enabled.contains(*vlan)).unwrap_or(port.designated_vlan)
    }

    /// A former life has ceased to be the forwarder of VLANs so often.
    pub(in crate::isis) fn has_lost_before(&mut self, lost: &BTreeMap<u16, u32>) {
        self.forwarder.add_lost(lost);
    }

    /// Whether no Hello is said, for it is not known what would contradict the others.
    pub(in crate::isis) fn is_silent(&self) -> bool {
        self.recall.as_ref().is_some_and(|recall| recall.link.is_none())
    }

    /// Whether what the port is on its link is still being found out.
    pub(in crate::isis) fn is_recalling(&self) -> bool {
        self.recall.is_some()
    }

    /// Whether a former neighbour shows that we were DRB, under the port's own name.
    pub(in crate::isis) fn was_drb(&self) -> bool {
        self.former_link().is_some_and(|(lan_id, _)| lan_id == self.own)
    }

    fn former_link(&self) -> Option<(NodeId, bool)> {
        self.recall.as_ref()?.link
    }

    /// The link's name, and whether LSPs leave it out, as our Hellos say it.
    pub(super) fn said_link(&self) -> (NodeId, bool) {
        let known = (self.election.lan_id, self.election.bypass);
        if self.is_drb() { self.former_link().unwrap_or(known) } else { known }
    }
}

impl Told {
    /// Whether its sender is DRB in its own eyes: another port of the same RBridge may be in all eyes, and does not appoint. A port of
    /// ours does not while it restarts with us.
    pub(super) fn says_it_is_drb(&self, sender: Peer, me: SystemId) -> bool {
        (self.appoints || sender.system == me) && self.lan_id.system() == sender.system
    }
}

impl Port {
    /// A Hello with this claim came, which asks for no restart itself.
    pub(super) fn recall_hears(&mut self, (priority, peer): Rank, happening: Happening) {
        let is_lower = self.shared.as_ref().is_some_and(|shared| (priority, peer) < self.rank(shared));
        let Some(shared) = &mut self.shared else { return };
        let me = shared.system;
        let Some(recall) = shared.recall.as_mut().filter(|recall| recall.neighbors.contains(&peer.mac)) else { return };
        let Some(Adjacency { told, .. }) = self.adjacencies.get(&peer) else { return };
        recall.link.get_or_insert((told.lan_id, told.bypass));
        let leads_without_us = is_lower && told.says_it_is_drb(peer, me);
        if happening == Happening::Unlisted || leads_without_us {
            recall.carried = VlanSet::default();
        }
    }
}

impl RBridge {
    /// Whether the end stations of no shared link are served by what a former life knew alone: while a port is silent after a
    /// restart, its data path must not be told to go on for longer than it would by itself.
    pub fn speaks_on_shared_links(&self) -> bool {
        let mut shared = self.ports.iter().filter(|port| port.is_up).filter_map(|port| port.shared.as_ref());
        !shared.any(Shared::is_silent)
    }

    /// The restart is over: who was DRB is it again, without having to wait as a new one for what it carries. Whoever would be so
    /// without having been begins.
    pub(in crate::isis) fn end_recall(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let inhibited_until_ns = now_ns + self.holding_ns();
        let Some(shared) = &mut self.ports[index].shared else { return };
        let (was_drb, former) = (shared.was_drb(), shared.former_link());
        let Some(recall) = shared.recall.take() else { return };
        shared.forwarder.waits_but_for(&shared.config.enabled, recall.carried(), inhibited_until_ns);
        match (shared.is_drb(), was_drb) {
            (true, true) => shared.has_seen_two |= former.is_some_and(|(_, bypass)| !bypass),
            (true, false) => shared.forwarder.becomes_drb(inhibited_until_ns),
            (false, _) => {}
        }
        self.shared_follows(now_ns, index, outputs);
        self.csnp_due(now_ns, index, outputs);
    }
}
