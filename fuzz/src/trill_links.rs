//! The bodies for what only two neighbours on a TRILL link tell each other: Echoes, frames without their outer header, and restarts.

use weft_wire::ethernet::{self, MacAddress};
use weft_wire::isis::SystemId;
use weft_wire::isis::hello::Restart;
use weft_wire::isis::tlv::code;
use weft_wire::trill::channel::{ChannelHeader, Echo};
use weft_wire::trill::frame::{self, Label};
use weft_wire::trill::{ETHERTYPE, FlagsWord, HOP_COUNT_MAX, Header, elided};

use crate::seeds::{Seed, changed};

/// Length of a channel message's header, bytes.
const CHANNEL_LEN: usize = 4;

const US: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 1]);
const NEIGHBOR: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 2]);

/// Any bytes as an RBridge Channel message and as a BFD Echo that came back: read and written again.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn trill_echo(bytes: &[u8]) {
    if let Ok(header) = ChannelHeader::parse(bytes) {
        assert_eq!(ChannelHeader::parse(&header.to_bytes()), Ok(header), "no field is lost");
    }
    let Ok((echo, forwarded)) = Echo::parse(bytes) else { return };
    let view = frame::View::new(bytes).expect("an Echo is a data frame");
    let header = view.header();
    assert_eq!(header.hop_count + forwarded, HOP_COUNT_MAX);
    let sent = echo.emit(view.outer_destination(), view.outer_source(), header.ingress);
    assert_eq!(Echo::parse(&sent), Ok((echo, 0)), "what was sent nobody has forwarded yet");
    let sent = frame::View::new(&sent).expect("an Echo is a data frame");
    let (sent, told) = (&sent.payload()[CHANNEL_LEN..], &view.payload()[CHANNEL_LEN..]);
    assert!(told.starts_with(sent), "what it holds is not changed, padding follows");
}

/// Any bytes as a data frame whose outer header is left out, and as one in the short form: both say the same.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn trill_elided(bytes: &[u8]) {
    if let Ok(short) = elided::View::new(bytes) {
        assert!(short.header().flags.is_none() && matches!(short.label(), Label::Vlan { .. }));
        assert_eq!(short.payload().len() + elided::LEN, bytes.len());
    }
    let short = match elided::emit(bytes) {
        Err(error) => return assert_eq!(frame::View::new(bytes).err(), Some(error), "refused like the full form"),
        Ok(None) => return,
        Ok(Some(short)) => short,
    };
    let full = frame::View::new(bytes).expect("it has a short form");
    assert_eq!(short.len() + elided::SAVED_LEN, bytes.len());
    let read = elided::View::new(&short).expect("what was written is read");
    assert_eq!((read.header(), read.label()), (full.header(), full.label()));
    assert_eq!((read.inner_destination(), read.inner_source()), (full.inner_destination(), full.inner_source()));
    assert_eq!((read.inner_ethertype(), read.payload()), (full.inner_ethertype(), full.payload()));
    assert!(frame::View::new(&short).is_err(), "nobody takes it for the full form");
}

/// Frames of both kinds, good ones and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let in_target = |target| move |(name, bytes)| Seed { target, name, bytes };
    echoes()
        .into_iter()
        .map(in_target("trill_echo"))
        .chain(frames().into_iter().map(in_target("trill_elided")))
        .chain(restarts().into_iter().map(in_target("isis_tlv")))
        .collect()
}

/// Restart TLVs: type, then the value.
fn restarts() -> Vec<(&'static str, Vec<u8>)> {
    let answer = [code::RESTART, Restart::ACKNOWLEDGEMENT, 0, 30, 0x0a, 0, 0, 0, 0, 1];
    vec![
        ("restart-request", vec![code::RESTART, Restart::REQUEST]),
        ("restart-answer", answer.to_vec()),
        ("restart-answer-p2p", answer[..4].to_vec()),
        ("restart-cut-in-time", answer[..3].to_vec()),
        ("restart-cut-in-system", answer[..9].to_vec()),
        ("restart-of-nothing", vec![code::RESTART]),
        ("restart-longer", [&answer[..], &[0]].concat()),
    ]
}

fn echoes() -> Vec<(&'static str, Vec<u8>)> {
    let echo = Echo { system: SystemId([0x02, 0, 0, 0, 0, 1]), port: 3, session: 0x0102_0304_0506_0708, number: 9 };
    let sent = echo.emit(NEIGHBOR, US, 0x11);
    // Behind the outer header: TRILL's, the inner addresses and tag, and the inner Ethertype.
    let channel_at = sent.len() - 20 - CHANNEL_LEN;
    let hop_count_at = ethernet::HEADER_LEN + 1;
    vec![
        ("sent", sent.clone()),
        ("returned", changed(&sent, hop_count_at, HOP_COUNT_MAX - 1)),
        ("detour", changed(&sent, hop_count_at, HOP_COUNT_MAX - 5)),
        ("hop-count-0", changed(&sent, hop_count_at, 0)),
        ("padded", [&sent[..], &[0; 18]].concat()),
        ("cut", sent[..sent.len() - 1].to_vec()),
        ("cut-in-channel", sent[..channel_at + 3].to_vec()),
        ("channel-version-1", changed(&sent, channel_at, 0x10)),
        ("bfd-control", changed(&sent, channel_at + 1, 2)),
        ("not-multi-hop", changed(&sent, channel_at + 2, 0x80)),
        ("to-many", changed(&sent, ethernet::HEADER_LEN, 0x08)),
        ("other-ethertype", changed(&sent, channel_at - 1, 0x47)),
        ("channel-header", vec![0, 3, 0xe0, 0x07]),
    ]
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let vlan = Label::Vlan { vlan: 7, priority: 3 };
    let of = |header: Header, inner_destination, label| {
        let inner = frame::emit_inner(inner_destination, US, label, ethernet::ethertype::IPV4, b"payload");
        let body = [header.to_bytes(), inner].concat();
        ethernet::Header { destination: NEIGHBOR, source: US, ethertype: ETHERTYPE }.emit_with(&body)
    };
    let unicast = Header::unicast(0x11, 0x22);
    let full = of(unicast, NEIGHBOR, vlan);
    let short = elided::emit(&full).ok().flatten().expect("the seed has a short form");
    let fine = Label::FineGrained { label: 0x12_3456, priority: 1, priority_original: 2 };
    let tagged = [&full[..12], &[0x81, 0, 0, 7], &full[12..]].concat();
    vec![
        ("full", full.clone()),
        ("short", short.clone()),
        ("full-without-payload", full[..full.len() - 7].to_vec()),
        ("short-without-payload", short[..elided::LEN].to_vec()),
        ("short-cut", short[..elided::LEN - 1].to_vec()),
        ("to-many", of(Header { multi_destination: true, ..unicast }, MacAddress([0xff; 6]), vlan)),
        ("hop-count-0", of(Header { hop_count: 0, ..unicast }, NEIGHBOR, vlan)),
        ("flags-word", of(Header { flags: Some(FlagsWord(1)), ..unicast }, NEIGHBOR, vlan)),
        ("short-flags-word", changed(&short, ethernet::HEADER_LEN + 1, 0x7f)),
        ("fine-grained", of(unicast, NEIGHBOR, fine)),
        ("bridge-group", of(unicast, MacAddress([0x01, 0x80, 0xc2, 0, 0, 0]), vlan)),
        ("outer-tag", tagged),
        ("vlan-4095", of(unicast, MacAddress([0, 1, 2, 3, 4, 5]), Label::Vlan { vlan: 4095, priority: 7 })),
    ]
}
