//! Trunks: one access port, many segments, told apart by VLAN tags. Live, since the kernel keeps tags beside frames, with
//! the TC programs and with the XDP programs in front.

#![allow(clippy::print_stderr)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::netns::{Namespace, link};
use common::pinfs::PinFs;
use common::vlan::{TrunkTap, tagged};
use common::vxlan::{LOCAL, Node, Outer, PEER, arriving, hold, leaving, quiet, settings, vni};
use common::*;
use weft_datapath::DatapathError;
use weft_datapath::frame::FrameInput;
use weft_datapath::vxlan::{
    self, AccessRule, Capacities, Flood, Hook, Origin, PortRole, To, Trunk, Vtep, VtepOptions, VtepProgram,
};
use weft_testbed::bed::BedPrograms;
use weft_testbed::tester::EmulatedLinks;
use weft_wire::flow::{FiveTuple, flow_hash};
use weft_wire::vlan::VlanId;

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);
const REMOTE_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x77];

fn vlan(number: u16) -> VlanId {
    VlanId::new(number).expect("a VLAN ID")
}

fn trunk(untagged: Option<u32>, vlans: &[(u16, u32)]) -> Trunk {
    let vlans = vlans.iter().map(|(of, number)| (vlan(*of), vni(*number))).collect();
    Trunk { untagged: untagged.map(vni), vlans }
}

/// A VTEP with trunks `t0` and `t1` and a plain port `p0`, their far ends in one namespace. Fields end in this order.
struct Bench {
    vtep: Vtep,
    taps: [TrunkTap; 3],
    far: TrunkTap,
    ports: [u32; 3],
    bed: Node,
    _polling: Vec<EmulatedLinks>,
    stations: Namespace,
}

const PORTS: [&str; 3] = ["t0", "t1", "p0"];

fn bench_with(test: &str, hook: Hook, change: impl FnOnce(&mut VtepOptions)) -> Option<Bench> {
    if !weft_needs::root() {
        return None;
    }
    let bed = Node::new(test);
    bed.silence();
    let stations = quiet(test, "st");
    for port in PORTS {
        link((&bed.node, port), (&stations, port), 1500);
    }
    let mut options = VtepOptions { hook, ..VtepOptions::new(LOCAL) };
    change(&mut options);
    let vtep = bed.vtep(&options)?;
    let ports = PORTS.map(|port| bed.node.enter_with(|| vxlan::interface_index(port)).unwrap());
    let mut polling = Vec::new();
    if hook == Hook::Xdp {
        polling.extend(PORTS.map(|port| hold(&stations, port)));
        polling.push(hold(&bed.far, "up"));
    }
    let taps = PORTS.map(|port| TrunkTap::open(&stations, port));
    let far = TrunkTap::open(&bed.far, "up");
    Some(Bench { vtep, taps, far, ports, bed, _polling: polling, stations })
}

/// Segments 42 to 44. `t0`: VLANs 10 and 11 in 42, 20 in 43, untagged in 44; `t1`: VLAN 10 in 43, 30 in 42; `p0`: in 42.
fn bench(test: &str, hook: Hook) -> Option<Bench> {
    let mut bench = bench_with(test, hook, |_| {})?;
    for number in 42..=44 {
        bench.vtep.add_vni(vni(number), &settings()).unwrap();
    }
    bench.set(0, &trunk(Some(44), &[(10, 42), (11, 42), (20, 43)])).unwrap();
    bench.set(1, &trunk(None, &[(10, 43), (30, 42)])).unwrap();
    bench.bed.attach(&mut bench.vtep, "p0", 42, AccessRule::default());
    for number in 42..=44 {
        bench.vtep.static_entry(vni(number), REMOTE_MAC, To::Remote(PEER)).unwrap();
    }
    Some(bench)
}

impl Bench {
    fn set(&mut self, port: usize, trunk: &Trunk) -> Result<(), DatapathError> {
        self.bed.node.enter_with(|| self.vtep.attach_trunk(self.ports[port], trunk))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        counted(self.vtep.counters().unwrap())
    }

    fn count(&self, name: &str) -> u64 {
        self.counts().iter().find(|(of, _)| *of == name).map_or(0, |(_, count)| *count)
    }

    /// The next VXLAN datagram at the far end of the uplink: segment and inner frame.
    fn at_far(&self) -> Option<(u32, Vec<u8>)> {
        let (_, outer) = self.far.next(WAIT)?;
        Some((u32::from_be_bytes([0, outer[46], outer[47], outer[48]]), outer[50..].to_vec()))
    }

    fn learned(&self, number: u32, mac: [u8; 6]) -> Option<To> {
        self.vtep.entry(vni(number), mac).unwrap().map(|entry| entry.to)
    }
}

fn packet(marker: u8) -> Ipv4 {
    Ipv4 { payload: vec![marker; 60], ..Ipv4::default() }
}

fn to(destination: [u8; 6], source: [u8; 6], marker: u8) -> Vec<u8> {
    ethernet(destination, source, 0x0800, &packet(marker).bytes())
}

fn station(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, n]
}

fn both_hooks(test: impl Fn(&str, Hook)) {
    for (name, hook) in [("tc", Hook::Tc), ("xdp", Hook::Xdp)] {
        test(name, hook);
    }
}

#[test]
fn the_tag_says_the_segment_and_does_not_travel() {
    both_hooks(|name, hook| {
        let Some(bench) = bench(&format!("tk{name}"), hook) else { return };
        for (turn, (port, of, number)) in
            [(0, 10, 42), (0, 11, 42), (0, 20, 43), (0, 0, 44), (1, 10, 43), (1, 30, 42)].into_iter().enumerate()
        {
            let inner = to(REMOTE_MAC, station(turn as u8 + 1), turn as u8);
            bench.taps[port].send(&tagged(of, &inner));
            let (_, outer) = bench.far.next(WAIT).unwrap_or_else(|| panic!("VLAN {of}: {:?}", bench.counts()));
            let hash = flow_hash(&FiveTuple::of_ipv4(&packet(turn as u8).bytes()).expect("an IPv4 packet"));
            assert_frame(&outer[14..], &Outer { vni: number, ..leaving(hash, 0) }.packet(&inner));
            let place = if of == 0 { To::Port(bench.ports[port]) } else { To::Vlan(bench.ports[port], vlan(of)) };
            assert_eq!(bench.learned(number, station(turn as u8 + 1)), Some(place));
        }
        assert_eq!(bench.counts(), [("encapsulated", 6)]);
        let sent = |number| bench.vtep.segment(vni(number)).unwrap().unwrap().traffic;
        assert_eq!([42, 43, 44].map(|number| sent(number).sent_frames), [3, 2, 1]);
        assert_eq!(sent(44).sent_bytes, 14 + 80, "without a tag");
    });
}

#[test]
fn what_arrives_leaves_with_the_tag_of_its_vlan() {
    both_hooks(|name, hook| {
        let Some(mut bench) = bench(&format!("td{name}"), hook) else { return };
        let [t0, t1, p0] = bench.ports;
        let places = [
            (42, To::Vlan(t0, vlan(10)), 0, 10),
            (42, To::Vlan(t0, vlan(11)), 0, 11),
            (43, To::Vlan(t0, vlan(20)), 0, 20),
            (44, To::Port(t0), 0, 0),
            (43, To::Vlan(t1, vlan(10)), 1, 10),
            (42, To::Port(p0), 2, 0),
        ];
        for (n, (number, place, tap, of)) in (0u8..).zip(places) {
            bench.vtep.static_entry(vni(number), station(n), place).unwrap();
            let inner = to(station(n), REMOTE_MAC, n);
            bench.far.send(&with_macs(&bench, &Outer { vni: number, ..arriving() }.frame(&inner)));
            let (found, frame) = bench.taps[tap].next(WAIT).unwrap_or_else(|| panic!("{n}: {:?}", bench.counts()));
            assert_eq!(found, of, "VLAN of station {n}");
            assert_frame(&frame, &inner);
        }
        assert_eq!(bench.counts(), [("decapsulated", 6)]);
    });
}

/// The outer MACs that the node's stack takes.
fn with_macs(bench: &Bench, frame: &[u8]) -> Vec<u8> {
    let mac = netns_mac(&bench.bed.node, "up");
    [&mac[..], &[2, 0, 0, 0, 0, 0x99], &frame[12..]].concat()
}

fn netns_mac(namespace: &Namespace, interface: &str) -> [u8; 6] {
    let output = namespace.command("ip").args(["-o", "link", "show", "dev", interface]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mac = text.split("link/ether ").nth(1).expect("an Ethernet device").split(' ').next().unwrap();
    let bytes: Vec<u8> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// Between two VLANs of one port, two ports, a trunk and a plain port; each gets its own tag.
#[test]
fn vlans_of_one_segment_are_switched_here() {
    both_hooks(|name, hook| {
        let Some(bench) = bench(&format!("ts{name}"), hook) else { return };
        // They are learned from a frame to a peer.
        let places = [(0, 10), (0, 11), (1, 30), (2, 0)];
        for (n, (tap, of)) in (0u8..).zip(places) {
            bench.taps[tap].send(&tagged(of, &to(REMOTE_MAC, station(n), n)));
            assert_eq!(bench.at_far().expect("it leaves").0, 42);
        }
        for (from, (tap, of)) in (0u8..).zip(places) {
            for (target, (target_tap, target_vlan)) in (0u8..).zip(places) {
                let inner = to(station(target), station(from), target);
                bench.taps[tap].send(&tagged(of, &inner));
                if from == target {
                    continue;
                }
                let found = bench.taps[target_tap].next(WAIT);
                assert_eq!(found, Some((target_vlan, inner)), "{from} to {target}: {:?}", bench.counts());
            }
        }
        wait_for(&bench, "same_port", 4);
        assert_eq!(bench.counts(), [("encapsulated", 4), ("switched", 12), ("same_port", 4)]);
        // The same addresses in another segment of the same port are others: nobody there has them.
        bench.taps[0].send(&tagged(20, &to(station(0), station(9), 9)));
        assert_eq!(bench.at_far().expect("flooded").0, 43);
        let (of, _) = bench.taps[1].next(WAIT).expect("flooded");
        assert_eq!(of, 10);
        assert_eq!((bench.taps[0].poll(), bench.taps[2].poll()), (None, None));
    });
}

fn wait_for(bench: &Bench, name: &str, count: u64) {
    let deadline = std::time::Instant::now() + WAIT;
    while bench.count(name) < count {
        assert!(std::time::Instant::now() < deadline, "{name}: {:?}", bench.counts());
        std::thread::yield_now();
    }
}

#[test]
fn floods_reach_every_vlan_of_the_segment_once() {
    both_hooks(|name, hook| {
        let Some(bench) = bench(&format!("tf{name}"), hook) else { return };
        let from_vlan = to(BROADCAST_MAC, station(1), 1);
        bench.taps[0].send(&tagged(10, &from_vlan));
        assert_eq!(bench.at_far(), Some((42, from_vlan.clone())));
        assert_eq!(bench.taps[0].next(WAIT), Some((11, from_vlan.clone())));
        assert_eq!(bench.taps[1].next(WAIT), Some((30, from_vlan.clone())));
        assert_eq!(bench.taps[2].next(WAIT), Some((0, from_vlan)));
        let from_peer = to(BROADCAST_MAC, REMOTE_MAC, 2);
        bench.far.send(&with_macs(&bench, &Outer { vni: 43, ..arriving() }.frame(&from_peer)));
        assert_eq!(bench.taps[0].next(WAIT), Some((20, from_peer.clone())));
        assert_eq!(bench.taps[1].next(WAIT), Some((10, from_peer)));
        assert_eq!([0, 1, 2].map(|tap| bench.taps[tap].poll()), [None, None, None]);
        assert_eq!(counted(bench.vtep.events().unwrap())[0], ("copied_to_port", 5));
    });
}

#[test]
fn arp_is_answered_with_the_tag_of_the_question() {
    let Some(mut bench) = bench("tarp", Hook::Tc) else { return };
    let (asker, asked) = ([20, 0, 0, 1].into(), [20, 0, 0, 2].into());
    bench.vtep.set_arp(vni(43), asked, REMOTE_MAC).unwrap();
    let request = ethernet(BROADCAST_MAC, station(1), 0x0806, &arp(1, (station(1), asker), ([0; 6], asked)));
    let reply = ethernet(station(1), REMOTE_MAC, 0x0806, &arp(2, (REMOTE_MAC, asked), (station(1), asker)));
    bench.taps[0].send(&tagged(20, &request));
    let (of, frame) = bench.taps[0].next(WAIT).expect("an answer");
    assert_eq!((of, &frame[..reply.len()]), (20, &reply[..]));
    assert_eq!(bench.counts(), [("arp_answered", 1)]);
}

/// Frames in memory: those that the kernel would not let through are here too.
#[test]
fn tags_that_say_no_segment_are_dropped_and_counted() {
    let Some(bench) = bench("tdrop", Hook::Tc) else { return };
    let inner = to(REMOTE_MAC, station(1), 1);
    let with_type = |kind: [u8; 2], tci: u16| [&inner[..12], &kind[..], &tci.to_be_bytes(), &inner[12..]].concat();
    let twice = tagged(10, &tagged(5, &inner));
    let [t0, t1, _] = bench.ports;
    let cases: Vec<(&str, u32, Vec<u8>)> = vec![
        ("encapsulated", t0, tagged(10, &inner)),
        // Priority and drop eligibility are not part of the VLAN ID, and VLAN ID 0 is no VLAN.
        ("encapsulated", t0, with_type([0x81, 0], 0xf000 | 10)),
        ("encapsulated", t0, with_type([0x81, 0], 0xe000)),
        ("encapsulated", t0, inner.clone()),
        ("unknown_vlan", t0, tagged(12, &inner)),
        ("unknown_vlan", t0, tagged(4095, &inner)),
        ("unknown_vlan", t1, tagged(20, &inner)),
        ("unknown_vlan", t1, with_type([0x81, 0], 0xe000)),
        ("no_segment", t1, inner.clone()),
        ("tagged", t0, with_type([0x88, 0xa8], 10)),
        ("tagged", t0, twice),
        ("inner_malformed", t0, tagged(10, &inner)[..15].to_vec()),
        ("passed", t0, tagged(10, &to([0x01, 0x80, 0xc2, 0, 0, 0], station(1), 1))),
    ];
    let mut before = bench.vtep.counters().unwrap();
    for (place, (expected, ifindex, frame)) in cases.iter().enumerate() {
        let input = FrameInput { bytes: frame, ifindex: *ifindex, ..FrameInput::default() };
        let output = bench.bed.node.enter_with(|| bench.vtep.run(VtepProgram::Access, &input)).expect("it runs");
        let now = bench.vtep.counters().unwrap();
        let new = now.iter().zip(&before).map(|((name, now), (_, before))| (*name, now - before)).collect();
        assert_eq!(counted(new), [(*expected, 1)], "case {place}");
        before = now;
        if *expected == "encapsulated" {
            assert_frame(&output.bytes[50..], &inner);
        }
        if *expected == "passed" {
            assert_frame(&output.bytes, frame);
        }
    }
}

/// The kernel keeps the outermost tag beside a frame, where XDP does not see it: TC must have every frame of a trunk.
#[test]
fn xdp_takes_no_frames_of_trunks() {
    let Some(bench) = bench("txdp", Hook::Xdp) else { return };
    let inner = to(REMOTE_MAC, station(1), 1);
    let [t0, t1, p0] = bench.ports;
    for (ifindex, frame) in [
        (t0, inner.clone()),
        (t0, tagged(10, &inner)),
        (t0, tagged(12, &inner)),
        (t0, tagged(10, &tagged(5, &inner))),
        (t1, tagged(20, &inner)),
        (p0, tagged(10, &inner)),
        (t0, tagged(10, &to(BROADCAST_MAC, station(1), 1))),
        (t0, tagged(10, &to(station(9), station(1), 1))),
    ] {
        let input = FrameInput { bytes: &frame, ifindex, ..FrameInput::default() };
        let output = bench.bed.node.enter_with(|| bench.vtep.run(VtepProgram::AccessXdp, &input)).expect("it runs");
        assert_eq!(output.verdict, weft_datapath::frame::Verdict::Next);
        assert_frame(&output.bytes, &frame);
    }
    assert_eq!(bench.counts(), []);
}

/// Sends frames into a port with their outermost tag beside them, as VLAN interfaces and containers' hosts do.
struct Beside {
    tap: TrunkTap,
    _relay: BedPrograms,
}

impl Bench {
    fn beside(&self, port: &str) -> Beside {
        link((&self.stations, "s0"), (&self.stations, "s1"), 1500);
        // The kernel takes the tag out of the frame where it comes in at s1, and from there it goes on like that.
        let relay = self.stations.enter_with(|| {
            let relay = BedPrograms::load().expect("it loads");
            relay.deliver_to(port).expect("it is there");
            relay.fan_in(vxlan::interface_index("s1").unwrap()).expect("it attaches");
            relay
        });
        Beside { tap: TrunkTap::open(&self.stations, "s0"), _relay: relay }
    }
}

#[test]
fn a_tag_beside_another_one_is_seen() {
    both_hooks(|name, hook| {
        let Some(bench) = bench(&format!("tb{name}"), hook) else { return };
        let beside = bench.beside("t0");
        let inner = to(REMOTE_MAC, station(1), 1);
        beside.tap.send(&tagged(10, &inner));
        assert_eq!(bench.at_far(), Some((42, inner.clone())));
        // What is inside looks like a tag of the trunk, and may not say the segment.
        beside.tap.send(&tagged(10, &tagged(20, &inner)));
        wait_for(&bench, "tagged", 1);
        beside.tap.send(&tagged(12, &tagged(20, &inner)));
        wait_for(&bench, "unknown_vlan", 1);
        assert_eq!(bench.far.poll(), None);
        let mut counts = bench.counts();
        counts.sort_unstable();
        assert_eq!(counts, [("encapsulated", 1), ("tagged", 1), ("unknown_vlan", 1)]);
    });
}

#[test]
fn a_port_that_keeps_tags_keeps_those_beside_frames() {
    both_hooks(|name, hook| {
        let Some(mut bench) = bench(&format!("tkeep{name}"), hook) else { return };
        let p0 = bench.ports[2];
        bench.bed.node.enter_with(|| bench.vtep.detach(p0)).unwrap();
        bench.bed.attach(&mut bench.vtep, "p0", 42, AccessRule { keep_tags: true });
        let beside = bench.beside("p0");
        let inner = to(REMOTE_MAC, station(1), 1);
        // Learned, then known, then found again.
        for _ in 0..3 {
            beside.tap.send(&tagged(7, &inner));
            assert_eq!(bench.at_far(), Some((42, tagged(7, &inner))));
        }
    });
}

#[test]
fn vlans_come_and_go_while_others_carry_frames() {
    let Some(mut bench) = bench("tchg", Hook::Tc) else { return };
    let [t0, ..] = bench.ports;
    for (of, n) in [(10, 1), (20, 2)] {
        bench.taps[0].send(&tagged(of, &to(REMOTE_MAC, station(n), n)));
        bench.at_far().expect("it leaves");
    }
    // VLAN 10 moves to another segment, 11 goes, 12 comes; 20 stays and so does what is known behind it.
    bench.set(0, &trunk(None, &[(10, 44), (12, 42), (20, 43)])).unwrap();
    assert_eq!(bench.vtep.trunk(t0).unwrap(), Some(trunk(None, &[(10, 44), (12, 42), (20, 43)])));
    assert_eq!(bench.learned(42, station(1)), None);
    assert_eq!(bench.learned(43, station(2)), Some(To::Vlan(t0, vlan(20))));
    for (of, number) in [(10, 44), (12, 42), (20, 43)] {
        bench.taps[0].send(&tagged(of, &to(REMOTE_MAC, station(of as u8), 1)));
        assert_eq!(bench.at_far().expect("it leaves").0, number);
    }
    bench.taps[0].send(&tagged(11, &to(REMOTE_MAC, station(1), 1)));
    bench.taps[0].send(&to(REMOTE_MAC, station(1), 1));
    wait_for(&bench, "unknown_vlan", 1);
    wait_for(&bench, "no_segment", 1);

    // A segment that goes takes its VLANs along; nothing else.
    assert!(bench.vtep.remove_vni(vni(42)).unwrap());
    assert_eq!(bench.vtep.trunk(t0).unwrap(), Some(trunk(None, &[(10, 44), (20, 43)])));
    assert_eq!(bench.vtep.trunk(bench.ports[1]).unwrap(), Some(trunk(None, &[(10, 43)])));
    let members = bench.vtep.segment(vni(43)).unwrap().unwrap().ports;
    assert_eq!(members, [To::Vlan(t0, vlan(20)), To::Vlan(bench.ports[1], vlan(10))]);

    // What cannot be changes nothing.
    let error = |result: Result<(), DatapathError>| result.expect_err("refused").to_string();
    assert!(error(bench.set(0, &trunk(None, &[(10, 77)]))).contains("77 is not a segment"));
    assert_eq!(bench.vtep.trunk(t0).unwrap(), Some(trunk(None, &[(10, 44), (20, 43)])));
    let place = To::Vlan(t0, vlan(20));
    assert!(error(bench.vtep.static_entry(vni(44), station(5), place)).contains("segment 44 with VLAN 20"));
    assert!(error(bench.vtep.static_entry(vni(44), station(5), To::Port(t0))).contains("segment 44"));
    let access = bench.bed.node.enter_with(|| bench.vtep.attach_access(t0, vni(43), AccessRule::default()));
    assert!(error(access).contains("a trunk already"));
    assert!(error(bench.vtep.attach_uplink(t0)).contains("an access port already"));

    // And one that is taken off is an interface like others, with its number free for the next.
    assert!(bench.bed.node.enter_with(|| bench.vtep.detach(t0)).unwrap());
    assert_eq!(bench.vtep.trunk(t0).unwrap(), None);
    assert_eq!(bench.learned(43, station(2)), None);
    bench.set(0, &trunk(None, &[(5, 43)])).unwrap();
    assert_eq!(bench.vtep.trunk(t0).unwrap(), Some(trunk(None, &[(5, 43)])), "nothing of before");
}

#[test]
fn there_is_room_for_as_many_trunks_as_said() {
    let Some(mut bench) = bench_with("troom", Hook::Tc, |options| options.capacities.trunks = 1) else { return };
    bench.vtep.add_vni(vni(42), &settings()).unwrap();
    bench.set(0, &trunk(Some(42), &[])).unwrap();
    let error = bench.set(1, &trunk(Some(42), &[])).expect_err("refused").to_string();
    assert!(error.contains("room for 1 trunks"), "{error}");
    assert_eq!(bench.vtep.ports().unwrap().len(), 2);
}

#[test]
fn a_new_daemon_finds_the_trunks_of_the_old_one() {
    if !weft_needs::root() {
        return;
    }
    let Some(fs) = PinFs::mount("trest") else { return };
    let dir = fs.0.join("v");
    let Some(mut bench) = bench_with("trest", Hook::Tc, |options| options.pin_dir = Some(dir.clone())) else { return };
    for number in [42, 43] {
        bench.vtep.add_vni(vni(number), &settings()).unwrap();
        bench.vtep.static_entry(vni(number), REMOTE_MAC, To::Remote(PEER)).unwrap();
    }
    let wanted = trunk(Some(42), &[(10, 42), (4094, 43)]);
    bench.set(0, &wanted).unwrap();
    bench.vtep.static_entry(vni(43), station(1), To::Vlan(bench.ports[0], vlan(4094))).unwrap();
    let options = bench.vtep.options().clone();
    let Bench { vtep, taps, far, ports, bed, .. } = bench;
    drop(vtep);
    let send = |of: u16, n: u8| {
        taps[0].send(&tagged(of, &to(REMOTE_MAC, station(n), n)));
        far.next(WAIT).map(|(_, outer)| outer[48])
    };
    assert_eq!((send(10, 2), send(4094, 1)), (Some(42), Some(43)), "it works without a daemon");
    let mut vtep = bed.node.enter_with(|| Vtep::load(&options)).unwrap();
    assert_eq!(vtep.trunk(ports[0]).unwrap(), Some(wanted));
    assert!(vtep.ports().unwrap().iter().any(|port| port.role == PortRole::Trunk && port.ifindex == ports[0]));
    let entry = vtep.entry(vni(43), station(1)).unwrap().expect("it was told");
    assert_eq!((entry.to, entry.origin), (To::Vlan(ports[0], vlan(4094)), Origin::Static));
    assert_eq!((send(0, 3), send(4094, 1)), (Some(42), Some(43)));
    // The number of its table is not given to another one.
    bed.node.enter_with(|| vtep.attach_trunk(ports[1], &trunk(None, &[(7, 43)]))).unwrap();
    assert_eq!(vtep.trunk(ports[0]).unwrap().unwrap().vlans.len(), 2);
    bed.node.enter_with(|| vtep.stop()).unwrap();
}

/// A thousand segments on two trunks, the same addresses in each, and VLANs that lie one beside the other in segments that do
/// not: whatever is sent, what comes out has the tag, or the VNI, of the segment that it was sent in.
#[test]
fn frames_of_a_thousand_segments_on_two_trunks_never_cross() {
    both_hooks(|name, hook| never_cross(&format!("ti{name}"), hook));
}

const SEGMENTS: u32 = 1000;
const PER_TRUNK: u32 = SEGMENTS / 2;
const FRAMES: u32 = 6000;
/// Not 1 to 1000, so that a mask or a shift that is off would show.
const STEP: u32 = 16_777;
const FIRST_VLAN: u32 = 3500;

fn number_of(segment: u32) -> u32 {
    1 + segment * STEP
}

/// Most VLANs are on both trunks, in other segments; the last one is the last that there is.
fn place_of(segment: u32) -> (usize, u16) {
    let (port, of) = (segment / PER_TRUNK, segment % PER_TRUNK);
    (port as usize, (FIRST_VLAN + of + port * (4095 - PER_TRUNK - FIRST_VLAN)) as u16)
}

fn never_cross(test: &str, hook: Hook) {
    let more = |options: &mut VtepOptions| {
        options.capacities = Capacities { vnis: SEGMENTS, trunks: 2, ..Capacities::default() };
    };
    let Some(mut bench) = bench_with(test, hook, more) else { return };
    let mut places = BTreeMap::new();
    let mut trunks = [Trunk::default(), Trunk::default()];
    for segment in 0..SEGMENTS {
        let (port, of) = place_of(segment);
        let flood = Flood::HeadEnd(vec![PEER]);
        bench.vtep.add_vni(vni(number_of(segment)), &vxlan::VniSettings { flood, ..settings() }).unwrap();
        trunks[port].vlans.insert(vlan(of), vni(number_of(segment)));
        places.insert((port, of), segment);
    }
    for (port, wanted) in trunks.iter().enumerate() {
        bench.set(port, wanted).unwrap();
    }
    for segment in 0..SEGMENTS {
        let (port, of) = place_of(segment);
        let place = To::Vlan(bench.ports[port], vlan(of));
        bench.vtep.static_entry(vni(number_of(segment)), station(0), place).unwrap();
        bench.vtep.static_entry(vni(number_of(segment)), station(4), To::Remote(PEER)).unwrap();
    }
    let mut random = Random(7348);
    let (mut out, mut inside) = (0, 0);
    let outer_macs = with_macs(&bench, &[0; 14])[..12].to_vec();
    for turn in 0..FRAMES {
        let segment = random.below(u64::from(SEGMENTS)) as u32;
        // To a station here, at the peer, of all, or of nobody: what is flooded is told apart by its segment too.
        let destination = [station(0), station(4), station(7), BROADCAST_MAC][random.below(4) as usize];
        let stray = random.below(10) == 0;
        let marker = [&segment.to_be_bytes()[..], &[u8::from(stray)], &[0xa5; 55]].concat();
        let frame = ethernet(destination, station(200), 0x88b5, &marker);
        if turn % 2 == 0 {
            // Sometimes of a segment that is not here, next to one that is.
            let number = number_of(segment) + u32::from(stray);
            let outer = Outer { vni: number, ..arriving() }.frame(&frame);
            bench.far.send(&[&outer_macs[..], &outer[12..]].concat());
        } else {
            let (port, of) = place_of(segment);
            let of = if stray { random.below(3000) as u16 + 1 } else { of };
            bench.taps[port].send(&tagged(of, &frame));
        }
        if turn % 32 == 31 || turn == FRAMES - 1 {
            settle(&bench, turn);
            out += from_trunks(&bench, &places);
            inside += from_uplink(&bench);
        }
    }
    eprintln!("{hook:?}: {out} frames left by trunks, {inside} by the uplink: {:?}", bench.counts());
    assert!(out > FRAMES / 3 && inside > FRAMES / 4, "{out} and {inside}");
    assert!(bench.count("unknown_vlan") > 100 && bench.count("unknown_vni") > 100);
    let numbers: BTreeMap<u32, u32> = (0..SEGMENTS).map(|segment| (number_of(segment), segment)).collect();
    for entry in bench.vtep.entries(None).unwrap() {
        let (port, of) = place_of(numbers[&entry.vni.get()]);
        let here = To::Vlan(bench.ports[port], vlan(of));
        assert!(entry.to == To::Remote(PEER) || entry.to == here, "{entry:?}");
    }
}

fn segment_in(frame: &[u8]) -> u32 {
    assert_eq!((&frame[12..14], frame[18]), (&[0x88, 0xb5][..], 0), "no stray frame comes out");
    u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])
}

fn from_trunks(bench: &Bench, places: &BTreeMap<(usize, u16), u32>) -> u32 {
    let mut count = 0;
    for port in 0..2 {
        while let Some((of, frame)) = bench.taps[port].poll() {
            assert_eq!(Some(&segment_in(&frame)), places.get(&(port, of)), "port {port}, VLAN {of}");
            count += 1;
        }
    }
    count
}

fn from_uplink(bench: &Bench) -> u32 {
    let mut count = 0;
    while let Some((of, outer)) = bench.far.poll() {
        // Not what the node's own stack asks.
        if outer[12..14] != [8, 0] || outer[23] != 17 || outer[36..38] != 4789u16.to_be_bytes() {
            continue;
        }
        let sent = u32::from_be_bytes([0, outer[46], outer[47], outer[48]]);
        assert_eq!((of, number_of(segment_in(&outer[50..]))), (0, sent));
        count += 1;
    }
    count
}

/// Waits until everything that was sent has been counted.
fn settle(bench: &Bench, turn: u32) {
    let deadline = std::time::Instant::now() + WAIT;
    loop {
        let total: u64 = bench.vtep.counters().unwrap().iter().map(|(_, count)| count).sum();
        if total > u64::from(turn) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{total} of {} frames were counted", turn + 1);
        std::thread::yield_now();
    }
}
