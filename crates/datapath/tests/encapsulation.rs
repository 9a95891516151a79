//! A server's egress: whole frames in, whole frames and verdicts out (VL2 4.2.1, 4.2.2; RFC 2003; RFC 6040 4.1).

mod common;

use std::net::Ipv4Addr;

use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::host::{HostDatapath, Mapping};
use weft_datapath::{AGENT_MARK, DatapathError};

fn send(host: &HostDatapath, frame: &[u8]) -> (Verdict, Vec<u8>) {
    let output = host.run(&FrameInput { bytes: frame, ..FrameInput::default() }).expect("the program runs");
    (output.verdict, output.bytes)
}

#[test]
fn a_packet_to_a_known_aa_gets_both_headers() {
    let Some(host) = host() else { return };
    let packet = Ipv4::default();
    let (verdict, frame) = send(&host, &packet.frame());
    assert_eq!(verdict, Verdict::Next);
    assert_frame(&frame, &encapsulated(&packet.bytes()));
    assert_eq!(counted(host.counters().unwrap()), [("encapsulated", 1)]);
}

#[test]
fn type_of_service_and_ecn_are_copied_to_both_headers() {
    let Some(host) = host() else { return };
    for tos in 0..=255 {
        let packet = Ipv4 { tos, ..Ipv4::default() };
        assert_frame(&send(&host, &packet.frame()).1, &encapsulated(&packet.bytes()));
    }
}

#[test]
fn inner_ttl_options_and_every_length_survive() {
    let Some(host) = host() else { return };
    for ttl in [0, 1, 2, 64, 255] {
        let packet = Ipv4 { ttl, ..Ipv4::default() };
        assert_frame(&send(&host, &packet.frame()).1, &encapsulated(&packet.bytes()));
    }
    for words in 1..=10 {
        let packet = Ipv4 { options: vec![1; words * 4], ..Ipv4::default() };
        assert_frame(&send(&host, &packet.frame()).1, &encapsulated(&packet.bytes()));
    }
    for length in 0..=1540 {
        let packet = Ipv4 { payload: vec![0xab; length], ..Ipv4::default() };
        assert_frame(&send(&host, &packet.frame()).1, &encapsulated(&packet.bytes()));
    }
}

#[test]
fn padding_behind_the_packet_stays_outside_the_lengths() {
    let Some(host) = host() else { return };
    let packet = Ipv4 { payload: vec![1, 2, 3, 4], ..Ipv4::default() };
    let mut frame = packet.frame();
    frame.resize(60, 0);
    let mut expected = encapsulated(&packet.bytes());
    expected.resize(100, 0);
    assert_frame(&send(&host, &frame).1, &expected);
}

#[test]
fn the_flow_hash_equals_the_one_in_rust_over_random_packets() {
    let Some(host) = host() else { return };
    let mut random = Random(0x5eed);
    let mut sources = std::collections::HashSet::new();
    for _ in 0..5000 {
        let protocol = [6, 17, 1, 47, 132, 4][random.below(6) as usize];
        let fragment = [0, 0x4000, 0x2000, 0x0001, 0x3fff][random.below(5) as usize];
        let options = vec![1; 4 * random.below(11) as usize];
        let length = random.below(120) as usize;
        let payload = random.bytes(length);
        let source = Ipv4Addr::from(random.next() as u32);
        let packet = Ipv4 { protocol, fragment, options, payload, source, ..Ipv4::default() };
        let bytes = packet.bytes();
        assert_frame(&send(&host, &packet.frame()).1, &encapsulated(&bytes));
        sources.insert(source_of(&bytes));
    }
    assert!(sources.len() > 4900, "5000 random flows spread over {} sources only", sources.len());
}

#[test]
fn traffic_that_is_not_for_an_aa_passes_untouched() {
    let Some(host) = host() else { return };
    let to_la = Ipv4 { destination: Ipv4Addr::new(10, 64, 0, 1), ..Ipv4::default() };
    let dhcp = Ipv4 { source: Ipv4Addr::UNSPECIFIED, destination: Ipv4Addr::BROADCAST, ..Ipv4::default() };
    let ospf =
        Ipv4 { source: Ipv4Addr::new(10, 64, 0, 2), destination: Ipv4Addr::new(224, 0, 0, 5), ..Ipv4::default() };
    let ipv6 = ethernet(OTHER_MAC, SERVER_MAC, 0x86dd, &[0x60; 60]);
    for frame in [to_la.frame(), dhcp.frame(), ospf.frame(), ipv6] {
        assert_eq!(send(&host, &frame), (Verdict::Next, frame));
    }
    assert_eq!(counted(host.counters().unwrap()), [("passed", 4)]);
}

/// A tag is no way past the checks of source, headers and rate.
#[test]
fn frames_with_a_vlan_tag_do_not_leave() {
    let Some(host) = host() else { return };
    let foreign = Ipv4 { source: Ipv4Addr::new(10, 9, 9, 9), ..Ipv4::default() }.bytes();
    let made_up = wrapped(&Ipv4::default().bytes(), Ipv4Addr::new(100, 64, 0, 1), ANYCAST, 0);
    for packet in [foreign, made_up, Ipv4::default().bytes()] {
        for (kind, vlan) in [(0x8100, 5), (0x8100, 0), (0x88a8, 5)] {
            let frame = ethernet(OTHER_MAC, SERVER_MAC, kind, &[&[0, vlan, 8, 0][..], &packet[..]].concat());
            assert_eq!(send(&host, &frame), (Verdict::Drop, frame));
        }
    }
    assert_eq!(counted(host.counters().unwrap()), [("tagged", 9)]);
}

#[test]
fn broadcast_and_multicast_of_the_virtual_layer_2_are_dropped_and_counted() {
    let Some(host) = host() else { return };
    let addresses = [
        Ipv4Addr::new(20, 255, 255, 255),
        Ipv4Addr::new(20, 0, 0, 0),
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 251),
        Ipv4Addr::new(239, 255, 255, 255),
    ];
    for destination in addresses {
        let frame = Ipv4 { destination, ..Ipv4::default() }.frame();
        assert_eq!(send(&host, &frame), (Verdict::Drop, frame));
    }
    assert_eq!(counted(host.counters().unwrap()), [("broadcast_unsupported", 5)]);
}

#[test]
fn a_packet_without_a_mapping_goes_to_the_agent_once() {
    let Some(host) = host() else { return };
    let frame = Ipv4 { destination: Ipv4Addr::new(20, 9, 9, 9), ..Ipv4::default() }.frame();
    assert_eq!(send(&host, &frame), (Verdict::Redirect, frame.clone()));
    let again = host.run(&FrameInput { bytes: &frame, mark: AGENT_MARK, ..FrameInput::default() }).unwrap();
    assert_eq!((again.verdict, again.bytes), (Verdict::Drop, frame));
    assert_eq!(counted(host.counters().unwrap()), [("packet_miss", 1), ("no_mapping", 1)]);
}

#[test]
fn what_the_agent_sends_again_is_encapsulated_once_the_mapping_is_there() {
    let Some(host) = host() else { return };
    let packet = Ipv4::default();
    let output = host.run(&FrameInput { bytes: &packet.frame(), mark: AGENT_MARK, ..FrameInput::default() }).unwrap();
    assert_eq!(output.verdict, Verdict::Next);
    assert_frame(&output.bytes, &encapsulated(&packet.bytes()));
}

#[test]
fn a_refused_aa_is_dropped_not_asked_again() {
    let Some(host) = host() else { return };
    host.set(PEER_AA, &Mapping { refused: true, ..MAPPING }).unwrap();
    let frame = Ipv4::default().frame();
    assert_eq!(send(&host, &frame), (Verdict::Drop, frame));
    assert_eq!(counted(host.counters().unwrap()), [("refused", 1)]);
}

#[test]
fn what_would_not_fit_the_underlay_goes_to_the_agent_and_never_in_silence() {
    let Some(host) = host() else { return };
    let sized = |bytes: usize| Ipv4 { payload: vec![0; bytes - 20], ..Ipv4::default() };
    assert_frame(&send(&host, &sized(1560).frame()).1, &encapsulated(&sized(1560).bytes()));
    let large = sized(1561).frame();
    assert_eq!(send(&host, &large), (Verdict::Redirect, large.clone()));
    let again = host.run(&FrameInput { bytes: &large, mark: AGENT_MARK, ..FrameInput::default() }).unwrap();
    assert_eq!(again.verdict, Verdict::Drop);
    assert_eq!(counted(host.counters().unwrap()), [("encapsulated", 1), ("mtu_exceeded", 2)]);
}

#[test]
fn segments_of_a_super_frame_are_judged_not_the_frame() {
    let Some(host) = host() else { return };
    let mut segment = vec![0u8; 3000];
    segment[12] = 8 << 4; // a TCP header of 32 bytes
    let packet = Ipv4 { protocol: 6, payload: segment, ..Ipv4::default() };
    let judge = |gso_size| {
        let frame = packet.frame();
        host.run(&FrameInput { bytes: &frame, gso_size, ..FrameInput::default() }).unwrap().verdict
    };
    // 20 + 32 + 1508 + 40 = 1600. BPF_PROG_RUN cannot say which kind of GSO it is, so the kernel then refuses the push.
    assert_eq!(judge(1508), Verdict::Drop);
    assert_eq!(counted(host.counters().unwrap()), [("push_failed", 1)]);
    assert_eq!(judge(1509), Verdict::Redirect);
    assert_eq!(counted(host.counters().unwrap()), [("mtu_exceeded", 1), ("push_failed", 1)]);
}

#[test]
fn with_rack_direct_the_own_rack_costs_one_header() {
    let mut config = host_config();
    config.rack_direct = true;
    let Some(host) = available(HostDatapath::load(&config)) else { return };
    let neighbour = Ipv4Addr::new(20, 0, 0, 3);
    host.set(PEER_AA, &MAPPING).unwrap();
    host.set(neighbour, &Mapping { tor_la: MY_TOR, ..MAPPING }).unwrap();

    let far = Ipv4::default();
    assert_frame(&send(&host, &far.frame()).1, &encapsulated(&far.bytes()));
    let near = Ipv4 { destination: neighbour, ..Ipv4::default() };
    let packet = near.bytes();
    let outer = wrapped(&packet, source_of(&packet), MY_TOR, 0);
    assert_frame(&send(&host, &near.frame()).1, &ethernet(GATEWAY_MAC, SERVER_MAC, 0x0800, &outer));
    assert_eq!(counted(host.counters().unwrap()), [("encapsulated", 1), ("rack_direct", 1)]);
}

#[test]
fn an_arp_request_for_a_known_aa_is_answered_with_the_gateways_mac() {
    let Some(host) = host() else { return };
    let request = arp(1, (SERVER_MAC, MY_AA), ([0; 6], PEER_AA));
    let answer = arp(2, (GATEWAY_MAC, PEER_AA), (SERVER_MAC, MY_AA));
    for asked in [BROADCAST_MAC, GATEWAY_MAC] {
        let (verdict, frame) = send(&host, &ethernet(asked, SERVER_MAC, 0x0806, &request));
        assert_eq!(verdict, Verdict::Redirect);
        assert_frame(&frame, &ethernet(SERVER_MAC, GATEWAY_MAC, 0x0806, &answer));
    }
    assert_eq!(counted(host.counters().unwrap()), [("arp_answered", 2)]);
}

#[test]
fn arp_that_must_not_be_answered_is_not() {
    let Some(host) = host() else { return };
    host.set(MY_AA, &MAPPING).unwrap();
    let unknown = Ipv4Addr::new(20, 9, 9, 9);
    let gateway_la = Ipv4Addr::new(10, 64, 0, 1);
    let cases: [(Vec<u8>, u32, Verdict); 7] = [
        (arp(1, (SERVER_MAC, MY_AA), ([0; 6], MY_AA)), 0, Verdict::Next), // announcement
        (arp(1, (SERVER_MAC, Ipv4Addr::UNSPECIFIED), ([0; 6], MY_AA)), 0, Verdict::Next), // probe
        (arp(1, (SERVER_MAC, MY_AA), ([0; 6], gateway_la)), 0, Verdict::Next),
        (arp(2, (SERVER_MAC, MY_AA), (OTHER_MAC, PEER_AA)), 0, Verdict::Next), // an answer
        (arp(1, (SERVER_MAC, MY_AA), ([0; 6], unknown)), 0, Verdict::Redirect),
        (arp(1, (SERVER_MAC, MY_AA), ([0; 6], unknown)), AGENT_MARK, Verdict::Drop),
        (arp(1, (SERVER_MAC, MY_AA), ([0; 6], PEER_AA))[..27].to_vec(), 0, Verdict::Drop), // truncated
    ];
    for (payload, mark, verdict) in cases {
        let frame = ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &payload);
        let output = host.run(&FrameInput { bytes: &frame, mark, ..FrameInput::default() }).unwrap();
        assert_eq!(output.verdict, verdict);
        assert_frame(&output.bytes, &frame);
    }
    let expected = [("passed", 2), ("arp_probe_passed", 2), ("arp_miss", 1), ("no_mapping", 1), ("malformed", 1)];
    assert_eq!(counted(host.counters().unwrap()), expected);
}

#[test]
fn settings_that_cannot_work_are_refused_with_their_name() {
    let cases = [
        ("aa_block", common::host_config_with(|config| config.aa_block = "20.0.0.0/31".parse().unwrap())),
        ("aa_block", common::host_config_with(|config| config.aa_block = "0.0.0.0/0".parse().unwrap())),
        ("map_entries", common::host_config_with(|config| config.map_entries = 0)),
        ("underlay_mtu", common::host_config_with(|config| config.underlay_mtu = 107)),
        ("gateway_mac", common::host_config_with(|config| config.gateway_mac = BROADCAST_MAC)),
        ("weft-none", common::host_config_with(|config| config.miss_interface = "weft-none".to_owned())),
    ];
    for (name, config) in cases {
        let error = HostDatapath::load(&config).expect_err("refused").to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn an_aa_outside_the_block_is_refused() {
    let Some(host) = host() else { return };
    let outside = Ipv4Addr::new(21, 0, 0, 1);
    assert!(matches!(host.set(outside, &MAPPING), Err(DatapathError::OutsideBlock { aa, .. }) if aa == outside));
    assert_eq!(host.entries().unwrap(), [(PEER_AA, MAPPING)]);
}

#[test]
fn mappings_can_be_read_and_removed() {
    let Some(host) = host() else { return };
    assert_eq!(host.get(PEER_AA).unwrap(), Some(MAPPING));
    assert!(host.remove(PEER_AA).unwrap());
    assert!(!host.remove(PEER_AA).unwrap());
    assert_eq!(host.get(PEER_AA).unwrap(), None);
    assert_eq!(host.entries().unwrap(), []);
}
