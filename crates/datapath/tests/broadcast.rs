//! Broadcast and multicast of a service: whole frames on their way out and in, and between two hosts.

mod common;

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use common::netns::{Namespace, link};
use common::pinfs::PinFs;
use common::tap::Tap;
use common::traffic::segment_datagrams;
use common::*;
use weft_datapath::broadcast::Broadcast;
use weft_datapath::frame::{FrameInput, FrameOutput, Verdict};
use weft_datapath::host::{HostConfig, HostDatapath, OwnAddresses, TokenBucket};
use weft_wire::block::Block;

const MY_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 2);
const PEER_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 2);
const THIRD_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 3);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 192, 0, 1);
const GROUP_MAC: [u8; 6] = [0x01, 0x00, 0x5e, 0x40, 0x00, 0x01];
const MDNS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const IGMP: u8 = 2;
/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

/// Everything that means all hosts of a service, with the MAC that Ethernet has for it.
const EVERYBODY: [(Ipv4Addr, [u8; 6]); 6] = [
    (Ipv4Addr::BROADCAST, BROADCAST_MAC),
    (Ipv4Addr::new(20, 255, 255, 255), BROADCAST_MAC),
    (Ipv4Addr::new(20, 0, 0, 0), BROADCAST_MAC),
    (MDNS, [0x01, 0x00, 0x5e, 0, 0, 0xfb]),
    (Ipv4Addr::new(239, 255, 255, 255), [0x01, 0x00, 0x5e, 0x7f, 0xff, 0xff]),
    (Ipv4Addr::new(232, 129, 2, 3), [0x01, 0x00, 0x5e, 0x01, 2, 3]),
];

fn to_group() -> Broadcast {
    Broadcast { group: Some(GROUP), ..to_members(&[PEER_LA]) }
}

fn to_members(members: &[Ipv4Addr]) -> Broadcast {
    let limit = TokenBucket { bits_per_s: 1_000_000_000, burst_bytes: 1_000_000 };
    let la_block = Block::of(Ipv4Addr::new(10, 0, 0, 0), 8);
    Broadcast { aa: MY_AA, la: MY_LA, la_block, members: members.to_vec(), group: None, mtu: 1600, limit }
}

fn with(broadcast: Broadcast) -> HostConfig {
    host_config_with(|config| config.broadcast = Some(broadcast))
}

fn loaded(broadcast: Broadcast) -> Option<HostDatapath> {
    let host = available(HostDatapath::load(&with(broadcast)))?;
    host.set(PEER_AA, &MAPPING).expect("the map has room");
    Some(host)
}

fn out(host: &HostDatapath, frame: &[u8]) -> FrameOutput {
    host.run(&FrameInput { bytes: frame, ..FrameInput::default() }).expect("the program runs")
}

fn incoming(host: &HostDatapath, frame: &[u8]) -> FrameOutput {
    host.run_incoming(&FrameInput { bytes: frame, ..FrameInput::default() }).expect("the program runs")
}

/// What a host of the service sends to the group.
fn from_peer(inner: &Ipv4) -> Vec<u8> {
    ethernet(GROUP_MAC, OTHER_MAC, 0x0800, &wrapped(&inner.bytes(), PEER_LA, GROUP, inner.tos))
}

fn peer_packet() -> Ipv4 {
    Ipv4 { source: PEER_AA, destination: Ipv4Addr::BROADCAST, ttl: 1, ..Ipv4::default() }
}

#[test]
fn what_is_for_everybody_leaves_with_one_header_to_the_group() {
    let Some(host) = loaded(to_group()) else { return };
    for (destination, mac) in EVERYBODY {
        let packet = Ipv4 { destination, tos: 0xb9, ttl: 1, options: vec![0x94, 4, 0, 0], ..Ipv4::default() };
        let frame = ethernet(mac, SERVER_MAC, 0x0800, &packet.bytes());
        let sent = out(&host, &frame);
        assert_eq!(sent.verdict, Verdict::Next);
        assert_frame(
            &sent.bytes,
            &ethernet(GROUP_MAC, SERVER_MAC, 0x0800, &wrapped(&packet.bytes(), MY_LA, GROUP, 0xb9)),
        );
    }
    assert_eq!(counted(host.counters().unwrap()), [("broadcast_sent", 6)]);
}

#[test]
fn unicast_dhcp_and_the_hosts_own_multicast_are_as_before() {
    let Some(host) = loaded(to_group()) else { return };
    let unicast = Ipv4::default();
    assert_frame(&out(&host, &unicast.frame()).bytes, &encapsulated(&unicast.bytes()));
    let discover = Ipv4 { source: Ipv4Addr::UNSPECIFIED, destination: Ipv4Addr::BROADCAST, ..Ipv4::default() };
    let own = Ipv4 { source: MY_LA, destination: Ipv4Addr::new(224, 0, 0, 22), protocol: IGMP, ..Ipv4::default() };
    for frame in [discover.frame(), own.frame()] {
        assert_eq!(out(&host, &frame), FrameOutput { verdict: Verdict::Next, bytes: frame });
    }
    assert_eq!(counted(host.counters().unwrap()), [("passed", 2), ("encapsulated", 1)]);
}

#[test]
fn a_dhcp_client_with_an_address_finds_the_relay() {
    let from = |ports: [u8; 4], destination| {
        Ipv4 { destination, payload: [&ports[..], &[0; 300]].concat(), ..Ipv4::default() }.frame()
    };
    let request = from([0, 68, 0, 67], Ipv4Addr::BROADCAST);
    let others = [
        from([0, 67, 0, 68], Ipv4Addr::BROADCAST),
        from([0, 68, 0, 67], MDNS),
        from([0, 69, 0, 67], Ipv4Addr::BROADCAST),
    ];
    let (Some(host), Some(without)) = (loaded(to_group()), host()) else { return };
    for host in [&host, &without] {
        assert_eq!(out(host, &request), FrameOutput { verdict: Verdict::Next, bytes: request.clone() });
        others.iter().for_each(|frame| drop(out(host, frame)));
    }
    assert_eq!(counted(host.counters().unwrap()), [("broadcast_sent", 3), ("dhcp_passed", 1)]);
    assert_eq!(counted(without.counters().unwrap()), [("broadcast_unsupported", 3), ("dhcp_passed", 1)]);
}

#[test]
fn nobody_but_the_host_broadcasts() {
    let Some(host) = loaded(to_group()) else { return };
    let from = |source, destination| Ipv4 { source, destination, ..Ipv4::default() }.frame();
    let block = Ipv4Addr::new(20, 255, 255, 255);
    for frame in [from(PEER_AA, MDNS), from(MY_LA, block), from(Ipv4Addr::UNSPECIFIED, block)] {
        assert_eq!(out(&host, &frame), FrameOutput { verdict: Verdict::Drop, bytes: frame });
    }
    assert_eq!(counted(host.counters().unwrap()), [("broadcast_foreign", 3)]);
}

#[test]
fn memberships_leave_plain_and_from_the_la() {
    let report = |source| {
        let destination = Ipv4Addr::new(224, 0, 0, 22);
        let payload = vec![0x22, 0, 0xe9, 0x3d, 0, 0, 0, 1, 4, 0, 0, 0, 239, 192, 0, 1];
        let options = vec![0x94, 4, 0, 0];
        Ipv4 { source, destination, ttl: 1, tos: 0xc0, protocol: IGMP, options, payload, ..Ipv4::default() }.frame()
    };
    let Some(host) = loaded(to_group()) else { return };
    assert_eq!(out(&host, &report(MY_AA)), FrameOutput { verdict: Verdict::Next, bytes: report(MY_LA) });
    assert_eq!(counted(host.counters().unwrap()), [("igmp_passed", 1)]);
    let Some(host) = loaded(to_members(&[PEER_LA])) else { return };
    assert_eq!(out(&host, &report(MY_AA)), FrameOutput { verdict: Verdict::Drop, bytes: report(MY_AA) });
    assert_eq!(counted(host.counters().unwrap()), [("igmp_dropped", 1)]);
}

#[test]
fn what_does_not_fit_its_members_with_its_header_is_dropped() {
    let frame = |bytes: usize| Ipv4 { destination: MDNS, payload: vec![7; bytes - 20], ..Ipv4::default() }.frame();
    for (mtu, fits) in [(1600, 1580), (1520, 1500), (1500, 1480)] {
        let Some(host) = loaded(Broadcast { mtu, ..to_group() }) else { return };
        let sent = out(&host, &frame(fits));
        assert_eq!((sent.verdict, sent.bytes.len()), (Verdict::Next, 14 + mtu as usize));
        let large = frame(fits + 1);
        assert_eq!(out(&host, &large), FrameOutput { verdict: Verdict::Drop, bytes: large });
        let mut lying = frame(100);
        lying[17] += 1;
        assert_eq!(out(&host, &lying).verdict, Verdict::Drop);
        let wanted = [("malformed", 1), ("broadcast_sent", 1), ("broadcast_too_big", 1)];
        assert_eq!(counted(host.counters().unwrap()), wanted);
    }
}

#[test]
fn broadcast_has_a_bucket_of_its_own() {
    // A thousand bits a second: the bucket gains nothing while the test runs.
    let limit = TokenBucket { bits_per_s: 1000, burst_bytes: 3000 };
    let Some(host) = loaded(Broadcast { limit, ..to_group() }) else { return };
    let frame = |destination| Ipv4 { destination, payload: vec![7; 966], ..Ipv4::default() }.frame();
    let verdicts: Vec<Verdict> = EVERYBODY.map(|(destination, _)| out(&host, &frame(destination)).verdict).into();
    assert_eq!(verdicts, [[Verdict::Next; 3], [Verdict::Drop; 3]].concat());
    for _ in 0..10 {
        assert_eq!(out(&host, &frame(PEER_AA)).verdict, Verdict::Next);
    }
    let wanted = [("encapsulated", 10), ("broadcast_sent", 3), ("broadcast_limited", 3)];
    assert_eq!(counted(host.counters().unwrap()), wanted);
}

#[test]
fn a_super_frame_is_paid_for_as_a_whole() {
    let limit = TokenBucket { bits_per_s: 1000, burst_bytes: 2000 };
    let Some(host) = loaded(Broadcast { limit, ..to_group() }) else { return };
    let large = Ipv4 { destination: MDNS, payload: vec![7; 3000], ..Ipv4::default() }.frame();
    let run = || host.run(&FrameInput { bytes: &large, gso_size: 1400, ..FrameInput::default() }).unwrap().verdict;
    // BPF_PROG_RUN cannot say which kind of GSO it is, so the kernel refuses the push: the limit had let it through.
    assert_eq!([run(), run()], [Verdict::Drop; 2]);
    assert_eq!(counted(host.counters().unwrap()), [("push_failed", 1), ("broadcast_limited", 1)]);
}

#[test]
fn who_is_alone_is_heard_by_nobody() {
    for group in [None, Some(GROUP)] {
        let Some(host) = loaded(Broadcast { group, ..to_members(&[]) }) else { return };
        let frame = Ipv4 { destination: Ipv4Addr::BROADCAST, ..Ipv4::default() }.frame();
        assert_eq!(out(&host, &frame), FrameOutput { verdict: Verdict::Drop, bytes: frame });
        assert_eq!(counted(host.counters().unwrap()), [("broadcast_alone", 1)]);
    }
}

#[test]
fn without_broadcast_nothing_has_changed() {
    let Some(host) = host() else { return };
    for (destination, _) in EVERYBODY {
        let frame = Ipv4 { destination, ..Ipv4::default() }.frame();
        assert_eq!(out(&host, &frame), FrameOutput { verdict: Verdict::Drop, bytes: frame });
    }
    assert_eq!(counted(host.counters().unwrap()), [("broadcast_unsupported", 6)]);
    assert!(counted(host.receive_counters().unwrap()).is_empty());
}

#[test]
fn what_the_group_carries_comes_in_as_on_an_ethernet() {
    let Some(host) = loaded(to_group()) else { return };
    for (destination, mac) in EVERYBODY {
        let packet = Ipv4 { destination, options: vec![0x94, 4, 0, 0], tos: 0x28, ..peer_packet() };
        let got = incoming(&host, &from_peer(&packet));
        assert_eq!(got.verdict, Verdict::Next);
        assert_frame(&got.bytes, &ethernet(mac, OTHER_MAC, 0x0800, &packet.bytes()));
    }
    assert_eq!(counted(host.receive_counters().unwrap()), [("delivered", 6)]);
}

#[test]
fn a_member_s_copy_comes_in_the_same_way() {
    let Some(host) = loaded(to_members(&[PEER_LA])) else { return };
    let copy = |from| ethernet(SERVER_MAC, OTHER_MAC, 0x0800, &wrapped(&peer_packet().bytes(), from, MY_LA, 0));
    let got = incoming(&host, &copy(PEER_LA));
    assert_eq!(got.verdict, Verdict::Next);
    assert_frame(&got.bytes, &ethernet(BROADCAST_MAC, OTHER_MAC, 0x0800, &peer_packet().bytes()));
    for frame in [copy(THIRD_LA), copy(MY_LA), from_peer(&peer_packet())] {
        assert_eq!(incoming(&host, &frame), FrameOutput { verdict: Verdict::Drop, bytes: frame });
    }
    let wanted = [("delivered", 1), ("looped", 1), ("other_group", 1), ("not_a_member", 1)];
    assert_eq!(counted(host.receive_counters().unwrap()), wanted);
}

#[test]
fn what_is_no_broadcast_of_the_service_is_not_touched() {
    let Some(host) = loaded(to_group()) else { return };
    let plain = Ipv4 { source: PEER_AA, destination: MY_AA, ..Ipv4::default() };
    let query = Ipv4 { source: PEER_LA, destination: Ipv4Addr::new(224, 0, 0, 1), protocol: IGMP, ..Ipv4::default() };
    let group_udp = Ipv4 { source: PEER_LA, destination: GROUP, ..Ipv4::default() };
    let tunnel = wrapped(&peer_packet().bytes(), PEER_LA, MY_LA, 0);
    let mut frames =
        vec![plain.frame(), query.frame(), group_udp.frame(), ethernet(SERVER_MAC, OTHER_MAC, 0x0800, &tunnel)];
    frames.push(ethernet(BROADCAST_MAC, OTHER_MAC, 0x0806, &arp(1, (OTHER_MAC, PEER_AA), ([0; 6], MY_AA))));
    frames.push(ethernet(SERVER_MAC, OTHER_MAC, 0x86dd, &[0x60; 60]));
    let count = frames.len() as u64;
    for frame in frames {
        assert_eq!(incoming(&host, &frame), FrameOutput { verdict: Verdict::Next, bytes: frame });
    }
    assert_eq!(counted(host.receive_counters().unwrap()), [("passed", count)]);
}

#[test]
fn what_cannot_be_of_the_service_is_dropped_for_its_reason() {
    let Some(host) = loaded(to_group()) else { return };
    let outer = |source: Ipv4Addr, group: Ipv4Addr, inner: &[u8]| {
        ethernet(GROUP_MAC, OTHER_MAC, 0x0800, &wrapped(inner, source, group, 0))
    };
    let good = peer_packet().bytes();
    let inner = |change: &dyn Fn(&mut Ipv4)| {
        let mut packet = peer_packet();
        change(&mut packet);
        from_peer(&packet)
    };
    let patched = |at: usize, value: u8, right: bool| {
        let mut frame = from_peer(&peer_packet());
        frame[at] = value;
        if right {
            write_checksum(&mut frame[14..]);
        }
        frame
    };
    let whole = from_peer(&peer_packet());
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("tagged", [&whole[..12], &[0x81, 0, 0, 5], &whole[12..]].concat()),
        ("looped", outer(MY_LA, GROUP, &good)),
        ("looped", inner(&|packet| packet.source = MY_AA)),
        ("other_group", outer(PEER_LA, Ipv4Addr::new(239, 192, 0, 2), &good)),
        ("other_group", outer(PEER_LA, Ipv4Addr::BROADCAST, &good)),
        ("foreign_source", outer(Ipv4Addr::new(192, 0, 2, 1), GROUP, &good)),
        ("foreign_source", outer(PEER_AA, GROUP, &good)),
        ("not_a_member", outer(THIRD_LA, GROUP, &good)),
        ("bad_inner_source", inner(&|packet| packet.source = PEER_LA)),
        ("bad_inner_source", inner(&|packet| packet.source = Ipv4Addr::UNSPECIFIED)),
        ("bad_inner_source", inner(&|packet| packet.source = Ipv4Addr::new(20, 255, 255, 255))),
        ("bad_inner_source", inner(&|packet| packet.source = MDNS)),
        ("not_broadcast", inner(&|packet| packet.destination = MY_AA)),
        ("not_broadcast", inner(&|packet| packet.destination = Ipv4Addr::new(192, 0, 2, 1))),
        ("bad_checksum", patched(24, 0, false)),
        ("fragment", patched(20, 0x20, true)),
        ("fragment", patched(21, 1, true)),
        ("malformed", patched(14, 0x46, true)),
        ("malformed", patched(17, 39, true)),
        ("malformed", patched(17, 0xff, true)),
        ("malformed", patched(34, 0x65, true)),
        ("malformed", patched(34, 0x44, true)),
        ("malformed", patched(37, 19, true)),
        ("malformed", patched(37, 65, true)),
        ("malformed", from_peer(&peer_packet())[..53].to_vec()),
        ("malformed", from_peer(&peer_packet())[..34].to_vec()),
    ];
    let mut wanted = std::collections::BTreeMap::new();
    for (reason, frame) in cases {
        let got = incoming(&host, &frame);
        assert_eq!(got, FrameOutput { verdict: Verdict::Drop, bytes: frame }, "{reason}");
        *wanted.entry(reason).or_insert(0) += 1;
    }
    let got: std::collections::BTreeMap<_, _> = counted(host.receive_counters().unwrap()).into_iter().collect();
    assert_eq!(got, wanted);
}

#[test]
fn congestion_marks_come_through() {
    let Some(host) = loaded(to_group()) else { return };
    for (outer, inner, leaving) in [(3, 1, 3), (3, 2, 3), (1, 2, 1), (2, 1, 1), (0, 2, 2), (3, 3, 3), (1, 0, 0)] {
        let packet = Ipv4 { tos: 0x28 | inner, ..peer_packet() };
        let frame = ethernet(GROUP_MAC, OTHER_MAC, 0x0800, &wrapped(&packet.bytes(), PEER_LA, GROUP, outer));
        let marked = Ipv4 { tos: 0x28 | leaving, ..packet };
        let got = incoming(&host, &frame);
        assert_frame(&got.bytes, &ethernet(BROADCAST_MAC, OTHER_MAC, 0x0800, &marked.bytes()));
    }
    let unmarkable = ethernet(GROUP_MAC, OTHER_MAC, 0x0800, &wrapped(&peer_packet().bytes(), PEER_LA, GROUP, 3));
    assert_eq!(incoming(&host, &unmarkable).verdict, Verdict::Drop);
    assert_eq!(counted(host.receive_counters().unwrap()), [("delivered", 7), ("ce_on_not_ect", 1)]);
}

#[test]
fn no_frame_that_was_tampered_with_confuses_the_programs() {
    let Some(host) = loaded(to_group()) else { return };
    let mut random = Random(7);
    let runs = 4000;
    for _ in 0..runs {
        let packet = Ipv4 { payload: random.bytes(60), ..peer_packet() };
        let mut frame = from_peer(&packet);
        for _ in 0..random.below(4) {
            let at = random.below(frame.len() as u64) as usize;
            frame[at] = random.next() as u8;
        }
        // The kernel takes no trial frame without an IPv4 header in full.
        frame.truncate((34 + random.below(frame.len() as u64)) as usize);
        let got = incoming(&host, &frame);
        match got.verdict {
            Verdict::Next if got.bytes.len() < frame.len() => assert_eq!(got.bytes.len(), frame.len() - 20),
            Verdict::Next | Verdict::Drop => {}
            other => panic!("{other:?}"),
        }
        assert!(matches!(out(&host, &frame).verdict, Verdict::Next | Verdict::Drop | Verdict::Redirect));
    }
    let total = |counters: Vec<(&str, u64)>| counters.into_iter().map(|(_, count)| count).sum::<u64>();
    let (received, sent) = (total(host.receive_counters().unwrap()), total(host.counters().unwrap()));
    assert_eq!((received, sent), (runs, runs), "every frame has one outcome");
}

#[test]
fn a_setting_that_cannot_work_is_refused() {
    let limit = TokenBucket { bits_per_s: 1_000_000, burst_bytes: 15_000 };
    for (broadcast, message) in [
        (Broadcast { limit: TokenBucket { bits_per_s: 0, ..limit }, ..to_group() }, "0 bit/s lets next to nothing out"),
        (Broadcast { limit: TokenBucket { burst_bytes: 1000, ..limit }, ..to_group() }, "is less than one frame"),
        (Broadcast { group: Some(PEER_LA), ..to_group() }, "10.64.1.2 is no multicast group"),
        (to_members(&[PEER_LA, MY_LA]), "10.64.0.2 would be its own member"),
        (Broadcast { mtu: 1601, ..to_group() }, "packets of 1601 bytes do not fit the fabric, which carries 1600"),
    ] {
        let error = HostDatapath::load(&with(broadcast)).unwrap_err().to_string();
        assert!(error.contains("broadcast") && error.contains(message), "{error}");
    }
}

/// A server whose interface ends at a tap instead of a ToR.
fn server(test: &str) -> Option<(Namespace, Namespace)> {
    if !weft_needs::root() {
        return None;
    }
    let (server, far) = (Namespace::new(test, "s"), Namespace::new(test, "far"));
    link((&server, "eth0"), (&far, "eth0"), 1600);
    connect(&server, MY_AA, MY_LA);
    Some((server, far))
}

/// The AA is the interface's first address, so the kernel's own reports come from it.
fn connect(server: &Namespace, aa: Ipv4Addr, la: Ipv4Addr) {
    server.ip("link set dev eth0 mtu 1500");
    server.ip(&format!("addr add {aa}/8 brd + dev eth0"));
    server.ip(&format!("addr add {la}/24 dev eth0"));
    server.ip("route add default dev eth0");
}

fn on_eth0(broadcast: Broadcast) -> HostConfig {
    HostConfig { interface: "eth0".to_owned(), ..with(broadcast) }
}

#[test]
fn each_member_gets_one_copy() {
    let Some((server, far)) = server("copies") else { return };
    let tap = Tap::open(&far, "eth0", WAIT);
    let members = [PEER_LA, THIRD_LA, Ipv4Addr::new(10, 64, 9, 9)];
    // Copies come by the program a second time, where they must not look like headers that the host made up.
    let own = Some(OwnAddresses { aa: MY_AA, la: MY_LA, public_la: None });
    let config = HostConfig { own, ..on_eth0(to_members(&members)) };
    let Some(host) = available(server.enter(|| HostDatapath::attach(&config))) else { return };
    let mac = mac_of(&server);
    server.enter(|| {
        let socket = UdpSocket::bind((MY_AA, 5353)).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.send_to(b"who is there?", (Ipv4Addr::BROADCAST, 7)).unwrap();
    });
    let mut copies: Vec<Vec<u8>> = (0..3).map(|_| tap.next().expect("a copy for each")).collect();
    copies.sort();
    let mut inner = copies[0][34..].to_vec();
    assert_eq!(&inner[28..], b"who is there?");
    assert_eq!(inner[16..20], [255; 4]);
    inner.truncate(41);
    let mut wanted = members.map(|member| ethernet(GATEWAY_MAC, mac, 0x0800, &wrapped(&inner, MY_LA, member, 0)));
    wanted.sort();
    for (copy, wanted) in copies.iter().zip(&wanted) {
        assert_frame(copy, wanted);
    }
    assert_eq!(tap.poll(), None, "and no other");
    let counters = counted(host.counters().unwrap());
    assert!(counters.contains(&("broadcast_copied", 1)), "{counters:?}");
}

fn mac_of(server: &Namespace) -> [u8; 6] {
    let output = server.command("ip").args(["-br", "link", "show", "dev", "eth0"]).output().expect("iproute2 is there");
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    let mac = line.split_whitespace().find(|word| word.matches(':').count() == 5).expect("a MAC is shown");
    let bytes: Vec<u8> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect();
    bytes.try_into().expect("six bytes")
}

/// More sources than a socket may have.
#[test]
fn the_host_joins_the_group_for_every_member_and_from_its_la() {
    let Some((server, far)) = server("join") else { return };
    let tap = Tap::open(&far, "eth0", WAIT);
    let members: Vec<Ipv4Addr> = (1..=25).map(|last| Ipv4Addr::new(10, 64, 2, last)).collect();
    let broadcast = Broadcast { members: members.clone(), ..to_group() };
    let Some(host) = available(server.enter(|| HostDatapath::attach(&on_eth0(broadcast)))) else { return };
    let holds = |frame: &[u8], address: Ipv4Addr| frame.windows(4).any(|bytes| bytes == address.octets());
    let mut missing = members;
    while !missing.is_empty() {
        let report = tap.next().unwrap_or_else(|| panic!("no report about {missing:?}"));
        if report[23] != IGMP || !holds(&report, GROUP) {
            continue;
        }
        assert_eq!(report[26..30], MY_LA.octets());
        assert_eq!(checksum(&report[14..14 + usize::from(report[14] & 15) * 4]).to_be_bytes(), report[24..26]);
        missing.retain(|member| !holds(&report, *member));
    }
    let counters = counted(host.counters().unwrap());
    assert!(counters.iter().any(|(name, _)| *name == "igmp_passed"), "{counters:?}");
}

/// Two servers of one service on a wire, each of them the other's whole underlay.
#[test]
fn sockets_of_the_service_hear_each_other_as_on_an_ethernet() {
    let Some((a, b)) = server("pair") else { return };
    connect(&b, PEER_AA, PEER_LA);
    let other = Broadcast { aa: PEER_AA, la: PEER_LA, members: vec![MY_LA], ..to_group() };
    let attach =
        |at: &Namespace, broadcast: Broadcast| available(at.enter(|| HostDatapath::attach(&on_eth0(broadcast))));
    let Some(attached) = attach(&a, to_group()) else { return };
    let Some(receiver) = attach(&b, other) else { return };
    let there = b.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 4000)).unwrap());
    there.join_multicast_v4(&MDNS, &PEER_AA).unwrap();
    there.set_read_timeout(Some(WAIT)).unwrap();
    let sender = a.enter(|| UdpSocket::bind((MY_AA, 0)).unwrap());
    sender.set_broadcast(true).unwrap();
    for (number, destination) in (0u8..).zip([Ipv4Addr::BROADCAST, Ipv4Addr::new(20, 255, 255, 255), MDNS]) {
        let text: Vec<u8> = (0..1400u16).map(|n| n as u8 ^ number).collect();
        sender.send_to(&text, (destination, 4000)).unwrap();
        let mut buffer = [0; 2048];
        let (length, from) = there.recv_from(&mut buffer).expect("it arrives");
        assert_eq!((&buffer[..length], from.ip().to_string().as_str()), (&text[..], "20.0.0.1"), "{destination}");
    }
    segment_datagrams(&sender, 500);
    let text: Vec<u8> = (0..20_000u16).map(|n| (n / 500) as u8).collect();
    sender.send_to(&text, (MDNS, 4000)).unwrap();
    for number in 0..40 {
        let mut buffer = [0; 2048];
        let (length, _) = there.recv_from(&mut buffer).expect("all of a super frame arrive");
        assert_eq!(buffer[..length], [number; 500]);
    }
    // Nothing came back from the wire.
    assert_eq!(counted(attached.receive_counters().unwrap()).iter().find(|(name, _)| *name == "delivered"), None);
    let counters = counted(receiver.receive_counters().unwrap());
    assert!(counters.contains(&("delivered", 4)), "the super frame came in one piece: {counters:?}");
}

/// On interfaces that take in the outer header as on those of an ordinary Ethernet.
#[test]
fn the_longest_datagram_that_fits_arrives_and_a_longer_one_is_counted() {
    for mtu in [1600, 1520, 1500] {
        let Some((a, b)) = server(&format!("long{mtu}")) else { return };
        connect(&b, PEER_AA, PEER_LA);
        [&a, &b].iter().for_each(|one| one.ip(&format!("link set dev eth0 mtu {mtu}")));
        let other = Broadcast { aa: PEER_AA, la: PEER_LA, members: vec![MY_LA], mtu, ..to_group() };
        let attach =
            |at: &Namespace, broadcast: Broadcast| available(at.enter(|| HostDatapath::attach(&on_eth0(broadcast))));
        let Some(attached) = attach(&a, Broadcast { mtu, ..to_group() }) else { return };
        let Some(_receiver) = attach(&b, other) else { return };
        let there = b.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 4000)).unwrap());
        there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = a.enter(|| UdpSocket::bind((MY_AA, 0)).unwrap());
        sender.set_broadcast(true).unwrap();
        let longest = mtu as usize - 20 - 28;
        for bytes in [longest + 1, longest] {
            sender.send_to(&vec![7; bytes], (Ipv4Addr::BROADCAST, 4000)).unwrap();
        }
        let mut buffer = [0; 2048];
        let (length, _) = there.recv_from(&mut buffer).expect("what fits arrives");
        assert_eq!(length, longest, "and what does not fit does not");
        let counters = counted(attached.counters().unwrap());
        assert!(counters.contains(&("broadcast_too_big", 1)), "{counters:?}");
        assert!(counters.contains(&("broadcast_sent", 1)), "{counters:?}");
    }
}

#[test]
fn a_restart_without_broadcast_takes_it_off() {
    let Some((server, _far)) = server("off") else { return };
    let Some(pins) = PinFs::mount("broadcast-off") else { return };
    let pinned = |broadcast: Option<Broadcast>| HostConfig {
        pin_dir: Some(pins.0.join("host")),
        broadcast,
        ..on_eth0(to_group())
    };
    let attach = |broadcast: Option<Broadcast>| server.enter(|| HostDatapath::attach(&pinned(broadcast)));
    let Some(first) = available(attach(Some(to_group()))) else { return };
    drop(first);
    let again = attach(Some(to_members(&[PEER_LA]))).expect("it takes over, and the pins with it");
    assert!(pins.0.join("host/host_ingress_link").exists());
    drop(again);
    let without = attach(None).expect("it takes over");
    assert!(!pins.0.join("host/host_ingress_link").exists());
    let frame = Ipv4 { destination: MDNS, ..Ipv4::default() }.frame();
    assert_eq!(out(&without, &frame).verdict, Verdict::Drop);
    without.detach().expect("everything goes");
    assert!(!pins.0.join("host").exists());
}
