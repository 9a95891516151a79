//! Which frames a capture keeps: by address and protocol of any IPv4 header in the frame, also of the inner ones.

use std::net::Ipv4Addr;

use weft_wire::ethernet::{HEADER_LEN, ethertype};
use weft_wire::ipv4::{View, protocol};

const ETHERTYPE_IPV4: [u8; 2] = ethertype::IPV4.to_be_bytes();
const ETHERTYPE_ARP: [u8; 2] = ethertype::ARP.to_be_bytes();

/// Conditions on a frame; all that are given must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureFilter {
    /// Source or destination of some IPv4 header.
    pub host: Option<Ipv4Addr>,
    /// Protocol number of some IPv4 header: 4 is IPv4-in-IPv4, 6 TCP, 17 UDP, 89 OSPF.
    pub protocol: Option<u8>,
    /// Only ARP.
    pub arp: bool,
}

impl CaptureFilter {
    /// Whether a frame is wanted.
    pub fn keeps(&self, frame: &[u8]) -> bool {
        let ethertype = frame.get(12..14);
        if self.arp {
            return ethertype == Some(&ETHERTYPE_ARP);
        }
        if self.host.is_none() && self.protocol.is_none() {
            return true;
        }
        let packet = frame.get(HEADER_LEN..).filter(|_| ethertype == Some(&ETHERTYPE_IPV4));
        let (mut has_host, mut has_protocol) = (self.host.is_none(), self.protocol.is_none());
        for header in std::iter::successors(packet.and_then(read), |outer| inner(*outer)) {
            has_host |= self.host.is_some_and(|host| host == header.source() || host == header.destination());
            has_protocol |= self.protocol == Some(header.protocol());
        }
        has_host && has_protocol
    }
}

fn read(packet: &[u8]) -> Option<View<'_>> {
    View::of_prefix(packet).ok()
}

fn inner(outer: View<'_>) -> Option<View<'_>> {
    (outer.protocol() == protocol::IPV4).then(|| read(outer.payload()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(protocol: u8, source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[0] = 0x45;
        header[9] = protocol;
        header[12..16].copy_from_slice(&source);
        header[16..20].copy_from_slice(&destination);
        header
    }

    /// Two outer headers and a TCP packet, as at a ToR uplink.
    fn vl2_frame() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(ETHERTYPE_IPV4);
        frame.extend(header(4, [100, 64, 1, 2], [10, 255, 255, 1]));
        frame.extend(header(4, [100, 64, 1, 2], [10, 1, 0, 2]));
        frame.extend(header(6, [20, 0, 0, 1], [20, 0, 0, 2]));
        frame
    }

    fn by(host: Option<[u8; 4]>, protocol: Option<u8>) -> CaptureFilter {
        CaptureFilter { host: host.map(Ipv4Addr::from), protocol, arp: false }
    }

    #[test]
    fn inner_headers_count() {
        let frame = vl2_frame();
        for (filter, expected) in [
            (by(None, None), true),
            (by(Some([20, 0, 0, 2]), None), true),
            (by(Some([10, 255, 255, 1]), Some(6)), true),
            (by(Some([20, 0, 0, 3]), None), false),
            (by(None, Some(89)), false),
            (by(Some([20, 0, 0, 2]), Some(17)), false),
            (CaptureFilter { arp: true, ..CaptureFilter::default() }, false),
        ] {
            assert_eq!(filter.keeps(&frame), expected, "{filter:?}");
        }
    }

    #[test]
    fn truncated_frames_are_no_trouble() {
        let frame = vl2_frame();
        for length in 0..frame.len() {
            by(Some([20, 0, 0, 2]), Some(6)).keeps(&frame[..length]);
        }
        assert!(!by(None, Some(6)).keeps(&frame[..60]), "the TCP header's protocol is cut off");
    }
}
