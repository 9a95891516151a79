//! What holds for all values: what is written is read back, and what is read is written back byte by byte.

use std::net::{Ipv4Addr, SocketAddrV4};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use weft_wire::directory::{AnswerMut, ENTRIES_MAX, Entry, Key, Kind, Message, Path, Status, View};
use weft_wire::ethernet::MacAddress;
use weft_wire::flow::{FiveTuple, HASH_SOURCE_BLOCK, HASH_SOURCE_MASK, flow_hash, hash_source};
use weft_wire::probe::{PROBE_LEN, Probe, TIME_MODULUS_NS, is_pattern};
use weft_wire::vl2::{self, Stack, decapsulate_one, encapsulate};
use weft_wire::{arp, ethernet, ipv4};

fn address() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from)
}

fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress)
}

fn path() -> impl Strategy<Value = Path> {
    (address(), any::<u16>(), address(), any::<u16>()).prop_map(|(from, from_port, to, to_port)| Path {
        source: SocketAddrV4::new(from, from_port),
        destination: SocketAddrV4::new(to, to_port),
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    (address(), address(), address(), any::<u8>(), any::<u64>()).prop_map(
        |(aa, tor_la, anycast_la, status, version)| Entry {
            aa,
            tor_la,
            anycast_la,
            status: Status::from(status),
            version,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let entries = |kind: Kind| vec(entry(), if kind.allows(0) { 0..=0 } else { 1..=ENTRIES_MAX });
    select(&Kind::ALL[..]).prop_flat_map(move |kind| {
        (any::<(u32, u64, u64, u32)>(), entries(kind)).prop_map(
            move |((service, request_id, revision, key_id), entries)| Message {
                kind,
                service,
                request_id,
                revision,
                key_id,
                entries,
            },
        )
    })
}

fn ipv4_header(payload_len: u16) -> impl Strategy<Value = ipv4::Header> {
    (any::<(u8, u16, bool, bool, u8, u8)>(), 0..8192_u16, address(), address()).prop_map(
        move |((tos, identification, dont_fragment, more_fragments, ttl, protocol), offset, source, destination)| {
            let header = ipv4::Header::new(source, destination, protocol, payload_len);
            ipv4::Header {
                tos,
                identification,
                dont_fragment,
                more_fragments,
                fragment_offset_units: offset,
                ttl,
                ..header
            }
        },
    )
}

fn ipv4_packet() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200).prop_flat_map(|payload| {
        ipv4_header(payload.len() as u16).prop_map(move |header| {
            let mut packet = vec![0xa5; ipv4::HEADER_LEN];
            header.emit_into(&mut packet);
            packet.extend_from_slice(&payload);
            packet
        })
    })
}

fn stack() -> impl Strategy<Value = Stack> {
    (address(), address(), address(), any::<u8>(), any::<u8>())
        .prop_map(|(source, anycast_la, tor_la, ttl, tos)| Stack { source, anycast_la, tor_la, ttl, tos })
}

proptest! {
    #[test]
    fn probes(stream: u16, sequence: u32, seed: u8, sent_ns in 0..TIME_MODULUS_NS, delay_units: u16, length in PROBE_LEN..300) {
        let probe = Probe { stream, sequence, seed, sent_ns, delay_units };
        let mut payload = vec![0xa5; length];
        probe.fill(&mut payload);
        prop_assert_eq!(Probe::parse(&payload), Ok(probe));
        prop_assert!(is_pattern(seed, &payload[PROBE_LEN..]));
    }

    #[test]
    fn any_bytes_are_a_probe_or_are_refused(bytes in vec(any::<u8>(), 0..64)) {
        if let Ok(probe) = Probe::parse(&bytes) {
            prop_assert_eq!(&probe.to_bytes()[..], &bytes[..PROBE_LEN]);
        }
    }

    #[test]
    fn directory_messages(message in message(), key in any::<[u8; 16]>(), path in path()) {
        let key = Key::from_bytes(key);
        let bytes = message.emit(&key, &path);
        prop_assert_eq!(bytes.len(), message.buffer_len());
        let view = View::new(&bytes).unwrap();
        prop_assert_eq!(view.verify(&key, &path), Ok(()));
        prop_assert_eq!(view.entries().len(), message.entries.len());
        prop_assert_eq!(view.to_message(), message);
    }

    #[test]
    fn an_answer_is_as_long_as_its_question_and_keeps_its_names(
        question in message(), given in vec(entry(), ENTRIES_MAX), revision in any::<u64>(), path in path(),
    ) {
        let key = Key::from_bytes([9; 16]);
        let mut buffer = question.emit(&key, &path);
        let Some(kind) = question.kind.answer() else { return Ok(()) };
        let mut answer = AnswerMut::of_question(&mut buffer).unwrap();
        for (index, entry) in given.iter().enumerate() {
            answer.set_entry(index, *entry);
        }
        answer.set_revision(revision);
        let sealed = answer.seal(&key, &path.reversed());
        let entries = question.entries.iter().zip(&given).map(|(asked, given)| Entry { aa: asked.aa, ..*given });
        let expected = Message { kind, revision, entries: entries.collect(), ..question.clone() };
        prop_assert_eq!(sealed, expected.emit(&key, &path.reversed()));
        prop_assert_eq!(sealed.len(), question.buffer_len());
    }

    #[test]
    fn ethernet_headers(destination in mac(), source in mac(), ethertype in any::<u16>()) {
        let header = ethernet::Header { destination, source, ethertype };
        prop_assert_eq!(ethernet::Header::parse(&header.emit_with(&[])), Ok(header));
        prop_assert_eq!(destination.to_string().parse(), Ok(destination));
    }

    #[test]
    fn arp_packets(sender_mac in mac(), sender_ip in address(), target_ip in address(), answer in mac()) {
        let request = arp::Packet::request(sender_mac, sender_ip, target_ip);
        for packet in [request, request.reply(answer)] {
            prop_assert_eq!(arp::Packet::parse(&packet.to_frame()[ethernet::HEADER_LEN..]), Ok(packet));
        }
    }

    #[test]
    fn ipv4_headers(packet in ipv4_packet()) {
        let header = ipv4::Header::parse(&packet).unwrap();
        let mut again = [0xa5; ipv4::HEADER_LEN];
        header.emit_into(&mut again);
        prop_assert_eq!(&again[..], &packet[..ipv4::HEADER_LEN]);
    }

    #[test]
    fn vl2_stacks(inner in ipv4_packet(), stack in stack()) {
        let packet = encapsulate(&inner, &stack).unwrap();
        prop_assert_eq!(packet.len(), inner.len() + vl2::OVERHEAD_BYTES);
        prop_assert_eq!(Stack::parse(&packet), Ok((stack, &inner[..])));
    }

    #[test]
    fn a_packet_leaves_the_fabric_as_it_entered(inner in ipv4_packet(), tor_la in address(), anycast_la in address()) {
        let stack = Stack::for_packet(&inner, tor_la, anycast_la).unwrap();
        let packet = encapsulate(&inner, &stack).unwrap();
        let after_intermediate = decapsulate_one(&packet).unwrap();
        prop_assert_eq!(decapsulate_one(&after_intermediate), Ok(inner));
    }

    #[test]
    fn the_outer_source_is_in_the_block_and_the_same_for_all_packets_of_a_flow(
        packet in ipv4_packet(), tos in any::<u8>(), ttl in any::<u8>(), identification in any::<u16>(),
    ) {
        let tuple = FiveTuple::of_ipv4(&packet).unwrap();
        let mut sibling = packet.clone();
        sibling[1] = tos;
        sibling[8] = ttl;
        sibling[4..6].copy_from_slice(&identification.to_be_bytes());
        prop_assert_eq!(FiveTuple::of_ipv4(&sibling), Ok(tuple));
        let source = u32::from(hash_source(flow_hash(&tuple)));
        prop_assert_eq!(Ipv4Addr::from(source & !HASH_SOURCE_MASK), HASH_SOURCE_BLOCK);
    }
}
