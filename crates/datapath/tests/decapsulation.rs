//! Switch ingress: one outer header off, congestion marks combined, everything else as it came (VL2 4.2.1; RFC 6040).

mod common;

use std::net::Ipv4Addr;

use common::netns::{Namespace, link};
use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::stale::StaleEnds;
use weft_datapath::switch::{SwitchDatapath, Tier};

fn receive(switch: &SwitchDatapath, frame: &[u8]) -> (Verdict, Vec<u8>) {
    let output = switch.run(&FrameInput { bytes: frame, ..FrameInput::default() }).expect("the program runs");
    (output.verdict, output.bytes)
}

/// RFC 6040, figure 4: rows are the inner code point, columns the outer one, in the order 00, 01, 10, 11 of the bits;
/// `None` is a drop.
const ECN: [[Option<u8>; 4]; 4] = [
    [Some(0), Some(0), Some(0), None],
    [Some(1), Some(1), Some(1), Some(3)],
    [Some(2), Some(1), Some(2), Some(3)],
    [Some(3), Some(3), Some(3), Some(3)],
];

#[test]
fn the_intermediate_takes_the_anycast_header_off() {
    let Some(switch) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    let packet = Ipv4::default().bytes();
    let to_tor = wrapped(&packet, source_of(&packet), PEER_TOR, 0);
    let to_intermediate = wrapped(&to_tor, source_of(&packet), ANYCAST, 0);
    let frame = ethernet(OTHER_MAC, SERVER_MAC, 0x0800, &to_intermediate);
    let (verdict, out) = receive(&switch, &frame);
    assert_eq!(verdict, Verdict::Next);
    assert_frame(&out, &ethernet(OTHER_MAC, SERVER_MAC, 0x0800, &to_tor));
    assert_eq!(counted(switch.counters().unwrap()), [("decapsulated", 1)]);
}

#[test]
fn all_sixteen_ecn_combinations_follow_the_rfc() {
    let Some(switch) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    for (inner_ecn, row) in (0u8..).zip(ECN) {
        for (outer_ecn, expected) in (0u8..).zip(row) {
            for dscp in [0u8, 0x2e << 2, 0xfc] {
                let inner = Ipv4 { tos: dscp | inner_ecn, ..Ipv4::default() };
                let frame = arriving(ANYCAST, outer_ecn, &inner);
                let (verdict, out) = receive(&switch, &frame);
                let Some(ecn) = expected else {
                    assert_eq!((verdict, out), (Verdict::Drop, frame));
                    continue;
                };
                assert_eq!(verdict, Verdict::Next);
                let combined = Ipv4 { tos: dscp | ecn, ..inner };
                assert_frame(&out, &combined.frame());
            }
        }
    }
    assert_eq!(counted(switch.counters().unwrap()), [("decapsulated", 45), ("ce_on_not_ect", 3)]);
}

#[test]
fn ttl_of_any_value_and_every_length_survive() {
    let Some(switch) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    for ttl in [0, 1, 2, 255] {
        let inner = Ipv4 { ttl, ..Ipv4::default() };
        assert_frame(&receive(&switch, &arriving(ANYCAST, 0, &inner)).1, &inner.frame());
    }
    for length in 0..=1540 {
        let inner = Ipv4 { payload: vec![7; length], ..Ipv4::default() };
        assert_frame(&receive(&switch, &arriving(ANYCAST, 0, &inner)).1, &inner.frame());
    }
}

#[test]
fn only_encapsulated_packets_for_our_las_are_touched() {
    let Some(switch) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    let inner = Ipv4::default();
    let other_la = arriving(Ipv4Addr::new(10, 255, 255, 2), 0, &inner);
    let to_ourselves = Ipv4 { destination: ANYCAST, protocol: 1, ..Ipv4::default() }.frame();
    let plain = inner.frame();
    let arp = ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp(1, (SERVER_MAC, MY_AA), ([0; 6], PEER_AA)));
    for frame in [other_la, to_ourselves, plain, arp] {
        assert_eq!(receive(&switch, &frame), (Verdict::Next, frame));
    }
    assert_eq!(counted(switch.counters().unwrap()), [("passed", 4)]);
}

/// The fabric has no VLANs: a frame of another network is not taken for one of ours, and none gets by the checks.
#[test]
fn frames_with_a_vlan_tag_are_dropped() {
    for tier in [Tier::Intermediate, Tier::Tor] {
        let Some(switch) = switch(tier, &[ANYCAST]) else { return };
        let plain = arriving(ANYCAST, 0, &Ipv4::default());
        for (kind, vlan) in [(0x8100, 5), (0x8100, 0), (0x88a8, 5)] {
            let frame = ethernet(OTHER_MAC, SERVER_MAC, kind, &[&[0, vlan][..], &plain[12..]].concat());
            assert_eq!(receive(&switch, &frame), (Verdict::Drop, frame));
        }
        assert_eq!(counted(switch.counters().unwrap()), [("tagged", 3)]);
    }
}

#[test]
fn broken_outer_headers_are_dropped_with_their_reason() {
    let Some(switch) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    let broken = |change: &dyn Fn(&mut [u8])| {
        let mut frame = arriving(ANYCAST, 0, &Ipv4::default());
        change(&mut frame[14..]);
        write_checksum(&mut frame[14..]);
        frame
    };
    let mut bad_checksum = arriving(ANYCAST, 0, &Ipv4::default());
    bad_checksum[14 + 10] ^= 1;
    let cases = [
        broken(&|packet| packet[0] = 0x46),                       // options
        broken(&|packet| packet[0] = 0x65),                       // version 6
        broken(&|packet| packet[2..4].copy_from_slice(&[9, 9])),  // longer than the frame
        broken(&|packet| packet[2..4].copy_from_slice(&[0, 39])), // no room for a header inside
        broken(&|packet| packet[6] = 0x20),                       // first fragment
        broken(&|packet| packet[7] = 1),                          // later fragment
        broken(&|packet| packet[20] = 0x44),                      // inner header too short
        broken(&|packet| packet[20] = 0x35),                      // inner version
        broken(&|packet| packet[22] = 0xff),                      // inner longer than outer
        bad_checksum,
    ];
    for frame in cases {
        assert_eq!(receive(&switch, &frame), (Verdict::Drop, frame));
    }
    let expected = [("fragment", 2), ("malformed", 7), ("bad_checksum", 1)];
    assert_eq!(counted(switch.counters().unwrap()), expected);
}

/// Agents write nothing else, so what somebody else has made up is not believed.
#[test]
fn an_outer_header_whose_source_is_no_flow_hash_is_not_taken_off() {
    let inner = Ipv4::default();
    let from = |source| ethernet(OTHER_MAC, SERVER_MAC, 0x0800, &wrapped(&inner.bytes(), source, ANYCAST, 0));
    let Some(intermediate) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    let Some(tor) = switch(Tier::Tor, &[ANYCAST]) else { return };
    for source in [[100, 64, 0, 0], [100, 127, 255, 255]].map(Ipv4Addr::from) {
        assert_eq!(receive(&intermediate, &from(source)), (Verdict::Next, inner.frame()), "{source}");
    }
    let others = [[100, 63, 255, 255], [100, 128, 0, 0], [10, 64, 0, 2], MY_AA.octets(), [0, 64, 100, 0]];
    for source in others.map(Ipv4Addr::from) {
        for switch in [&intermediate, &tor] {
            assert_eq!(receive(switch, &from(source)), (Verdict::Drop, from(source)), "{source}");
        }
    }
    assert_eq!(counted(intermediate.counters().unwrap()), [("decapsulated", 2), ("made_up_header", 5)]);
    assert_eq!(counted(tor.counters().unwrap()), [("made_up_header", 5)]);
}

#[test]
fn an_anycast_la_can_be_taken_over_at_run_time() {
    let second = Ipv4Addr::new(10, 255, 255, 2);
    let Some(switch) = switch(Tier::Intermediate, &[ANYCAST]) else { return };
    let inner = Ipv4::default();
    let frame = arriving(second, 0, &inner);
    assert_frame(&receive(&switch, &frame).1, &frame);
    switch.set_own_las(&[ANYCAST, second]).unwrap();
    assert_frame(&receive(&switch, &frame).1, &inner.frame());
    let sixteen: Vec<Ipv4Addr> = (1..=16).map(|n| Ipv4Addr::new(10, 255, 255, n)).collect();
    switch.set_own_las(&sixteen).unwrap();
    for la in &sixteen {
        assert_frame(&receive(&switch, &arriving(*la, 0, &inner)).1, &inner.frame());
    }
    let seventeen = [sixteen, vec![PEER_TOR]].concat();
    let error = switch.set_own_las(&seventeen).expect_err("too many").to_string();
    assert!(error.contains("own_las") && error.contains("17"), "{error}");
    switch.set_own_las(&[]).unwrap();
    assert_frame(&receive(&switch, &frame).1, &frame);
}

#[test]
fn the_tor_delivers_to_host_ports_only() {
    if !weft_needs::root() {
        return;
    }
    let tor = Namespace::new("tor", "t");
    link((&tor, "port1"), (&tor, "port1x"), 1500);
    link((&tor, "up"), (&tor, "upx"), 1600);
    tor.sysctl("net.ipv4.ip_forward", "1");
    tor.ip("addr add 10.64.0.1/24 dev port1");
    tor.ip("addr add 10.128.0.0/31 dev up");
    tor.ip("route add 20.0.0.2/32 dev port1");
    tor.ip("route add 20.0.0.3/32 dev up");
    tor.ip("route add 20.0.0.4/32 dev port1 mtu lock 1500");
    tor.enter(|| {
        let mut config = switch_config(Tier::Tor, &[PEER_TOR]);
        config.ports = vec!["up".to_owned()];
        config.host_ports = vec!["port1".to_owned()];
        let Some(switch) = available(SwitchDatapath::load(&config)) else { return };
        let ifindex = index("up");
        let receive = |frame: &[u8]| {
            let output = switch.run(&FrameInput { bytes: frame, ifindex, ..FrameInput::default() }).unwrap();
            (output.verdict, output.bytes)
        };
        for ttl in [1, 64, 255] {
            let inner = Ipv4 { ttl, ..Ipv4::default() };
            let (verdict, frame) = receive(&arriving(PEER_TOR, 0, &inner));
            assert_eq!(verdict, Verdict::Redirect);
            assert_frame(&frame, &inner.frame());
        }
        let unknown = Ipv4 { destination: Ipv4Addr::new(20, 0, 0, 9), ..Ipv4::default() };
        let back_into_the_fabric = Ipv4 { destination: Ipv4Addr::new(20, 0, 0, 3), ..Ipv4::default() };
        let (unknown_aa, back_aa) = (unknown.destination, back_into_the_fabric.destination);
        for inner in [unknown, back_into_the_fabric] {
            assert_eq!(receive(&arriving(PEER_TOR, 0, &inner)), (Verdict::Drop, inner.frame()));
        }
        let from_a_hash = Ipv4 { source: Ipv4Addr::new(100, 64, 3, 7), ..Ipv4::default() };
        assert_eq!(receive(&arriving(PEER_TOR, 0, &from_a_hash)), (Verdict::Drop, from_a_hash.frame()));
        let large = Ipv4 { payload: vec![0; 1500], ..Ipv4::default() };
        assert_eq!(receive(&arriving(PEER_TOR, 0, &large)), (Verdict::Drop, large.frame()));
        let expected = [("delivered", 3), ("no_such_host", 2), ("too_big", 1), ("made_up_header", 1)];
        assert_eq!(counted(switch.counters().unwrap()), expected);
        let ends = [unknown_aa, back_aa].map(|aa| StaleEnds { aa, source_aa: Ipv4::default().source });
        assert_eq!(switch.stale_samples().unwrap().take().unwrap(), ends, "only what has no host here is sampled");
    });
}

#[test]
fn a_flood_to_an_aa_that_is_gone_is_sampled_once_in_a_while_and_counted_whole() {
    let Some(switch) = switch(Tier::Tor, &[PEER_TOR]) else { return };
    let samples = switch.stale_samples().unwrap();
    assert_eq!(samples.take().unwrap(), []);
    let to = |k: u32| Ipv4 { destination: Ipv4Addr::from(0x1409_0000 + k), ..Ipv4::default() };
    let (began, rounds) = (std::time::Instant::now(), 2000);
    for _ in 0..rounds {
        assert_eq!(receive(&switch, &arriving(PEER_TOR, 0, &to(1))).0, Verdict::Drop);
    }
    let took_ms = began.elapsed().as_millis() as usize;
    let sampled = samples.take().unwrap();
    assert!((1..=took_ms + 1).contains(&sampled.len()), "{} samples in {took_ms} ms", sampled.len());
    let ends = StaleEnds { aa: to(1).destination, source_aa: to(1).source };
    assert!(sampled.iter().all(|sample| *sample == ends));
    // Many pairs at once: the room is bounded, and nothing is lost but samples.
    for k in 0..12_000 {
        receive(&switch, &arriving(PEER_TOR, 0, &to(k)));
    }
    let mut kept = 0;
    while let Ok(some) = samples.take()
        && !some.is_empty()
    {
        kept += some.len();
    }
    assert!((500..=65_536 / 16).contains(&kept), "{kept} samples were kept");
    assert_eq!(counted(switch.counters().unwrap()), [("no_such_host", rounds + 12_000)]);
    // Room again, as soon as it is this pair's turn.
    let sampled_again = (0..100_000).any(|_| {
        receive(&switch, &arriving(PEER_TOR, 0, &to(20_000)));
        !samples.take().unwrap().is_empty()
    });
    assert!(sampled_again);
}

fn index(interface: &str) -> u32 {
    let path = format!("/proc/{}/task/{}/net/dev_mcast", std::process::id(), rustix::thread::gettid());
    let table = std::fs::read_to_string(path).expect("procfs is mounted");
    let line = table.lines().find(|line| line.split_whitespace().nth(1) == Some(interface));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("the interface exists")
}
