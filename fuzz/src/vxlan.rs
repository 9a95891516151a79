//! Any bytes as a VXLAN datagram's payload or as the packet around it, and as what a VTEP's station sent.

use weft_control::vtep::arp::Asker;
use weft_control::vtep::mac::{ip_of, mac_of};
use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::vlan::{TAG_LEN, VLAN_MAX, VlanId};
use weft_wire::vxlan::{HEADER_LEN, Header, UDP_PORT, VNI_MAX};
use weft_wire::{arp, ipv4, udp};

use crate::bodies::any_frame;
use crate::seeds::{Seed, changed};

/// Of what is in front of a tag: two addresses.
const TAG_AT: usize = 12;

/// Any bytes as VXLAN.
///
/// # Panics
/// When an invariant of a format is broken.
pub fn vxlan_frame(bytes: &[u8]) {
    datagram(bytes);
    let Ok(packet) = ipv4::View::new(bytes) else { return };
    if let Ok(view) = udp::View::new(packet.payload()) {
        datagram(view.payload());
    }
}

fn datagram(bytes: &[u8]) {
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(header.vni <= VNI_MAX);
    let again = header.to_bytes();
    assert_eq!(again[4..7], bytes[4..7], "the VNI is written as it was");
    assert_eq!(Header::parse(&again), Ok(header));
    let frame = &bytes[HEADER_LEN..];
    any_frame(frame);
    tagged(frame);
    station(frame);
}

/// A tag lies behind the addresses and changes nothing else.
fn tagged(frame: &[u8]) {
    for vlan in [1, VLAN_MAX].map(|number| VlanId::new(number).expect("it is a VLAN's")) {
        let tagged = vlan.tag(frame);
        if frame.len() < TAG_AT {
            assert_eq!(tagged, frame);
            continue;
        }
        assert_eq!((&tagged[..TAG_AT], &tagged[TAG_AT + TAG_LEN..]), (&frame[..TAG_AT], &frame[TAG_AT..]));
        assert_eq!(tagged[TAG_AT..TAG_AT + 2], ethertype::VLAN.to_be_bytes());
        assert_eq!(tagged[TAG_AT + 2..TAG_AT + TAG_LEN], vlan.get().to_be_bytes());
    }
}

/// What a directory-driven segment makes of its stations' frames.
fn station(frame: &[u8]) {
    let Ok(view) = ethernet::View::new(frame) else { return };
    if let Some(ip) = ip_of(view.destination()) {
        assert_eq!(mac_of(ip), view.destination());
    }
    let Ok(packet) = arp::Packet::parse(view.payload()) else { return };
    let (asker, sought) = (Asker { mac: packet.sender_mac, ip: packet.sender_ip }, packet.target_ip);
    let Some(answer) = asker.answer(sought, mac_of(sought)).filter(|_| asker.asks_for(sought)) else { return };
    let answer = ethernet::View::new(&answer).expect("an answer is a frame");
    assert_eq!((answer.destination(), answer.source()), (asker.mac, mac_of(sought)));
    let reply = arp::Packet::parse(answer.payload()).expect("an answer is ARP");
    assert_eq!((reply.sender_ip, reply.target_ip, reply.target_mac), (sought, asker.ip, asker.mac));
}

/// Datagrams, packets and frames, good ones and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let (here, there) = (MacAddress([0x02, 0x42, 10, 0, 0, 1]), MacAddress([0x02, 0x42, 10, 0, 0, 2]));
    let request = arp::Packet::request(here, [10, 0, 0, 1].into(), [10, 0, 0, 2].into()).to_frame();
    let frame = ethernet::Header { destination: there, source: here, ethertype: ethertype::IPV4 };
    let in_segment = |vni, frame: &[u8]| [&Header { vni }.to_bytes(), frame].concat();
    let good = in_segment(100, &frame.emit_with(&[0x45; 40]));
    let asks = in_segment(VNI_MAX, &request);
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|ip| std::net::SocketAddrV4::new(ip.into(), UDP_PORT));
    let packet = udp::packet(ends[0], ends[1], &asks).expect("the seed is small");
    let tagged = VlanId::new(10).map(|vlan| vlan.tag(&request)).unwrap_or_default();
    let all = [
        ("frame", good.clone()),
        ("arp-request", asks.clone()),
        (
            "arp-announcement",
            in_segment(7, &arp::Packet::request(here, [10, 0, 0, 1].into(), [10, 0, 0, 1].into()).to_frame()),
        ),
        ("arp-probe", in_segment(7, &arp::Packet::request(here, [0; 4].into(), [10, 0, 0, 2].into()).to_frame())),
        ("packet", packet.clone()),
        ("packet-cut", packet[..packet.len() - 3].to_vec()),
        ("tagged", in_segment(5, &tagged)),
        ("vni-0", in_segment(0, &request)),
        ("without-a-vni", changed(&good, 0, 0)),
        ("reserved-bits", changed(&changed(&good, 0, 0xff), 7, 0xff)),
        ("nothing-inside", good[..HEADER_LEN].to_vec()),
        ("seven-bytes", good[..7].to_vec()),
        ("in-itself", in_segment(3, &frame.emit_with(&packet))),
    ];
    all.into_iter().map(|(name, bytes)| Seed { target: "vxlan_frame", name, bytes }).collect()
}
