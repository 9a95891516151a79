//! A missed frame: whose it is, how long its packets are, and what to answer if they are too long.

use std::net::Ipv4Addr;

use weft_wire::ParseError;
use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::icmp::{self, IcmpError};
use weft_wire::{arp, ipv4};

use crate::sys::VNET_LEN;

/// Offset of `gso_type` and of `gso_size` in the vnet header (`struct virtio_net_hdr`).
const GSO_TYPE: usize = 1;
const GSO_SIZE: usize = 4;

/// What an agent has to know about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missed {
    /// Its destination, or the address that it asks for.
    pub(super) aa: Ipv4Addr,
    /// Length of its longest IP packet on the wire, bytes; 0 for ARP.
    pub(super) packet_bytes: u16,
}

/// Looks at a frame behind its vnet header.
///
/// # Errors
/// What is not ARP or IPv4.
pub(super) fn look(frame: &[u8]) -> Result<Missed, ParseError> {
    let (vnet, payload) = split(frame)?;
    let view = ethernet::View::new(payload)?;
    match view.ethertype() {
        ethertype::ARP => Ok(Missed { aa: arp::View::new(view.payload())?.target_ip(), packet_bytes: 0 }),
        ethertype::IPV4 => {
            let packet = ipv4::View::of_prefix(view.payload())?;
            let packet_bytes = packet_bytes(vnet, &packet);
            Ok(Missed { aa: packet.destination(), packet_bytes })
        }
        other => Err(ParseError::Protocol(other)),
    }
}

fn split(frame: &[u8]) -> Result<(&[u8], &[u8]), ParseError> {
    let truncated = ParseError::Truncated { needed_bytes: VNET_LEN, found_bytes: frame.len() };
    frame.split_at_checked(VNET_LEN).ok_or(truncated)
}

/// Length of the packet, or of one segment of a super frame, bytes.
fn packet_bytes(vnet: &[u8], packet: &ipv4::View<'_>) -> u16 {
    let segment_payload = usize::from(u16::from_ne_bytes([vnet[GSO_SIZE], vnet[GSO_SIZE + 1]]));
    let whole = packet.total_len();
    // With both outer headers the whole must still have a length that IPv4 can write.
    if vnet[GSO_TYPE] == 0 || segment_payload == 0 || whole + super::host::OUTER_BYTES as usize > ipv4::PACKET_LEN_MAX {
        return u16::try_from(whole).unwrap_or(u16::MAX);
    }
    let transport = packet.as_bytes().get(packet.header_len()..).unwrap_or_default();
    let transport_header = match (packet.protocol(), transport.get(12)) {
        (ipv4::protocol::TCP, Some(offset)) => usize::from(offset >> 4) * 4,
        _ => weft_wire::udp::HEADER_LEN,
    };
    u16::try_from(packet.header_len() + transport_header + segment_payload).unwrap_or(u16::MAX)
}

/// The frame that tells the sender of a missed frame which MTU fits, for the host's interface with MAC `to`.
///
/// # Errors
/// [`IcmpError`] where no ICMP error may be sent.
pub(super) fn too_big_answer(frame: &[u8], to: MacAddress, mtu: u16) -> Result<Vec<u8>, IcmpError> {
    let (_, payload) = split(frame)?;
    let view = ethernet::View::new(payload)?;
    let packet = ipv4::View::of_prefix(view.payload())?;
    let answer = icmp::fragmentation_needed(view.payload(), packet.destination(), mtu)?;
    let header = ethernet::Header { destination: to, source: view.destination(), ethertype: ethertype::IPV4 };
    let mut out = vec![0; VNET_LEN];
    out.extend(header.emit_with(&answer));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);
    const PAIR: MacAddress = MacAddress([2, 0, 0, 0, 0, 8]);
    const VIRTUAL: MacAddress = MacAddress([0x02, 0x56, 0x4c, 0x32, 0x00, 0x01]);
    const OWN: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 7);
    const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 9);

    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        ipv4::Header::new(OWN, AA, protocol, payload.len() as u16).emit_into(&mut packet);
        packet.extend_from_slice(payload);
        packet
    }

    fn frame(gso_type: u8, gso_size: u16, ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; VNET_LEN];
        frame[GSO_TYPE] = gso_type;
        frame[GSO_SIZE..GSO_SIZE + 2].copy_from_slice(&gso_size.to_ne_bytes());
        frame.extend(ethernet::Header { destination: VIRTUAL, source: HOST, ethertype }.emit_with(payload));
        frame
    }

    #[test]
    fn arp_requests_are_about_the_address_asked_for() {
        let mut request = vec![0; VNET_LEN];
        request.extend(arp::Packet::request(HOST, OWN, AA).to_frame());
        assert_eq!(look(&request), Ok(Missed { aa: AA, packet_bytes: 0 }));
    }

    #[test]
    fn packets_count_whole_and_super_frames_by_segment() {
        let plain = frame(0, 0, ethertype::IPV4, &packet(17, &[0; 500]));
        assert_eq!(look(&plain), Ok(Missed { aa: AA, packet_bytes: 520 }));
        let mut tcp = [0; 5000];
        tcp[12] = 8 << 4;
        let tcp = frame(1, 1448, ethertype::IPV4, &packet(6, &tcp));
        assert_eq!(look(&tcp), Ok(Missed { aa: AA, packet_bytes: 20 + 32 + 1448 }));
        let udp = frame(5, 1472, ethertype::IPV4, &packet(17, &[0; 5000]));
        assert_eq!(look(&udp), Ok(Missed { aa: AA, packet_bytes: 1500 }));
        let longest = frame(1, 1448, ethertype::IPV4, &packet(6, &[0; 65_500]));
        assert_eq!(look(&longest), Ok(Missed { aa: AA, packet_bytes: 65_520 }), "no room for the outer headers");
    }

    #[test]
    fn what_is_neither_is_refused_and_cuts_do_not_panic() {
        assert_eq!(look(&frame(0, 0, 0x86dd, &[0; 60])), Err(ParseError::Protocol(0x86dd)));
        let whole = frame(1, 1448, ethertype::IPV4, &packet(6, &[0; 100]));
        for cut in 0..whole.len() {
            let seen = look(&whole[..cut]);
            assert_eq!(seen.is_ok(), cut >= VNET_LEN + 14 + 20, "{cut}: {seen:?}");
            let _ = too_big_answer(&whole[..cut], HOST, 1500);
        }
    }

    #[test]
    fn the_answer_to_a_long_packet_goes_back_to_the_host() {
        let long = frame(0, 0, ethertype::IPV4, &packet(17, &[7; 1600]));
        let answer = too_big_answer(&long, PAIR, 1500).unwrap();
        assert_eq!(answer[..VNET_LEN], [0; VNET_LEN]);
        let view = ethernet::View::new(&answer[VNET_LEN..]).unwrap();
        assert_eq!((view.destination(), view.source()), (PAIR, VIRTUAL));
        let reply = ipv4::View::new(view.payload()).unwrap();
        assert_eq!((reply.source(), reply.destination()), (AA, OWN));
        assert_eq!(icmp::View::new(reply.payload()).unwrap().next_hop_mtu(), Some(1500));
    }
}
