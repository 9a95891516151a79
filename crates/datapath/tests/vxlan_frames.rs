//! Whole frames through the VTEP's TC programs, without a network: both directions against an oracle of bytes, every
//! reason to drop, random frames.

mod common;

use common::netns::{Namespace, link};
use common::vxlan::{LOCAL, Node, Outer, PEER, STRANGER, UdpChecksum, arriving, leaving, quiet, settings, vni};
use common::*;
use weft_datapath::frame::{FrameInput, FrameOutput, Verdict};
use weft_datapath::vxlan::{
    AccessRule, Dscp, Flood, OnMiss, Origin, RateLimit, To, UnknownPeers, Upcall, Vtep, VtepOptions, VtepProgram,
    now_ns,
};
use weft_wire::flow::{FiveTuple, flow_hash};

const REMOTE_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x77];

/// A VTEP with ports `p0` and `p1` in segment 42 and `p2` in segment 43. [`SERVER_MAC`] is behind `p0`, [`REMOTE_MAC`]
/// behind [`PEER`]. Fields end in this order.
struct Bench {
    vtep: Vtep,
    ports: [u32; 3],
    bed: Node,
    _stations: Namespace,
}

fn bench_with(test: &str, change: impl FnOnce(&mut VtepOptions)) -> Option<Bench> {
    if !weft_needs::root() {
        return None;
    }
    let bed = Node::new(test);
    bed.silence();
    let stations = quiet(test, "st");
    for port in ["p0", "p1", "p2"] {
        link((&bed.node, port), (&stations, port), 1500);
    }
    let mut options = VtepOptions::new(LOCAL);
    change(&mut options);
    let mut vtep = bed.vtep(&options)?;
    for number in [42, 43] {
        vtep.add_vni(vni(number), &settings()).unwrap();
    }
    let ports = [("p0", 42), ("p1", 42), ("p2", 43)]
        .map(|(port, number)| bed.attach(&mut vtep, port, number, AccessRule::default()));
    vtep.static_entry(vni(42), SERVER_MAC, To::Port(ports[0])).unwrap();
    vtep.static_entry(vni(42), REMOTE_MAC, To::Remote(PEER)).unwrap();
    Some(Bench { vtep, ports, bed, _stations: stations })
}

fn bench(test: &str) -> Option<Bench> {
    bench_with(test, |_| {})
}

impl Bench {
    fn run(&self, program: VtepProgram, ifindex: u32, bytes: &[u8]) -> FrameOutput {
        let input = FrameInput { bytes, ifindex, ..FrameInput::default() };
        self.bed.node.enter_with(|| self.vtep.run(program, &input)).expect("the program runs")
    }

    fn at_port(&self, bytes: &[u8]) -> FrameOutput {
        self.run(VtepProgram::Access, self.ports[0], bytes)
    }

    fn at_uplink(&self, bytes: &[u8]) -> FrameOutput {
        self.run(VtepProgram::Uplink, 0, bytes)
    }

    /// Outcomes since the last time.
    fn new_counts(&self, before: &mut Vec<(&'static str, u64)>) -> Vec<(&'static str, u64)> {
        let now = self.vtep.counters().unwrap();
        let difference =
            now.iter().zip(before.iter()).map(|((name, now), (_, before))| (*name, now - before)).collect();
        *before = now;
        counted(difference)
    }
}

fn to_remote(packet: &Ipv4) -> Vec<u8> {
    ethernet(REMOTE_MAC, SERVER_MAC, 0x0800, &packet.bytes())
}

fn to_server(packet: &Ipv4) -> Vec<u8> {
    ethernet(SERVER_MAC, REMOTE_MAC, 0x0800, &packet.bytes())
}

fn hash_of(packet: &[u8]) -> u32 {
    flow_hash(&FiveTuple::of_ipv4(packet).expect("an IPv4 packet"))
}

#[test]
fn a_frame_for_a_peer_leaves_as_rfc_7348_draws_it() {
    let Some(bench) = bench("encap") else { return };
    for tos in [0, 1, 2, 3, 0xb8, 0xbb] {
        for payload in [0, 1, 4, 46, 1400] {
            let packet = Ipv4 { tos, payload: vec![9; payload], ..Ipv4::default() };
            let inner = to_remote(&packet);
            let output = bench.at_port(&inner);
            assert_eq!(output.verdict, Verdict::Redirect);
            assert_frame(&output.bytes, &leaving(hash_of(&packet.bytes()), tos).frame(&inner));
        }
    }
    assert_eq!(counted(bench.vtep.counters().unwrap()), [("encapsulated", 30)]);
    let sent = bench.vtep.peers().unwrap()[0].traffic;
    assert_eq!((sent.sent_frames, sent.received_frames), (30, 0));
    assert_eq!(bench.vtep.segment(vni(42)).unwrap().unwrap().traffic, sent);
}

#[test]
fn dscp_may_be_set_and_ecn_is_copied_all_the_same() {
    let Some(bench) = bench_with("dscp", |options| options.dscp = Dscp::Set(46)) else { return };
    for ecn in 0..4 {
        let packet = Ipv4 { tos: 0x20 | ecn, ..Ipv4::default() };
        let inner = to_remote(&packet);
        assert_frame(&bench.at_port(&inner).bytes, &leaving(hash_of(&packet.bytes()), 46 << 2 | ecn).frame(&inner));
    }
}

/// ARP and others that are not IP get the same headers, on another way through the kernel.
#[test]
fn what_is_not_ip_is_encapsulated_too() {
    let Some(bench) = bench("noip") else { return };
    let reply = arp(2, (SERVER_MAC, [20, 0, 0, 1].into()), (REMOTE_MAC, [20, 0, 0, 2].into()));
    for (kind, payload) in [(0x0806, reply), (0x88b5, vec![7; 46]), (0x88b5, vec![7; 3])] {
        let inner = ethernet(REMOTE_MAC, SERVER_MAC, kind, &payload);
        let output = bench.at_port(&inner);
        assert_eq!(output.verdict, Verdict::Redirect, "{:?}", bench.vtep.counters());
        let source_port = u16::from_be_bytes([output.bytes[34], output.bytes[35]]);
        assert!(source_port >= 49152);
        let outer = Outer { source_port, ..leaving(0, 0) };
        assert_frame(&output.bytes[12..], &outer.frame(&inner)[12..]);
        assert_eq!(output.bytes[..6], [0x02, 0, 0, 0, 0, 0x99]);
    }
    assert_eq!(counted(bench.vtep.counters().unwrap()), [("encapsulated", 3)]);
}

#[test]
fn a_datagram_for_us_gives_its_frame_back() {
    let Some(bench) = bench("decap") else { return };
    let mut sent = 0;
    for inner in [to_server(&Ipv4::default()), to_server(&Ipv4 { payload: vec![1; 1400], ..Ipv4::default() })] {
        for udp_checksum in [None, Some(UdpChecksum::Right)] {
            // Reserved bits are ignored on receipt (RFC 7348 5).
            for (flags, last) in [([8, 0, 0, 0], 0), ([0xff, 0xff, 0xff, 0xff], 0xff)] {
                let output = bench.at_uplink(&Outer { udp_checksum, flags, last, ..arriving() }.frame(&inner));
                assert_eq!(output.verdict, Verdict::Redirect, "{:?}", counted(bench.vtep.counters().unwrap()));
                assert_frame(&output.bytes, &inner);
                sent += 1;
            }
        }
    }
    // Bytes behind the datagram are nobody's.
    let inner = to_server(&Ipv4::default());
    let padded = [arriving().frame(&inner), vec![0xee; 11]].concat();
    assert_frame(&bench.at_uplink(&padded).bytes, &inner);
    let short = ethernet(SERVER_MAC, REMOTE_MAC, 0x88b5, &[1, 2, 3]);
    assert_eq!(bench.at_uplink(&arriving().frame(&short)).bytes[..17], short);
    assert_eq!(counted(bench.vtep.counters().unwrap()), [("decapsulated", sent + 2)]);
    let traffic = bench.vtep.peers().unwrap()[0].traffic;
    assert_eq!((traffic.sent_frames, traffic.received_frames), (0, sent + 2));
}

/// RFC 6040 figure 4, rows inner and columns outer: Not-ECT, ECT(1), ECT(0), CE. `None`: dropped.
#[test]
fn congestion_marks_come_in_as_rfc_6040_says() {
    const TABLE: [[Option<u8>; 4]; 4] = [
        [Some(0), Some(0), Some(0), None],
        [Some(1), Some(1), Some(1), Some(3)],
        [Some(2), Some(1), Some(2), Some(3)],
        [Some(3), Some(3), Some(3), Some(3)],
    ];
    let Some(bench) = bench("ecn") else { return };
    for (inner_ecn, row) in (0u8..).zip(TABLE) {
        for (outer_ecn, expected) in (0u8..).zip(row) {
            let packet = Ipv4 { tos: 0x48 | inner_ecn, ..Ipv4::default() };
            let output = bench.at_uplink(&Outer { tos: 0xb8 | outer_ecn, ..arriving() }.frame(&to_server(&packet)));
            match expected {
                Some(ecn) => {
                    assert_eq!(output.verdict, Verdict::Redirect, "inner {inner_ecn}, outer {outer_ecn}");
                    assert_frame(&output.bytes, &to_server(&Ipv4 { tos: 0x48 | ecn, ..packet }));
                }
                None => assert_eq!(output.verdict, Verdict::Drop),
            }
            // IPv6 has no checksum, and the traffic class stands askew.
            let ipv6 = |tos: u8| [&[0x60 | tos >> 4, tos << 4 | 5, 6, 7, 0, 0, 59, 64][..], &[3; 32]].concat();
            let inner = |tos| ethernet(SERVER_MAC, REMOTE_MAC, 0x86dd, &ipv6(tos));
            let output = bench.at_uplink(&Outer { tos: outer_ecn, ..arriving() }.frame(&inner(0x48 | inner_ecn)));
            match expected {
                Some(ecn) => assert_frame(&output.bytes, &inner(0x48 | ecn)),
                None => assert_eq!(output.verdict, Verdict::Drop),
            }
        }
    }
    assert_eq!(counted(bench.vtep.counters().unwrap()), [("decapsulated", 30), ("ce_on_not_ect", 2)]);
}

#[test]
fn every_reason_to_drop_a_datagram_is_counted() {
    let Some(mut bench) = bench("in") else { return };
    let limited = RateLimit { frames_per_sec: 1, burst_frames: 1 };
    let strict = weft_datapath::vxlan::VniSettings {
        broadcast_limit: Some(limited),
        unknown_limit: Some(limited),
        ..settings()
    };
    bench.vtep.add_vni(vni(44), &strict).unwrap();
    let p44 = bench.bed.node.enter_with(|| {
        bench.bed.node.ip("link add p44 type bridge mcast_snooping 0");
        bench.bed.node.ip("link set p44 up");
        weft_datapath::vxlan::interface_index("p44").unwrap()
    });
    bench.bed.node.enter_with(|| bench.vtep.attach_access(p44, vni(44), AccessRule::default())).unwrap();
    let inner = to_server(&Ipv4::default());
    let with = |change: fn(&mut Outer)| {
        let mut outer = arriving();
        change(&mut outer);
        outer.frame(&inner)
    };
    let broken = |at: usize, value: u8| {
        let mut frame = arriving().frame(&inner);
        frame[at] ^= value;
        frame
    };
    let of_44 = |destination: [u8; 6]| {
        let inner = ethernet(destination, REMOTE_MAC, 0x0800, &Ipv4::default().bytes());
        Outer { vni: 44, ..arriving() }.frame(&inner)
    };
    let bare = |inner: &[u8]| arriving().frame(inner);
    let whole = arriving().frame(&inner);
    let tagged = ethernet(SERVER_MAC, REMOTE_MAC, 0x8100, &[&[0, 5, 8, 0][..], &Ipv4::default().bytes()].concat());
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("bad_checksum", broken(24, 0xff)),
        ("fragment", with(|outer| outer.fragment = 0x2000)),
        ("malformed", with(|outer| outer.udp_length_error = 1)),
        ("malformed", with(|outer| outer.udp_length_error = -(8 + 14 + 64 + 1))),
        ("malformed", whole[..whole.len() - 1].to_vec()),
        ("malformed", whole[..44].to_vec()),
        ("bad_udp_checksum", with(|outer| outer.udp_checksum = Some(UdpChecksum::Wrong))),
        ("no_vni_flag", with(|outer| outer.flags = [0xf7, 0, 0, 0])),
        ("unknown_vni", with(|outer| outer.vni = 4242)),
        ("unknown_vni", with(|outer| outer.vni = 0)),
        ("unknown_peer", with(|outer| outer.source = STRANGER)),
        ("unknown_peer", with(|outer| outer.source = LOCAL)),
        ("inner_malformed", bare(&inner[..13])),
        ("inner_malformed", bare(&[])),
        ("bad_source", bare(&ethernet(SERVER_MAC, BROADCAST_MAC, 0x0800, &Ipv4::default().bytes()))),
        ("bad_source", bare(&ethernet(SERVER_MAC, [0; 6], 0x0800, &Ipv4::default().bytes()))),
        ("split_horizon", bare(&to_remote(&Ipv4::default()))),
        ("tagged", bare(&tagged)),
        ("pop_failed", bare(&ethernet(SERVER_MAC, REMOTE_MAC, 0x86dd, &[0x60; 30]))),
        ("flooded_locally", of_44(BROADCAST_MAC)),
        ("broadcast_limit", of_44(BROADCAST_MAC)),
        ("flooded_locally", of_44([2, 9, 9, 9, 9, 9])),
        ("unknown_limit", of_44([2, 9, 9, 9, 9, 9])),
        // And what is nobody's business but the stack's.
        ("passed", with(|outer| outer.port = 4790)),
        ("passed", with(|outer| outer.destination = STRANGER)),
        ("passed", with(|outer| outer.destination = [239, 1, 1, 1].into())),
        ("passed", with(|outer| outer.fragment = 100)),
        ("passed", ethernet(SERVER_MAC, REMOTE_MAC, 0x0806, &[0; 28])),
    ];
    let mut before = bench.vtep.counters().unwrap();
    for (number, (reason, frame)) in cases.iter().enumerate() {
        let output = bench.at_uplink(frame);
        assert_eq!(bench.new_counts(&mut before), [(*reason, 1)], "case {number}");
        let expected = if *reason == "passed" { Verdict::Next } else { Verdict::Drop };
        assert_eq!(output.verdict, expected, "case {number}, {reason}");
        if *reason == "passed" {
            assert_frame(&output.bytes, frame);
        }
    }
}

#[test]
fn every_reason_to_drop_a_frame_of_a_port_is_counted() {
    let Some(mut bench) = bench("out") else { return };
    let limited = RateLimit { frames_per_sec: 1, burst_frames: 2 };
    let mut set = |number, change: fn(&mut weft_datapath::vxlan::VniSettings)| {
        let mut settings = settings();
        change(&mut settings);
        bench.vtep.add_vni(vni(number), &settings).unwrap();
    };
    set(43, |settings| {
        (settings.flood, settings.unicast_miss, settings.arp_miss) = (Flood::None, OnMiss::Drop, OnMiss::Upcall);
    });
    let far = [2, 9, 9, 9, 9, 9];
    let unrouted = [2, 9, 9, 9, 9, 8];
    bench.vtep.directory_entry(vni(42), unrouted, To::Remote([192, 0, 2, 1].into())).unwrap();
    let [p0, _, p2] = bench.ports;
    let plain = |destination: [u8; 6]| ethernet(destination, SERVER_MAC, 0x0800, &Ipv4::default().bytes());
    let request = arp(1, (SERVER_MAC, [20, 0, 0, 1].into()), ([0; 6], [20, 0, 0, 9].into()));
    let big = Ipv4 { payload: vec![0; 1600 - 36 - 14 - 20 + 1], ..Ipv4::default() };
    let biggest = Ipv4 { payload: vec![0; 1600 - 36 - 14 - 20], ..Ipv4::default() };
    let tagged = ethernet(REMOTE_MAC, SERVER_MAC, 0x8100, &[0, 5, 8, 0, 0x45]);
    let cases: Vec<(&str, u32, Vec<u8>)> = vec![
        ("no_segment", 1, plain(far)),
        ("tagged", p0, tagged),
        ("bad_source", p0, ethernet(REMOTE_MAC, BROADCAST_MAC, 0x0800, &Ipv4::default().bytes())),
        ("bad_source", p0, ethernet(REMOTE_MAC, [0; 6], 0x0800, &Ipv4::default().bytes())),
        ("unknown_destination", p2, plain(far)),
        ("arp_unanswered", p2, ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &request)),
        ("no_receiver", p2, plain(BROADCAST_MAC)),
        ("same_port", p0, plain(SERVER_MAC)),
        ("too_big", p0, to_remote(&big)),
        ("encapsulated", p0, to_remote(&biggest)),
        ("no_route", p0, plain(unrouted)),
        ("switched", bench.ports[1], to_server(&Ipv4::default())),
        ("flooded", p0, plain(far)),
        ("flooded", p0, plain(BROADCAST_MAC)),
        ("passed", p0, plain([0x01, 0x80, 0xc2, 0, 0, 0x0e])),
        ("flooded", p0, plain([0x01, 0x80, 0xc2, 0, 0, 0x10])),
    ];
    let mut before = bench.vtep.counters().unwrap();
    for (number, (reason, port, frame)) in cases.iter().enumerate() {
        let output = bench.run(VtepProgram::Access, *port, frame);
        assert_eq!(bench.new_counts(&mut before), [(*reason, 1)], "case {number}");
        let expected = match *reason {
            "encapsulated" | "switched" => Verdict::Redirect,
            "passed" => Verdict::Next,
            _ => Verdict::Drop,
        };
        assert_eq!(output.verdict, expected, "case {number}, {reason}");
    }

    let mut strict = settings();
    (strict.broadcast_limit, strict.unknown_limit) = (Some(limited), Some(limited));
    bench.vtep.add_vni(vni(42), &strict).unwrap();
    for (limit, destination) in [("broadcast_limit", BROADCAST_MAC), ("unknown_limit", far)] {
        for expected in ["flooded", "flooded", limit, limit] {
            bench.at_port(&plain(destination));
            assert_eq!(bench.new_counts(&mut before), [(expected, 1)]);
        }
    }
}

#[test]
fn arp_is_answered_here_where_the_answer_is_known() {
    let Some(mut bench) = bench("arp") else { return };
    let (asker, asked) = ([20, 0, 0, 1].into(), [20, 0, 0, 2].into());
    bench.vtep.set_arp(vni(42), asked, REMOTE_MAC).unwrap();
    let request = |target| ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp(1, (SERVER_MAC, asker), ([0; 6], target)));
    let output = bench.at_port(&request(asked));
    assert_eq!(output.verdict, Verdict::Redirect);
    let reply = ethernet(SERVER_MAC, REMOTE_MAC, 0x0806, &arp(2, (REMOTE_MAC, asked), (SERVER_MAC, asker)));
    assert_frame(&output.bytes, &reply);
    // Not in another segment, not once removed, and nobody is told that their own address is taken.
    bench.run(VtepProgram::Access, bench.ports[2], &request(asked));
    let probe =
        ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp(1, (SERVER_MAC, [0, 0, 0, 0].into()), ([0; 6], asked)));
    bench.at_port(&probe);
    assert!(bench.vtep.remove_arp(vni(42), asked).unwrap());
    bench.at_port(&request(asked));
    assert_eq!(counted(bench.vtep.counters().unwrap()), [("flooded", 3), ("arp_answered", 1)]);
}

#[test]
fn user_space_is_told_of_misses_and_of_what_was_learned() {
    let Some(mut bench) = bench("up") else { return };
    let calls = bench.vtep.upcalls().unwrap();
    let mut asking = settings();
    (asking.arp_miss, asking.unicast_miss) = (OnMiss::Upcall, OnMiss::FloodAndUpcall);
    bench.vtep.add_vni(vni(42), &asking).unwrap();
    let (asker, asked) = ([20, 0, 0, 1].into(), [20, 0, 0, 2].into());
    let (a, b) = ([2, 5, 5, 5, 5, 0xa], [2, 5, 5, 5, 5, 0xb]);
    let request = ethernet(BROADCAST_MAC, a, 0x0806, &arp(1, (a, asker), ([0; 6], asked)));
    let unknown = ethernet(b, a, 0x0800, &Ipv4::default().bytes());
    for frame in [&request, &unknown, &request, &unknown] {
        bench.at_port(frame);
    }
    let port = bench.ports[0];
    let learned = Upcall::Learned { vni: vni(42), mac: a, to: To::Port(port) };
    let from = To::Port(port);
    let arp_miss = Upcall::ArpMiss { vni: vni(42), from, sender_mac: a, sender: asker, target: asked };
    let miss = Upcall::UnicastMiss {
        vni: vni(42),
        from,
        source_mac: a,
        destination_mac: b,
        addresses: Some((Ipv4::default().source, Ipv4::default().destination)),
    };
    // SERVER_MAC was told and is not learned; the second round is too soon to be told again.
    let mine = |call: &Upcall| !matches!(call, Upcall::Learned { mac, .. } if *mac != a);
    assert_eq!(calls.take().unwrap().into_iter().filter(mine).collect::<Vec<_>>(), [learned, arp_miss, miss]);

    // The address moves behind a peer; a stranger is not believed.
    let moved = ethernet(SERVER_MAC, a, 0x0800, &Ipv4::default().bytes());
    bench.at_uplink(&arriving().frame(&moved));
    bench.at_uplink(&Outer { source: STRANGER, ..arriving() }.frame(&moved));
    let expected = [
        Upcall::Moved { vni: vni(42), mac: a, to: To::Remote(PEER) },
        Upcall::UnknownPeer { vni: vni(42), peer: STRANGER },
    ];
    assert_eq!(calls.take().unwrap(), expected);
    let entry = bench.vtep.entry(vni(42), a).unwrap().expect("it was learned");
    assert_eq!((entry.to, entry.origin), (To::Remote(PEER), Origin::Learned));
    assert!(entry.age_ns(now_ns()) < 60_000_000_000);
}

#[test]
fn strangers_may_be_let_in_but_are_not_learned_from() {
    let Some(bench) = bench_with("accept", |options| options.unknown_peers = UnknownPeers::Accept) else { return };
    let inner = ethernet(SERVER_MAC, [2, 5, 5, 5, 5, 5], 0x0800, &Ipv4::default().bytes());
    let output = bench.at_uplink(&Outer { source: STRANGER, ..arriving() }.frame(&inner));
    assert_frame(&output.bytes, &inner);
    let own = bench.at_uplink(&Outer { source: LOCAL, ..arriving() }.frame(&inner));
    assert_eq!(own.verdict, Verdict::Drop, "what claims to be from here is not");
    assert_eq!(bench.vtep.entry(vni(42), [2, 5, 5, 5, 5, 5]).unwrap(), None);
}

#[test]
fn learned_entries_age_and_told_ones_do_not() {
    let Some(mut bench) = bench("age") else { return };
    let mut quick = settings();
    quick.age_ns = Some(1_000_000_000);
    bench.vtep.add_vni(vni(42), &quick).unwrap();
    let inner = ethernet(SERVER_MAC, [2, 5, 5, 5, 5, 5], 0x0800, &Ipv4::default().bytes());
    bench.at_uplink(&arriving().frame(&inner));
    assert_eq!(bench.vtep.age_out(now_ns()).unwrap(), []);
    let gone = bench.vtep.age_out(now_ns() + 1_100_000_000).unwrap();
    assert_eq!(gone.iter().map(|entry| entry.mac).collect::<Vec<_>>(), [[2, 5, 5, 5, 5, 5]]);
    assert_eq!(bench.vtep.entries(Some(vni(42))).unwrap().len(), 2, "the told ones stay");

    let mut fixed = settings();
    fixed.learn = false;
    bench.vtep.add_vni(vni(42), &fixed).unwrap();
    bench.at_uplink(&arriving().frame(&ethernet(SERVER_MAC, [2, 6, 6, 6, 6, 6], 0x0800, &[0; 46])));
    assert_eq!(bench.vtep.entry(vni(42), [2, 6, 6, 6, 6, 6]).unwrap(), None, "this segment does not learn");
}

#[test]
fn a_large_table_is_listed_whole() {
    let Some(mut bench) = bench("many") else { return };
    for n in 0..5_000_u16 {
        let [a, b] = n.to_be_bytes();
        bench.vtep.static_entry(vni(42), [2, 9, 9, 9, a, b], To::Remote(PEER)).unwrap();
    }
    assert_eq!(bench.vtep.entries(Some(vni(42))).unwrap().len(), 5_002);
}

#[test]
fn tags_stay_where_a_port_keeps_them() {
    let Some(mut bench) = bench("tags") else { return };
    let keep = AccessRule { keep_tags: true };
    bench.bed.node.enter_with(|| bench.vtep.attach_access(bench.ports[0], vni(42), keep)).unwrap();
    let tag = |to, from| ethernet(to, from, 0x8100, &[&[0x20, 5, 8, 0][..], &Ipv4::default().bytes()].concat());
    let inner = tag(SERVER_MAC, REMOTE_MAC);
    let output = bench.at_uplink(&arriving().frame(&inner));
    assert_eq!(output.verdict, Verdict::Redirect, "{:?}", counted(bench.vtep.counters().unwrap()));
    assert_frame(&output.bytes, &inner);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let Some(mut bench) = bench("refuse") else { return };
    let error = |result: Result<(), weft_datapath::DatapathError>| result.expect_err("refused").to_string();
    let [p0, ..] = bench.ports;
    let vtep = &mut bench.vtep;
    assert!(error(vtep.attach_access(p0, vni(43), AccessRule::default())).contains("a port of segment 42 already"));
    assert!(error(vtep.attach_uplink(p0)).contains("an access port already"));
    assert!(error(vtep.attach_access(p0, vni(77), AccessRule::default())).contains("77 is not a segment"));
    assert!(error(vtep.static_entry(vni(42), BROADCAST_MAC, To::Port(p0))).contains("ff:ff:ff:ff:ff:ff"));
    assert!(error(vtep.static_entry(vni(43), OTHER_MAC, To::Port(p0))).contains("not a port of segment 43"));
    assert!(error(vtep.static_entry(vni(42), OTHER_MAC, To::Remote(LOCAL))).contains("this VTEP itself"));
    assert!(error(vtep.add_peer([224, 0, 0, 1].into())).contains("not the address of one VTEP"));
    assert!(error(vtep.set_arp(vni(77), PEER, OTHER_MAC)).contains("77 is not a segment"));
    assert!(error(vtep.set_flood(vni(42), &Flood::Group(PEER))).contains("not a multicast group"));
    assert_eq!(vtep.segment(vni(42)).unwrap().unwrap().settings, settings(), "nothing was changed");
    assert!(!vtep.remove_entry(vni(42), OTHER_MAC).unwrap());
    assert_eq!((vtep.remove_peer(STRANGER).unwrap(), vtep.remove_vni(vni(77)).unwrap()), (false, false));

    assert!(vtep.remove_peer(PEER).unwrap());
    assert_eq!(vtep.segment(vni(42)).unwrap().unwrap().settings.flood, Flood::None, "nor is it flooded to");
    assert_eq!(vtep.entry(vni(42), REMOTE_MAC).unwrap(), None);
    assert!(vtep.remove_vni(vni(42)).unwrap());
    assert_eq!(vtep.entries(None).unwrap(), []);
    assert_eq!(vtep.ports().unwrap().len(), 2, "the uplink and the other segment's port");
    let output = bench.at_uplink(&arriving().frame(&to_server(&Ipv4::default())));
    assert_eq!(output.verdict, Verdict::Drop);
}

/// Frames that are often nearly right: each is counted once, and none becomes anything but what it says.
#[test]
fn random_frames_are_counted_once_and_never_change_segment() {
    let Some(bench) = bench("random") else { return };
    let mut random = Random(7348);
    let seeds = [
        arriving().frame(&to_server(&Ipv4::default())),
        Outer { vni: 43, udp_checksum: Some(UdpChecksum::Right), ..arriving() }.frame(&to_remote(&Ipv4::default())),
        to_remote(&Ipv4::default()),
        ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp(1, (SERVER_MAC, PEER), ([0; 6], LOCAL))),
    ];
    let mut sent = 0;
    for turn in 0..4000u64 {
        let mut frame = seeds[random.below(4) as usize].clone();
        for _ in 0..random.below(4) {
            let place = random.below(frame.len() as u64) as usize;
            frame[place] = random.next() as u8;
        }
        if random.below(4) == 0 {
            frame.truncate(34 + random.below(frame.len() as u64 - 33) as usize);
        }
        let (program, ifindex) = match turn % 2 {
            0 => (VtepProgram::Uplink, 0),
            _ => (VtepProgram::Access, bench.ports[random.below(3) as usize]),
        };
        let output = bench.run(program, ifindex, &frame);
        sent += 1;
        if program == VtepProgram::Access && output.bytes.len() == frame.len() + 50 {
            let number = if ifindex == bench.ports[2] { 43 } else { 42 };
            assert_eq!(output.bytes[46..49], [0, 0, number], "{}", dump(&frame));
            assert_frame(&output.bytes[50..], &frame);
        }
    }
    let total: u64 = bench.vtep.counters().unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!(total, sent, "{:?}", counted(bench.vtep.counters().unwrap()));
}
