//! Packets of one direction of one link as bytes, for a file that other programs read.
//!
//! The engine knows lengths and numbers, so payloads are zeroes, times to live are those of the first hop, and options are
//! padding. Numbers, flags, marks, lengths, outer headers and checksums are what the packet stands for.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_scenario::engine::Overlay;
use weft_scenario::id::NodeId;
use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::ipv4::{self, Ecn, protocol};
use weft_wire::{ParseError, checksum, trill, udp, vl2, vxlan};

use super::flow::Identity;
use super::part::Part;
use super::trace::Shown;
use crate::job::Job;
use crate::network::Arrival;
use crate::packet::{Flags, Packet};
use crate::routes::walk::{port_of, sender_of};

/// First of the senders' ports; flow n has the n-th after it.
const FIRST_PORT: u16 = 16_384;
/// Every receiver's port.
const RECEIVER_PORT: u16 = 5_001;
/// The VXLAN network's number.
const VNI: u32 = 42;
/// VLAN of the frames inside TRILL.
const TRILL_VLAN: u16 = 1;
/// Length of a TCP header without options, and the most that it can be (RFC 9293 3.1).
const TCP_LEN: usize = 20;
const TCP_LEN_MAX: usize = 60;

/// Which port is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    port: u32,
}

impl Capture {
    pub(super) fn new(job: &Job) -> Option<Self> {
        job.watch.capture.map(|(link, node)| Self { port: port_of(&job.fabric, link, node) })
    }
}

impl Part<'_> {
    /// Shows a packet of TCP that has crossed the link, with the time at which its last bit left.
    #[cold]
    pub(super) fn capture(&mut self, arrival: Arrival) {
        if self.capture.is_none_or(|capture| capture.port != arrival.port) {
            return;
        }
        if self.whose(&arrival.packet).is_stream {
            return;
        }
        let time_ps = self.network.now_ps - self.network.ports.wire(arrival.port).propagation_ps;
        if let Ok(frame) = self.frame(&arrival) {
            self.shown.push(Shown::Packet(time_ps, frame));
        }
    }

    fn whose(&self, packet: &Packet) -> Identity {
        let place = packet.flow() as usize;
        if packet.flags().has(Flags::ACK) { self.senders[place].who } else { self.receivers[place].who }
    }

    fn frame(&self, arrival: &Arrival) -> Result<Vec<u8>, ParseError> {
        let flow = self.whose(&arrival.packet);
        let inner = self.ip_packet(&arrival.packet, &flow);
        let hop = self.network.routes.step(arrival.packet.route()).0;
        let outer_bytes = hop.extra_bytes() as usize - self.job.settings.sizes.framing_bytes as usize;
        let is_ack = arrival.packet.flags().has(Flags::ACK);
        let (from, to) = if is_ack { (flow.to, flow.from) } else { (flow.from, flow.to) };
        let packet = match self.job.settings.overlay {
            Overlay::Vl2 if outer_bytes > 0 => self.in_vl2(&inner, to, outer_bytes)?,
            Overlay::KernelVxlan { .. } | Overlay::Vtep { .. } => self.in_vxlan(&inner, from, to)?,
            _ => inner,
        };
        let (link, near) = sender_of(&self.job.fabric, arrival.port);
        let far = self.job.fabric.link(link).far_end(near).map_or(near, |end| end.node);
        let in_trill = self.job.settings.overlay == Overlay::RBRIDGE && outer_bytes > 0;
        let (ethertype, packet) =
            if in_trill { (trill::ETHERTYPE, self.in_trill(&packet, from, to)) } else { (ethertype::IPV4, packet) };
        let header = ethernet::Header { destination: mac(far), source: mac(near), ethertype };
        Ok(header.emit_with(&packet))
    }

    fn ip_packet(&self, packet: &Packet, flow: &Identity) -> Vec<u8> {
        let length = usize::from(packet.ip_bytes());
        let tcp_len = (self.job.settings.sizes.header_bytes as usize).saturating_sub(ipv4::HEADER_LEN) / 4 * 4;
        let tcp_len = tcp_len.clamp(TCP_LEN, TCP_LEN_MAX);
        let mut bytes = vec![0; length.max(ipv4::HEADER_LEN + tcp_len)];
        let is_ack = packet.flags().has(Flags::ACK);
        let ends = [flow.from, flow.to].map(|server| self.server_address(server));
        let (source, destination) = if is_ack { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
        let ecn = match (packet.flags().has(Flags::CE), packet.flags().has(Flags::ECT)) {
            (true, _) => Ecn::Ce,
            (false, true) => Ecn::Ect0,
            (false, false) => Ecn::NotEct,
        };
        let payload_len = (bytes.len() - ipv4::HEADER_LEN) as u16;
        let header = ipv4::Header::new(source, destination, protocol::TCP, payload_len);
        ipv4::Header { tos: ecn.in_tos(0), ..header }.emit_into(&mut bytes);
        let segment = &mut bytes[ipv4::HEADER_LEN..];
        self.put_tcp(segment, tcp_len, packet, flow.number);
        let sum = checksum::of_segment(source, destination, protocol::TCP, segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// ```text
    /// 0 source port   2 destination port   4 sequence   8 acknowledgement   12 length, flags   14 window   16 checksum
    /// ```
    /// RFC 9293 section 3.1; ECE and CWR from RFC 3168 section 6.1.
    fn put_tcp(&self, segment: &mut [u8], tcp_len: usize, packet: &Packet, number: u32) {
        const NO_OPERATION: u8 = 1;
        let own = FIRST_PORT.wrapping_add(number as u16 & 0x7fff);
        let is_ack = packet.flags().has(Flags::ACK);
        let is_syn = packet.flags().has(Flags::SYN);
        let ports = if is_ack { (RECEIVER_PORT, own) } else { (own, RECEIVER_PORT) };
        // Both ends count from 0; the SYN takes the first number.
        let place = |segment: u32| segment.wrapping_mul(self.job.settings.sizes.segment_bytes).wrapping_add(1);
        let (sequence, acknowledgement) = match (is_ack, is_syn) {
            (false, true) => (0, 0),
            (true, true) => (0, 1),
            (false, false) => (place(packet.sequence()), 1),
            (true, false) => (1, place(self.acknowledged_by(packet))),
        };
        let bit = |set: bool, bit: u16| if set { bit } else { 0 };
        let acknowledges = is_ack || !is_syn;
        let flags = bit(is_syn, 1 << 1) | bit(acknowledges, 1 << 4) | bit(packet.flags().has(Flags::ECE), 1 << 6);
        segment[0..2].copy_from_slice(&ports.0.to_be_bytes());
        segment[2..4].copy_from_slice(&ports.1.to_be_bytes());
        segment[4..8].copy_from_slice(&sequence.to_be_bytes());
        segment[8..12].copy_from_slice(&acknowledgement.to_be_bytes());
        segment[12..14].copy_from_slice(&((tcp_len as u16 / 4) << 12 | flags).to_be_bytes());
        segment[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        segment[TCP_LEN..tcp_len].fill(NO_OPERATION);
    }

    /// Both headers up to the Intermediate, the ToR's alone after it.
    fn in_vl2(&self, inner: &[u8], to: u32, outer_bytes: usize) -> Result<Vec<u8>, ParseError> {
        let edge = self.job.fabric.edge_of(self.hosts[to as usize].node).map(|(edge, _)| edge);
        let addresses = self.job.addresses.as_ref().zip(edge);
        let none = Ipv4Addr::UNSPECIFIED;
        let (tor_la, anycast_la) =
            addresses.map_or((none, none), |(plan, edge)| (plan.la(edge), plan.anycast_for(edge).unwrap_or(none)));
        let whole = vl2::encapsulate(inner, &vl2::Stack::for_packet(inner, tor_la, anycast_la)?)?;
        Ok(whole[vl2::OVERHEAD_BYTES.saturating_sub(outer_bytes)..].to_vec())
    }

    /// RFC 7348 section 5: the header, then the inner frame.
    fn in_vxlan(&self, inner: &[u8], from: u32, to: u32) -> Result<Vec<u8>, ParseError> {
        let nodes = [from, to].map(|server| self.hosts[server as usize].node);
        let header = ethernet::Header { destination: mac(nodes[1]), source: mac(nodes[0]), ethertype: ethertype::IPV4 };
        let mut payload = vxlan::Header { vni: VNI }.to_bytes().to_vec();
        payload.extend(header.emit_with(inner));
        let hash = weft_wire::flow::flow_hash(&weft_wire::flow::FiveTuple::of_ipv4(inner)?);
        let source = SocketAddrV4::new(self.underlay_address(from), 0xc000 | hash as u16);
        udp::packet(source, SocketAddrV4::new(self.underlay_address(to), vxlan::UDP_PORT), &payload)
    }

    /// RFC 6325 section 3: the header, then the inner frame with its VLAN tag. An RBridge's nickname is its number.
    fn in_trill(&self, inner: &[u8], from: u32, to: u32) -> Vec<u8> {
        let [source, destination] = [from, to].map(|server| self.hosts[server as usize].node);
        let nickname = |host| self.job.fabric.edge_of(host).map_or(0, |(edge, _)| edge.0 as u16 + 1);
        let outer = trill::Header::unicast(nickname(source), nickname(destination));
        let tagged = [&TRILL_VLAN.to_be_bytes()[..], &ethertype::IPV4.to_be_bytes(), inner].concat();
        let frame = ethernet::Header { destination: mac(destination), source: mac(source), ethertype: ethertype::VLAN };
        [&outer.to_bytes()[..], &frame.emit_with(&tagged)].concat()
    }

    /// A server's AA under VL2, otherwise its LA; without an address plan its number as an address.
    fn server_address(&self, server: u32) -> Ipv4Addr {
        let node = self.hosts[server as usize].node;
        let aa = self.job.addresses.as_ref().filter(|_| self.job.settings.overlay != Overlay::Routed);
        aa.and_then(|plan| plan.aa(node)).unwrap_or_else(|| self.underlay_address(server))
    }

    fn underlay_address(&self, server: u32) -> Ipv4Addr {
        let numbered = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + server + 1);
        self.job.addresses.as_ref().map_or(numbered, |plan| plan.la(self.hosts[server as usize].node))
    }
}

/// A locally administered address that names the node.
fn mac(node: NodeId) -> MacAddress {
    let [a, b, c, d] = node.0.to_be_bytes();
    MacAddress([2, 0, a, b, c, d])
}
