//! Who is DRB: of all ports on the link whose Hellos are heard the one of the highest priority, then address, then number,
//! then system, whether it hears us or not (RFC 7177 section 4.2).

use weft_wire::isis::NodeId;

use super::Shared;
use crate::NS_PER_S;
use crate::isis::RBridge;
use crate::isis::adjacency::Event as Happening;
use crate::isis::counters::{DropReason, Event};
use crate::isis::io::Output;
use crate::isis::port::{ELSEWHERE, ON_DESIGNATED, Peer, Port};

/// A claim to be DRB.
pub(super) type Rank = (u8, Peer);

/// What follows from who is DRB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Election {
    /// `None`: we are.
    pub(super) drb: Option<Peer>,
    pub(super) designated_vlan: u16,
    pub(super) lan_id: NodeId,
    pub(super) bypass: bool,
}

impl Election {
    pub(super) fn of_ourselves(lan_id: NodeId, designated_vlan: u16) -> Self {
        Self { drb: None, designated_vlan, lan_id, bypass: true }
    }
}

impl Port {
    /// Our own claim on a shared link.
    pub(super) fn rank(&self, shared: &Shared) -> Rank {
        let me = Peer { mac: self.config.mac, port: self.config.id.0, system: shared.system };
        (shared.config.priority, me)
    }

    fn elect(&self, shared: &Shared) -> Election {
        let ranks = self.adjacencies.iter().map(|(peer, adjacency)| (adjacency.told.priority, *peer));
        let ours = Election {
            bypass: !(shared.has_seen_two && shared.has_own),
            ..Election::of_ourselves(shared.own, shared.wished_vlan(&self.config))
        };
        let Some((_, drb)) = ranks.max().filter(|best| *best > self.rank(shared)) else { return ours };
        let told = &self.adjacencies[&drb].told;
        // After a restart a higher claim may not have been heard yet.
        if shared.is_recalling() && !told.says_it_is_drb(drb, shared.system) {
            return ours;
        }
        // Whoever names a link that is not its own cannot speak for it.
        let is_named = told.lan_id.is_pseudonode() && told.lan_id.system() == drb.system;
        let (designated_vlan, bypass) = (told.designated_vlan, told.bypass || !is_named);
        Election { drb: Some(drb), designated_vlan, lan_id: told.lan_id, bypass }
    }
}

impl RBridge {
    /// A port comes up: until a higher claim is heard it is DRB (RFC 6325 section 4.4.3), and is inhibited as such.
    pub(in crate::isis) fn begin_shared(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let holding_ns = self.holding_ns();
        let port = &mut self.ports[index];
        let Some(shared) = &mut port.shared else { return };
        shared.suspended_until_ns = None;
        shared.election = Election::of_ourselves(shared.own, shared.wished_vlan(&port.config));
        if !shared.is_recalling() {
            shared.forwarder.becomes_drb(now_ns + holding_ns);
        }
        port.hello_at_ns = now_ns;
        self.shared_follows(now_ns, index, outputs);
    }

    /// A port goes down, or is suspended: nothing of it is left.
    pub(in crate::isis) fn end_shared(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let peers: Vec<Peer> = self.ports[index].adjacencies.keys().copied().collect();
        for peer in peers {
            self.adjacency_event(now_ns, index, peer, Happening::PortDown, outputs);
        }
        let port = &mut self.ports[index];
        let Some(shared) = &mut port.shared else { return };
        shared.election = Election::of_ourselves(shared.own, port.config.designated_vlan);
        shared.suspended_until_ns = shared.suspended_until_ns.filter(|_| port.is_up);
        (shared.csnp_at_ns, shared.list_at_ns, shared.recall) = (None, None, None);
        shared.forwarder = shared.forwarder.ended();
        self.describe_soon(now_ns);
        self.forwarder_follows(now_ns, index, outputs);
    }

    /// A Hello with our own address: a loop of ours, or a port whose claim decides which of the two stays on the link
    /// (RFC 7177 section 3.3, A0).
    pub(super) fn same_address(
        &mut self,
        now_ns: u64,
        index: usize,
        rank: Rank,
        holding_time_s: u16,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let port = &self.ports[index];
        let is_higher = port.shared.as_ref().is_some_and(|shared| rank > port.rank(shared));
        let Some(shared) = self.ports[index].shared.as_mut().filter(|_| is_higher) else {
            return Err(DropReason::OwnAddress);
        };
        let until_ns = Some(now_ns + u64::from(holding_time_s) * NS_PER_S);
        let before = shared.suspended_until_ns;
        shared.suspended_until_ns = before.max(until_ns);
        if before.is_none() {
            self.counters.events.add(Event::PortSuspended);
            self.end_shared(now_ns, index, outputs);
        }
        Ok(())
    }

    /// Counts the claims again and does what another outcome entails.
    pub(in crate::isis) fn shared_follows(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let holding_ns = self.holding_ns();
        let port = &mut self.ports[index];
        let has_two = port.reported().nth(1).is_some();
        let Some(shared) = port.shared.as_mut().filter(|shared| port.is_up && !shared.is_suspended()) else { return };
        shared.has_seen_two |= has_two;
        let before = shared.election;
        let Some(shared) = &port.shared else { return };
        let after = port.elect(shared);
        if before != after {
            let Some(shared) = &mut port.shared else { return };
            shared.election = after;
            port.hello_at_ns = now_ns;
            if before.drb != after.drb {
                match after.drb {
                    None if shared.is_recalling() => {}
                    None => shared.forwarder.becomes_drb(now_ns + holding_ns),
                    Some(_) => shared.forwarder.has_other_drb(),
                }
                shared.csnp_at_ns = shared.leads().then_some(now_ns);
                self.counters.events.add(Event::DrbChanged);
            }
            if before.designated_vlan != after.designated_vlan {
                self.designated_vlan_changed(now_ns, index, outputs);
            }
            self.describe_soon(now_ns);
            self.compute_soon(now_ns);
        }
        self.forwarder_follows(now_ns, index, outputs);
    }

    /// What was heard was heard elsewhere, so that everybody has to be heard anew (RFC 7177 section 4.2.3).
    fn designated_vlan_changed(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let peers: Vec<Peer> = self.ports[index].adjacencies.keys().copied().collect();
        for peer in peers {
            if let Some(adjacency) = self.ports[index].adjacencies.get_mut(&peer) {
                let until_ns = adjacency.until_ns;
                adjacency.hold(ON_DESIGNATED, 0);
                adjacency.hold(ELSEWHERE, until_ns);
            }
            self.adjacency_event(now_ns, index, peer, Happening::DesignatedExpired, outputs);
        }
    }

    /// How long others believe our Hellos.
    pub(super) fn holding_ns(&self) -> u64 {
        u64::from(self.config.timing.holding_s()) * NS_PER_S
    }

    /// The DRB lists all LSPs, and when it does so again.
    pub(in crate::isis) fn csnp_due(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let again_ns = now_ns + self.earlier(self.config.timing.csnp_ns);
        let port = &mut self.ports[index];
        let synchronizes = port.synchronizes();
        let Some(shared) = &mut port.shared else { return };
        shared.csnp_at_ns = Some(again_ns).filter(|_| shared.leads());
        if shared.leads() && synchronizes {
            self.send_list(now_ns, index, outputs);
        }
    }
}
