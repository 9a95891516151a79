//! A frame never enters another segment: random frames over a thousand VNIs, with the same MACs in all of them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_datapath::vxlan::{RateLimit, VtepView};
use weft_node::vtep::protocol::{Answer, Request};
use weft_node::vtep::{HookChoice, SegmentTable};
use weft_wire::vxlan::Header;

use crate::bed::{HOST, Hosts, own_queues, port, segment, segments};
use crate::common::wait_until;
use crate::net::tap::Tap;
use crate::net::{Namespace, Pins, link};

const VNIS: u32 = 1000;
/// Two ports in each of the first segments.
const PORTS: usize = 24;
const ROUNDS: usize = 120;
/// The first bytes of the payload of a frame that this test made; its VNI follows.
const MARK: [u8; 4] = *b"vni=";
/// Local experimental EtherType.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// One of few stations, or everybody, or nobody.
fn mac(rng: &mut Pcg64, source: bool) -> [u8; 6] {
    match rng.next_u32() % 8 {
        0 if !source => [0xff; 6],
        1 if !source => [0x01, 0, 0x5e, 0, 0, 9],
        2 if !source => [2, 9, 9, 9, 9, 9],
        _ => [2, 0, 0, 0, 0, (rng.next_u32() % 6) as u8],
    }
}

fn frame(rng: &mut Pcg64, vni: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(mac(rng, false));
    frame.extend(mac(rng, true));
    frame.extend(ETHERTYPE);
    frame.extend(MARK);
    frame.extend(vni.to_be_bytes());
    frame.resize(60 + rng.next_u32() as usize % 900, 0xa5);
    frame
}

/// The VNI that a frame of this test was made for.
fn marked(frame: &[u8]) -> Option<u32> {
    let payload = frame.get(12..22).filter(|part| part[..2] == ETHERTYPE && part[2..6] == MARK)?;
    Some(u32::from_be_bytes(payload[6..10].try_into().expect("four bytes")))
}

#[test]
fn random_frames_over_a_thousand_segments_stay_in_theirs() {
    let _queues = own_queues();
    let Some(hosts) = Hosts::new("iso") else { return };
    let vms = Namespace::new("iso", "vms");
    let mut config = hosts.config(0);
    config.vni = vec![segments(&format!("1-{VNIS}"))];
    let mut taps = Vec::new();
    for k in 0..PORTS {
        let (name, far, vni) = (format!("p{k}"), format!("v{k}"), 1 + (k / 2) as u32);
        link((&hosts.hosts[0], &name), (&vms, &far), 1500);
        config.port.push(port(&name, vni.into()));
        taps.push((vni, Tap::open(&vms, &far, false), 0u64));
    }
    let vtep = hosts.vtep(0, config);
    let peer = hosts.hosts[1].within(|| UdpSocket::bind((HOST[1], 4789)).unwrap());
    peer.set_nonblocking(true).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&peer, 64 << 20).unwrap();

    let mut rng = Pcg64::new(7, 11);
    let (mut at_peer, mut sent_by_peer) = (BTreeMap::<u32, u64>::new(), 0u64);
    let mut buffer = vec![0; 2048];
    for _ in 0..ROUNDS {
        for (vni, tap, _) in &taps {
            tap.send(&frame(&mut rng, *vni));
        }
        for _ in 0..PORTS {
            // Also VNIs without a port, and some that do not exist.
            let vni = match rng.next_u32() % 4 {
                0 => 1 + rng.next_u32() % (2 * VNIS),
                _ => 1 + rng.next_u32() % (PORTS as u32 / 2),
            };
            let mut datagram = Header { vni }.to_bytes().to_vec();
            datagram.extend(frame(&mut rng, vni));
            peer.send_to(&datagram, (HOST[0], 4789)).unwrap();
            sent_by_peer += 1;
        }
        for (vni, tap, count) in &mut taps {
            while let Some(frame) = tap.poll() {
                if let Some(marked) = marked(frame) {
                    assert_eq!(marked, *vni, "a frame of VNI {marked} came out in VNI {vni}");
                    *count += 1;
                }
            }
        }
        while let Ok(length) = peer.recv(&mut buffer) {
            let header = Header::parse(&buffer[..length]).unwrap();
            assert_eq!(marked(&buffer[8..length]), Some(header.vni), "the header names the port's VNI");
            *at_peer.entry(header.vni).or_default() += 1;
        }
    }
    assert_eq!(at_peer.len(), PORTS / 2, "every segment reached the peer: {at_peer:?}");
    assert!(taps.iter().all(|(_, _, count)| *count > 20), "every port heard something");
    let frames = |name: &str| vtep.count("frames", name);
    wait_until("the peer's frames are all accounted for", || {
        let delivered = frames("decapsulated") + frames("flooded_locally");
        let dropped = ["unknown_vni", "split_horizon", "no_receiver", "unknown_destination", "same_port"].map(frames);
        delivered + dropped.iter().sum::<u64>() >= sent_by_peer
    });
    assert!(frames("unknown_vni") > 0 && frames("decapsulated") > 0 && frames("switched") > 0);
    vtep.finish();
}

/// What HOST[1] says in a segment, to everybody.
fn said_in(vni: u32) -> Vec<u8> {
    let mut datagram = Header { vni }.to_bytes().to_vec();
    datagram.extend([[0xff; 6], [2, 0, 0, 0, 0, 1]].concat());
    datagram.extend([&ETHERTYPE[..], &MARK, &vni.to_be_bytes(), &[0; 40]].concat());
    datagram
}

fn a_peer_is_heard_in_the_segments_that_name_it(test: &'static str, hook: HookChoice) {
    let Some(hosts) = Hosts::new(test) else { return };
    let vms = Namespace::new(test, "vms");
    let other = Ipv4Addr::new(10, 9, 0, 77);
    let of =
        |vni, members: &[Ipv4Addr]| SegmentTable { members: Some(members.iter().copied().collect()), ..segment(vni) };
    let mut config = hosts.config(0);
    config.peers.insert(other);
    config.hook = hook;
    config.vni = vec![of(1, &[HOST[1], other]), of(2, &[other])];
    let mut taps = [1, 2].map(|vni| {
        link((&hosts.hosts[0], &format!("p{vni}")), (&vms, &format!("v{vni}")), 1500);
        config.port.push(port(&format!("p{vni}"), vni));
        Tap::open(&vms, &format!("v{vni}"), false)
    });
    let vtep = hosts.vtep(0, config.clone());
    let peer = hosts.hosts[1].within(|| UdpSocket::bind((HOST[1], 4789)).unwrap());
    let say = |vni| peer.send_to(&said_in(vni), (HOST[0], 4789)).map(drop).unwrap();
    let frames = |name: &str| vtep.count("frames", name);
    say(1);
    say(2);
    wait_until("both are counted", || [frames("flooded_locally"), frames("not_member")] == [1, 1]);
    let heard = |tap: &mut Tap| std::iter::from_fn(|| tap.poll().map(marked)).flatten().count();
    assert_eq!(taps.each_mut().map(heard), [1, 0]);
    // What the segment floods goes to all peers as before.
    taps[1].send(&said_in(2)[8..]);
    let mut buffer = vec![0; 2048];
    let told = std::iter::repeat_with(|| peer.recv(&mut buffer).map(|length| marked(&buffer[8..length])).unwrap());
    assert_eq!(told.flatten().next(), Some(2));

    config.vni[1] = of(2, &[HOST[1]]);
    *vtep.config.lock().unwrap() = config;
    vtep.hang_up();
    wait_until("it is a member", || {
        say(2);
        frames("flooded_locally") > 1
    });
    let shown = vtep.ask(Request::Config);
    assert!(matches!(&shown, Answer::Config(text) if text.contains("members")), "{shown:?}");
    vtep.finish();
}

#[test]
fn a_peer_is_heard_in_the_segments_that_name_it_at_tc() {
    a_peer_is_heard_in_the_segments_that_name_it("mtc", HookChoice::Tc);
}

#[test]
fn a_peer_is_heard_in_the_segments_that_name_it_at_xdp() {
    a_peer_is_heard_in_the_segments_that_name_it("mxdp", HookChoice::Xdp);
}

/// 10,000 frames of each kind a second, a tenth of them at once, unless the settings say otherwise.
#[test]
fn a_segment_may_flood_only_so_much_without_being_told() {
    let Some(hosts) = Hosts::new("floods") else { return };
    let pins = Pins::new(hosts.dir.path());
    let mut config = hosts.config(0);
    config.pin_dir = Some(pins.dir("vtep"));
    config.vni = vec![segment(1)];
    let vtep = hosts.vtep(0, config);
    let segments = VtepView::open_pinned(pins.dir("vtep")).unwrap().segments().unwrap();
    let limit = Some(RateLimit { frames_per_sec: 10_000, burst_frames: 1000 });
    let [segment] = &segments[..] else { panic!("{segments:?}") };
    assert_eq!([segment.settings.broadcast_limit, segment.settings.unknown_limit], [limit, limit]);
    vtep.stop();
}
