//! Shared by the tests: frames written byte by byte, what VL2 must make of them, namespaces, and the check for rights.
#![allow(dead_code, unreachable_pub, clippy::print_stderr)]

use std::net::Ipv4Addr;

use weft_datapath::DatapathError;
use weft_datapath::host::{HostConfig, HostDatapath, Mapping};
use weft_datapath::spread::Spread;
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};
use weft_wire::block::Block;
use weft_wire::flow::{FiveTuple, flow_hash, hash_source};

pub mod bed;
pub mod campus;
pub mod netns;
pub mod pinfs;
pub mod tap;
pub mod traffic;
pub mod trill;
pub mod trill_model;
pub mod vlan;
pub mod vxlan;

pub const SERVER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0a];
pub const OTHER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0b];
pub const GATEWAY_MAC: [u8; 6] = [0x02, 0x56, 0x4c, 0x32, 0x00, 0x01];
pub const BROADCAST_MAC: [u8; 6] = [0xff; 6];

pub const MY_AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
pub const PEER_AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 2);
pub const MY_TOR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub const PEER_TOR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
pub const ANYCAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);

pub const MAPPING: Mapping = Mapping { tor_la: PEER_TOR, anycast_la: ANYCAST, refused: false, version: 7 };

/// An IPv4 packet to be.
#[derive(Clone, Debug)]
pub struct Ipv4 {
    pub tos: u8,
    pub id: u16,
    pub fragment: u16,
    pub ttl: u8,
    pub protocol: u8,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Default for Ipv4 {
    fn default() -> Self {
        let mut payload = vec![0x30, 0x39, 0x00, 0x50];
        payload.extend((0..40).map(|n| n * 3));
        Self {
            tos: 0,
            id: 0x1234,
            fragment: 0x4000,
            ttl: 64,
            protocol: 17,
            source: MY_AA,
            destination: PEER_AA,
            options: Vec::new(),
            payload,
        }
    }
}

impl Ipv4 {
    pub fn bytes(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let mut bytes = vec![0x40 | (header / 4) as u8, self.tos];
        bytes.extend(((header + self.payload.len()) as u16).to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([self.ttl, self.protocol, 0, 0]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(&self.options);
        write_checksum(&mut bytes);
        bytes.extend(&self.payload);
        bytes
    }

    pub fn frame(&self) -> Vec<u8> {
        ethernet(OTHER_MAC, SERVER_MAC, 0x0800, &self.bytes())
    }
}

/// RFC 1071 over a header whose checksum field is ignored.
pub fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).enumerate().filter(|(n, _)| *n != 5);
    let mut sum: u32 = words.map(|(_, word)| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Sets the checksum of the IPv4 header that `packet` starts with.
pub fn write_checksum(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 15) * 4;
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

pub fn ethernet(destination: [u8; 6], source: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&destination[..], &source, &ethertype.to_be_bytes(), payload].concat()
}

/// One more IPv4 header in front of `packet`.
pub fn wrapped(packet: &[u8], source: Ipv4Addr, destination: Ipv4Addr, tos: u8) -> Vec<u8> {
    let outer = Ipv4 {
        tos,
        id: 0,
        fragment: 0x4000,
        ttl: 64,
        protocol: 4,
        source,
        destination,
        options: Vec::new(),
        payload: packet.to_vec(),
    };
    outer.bytes()
}

pub fn source_of(packet: &[u8]) -> Ipv4Addr {
    hash_source(flow_hash(&FiveTuple::of_ipv4(packet).expect("an IPv4 packet")))
}

/// What a server sends for an IPv4 packet to an AA with [`MAPPING`].
pub fn encapsulated(packet: &[u8]) -> Vec<u8> {
    let source = source_of(packet);
    let to_tor = wrapped(packet, source, MAPPING.tor_la, packet[1]);
    let to_intermediate = wrapped(&to_tor, source, MAPPING.anycast_la, packet[1]);
    ethernet(GATEWAY_MAC, SERVER_MAC, 0x0800, &to_intermediate)
}

/// A packet as it arrives at the switch that owns `la`, with ECN code points outside and inside.
pub fn arriving(la: Ipv4Addr, outer_ecn: u8, inner: &Ipv4) -> Vec<u8> {
    let packet = inner.bytes();
    let outer = wrapped(&packet, source_of(&packet), la, inner.tos & !3 | outer_ecn);
    ethernet(OTHER_MAC, SERVER_MAC, 0x0800, &outer)
}

pub fn arp(operation: u16, sender: ([u8; 6], Ipv4Addr), target: ([u8; 6], Ipv4Addr)) -> Vec<u8> {
    let mut payload = vec![0, 1, 8, 0, 6, 4];
    payload.extend(operation.to_be_bytes());
    payload.extend(sender.0);
    payload.extend(sender.1.octets());
    payload.extend(target.0);
    payload.extend(target.1.octets());
    payload
}

pub fn host_config() -> HostConfig {
    HostConfig {
        interface: "lo".to_owned(),
        miss_interface: "lo".to_owned(),
        aa_block: Block::of(Ipv4Addr::new(20, 0, 0, 0), 8),
        gateway_mac: GATEWAY_MAC,
        underlay_mtu: 1600,
        own_tor_la: MY_TOR,
        rack_direct: false,
        rate_limit: None,
        map_entries: 1024,
        spread: Spread::Never,
        broadcast: None,
        own: None,
        pin_dir: None,
    }
}

pub fn switch_config(tier: Tier, own_las: &[Ipv4Addr]) -> SwitchConfig {
    SwitchConfig { ports: Vec::new(), host_ports: Vec::new(), own_las: own_las.to_vec(), tier, pin_dir: None }
}

/// The value, or `None` for who is not root. Any other error fails the test, a refusal by the kernel's
/// verifier or a missing hook above all.
pub fn available<T>(result: Result<T, DatapathError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(DatapathError::NoRights { .. }) if !weft_needs::root() => None,
        Err(error) => panic!("{error}"),
    }
}

pub fn host() -> Option<HostDatapath> {
    let host = available(HostDatapath::load(&host_config()))?;
    host.set(PEER_AA, &MAPPING).expect("the map has room");
    Some(host)
}

pub fn switch(tier: Tier, own_las: &[Ipv4Addr]) -> Option<SwitchDatapath> {
    available(SwitchDatapath::load(&switch_config(tier, own_las)))
}

/// The counters that are not zero.
pub fn counted(counters: Vec<(&'static str, u64)>) -> Vec<(&'static str, u64)> {
    counters.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Fails with the first 160 bytes of both frames in hex if they differ.
#[track_caller]
pub fn assert_frame(got: &[u8], expected: &[u8]) {
    assert!(got == expected, "got\n{}expected\n{}", dump(got), dump(expected));
}

pub fn dump(frame: &[u8]) -> String {
    frame
        .chunks(16)
        .take(10)
        .map(|line| line.iter().map(|byte| format!("{byte:02x} ")).collect::<String>() + "\n")
        .collect()
}

/// A small generator with a fixed sequence (xorshift64*), so that every run sees the same frames.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 32) as u8).collect()
    }
}

pub fn host_config_with(change: impl FnOnce(&mut HostConfig)) -> HostConfig {
    let mut config = host_config();
    change(&mut config);
    config
}
