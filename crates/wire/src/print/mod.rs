//! One line for a person about any bytes: a frame as it was captured, whatever is in it.

use std::fmt;

use crate::directory;
use crate::ethernet::{self, ethertype};
use crate::flow::{FiveTuple, HASH_SOURCE_BLOCK, HASH_SOURCE_MASK};
use crate::ipv4::{self, Ecn, protocol};
use crate::{arp, icmp, udp};

/// IPv4 headers inside each other that are shown before the line is cut.
const NESTED_MAX: usize = 4;

/// Directory entries that are shown before the line is cut.
const ENTRIES_SHOWN: usize = 3;

/// Displays an Ethernet frame on one line. Never fails, whatever the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a>(pub &'a [u8]);

/// Displays what starts with an IPv4 header on one line. Never fails, whatever the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a>(pub &'a [u8]);

impl fmt::Display for Frame<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(frame) = ethernet::View::new(self.0) else {
            return write!(out, "no frame: {} bytes", self.0.len());
        };
        write!(out, "{} > {} ", frame.source(), frame.destination())?;
        match frame.ethertype() {
            ethertype::ARP => arp_line(out, frame.payload()),
            ethertype::IPV4 => Packet(frame.payload()).fmt(out),
            other => write!(out, "EtherType {other:#06x}, {} bytes", frame.payload().len()),
        }
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0;
        for _ in 0..NESTED_MAX {
            let packet = match ipv4::View::new(bytes).or_else(|_| ipv4::View::of_prefix(bytes)) {
                Ok(packet) => packet,
                Err(error) => return write!(out, "no IPv4 packet: {error}"),
            };
            header(out, &packet)?;
            if packet.protocol() != protocol::IPV4 || packet.is_fragment() {
                return payload(out, &packet);
            }
            out.write_str(" | ")?;
            bytes = packet.payload();
        }
        write!(out, "... {} bytes", bytes.len())
    }
}

fn header(out: &mut fmt::Formatter<'_>, packet: &ipv4::View<'_>) -> fmt::Result {
    let source = u32::from(packet.source());
    let hashed = source & !HASH_SOURCE_MASK == u32::from(HASH_SOURCE_BLOCK);
    match packet.protocol() {
        protocol::IPV4 if hashed => write!(out, "VL2 hash {:06x}", source & HASH_SOURCE_MASK)?,
        _ => write!(out, "IPv4 {}", packet.source())?,
    }
    write!(out, " > {} ttl {}", packet.destination(), packet.ttl())?;
    match packet.ecn() {
        Ecn::NotEct => {}
        Ecn::Ect0 => out.write_str(" ECT(0)")?,
        Ecn::Ect1 => out.write_str(" ECT(1)")?,
        Ecn::Ce => out.write_str(" CE")?,
    }
    if packet.verify_checksum().is_err() {
        write!(out, " bad checksum {:#06x}", packet.checksum())?;
    }
    let missing = packet.total_len().saturating_sub(packet.as_bytes().len());
    if missing > 0 {
        write!(out, " cut by {missing} bytes")?;
    }
    Ok(())
}

fn payload(out: &mut fmt::Formatter<'_>, packet: &ipv4::View<'_>) -> fmt::Result {
    let bytes = packet.payload();
    if packet.is_fragment() {
        let offset = packet.fragment_offset_bytes();
        return write!(out, " fragment at {offset}, protocol {}, {} bytes", packet.protocol(), bytes.len());
    }
    match packet.protocol() {
        protocol::UDP => udp_line(out, bytes),
        protocol::TCP => tcp_line(out, packet),
        protocol::ICMP => icmp_line(out, bytes),
        protocol::OSPF => write!(out, " OSPF, {} bytes", bytes.len()),
        other => write!(out, " protocol {other}, {} bytes", bytes.len()),
    }
}

fn arp_line(out: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    match arp::View::new(bytes) {
        Ok(arp) => match arp.operation() {
            arp::Operation::Request => write!(out, "ARP who has {}, tell {}", arp.target_ip(), arp.sender_ip()),
            arp::Operation::Reply => write!(out, "ARP {} is at {}", arp.sender_ip(), arp.sender_mac()),
        },
        Err(error) => write!(out, "no ARP packet: {error}"),
    }
}

fn udp_line(out: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let datagram = match udp::View::new(bytes) {
        Ok(datagram) => datagram,
        Err(error) => return write!(out, " no UDP datagram: {error}"),
    };
    write!(out, " UDP {} > {}", datagram.source_port(), datagram.destination_port())?;
    match directory::View::new(datagram.payload()) {
        Ok(message) => write!(out, ", {message}"),
        Err(_) => write!(out, ", {} bytes", datagram.payload().len()),
    }
}

/// TCP in as much as the flow needs: the ports, and what follows the header.
fn tcp_line(out: &mut fmt::Formatter<'_>, packet: &ipv4::View<'_>) -> fmt::Result {
    let segment = packet.payload();
    match FiveTuple::of_ipv4(packet.as_bytes()).ok().and_then(|tuple| tuple.ports) {
        Some((source, destination)) => write!(out, " TCP {source} > {destination}")?,
        None => out.write_str(" TCP without ports")?,
    }
    let header_len = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    match segment.len().checked_sub(header_len) {
        Some(data) if header_len >= 20 => write!(out, ", {data} bytes"),
        _ => write!(out, ", no whole header in {} bytes", segment.len()),
    }
}

fn icmp_line(out: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let message = match icmp::View::new(bytes) {
        Ok(message) => message,
        Err(error) => return write!(out, " no ICMP message: {error}"),
    };
    match message.next_hop_mtu() {
        Some(mtu) => write!(out, " ICMP fragmentation needed, next-hop MTU {mtu}"),
        None => write!(out, " ICMP type {} code {}, {} bytes", message.message_type(), message.code(), bytes.len()),
    }
}

impl fmt::Display for directory::View<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "directory {} #{:016x} service {}", self.kind(), self.request_id(), self.service())?;
        write!(out, " revision {} key {}", self.revision(), self.key_id())?;
        for entry in self.entries().take(ENTRIES_SHOWN) {
            write!(out, ", {entry}")?;
        }
        match self.count().saturating_sub(ENTRIES_SHOWN) {
            0 => Ok(()),
            more => write!(out, " and {more} more"),
        }
    }
}

impl fmt::Display for directory::Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            directory::Status::Ok => {
                write!(out, "{} at {} via {} v{}", self.aa, self.tor_la, self.anycast_la, self.version)
            }
            status => write!(out, "{} {status}", self.aa),
        }
    }
}

impl fmt::Display for directory::Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ask => "ask",
            Self::Answer => "answer",
            Self::ReportStale => "report-stale",
            Self::Correct => "correct",
            Self::Ping => "ping",
            Self::Pong => "pong",
        })
    }
}

impl fmt::Display for directory::Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Question => out.write_str("question"),
            Self::Ok => out.write_str("ok"),
            Self::Unknown => out.write_str("unknown"),
            Self::Refused => out.write_str("refused"),
            Self::Behind => out.write_str("behind"),
            Self::Overloaded => out.write_str("overloaded"),
            Self::Other(code) => write!(out, "status {code}"),
        }
    }
}

#[cfg(test)]
mod tests;
