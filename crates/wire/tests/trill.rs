//! TRILL data frames against captures that other code made, in both directions, and every way to be cut.

#[allow(unreachable_pub)]
mod captures;

use captures::frames;
use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::isis::{SystemId, View as IsIs};
use weft_wire::trill::channel::{BFD_CONTROL, ChannelHeader, Echo};
use weft_wire::trill::elided;
use weft_wire::trill::frame::{self, FINE_GRAINED, Label, RBRIDGE_CHANNEL, View};
use weft_wire::trill::{ALL_EGRESS_RBRIDGES, ALL_RBRIDGES, ETHERTYPE, FlagsWord, Header, nickname};
use weft_wire::{ParseError, vxlan};

const HOST_A: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 0x0a]);
const HOST_B: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 0x0b]);
const N1: u16 = 0x11;
const N2: u16 = 0x22;
const ROOT: u16 = 0x33;
const VLAN_10: Label = Label::Vlan { vlan: 10, priority: 0 };

fn rb(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

/// What a data frame should say.
struct Expected {
    outer: (MacAddress, MacAddress, Option<u16>),
    header: Header,
    inner: (MacAddress, MacAddress, Label, u16),
}

/// The frame says it, and is written again byte by byte (but for the padding of short frames).
fn same(captured: &[u8], expected: &Expected) {
    let view = View::new(captured).unwrap();
    assert_eq!((view.outer_destination(), view.outer_source(), view.outer_vlan()), expected.outer);
    assert_eq!(view.header(), expected.header);
    let inner = (view.inner_destination(), view.inner_source(), view.label(), view.inner_ethertype());
    assert_eq!(inner, expected.inner);
    let (destination, source, label, kind) = expected.inner;
    let body =
        [expected.header.to_bytes(), frame::emit_inner(destination, source, label, kind, view.payload())].concat();
    let (destination, source, vlan) = expected.outer;
    let again = match vlan {
        None => ethernet::Header { destination, source, ethertype: ETHERTYPE }.emit_with(&body),
        Some(vlan) => {
            let tagged = [&vlan.to_be_bytes()[..], &ETHERTYPE.to_be_bytes(), &body].concat();
            ethernet::Header { destination, source, ethertype: ethertype::VLAN }.emit_with(&tagged)
        }
    };
    assert_eq!(again, captured);
}

#[test]
fn unicast_before_and_after_a_transit() {
    let captured = frames("data-unicast");
    let header = Header { hop_count: 10, ..Header::unicast(N1, N2) };
    let inner = (HOST_B, HOST_A, VLAN_10, ethertype::IPV4);
    same(&captured[0], &Expected { outer: (rb(3), rb(1), None), header, inner });
    let header = Header { hop_count: 9, ..header };
    same(&captured[1], &Expected { outer: (rb(2), rb(3), Some(1)), header, inner });
}

#[test]
fn multi_destination() {
    let header = Header { multi_destination: true, hop_count: 4, ..Header::unicast(N1, ROOT) };
    let inner = (MacAddress::BROADCAST, HOST_A, VLAN_10, ethertype::ARP);
    same(&frames("data-multidest")[0], &Expected { outer: (ALL_RBRIDGES, rb(1), None), header, inner });
}

#[test]
fn flags_word() {
    let header = Header { flags: Some(FlagsWord(0)), ..Header::unicast(N1, N2) };
    let inner = (HOST_B, HOST_A, VLAN_10, ethertype::IPV4);
    same(&frames("data-flagsword")[0], &Expected { outer: (rb(2), rb(1), None), header, inner });
}

#[test]
fn fine_grained_label() {
    let label = Label::FineGrained { label: 0x12_3456, priority: 0, priority_original: 0 };
    let inner = (HOST_B, HOST_A, label, ethertype::IPV4);
    let captured = frames("data-fgl");
    same(&captured[0], &Expected { outer: (rb(2), rb(1), None), header: Header::unicast(N1, N2), inner });
    let mut other_second = captured[0].clone();
    let at = other_second.windows(2).rposition(|two| two == FINE_GRAINED.to_be_bytes()).unwrap();
    other_second[at] = 0x81;
    assert!(matches!(View::new(&other_second), Err(ParseError::Protocol(0x813b))), "RFC 7172 section 2.3: dropped");
}

#[test]
fn channel_esadi_and_oam() {
    let label = Label::Vlan { vlan: 1, priority: 7 };
    let inner = (ALL_EGRESS_RBRIDGES, rb(1), label, RBRIDGE_CHANNEL);
    let header = Header::unicast(N1, nickname::ANY_RBRIDGE);
    let channel = &frames("rbchannel-bfd")[0];
    same(channel, &Expected { outer: (rb(2), rb(1), None), header, inner });
    let payload = View::new(channel).unwrap().payload();
    let told = ChannelHeader::parse(payload).unwrap();
    assert_eq!((told.protocol, told.multi_hop, told.native, told.error), (BFD_CONTROL, false, false, 0));
    assert_eq!(told.to_bytes(), payload[..4]);

    let header = Header { multi_destination: true, ..Header::unicast(N1, ROOT) };
    let inner = (ALL_EGRESS_RBRIDGES, rb(1), VLAN_10, weft_wire::isis::ETHERTYPE);
    same(&frames("esadi")[0], &Expected { outer: (ALL_RBRIDGES, rb(1), None), header, inner });

    let header = Header { alert: true, hop_count: 1, ..Header::unicast(N1, N2) };
    let inner = (HOST_B, HOST_A, VLAN_10, ethertype::IPV4);
    same(&frames("oam-pathtrace")[0], &Expected { outer: (rb(2), rb(1), None), header, inner });
}

#[test]
fn neighbours_are_not_taken_for_trill() {
    let bpdu = &frames("rstp-bpdu")[0];
    assert!(matches!(View::new(bpdu), Err(ParseError::Protocol(0..1536))), "a length, not an Ethertype");
    assert!(IsIs::new(&bpdu[ethernet::HEADER_LEN..]).is_err());
    let overlay = &frames("vxlan")[0];
    assert_eq!(View::new(overlay).err(), Some(ParseError::Protocol(ethertype::IPV4)));
    let udp_payload = &overlay[ethernet::HEADER_LEN + 20 + 8..];
    assert_eq!(vxlan::Header::parse(udp_payload).map(|header| header.vni), Ok(5000));
}

#[test]
fn what_is_cut_before_the_payload_is_refused() {
    for name in ["data-unicast", "data-multidest", "data-flagsword", "data-fgl"] {
        for captured in frames(name) {
            let header_len = captured.len() - View::new(&captured).unwrap().payload().len();
            for len in 0..captured.len() {
                assert_eq!(View::new(&captured[..len]).is_ok(), len >= header_len, "{name} cut to {len}");
            }
        }
    }
}

#[test]
fn an_inner_frame_without_a_label_is_refused() {
    let mut untagged = frames("data-unicast")[0].clone();
    untagged[14 + 6 + 12..14 + 6 + 14].copy_from_slice(&[0x08, 0x00]);
    assert_eq!(View::new(&untagged).err(), Some(ParseError::Protocol(0x0800)));
}

/// By hand: the short form of the captured frame of an independent writer.
#[test]
fn without_its_outer_header_a_frame_is_14_bytes_shorter() {
    let full = &frames("data-unicast")[0];
    let short = elided::emit(full).unwrap().unwrap();
    assert_eq!(short.len() + 14, full.len());
    let head = [
        &[2, 0xbb, 0, 0, 0, 0x0b][..], // inner destination and source
        &[2, 0xaa, 0, 0, 0, 0x0a],
        &[0x88, 0xb5],                         // instead of the tag's 8100
        &[0x00, 0x0a, 0x00, 0x22, 0x00, 0x11], // hop count 10, egress, ingress
        &[0x00, 0x0a, 0x08, 0x00],             // VLAN 10, IPv4
    ]
    .concat();
    assert_eq!(short[..24], head);
    assert_eq!(short[24..], full[38..]);
    let (view, before) = (elided::View::new(&short).unwrap(), View::new(full).unwrap());
    assert_eq!(view.header(), before.header());
    assert_eq!((view.inner_destination(), view.inner_source()), (HOST_B, HOST_A));
    assert_eq!((view.label(), view.inner_ethertype(), view.payload()), (VLAN_10, ethertype::IPV4, before.payload()));

    let many = elided::emit(&frames("data-multidest")[0]).unwrap().unwrap();
    let view = elided::View::new(&many).unwrap();
    assert!(view.header().multi_destination && view.inner_destination() == MacAddress::BROADCAST);
}

#[test]
fn what_the_short_form_cannot_say_keeps_its_outer_header() {
    for name in ["data-flagsword", "data-fgl"] {
        assert_eq!(elided::emit(&frames(name)[0]), Ok(None), "{name}");
    }
    let captured = frames("data-unicast");
    assert_eq!(elided::emit(&captured[1]), Ok(None), "an outer tag");
    let mut to_bridges = captured[0].clone();
    to_bridges[20..26].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    assert_eq!(elided::emit(&to_bridges), Ok(None));
    assert!(elided::emit(&captured[0][..30]).is_err());
}

#[test]
fn a_short_form_is_checked() {
    let short = elided::emit(&frames("data-unicast")[0]).unwrap().unwrap();
    for length in 0..elided::LEN {
        assert!(matches!(elided::View::new(&short[..length]), Err(ParseError::Truncated { .. })), "{length}");
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = short.clone();
        bytes[at] = byte;
        elided::View::new(&bytes).map(|_| ()).unwrap_err()
    };
    assert_eq!(with(13, 0xb6), ParseError::Protocol(0x88b6));
    assert_eq!(with(14, 0x40), ParseError::Version(1));
    assert_eq!(with(14, 0x04), ParseError::Reserved);
    assert_eq!(with(15, 0x4a), ParseError::Reserved, "a flags word");
}

#[test]
fn an_echo_comes_back_as_it_left_and_one_hop_older() {
    let echo = Echo { system: SystemId([2, 0, 0, 0, 0, 1]), port: 7, session: 0x0102_0304_0506_0708, number: 9 };
    let mut frame = echo.emit(rb(2), rb(1), N1);
    let view = View::new(&frame).unwrap();
    assert_eq!(view.header(), Header::unicast(N1, N1));
    assert_eq!((view.outer_destination(), view.outer_source()), (rb(2), rb(1)));
    let inner = (view.inner_destination(), view.inner_source(), view.label(), view.inner_ethertype());
    assert_eq!(inner, (ALL_EGRESS_RBRIDGES, rb(1), Label::Vlan { vlan: 1, priority: 7 }, RBRIDGE_CHANNEL));
    assert_eq!(view.payload()[..4], [0, 3, 0xc0, 0], "BFD Echo; silent, multi-hop");
    assert_eq!(Echo::parse(&frame), Ok((echo, 0)));
    frame[15] -= 1;
    assert_eq!(Echo::parse(&frame), Ok((echo, 1)));
    for length in 0..frame.len() {
        assert!(Echo::parse(&frame[..length]).is_err(), "{length}");
    }
    let channel = frame.len() - 24;
    for (at, value, why) in [
        (channel, 0x10, ParseError::Version(1)),
        (channel + 1, 2, ParseError::Kind(2)),
        (channel + 2, 0x80, ParseError::Kind(3)),
        (channel - 1, 0, ParseError::Protocol(0x8900)),
        (20, 0, ParseError::Protocol(RBRIDGE_CHANNEL)),
    ] {
        let mut other = frame.clone();
        other[at] = value;
        assert_eq!(Echo::parse(&other), Err(why), "{at}");
    }
}
