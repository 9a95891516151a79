//! The bodies.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_wire::directory::update::{UPDATE_LEN, UpdateFrame, VerdictFrame};
use weft_wire::directory::{AnswerMut, Entry, Key, Kind, Message, Path, Status, TAG_LEN, View};
use weft_wire::flow::{FiveTuple, HASH_SOURCE_BLOCK, HASH_SOURCE_MASK, flow_hash, hash_source};
use weft_wire::print::{Frame, Packet};
use weft_wire::vl2::{DecapError, OVERHEAD_BYTES, Stack, combine_ecn, decapsulate_one, encapsulate};
use weft_wire::{arp, checksum, ethernet, icmp, ipv4, udp};

const AGENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 11), 40000);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 1, 12), 5300);
const TOR_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 3, 1);
const ANYCAST_LA: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// The longest line that a person is shown, bytes: four headers and three directory entries stay well below.
const LINE_LEN_MAX: usize = 1000;

/// The key of every tag made here.
pub(crate) const fn key() -> Key {
    Key::from_bytes(*b"weft fuzzing key")
}

/// The path of every question made here.
pub(crate) const fn path() -> Path {
    Path { source: AGENT, destination: SERVER }
}

/// Any bytes as a directory datagram: read, written again, answered in place, printed.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn directory_datagram(bytes: &[u8]) {
    let view = match View::new(bytes) {
        Ok(view) => view,
        Err(error) => {
            assert_eq!(Message::parse(bytes), Err(error), "view and value refuse alike");
            assert!(!error.reason().is_empty() && !error.to_string().is_empty());
            let mut copy = bytes.to_vec();
            assert_eq!(AnswerMut::of_question(&mut copy).err(), Some(error));
            assert_eq!(copy, bytes, "what is refused is not altered");
            return;
        }
    };
    check_line(&view.to_string());
    let message = view.to_message();
    let again = message.emit(&key(), &path());
    let covered = bytes.len() - TAG_LEN;
    assert_eq!(again[..covered], bytes[..covered], "read and written again");
    assert_eq!(
        again[covered..] == bytes[covered..],
        view.verify(&key(), &path()).is_ok(),
        "only the right tag verifies"
    );
    answer_in_place(again, &message);
}

/// Any bytes as an update and as a verdict of a session: what is read is written as it was.
///
/// # Panics
/// When an invariant of a format is broken.
pub fn directory_update(bytes: &[u8]) {
    if let Ok(update) = UpdateFrame::parse(bytes) {
        assert_eq!(update.emit(), bytes[..UPDATE_LEN], "read and written again");
    }
    if let Ok((verdict, length)) = VerdictFrame::parse(bytes) {
        let mut again = Vec::new();
        verdict.emit_to(&mut again);
        assert_eq!(again, bytes[..length], "read and written again");
        assert!(VerdictFrame::parse(&bytes[..length - 1]).is_err(), "no part of a verdict is one");
    }
}

fn answer_in_place(mut datagram: Vec<u8>, question: &Message) {
    let question_len = datagram.len();
    let Ok(mut answer) = AnswerMut::of_question(&mut datagram) else {
        assert!(matches!(question.kind, Kind::Answer | Kind::Correct | Kind::Pong), "questions can be answered");
        return;
    };
    let located = |aa| Entry { tor_la: TOR_LA, anycast_la: ANYCAST_LA, status: Status::Ok, ..Entry::question(aa, 9) };
    for index in 0..answer.count() {
        answer.set_entry(index, located(Ipv4Addr::UNSPECIFIED));
    }
    answer.set_revision(17);
    let sealed = answer.seal(&key(), &path().reversed());
    assert_eq!(sealed.len(), question_len, "an answer is as long as its question");
    let view = View::new(sealed).expect("an answer is well formed");
    assert_eq!(view.verify(&key(), &path().reversed()), Ok(()));
    let expected = Message {
        kind: question.kind.answer().expect("the kind has an answer"),
        revision: 17,
        entries: question.entries.iter().map(|asked| located(asked.aa)).collect(),
        ..question.clone()
    };
    assert_eq!(view.to_message(), expected);
}

/// Any bytes as an Ethernet frame and as everything that can be inside one: printed, read and written again.
///
/// # Panics
/// When an invariant of a format is broken.
pub fn any_frame(bytes: &[u8]) {
    check_line(&Frame(bytes).to_string());
    check_line(&Packet(bytes).to_string());
    if let Ok(header) = ethernet::Header::parse(bytes) {
        assert_eq!(header.emit_with(&bytes[ethernet::HEADER_LEN..]), bytes);
        inside_a_frame(&bytes[ethernet::HEADER_LEN..]);
    }
    inside_a_frame(bytes);
}

fn inside_a_frame(bytes: &[u8]) {
    if let Ok(packet) = arp::Packet::parse(bytes) {
        assert_eq!(packet.to_frame()[ethernet::HEADER_LEN..], bytes[..arp::PACKET_LEN]);
    }
    if let Ok(view) = ipv4::View::new(bytes) {
        assert_eq!(view.payload().len() + view.header_len(), view.total_len());
        let _ = udp::View::new(view.payload()).map(|datagram| directory_datagram(datagram.payload()));
    }
    if let Ok(header) = ipv4::Header::parse(bytes) {
        same_header(&header, bytes);
    }
    five_tuple(bytes);
    if let Ok(message) = icmp::fragmentation_needed(bytes, Ipv4Addr::new(20, 0, 0, 1), 1460) {
        error_message(&message, bytes);
    }
}

/// Written again, the header is the same; a checksum of all ones is the other way to write zero.
fn same_header(header: &ipv4::Header, bytes: &[u8]) {
    let mut again = [0xa5; ipv4::HEADER_LEN];
    header.emit_into(&mut again);
    if bytes[10..12] == [0xff, 0xff] {
        again[10..12].fill(0xff);
    }
    assert_eq!(again, bytes[..ipv4::HEADER_LEN]);
}

fn five_tuple(bytes: &[u8]) {
    let Ok(tuple) = FiveTuple::of_ipv4(bytes) else {
        assert!(ipv4::View::new(bytes).is_err(), "every packet has a five-tuple");
        return;
    };
    let source = u32::from(hash_source(flow_hash(&tuple)));
    assert_eq!(Ipv4Addr::from(source & !HASH_SOURCE_MASK), HASH_SOURCE_BLOCK);
}

fn error_message(message: &[u8], about: &[u8]) {
    let header = ipv4::Header::parse(message).expect("an error message is a packet");
    assert!(message.len() <= icmp::ERROR_LEN_MAX);
    assert_eq!(checksum::of(&message[ipv4::HEADER_LEN..]), 0);
    let view = icmp::View::new(&message[ipv4::HEADER_LEN..]).expect("an error message is ICMP");
    assert_eq!(view.next_hop_mtu(), Some(1460));
    assert!(about.starts_with(view.payload()), "it quotes the packet it is about");
    let quoted = ipv4::View::of_prefix(view.payload()).expect("the quotation holds the header");
    assert_eq!(quoted.source(), header.destination, "it goes to the sender");
}

/// Any bytes as a packet between servers, encapsulated and decapsulated, and as a stack that comes from elsewhere.
///
/// # Panics
/// When an invariant of the stack is broken.
pub fn vl2_stack(bytes: &[u8]) {
    if let Ok(view) = ipv4::View::new(bytes) {
        through_the_fabric(view.as_bytes());
    }
    if let Ok((stack, inner)) = Stack::parse(bytes) {
        let again = encapsulate(inner, &stack).expect("what was a stack becomes one again");
        assert!(bytes.starts_with(&again), "read and written again");
    }
    match decapsulate_one(bytes) {
        Ok(packet) => decapsulated(bytes, &packet),
        Err(error) => assert!(!error.reason().is_empty() && !error.to_string().is_empty()),
    }
}

fn through_the_fabric(inner: &[u8]) {
    let stack = Stack::for_packet(inner, TOR_LA, ANYCAST_LA).expect("a packet has a flow");
    let Ok(packet) = encapsulate(inner, &stack) else {
        assert!(inner.len() + OVERHEAD_BYTES > ipv4::PACKET_LEN_MAX, "only what is too long is refused");
        return;
    };
    assert_eq!(Stack::parse(&packet), Ok((stack, inner)));
    let after_intermediate = decapsulate_one(&packet).expect("the Intermediate's header comes off");
    assert_eq!(decapsulate_one(&after_intermediate).as_deref(), Ok(inner), "decapsulation undoes encapsulation");
}

/// Decapsulation changes nothing but the ECN field and the checksum's share of it.
fn decapsulated(outer: &[u8], packet: &[u8]) {
    let outer = ipv4::View::new(outer).expect("what was decapsulated is a packet");
    let mut expected = outer.payload().to_vec();
    let inner = ipv4::View::new(&expected).expect("what is inside is a packet");
    let ecn = combine_ecn(inner.ecn(), outer.ecn()).ok_or(DecapError::CongestionOnNotEct).expect("it was not dropped");
    let was_intact = inner.verify_checksum().is_ok();
    ipv4::set_ecn(&mut expected, ecn).expect("what is inside is a packet");
    assert_eq!(packet, expected);
    let is_intact = ipv4::View::new(packet).is_ok_and(|view| view.verify_checksum().is_ok());
    assert_eq!(is_intact, was_intact, "a good checksum stays good, a bad one bad");
}

fn check_line(line: &str) {
    assert!(!line.contains('\n') && line.len() <= LINE_LEN_MAX, "one line that can be read: {line}");
}
