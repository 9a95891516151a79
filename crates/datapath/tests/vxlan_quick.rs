//! What XDP has once looked up it does not look up again: the second frame leaves as the first, TC is the oracle for both,
//! and every change is noticed at once.

mod common;

use std::net::Ipv4Addr;

use common::netns::{Namespace, link};
use common::vxlan::{FAR_MAC, LOCAL, Node, Outer, PEER, STRANGER, arriving, quiet, settings, vni};
use common::*;
use weft_datapath::frame::{FrameInput, FrameOutput, Verdict};
use weft_datapath::vxlan::{self, AccessRule, Hook, Senders, To, VniSettings, Vtep, VtepOptions, VtepProgram};

const REMOTE_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x77];
/// Of a station that nobody has told of.
const ROAMER_MAC: [u8; 6] = [0x02, 5, 5, 5, 5, 5];
const SECOND_PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

/// Bytes in front of the inner frame.
const OUTER_BYTES: usize = 50;

/// A VTEP on XDP with ports `p0` and `p1` in segment 42 and `p2` in segment 43. [`SERVER_MAC`] is behind `p0`,
/// [`REMOTE_MAC`] behind [`PEER`]. Fields end in this order.
struct Bench {
    vtep: Vtep,
    ports: [u32; 3],
    uplink: u32,
    bed: Node,
    _stations: Namespace,
}

fn bench(test: &str) -> Option<Bench> {
    if !weft_needs::root() {
        return None;
    }
    let bed = Node::new(test);
    bed.silence();
    bed.node.ip(&format!("neigh replace {SECOND_PEER} lladdr {FAR_MAC} dev up"));
    let stations = quiet(test, "st");
    for port in ["p0", "p1", "p2"] {
        link((&bed.node, port), (&stations, port), 1500);
    }
    let mut vtep = bed.vtep(&VtepOptions { hook: Hook::Xdp, ..VtepOptions::new(LOCAL) })?;
    for number in [42, 43] {
        vtep.add_vni(vni(number), &settings()).unwrap();
    }
    let ports = [("p0", 42), ("p1", 42), ("p2", 43)]
        .map(|(port, number)| bed.attach(&mut vtep, port, number, AccessRule::default()));
    vtep.static_entry(vni(42), SERVER_MAC, To::Port(ports[0])).unwrap();
    vtep.static_entry(vni(42), REMOTE_MAC, To::Remote(PEER)).unwrap();
    let uplink = bed.node.enter_with(|| vxlan::interface_index("up")).unwrap();
    Some(Bench { vtep, ports, uplink, bed, _stations: stations })
}

impl Bench {
    fn run(&self, program: VtepProgram, ifindex: u32, bytes: &[u8]) -> FrameOutput {
        let input = FrameInput { bytes, ifindex, ..FrameInput::default() };
        self.bed.node.enter_with(|| self.vtep.run(program, &input)).expect("the program runs")
    }

    fn at_port(&self, bytes: &[u8]) -> FrameOutput {
        self.run(VtepProgram::AccessXdp, self.ports[0], bytes)
    }

    fn at_uplink(&self, bytes: &[u8]) -> FrameOutput {
        self.run(VtepProgram::UplinkXdp, self.uplink, bytes)
    }

    /// Until what was looked up is known.
    fn warm(&self) {
        for _ in 0..2 {
            assert_eq!(self.at_port(&to_remote(&Ipv4::default())).verdict, Verdict::Redirect);
            assert_eq!(self.at_uplink(&arriving().frame(&to_server(&Ipv4::default()))).verdict, Verdict::Redirect);
        }
    }

    /// Where the frame of a port went, by the outer header that it got.
    fn peer_of(&self, inner: &[u8]) -> Option<Ipv4Addr> {
        let output = self.at_port(inner);
        let address = output.bytes.get(30..34).filter(|_| output.bytes.len() == inner.len() + OUTER_BYTES)?;
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(address).expect("four bytes")))
    }
}

fn to_remote(packet: &Ipv4) -> Vec<u8> {
    ethernet(REMOTE_MAC, SERVER_MAC, 0x0800, &packet.bytes())
}

fn to_server(packet: &Ipv4) -> Vec<u8> {
    ethernet(SERVER_MAC, REMOTE_MAC, 0x0800, &packet.bytes())
}

/// Packets with and without something unusual about them.
fn packets() -> Vec<Ipv4> {
    let plain = Ipv4::default();
    let mut packets: Vec<Ipv4> = (0..4).map(|tos| Ipv4 { tos: 0xb8 | tos, ..plain.clone() }).collect();
    packets.extend([0, 3, 4, 1400].map(|length| Ipv4 { payload: vec![7; length], ..plain.clone() }));
    packets.extend([1, 6].map(|protocol| Ipv4 { protocol, ..plain.clone() }));
    packets.extend([0x2000, 0x0007].map(|fragment| Ipv4 { fragment, ..plain.clone() }));
    packets.push(Ipv4 { options: vec![1; 8], ..plain });
    packets
}

/// The frame once more and once more; all answers are the same.
fn thrice(run: impl Fn() -> FrameOutput) -> FrameOutput {
    let first = run();
    for _ in 0..2 {
        let again = run();
        assert_eq!(again.verdict, first.verdict);
        assert_frame(&again.bytes, &first.bytes);
    }
    first
}

#[test]
fn a_frame_leaves_as_the_one_before_it() {
    let Some(bench) = bench("qencap") else { return };
    bench.warm();
    let mut frames: Vec<Vec<u8>> = packets().iter().map(to_remote).collect();
    frames.extend([0x86dd, 0x88b5].map(|ethertype| ethernet(REMOTE_MAC, SERVER_MAC, ethertype, &[0x60; 60])));
    for inner in frames {
        let output = thrice(|| bench.at_port(&inner));
        let oracle = bench.run(VtepProgram::Access, bench.ports[0], &inner);
        assert_eq!(output.verdict, Verdict::Redirect, "{}", dump(&inner));
        // TC leaves the MACs to the kernel.
        assert_frame(&output.bytes[12..], &oracle.bytes[12..]);
    }
    // One that is shorter than it says is for the kernel to measure; padding goes along.
    let padded = [&to_remote(&Ipv4::default())[..], &[0; 9]].concat();
    assert_frame(&thrice(|| bench.at_port(&padded)).bytes[OUTER_BYTES..], &padded);
}

#[test]
fn a_datagram_is_taken_as_the_one_before_it() {
    let Some(bench) = bench("qdecap") else { return };
    bench.warm();
    let mut datagrams = Vec::new();
    for packet in packets() {
        for tos in 0..4 {
            datagrams.push(Outer { tos, ..arriving() }.frame(&to_server(&packet)));
        }
    }
    let inner = to_server(&Ipv4::default());
    let wrong = [
        Outer { flags: [0; 4], ..arriving() },
        Outer { vni: 43, ..arriving() },
        Outer { vni: 42 | 1 << 16, ..arriving() },
        Outer { source: STRANGER, ..arriving() },
        Outer { destination: STRANGER, ..arriving() },
        Outer { port: 4790, ..arriving() },
        Outer { fragment: 0x2000, ..arriving() },
        Outer { udp_length_error: 1, ..arriving() },
        Outer { udp_length_error: -1, ..arriving() },
    ];
    datagrams.extend(wrong.iter().map(|outer| outer.frame(&inner)));
    let tagged = [&inner[..12], &[0x81, 0, 0, 5], &inner[12..]].concat();
    datagrams.push(arriving().frame(&tagged));
    let mut bad_sum = arriving().frame(&inner);
    bad_sum[24] ^= 1;
    datagrams.push(bad_sum);
    datagrams.push([&arriving().frame(&inner)[..], &[0]].concat());

    let mut taken = 0;
    for datagram in datagrams {
        let output = thrice(|| bench.at_uplink(&datagram));
        if output.verdict == Verdict::Next {
            assert_frame(&output.bytes, &datagram);
            continue;
        }
        taken += 1;
        let oracle = bench.run(VtepProgram::Uplink, bench.uplink, &datagram);
        assert_eq!((output.verdict, oracle.verdict), (Verdict::Redirect, Verdict::Redirect), "{}", dump(&datagram));
        assert_frame(&output.bytes, &oracle.bytes);
    }
    // All but the drops: congestion marked on what cannot carry the mark, once for each packet that is not ECN-capable.
    let not_capable = packets().iter().filter(|packet| packet.tos & 3 == 0).count();
    assert_eq!(taken, packets().len() * 4 - not_capable);
}

#[test]
fn frames_are_counted_by_segment_and_peer() {
    let Some(bench) = bench("qcount") else { return };
    let before = bench.vtep.segment(vni(42)).unwrap().unwrap().traffic;
    for _ in 0..5 {
        bench.warm();
    }
    let after = bench.vtep.segment(vni(42)).unwrap().unwrap().traffic;
    let bytes = to_remote(&Ipv4::default()).len() as u64;
    assert_eq!((after.sent_frames - before.sent_frames, after.sent_bytes - before.sent_bytes), (10, 10 * bytes));
    assert_eq!(after.sent_frames, after.received_frames);
    assert_eq!(bench.vtep.peers().unwrap()[0].traffic, after);
    assert_eq!(counted(bench.vtep.counters().unwrap()), [("encapsulated", 10), ("decapsulated", 10)]);
}

#[test]
fn what_user_space_changes_is_noticed_at_once() {
    let Some(mut bench) = bench("qtold") else { return };
    bench.warm();
    let inner = to_remote(&Ipv4::default());
    let datagram = arriving().frame(&to_server(&Ipv4::default()));
    let elsewhere = ethernet(OTHER_MAC, SERVER_MAC, 0x0800, &Ipv4::default().bytes());
    bench.vtep.static_entry(vni(42), OTHER_MAC, To::Remote(SECOND_PEER)).unwrap();
    bench.warm();
    assert_eq!(bench.peer_of(&inner), Some(PEER));
    bench.vtep.static_entry(vni(42), REMOTE_MAC, To::Remote(SECOND_PEER)).unwrap();
    // The source is known again, the destination is not.
    assert_eq!(bench.peer_of(&elsewhere), Some(SECOND_PEER));
    assert_eq!(bench.peer_of(&inner), Some(SECOND_PEER));
    assert_eq!(bench.peer_of(&inner), Some(SECOND_PEER));
    bench.vtep.remove_entry(vni(42), REMOTE_MAC).unwrap();
    assert_eq!((bench.peer_of(&inner), bench.at_port(&inner).verdict), (None, Verdict::Next));

    bench.vtep.static_entry(vni(42), REMOTE_MAC, To::Remote(SECOND_PEER)).unwrap();
    assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Redirect);
    bench.vtep.remove_peer(PEER).unwrap();
    // The destination is known again, the source is not.
    let other = ethernet(SERVER_MAC, OTHER_MAC, 0x0800, &Ipv4::default().bytes());
    let from_other = Outer { source: SECOND_PEER, ..arriving() }.frame(&other);
    assert_eq!(bench.at_uplink(&from_other).verdict, Verdict::Redirect);
    assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Next, "of a stranger now");
    bench.vtep.add_peer(PEER).unwrap();
    assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Redirect);

    // The port goes, and comes back in another segment.
    bench.bed.node.enter_with(|| bench.vtep.detach(bench.ports[0])).unwrap();
    assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Next);
    assert_eq!(bench.at_port(&inner).verdict, Verdict::Next);
    bench.bed.attach(&mut bench.vtep, "p0", 43, AccessRule::default());
    bench.vtep.static_entry(vni(43), SERVER_MAC, To::Port(bench.ports[0])).unwrap();
    assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Next);
    assert_eq!(bench.at_port(&inner).verdict, Verdict::Next);
}

#[test]
fn a_segment_that_goes_takes_along_what_was_found_in_it() {
    let Some(mut bench) = bench("qvni") else { return };
    bench.warm();
    bench.bed.node.enter_with(|| bench.vtep.remove_vni(vni(42))).unwrap();
    assert_eq!(bench.at_port(&to_remote(&Ipv4::default())).verdict, Verdict::Next);
    assert_eq!(bench.at_uplink(&arriving().frame(&to_server(&Ipv4::default()))).verdict, Verdict::Next);
}

#[test]
fn a_station_that_moves_is_followed() {
    let Some(bench) = bench("qmove") else { return };
    let from_roamer = ethernet(SERVER_MAC, ROAMER_MAC, 0x0800, &Ipv4::default().bytes());
    let to_roamer = ethernet(ROAMER_MAC, SERVER_MAC, 0x0800, &Ipv4::default().bytes());
    let p1 = bench.ports[1];
    for _ in 0..2 {
        // Behind the peer.
        bench.at_uplink(&arriving().frame(&from_roamer));
        assert_eq!(bench.peer_of(&to_roamer), Some(PEER));
        assert_eq!(bench.peer_of(&to_roamer), Some(PEER));
        // At a port; the TC program hears of it first.
        bench.run(VtepProgram::Access, p1, &from_roamer);
        let switched = bench.at_port(&to_roamer);
        assert_eq!(switched.verdict, Verdict::Redirect);
        assert_frame(&switched.bytes, &to_roamer);
        // Datagrams for it come out there, until it is behind the peer again: then they would go back where they are from.
        let datagram = arriving().frame(&ethernet(ROAMER_MAC, REMOTE_MAC, 0x0800, &Ipv4::default().bytes()));
        assert_eq!(thrice(|| bench.at_uplink(&datagram)).verdict, Verdict::Redirect);
        bench.at_uplink(&arriving().frame(&from_roamer));
        assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Next);
    }
    let events: Vec<_> = counted(bench.vtep.events().unwrap());
    assert!(events.contains(&("moved", 4)), "{events:?}");
}

#[test]
fn a_peer_is_heard_where_it_is_a_member() {
    let Some(mut bench) = bench("qmember") else { return };
    let datagram = arriving().frame(&to_server(&Ipv4::default()));
    bench.warm();
    bench.vtep.remove_entry(vni(42), REMOTE_MAC).unwrap();
    // What is not quick goes to TC, which drops it and says why.
    let not_members = |bench: &Bench| {
        let before = counted(bench.vtep.counters().unwrap());
        assert_eq!(bench.at_uplink(&datagram).verdict, Verdict::Next);
        assert_eq!(bench.run(VtepProgram::Uplink, bench.uplink, &datagram).verdict, Verdict::Drop);
        let count =
            |of: &[(&str, u64)]| of.iter().find(|(name, _)| *name == "not_member").map_or(0, |(_, count)| *count);
        count(&counted(bench.vtep.counters().unwrap())) - count(&before)
    };
    bench.vtep.add_vni(vni(42), &VniSettings { senders: Senders::Named, ..settings() }).unwrap();
    assert_eq!(not_members(&bench), 1);
    bench.vtep.set_members(vni(42), &[PEER].into()).unwrap();
    assert_eq!(thrice(|| bench.at_uplink(&datagram)).verdict, Verdict::Redirect);
    bench.vtep.set_members(vni(42), &[SECOND_PEER].into()).unwrap();
    assert_eq!(not_members(&bench), 1);
}
