//! Hellos: which are believed, what they do to the adjacency, what ours say (RFC 6325 section 4.2.4, RFC 7177).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::{PortSub, ThreeWay, VlanFlags};
use weft_wire::isis::pdu::P2pHello;
use weft_wire::isis::{AREA, CIRCUIT_TYPE_LEVEL_1, NLPID_TRILL, PDU_LEN_MIN, Pdu, Tlv};

use super::adjacency::{self, State};
use super::counters::{DropReason, Event};
use super::io::Output;
use super::mtu::Probe;
use super::port::{Adjacency, ELSEWHERE, ON_DESIGNATED, Peer};
use super::{RBridge, adjacency::Event as Happening, graceful};
use crate::NS_PER_S;

impl RBridge {
    pub(super) fn hello(
        &mut self,
        now_ns: u64,
        index: usize,
        source: MacAddress,
        hello: &P2pHello,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let (me, port) = (self.config.system, &mut self.ports[index]);
        if port.shared.is_some() {
            return Err(DropReason::Unsupported);
        }
        let three_way = three_way(hello)?;
        if hello.source == me {
            return Err(DropReason::OwnSystem);
        }
        let peer = Peer { mac: source, port: 0, system: hello.source };
        if port.adjacencies.keys().any(|known| *known != peer) {
            return Err(DropReason::OtherNeighbor);
        }
        let signal = graceful::signal(&hello.tlvs);
        let happening = if port.keeps(peer, signal) {
            Some(graceful::KEPT)
        } else {
            adjacency::heard(port.state(), &three_way, me, port.circuit())
        };
        self.counters.events.add(Event::Hello);
        // After a restart of which it knows nothing the neighbour is right to believe so.
        let happening = happening.or(self.restart.as_ref().map(|_| Happening::Listed));
        let port = &mut self.ports[index];
        let Some(happening) = happening else {
            // Its state is a leftover of our former life; our Hello that says Down ends it.
            self.send_hello(now_ns, index, outputs);
            return Ok(());
        };
        let heard = port.adjacencies.entry(peer).or_insert_with(|| Adjacency::begin(peer));
        let takes_elided = hello.tlvs.contains(&Tlv::Elision);
        let other_frames = std::mem::replace(&mut heard.takes_elided, takes_elided) != takes_elided;
        heard.circuit = three_way.local_circuit.unwrap_or(0);
        let before = heard.state;
        if let Some(echo) = &mut heard.echo {
            echo.note_hello();
        }
        if self.note_signal(now_ns, index, peer, signal)
            && let Some(heard) = self.ports[index].adjacencies.get_mut(&peer)
        {
            heard.hold(ON_DESIGNATED, now_ns + u64::from(hello.holding_time_s) * NS_PER_S);
        }
        self.adjacency_event(now_ns, index, peer, happening, outputs);
        if other_frames && self.ports[index].state() == before {
            // Something other than its state has changed.
            outputs.push(Output::Adjacency {
                port: self.ports[index].config.id,
                neighbor: peer.system,
                mac: source,
                state: before,
            });
        }
        self.answer_soon(now_ns, index, outputs);
        if hello.holding_time_s == 0 {
            self.adjacency_event(now_ns, index, peer, Happening::Expired, outputs);
        }
        Ok(())
    }

    /// A holding time of a neighbour is over (RFC 7177 section 3.3, A4 and A5).
    pub(super) fn hold_ends(&mut self, now_ns: u64, index: usize, peer: Peer, outputs: &mut Vec<Output>) {
        let Some(adjacency) = self.ports[index].adjacencies.get_mut(&peer) else { return };
        let ends = adjacency.hold_ns.map(|at_ns| at_ns > 0 && at_ns <= now_ns);
        for which in [ON_DESIGNATED, ELSEWHERE].into_iter().filter(|which| ends[*which]) {
            adjacency.hold(which, 0);
        }
        match (adjacency.hold_ns, ends[ON_DESIGNATED]) {
            ([0, 0], _) => self.adjacency_event(now_ns, index, peer, Happening::Expired, outputs),
            (_, true) => self.adjacency_event(now_ns, index, peer, Happening::DesignatedExpired, outputs),
            _ => {}
        }
    }

    /// Lets the table decide and does what the change entails.
    pub(super) fn adjacency_event(
        &mut self,
        now_ns: u64,
        index: usize,
        peer: Peer,
        event: Happening,
        outputs: &mut Vec<Output>,
    ) {
        let port = &mut self.ports[index];
        let port_synchronized = port.synchronizes();
        let Some(adjacency) = port.adjacencies.get_mut(&peer) else { return };
        let before = adjacency.state;
        let after = adjacency::next(before, event);
        if before == after {
            return;
        }
        adjacency.state = after;
        if !before.synchronizes() {
            adjacency.in_sync_since_ns = now_ns;
        }
        let port_id = port.config.id;
        outputs.push(Output::Adjacency { port: port_id, neighbor: peer.system, mac: peer.mac, state: after });
        if after == State::Down {
            port.adjacencies.remove(&peer);
        }
        if before == State::Report || after == State::Report {
            self.echo_follows(now_ns, index, peer);
            if after == State::Report {
                self.counters.events.add(Event::AdjacencyUp);
                self.describe_soon(now_ns);
                self.compute_soon(now_ns);
            } else {
                self.counters.events.add(Event::AdjacencyDown);
                self.tell_loss(now_ns);
                self.compute_at_once(now_ns);
            }
        }
        // Who gets our LSPs counts for Sz.
        if before.synchronizes() != after.synchronizes() && self.config.lsp_buffer_bytes > PDU_LEN_MIN {
            self.compute_soon(now_ns);
        }
        self.restart_heard(now_ns, index, peer, after);
        if before.handshake() != after.handshake() && self.ports[index].is_up {
            self.hello_follows(now_ns, index, outputs);
        }
        if port_synchronized && !self.ports[index].synchronizes() {
            self.ports[index].flood = super::flood::Flood::default();
        }
        if !before.synchronizes() && after.synchronizes() {
            self.begin_tests(now_ns, index, peer, outputs);
            self.begin_flooding(now_ns, index, outputs);
        }
        self.shared_follows(now_ns, index, outputs);
    }

    /// A neighbour's state is another, so that our next Hello says something else: it does not wait. On a shared link those
    /// of all neighbours that come together are one.
    fn hello_follows(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        match &mut self.ports[index].shared {
            Some(shared) => shared.list_at_ns = Some(now_ns),
            None => self.send_hello(now_ns, index, outputs),
        }
    }

    /// Enabled tests are begun; where none is, all have passed at once (RFC 7177 section 3.3, A6).
    fn begin_tests(&mut self, now_ns: u64, index: usize, peer: Peer, outputs: &mut Vec<Output>) {
        let port = &mut self.ports[index];
        match port.adjacencies.get_mut(&peer) {
            Some(adjacency) if port.config.mtu_test => {
                adjacency.tested_bytes = 0;
                adjacency.probe = Some(Probe::begin(now_ns, self.sz_bytes));
            }
            _ => self.adjacency_event(now_ns, index, peer, Happening::TestsPassed, outputs),
        }
    }

    /// Sends a Hello, on a shared link one in each VLAN that is announced, and sets the time of the next one.
    pub(super) fn send_hello(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let interval_ns = self.config.timing.hello_ns;
        self.ports[index].hello_at_ns = now_ns + self.earlier(interval_ns);
        let (port, state) = (self.ports[index].config.id, self.ports[index].state());
        if let Some(shared) = &self.ports[index].shared {
            if shared.is_silent() {
                return;
            }
            return self.send_lan_hellos(now_ns, index, outputs);
        }
        if state == State::Down && self.waits_on(port) {
            return;
        }
        let hello = self.describe_hello(now_ns, index);
        self.send(index, &hello, outputs);
        self.answered(now_ns, index, outputs);
    }

    fn describe_hello(&self, now_ns: u64, index: usize) -> Pdu {
        let port = &self.ports[index];
        let vlan = port.config.designated_vlan;
        let flags = VlanFlags {
            port_id: port.config.id.0,
            nickname: self.nickname().unwrap_or(0),
            outer_vlan: vlan,
            designated_vlan: vlan,
            ..VlanFlags::default()
        };
        let neighbor = port.neighbor();
        let three_way = ThreeWay {
            state: port.state().handshake(),
            local_circuit: Some(port.circuit()),
            neighbor: neighbor.map(|(peer, _)| peer.system),
            neighbor_circuit: neighbor.map(|(_, adjacency)| adjacency.circuit),
        };
        let mut tlvs = common_tlvs(flags);
        tlvs.push(self.restart_tlv(now_ns, index, true));
        tlvs.push(Tlv::ThreeWay(three_way));
        if port.config.offers_elision {
            tlvs.push(Tlv::Elision);
        }
        Pdu::P2pHello(P2pHello {
            circuit_type: CIRCUIT_TYPE_LEVEL_1,
            source: self.config.system,
            holding_time_s: self.config.timing.holding_s(),
            local_circuit: port.config.id.0 as u8,
            tlvs,
        })
    }
}

/// The handshake, which RFC 6325 section 4.2.4.1 demands, of a Hello that keeps all rules.
fn three_way(hello: &P2pHello) -> Result<ThreeWay, DropReason> {
    check(hello.circuit_type, &hello.tlvs)?;
    let told = hello.tlvs.iter().find_map(|tlv| if let Tlv::ThreeWay(told) = tlv { Some(*told) } else { None });
    told.ok_or(DropReason::NoHandshake)
}

/// The rules of RFC 7177 section 8.3 for Hellos of both kinds; the VLANs and flags if all are kept.
pub(super) fn check(circuit_type: u8, tlvs: &[Tlv]) -> Result<VlanFlags, DropReason> {
    if circuit_type & 3 != CIRCUIT_TYPE_LEVEL_1 {
        return Err(DropReason::CircuitType);
    }
    let (mut areas, mut vlan_flags) = (0, Vec::new());
    for tlv in tlvs {
        match tlv {
            Tlv::Areas(list) if list.iter().all(|area| *area == AREA) => areas += list.len(),
            Tlv::Areas(_) => return Err(DropReason::WrongArea),
            Tlv::Protocols(list) if !list.contains(&NLPID_TRILL) => return Err(DropReason::WrongProtocol),
            _ => {}
        }
        vlan_flags.extend(port_subs(tlv).filter_map(|sub| match sub {
            PortSub::VlanFlags(flags) => Some(*flags),
            _ => None,
        }));
    }
    if areas != 1 {
        return Err(DropReason::WrongArea);
    }
    match vlan_flags[..] {
        [flags] => Ok(flags),
        _ => Err(DropReason::VlanFlags),
    }
}

/// What a TLV says about the port, if it does.
pub(super) fn port_subs(tlv: &Tlv) -> impl Iterator<Item = &PortSub> {
    let subs = if let Tlv::PortCapability { subs, .. } = tlv { &subs[..] } else { &[] };
    subs.iter()
}

/// What every Hello begins with.
pub(super) fn common_tlvs(flags: VlanFlags) -> Vec<Tlv> {
    vec![
        Tlv::Areas(vec![AREA.to_vec()]),
        Tlv::Protocols(vec![NLPID_TRILL]),
        // No flooding scope of RFC 7356 is taken part in.
        Tlv::FloodingScopes(Vec::new()),
        Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags)] },
    ]
}
