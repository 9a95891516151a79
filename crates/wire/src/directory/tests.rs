//! Datagrams as literal bytes, both ways. The tags come from an independent implementation of SipHash-2-4-128.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use crate::ParseError;

/// Agent 10.64.0.1:40000 asks server 10.64.1.2:5300 about AA 20.0.0.9, of which it knows version 5.
const QUESTION: [u8; 72] = [
    0x57, 0x44, 0x11, 0x01, 0x00, 0x00, 0x00, 0x07, // magic, version 1, ask, one entry, service 7
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // request id
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // any revision
    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, // key id 3, flags, reserved
    20, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, // AA, no ToR LA, no anycast LA
    0x00, 0x00, 0x00, 0x00, // question, reserved
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, // version
    0xa5, 0x15, 0xce, 0x00, 0x9f, 0xfb, 0x78, 0x24, 0x18, 0xcd, 0xfe, 0xa1, 0x2a, 0x7f, 0xfb, 0xde, // tag
];

/// Its answer: behind ToR 10.64.3.1, over the Intermediates of 10.255.0.1, version 6, revision 17 applied.
const ANSWER: [u8; 72] = [
    0x57, 0x44, 0x12, 0x01, 0x00, 0x00, 0x00, 0x07, // magic, version 1, answer, one entry, service 7
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // request id
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x11, // revision
    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, // key id 3, flags, reserved
    20, 0, 0, 9, 10, 64, 3, 1, 10, 255, 0, 1, // AA, ToR LA, anycast LA
    0x01, 0x00, 0x00, 0x00, // ok, reserved
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, // version
    0x84, 0x99, 0x9b, 0x49, 0x0f, 0x82, 0x06, 0x0f, 0xa9, 0xd0, 0x54, 0x65, 0xe3, 0x0d, 0x64, 0xa5, // tag
];

const PATH: Path = Path {
    source: SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 1), 40000),
    destination: SocketAddrV4::new(Ipv4Addr::new(10, 64, 1, 2), 5300),
};

const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 9);

fn key() -> Key {
    Key::from_hex("000102030405060708090a0b0c0d0e0f").unwrap()
}

fn question() -> Message {
    let entries = vec![Entry::question(AA, 5)];
    Message { kind: Kind::Ask, service: 7, request_id: 0x0102_0304_0506_0708, revision: 0, key_id: 3, entries }
}

fn answer_entry() -> Entry {
    let (tor_la, anycast_la) = (Ipv4Addr::new(10, 64, 3, 1), Ipv4Addr::new(10, 255, 0, 1));
    Entry { aa: AA, tor_la, anycast_la, status: Status::Ok, version: 6 }
}

fn answer() -> Message {
    Message { kind: Kind::Answer, revision: 17, entries: vec![answer_entry()], ..question() }
}

fn with(kind: Kind, count: usize) -> Message {
    Message { kind, entries: vec![answer_entry(); count], ..question() }
}

#[test]
fn deconstruct() {
    let view = View::new(&ANSWER).unwrap();
    assert_eq!((view.kind(), view.service(), view.request_id()), (Kind::Answer, 7, 0x0102_0304_0506_0708));
    assert_eq!((view.revision(), view.key_id(), view.count()), (17, 3, 1));
    assert_eq!(view.entries().collect::<Vec<_>>(), [answer_entry()]);
    assert_eq!((view.entry(0), view.entry(1)), (Some(answer_entry()), None));
    assert_eq!(view.entries().len(), 1);
    assert_eq!(view.tag(), ANSWER[56..]);
}

#[test]
fn parse() {
    assert_eq!(Message::parse(&QUESTION), Ok(question()));
    assert_eq!(Message::parse(&ANSWER), Ok(answer()));
}

#[test]
fn emit() {
    for (message, path, datagram) in [(question(), PATH, QUESTION), (answer(), PATH.reversed(), ANSWER)] {
        let mut buffer = [0xa5; 74];
        assert_eq!(message.emit_into(&mut buffer, &key(), &path), Ok(72));
        assert_eq!(buffer[..72], datagram);
        assert_eq!(buffer[72..], [0xa5, 0xa5]);
        assert_eq!(message.emit(&key(), &path), datagram);
    }
}

#[test]
fn answered_in_place() {
    let mut buffer = QUESTION;
    let mut answer = AnswerMut::of_question(&mut buffer).unwrap();
    assert_eq!((answer.count(), answer.entry(1)), (1, None));
    let known = answer.entry(0).unwrap();
    assert_eq!((known.aa, known.version, known.status), (AA, 5, Status::Unknown));
    answer.set_entry(0, Entry { aa: Ipv4Addr::new(6, 6, 6, 6), ..answer_entry() });
    answer.set_entry(1, answer_entry());
    answer.set_revision(17);
    assert_eq!(answer.seal(&key(), &PATH.reversed()), ANSWER);
}

#[test]
fn entries_that_are_not_set_say_unknown_and_nothing_of_the_question() {
    let ask = Message { kind: Kind::Ask, entries: vec![answer_entry(); ENTRIES_MAX], ..question() };
    let mut buffer = ask.emit(&key(), &PATH);
    let sealed = AnswerMut::of_question(&mut buffer).unwrap().seal(&key(), &PATH.reversed());
    let nothing = Entry { status: Status::Unknown, ..Entry::question(AA, 6) };
    let expected = Message { kind: Kind::Answer, entries: vec![nothing; ENTRIES_MAX], ..ask };
    assert_eq!(Message::parse(sealed), Ok(expected));
    assert_eq!(View::new(sealed).unwrap().verify(&key(), &PATH.reversed()), Ok(()));
}

#[test]
fn every_question_has_its_answer_and_no_answer_has_one() {
    for kind in Kind::ALL {
        let count = usize::from(!matches!(kind, Kind::Ping | Kind::Pong));
        let mut buffer = with(kind, count).emit(&key(), &PATH);
        let before = buffer.clone();
        let answered =
            AnswerMut::of_question(&mut buffer).map(|answer| View::new(answer.seal(&key(), &PATH)).unwrap().kind());
        match kind {
            Kind::Ask => assert_eq!(answered, Ok(Kind::Answer)),
            Kind::ReportStale => assert_eq!(answered, Ok(Kind::Correct)),
            Kind::Ping => assert_eq!(answered, Ok(Kind::Pong)),
            _ => {
                assert_eq!(answered, Err(ParseError::Kind(kind as u16)));
                assert_eq!(buffer, before, "a datagram that is no question stays as it was");
            }
        }
    }
}

#[test]
fn the_tag_covers_every_bit_of_the_datagram() {
    for bit in 0..QUESTION.len() * 8 {
        let mut datagram = QUESTION;
        datagram[bit / 8] ^= 0x80 >> (bit % 8);
        let accepted = View::new(&datagram).is_ok_and(|view| view.verify(&key(), &PATH).is_ok());
        assert!(!accepted, "bit {bit}");
    }
    assert_eq!(View::new(&QUESTION).unwrap().verify(&key(), &PATH), Ok(()));
}

#[test]
fn the_tag_covers_the_path_its_direction_and_the_key() {
    let verify = |key: &Key, path: Path| View::new(&QUESTION).unwrap().verify(key, &path);
    let elsewhere = |address: [u8; 4], port| SocketAddrV4::new(Ipv4Addr::from(address), port);
    assert_eq!(verify(&key(), PATH.reversed()), Err(TagError));
    for source in [elsewhere([10, 64, 0, 2], 40000), elsewhere([10, 64, 0, 1], 40001)] {
        assert_eq!(verify(&key(), Path { source, ..PATH }), Err(TagError));
    }
    for destination in [elsewhere([10, 64, 1, 3], 5300), elsewhere([10, 64, 1, 2], 5301)] {
        assert_eq!(verify(&key(), Path { destination, ..PATH }), Err(TagError));
    }
    for byte in 0..16 {
        let mut other: [u8; 16] = std::array::from_fn(|index| index as u8);
        other[byte] ^= 1;
        assert_eq!(verify(&Key::from_bytes(other), PATH), Err(TagError));
    }
}

#[test]
fn malformed_datagrams_are_refused_with_the_reason() {
    let changed = |offset: usize, value: u8| {
        let mut datagram = QUESTION;
        datagram[offset] = value;
        View::new(&datagram).map(|view| view.kind()).unwrap_err()
    };
    assert_eq!(changed(0, 0x58), ParseError::Magic(0x5844));
    assert_eq!(changed(2, 0x21), ParseError::Version(2));
    assert_eq!(changed(2, 0x01), ParseError::Version(0));
    assert_eq!(changed(2, 0x10), ParseError::Kind(0));
    assert_eq!(changed(2, 0x17), ParseError::Kind(7));
    assert_eq!(changed(2, 0x15), ParseError::Count(1));
    assert_eq!(changed(3, 0), ParseError::Count(0));
    assert_eq!(changed(3, 41), ParseError::Count(41));
    assert_eq!(changed(3, 2), ParseError::Length { expected_bytes: 96, found_bytes: 72 });
    for reserved in [28, 29, 30, 31, 45, 46, 47] {
        assert_eq!(changed(reserved, 1), ParseError::Reserved, "byte {reserved}");
    }
}

#[test]
fn every_shorter_or_longer_datagram_is_refused() {
    for len in 0..48 {
        let error = View::new(&QUESTION[..len]).unwrap_err();
        assert_eq!(error, ParseError::Truncated { needed_bytes: 48, found_bytes: len });
    }
    for len in 48..72 {
        assert_eq!(View::new(&QUESTION[..len]).unwrap_err().reason(), "length");
    }
    let longer = [&QUESTION[..], &[0]].concat();
    assert_eq!(View::new(&longer).unwrap_err(), ParseError::Length { expected_bytes: 72, found_bytes: 73 });
}

#[test]
fn counts_per_kind() {
    for kind in Kind::ALL {
        for count in 0..=ENTRIES_MAX + 1 {
            let empty = matches!(kind, Kind::Ping | Kind::Pong);
            let allowed = if empty { count == 0 } else { (1..=40).contains(&count) };
            let mut buffer = [0xa5; 2048];
            let emitted = with(kind, count).emit_into(&mut buffer, &key(), &PATH);
            match emitted {
                Ok(len) if allowed => assert_eq!(Message::parse(&buffer[..len]), Ok(with(kind, count))),
                Err(error) if !allowed => assert_eq!(error, EmitError::Count { kind, count }),
                other => panic!("{kind:?} with {count} entries: {other:?}"),
            }
        }
    }
}

#[test]
fn lengths() {
    assert_eq!((datagram_len(0), datagram_len(1), DATAGRAM_LEN_MAX), (48, 72, 1008));
    let error = question().emit_into(&mut [0; 71], &key(), &PATH).unwrap_err();
    assert_eq!(error, EmitError::Buffer { needed_bytes: 72, found_bytes: 71 });
}

#[test]
fn code_points_both_ways() {
    for code in 0..=255 {
        assert_eq!(u8::from(Status::from(code)), code);
        assert_eq!(matches!(Status::from(code), Status::Other(_)), code > 5);
        assert_eq!(Kind::from_code(code).map(|kind| kind as u8), (1..=6).contains(&code).then_some(code));
    }
}

#[test]
fn siphash_is_the_reference_one() {
    // The vector for 15 bytes that the authors of SipHash publish for the 128-bit variant: the key is 00..0f, the input
    // 00..0e, of which the last 12 bytes are given as the path.
    let path = Path {
        source: SocketAddrV4::new(Ipv4Addr::new(3, 4, 5, 6), 0x0708),
        destination: SocketAddrV4::new(Ipv4Addr::new(9, 10, 11, 12), 0x0d0e),
    };
    let expected = [0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9];
    assert_eq!(key().tag(&[0, 1, 2], &path), expected);
}

#[test]
fn keys_from_text() {
    assert!(Key::from_hex("  000102030405060708090A0B0C0D0E0F\n").is_ok());
    assert_eq!("".parse::<Key>().unwrap_err(), KeyError::Length(0));
    assert_eq!(Key::from_hex("00").unwrap_err(), KeyError::Length(2));
    assert_eq!(Key::from_hex(&"0".repeat(31)).unwrap_err(), KeyError::Length(31));
    assert_eq!(Key::from_hex(&"0".repeat(33)).unwrap_err(), KeyError::Length(33));
    assert_eq!(Key::from_hex("0x000102030405060708090a0b0c0d0e").unwrap_err(), KeyError::Digit(2));
    assert_eq!(Key::from_hex("é").unwrap_err(), KeyError::Digit(1));
}

#[test]
fn keys_are_derived_for_one_service_and_one_address() {
    let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f").unwrap();
    let la = Ipv4Addr::new(10, 64, 0, 1);
    // From an independent implementation: over "weft/ak1", the service and the address.
    assert_eq!(secret.derive(7, la).to_hex(), "a196a220a2eb94c115a21a8a14dd6040");
    let all = [
        secret.derive(7, la),
        secret.derive(8, la),
        secret.derive(7, Ipv4Addr::new(10, 64, 0, 2)),
        Secret::from_bytes([9; 16]).derive(7, la),
        key(),
    ];
    let mut texts: Vec<_> = all.iter().map(Key::to_hex).collect();
    assert!(texts.iter().all(|text| Key::from_hex(text).is_ok_and(|key| key.to_hex() == *text)));
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), all.len());
}

#[test]
fn keys_are_not_printed() {
    assert_eq!(format!("{:?} {:#?}", key(), key()), "Key(secret) Key(secret)");
    assert_eq!(format!("{:?}", Secret::from_bytes([1; 16])), "Secret(secret)");
}
