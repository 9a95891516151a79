//! Where the named files of the corpora come from: valid, truncated and odd inputs of every format.
//!
//! The files are kept in the repository, so that a fuzzer needs nothing else. A test holds them equal to this list, so
//! that a change of a format cannot leave stale seeds behind.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_wire::directory::update::{Place, UpdateFrame, Verdict, VerdictFrame};
use weft_wire::directory::{ENTRIES_MAX, Entry, Kind, Message, Status};
use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::ipv4::{self, protocol};
use weft_wire::vl2::{Stack, encapsulate};
use weft_wire::{arp, icmp, udp};

use crate::bodies::{key, path};

const HOST: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 7]);
const SWITCH: MacAddress = MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01]);
const SENDER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 7);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 9);

/// One file of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The target it is for.
    pub target: &'static str,
    /// Its file name.
    pub name: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Every named file of every corpus.
pub fn seeds() -> Vec<Seed> {
    let in_target = |target| move |(name, bytes)| Seed { target, name, bytes };
    let datagrams = datagrams().into_iter().map(in_target("directory_datagram"));
    let stacks = stacks().into_iter().map(in_target("vl2_stack"));
    let frames = frames().into_iter().map(in_target("any_frame"));
    let updates = updates().into_iter().map(in_target("directory_update"));
    let logs = [crate::flow_log::seeds(), crate::captures::seeds()].concat();
    let links = [crate::trill_links::seeds(), crate::snooped::seeds()].concat();
    let more =
        [crate::stored::seeds(), crate::sessions::seeds(), crate::vxlan::seeds(), crate::texts::seeds()].concat();
    datagrams.chain(updates).chain(stacks).chain(frames).chain(logs).chain(links).chain(more).collect()
}

fn message(kind: Kind, count: usize) -> Vec<u8> {
    let status = if kind == Kind::Ask { Status::Question } else { Status::Ok };
    let entry = Entry { status, ..Entry::question(RECEIVER, 5) };
    let entries = vec![entry; count];
    Message { kind, service: 7, request_id: 0x0102_0304, revision: 11, key_id: 3, entries }.emit(&key(), &path())
}

fn datagrams() -> Vec<(&'static str, Vec<u8>)> {
    let ask = message(Kind::Ask, 1);
    vec![
        ("ask-one", ask.clone()),
        ("ask-most", message(Kind::Ask, ENTRIES_MAX)),
        ("answer-two", message(Kind::Answer, 2)),
        ("report-stale", message(Kind::ReportStale, 1)),
        ("correct", message(Kind::Correct, 3)),
        ("ping", message(Kind::Ping, 0)),
        ("pong", message(Kind::Pong, 0)),
        ("empty", Vec::new()),
        ("cut-in-header", ask[..31].to_vec()),
        ("cut-in-tag", ask[..ask.len() - 1].to_vec()),
        ("one-byte-more", [&ask[..], &[0]].concat()),
        ("wrong-magic", changed(&ask, 0, 0x58)),
        ("version-2", changed(&ask, 2, 0x21)),
        ("kind-15", changed(&ask, 2, 0x1f)),
        ("count-255", changed(&ask, 3, 255)),
        ("flags-set", changed(&ask, 28, 0x80)),
        ("odd-status", changed(&ask, 44, 0xee)),
        ("wrong-tag", changed(&ask, ask.len() - 1, 0)),
    ]
}

fn updates() -> Vec<(&'static str, Vec<u8>)> {
    let place = Place {
        tor_la: Ipv4Addr::new(10, 64, 3, 1),
        anycast_la: Ipv4Addr::new(10, 255, 0, 1),
        host_la: Some(Ipv4Addr::new(10, 64, 3, 7)),
        service: 7,
    };
    let set =
        UpdateFrame { aa: RECEIVER, place: Some(place), if_version: Some(3), version: None, client: 5, sequence: 9 };
    let verdict = |verdict, text: &str| {
        let mut bytes = Vec::new();
        VerdictFrame { verdict, revision: 11, text: text.to_owned() }.emit_to(&mut bytes);
        bytes
    };
    vec![
        ("set", set.emit().to_vec()),
        ("delete", UpdateFrame { place: None, ..set }.emit().to_vec()),
        ("delete-with-a-place", changed(&set.emit(), 1, 2)),
        ("unknown-flag", changed(&set.emit(), 2, 0x85)),
        ("cut", set.emit()[..55].to_vec()),
        ("committed", verdict(Verdict::Committed, "")),
        ("refused", verdict(Verdict::Refused, "the AA is outside the block")),
        ("text-longer-than-said", changed(&verdict(Verdict::Store, "no leader"), 3, 4)),
        ("text-cut", changed(&verdict(Verdict::Store, "no leader"), 3, 200)),
        ("text-not-utf8", changed(&verdict(Verdict::Busy, "later"), 12, 0xff)),
    ]
}

pub(crate) fn changed(bytes: &[u8], offset: usize, value: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[offset] = value;
    bytes
}

fn packet(protocol: u8, tos: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; ipv4::HEADER_LEN];
    let header = ipv4::Header::new(SENDER, RECEIVER, protocol, payload.len() as u16);
    ipv4::Header { tos, ..header }.emit_into(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// A SYN segment without a checksum.
fn tcp() -> Vec<u8> {
    let segment = [0x9c, 0x40, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0];
    packet(protocol::TCP, 0x02, &segment)
}

fn stack_around(inner: &[u8]) -> Vec<u8> {
    let (tor_la, anycast_la) = (Ipv4Addr::new(10, 64, 3, 1), Ipv4Addr::new(10, 255, 0, 1));
    let stack = Stack::for_packet(inner, tor_la, anycast_la).expect("the seed's packet has a flow");
    encapsulate(inner, &stack).expect("the seed's packet is small")
}

fn stacks() -> Vec<(&'static str, Vec<u8>)> {
    let stack = stack_around(&tcp());
    let mut fragment = packet(protocol::UDP, 0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    fragment[6] = 0x20;
    vec![
        ("tcp-packet", tcp()),
        ("fragment", fragment),
        ("whole-stack", stack.clone()),
        ("after-intermediate", stack[ipv4::HEADER_LEN..].to_vec()),
        ("padded-stack", [&stack[..], &[0; 6]].concat()),
        ("congestion-on-not-ect", packet(protocol::IPV4, 0x03, &packet(protocol::UDP, 0, &[0; 8]))),
        ("ect1-on-ect0", packet(protocol::IPV4, 0x01, &tcp())),
        ("outer-checksum-wrong", changed(&stack, 10, 0)),
        ("outer-fragment", changed(&stack, 6, 0x20)),
        ("cut-in-tor-header", stack[..39].to_vec()),
        ("ipv6-inside", packet(protocol::IPV4, 0, &[0x60; 40])),
        ("empty-inside", packet(protocol::IPV4, 0, &[])),
    ]
}

fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    ethernet::Header { destination: SWITCH, source: HOST, ethertype }.emit_with(payload)
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let request = arp::Packet::request(HOST, SENDER, RECEIVER);
    let stack = frame(ethertype::IPV4, &stack_around(&tcp()));
    let ends = (SocketAddrV4::new(SENDER, 40000), SocketAddrV4::new(RECEIVER, 5300));
    let lookup = udp::packet(ends.0, ends.1, &message(Kind::Ask, 1)).expect("the seed's datagram is small");
    let too_big = icmp::fragmentation_needed(&lookup, RECEIVER, 1460).expect("the seed may be answered");
    let nested = (0..8).fold(tcp(), |inner, _| packet(protocol::IPV4, 0, &inner));
    vec![
        ("arp-request", request.to_frame()),
        ("arp-reply", request.reply(SWITCH).to_frame()),
        ("arp-cut", request.to_frame()[..40].to_vec()),
        ("arp-odd-lengths", changed(&request.to_frame(), 18, 8)),
        ("vl2-stack", stack.clone()),
        ("vl2-cut", stack[..60].to_vec()),
        ("directory-ask", frame(ethertype::IPV4, &lookup)),
        ("fragmentation-needed", frame(ethertype::IPV4, &too_big)),
        ("eight-headers", frame(ethertype::IPV4, &nested)),
        ("options-beyond-end", frame(ethertype::IPV4, &changed(&tcp(), 0, 0x4f))),
        ("length-zero", frame(ethertype::IPV4, &changed(&tcp(), 3, 0))),
        ("ethertype-ipv6", frame(0x86dd, &[0x60; 40])),
        ("header-only", frame(ethertype::IPV4, &[])),
        ("thirteen-bytes", stack[..13].to_vec()),
    ]
}
