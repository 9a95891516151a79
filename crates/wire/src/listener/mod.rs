//! What stations and routers say about IP multicast groups, as far as whoever snoops reads it: IGMP (RFC 1112, 2236, 3376), MLD
//! (RFC 2710, 3810), and the advertisements of multicast routers (RFC 4286).
//!
//! Sources of a group are not told apart: who wants some of them listens to the group.

mod groups;
mod query;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::bytes::{array, ipv4_at, u16_at};
use crate::checksum;
use crate::error::{ParseError, need};
use crate::ethernet::{MacAddress, ethertype};
use crate::{ipv4, ipv6};

pub use groups::{Group, Listeners};
pub use query::{igmp_query, mld_query};

const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
const HOP_BY_HOP: u8 = 0;
/// An IPv6 header and the hop-by-hop options that only hold the router alert (RFC 2710 section 3).
const BEFORE_MLD: usize = ipv6::HEADER_LEN + 8;
/// RFC 2236 section 8.3, for queries that do not say it (RFC 1112).
const RESPONSE_MS: u32 = 10_000;

mod igmp {
    pub(super) const QUERY: u8 = 0x11;
    pub(super) const REPORT_V1: u8 = 0x12;
    pub(super) const REPORT_V2: u8 = 0x16;
    pub(super) const LEAVE: u8 = 0x17;
    pub(super) const REPORT_V3: u8 = 0x22;
    pub(super) const ADVERTISEMENT: u8 = 0x30;
}

mod mld {
    pub(super) const QUERY: u8 = 130;
    pub(super) const REPORT_V1: u8 = 131;
    pub(super) const DONE: u8 = 132;
    pub(super) const REPORT_V2: u8 = 143;
    pub(super) const ADVERTISEMENT: u8 = 151;
}

/// Which of the two a group is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// Which groups' frames have this destination; `None`: no IP multicast, or groups that every station gets: those of the local
    /// network (RFC 4541 section 2.1.2), and solicited-node addresses, by which neighbours are found.
    pub const fn of_pruned(destination: MacAddress) -> Option<Self> {
        match destination.0 {
            [0x01, 0x00, 0x5e, 0, 0, _] | [0x33, 0x33, 0, 0, 0, _] | [0x33, 0x33, 0xff, ..] => None,
            [0x01, 0x00, 0x5e, 0..=0x7f, ..] => Some(Self::Ipv4),
            [0x33, 0x33, ..] => Some(Self::Ipv6),
            _ => None,
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who listens to `group`, or to any, reports so within that time.
    Query {
        response_ms: u32,
        group: Option<MacAddress>,
        /// It comes from a multicast router, and not from a bridge that asks in place of one (RFC 4541 section 2.1.1).
        is_router: bool,
    },
    /// A multicast router is there.
    Router,
    /// A station begins, goes on, or ceases to listen to groups.
    Report(Vec<Change>),
}

/// A station and one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where Ethernet carries the group.
    pub group: MacAddress,
    pub listens: bool,
}

/// Reads an IP packet from its header on, as it follows this Ethertype; `None` for one that says nothing about groups.
///
/// # Errors
/// [`ParseError::Truncated`] or [`ParseError::Checksum`] for a message of IGMP or MLD that is not whole.
pub fn parse(ethertype: u16, packet: &[u8]) -> Result<Option<(Family, Message)>, ParseError> {
    let (family, message) = match ethertype {
        ethertype::IPV4 => (Family::Ipv4, parse_igmp(packet)?),
        ethertype::IPV6 => (Family::Ipv6, parse_mld(packet)?),
        _ => return Ok(None),
    };
    Ok(message.map(|message| (family, message)))
}

fn parse_igmp(packet: &[u8]) -> Result<Option<Message>, ParseError> {
    let header = ipv4::View::new(packet)?;
    if header.protocol() != IGMP {
        return Ok(None);
    }
    if header.is_fragment() {
        return Err(ParseError::Fragment);
    }
    let message = header.payload();
    need(message, 8)?;
    if checksum::of(message) != 0 {
        return Err(ParseError::Checksum(u16_at(message, 2)));
    }
    let change = |listens| {
        let group = ipv4_at(message, 4);
        let change = Change { group: MacAddress::of_ipv4_group(group), listens };
        Message::Report(group.is_multicast().then_some(change).into_iter().collect())
    };
    Ok(match message[0] {
        igmp::QUERY => {
            let group = ipv4_at(message, 4);
            let is_v3 = message.len() >= 12;
            let tenths = if is_v3 { exponential(message[1].into(), 7, 4) } else { message[1].into() };
            Some(Message::Query {
                response_ms: if tenths == 0 && !is_v3 { RESPONSE_MS } else { tenths * 100 },
                group: (!group.is_unspecified()).then(|| MacAddress::of_ipv4_group(group)),
                is_router: !header.source().is_unspecified(),
            })
        }
        igmp::REPORT_V1 | igmp::REPORT_V2 => Some(change(true)),
        igmp::LEAVE => Some(change(false)),
        igmp::REPORT_V3 => {
            let is_group = |address: [u8; 4]| Ipv4Addr::from(address).is_multicast();
            let mac = |address: [u8; 4]| MacAddress::of_ipv4_group(address.into());
            Some(Message::Report(records(message, is_group, mac)?))
        }
        igmp::ADVERTISEMENT => Some(Message::Router),
        _ => None,
    })
}

fn parse_mld(packet: &[u8]) -> Result<Option<Message>, ParseError> {
    let header = ipv6::Header::parse(packet)?;
    let options = packet.get(ipv6::HEADER_LEN..BEFORE_MLD).unwrap_or_default();
    if header.next_header != HOP_BY_HOP || header.hop_limit != 1 || !options.starts_with(&[ICMPV6, 0]) {
        return Ok(None);
    }
    let end = ipv6::HEADER_LEN + usize::from(header.payload_len);
    let message = packet.get(BEFORE_MLD..end).unwrap_or_default();
    need(message, 8)?;
    let kind = message[0];
    if ![mld::QUERY, mld::REPORT_V1, mld::DONE, mld::REPORT_V2, mld::ADVERTISEMENT].contains(&kind) {
        return Ok(None);
    }
    if checksum::of_ipv6_segment(header.source, header.destination, ICMPV6, message) != 0 {
        return Err(ParseError::Checksum(u16_at(message, 2)));
    }
    if kind == mld::REPORT_V2 {
        let is_group = |address: [u8; 16]| Ipv6Addr::from(address).is_multicast();
        let mac = |address: [u8; 16]| MacAddress::of_ipv6_group(address.into());
        return Ok(Some(Message::Report(records(message, is_group, mac)?)));
    }
    if kind == mld::ADVERTISEMENT {
        return Ok(Some(Message::Router));
    }
    need(message, 24)?;
    let group = Ipv6Addr::from(array::<16>(message, 8));
    let change = Change { group: MacAddress::of_ipv6_group(group), listens: kind == mld::REPORT_V1 };
    if kind != mld::QUERY {
        return Ok(Some(Message::Report(group.is_multicast().then_some(change).into_iter().collect())));
    }
    let code = u32::from(u16_at(message, 4));
    Ok(Some(Message::Query {
        response_ms: if message.len() >= 28 { exponential(code, 15, 12) } else { code },
        group: (!group.is_unspecified()).then_some(change.group),
        is_router: !header.source.is_unspecified(),
    }))
}

/// A floating-point number with three bits of exponent, if its first bit says so (RFC 3376 section 4.1.1, RFC 3810 section 5.1.3).
fn exponential(code: u32, first_bit: u32, mantissa_bits: u32) -> u32 {
    if code >> first_bit == 0 {
        return code;
    }
    let (mantissa, exponent) = (code & ((1 << mantissa_bits) - 1), code >> mantissa_bits & 7);
    (mantissa | 1 << mantissa_bits) << (exponent + 3)
}

/// The records of an IGMPv3 or MLDv2 report, whose layouts differ in the length of addresses alone.
///
/// ```text
/// 0  type (1) | length of auxiliary data, words (1) | number of sources (2) | group | sources | auxiliary data
/// ```
fn records<const N: usize>(
    report: &[u8],
    is_group: impl Fn([u8; N]) -> bool,
    mac: impl Fn([u8; N]) -> MacAddress,
) -> Result<Vec<Change>, ParseError> {
    let mut changes = Vec::new();
    let mut at = 8;
    for _ in 0..u16_at(report, 6) {
        need(report, at + 4 + N)?;
        let (kind, sources) = (report[at], usize::from(u16_at(report, at + 2)));
        let group: [u8; N] = array(report, at + 4);
        let end = at + 4 + N + sources * N + usize::from(report[at + 1]) * 4;
        need(report, end)?;
        at = end;
        // Of the kinds of records: is in, is ex, to in, to ex, allow, block (RFC 3376 section 4.2.12).
        let listens = match kind {
            2 | 4 => true,
            1 | 3 => sources > 0,
            5 if sources > 0 => true,
            _ => continue,
        };
        if is_group(group) {
            changes.push(Change { group: mac(group), listens });
        }
    }
    Ok(changes)
}
