//! General queries, as a bridge sends them that asks in place of a multicast router (RFC 4541 section 2.1.1).

use std::net::Ipv6Addr;

use super::{BEFORE_MLD, HOP_BY_HOP, ICMPV6, IGMP, igmp, mld};
use crate::bytes::put;
use crate::checksum;
use crate::ethernet::{Header, MacAddress, ethertype};
use crate::ipv6;

/// How often messages are said, for queries and reports that get lost (RFC 3376 section 8.1).
const ROBUSTNESS: u8 = 2;
const ALL_SYSTEMS: [u8; 4] = [224, 0, 0, 1];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Internetwork control (RFC 3376 section 4).
const TOS: u8 = 0xc0;

/// An IGMPv3 general query from no address, a whole frame without a tag: who listens says so within `response_ms`.
pub fn igmp_query(source: MacAddress, response_ms: u32, interval_s: u32) -> Vec<u8> {
    let mut packet = vec![0; 36];
    packet[..4].copy_from_slice(&[0x46, TOS, 0, 36]);
    packet[8..10].copy_from_slice(&[1, IGMP]);
    put(&mut packet, 16, &ALL_SYSTEMS);
    put(&mut packet, 20, &[0x94, 4, 0, 0]); // router alert (RFC 2113)
    let sum = checksum::of(&packet[..24]);
    put(&mut packet, 10, &sum.to_be_bytes());
    let code = code(response_ms / 100, 4) as u8;
    put(&mut packet, 24, &[igmp::QUERY, code, 0, 0, 0, 0, 0, 0, ROBUSTNESS, code_of_s(interval_s), 0, 0]);
    let sum = checksum::of(&packet[24..]);
    put(&mut packet, 26, &sum.to_be_bytes());
    let destination = MacAddress::of_ipv4_group(ALL_SYSTEMS.into());
    Header { destination, source, ethertype: ethertype::IPV4 }.emit_with(&packet)
}

/// The same by MLDv2, whose queries have a sender: the port's link-local address by its MAC (RFC 4291, appendix A).
pub fn mld_query(source: MacAddress, response_ms: u32, interval_s: u32) -> Vec<u8> {
    let mut payload = vec![0; 36];
    payload[..8].copy_from_slice(&[ICMPV6, 0, 5, 2, 0, 0, 1, 0]); // router alert of MLD (RFC 2711), padding
    payload[8] = mld::QUERY;
    put(&mut payload, 12, &(code(response_ms, 12) as u16).to_be_bytes());
    put(&mut payload, 32, &[ROBUSTNESS, code_of_s(interval_s)]);
    let [a, b, c, d, e, f] = source.0;
    let address = Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    let sum = checksum::of_ipv6_segment(address, ALL_NODES, ICMPV6, &payload[8..]);
    put(&mut payload, 10, &sum.to_be_bytes());
    let header = ipv6::Header { hop_limit: 1, ..ipv6::Header::new(address, ALL_NODES, HOP_BY_HOP, 36) };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    header.emit_into(&mut packet);
    packet.extend(payload);
    debug_assert_eq!(packet.len(), BEFORE_MLD + 28);
    let destination = MacAddress::of_ipv6_group(ALL_NODES);
    Header { destination, source, ethertype: ethertype::IPV6 }.emit_with(&packet)
}

fn code_of_s(seconds: u32) -> u8 {
    code(seconds, 4) as u8
}

/// The largest number that a code with so many bits of mantissa has room for and that is not above `value`.
fn code(value: u32, mantissa_bits: u32) -> u32 {
    let first_bit = 1 << (mantissa_bits + 3);
    if value < first_bit {
        return value;
    }
    let exponent = (value.ilog2() - mantissa_bits - 3).min(7);
    let mantissa = (value >> (exponent + 3)).min((2 << mantissa_bits) - 1) & ((1 << mantissa_bits) - 1);
    first_bit | exponent << mantissa_bits | mantissa
}
