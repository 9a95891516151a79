//! VL2's header stack: a packet between application addresses inside two IPv4 headers (VL2 4.2.1, Figure 6).
//!
//! ```text
//! | IPv4  hash address > anycast LA of the Intermediates  | 20 bytes, protocol 4, removed by an Intermediate
//! | IPv4  hash address > LA of the destination's ToR      | 20 bytes, protocol 4, removed by that ToR
//! | IPv4  source AA > destination AA, payload             | as the server sent it
//! ```
//!
//! Both tunnels follow RFC 2003. The ECN field is copied outwards and combined inwards by the normal modes of RFC 6040.
//! The DSCP is copied outwards too (the uniform model of RFC 2983) and the inner one is kept when a header is removed.
//! The inner TTL is not touched: the fabric is one hop for the servers.
//!
//! The datapath does this in eBPF; these functions say what it must produce.

use std::net::Ipv4Addr;

use crate::bytes::put;
use crate::error::ParseError;
use crate::flow::{FiveTuple, flow_hash, hash_source};
use crate::ipv4::{self, Ecn, HEADER_LEN, protocol};

/// What the stack adds to a packet, bytes.
pub const OVERHEAD_BYTES: usize = 2 * HEADER_LEN;

/// TTL of both outer headers when they leave the server.
pub const OUTER_TTL: u8 = 64;

/// What both outer headers are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Outer source address: the flow hash as an address, see [`hash_source`].
    pub source: Ipv4Addr,
    /// Anycast locator address of the Intermediate switches: the outermost destination.
    pub anycast_la: Ipv4Addr,
    /// Locator address of the destination's ToR switch: the destination of the header below.
    pub tor_la: Ipv4Addr,
    /// TTL of both headers.
    pub ttl: u8,
    /// Type of service of both headers: DSCP and ECN.
    pub tos: u8,
}

impl Stack {
    /// The stack that the agent puts on `inner`: the hash of its flow as source, its type of service copied.
    ///
    /// # Errors
    /// Those of [`ipv4::View::of_prefix`].
    pub fn for_packet(inner: &[u8], tor_la: Ipv4Addr, anycast_la: Ipv4Addr) -> Result<Self, ParseError> {
        let source = hash_source(flow_hash(&FiveTuple::of_ipv4(inner)?));
        let tos = ipv4::View::of_prefix(inner)?.tos();
        Ok(Self { source, anycast_la, tor_la, ttl: OUTER_TTL, tos })
    }

    /// Reads a stack that no switch has touched yet, and the packet inside it.
    ///
    /// # Errors
    /// Those of [`View::new`]; [`ParseError::Altered`] when the outer headers are not what [`encapsulate`] writes
    /// (options, fragment bits, two sources, TTLs or types of service).
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let view = View::new(packet)?;
        let stack = Self {
            source: view.anycast.source(),
            anycast_la: view.anycast.destination(),
            tor_la: view.tor.destination(),
            ttl: view.anycast.ttl(),
            tos: view.anycast.tos(),
        };
        let inner = view.inner.as_bytes();
        let mut expected = [0; OVERHEAD_BYTES];
        stack.emit_into(&mut expected, inner.len());
        if packet[..OVERHEAD_BYTES] != expected {
            return Err(ParseError::Altered);
        }
        Ok((stack, inner))
    }

    /// Length of both headers, bytes.
    pub const fn buffer_len(&self) -> usize {
        OVERHEAD_BYTES
    }

    /// Writes both headers for a packet of `inner_len` bytes (at most 65495) to the first 40 bytes of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter.
    pub fn emit_into(&self, buffer: &mut [u8], inner_len: usize) {
        let header = |destination, payload_len: usize| ipv4::Header {
            tos: self.tos,
            ttl: self.ttl,
            ..ipv4::Header::new(self.source, destination, protocol::IPV4, payload_len as u16)
        };
        header(self.anycast_la, inner_len + HEADER_LEN).emit_into(buffer);
        header(self.tor_la, inner_len).emit_into(&mut buffer[HEADER_LEN..]);
    }
}

/// Puts both headers on the packet `inner`.
///
/// # Errors
/// Those of [`ipv4::View::new`]; [`ParseError::Length`] when the result would exceed 65535 bytes.
pub fn encapsulate(inner: &[u8], stack: &Stack) -> Result<Vec<u8>, ParseError> {
    let inner = ipv4::View::new(inner)?.as_bytes();
    let found_bytes = inner.len() + OVERHEAD_BYTES;
    if found_bytes > ipv4::PACKET_LEN_MAX {
        return Err(ParseError::Length { expected_bytes: ipv4::PACKET_LEN_MAX, found_bytes });
    }
    let mut packet = vec![0; found_bytes];
    stack.emit_into(&mut packet, inner.len());
    put(&mut packet, OVERHEAD_BYTES, inner);
    Ok(packet)
}

/// Why a switch at a tunnel's end drops a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecapError {
    /// The outer or the inner header is not right.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// Congestion was marked on a packet whose transport would not notice the mark (RFC 6040, section 4.2).
    #[error("congestion experienced outside, a transport without ECN inside")]
    CongestionOnNotEct,
}

impl DecapError {
    /// A stable lower-case word for counters and metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Parse(error) => error.reason(),
            Self::CongestionOnNotEct => "ecn",
        }
    }
}

/// Removes the outermost header of `packet` and returns the packet inside, its ECN field combined with the outer one.
///
/// # Errors
/// An outer header that is broken, has a wrong checksum, is a fragment or does not carry IPv4; an inner one that is
/// broken or longer than the outer says; the combination of ECN fields that must be dropped. The inner checksum is
/// left to the packet's destination.
pub fn decapsulate_one(packet: &[u8]) -> Result<Vec<u8>, DecapError> {
    let outer = tunnel_header(packet)?;
    let inner = ipv4::View::new(outer.payload())?;
    let ecn = combine_ecn(inner.ecn(), outer.ecn()).ok_or(DecapError::CongestionOnNotEct)?;
    let mut inner = outer.payload().to_vec();
    ipv4::set_ecn(&mut inner, ecn)?;
    Ok(inner)
}

/// The ECN field that leaves a tunnel: RFC 6040, section 4.2, Figure 4. `None`: the packet must be dropped.
pub const fn combine_ecn(inner: Ecn, outer: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => None,
        (Ecn::NotEct, _) => Some(Ecn::NotEct),
        (Ecn::Ce, _) | (_, Ecn::Ce) => Some(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) => Some(Ecn::Ect1),
        (unchanged, _) => Some(unchanged),
    }
}

/// A checked look at a whole stack, as it can be seen anywhere between server and Intermediate.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The outermost header, towards the Intermediates.
    pub anycast: ipv4::View<'a>,
    /// The header below, towards the destination's ToR.
    pub tor: ipv4::View<'a>,
    /// The packet between application addresses.
    pub inner: ipv4::View<'a>,
}

impl<'a> View<'a> {
    /// Looks at a packet that starts with its outermost header.
    ///
    /// # Errors
    /// Those of [`ipv4::View::new`] for each of the three headers; a wrong checksum, a fragment, or another protocol
    /// than IPv4 in the outer two; [`ParseError::Length`] when one header's end is not the end of the next.
    pub fn new(packet: &'a [u8]) -> Result<Self, ParseError> {
        let anycast = tunnel_header(packet)?;
        let tor = tunnel_header(anycast.payload())?;
        let inner = ipv4::View::new(tor.payload())?;
        for (payload, next) in [(anycast.payload(), tor), (tor.payload(), inner)] {
            if payload.len() != next.total_len() {
                return Err(ParseError::Length { expected_bytes: payload.len(), found_bytes: next.total_len() });
            }
        }
        Ok(Self { anycast, tor, inner })
    }
}

/// The header at the start of `packet`, if it can end a tunnel of RFC 2003.
fn tunnel_header(packet: &[u8]) -> Result<ipv4::View<'_>, ParseError> {
    let outer = ipv4::View::new(packet)?;
    outer.verify_checksum()?;
    if outer.protocol() != protocol::IPV4 {
        return Err(ParseError::Protocol(outer.protocol().into()));
    }
    if outer.is_fragment() {
        return Err(ParseError::Fragment);
    }
    Ok(outer)
}

#[cfg(test)]
mod tests;
