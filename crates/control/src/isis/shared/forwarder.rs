//! For which VLANs a port of a shared link carries frames of end stations: those that it is appointed forwarder of, while
//! nothing inhibits it (RFC 8139 sections 2 and 3).
//!
//! An appointment holds until the DRB sends other ones, or another port becomes DRB (section 2.2). A new DRB appoints others at
//! once (appendix C, 6), but is itself the forwarder of nothing before its own inhibition is over: what it claimed until then
//! nobody would carry, and its Hellos would inhibit others meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_wire::bpdu::{self, BridgeId};
use weft_wire::isis::SystemId;
use weft_wire::isis::hello::Appointment;
use weft_wire::vlan::VlanSet;

use super::Shared;
use crate::isis::RBridge;
use crate::isis::config::{PortConfig, PortId, Role};
use crate::isis::counters::DropReason;
use crate::isis::io::Output;
use crate::isis::lsdb::Entry;
use crate::isis::port::Port;

/// How often bridges are told of a change that none of them acknowledges: those of later protocols need not.
const CHANGE_TRIES: u8 = 10;
/// Between two of them, ns.
const CHANGE_PAUSE_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Forwarder {
    /// Whom we appoint as DRB.
    appointments: Vec<Appointment>,
    /// What the DRB appointed us to.
    given: VlanSet,
    appointed: VlanSet,
    carried: VlanSet,
    /// Inhibitions: until when; 0, or not there: over.
    drb_until_ns: u64,
    root_until_ns: u64,
    /// Root of the link's bridges, as far as one was heard of since the port came up.
    root: Option<BridgeId>,
    /// How often bridges are still to be told that stations are elsewhere, and not before when.
    change_tries: u8,
    change_at_ns: u64,
    vlan_until_ns: BTreeMap<u16, u64>,
    /// How often the port has ceased to be the forwarder of a VLAN.
    lost: BTreeMap<u16, u32>,
}

impl Forwarder {
    /// That of a port that is down, before others are told that it carries nothing any more.
    pub(super) fn ended(&mut self) -> Self {
        let Self { appointed, carried, lost, .. } = std::mem::take(self);
        Self { appointed, carried, lost, ..Self::default() }
    }

    /// How often the port has ceased to be the forwarder of a VLAN (RFC 6325 section 4.8.3).
    pub(super) fn lost(&self, vlan: u16) -> u32 {
        self.lost.get(&vlan).copied().unwrap_or(0)
    }

    pub(super) fn add_lost(&mut self, lost: &BTreeMap<u16, u32>) {
        for (vlan, times) in lost {
            let lost = self.lost.entry(*vlan).or_default();
            *lost = lost.wrapping_add(*times);
        }
    }

    fn note_lost(&mut self, before: &VlanSet) {
        for vlan in before.iter().filter(|vlan| !self.appointed.contains(*vlan)) {
            let lost = self.lost.entry(vlan).or_default();
            *lost = lost.wrapping_add(1);
        }
    }

    pub(super) fn appointed(&self) -> &VlanSet {
        &self.appointed
    }

    pub(super) fn carried(&self) -> &VlanSet {
        &self.carried
    }

    pub(super) fn appointments(&self) -> &[Appointment] {
        &self.appointments
    }

    /// We become DRB, and are inhibited until then.
    pub(super) fn becomes_drb(&mut self, inhibited_until_ns: u64) {
        self.drb_until_ns = inhibited_until_ns;
        self.given = VlanSet::default();
    }

    /// Another port becomes DRB: what the last one appointed us to is over.
    pub(super) fn has_other_drb(&mut self) {
        self.drb_until_ns = 0;
        self.given = VlanSet::default();
    }

    /// What a former life carried, and still does.
    pub(super) fn goes_on_with(&mut self, carried: VlanSet) {
        (self.appointed, self.carried) = (carried.clone(), carried);
    }

    /// What was not carried before is carried by no means until then.
    pub(super) fn waits_but_for(&mut self, enabled: &VlanSet, carried: &VlanSet, until_ns: u64) {
        enabled.iter().filter(|vlan| !carried.contains(*vlan)).for_each(|vlan| self.note_claim(vlan, until_ns));
    }

    /// Somebody claims a VLAN and is believed until then.
    pub(super) fn note_claim(&mut self, vlan: u16, until_ns: u64) {
        let until = self.vlan_until_ns.entry(vlan).or_default();
        *until = until_ns.max(*until);
    }

    /// What a Hello of the DRB appoints us to, in place of all before.
    pub(super) fn take(&mut self, given: VlanSet) {
        self.given = given;
    }

    /// When the next inhibition ends.
    pub(super) fn next_end_ns(&self) -> Option<u64> {
        let of_port = [self.drb_until_ns, self.root_until_ns].into_iter().filter(|at_ns| *at_ns > 0);
        of_port.chain(self.vlan_until_ns.values().copied()).min()
    }

    fn end_inhibitions(&mut self, now_ns: u64) {
        for until_ns in [&mut self.drb_until_ns, &mut self.root_until_ns] {
            *until_ns = if *until_ns <= now_ns { 0 } else { *until_ns };
        }
        self.vlan_until_ns.retain(|_, until_ns| *until_ns > now_ns);
    }

    /// Stations that were reached by this port are reached by another one, or the other way round: bridges go on sending their frames to
    /// where they were until they are told. Who has lost a VLAN must tell them (RFC 6325 section 4.9.3.3); so does who serves one
    /// from now on, since one that has died cannot. Where no BPDU comes in there is nobody to tell.
    fn tell_bridges(&mut self, now_ns: u64, port: &PortConfig, outputs: &mut Vec<Output>) {
        if self.change_tries == 0 || now_ns < self.change_at_ns {
            return;
        }
        self.change_tries -= 1;
        self.change_at_ns = now_ns + CHANGE_PAUSE_NS;
        outputs.push(Output::TopologyChange { port: port.id, frame: Arc::from(bpdu::topology_change(port.mac)) });
    }

    fn is_inhibited(&self, vlan: u16) -> bool {
        self.drb_until_ns > 0 || self.root_until_ns > 0 || self.vlan_until_ns.contains_key(&vlan)
    }
}

impl Port {
    /// Whether end stations are served at all: not on a trunk, and of several ports of ours on one link only by that with
    /// the highest claim (RFC 6325 section 4.4.4).
    fn serves_stations(&self, shared: &Shared) -> bool {
        let ours = self.adjacencies.iter().filter(|(peer, _)| peer.system == shared.system);
        let highest = ours.map(|(peer, adjacency)| (adjacency.told.priority, *peer)).max();
        let leads = highest.is_none_or(|other| other < self.rank(shared));
        self.is_up && !shared.is_suspended() && shared.config.role != Role::Trunk && leads
    }

    fn appointed_now(&self, shared: &Shared) -> VlanSet {
        let waits = shared.is_drb() && shared.forwarder.drb_until_ns > 0;
        if waits || !self.serves_stations(shared) {
            return VlanSet::default();
        }
        if let Some(recall) = &shared.recall {
            return recall.carried().clone();
        }
        if !shared.is_drb() {
            // The DRB appoints by nickname, which others on the link may hold, too, but only whom it is adjacent with.
            return if shared.is_adjacent_to_drb(self) { shared.forwarder.given.clone() } else { VlanSet::default() };
        }
        let is_others = |vlan: &u16| {
            let mut ranges = shared.forwarder.appointments.iter();
            ranges.any(|range| (range.start_vlan..=range.end_vlan).contains(vlan))
        };
        shared.config.enabled.iter().filter(|vlan| !is_others(vlan)).collect()
    }
}

impl RBridge {
    /// Where bridges on the link have another root than before, it may have been joined with another link (RFC 8139 section 3). The
    /// same bridge with another priority is no other (section 3.2.2).
    pub(in crate::isis) fn root_bridge(
        &mut self,
        now_ns: u64,
        port: PortId,
        (root, acknowledges_change): (BridgeId, bool),
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let until_ns = now_ns + self.config.timing.root_change_ns;
        let index = self.index(port).ok_or(DropReason::NoPort)?;
        let port = &mut self.ports[index];
        let shared = port.shared.as_mut().filter(|_| port.is_up).ok_or(DropReason::NoPort)?;
        if acknowledges_change {
            shared.forwarder.change_tries = 0;
        }
        shared.forwarder.tell_bridges(now_ns, &port.config, outputs);
        let before = shared.forwarder.root.replace(root);
        if before.is_some_and(|before| before.mac() != root.mac()) {
            shared.forwarder.root_until_ns = until_ns;
            self.touched.push(index);
            self.forwarder_follows(now_ns, index, outputs);
        }
        Ok(())
    }

    /// Appoints, is appointed, is inhibited, as all that is known now has it; says what is carried if that is something else.
    pub(in crate::isis) fn forwarder_follows(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let nickname = self.nickname();
        let Some(mut shared) = self.ports[index].shared.take() else { return };
        let overloaded = self.overloaded_on(index);
        let port = &self.ports[index];
        shared.forwarder.end_inhibitions(now_ns);
        shared.mapped_until_ns = if shared.mapped_until_ns <= now_ns { 0 } else { shared.mapped_until_ns };
        let appointments = port.appointments(&shared, nickname, &overloaded);
        let others = std::mem::replace(&mut shared.forwarder.appointments, appointments);
        let appointed = port.appointed_now(&shared);
        let before = std::mem::replace(&mut shared.forwarder.appointed, appointed);
        let forwarder = &mut shared.forwarder;
        forwarder.note_lost(&before);
        let (is_other_set, is_other_list) = (before != forwarder.appointed, others != forwarder.appointments);
        let carried = forwarder.appointed.iter().filter(|vlan| !forwarder.is_inhibited(*vlan)).collect();
        let carried_before = std::mem::replace(&mut forwarder.carried, carried);
        let has_lost = carried_before.iter().any(|vlan| !forwarder.appointed.contains(vlan));
        let has_more = forwarder.carried.iter().any(|vlan| !carried_before.contains(vlan));
        if forwarder.root.is_some() && (has_lost || has_more) {
            forwarder.change_tries = CHANGE_TRIES;
            forwarder.tell_bridges(now_ns, &port.config, outputs);
        }
        if carried_before != forwarder.carried {
            outputs.push(Output::Access { port: port.config.id, vlans: forwarder.carried.clone() });
        }
        self.ports[index].shared = Some(shared);
        if is_other_set || is_other_list {
            self.ports[index].hello_at_ns = now_ns;
        }
        if is_other_set {
            self.describe_soon(now_ns);
        }
    }

    /// The campus is another: who is overloaded now is appointed no more. Timers of ports have been looked at, so that a Hello
    /// that follows leaves here.
    pub(in crate::isis) fn appoint_anew(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        self.forwarder_follows(now_ns, index, outputs);
        if self.ports[index].speaks() && self.ports[index].hello_at_ns <= now_ns {
            self.send_hello(now_ns, index, outputs);
        }
    }

    /// Who of a link says that it is overloaded, ourselves included.
    fn overloaded_on(&self, index: usize) -> Vec<SystemId> {
        let all = self.ports[index].reported().map(|(peer, _)| peer.system).chain([self.config.system]);
        let says_so = |lsp: &Entry| lsp.flags().is_overloaded() && !lsp.is_purged();
        let told = |system: &SystemId| self.lsdb.get(system.lsp(0)).is_some_and(says_so);
        let is_overloaded = |system: &SystemId| match *system == self.config.system {
            true => self.origin.is_overloaded(),
            false => told(system),
        };
        all.filter(is_overloaded).collect()
    }
}
