//! Messages as literal bytes, written out from the RFCs.

use super::*;
use crate::ethernet;

fn ipv4(message: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x46, 0xc0, 0, 24 + message.len() as u8, 0, 0, 0x40, 0, 1, 2, 0, 0];
    packet.extend([10, 0, 0, 1, 224, 0, 0, 22, 0x94, 4, 0, 0]);
    let mut message = message.to_vec();
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    packet.extend(message);
    let sum = checksum::of(&packet[..24]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn ipv6(message: &[u8]) -> Vec<u8> {
    let (source, destination) =
        (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 22));
    let mut message = message.to_vec();
    let sum = checksum::of_ipv6_segment(source, destination, ICMPV6, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let len = 8 + message.len() as u16;
    let mut packet = vec![0; 40];
    ipv6::Header { hop_limit: 1, ..ipv6::Header::new(source, destination, 0, len) }.emit_into(&mut packet);
    packet.extend([58, 0, 5, 2, 0, 0, 1, 0]);
    packet.extend(message);
    packet
}

fn report(changes: &[([u8; 6], bool)]) -> Message {
    Message::Report(
        changes.iter().map(|(group, listens)| Change { group: MacAddress(*group), listens: *listens }).collect(),
    )
}

const A: [u8; 6] = [0x01, 0x00, 0x5e, 0x01, 0x02, 0x03];
const B: [u8; 6] = [0x01, 0x00, 0x5e, 0x7f, 0x00, 0x01];
const C: [u8; 6] = [0x33, 0x33, 0, 1, 0, 3];

#[test]
fn what_stations_say_by_igmp() {
    let query = |response_ms, group: Option<[u8; 6]>| Message::Query {
        response_ms,
        group: group.map(MacAddress),
        is_router: true,
    };
    let cases: [(&[u8], Option<Message>); 12] = [
        (&[0x16, 0, 0, 0, 239, 1, 2, 3], Some(report(&[(A, true)]))),
        (&[0x12, 0, 0, 0, 225, 0x81, 2, 3], Some(report(&[(A, true)]))),
        (&[0x17, 0, 0, 0, 239, 1, 2, 3], Some(report(&[(A, false)]))),
        (&[0x16, 0, 0, 0, 10, 1, 2, 3], Some(report(&[]))),
        (&[0x11, 0, 0, 0, 0, 0, 0, 0], Some(query(10_000, None))),
        (&[0x11, 25, 0, 0, 239, 1, 2, 3], Some(query(2500, Some(A)))),
        (&[0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0], Some(query(10_000, None))),
        // 0x9c: mantissa 12 of four bits, exponent 1: (16 + 12) << 4 tenths.
        (&[0x11, 0x9c, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0], Some(query(44_800, None))),
        (&[0x30, 20, 0, 0, 0, 125, 0, 2], Some(Message::Router)),
        (&[0x13, 0, 0, 0, 0, 0, 0, 0], None),
        (
            &[
                0x22, 0, 0, 0, 0, 0, 0, 3, // three records
                4, 0, 0, 0, 239, 1, 2, 3, // to all sources: begins
                3, 0, 0, 0, 239, 127, 0, 1, // to none: ceases
                1, 1, 0, 1, 232, 127, 0, 1, 10, 0, 0, 9, 1, 2, 3, 4, // of one source, with auxiliary data
            ],
            Some(report(&[(A, true), (B, false), (B, true)])),
        ),
        (
            &[
                0x22, 0, 0, 0, 0, 0, 0, 3, // three records
                5, 0, 0, 1, 239, 1, 2, 3, 10, 0, 0, 9, // one more source
                6, 0, 0, 1, 239, 127, 0, 1, 10, 0, 0, 9, // one less: it may want others
                9, 0, 0, 0, 239, 127, 0, 1, // nothing that we know
            ],
            Some(report(&[(A, true)])),
        ),
    ];
    for (message, wanted) in cases {
        let found = parse(ethertype::IPV4, &ipv4(message)).unwrap();
        assert_eq!(found, wanted.map(|message| (Family::Ipv4, message)), "{message:02x?}");
    }
}

#[test]
fn what_stations_say_by_mld() {
    let of_group = |kind: u8, delay_ms: u16, tail: &[u8]| {
        let mut message = vec![kind, 0, 0, 0];
        message.extend(delay_ms.to_be_bytes());
        message.extend([0, 0]);
        message.extend(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 1, 3).octets());
        message.extend(tail);
        message
    };
    let query = |response_ms| Message::Query { response_ms, group: Some(MacAddress(C)), is_router: true };
    let mut records = vec![143, 0, 0, 0, 0, 0, 0, 2];
    for (kind, last) in [(4_u8, 3_u16), (3, 4)] {
        records.extend([kind, 0, 0, 0]);
        records.extend(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 1, last).octets());
    }
    let cases = [
        (of_group(131, 0, &[]), Some(report(&[(C, true)]))),
        (of_group(132, 0, &[]), Some(report(&[(C, false)]))),
        (of_group(130, 2500, &[]), Some(query(2500))),
        // 0x9234: mantissa 0x234 of twelve bits, exponent 1: 0x1234 << 4.
        (of_group(130, 0x9234, &[2, 125, 0, 0]), Some(query(0x12340))),
        (records, Some(report(&[(C, true), ([0x33, 0x33, 0, 1, 0, 4], false)]))),
        (vec![151, 20, 0, 0, 0, 125, 0, 2], Some(Message::Router)),
        (of_group(135, 0, &[]), None),
    ];
    for (message, wanted) in cases {
        let found = parse(ethertype::IPV6, &ipv6(&message)).unwrap();
        assert_eq!(found, wanted.map(|message| (Family::Ipv6, message)), "{message:02x?}");
    }
}

#[test]
fn what_is_cut_short_or_damaged_is_refused() {
    let igmp = ipv4(&[0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 239, 1, 2, 3]);
    let mut records = vec![143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0];
    records.extend(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 1, 3).octets());
    for (ethertype, packet, message) in [(ethertype::IPV4, igmp, 24), (ethertype::IPV6, ipv6(&records), 48)] {
        assert!(parse(ethertype, &packet).unwrap().is_some());
        for len in 0..packet.len() {
            parse(ethertype, &packet[..len]).unwrap_err();
        }
        let mut damaged = packet.clone();
        damaged[message + 10] ^= 1;
        assert!(matches!(parse(ethertype, &damaged), Err(ParseError::Checksum(_))));
        assert_eq!(parse(ethertype::ARP, &packet), Ok(None));
    }
    let more = ipv4(&[0x22, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 0, 239, 1, 2, 3]);
    assert!(matches!(parse(ethertype::IPV4, &more), Err(ParseError::Truncated { .. })), "two records said, one there");
    let mut far = ipv6(&records);
    far[7] = 2;
    assert_eq!(parse(ethertype::IPV6, &far), Ok(None), "MLD never crosses a router");
}

#[test]
fn queries_are_read_as_they_were_meant() {
    let mac = MacAddress([2, 0, 0, 0, 0, 7]);
    for response_ms in [100, 1000, 10_000, 12_700, 25_000] {
        for (frame, is_router) in [(igmp_query(mac, response_ms, 125), false), (mld_query(mac, response_ms, 125), true)]
        {
            let view = ethernet::View::new(&frame).unwrap();
            let (_, message) = parse(view.ethertype(), view.payload()).unwrap().unwrap();
            let Message::Query { response_ms: found_ms, group: None, is_router: found } = message else {
                panic!("{message:?}");
            };
            assert!(found_ms <= response_ms && found_ms * 17 >= response_ms * 16, "{found_ms} of {response_ms}");
            assert_eq!(found, is_router, "a bridge asks by IGMP from no address");
        }
    }
}

#[test]
fn which_groups_every_station_gets() {
    let group = |text: &str| match text.parse().unwrap() {
        std::net::IpAddr::V4(group) => MacAddress::of_ipv4_group(group),
        std::net::IpAddr::V6(group) => MacAddress::of_ipv6_group(group),
    };
    for all in ["224.0.0.1", "224.0.0.251", "225.128.0.9", "ff02::1", "ff02::fb", "ff02::1:ff00:1"] {
        assert_eq!(Family::of_pruned(group(all)), None, "{all}");
    }
    assert_eq!(Family::of_pruned(group("239.1.2.3")), Some(Family::Ipv4));
    assert_eq!(Family::of_pruned(group("224.0.1.1")), Some(Family::Ipv4));
    assert_eq!(Family::of_pruned(group("ff15::1:3")), Some(Family::Ipv6));
    for other in [MacAddress::BROADCAST, MacAddress([1, 0, 0x5e, 0x80, 0, 1]), MacAddress([1, 0x80, 0xc2, 0, 0, 0x41])]
    {
        assert_eq!(Family::of_pruned(other), None, "{other}");
    }
}
