//! The lines that a person reads.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use crate::ethernet::MacAddress;
use crate::vl2::{self, Stack};

const HOST: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 7]);
const VIRTUAL: MacAddress = MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01]);

fn frame(ethertype: u16, payload: &[u8]) -> String {
    let header = ethernet::Header { destination: VIRTUAL, source: HOST, ethertype };
    let line = Frame(&header.emit_with(payload)).to_string();
    assert!(!line.contains('\n'), "one line: {line:?}");
    line.strip_prefix("02:00:00:00:00:07 > 02:56:4c:32:00:01 ").expect("both addresses first").to_owned()
}

fn end(address: [u8; 4], port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(address), port)
}

fn udp_packet() -> Vec<u8> {
    udp::packet(end([20, 0, 0, 7], 40000), end([20, 0, 0, 9], 5001), b"hello").unwrap()
}

fn ipv4_packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (Ipv4Addr::new(20, 0, 0, 7), Ipv4Addr::new(20, 0, 0, 9));
    let mut packet = vec![0; 20 + payload.len()];
    ipv4::Header::new(source, destination, protocol, payload.len() as u16).emit_into(&mut packet);
    packet[20..].copy_from_slice(payload);
    packet
}

#[test]
fn arp() {
    let request = arp::Packet::request(HOST, Ipv4Addr::new(20, 0, 0, 7), Ipv4Addr::new(20, 0, 0, 9));
    let line = |packet: arp::Packet| Frame(&packet.to_frame()).to_string();
    assert_eq!(line(request), "02:00:00:00:00:07 > ff:ff:ff:ff:ff:ff ARP who has 20.0.0.9, tell 20.0.0.7");
    assert_eq!(
        line(request.reply(VIRTUAL)),
        "02:56:4c:32:00:01 > 02:00:00:00:00:07 ARP 20.0.0.9 is at 02:56:4c:32:00:01"
    );
}

#[test]
fn vl2_stack() {
    let stack = Stack {
        source: Ipv4Addr::new(100, 91, 20, 241),
        anycast_la: Ipv4Addr::new(10, 255, 0, 1),
        tor_la: Ipv4Addr::new(10, 64, 3, 1),
        ttl: 64,
        tos: 3,
    };
    let packet = vl2::encapsulate(&udp_packet(), &stack).unwrap();
    assert_eq!(
        frame(0x0800, &packet),
        "VL2 hash 1b14f1 > 10.255.0.1 ttl 64 CE | VL2 hash 1b14f1 > 10.64.3.1 ttl 64 CE | \
         IPv4 20.0.0.7 > 20.0.0.9 ttl 64 UDP 40000 > 5001, 5 bytes"
    );
}

#[test]
fn directory_datagram() {
    let (asker, server) = (end([10, 64, 0, 1], 40000), end([10, 64, 1, 2], 5300));
    let key = directory::Key::from_bytes([7; 16]);
    let path = directory::Path { source: server, destination: asker };
    let ok = directory::Entry {
        tor_la: Ipv4Addr::new(10, 64, 3, 1),
        anycast_la: Ipv4Addr::new(10, 255, 0, 1),
        status: directory::Status::Ok,
        ..directory::Entry::question(Ipv4Addr::new(20, 0, 0, 9), 6)
    };
    let unknown = directory::Entry { status: directory::Status::Unknown, ..ok };
    let odd = directory::Entry { status: directory::Status::Other(99), ..ok };
    let message = directory::Message {
        kind: directory::Kind::Answer,
        service: 7,
        request_id: 0xabc,
        revision: 17,
        key_id: 3,
        entries: vec![ok, unknown, odd, ok, ok],
    };
    let packet = udp::packet(server, asker, &message.emit(&key, &path)).unwrap();
    assert_eq!(
        Packet(&packet).to_string(),
        "IPv4 10.64.1.2 > 10.64.0.1 ttl 64 UDP 5300 > 40000, directory answer #0000000000000abc service 7 revision 17 \
         key 3, 20.0.0.9 at 10.64.3.1 via 10.255.0.1 v6, 20.0.0.9 unknown, 20.0.0.9 status 99 and 2 more"
    );
}

#[test]
fn other_protocols() {
    let mut segment = vec![0; 25];
    segment[..4].copy_from_slice(&[0x9c, 0x40, 0x13, 0x89]);
    segment[12] = 0x50;
    let start = "IPv4 20.0.0.7 > 20.0.0.9 ttl 64";
    assert_eq!(frame(0x0800, &ipv4_packet(6, &segment)), format!("{start} TCP 40000 > 5001, 5 bytes"));
    assert_eq!(
        frame(0x0800, &ipv4_packet(6, &segment[..13])),
        format!("{start} TCP 40000 > 5001, no whole header in 13 bytes")
    );
    assert_eq!(frame(0x0800, &ipv4_packet(89, &[0; 44])), format!("{start} OSPF, 44 bytes"));
    assert_eq!(
        frame(0x0800, &ipv4_packet(1, &[8, 0, 0, 0, 0, 0, 0, 0])),
        format!("{start} ICMP type 8 code 0, 8 bytes")
    );
    assert_eq!(frame(0x0800, &ipv4_packet(200, &[0; 3])), format!("{start} protocol 200, 3 bytes"));
    assert_eq!(frame(0x86dd, &[0; 40]), "EtherType 0x86dd, 40 bytes");
    let too_big = icmp::fragmentation_needed(&udp_packet(), Ipv4Addr::new(20, 0, 0, 1), 1460).unwrap();
    assert_eq!(frame(0x0800, &too_big), "IPv4 20.0.0.1 > 20.0.0.7 ttl 64 ICMP fragmentation needed, next-hop MTU 1460");
}

#[test]
fn damaged_bytes_are_named() {
    let mut packet = udp_packet();
    assert_eq!(
        frame(0x0800, &packet[..30]),
        "IPv4 20.0.0.7 > 20.0.0.9 ttl 64 cut by 3 bytes no UDP datagram: truncated: 10 bytes where 13 are needed"
    );
    packet[8] = 9;
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    assert_eq!(
        frame(0x0800, &packet),
        format!("IPv4 20.0.0.7 > 20.0.0.9 ttl 9 bad checksum {checksum:#06x} UDP 40000 > 5001, 5 bytes")
    );
    assert_eq!(frame(0x0800, &[0x65; 20]), "no IPv4 packet: version 6 is not spoken here");
    assert_eq!(frame(0x0806, &[0; 3]), "no ARP packet: truncated: 3 bytes where 28 are needed");
    assert_eq!(Frame(&[1, 2]).to_string(), "no frame: 2 bytes");
    assert_eq!(Packet(&[]).to_string(), "no IPv4 packet: truncated: 0 bytes where 20 are needed");
}

#[test]
fn deep_nesting_is_cut() {
    let packet = (0..50).fold(udp_packet(), |inner, _| ipv4_packet(protocol::IPV4, &inner));
    let line = frame(0x0800, &packet);
    assert!(line.ends_with(" | ... 953 bytes"), "{line}");
    assert_eq!(line.matches('|').count(), NESTED_MAX);
}
