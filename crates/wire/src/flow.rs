//! Which flow a packet belongs to, and the 22 bits of it that spread flows over the core.
//!
//! VL2 (section 4.2.2) puts a hash of the flow into the outer source address, so that ECMP switches, which look at
//! outer headers only, still send different flows over different paths. The agent's eBPF program computes the same
//! function in C; [`FLOW_HASH_VECTORS`] holds the two equal.

use std::net::Ipv4Addr;

use crate::block::Block;
use crate::bytes::u16_at;
use crate::error::ParseError;
use crate::ipv4::{self, protocol};

/// The block that outer source addresses come from: the shared address space of RFC 6598.
pub const HASH_SOURCES: Block = Block::of(HASH_SOURCE_BLOCK, HASH_SOURCE_MASK.leading_zeros() as u8);

/// The first address of [`HASH_SOURCES`].
pub const HASH_SOURCE_BLOCK: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);

/// The bits of the outer source address that carry the flow hash: 22, the host part of 100.64.0.0/10.
pub const HASH_SOURCE_MASK: u32 = 0x003f_ffff;

/// What tells one flow from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    /// IPv4 source address.
    pub source: Ipv4Addr,
    /// IPv4 destination address.
    pub destination: Ipv4Addr,
    /// IPv4 protocol number.
    pub protocol: u8,
    /// Source and destination port of TCP or UDP.
    ///
    /// `None` for every other protocol, for every fragment (also the first one, so that all fragments of a packet
    /// take one path), and when the packet ends before the ports.
    pub ports: Option<(u16, u16)>,
}

impl FiveTuple {
    /// Reads the five-tuple of `packet`, which starts at its IPv4 header.
    ///
    /// Only the header has to be there in full; options are skipped; the total-length field is not consulted, so the
    /// answer depends on nothing but the bytes up to the ports.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::Version`] or [`ParseError::Length`] (a header length below 20 bytes).
    pub fn of_ipv4(packet: &[u8]) -> Result<Self, ParseError> {
        let view = ipv4::View::of_prefix(packet)?;
        Ok(Self {
            source: view.source(),
            destination: view.destination(),
            protocol: view.protocol(),
            ports: ports_of(&view, packet),
        })
    }

    /// The flow of the answers: both ends exchanged.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            ports: self.ports.map(|(source, destination)| (destination, source)),
        }
    }
}

fn ports_of(view: &ipv4::View<'_>, packet: &[u8]) -> Option<(u16, u16)> {
    let ported = matches!(view.protocol(), protocol::TCP | protocol::UDP);
    let offset = view.header_len();
    if !ported || view.is_fragment() || packet.len() < offset + 4 {
        return None;
    }
    Some((u16_at(packet, offset), u16_at(packet, offset + 2)))
}

/// Hashes a five-tuple to 32 well-mixed bits.
///
/// All fields are taken as numbers read big-endian from the packet, `ports` is `source_port << 16 | destination_port`
/// or 0 when there are none, all arithmetic is modulo 2^32:
///
/// ```text
/// h  = source * 0x9e3779b1
///    ^ rotate_left(destination * 0x85ebca6b, 16)
///    ^ ports * 0xc2b2ae35
///    ^ protocol
/// h ^= h >> 16;  h *= 0x7feb352d
/// h ^= h >> 15;  h *= 0x846ca68b
/// h ^= h >> 16
/// ```
///
/// The function is not symmetric: the two directions of a connection hash to different values.
pub fn flow_hash(tuple: &FiveTuple) -> u32 {
    let ports = tuple.ports.map_or(0, |(source, destination)| u32::from(source) << 16 | u32::from(destination));
    let source = u32::from(tuple.source).wrapping_mul(0x9e37_79b1);
    let destination = u32::from(tuple.destination).wrapping_mul(0x85eb_ca6b).rotate_left(16);
    let mut hash = source ^ destination ^ ports.wrapping_mul(0xc2b2_ae35) ^ u32::from(tuple.protocol);
    hash = (hash ^ hash >> 16).wrapping_mul(0x7feb_352d);
    hash = (hash ^ hash >> 15).wrapping_mul(0x846c_a68b);
    hash ^ hash >> 16
}

/// The outer source address that carries `hash`: 100.64.0.0/10 with the low 22 bits of the hash.
pub fn hash_source(hash: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(HASH_SOURCE_BLOCK) | hash & HASH_SOURCE_MASK)
}

/// Five-tuples and their [`flow_hash`], computed by an independent implementation. Rust and C are tested against them.
pub const FLOW_HASH_VECTORS: [(FiveTuple, u32); 10] = [
    (tuple([0, 0, 0, 0], [0, 0, 0, 0], 0, None), 0x0000_0000),
    (tuple([20, 0, 0, 1], [20, 0, 0, 2], 6, Some((40000, 5001))), 0xb49b_14f1),
    (tuple([20, 0, 0, 2], [20, 0, 0, 1], 6, Some((5001, 40000))), 0x0b06_2625),
    (tuple([20, 0, 0, 1], [20, 0, 0, 2], 6, None), 0xe97a_a171),
    (tuple([20, 0, 0, 1], [20, 0, 0, 2], 17, Some((40000, 5001))), 0x831a_3b7b),
    (tuple([20, 0, 0, 1], [20, 0, 0, 2], 1, None), 0x467b_817d),
    (tuple([20, 0, 0, 75], [20, 0, 0, 3], 6, Some((40001, 5001))), 0xd428_bf8e),
    (tuple([10, 64, 3, 1], [192, 168, 1, 254], 17, Some((0, 5300))), 0xbc90_bcda),
    (tuple([255, 255, 255, 255], [255, 255, 255, 255], 17, Some((65535, 65535))), 0x5fbb_a1ad),
    (tuple([255, 255, 255, 255], [255, 255, 255, 255], 255, None), 0x635d_3138),
];

const fn tuple(source: [u8; 4], destination: [u8; 4], protocol: u8, ports: Option<(u16, u16)>) -> FiveTuple {
    let [a, b, c, d] = source;
    let [e, f, g, h] = destination;
    FiveTuple { source: Ipv4Addr::new(a, b, c, d), destination: Ipv4Addr::new(e, f, g, h), protocol, ports }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with `header_len` bytes of header, a fragment field, and `payload`; its other fields do not matter.
    fn packet(header_len: u8, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0xa5; header_len.into()];
        packet[0] = 0x40 | (header_len / 4);
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[20, 0, 0, 1, 20, 0, 0, 2]);
        packet.extend_from_slice(payload);
        packet
    }

    const PORTS: [u8; 4] = [0x9c, 0x40, 0x13, 0x89];

    #[test]
    fn known_answers() {
        for (tuple, hash) in FLOW_HASH_VECTORS {
            assert_eq!(flow_hash(&tuple), hash, "{tuple:?}");
        }
    }

    #[test]
    fn ports_of_tcp_and_udp_after_any_options() {
        for (header_len, protocol) in [(20, 6), (20, 17), (24, 6), (60, 17)] {
            let tuple = FiveTuple::of_ipv4(&packet(header_len, protocol, 0x4000, &PORTS)).unwrap();
            assert_eq!(tuple, super::tuple([20, 0, 0, 1], [20, 0, 0, 2], protocol, Some((40000, 5001))));
        }
    }

    #[test]
    fn no_ports_in_fragments_other_protocols_and_cut_packets() {
        let ports = |protocol, fragment, payload: &[u8]| {
            FiveTuple::of_ipv4(&packet(20, protocol, fragment, payload)).unwrap().ports
        };
        assert_eq!(ports(6, 0x2000, &PORTS), None, "first fragment");
        assert_eq!(ports(6, 0x2001, &PORTS), None, "middle fragment");
        assert_eq!(ports(6, 0x0001, &PORTS), None, "last fragment");
        assert_eq!(ports(6, 0x8000, &PORTS), Some((40000, 5001)), "the reserved flag is no fragment");
        assert_eq!(ports(1, 0, &PORTS), None, "ICMP");
        assert_eq!(ports(132, 0, &PORTS), None, "SCTP");
        assert_eq!(ports(17, 0, &PORTS[..3]), None, "cut inside the ports");
    }

    #[test]
    fn malformed_headers_are_refused() {
        let reason = |packet: &[u8]| FiveTuple::of_ipv4(packet).unwrap_err().reason();
        let good = packet(24, 6, 0, &PORTS);
        for len in 0..24 {
            assert_eq!(reason(&good[..len]), "truncated", "{len} bytes");
        }
        for first in 0..=255_u8 {
            let mut packet = packet(60, 6, 0, &PORTS);
            packet[0] = first;
            let expected = match (first >> 4, first & 15) {
                (4, 5..) => None,
                (4, _) => Some("length"),
                _ => Some("version"),
            };
            assert_eq!(FiveTuple::of_ipv4(&packet).err().map(|error| error.reason()), expected, "{first:#04x}");
        }
    }

    #[test]
    fn hash_source_stays_in_the_block() {
        assert_eq!(hash_source(0), Ipv4Addr::new(100, 64, 0, 0));
        assert_eq!(hash_source(0xffff_ffff), Ipv4Addr::new(100, 127, 255, 255));
        assert_eq!(hash_source(0xb49b_14f1), Ipv4Addr::new(100, 91, 20, 241));
    }

    #[test]
    fn flows_of_a_shuffle_spread_evenly() {
        let mut counts = [0_u32; 3];
        for (from, to) in (1..=75).flat_map(|from| (1..=75).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let tuple = tuple([20, 0, 0, from], [20, 0, 0, to], 6, Some((40000 + u16::from(to), 5001)));
            counts[(u32::from(hash_source(flow_hash(&tuple))) % 3) as usize] += 1;
        }
        // 5550 flows on 3 paths: 1850 each, within four standard deviations of a binomial draw (35 flows each).
        assert!(counts.iter().all(|count| count.abs_diff(1850) < 140), "{counts:?}");
    }

    #[test]
    fn reversed_exchanges_the_ends() {
        let tuple = FLOW_HASH_VECTORS[1].0;
        assert_eq!(tuple.reversed(), FLOW_HASH_VECTORS[2].0);
        assert_eq!(tuple.reversed().reversed(), tuple);
    }
}
