//! Hellos: which are believed, what they do to the adjacency, what ours say (RFC 6325 section 4.2.4, RFC 7177).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::{PortSub, ThreeWay, VlanFlags};
use weft_wire::isis::pdu::P2pHello;
use weft_wire::isis::{AREA, CIRCUIT_TYPE_LEVEL_1, NLPID_TRILL, Pdu, Tlv};

use super::adjacency::{self, State};
use super::counters::{DropReason, Event};
use super::io::Output;
use super::mtu::Probe;
use super::port::Adjacency;
use super::{RBridge, adjacency::Event as Happening};
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
        let three_way = check(hello)?;
        let (me, port) = (self.config.system, &mut self.ports[index]);
        if hello.source == me {
            return Err(DropReason::OwnSystem);
        }
        let another = |known: &Adjacency| known.neighbor != hello.source || known.mac != source;
        if port.adjacency.as_ref().is_some_and(another) {
            return Err(DropReason::OtherNeighbor);
        }
        let happening = adjacency::heard(port.state(), &three_way, me, port.circuit());
        self.counters.events.add(Event::Hello);
        // After a restart of which it knows nothing the neighbour is right to believe so.
        let happening = happening.or(self.restart.as_ref().map(|_| Happening::Listed));
        let port = &mut self.ports[index];
        let Some(happening) = happening else {
            // Its state is a leftover of our former life; our Hello that says Down ends it.
            self.send_hello(now_ns, index, outputs);
            return Ok(());
        };
        let heard = port.adjacency.get_or_insert(Adjacency {
            state: State::Down,
            neighbor: hello.source,
            mac: source,
            circuit: 0,
            until_ns: 0,
            in_sync_since_ns: 0,
            takes_elided: false,
            probe: None,
            echo: None,
        });
        let takes_elided = hello.tlvs.contains(&Tlv::Elision);
        let other_frames = std::mem::replace(&mut heard.takes_elided, takes_elided) != takes_elided;
        heard.circuit = three_way.local_circuit.unwrap_or(0);
        heard.until_ns = now_ns + u64::from(hello.holding_time_s) * NS_PER_S;
        let before = heard.state;
        if let Some(echo) = &mut heard.echo {
            echo.note_hello();
        }
        self.adjacency_event(now_ns, index, happening, outputs);
        if other_frames && self.ports[index].state() == before {
            self.tell_adjacency(index, outputs);
        }
        if hello.holding_time_s == 0 {
            self.adjacency_event(now_ns, index, Happening::Expired, outputs);
        }
        Ok(())
    }

    /// Something other than its state has changed about an adjacency.
    fn tell_adjacency(&self, index: usize, outputs: &mut Vec<Output>) {
        let port = &self.ports[index];
        let told = port.adjacency.as_ref().map(|adjacency| Output::Adjacency {
            port: port.config.id,
            neighbor: adjacency.neighbor,
            mac: adjacency.mac,
            state: adjacency.state,
        });
        outputs.extend(told);
    }

    /// Lets the table decide and does what the change entails.
    pub(super) fn adjacency_event(&mut self, now_ns: u64, index: usize, event: Happening, outputs: &mut Vec<Output>) {
        let port = &mut self.ports[index];
        let Some(adjacency) = &mut port.adjacency else { return };
        let before = adjacency.state;
        let after = adjacency::next(before, event);
        if before == after {
            return;
        }
        adjacency.state = after;
        if !before.synchronizes() {
            adjacency.in_sync_since_ns = now_ns;
        }
        let (port_id, neighbor, mac) = (port.config.id, adjacency.neighbor, adjacency.mac);
        outputs.push(Output::Adjacency { port: port_id, neighbor, mac, state: after });
        if after == State::Down {
            port.adjacency = None;
        }
        if before == State::Report || after == State::Report {
            self.echo_follows(now_ns, index);
            self.describe_soon(now_ns);
            if after == State::Report {
                self.counters.events.add(Event::AdjacencyUp);
                self.compute_soon(now_ns);
            } else {
                self.counters.events.add(Event::AdjacencyDown);
                self.compute_at_once(now_ns);
            }
        }
        self.restart_heard(now_ns, port_id, after);
        if before.handshake() != after.handshake() && self.ports[index].is_up {
            self.send_hello(now_ns, index, outputs);
        }
        if before.synchronizes() && !after.synchronizes() {
            self.ports[index].flood = super::flood::Flood::default();
        }
        if !before.synchronizes() && after.synchronizes() {
            self.begin_tests(now_ns, index, outputs);
            self.begin_flooding(now_ns, index, outputs);
        }
    }

    /// Enabled tests are begun; where none is, all have passed at once (RFC 7177 section 3.3, A6).
    fn begin_tests(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let port = &mut self.ports[index];
        match &mut port.adjacency {
            Some(adjacency) if port.config.mtu_test => adjacency.probe = Some(Probe::begin(now_ns)),
            _ => self.adjacency_event(now_ns, index, Happening::TestsPassed, outputs),
        }
    }

    /// Sends a Hello and sets the time of the next one.
    pub(super) fn send_hello(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let interval_ns = self.config.timing.hello_ns;
        self.ports[index].hello_at_ns = now_ns + self.earlier(interval_ns);
        let (port, state) = (self.ports[index].config.id, self.ports[index].state());
        if state == State::Down && self.restart.as_ref().is_some_and(|restart| restart.is_silent_on(port)) {
            return;
        }
        let hello = self.describe_hello(index);
        self.send(index, &hello, outputs);
    }

    fn describe_hello(&self, index: usize) -> Pdu {
        let port = &self.ports[index];
        let vlan = port.config.designated_vlan;
        let flags = VlanFlags {
            port_id: port.config.id.0,
            nickname: self.nickname.value.unwrap_or(0),
            outer_vlan: vlan,
            designated_vlan: vlan,
            ..VlanFlags::default()
        };
        let adjacency = port.adjacency.as_ref();
        let three_way = ThreeWay {
            state: port.state().handshake(),
            local_circuit: Some(port.circuit()),
            neighbor: adjacency.map(|adjacency| adjacency.neighbor),
            neighbor_circuit: adjacency.map(|adjacency| adjacency.circuit),
        };
        let mut tlvs = vec![
            Tlv::Areas(vec![AREA.to_vec()]),
            Tlv::Protocols(vec![NLPID_TRILL]),
            // No flooding scope of RFC 7356 is taken part in.
            Tlv::FloodingScopes(Vec::new()),
            Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags)] },
            Tlv::ThreeWay(three_way),
        ];
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

/// The rules of RFC 7177 section 8.3; the handshake, which RFC 6325 section 4.2.4.1 demands, if all are kept.
fn check(hello: &P2pHello) -> Result<ThreeWay, DropReason> {
    if hello.circuit_type & 3 != CIRCUIT_TYPE_LEVEL_1 {
        return Err(DropReason::CircuitType);
    }
    let (mut areas, mut vlan_flags, mut three_way) = (0, 0, None);
    for tlv in &hello.tlvs {
        match tlv {
            Tlv::Areas(list) if list.iter().all(|area| *area == AREA) => areas += list.len(),
            Tlv::Areas(_) => return Err(DropReason::WrongArea),
            Tlv::Protocols(list) if !list.contains(&NLPID_TRILL) => return Err(DropReason::WrongProtocol),
            Tlv::PortCapability { subs, .. } => {
                vlan_flags += subs.iter().filter(|sub| matches!(sub, PortSub::VlanFlags(_))).count();
            }
            Tlv::ThreeWay(told) => three_way = three_way.or(Some(*told)),
            _ => {}
        }
    }
    if areas != 1 {
        return Err(DropReason::WrongArea);
    }
    if vlan_flags != 1 {
        return Err(DropReason::VlanFlags);
    }
    three_way.ok_or(DropReason::NoHandshake)
}
