//! Hellos of shared links: what ours say and in which VLANs, what those of others do (RFC 6325 section 4.4, RFC 7177 sections
//! 3.3 and 8).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::{Appointment, NeighborRecord, Neighbors, PortSub, Restart, VlanBitmap, VlanFlags};
use weft_wire::isis::pdu::LanHello;
use weft_wire::isis::{CIRCUIT_TYPE_LEVEL_1, Pdu, Tlv};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;
use weft_wire::vlan::VlanSet;

use super::election::Rank;
use super::{Shared, Told};
use crate::NS_PER_S;
use crate::isis::RBridge;
use crate::isis::adjacency::{Event as Happening, State, heard_on_shared};
use crate::isis::config::{Bounds, Role};
use crate::isis::counters::{DropReason, Event};
use crate::isis::graceful;
use crate::isis::hello::{check, common_tlvs, port_subs};
use crate::isis::io::Output;
use crate::isis::port::{Adjacency, ELSEWHERE, ON_DESIGNATED, Peer, Port};

/// So many neighbours find room in a Hello when each has a list of its own.
const LISTED_ALONE_MAX: usize = 48;

impl RBridge {
    /// A Hello came in VLAN `vlan` of a shared link.
    pub(in crate::isis) fn lan_hello(
        &mut self,
        now_ns: u64,
        index: usize,
        (vlan, source): (u16, MacAddress),
        hello: &LanHello,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let port = &self.ports[index];
        let shared = port.shared.as_ref().ok_or(DropReason::Unsupported)?;
        let flags = check(hello.circuit_type, &hello.tlvs)?;
        let peer = Peer { mac: source, port: flags.port_id, system: hello.source };
        let rank = (hello.priority, peer);
        if source == port.config.mac {
            return self.same_address(now_ns, index, rank, hello.holding_time_s, outputs);
        }
        if shared.is_suspended() {
            return Err(DropReason::Suspended);
        }
        let on_designated = vlan == shared.designated_vlan();
        let signal = graceful::signal(&hello.tlvs);
        let is_kept = port.keeps(peer, signal);
        let happening =
            if is_kept { graceful::KEPT } else { self.happening(index, peer, on_designated, (&flags, hello)) };
        let until_ns = now_ns + u64::from(hello.holding_time_s) * NS_PER_S;
        if flags.forwarder {
            self.note_claims(index, [vlan, flags.outer_vlan], until_ns);
            self.forwarder_follows(now_ns, index, outputs);
        }
        self.make_room(now_ns, index, rank, outputs)?;
        self.counters.events.add(Event::Hello);
        self.note_mapping(now_ns, index, vlan, &flags);
        // Who has forgotten everything does not know what it was on the link, nor whom it appointed.
        let told = (!is_kept).then(|| Told::of(&flags, hello));
        let was_listed = self.note_hello(index, peer, told);
        if !signal.is_some_and(|signal| signal.has(Restart::REQUEST)) {
            self.ports[index].recall_hears(rank, happening);
        }
        if self.note_signal(now_ns, index, peer, signal) {
            self.hold(index, peer, on_designated, until_ns);
        }
        self.adjacency_event(now_ns, index, peer, happening, outputs);
        self.shared_follows(now_ns, index, outputs);
        if !is_kept {
            self.take_appointments(index, peer, hello);
        }
        self.answer_soon(now_ns, index, outputs);
        if hello.holding_time_s == 0 {
            self.hold_ends(now_ns, index, peer, outputs);
        }
        let is_listed = self.ports[index].adjacencies.get(&peer).is_some_and(Adjacency::is_on_designated);
        if let Some(shared) = self.ports[index].shared.as_mut().filter(|_| was_listed != is_listed) {
            shared.list_at_ns = Some(now_ns);
        }
        self.forwarder_follows(now_ns, index, outputs);
        Ok(())
    }

    /// Which event of RFC 7177 section 3.3 it is. Another port of ours is only heard. With an access port no LSPs are
    /// exchanged (RFC 7780 section 6).
    fn happening(
        &self,
        index: usize,
        peer: Peer,
        on_designated: bool,
        (flags, hello): (&VlanFlags, &LanHello),
    ) -> Happening {
        let port = &self.ports[index];
        let is_access = port.shared.as_ref().is_some_and(|shared| shared.config.role == Role::Access) || flags.access;
        if peer.system == self.config.system || !on_designated {
            Happening::Uncovered
        } else if is_access {
            Happening::Unlisted
        } else {
            heard_on_shared(&hello.tlvs, port.config.mac)
        }
    }

    /// Makes room for one more neighbour, if its claim is higher than one that is there (RFC 7177 section 3.6).
    fn make_room(
        &mut self,
        now_ns: u64,
        index: usize,
        rank: Rank,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let most = self.config.bounds.neighbors_max.min(Bounds::NEIGHBORS_MAX);
        let known = &self.ports[index].adjacencies;
        if known.len() < most || known.contains_key(&rank.1) {
            return Ok(());
        }
        let least = known.iter().map(|(peer, adjacency)| (adjacency.told.priority, *peer)).min();
        let (_, least) = least.filter(|least| *least < rank).ok_or(DropReason::NeighborsFull)?;
        self.adjacency_event(now_ns, index, least, Happening::Expired, outputs);
        Ok(())
    }

    /// VLANs that bridges on the way exchange (RFC 6325 section 4.4.5).
    fn note_mapping(&mut self, now_ns: u64, index: usize, vlan: u16, flags: &VlanFlags) {
        let until_ns = now_ns + 2 * self.holding_ns();
        if let Some(shared) = self.ports[index].shared.as_mut().filter(|_| flags.outer_vlan != vlan) {
            self.counters.events.add(Event::VlanMapped);
            shared.mapped_until_ns = until_ns;
        }
    }

    /// Whether the neighbour was listed before in our Hellos.
    fn note_hello(&mut self, index: usize, peer: Peer, told: Option<Told>) -> bool {
        let known = self.ports[index].adjacencies.entry(peer);
        let adjacency = known.or_insert_with(|| Adjacency::begin(peer));
        let was_listed = adjacency.is_on_designated();
        told.into_iter().for_each(|told| adjacency.told = told);
        if let Some(echo) = &mut adjacency.echo {
            echo.note_hello();
        }
        was_listed
    }

    fn hold(&mut self, index: usize, peer: Peer, on_designated: bool, until_ns: u64) {
        if let Some(adjacency) = self.ports[index].adjacencies.get_mut(&peer) {
            adjacency.hold(if on_designated { ON_DESIGNATED } else { ELSEWHERE }, until_ns);
        }
    }

    /// The sender is the forwarder of the VLANs that its Hello came in and was sent in (RFC 8139 section 3).
    fn note_claims(&mut self, index: usize, vlans: [u16; 2], until_ns: u64) {
        if let Some(shared) = &mut self.ports[index].shared {
            vlans.into_iter().for_each(|vlan| shared.forwarder.note_claim(vlan, until_ns));
            shared.recall.iter_mut().for_each(|recall| vlans.into_iter().for_each(|vlan| recall.gives_up(vlan)));
        }
    }

    /// Appointments count only in Hellos of the DRB (RFC 8139 section 2).
    fn take_appointments(&mut self, index: usize, peer: Peer, hello: &LanHello) {
        // By a nickname that it holds as well the DRB means itself.
        let drbs = self.ports[index].adjacencies.get(&peer).map(|with| with.told.nickname);
        let ours: Vec<u16> = self.nicknames().filter(|ours| Some(*ours) != drbs).collect();
        let port = &mut self.ports[index];
        let Some(shared) = port.shared.as_mut().filter(|shared| shared.election.drb == Some(peer)) else { return };
        let mut given = None;
        for sub in hello.tlvs.iter().flat_map(port_subs) {
            let PortSub::AppointedForwarders(list) = sub else { continue };
            let given = given.get_or_insert_with(VlanSet::default);
            for range in list.iter().filter(|range| ours.contains(&range.nickname)) {
                given.add_range(range.start_vlan, range.end_vlan);
            }
        }
        if let Some(given) = given {
            let enabled = &shared.config.enabled;
            let given: VlanSet = given.iter().filter(|vlan| enabled.contains(*vlan)).collect();
            shared.recall.iter_mut().for_each(|recall| recall.keeps_to(&given));
            shared.forwarder.take(given);
        }
    }

    /// A Hello in every VLAN that is announced: the DRB's in all, those of others where they forward (RFC 6325 section 4.4.3).
    pub(in crate::isis) fn send_lan_hellos(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let Some(shared) = &mut self.ports[index].shared else { return };
        shared.list_at_ns = None;
        let designated_vlan = shared.designated_vlan();
        let is_sent = |vlan: &u16| {
            let is_announced = shared.config.announcing.contains(*vlan);
            let is_ours = shared.is_drb() || shared.forwarder.appointed().contains(*vlan);
            *vlan == designated_vlan || (is_announced && is_ours)
        };
        let vlans: Vec<u16> = shared.config.enabled.iter().filter(is_sent).collect();
        for vlan in vlans {
            self.send_lan_hello(now_ns, index, vlan, outputs);
        }
    }

    /// Tells in the Designated VLAN alone whom we hear.
    pub(in crate::isis) fn send_list_of_neighbors(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let Some(shared) = &mut self.ports[index].shared else { return };
        shared.list_at_ns = None;
        let vlan = shared.designated_vlan();
        if shared.config.enabled.contains(vlan) && !shared.is_silent() {
            self.send_lan_hello(now_ns, index, vlan, outputs);
        }
    }

    fn send_lan_hello(&mut self, now_ns: u64, index: usize, vlan: u16, outputs: &mut Vec<Output>) {
        let port = &self.ports[index];
        let Some(shared) = &port.shared else { return };
        let mut tlvs = common_tlvs(self.vlan_flags(port, shared, vlan));
        if shared.leads() {
            let list = self.appointments(shared);
            tlvs.push(Tlv::PortCapability { topology: 0, subs: vec![PortSub::AppointedForwarders(list)] });
        }
        let enabled = VlanBitmap::of_set(&shared.config.enabled).into_iter();
        tlvs.extend(enabled.map(|run| Tlv::PortCapability { topology: 0, subs: vec![PortSub::EnabledVlans(run)] }));
        let on_designated = vlan == shared.designated_vlan();
        tlvs.push(self.restart_tlv(now_ns, index, on_designated));
        if on_designated {
            tlvs.extend(self.heard_on(port).into_iter().map(Tlv::TrillNeighbors));
        }
        let hello = Pdu::LanHello(LanHello {
            circuit_type: CIRCUIT_TYPE_LEVEL_1,
            source: self.config.system,
            holding_time_s: self.config.timing.holding_s(),
            priority: shared.config.priority,
            lan_id: shared.said_link().0,
            tlvs,
        });
        self.send_in(index, ALL_IS_IS_RBRIDGES, vlan, &hello, outputs);
        if on_designated {
            self.answered(now_ns, index, outputs);
        }
    }

    /// Whom we hear; whether there is somebody else is left open while a former neighbour may not have been heard yet.
    fn heard_on(&self, port: &Port) -> Vec<Neighbors> {
        let records = records(port);
        if !self.waits_on(port.config.id) {
            return Neighbors::lists(records);
        }
        let alone = |record| Neighbors { from_smallest: false, to_largest: false, records: vec![record] };
        records.into_iter().take(LISTED_ALONE_MAX).map(alone).collect()
    }

    /// Whom we appoint as DRB; if it is nobody, ourselves, which takes back all that was said before (RFC 8139 section 2.1).
    fn appointments(&self, shared: &Shared) -> Vec<Appointment> {
        let list = shared.forwarder.appointments().to_vec();
        let vlan = shared.designated_vlan();
        match self.nickname() {
            Some(nickname) if list.is_empty() => vec![Appointment { nickname, start_vlan: vlan, end_vlan: vlan }],
            _ => list,
        }
    }

    fn vlan_flags(&self, port: &Port, shared: &Shared, vlan: u16) -> VlanFlags {
        VlanFlags {
            port_id: port.config.id.0,
            nickname: self.nickname().unwrap_or(0),
            forwarder: shared.forwarder.appointed().contains(vlan),
            access: shared.config.role == Role::Access,
            vlan_mapping: shared.mapped_until_ns > 0,
            bypass_pseudonode: shared.said_link().1,
            outer_vlan: vlan,
            trunk: shared.config.role == Role::Trunk,
            // What we want it to be; the DRB's is what counts.
            designated_vlan: port.config.designated_vlan,
        }
    }
}

impl Told {
    fn of(flags: &VlanFlags, hello: &LanHello) -> Self {
        let enabled = hello.tlvs.iter().flat_map(port_subs).filter_map(|sub| match sub {
            PortSub::EnabledVlans(run) => Some(run.iter()),
            _ => None,
        });
        let role = match (flags.access, flags.trunk) {
            (false, false) => Role::Hybrid,
            (false, true) => Role::Trunk,
            (true, _) => Role::Access,
        };
        Self {
            priority: hello.priority,
            designated_vlan: flags.designated_vlan,
            lan_id: hello.lan_id,
            bypass: flags.bypass_pseudonode,
            appoints: hello.tlvs.iter().flat_map(port_subs).any(|sub| matches!(sub, PortSub::AppointedForwarders(_))),
            nickname: flags.nickname,
            enabled: enabled.flatten().collect(),
            role: Some(role),
            maps_vlans: flags.vlan_mapping,
        }
    }
}

/// Whom we hear in the Designated VLAN (RFC 7177 section 8.2.1).
fn records(port: &Port) -> Vec<NeighborRecord> {
    let heard = port.adjacencies.iter().filter(|(_, adjacency)| adjacency.is_on_designated());
    let mut records: Vec<NeighborRecord> = heard
        .map(|(peer, adjacency)| NeighborRecord {
            mtu_failed: adjacency.state < State::Report && adjacency.has_failed_test(),
            overload_service: false,
            mtu: adjacency.tested_bytes,
            address: peer.mac,
        })
        .collect();
    records.dedup_by_key(|record| record.address);
    records
}
